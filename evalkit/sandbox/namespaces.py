"""A network and a file system of one's own, without being root (Linux).

:func:`isolate` moves the calling process, which must have one thread, into new
namespaces; :func:`find_leak` is the preflight that says whether the network is
really gone. It sends nothing: a UDP ``connect`` only asks the kernel for a route.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from contextlib import suppress
from typing import Final

from evalkit.sandbox import kernel

if sys.platform != "win32":
    import fcntl

_SIOCSIFFLAGS: Final = 0x8914
_UP_AND_RUNNING: Final = 0x1 | 0x40

# Documentation addresses (RFC 5737, RFC 3849): nobody has them, a default route covers them.
_OUTSIDE: Final = (
    (socket.AF_INET, "192.0.2.1", {errno.ENETUNREACH}),
    (
        socket.AF_INET6,
        "2001:db8::1",
        {errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT},
    ),
)


def isolate(*, network: bool, mounts: bool, processes: bool = False) -> None:
    """Move this process into new namespaces of its own, where the machine has no name.

    Works for any user where the kernel lets users make namespaces; for root also
    where it does not.

    Parameters
    ----------
    network
        A network with nothing but loopback.
    mounts
        A copy of the table of mounts.
    processes
        A table of processes for this one's children; the first of them is its number 1.

    Raises
    ------
    OSError
        When the kernel refuses.
    """
    flags = network * kernel.NEW_NETWORK | mounts * kernel.NEW_MOUNTS | kernel.NEW_HOST_NAME
    flags |= processes * kernel.NEW_PROCESSES
    uid, gid = os.getuid(), os.getgid()
    try:
        kernel.unshare(kernel.NEW_USER | flags)
    except OSError:
        if os.geteuid() != 0:
            raise
        kernel.unshare(flags)
    else:
        _map_ids(uid, gid)
    socket.sethostname("localhost")  # no machine's own, and it can be looked up everywhere
    if network:
        _raise_loopback()


def _map_ids(uid: int, gid: int) -> None:
    """Keep being who one is; without a map every file would belong to nobody."""
    # The kernel takes a group map from an ordinary user only after that "deny".
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{uid} {uid} 1"),
        ("gid_map", f"{gid} {gid} 1"),
    ):
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def _raise_loopback() -> None:
    """Bring 127.0.0.1 and ::1 up: a new network has them, but down."""
    request = struct.pack("16sH14s", b"lo", _UP_AND_RUNNING, b"")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, _SIOCSIFFLAGS, request)


def network_id() -> int:
    """Return a number that no other living network namespace has; 0 where there are none."""
    with suppress(OSError):
        return os.stat("/proc/self/ns/net").st_ino  # noqa: PTH116 - a hot path
    return 0


def find_leak(outer_network: int) -> str:
    """Return how the outside could be reached from here, or nothing.

    Parameters
    ----------
    outer_network
        The :func:`network_id` from before :func:`isolate`.

    Returns
    -------
    str
        The end of a sentence; empty when there is no way out.
    """
    if not outer_network or network_id() == outer_network:
        return "the process is still in the network that it started in"
    routes = _routed_devices() - {b"lo"}
    if routes:
        return f"there is a route over {b', '.join(sorted(routes)).decode()}"
    return next(filter(None, (_answer(*place) for place in _OUTSIDE)), "")


def _routed_devices() -> set[bytes]:
    """Return the devices that the routing tables name."""
    first_words = {line.split()[0] for line in _table("/proc/net/route").splitlines()[1:]}
    last_words = {line.split()[-1] for line in _table("/proc/net/ipv6_route").splitlines()}
    return first_words | last_words


def _table(path: str) -> bytes:
    """Return a table of the kernel's; empty when it has no such table."""
    try:
        fd = os.open(path, os.O_RDONLY)  # pathlib takes ten times as long in a fresh fork
    except FileNotFoundError:
        return b""
    try:
        chunks = []
        while chunk := os.read(fd, 1 << 16):
            chunks.append(chunk)
        return b"".join(chunks)
    finally:
        os.close(fd)


def _answer(family: int, address: str, expected: set[int]) -> str:
    """Say what is wrong with the kernel's answer to a UDP connect, which sends nothing."""
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as sock:
            sock.connect((address, 9))
    except OSError as error:
        return "" if error.errno in expected else f"a connection to {address} says {error}"
    return f"the kernel has a route to {address}"


def refused_so_far(process: str = "self") -> int:
    """Return how often a process's network had no route for what somebody tried to send.

    Each attempt counts once, whoever made it: TCP and UDP connects, datagrams and
    DNS queries, from Python, C or another program.

    Raises
    ------
    OSError, ValueError
        If the process is another one, and has ended.
    """
    tables = f"/proc/{process}/net/snmp"
    return _count_ipv4(_table(tables)) + _count_ipv6(_table(f"{tables}6"))


def _count_ipv4(table: bytes) -> int:
    """Read a table of a line with names and a line with values for each protocol."""
    names, values = (line.split() for line in table.split(b"\n", 2)[:2])
    return int(values[names.index(b"OutNoRoutes")])


def _count_ipv6(table: bytes) -> int:
    """Read a table of a name and a value a line; it is empty on a machine without IPv6."""
    _, _, rest = table.partition(b"Ip6OutNoRoutes")
    return int(rest.split(None, 1)[0]) if rest else 0
