"""Folders of a trial as bytes, for the process that goes on with it.

What a restart keeps is kept as it is: links as links (never followed), modes, times,
holes in files, and files that nobody may read. What lies in another file system (what
the trial was only shown) is passed over.
"""

from __future__ import annotations

import io
import os
import pathlib
import stat
import tarfile
import zlib
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing, suppress
from typing import IO, Any, Final

ARCHIVE_LIMIT: Final = 64 << 20
"""Bytes of an archive, compressed."""
CONTENT_LIMIT: Final = 1 << 30
"""Bytes of all files in it, holes included."""

_LEVEL: Final = 1
_CHUNK: Final = 1 << 16
_SOCKET: Final = "EVALKIT.socket"
"""Header of what a tar file has no word for."""


class TooLargeError(Exception):
    """Files are larger than an archive holds."""


def pack(folders: Iterable[str], *, skip: Collection[str] = ()) -> bytes:
    """Pack folders, with all that lies in them.

    Only for folders that nobody needs any more: what cannot be read is made readable.

    Parameters
    ----------
    folders
        Whole paths; one that is missing is passed over.
    skip
        Whole paths of files and folders to leave out.

    Raises
    ------
    TooLargeError
        If they hold more than :data:`ARCHIVE_LIMIT` or :data:`CONTENT_LIMIT`.
    OSError
        If they cannot be read.
    """
    sink = _Compressor()
    with tarfile.open(fileobj=sink, mode="w|", format=tarfile.PAX_FORMAT) as archive:
        packer = _Packer(archive, skip)
        for folder in folders:
            packer.add_tree(folder)
    return sink.finish()


class _Compressor(io.RawIOBase):
    """Takes a stream of bytes and keeps them compressed."""

    def __init__(self) -> None:
        self._compress = zlib.compressobj(_LEVEL)
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, data: Any) -> int:
        """Take in bytes."""
        self._keep(self._compress.compress(data))
        return len(data)

    def finish(self) -> bytes:
        """Give all of it."""
        self._keep(self._compress.flush())
        return b"".join(self._pieces)

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > ARCHIVE_LIMIT:
            raise TooLargeError(f"more than {ARCHIVE_LIMIT:,} bytes, compressed")
        self._pieces.append(piece)


class _Packer:
    """Puts files into an archive, each once."""

    def __init__(self, archive: tarfile.TarFile, skip: Collection[str]) -> None:
        self._archive = archive
        self._skip = skip
        self._known: dict[tuple[int, int], str] = {}
        self._n_bytes = 0

    def add_tree(self, folder: str) -> None:
        """Add a folder and what lies below it, in the order of names."""
        with suppress(FileNotFoundError):
            self._add(folder, os.lstat(folder).st_dev)

    def _add(self, path: str, device: int) -> None:
        found = os.lstat(path)
        if path in self._skip or found.st_dev != device:
            return
        info = _described(path, found)
        if (found.st_dev, found.st_ino) in self._known:  # a folder below another one, or a link
            self._link(info, self._known[found.st_dev, found.st_ino])
        elif info.isreg():
            self._add_file(info, path, found)
        else:
            self._archive.addfile(info)
        self._known.setdefault((found.st_dev, found.st_ino), info.name)
        if info.isdir():
            for name in _names(path):
                self._add(os.path.join(path, name), device)  # noqa: PTH118 - maybe thousands

    def _link(self, info: tarfile.TarInfo, first: str) -> None:
        if info.isdir() or info.name == first:
            return
        info.type, info.linkname, info.size = tarfile.LNKTYPE, first, 0
        self._archive.addfile(info)

    def _add_file(self, info: tarfile.TarInfo, path: str, found: os.stat_result) -> None:
        self._n_bytes += found.st_size
        if self._n_bytes > CONTENT_LIMIT:
            raise TooLargeError(f"more than {CONTENT_LIMIT:,} bytes")
        info.size = found.st_size
        with os.fdopen(_readable(path, os.O_RDONLY), "rb") as file:
            self._archive.addfile(info, file)


