"""Who tried to reach the outside: seen by an audit hook, which may also refuse.

The hook sees what Python's own ``socket`` does, whatever library is on top of it:
it names destinations. It does not see C libraries (psycopg), other programs, or
the name lookup inside ``socket.connect((name, port))``. Behind a barrier of the
kernel all of those are refused, too, and counted by the kernel.
"""

from __future__ import annotations

import errno
import os
import socket
import sys
from collections.abc import Callable, Mapping
from ipaddress import IPv6Address, ip_address
from typing import Any, Final, NamedTuple

_LOCAL_NAMES: Final = frozenset({"", "localhost", "localhost.localdomain"})
_MAX_DESTINATIONS: Final = 100
_NAMED: Final = 5
_INTERNET: Final = frozenset({socket.AF_INET, socket.AF_INET6})


class Refused(NamedTuple):
    """Attempts of a trial to reach the outside.

    Examples
    --------
    >>> str(Refused(1, ("192.0.2.1:80",)))
    '1 connection to the outside was refused (192.0.2.1:80)'
    """

    n: int
    """How many; more than there are destinations, because a lookup can take several."""
    destinations: tuple[str, ...]
    """``host:port`` as Python named it, in order of appearance; others are only counted."""

    def __str__(self) -> str:
        named = ", ".join(self.destinations[:_NAMED]) or "where to is not known"
        what = "connection to the outside was" if self.n == 1 else "connections to the outside were"
        return f"{self.n} {what} refused ({named})"


NOBODY: Final = Refused(0, ())
"""Nothing was tried."""


class Connections:
    """The hook, and what it has seen.

    Parameters
    ----------
    refuse
        Whether to raise for what is not loopback, as a kernel without a route would.
    """

    def __init__(self, *, refuse: bool) -> None:
        self.n_refused = 0
        self._refuse = refuse
        self._is_spared: Callable[[str], bool] | None = None
        self._seen: dict[str, None] = {}

    def watch(self) -> None:
        """Begin; nothing can remove the hook from this process again."""
        sys.addaudithook(self._hear)

    def spare(self, holds: Callable[[str], bool]) -> None:
        """Say which hosts are answered here, and so are not the outside."""
        self._is_spared = holds

    def forget(self) -> None:
        """Begin anew: what was seen so far was somebody else's."""
        self.n_refused = 0
        self._seen.clear()

    @property
    def destinations(self) -> tuple[str, ...]:
        """Where Python tried to connect to, up to 100."""
        return tuple(self._seen)

    def _hear(self, event: str, args: tuple[Any, ...]) -> None:
        """Take one audit event; there are thousands, so what is not ours leaves at once."""
        find = _WATCHED.get(event)
        if find is None:
            return
        destination = find(args)
        if destination:
            self._note(event, destination)

    def _note(self, event: str, destination: str) -> None:
        """Remember a destination, and refuse it."""
        if self._is_spared is not None and self._is_spared(_host(destination)):
            return
        if len(self._seen) < _MAX_DESTINATIONS:
            self._seen[destination] = None
        if not self._refuse:
            return
        self.n_refused += 1
        if event in _LOOKUPS:
            raise socket.gaierror(socket.EAI_AGAIN, f"evalkit refused to look up {destination}")
        reason = f"{os.strerror(errno.ENETUNREACH)} (evalkit refused {destination})"
        raise OSError(errno.ENETUNREACH, reason)


def _address(args: tuple[Any, ...]) -> str:
    """Return where a socket is sent to; empty for loopback and other families."""
    sock, address = args[:2]
    if sock.family not in _INTERNET or not isinstance(address, tuple):
        return ""
    return _outside(*address[:2])


def _looked_up(args: tuple[Any, ...]) -> str:
    """Return a name that is looked up; empty for addresses, which need no look-up."""
    host, port = (*args, "")[:2]
    return "" if _numeric(_text(host)) else _outside(host, port)


def _reversed(args: tuple[Any, ...]) -> str:
    """Return an address whose name is asked for."""
    asked = args[0]
    return _outside(*asked[:2]) if isinstance(asked, tuple) else _outside(asked)


_LOOKUPS: Final[Mapping[str, Callable[[tuple[Any, ...]], str]]] = {
    "socket.getaddrinfo": _looked_up,
    "socket.gethostbyname": _looked_up,
    "socket.gethostbyaddr": _reversed,
    "socket.getnameinfo": _reversed,
}
_WATCHED: Final[Mapping[str, Callable[[tuple[Any, ...]], str]]] = {
    **_LOOKUPS,
    "socket.connect": _address,
    "socket.sendto": _address,
    "socket.sendmsg": _address,
}


def _outside(host: object, port: object = "") -> str:
    """Return ``host:port``; empty when it is on this machine."""
    name = _text(host)
    if name.lower().rstrip(".") in _LOCAL_NAMES or _is_loopback(name):
        return ""
    shown = f"[{name}]" if ":" in name else name
    return f"{shown}:{port}" if port else shown


def _host(destination: str) -> str:
    """Take the host from ``host:port``."""
    if destination.startswith("["):
        return destination[1:].partition("]")[0]
    return destination if destination.count(":") > 1 else destination.partition(":")[0]


def _text(host: object) -> str:
    """Return a host as text: the functions take bytes and ``None``, too."""
    if isinstance(host, bytes | bytearray):
        return bytes(host).decode(errors="backslashreplace")
    return "" if host is None else str(host)


def _numeric(name: str) -> bool:
    """Say whether a host is an address."""
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _is_loopback(name: str) -> bool:
    """Say whether an address belongs to this machine."""
    try:
        address = ip_address(name)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    return address.is_loopback or address.is_unspecified
