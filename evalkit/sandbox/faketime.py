"""The trial's time for another program, through libfaketime where that is installed.

It is preloaded into the agent's program and what that starts, never into this one,
and reads the time from a file that the trial's clock writes (:class:`ProgramTime`).
``monotonic`` runs on there, too. Linux only. evalkit neither brings nor needs it.

What a program really sees cannot be known from outside: one that asks the kernel by
itself sees the real time. :func:`find_obstacle` names the kinds that are known to.
Also not covered: file times, and timeouts that a program measures on the wall clock.
"""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from glob import glob
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

LIBRARIES: Final = (
    "/usr/lib/*/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
)
INSTALL: Final = (
    "install libfaketime (Debian, Ubuntu: apt install libfaketime; Fedora: dnf install "
    "libfaketime; or pip install libfaketime)"
)
_ANOTHER: Final = "if it only starts another program, name that one as the agent's command"

# Of all builds since 0.9.8 this one function cannot be used with a clock that stands: it
# takes the difference of a monotonic and a faked time, so Python's `sleep` fails.
# Programs get a copy that does not offer it, and thereby the C library's own.
_BROKEN: Final = b"\0clock_nanosleep\0"
_UNUSED: Final = b"\0clock_nanosleeq\0"

_ELF: Final = b"\x7fELF"
_GO: Final = b"\xff Go buildinf:"
_MAX_SCRIPTS: Final = 4
_PROBE_S: Final = 20.0
_PROBE: Final = """\
import sys, time
started = time.monotonic()
seen = [time.time()]
time.sleep(0.002)
seen.append(time.time())
print(seen == [1234567890.5] * 2 and time.monotonic() > started)
"""


class ProgramTime:
    """The file that the programs of one trial read the time from.

    Parameters
    ----------
    library
        Path of libfaketime.
    folder
        Gets the file, and a copy of the library.
    """

    def __init__(self, library: str, folder: str) -> None:
        self._copy = os.path.join(folder, "libfaketime.so")  # noqa: PTH118 - once a trial
        self._path = os.path.join(folder, "now")  # noqa: PTH118
        Path(self._copy).write_bytes(_mended(library))
        self._fd = os.open(self._path, os.O_CREAT | os.O_WRONLY, 0o600)

    def show(self, timestamp: float) -> None:
        """Let programs see a time, in seconds since 1970; always as many bytes, so in one go."""
        os.pwrite(self._fd, f"{timestamp:017.6f}\n".encode(), 0)

    @property
    def variables(self) -> dict[str, str]:
        """Variables for a program that shall see it."""
        return {
            "LD_PRELOAD": self._copy,
            "FAKETIME_TIMESTAMP_FILE": self._path,
            "FAKETIME_FMT": "%s",  # whatever the program's time zone is
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            "DONT_FAKE_MONOTONIC": "1",  # its name in some builds
            "FAKETIME_DISABLE_SHM": "1",
            "NO_FAKE_STAT": "1",
        }


@cache
def _mended(library: str) -> bytes:
    """Return the library without the function that fails."""
    return Path(library).read_bytes().replace(_BROKEN, _UNUSED, 1)


def find_faketime() -> str:
    """Return the path of libfaketime; empty where it is not installed."""
    return next(_installed(), "")


def _installed() -> Iterator[str]:
    if sys.platform != "linux":
        return
    for pattern in LIBRARIES:
        yield from sorted(glob(pattern))  # noqa: PTH207
    package = find_spec("libfaketime")  # its files are elsewhere with each version
    for folder in (package.submodule_search_locations or ()) if package else ():
        yield from map(str, sorted(Path(folder).rglob("libfaketime*.so.1"), reverse=True))


class Faking(NamedTuple):
    """Whether programs can be given a time on this machine."""

    library: str
    """Path of libfaketime; empty if they cannot."""
    problem: str = ""
    """Why not."""
    advice: str = ""
    """What to do about that."""


