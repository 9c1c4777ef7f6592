"""TLS for fixtures: which certificate a client is shown, and what it makes of it.

The name that a client asks for decides. Certificates of named hosts were issued by the
runner; for any other host one is issued when it is asked for, which only trials that are
about to fail, and fixtures with stars, need.
"""

from __future__ import annotations

import os
import socket
import ssl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from evalkit.outside.plan import Leaf, WorldPlan

_PATIENCE_S: Final = 10.0


class DistrustError(Exception):
    """A client did not go on after it was shown a certificate."""

    def __init__(self, host: str, how: str) -> None:
        super().__init__(f"{host}: {how}")
        self.host = host
        self.how = how


class _Named(ssl.SSLSocket):
    """A connection that knows which host was asked for."""

    asked = ""


class Secure:
    """Makes connections secure.

    Parameters
    ----------
    plan
        Has the certificates.
    """

    def __init__(self, plan: WorldPlan) -> None:
        self._plan = plan
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._first: ssl.SSLContext | None = None

    def wrap(self, client: socket.socket) -> tuple[ssl.SSLSocket, str]:
        """Shake hands with a client; give the connection, and the host that it asked for.

        Raises
        ------
        DistrustError
            If it does not accept the certificate.
        OSError
            If it goes away, or speaks no TLS.
        """
        if self._first is None:
            self._first = _context()
            self._first.sslsocket_class = _Named
            self._first.sni_callback = self._choose
        client.settimeout(_PATIENCE_S)
        found = self._first.wrap_socket(client, server_side=True, do_handshake_on_connect=False)
        try:
            found.do_handshake()
        except OSError as error:
            found.close()
            raise distrust(error, _asked(found)) or error from None
        found.settimeout(None)
        return found, _asked(found)

    def _choose(self, client: Any, name: str | None, _: ssl.SSLContext) -> None:
        client.asked = (name or client.getsockname()[0]).lower().rstrip(".")
        client.context = self._context_for(client.asked)

    def _context_for(self, host: str) -> ssl.SSLContext:
        leaf = self._plan.leaf
        key = "" if host in leaf.hosts else host
        if key not in self._contexts:
            pem = leaf.pem if not key else issue([host], authority=self._plan.authority).pem
            self._contexts[key] = context = _context()
            with _as_file(pem) as path:
                context.load_cert_chain(path)
        return self._contexts[key]


def distrust(error: OSError, host: str) -> DistrustError | None:
    """Say whether an error is a client's refusal of a certificate."""
    if not isinstance(error, ssl.SSLError) or "ALERT" not in (error.reason or ""):
        return None
    return DistrustError(host, str(error.reason).lower().replace("_", " "))


def _asked(client: ssl.SSLSocket) -> str:
    return client.asked if isinstance(client, _Named) else ""


def _context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.set_alpn_protocols(["http/1.1"])
    context.num_tickets = 0  # nobody comes back, and each costs
    return context


def issue(hosts: list[str], *, authority: tuple[bytes, bytes]) -> Leaf:
    """Issue a certificate, valid from 2000 on as the authority itself is.

    Parameters
    ----------
    hosts
        Names and addresses.
    authority
        Certificate and key that sign it, as PEM text.
    """
    import trustme

    issuer = trustme.CA.from_pem(*authority)
    found = issuer.issue_cert(*hosts)
    chain = [found.private_key_pem.bytes(), *(each.bytes() for each in found.cert_chain_pems)]
    return Leaf(frozenset(hosts), b"".join(chain))


@contextmanager
def _as_file(content: bytes) -> Iterator[str]:
    """Give a file with some content: Python reads certificates from files only."""
    if hasattr(os, "memfd_create"):  # no file of the agent's
        fd = os.memfd_create("evalkit")
        try:
            os.write(fd, content)
            yield f"/proc/self/fd/{fd}"
        finally:
            os.close(fd)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chain.pem")
        path.write_bytes(content)
        yield str(path)
