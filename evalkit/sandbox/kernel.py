"""The few calls of the Linux kernel that Python has no function for.

Thin: each raises ``OSError`` with the kernel's own reason. What they are for
stands in :mod:`evalkit.sandbox.namespaces` and :mod:`evalkit.sandbox.folders`.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from typing import Final

NEW_MOUNTS: Final = 0x0002_0000  # CLONE_NEWNS, linux/sched.h
NEW_HOST_NAME: Final = 0x0400_0000
NEW_USER: Final = 0x1000_0000
NEW_PROCESSES: Final = 0x2000_0000
NEW_NETWORK: Final = 0x4000_0000

BIND: Final = 0x1000  # MS_BIND, linux/mount.h
RECURSIVE: Final = 0x4000
PRIVATE: Final = 0x4_0000
NO_SUID: Final = 0x2
NO_DEVICES: Final = 0x4
NO_PROGRAMS: Final = 0x8

_COLLAPSE: Final = 25  # MADV_COLLAPSE, Linux 6.1
_PR_SET_NO_NEW_PRIVS: Final = 38
_CAPABILITY_VERSION_3: Final = 0x2008_0522
_LANDLOCK_CREATE_RULESET: Final = 444  # the same on every architecture
_LANDLOCK_RESTRICT_SELF: Final = 446
_LANDLOCK_VERSION: Final = 1
_LANDLOCK_SCOPES: Final = 0b11  # signals and abstract Unix sockets
_LANDLOCK_ABI_WITH_SCOPES: Final = 6  # Linux 6.12

_LIBC: Final = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None
if _LIBC is not None:  # looked up here, once, and not by every trial
    _LIBC.prctl, _LIBC.capset  # noqa: B018


def unshare(flags: int) -> None:
    """Leave namespaces for new ones; the process must have one thread."""
    if hasattr(os, "unshare"):
        os.unshare(flags)
    else:
        _check(_libc().unshare(flags), "unshare")


def mount(source: str, target: str, kind: str = "", *, flags: int = 0, options: str = "") -> None:
    """Mount a file system, or bind a path to another place."""
    strings = [text.encode() if text else None for text in (source, target, kind, options)]
    *places, data = strings
    _check(_libc().mount(*places, ctypes.c_ulong(flags), data), target)


def collapse(address: int, size: int) -> None:
    """Put a stretch of this process's memory into large pages, now."""
    status = _libc().madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), _COLLAPSE)
    _check(status, "madvise")


def renounce_privileges() -> None:
    """Give up every capability for good, also in programs that are started later.

    Whoever keeps them can take mounts away, and see what they hide.
    """
    _check(_libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no_new_privs")
    header = struct.pack("Ii", _CAPABILITY_VERSION_3, 0)
    _check(_libc().capset(header, bytes(24)), "capset")


def can_scope_signals() -> bool:
    """Say whether the kernel can confine signals to a trial (Landlock, Linux 6.12)."""
    if sys.platform != "linux":
        return False
    abi = _libc().syscall(_LANDLOCK_CREATE_RULESET, None, ctypes.c_size_t(0), _LANDLOCK_VERSION)
    return bool(abi >= _LANDLOCK_ABI_WITH_SCOPES)


def scope_signals() -> None:
    """Let this process and its descendants signal nobody but each other."""
    attributes = struct.pack("QQQ", 0, 0, _LANDLOCK_SCOPES)
    size = ctypes.c_size_t(len(attributes))
    ruleset = _libc().syscall(_LANDLOCK_CREATE_RULESET, attributes, size, 0)
    _check(min(ruleset, 0), "landlock_create_ruleset")
    try:
        _check(_libc().syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0), "landlock_restrict_self")
    finally:
        os.close(ruleset)


def _libc() -> ctypes.CDLL:
    """Return the C library."""
    if _LIBC is None:
        raise OSError(f"{sys.platform} has no Linux namespaces")
    return _LIBC


def _check(status: int, what: str) -> None:
    """Raise what the kernel said."""
    if status != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
