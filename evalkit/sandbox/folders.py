"""The files of a trial: fresh folders at one constant path, and nothing of the user's.

Where the trial has its own mounts, ``/tmp`` is a private file system in memory that
dies with it: :data:`ROOM` lies there, in every trial the same. The user's home,
``/run`` (its sockets lead out of any network) and other shared places are hidden,
but for what the interpreter and the agent need (:func:`plan_view`). Where it has
not, the folders are made at a spare path that the caller removes.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from evalkit.sandbox import kernel

ROOM: Final = "/tmp/evalkit"
DISK_LIMIT: Final = 256 << 20
"""Bytes that a trial may write, by default."""

_TMP: Final = "/tmp"
_SHARED: Final = (_TMP, "/var/tmp", "/dev/shm", "/run", "/var/run")
_OPEN_TO_ALL: Final = frozenset({_TMP, "/var/tmp", "/dev/shm"})
# Programs that are links to programs of their own; no secrets lie there.
_VERSION_MANAGERS: Final = frozenset({".asdf", ".mise", ".nvm", ".pyenv", ".rbenv", ".volta"})
# Variables that trials get, with folders that other programs than this one load from.
_PATHS: Final = ("NODE_PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "VIRTUAL_ENV", "CONDA_PREFIX")
RESOLVER: Final = "192.0.2.53"
"""A name server that no machine has: asking fails at once, in every program the same, and
the kernel counts it; unless :mod:`evalkit.sandbox.capture` answers there."""
# One attempt, and patience for a machine that is busy.
_RESOLVER: Final = f"nameserver {RESOLVER}\noptions attempts:1 timeout:30\n".encode()


class Places(NamedTuple):
    """The folders of one trial."""

    root: str
    home: str
    tmp: str
    work: str

    @classmethod
    def under(cls, root: str) -> Places:
        """Name the folders below one path.

        Examples
        --------
        >>> Places.under("/tmp/evalkit").work
        '/tmp/evalkit/work'
        """
        return cls(root, f"{root}/home", f"{root}/tmp", f"{root}/work")

    @property
    def certificate(self) -> str:
        """File with the one certificate that the trial trusts."""
        return f"{self.root}/certificate.pem"


class View(NamedTuple):
    """What a trial sees of the machine's files, apart from what is open to all."""

    hidden: tuple[str, ...]
    """Folders that are empty in the trial."""
    kept: tuple[str, ...]
    """What is there nevertheless, although it lies in one of those."""


def plan_view(keep: Iterable[str | os.PathLike[str]] = ()) -> View:
    """Say what trials see: everything but homes and shared places, and what they need of these.

    Where the agent has been imported, the folders of its modules are kept, too, with
    ``sys.path``, the interpreter and the programs on ``PATH``.

    Parameters
    ----------
    keep
        More files and folders to keep, such as the suite's.

    Notes
    -----
    A kept path that *contains* a hidden place is replaced by the entries of that
    place; those of a home that begin with a dot (``.ssh``, ``.aws``, ``.env``) stay
    hidden even then.
    """
    homes = _homes()
    places = dict.fromkeys([*homes, *filter(_is_folder, _SHARED)])
    hidden = tuple(p for p in places if not any(p.startswith(f"{other}/") for other in places))
    asked: list[str] = [os.fspath(path) for path in keep]
    wanted = dict.fromkeys(os.path.abspath(path) for path in [*asked, *_needed()])  # noqa: PTH100
    wanted.update(dict.fromkeys(map(os.path.realpath, list(wanted))))
    kept = {
        part
        for path in wanted
        for part in _parts(path, hidden=hidden, homes=homes)
        if os.path.exists(part)  # noqa: PTH110 - thousands of them
    }
    return View(hidden, _outermost(kept))


def _homes() -> tuple[str, ...]:
    """Return the user's home folders, by the user database and by the environment."""
    import pwd  # not on Windows

    names = [os.environ.get("HOME", "")]
    with suppress(KeyError):
        names.append(pwd.getpwuid(os.getuid()).pw_dir)
    paths = dict.fromkeys(os.path.realpath(name) for name in names if name.startswith("/"))
    outside = (path for path in paths if path != "/" and not path.startswith(f"{ROOM}/"))
    return tuple(filter(_is_folder, outside))


