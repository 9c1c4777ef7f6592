"""Traffic to the outside that stays in a trial: addresses of its own, and who listens there.

Where a trial has a network of its own, a few addresses of the outside become this
machine's, a name server among them; so unmodified clients of any language arrive, without
a variable that tells them to. All other addresses stay unreachable. What is answered is
not decided here: the sockets are bound while the process may still take low ports, and
handed on.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Iterable
from ipaddress import IPv6Address, ip_address
from typing import Final, NamedTuple

from evalkit.errors import SandboxError
from evalkit.sandbox.folders import RESOLVER

if sys.platform != "win32":
    import fcntl

_SIOCSIFADDR: Final = 0x8916
_SIOCSIFNETMASK: Final = 0x891C
_LOOPBACK: Final = b"lo"
_LOOPBACK_INDEX: Final = 1
_BACKLOG: Final = 512
_NAMES_PORT: Final = 53
_ONE_ADDRESS: Final = b"\xff" * 4
_WHOLE: Final = 128


class Captured(NamedTuple):
    """What is listened at, bound and waiting."""

    listeners: tuple[socket.socket, ...]
    names: socket.socket | None = None
    """For questions to the name server, as datagrams."""
    long_names: socket.socket | None = None
    """The same, over connections."""
    addresses: frozenset[str] = frozenset()
    """Addresses of the outside that are this machine's now."""

    def holds(self, host: str) -> bool:
        """Say whether a host is here: every name is, once it is looked up."""
        try:
            return str(ip_address(host)) in self.addresses
        except ValueError:
            return self.names is not None


def capture(places: Iterable[tuple[str, int]]) -> Captured:
    """Make addresses this machine's own, and listen there, and as the name server.

    The process must be in a network of its own, and still have its privileges.

    Parameters
    ----------
    places
        Addresses and ports.

    Raises
    ------
    SandboxError
        If an address or a port cannot be had.
    """
    places = tuple(places)
    addresses = frozenset(address for address, _ in places if not _is_loopback(address))
    try:
        for number, address in enumerate(sorted({*addresses, RESOLVER}), start=1):
            _add_address(address, number)
        names = _bound(socket.SOCK_DGRAM, RESOLVER, _NAMES_PORT)
        long_names = _listening(RESOLVER, _NAMES_PORT)
        return Captured(listen(places), names, long_names, addresses | {RESOLVER})
    except OSError as error:
        raise SandboxError(f"requests to the outside cannot be captured: {error}") from error


def listen(places: Iterable[tuple[str, int]]) -> tuple[socket.socket, ...]:
    """Listen at addresses and ports; at ``::1`` only where there is such an address.

    Raises
    ------
    OSError
        If a port is taken; it says which.
    """
    found = []
    for address, port in places:
        try:
            found.append(_listening(address, port))
        except OSError as error:
            if address != "::1":
                raise OSError(error.errno, f"port {port} of {address}: {error.strerror}") from error
    return tuple(found)


def on_loopback(places: Iterable[tuple[str, int]]) -> Captured:
    """Listen at those places that are on loopback, which trials may share.

    Raises
    ------
    SandboxError
        If a port is taken.
    """
    try:
        return Captured(listen(place for place in places if _is_loopback(place[0])))
    except OSError as error:
        raise SandboxError(
            f"without a network of its own a trial cannot have what a fixture needs: {error}"
        ) from error


def _is_loopback(address: str) -> bool:
    return ip_address(address).is_loopback


def _add_address(address: str, number: int) -> None:
    """Give the loopback device one more address."""
    if isinstance(ip_address(address), IPv6Address):
        request = struct.pack("16sIi", IPv6Address(address).packed, _WHOLE, _LOOPBACK_INDEX)
        _tell_device(socket.AF_INET6, _SIOCSIFADDR, request)
        return
    name = b"%s:%d" % (_LOOPBACK, number)
    for what, value in (
        (_SIOCSIFADDR, socket.inet_aton(address)),
        (_SIOCSIFNETMASK, _ONE_ADDRESS),
    ):
        request = struct.pack("16sHH4s8x", name, socket.AF_INET, 0, value)
        _tell_device(socket.AF_INET, what, request)


def _tell_device(family: int, what: int, request: bytes) -> None:
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, what, request)


def _listening(address: str, port: int) -> socket.socket:
    sock = _bound(socket.SOCK_STREAM, address, port)
    sock.listen(_BACKLOG)
    return sock


def _bound(kind: int, address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sock = socket.socket(family, kind)
    try:
        if kind == socket.SOCK_STREAM:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((address, port))
    except OSError:
        sock.close()
        raise
    return sock