def _described(path: str, found: os.stat_result) -> tarfile.TarInfo:
    """Describe what lies at a path."""
    info = tarfile.TarInfo(path.lstrip("/"))
    info.mode = stat.S_IMODE(found.st_mode)
    info.mtime = found.st_mtime_ns / 1e9
    kind = stat.S_IFMT(found.st_mode)
    info.type = _TYPES.get(kind, tarfile.FIFOTYPE)
    if kind == stat.S_IFLNK:
        info.linkname = os.readlink(path)  # noqa: PTH115
    if kind == stat.S_IFSOCK:
        info.pax_headers = {_SOCKET: "1"}
    return info


_TYPES: Final = {
    stat.S_IFREG: tarfile.REGTYPE,
    stat.S_IFDIR: tarfile.DIRTYPE,
    stat.S_IFLNK: tarfile.SYMTYPE,
}


def _names(folder: str) -> list[str]:
    fd = _readable(folder, os.O_RDONLY | os.O_DIRECTORY)
    os.close(fd)
    return sorted(os.listdir(folder))  # noqa: PTH208


def _readable(path: str, flags: int) -> int:
    """Open what may be closed to its owner."""
    try:
        fd = os.open(path, flags | os.O_NOFOLLOW)
        if not flags & os.O_DIRECTORY or os.access(path, os.X_OK):
            return fd
        os.close(fd)
    except PermissionError:
        pass
    os.chmod(path, 0o700)  # noqa: PTH101
    return os.open(path, flags | os.O_NOFOLLOW)


def unpack(content: bytes) -> None:
    """Put packed folders back where they were.

    Raises
    ------
    OSError
        If there is no room for them.
    """
    folders: list[tarfile.TarInfo] = []
    # As a stream, so that what is packed need not be held unpacked as well.
    with closing(_Decompressor(content)) as source:
        stream: Any = source
        with tarfile.open(fileobj=stream, mode="r|", format=tarfile.PAX_FORMAT) as archive:
            for info in archive:
                _put(info, archive)
                if info.isdir():
                    folders.append(info)
    for info in reversed(folders):  # last, for a folder may be closed to its owner
        _settle(info)


class _Decompressor(io.RawIOBase):
    """Gives the bytes that a :class:`_Compressor` took."""

    def __init__(self, content: bytes) -> None:
        self._decompress = zlib.decompressobj()
        self._source = io.BytesIO(content)

    def read(self, size: int = -1) -> bytes:
        """Give some of them; empty at their end."""
        data = b""
        while not data and not self._decompress.eof:
            piece = self._decompress.unconsumed_tail or self._source.read(_CHUNK)
            if not piece:
                break
            data = self._decompress.decompress(piece, max(size, 1))
        return data


def _put(info: tarfile.TarInfo, archive: tarfile.TarFile) -> None:
    """Put one file, link or folder where it was."""
    path = f"/{info.name}"
    if info.isdir():
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)  # noqa: PTH102
        return
    _make_way(path)
    if info.issym():
        pathlib.Path(path).symlink_to(info.linkname)
    elif info.islnk():
        os.link(f"/{info.linkname}", path, follow_symlinks=False)
    elif info.isreg():
        source = archive.extractfile(info)
        assert source is not None
        _write(path, source, info.size)
        _settle(info)
    else:
        kind = stat.S_IFSOCK if _SOCKET in info.pax_headers else stat.S_IFIFO
        os.mknod(path, kind | 0o600)
        _settle(info)


def _make_way(path: str) -> None:
    """Remove what a fresh room has at a path."""
    with suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108


def _write(path: str, source: IO[bytes], size: int) -> None:
    """Write a file; what is nothing but zeros stays a hole."""
    with open(path, "xb") as file:  # noqa: PTH123
        for chunk in _chunks(source):
            if chunk.count(0) == len(chunk):
                file.seek(len(chunk), os.SEEK_CUR)
            else:
                file.write(chunk)
        file.truncate(size)


def _chunks(source: IO[bytes]) -> Iterator[bytes]:
    while chunk := source.read(_CHUNK):
        yield chunk


def _settle(info: tarfile.TarInfo) -> None:
    """Give mode and time; those of the machine's own folders stay."""
    path = f"/{info.name}"
    with suppress(PermissionError):
        moment = int(info.mtime * 1e9)
        os.utime(path, ns=(moment, moment))
        os.chmod(path, info.mode)  # noqa: PTH101