def _is_folder(path: str) -> bool:
    """Say whether a path is a folder, and no link to one."""
    with suppress(OSError):
        return stat.S_ISDIR(os.lstat(path).st_mode)
    return False


def _needed() -> Iterator[str]:
    """Yield what interpreter, modules and programs are made of."""
    yield from (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.executable)
    yield from filter(os.path.isabs, sys.path)
    for entry in os.environ.get("PATH", "").split(os.pathsep):
        if Path(entry).is_absolute():
            yield _prefix(entry)
    for name in _PATHS:
        yield from filter(os.path.isabs, os.environ.get(name, "").split(os.pathsep))
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and Path(file).is_absolute():
            yield str(Path(file).parent)
        if module.__name__.startswith("__editable__"):  # where setuptools notes such installs
            yield from map(str, getattr(module, "MAPPING", {}).values())


def _prefix(entry: str) -> str:
    """Return what belongs to a folder of programs: ``x/node/bin`` needs ``x/node/lib``.

    Not right below a home: ``.local`` and ``.cargo`` hold keys beside ``bin``.
    """
    path = Path(entry)
    folder = path.parent
    in_home = str(folder.parent) in _homes() or str(folder) in _homes()
    is_whole = folder.name in _VERSION_MANAGERS or (path.name == "bin" and not in_home)
    return str(folder if is_whole and len(path.parts) > 3 else path)


def _parts(path: str, *, hidden: Iterable[str], homes: Iterable[str]) -> list[str]:
    """Return the parts of a path that hiding would take away; of a home's, none with a dot."""
    if path == "/":
        return []
    for place in (*homes, *hidden):
        if f"{place}/".startswith(f"{path}/"):
            return _entries(place, without_dots=place in homes)
    return [path] if any(path.startswith(f"{place}/") for place in hidden) else []


def _entries(place: str, *, without_dots: bool) -> list[str]:
    """Return the files and folders of a place; its sockets lead elsewhere, and stay hidden."""
    with suppress(OSError), os.scandir(place) as entries:
        return [
            entry.path
            for entry in entries
            if (entry.is_dir() or entry.is_file())
            and not (without_dots and entry.name.startswith("."))
        ]
    return []


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Leave out what lies below another path."""
    found: list[str] = []
    for path in sorted(paths):
        if not (found and path.startswith(f"{found[-1]}/")):
            found.append(path)
    return tuple(found)


def mount_room(view: View, *, limit: int, resolver: bool) -> tuple[Places, tuple[str, ...]]:
    """Hide what is not a trial's business, and make its folders at :data:`ROOM`.

    The process must have mounts of its own. Nothing is left when it ends.

    Parameters
    ----------
    view
        What to hide, and what to keep of it.
    limit
        Bytes that the trial's folders, and each hidden place, may hold.
    resolver
        Whether to replace the machine's name servers by one that cannot be reached.

    Returns
    -------
    places
        The trial's folders.
    notes
        A sentence about each place that could not be hidden or kept.

    Raises
    ------
    OSError
        When nothing can be mounted at all; then nothing has changed.
    """
    # First, and fatal: else what root mounts could appear outside as well.
    kernel.mount("none", "/", flags=kernel.RECURSIVE | kernel.PRIVATE)
    kept = list(_open_kept(view.kept))
    _cover(_TMP, limit)
    notes = [
        _try(f"{place} is not hidden", _cover, place, limit)
        for place in view.hidden
        if place != _TMP
    ]
    for path, fd in kept:
        notes.append(_try(f"{path} is hidden", _bring_back, path, fd))
        os.close(fd)
    places = _furnish(ROOM)
    if resolver:
        notes.append(_try("the machine's name servers are visible", _replace_resolver, view))
    return places, tuple(filter(None, notes))


def _try(otherwise: str, do: Callable[..., None], *args: object) -> str:
    """Do something; say what is otherwise when it fails."""
    try:
        do(*args)
    except OSError as error:
        return f"{otherwise}: {error}"
    return ""


def _open_kept(paths: Iterable[str]) -> Iterator[tuple[str, int]]:
    """Hold what is kept, before it is covered; what has gone is not needed any more."""
    for path in paths:
        with suppress(FileNotFoundError, PermissionError):
            yield path, os.open(path, os.O_PATH)


def _cover(place: str, limit: int) -> None:
    """Put an empty file system in memory over a folder."""
    mode = 0o1777 if place in _OPEN_TO_ALL else 0o755
    flags = kernel.NO_SUID | kernel.NO_DEVICES
    kernel.mount("evalkit", place, "tmpfs", flags=flags, options=f"size={limit},mode={mode:o}")


def _bring_back(path: str, fd: int) -> None:
    """Show a held file or folder again, at the path that it had."""
    if stat.S_ISDIR(os.fstat(fd).st_mode):
        os.makedirs(path, exist_ok=True)  # noqa: PTH103 - a hot path
    else:
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600))
    kernel.mount(f"/proc/self/fd/{fd}", path, flags=kernel.BIND | kernel.RECURSIVE)


def _replace_resolver(view: View) -> None:
    """Name a server that cannot be reached, wherever the machine's list of them is."""
    path = os.path.realpath("/etc/resolv.conf")
    if any(path.startswith(f"{place}/") for place in view.hidden):
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        _write(path, _RESOLVER)
    elif os.path.exists(path) and not _is_resolver_ours(path):  # noqa: PTH110
        ours = f"{ROOM}/resolv.conf"
        _write(ours, _RESOLVER)
        kernel.mount(ours, path, flags=kernel.BIND)
        os.unlink(ours)  # noqa: PTH108 - the mount holds it


