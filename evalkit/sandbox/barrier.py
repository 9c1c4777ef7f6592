"""What stands between a trial and the network, and what to do where nothing can.

``namespace`` is the kernel's and covers everything that a trial starts.
``python`` is an audit hook (:mod:`evalkit.sandbox.connections`), and ``none`` is
nothing: both are for machines without namespaces, and are stamped into the run.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final, Literal

from evalkit.errors import SandboxError
from evalkit.sandbox import namespaces

Barrier = Literal["namespace", "python", "none"]
BARRIERS: Final[tuple[Barrier, ...]] = ("namespace", "python", "none")

# File, content that forbids, and how to allow it.
_SWITCHES: Final = (
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "on Ubuntu: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "sudo sysctl -w kernel.unprivileged_userns_clone=1",
    ),
    ("/proc/sys/user/max_user_namespaces", "0", "sudo sysctl -w user.max_user_namespaces=15000"),
    ("/proc/sys/user/max_net_namespaces", "0", "sudo sysctl -w user.max_net_namespaces=15000"),
)
_CONTAINER_MARKS: Final = ("/.dockerenv", "/run/.containerenv")
_IN_CONTAINER: Final = (
    "in a container: start it with `--security-opt seccomp=unconfined "
    "--security-opt apparmor=unconfined`, or with `--cap-add SYS_ADMIN`"
)
_ANYWHERE: Final = (
    "on Ubuntu 24.04 and its CI runners: sudo sysctl -w "
    "kernel.apparmor_restrict_unprivileged_userns=0; " + _IN_CONTAINER
)


def raise_barrier(*, mounts: bool) -> int:
    """Cut this process off from the network, and prove it.

    Parameters
    ----------
    mounts
        Whether to make a private table of mounts as well.

    Returns
    -------
    int
        :func:`~evalkit.sandbox.namespaces.refused_so_far`, for counting from here.

    Raises
    ------
    SandboxError
        When there is no barrier; it says how to allow it, and how to do without.
    """
    outer = namespaces.network_id()
    try:
        namespaces.isolate(network=True, mounts=mounts)
        leak = namespaces.find_leak(outer)
    except OSError as error:
        leak = f"{error.filename}: {error.strerror}" if error.filename else str(error)
    if leak:
        raise SandboxError(no_barrier(leak))
    _Seen.n_preflight = namespaces.refused_so_far()
    return _Seen.n_preflight


def refused_of(pid: int) -> int | None:
    """Count what a trial tried to reach, from outside of it; ``None`` if nobody can tell."""
    if _Seen.n_preflight is None:
        return None
    try:
        return namespaces.refused_so_far(str(pid)) - _Seen.n_preflight
    except (OSError, ValueError):
        return None


def no_barrier(problem: str) -> str:
    """Say that the network cannot be shut off, how to allow it, and how to do without."""
    return (
        f"the network cannot be shut off from trials: {problem}. Allow it ({advice()}), or do "
        "without it: `--network-barrier python` refuses only what Python itself connects to, "
        "`--network-barrier none` nothing; either is stamped into the manifest and the reports. "
        "`evalkit doctor` says what this machine can do."
    )


class _Seen:
    """What this process has found out while it was still outside."""

    advice: tuple[str, ...] | None = None
    n_preflight: int | None = None
    """How many refusals the preflight is to blame for; the same in every network."""


def look_at_switches() -> None:
    """Remember what forbids namespaces here; in one of its own a process sees other switches."""
    _Seen.advice = _switches_off()


def _switches_off() -> tuple[str, ...]:
    """Give the advice for each switch that forbids namespaces."""
    return tuple(advice for path, content, advice in _SWITCHES if _read(path) == content)


def advice() -> str:
    """Say how to allow namespaces on this machine, as far as it shows what forbids them."""
    found = list(_switches_off() if _Seen.advice is None else _Seen.advice)
    if any(Path(mark).exists() for mark in _CONTAINER_MARKS):
        found.append(_IN_CONTAINER)
    return "; ".join(found) or _ANYWHERE


def _read(path: str) -> str:
    """Return the content of a switch; empty when there is none."""
    with suppress(OSError):
        return Path(path).read_text().strip()
    return ""