def plan_faking(program: str = "") -> Faking:
    """Find out whether a program can be given a time; by trying, once a process.

    Parameters
    ----------
    program
        Path of its file; empty for a program that is known to be fit.

    Examples
    --------
    >>> plan_faking("/no/such/program").library
    ''
    """
    library = find_faketime()
    if not library:
        return Faking("", "libfaketime is not installed", INSTALL)
    if problem := _try(library):
        return Faking("", f"{library} does not work here ({problem})", INSTALL)
    if obstacle := find_obstacle(program, library) if program else "":
        return Faking("", obstacle, _ANOTHER)
    return Faking(library)


@cache
def _try(library: str) -> str:
    """Have a Python program tell what it sees; return what is wrong."""
    with tempfile.TemporaryDirectory(prefix="evalkit-") as folder:
        try:
            time = ProgramTime(library, folder)
            time.show(1234567890.5)
            told = subprocess.run(
                [sys.executable, "-I", "-S", "-c", _PROBE],
                env=time.variables,
                capture_output=True,
                text=True,
                timeout=_PROBE_S,
                check=False,
            )
        except (OSError, subprocess.SubprocessError) as error:
            return str(error)
    if told.stdout == "True\n":
        return ""
    return (told.stderr or told.stdout or f"status {told.returncode}").strip().splitlines()[-1]


def find_obstacle(program: str, library: str) -> str:
    """Say why a program would see the real time, as far as its file shows; else nothing.

    Examples
    --------
    >>> find_obstacle("/bin/sh", "/bin/sh")
    ''
    """
    path = _interpreter(program)
    try:
        what = _kind(Path(path), Path(library))
    except OSError as error:
        return f"{path} cannot be read, so nobody knows which time it would see: {error.strerror}"
    return what and f"libfaketime cannot reach {path}, which {what}"


def _interpreter(program: str) -> str:
    """Follow the first line of a script to the program that runs it."""
    for _ in range(_MAX_SCRIPTS):
        try:
            with Path(program).open("rb") as file:
                line = file.readline(4096)
        except OSError:
            break
        words = os.fsdecode(line[2:]).split() if line.startswith(b"#!") else []
        if not words:
            break
        if Path(words[0]).name == "env":
            named = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
            words[0] = shutil.which(named[0]) or words[0] if named else words[0]
        program = words[0]
    return program


def _kind(program: Path, library: Path) -> str:
    """Say what keeps the loader from preloading a library; nothing if nothing does."""
    if program.stat().st_mode & 0o6000:
        return "runs as another user"
    with library.open("rb") as file:
        head = file.read(20)
    with program.open("rb") as file:
        if file.read(4) != _ELF:
            return ""
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _kind_of(data, head)


def _kind_of(data: mmap.mmap, head: bytes) -> str:
    """Say so of a program's content, given the beginning of the library."""
    if (data[4], data[18:20]) != (head[4], head[18:20]):
        return "is made for another processor than libfaketime"
    loader = _loader(data)
    if not loader:
        return "is linked statically"
    if b"musl" in loader:
        return "uses another C library (musl)"
    return "is written in Go and asks the kernel by itself" if data.find(_GO) >= 0 else ""


def _loader(data: mmap.mmap) -> bytes:
    """Return the loader that a program asks for; empty if it is linked statically."""
    wide, order = data[4] == 2, "little" if data[5] == 1 else "big"

    def number(at: int, size: int) -> int:
        return int.from_bytes(data[at : at + size], order)  # type: ignore[arg-type]

    word = 8 if wide else 4
    table = number(32 if wide else 28, word)
    size, n = number(54 if wide else 42, 2), number(56 if wide else 44, 2)
    for entry in range(table, table + size * n, size or 1):
        if number(entry, 4) == 3:  # PT_INTERP
            start = number(entry + (8 if wide else 4), word)
            return data[start : start + number(entry + (32 if wide else 16), word)]
    return b""