def _is_resolver_ours(path: str) -> bool:
    """Say whether the server has replaced it, for its trials as well."""
    fd = os.open(path, os.O_RDONLY)
    try:
        return os.read(fd, len(_RESOLVER) + 1) == _RESOLVER
    finally:
        os.close(fd)


def make_folder(root: str) -> Places:
    """Make a trial's folders on the machine's own disk; the caller removes them."""
    os.makedirs(root, mode=0o700, exist_ok=True)  # noqa: PTH103
    return _furnish(root)


def _furnish(root: str) -> Places:
    """Make the folders."""
    places = Places.under(root)
    for folder in places:
        with suppress(FileExistsError):
            os.mkdir(folder, 0o700)  # noqa: PTH102 - a hot path
    return places


def hold_files(files: Mapping[str, bytes | str]) -> list[tuple[str, bytes | int]]:
    """Open the sources of a trial's files, before the places where they lie are covered.

    Parameters
    ----------
    files
        Path inside the working directory -> content, or the path of a file to copy.
    """
    return [
        (name, source if isinstance(source, bytes) else os.open(source, os.O_RDONLY))
        for name, source in files.items()
    ]


def put_files(held: Iterable[tuple[str, bytes | int]], folder: str) -> None:
    """Write held files below a folder."""
    for name, source in held:
        path = os.path.join(folder, name)  # noqa: PTH118
        os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120
        if isinstance(source, bytes):
            _write(path, source)
        else:
            with os.fdopen(source, "rb") as reader, Path(path).open("wb") as writer:
                shutil.copyfileobj(reader, writer)


def _write(path: str, content: bytes) -> None:
    """Write a small file."""
    fd = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
    try:
        os.write(fd, content)
    finally:
        os.close(fd)


def write_certificate(places: Places, certificate: bytes) -> None:
    """Put the certificate where the environment says that it is."""
    _write(places.certificate, certificate)


def remove_folder(root: str) -> None:
    """Remove what :func:`make_folder` made, also what an agent made unreadable in it."""
    shutil.rmtree(root, ignore_errors=True)
    for folder, names, _ in os.walk(root):
        for name in names:
            with suppress(OSError):
                os.chmod(os.path.join(folder, name), 0o700)  # noqa: PTH101, PTH118
    shutil.rmtree(root, ignore_errors=True)
