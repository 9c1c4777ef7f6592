"""What a restart keeps of a trial's folders, and how."""

from __future__ import annotations

import os
import shutil
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from evalkit.sandbox import archives
from evalkit.sandbox.archives import TooLargeError, pack, unpack

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs Unix")

Told = tuple[int, int, int, int]


def _told(folder: Path) -> dict[str, Told]:
    """Give mode, size, number of links and time of all below a folder."""
    found: dict[str, Told] = {}
    for path in sorted(folder.rglob("*")):
        state = path.lstat()
        is_folder = stat.S_ISDIR(state.st_mode)
        sizes = (0, 0) if is_folder else (state.st_size, state.st_nlink)
        time = 0 if path.is_symlink() else int(state.st_mtime)
        found[str(path)] = (state.st_mode, *sizes, time)
    return found


def _link(path: Path) -> None:
    path.symlink_to("/etc/passwd")
    path.with_name("dangling").symlink_to("nowhere")


def _hard_link(path: Path) -> None:
    path.write_text("one file")
    path.with_name("another").hardlink_to(path)


def _sparse(path: Path) -> None:
    with path.open("wb") as file:
        file.seek(50 << 20)
        file.write(b"the end")


def _bytes_as_name(path: Path) -> None:
    Path(os.fsdecode(os.fsencode(path) + b"\xff\xfe")).write_text("x")


def _deep(path: Path) -> None:
    inner = path / ("l" * 200) / ("m" * 200)
    inner.mkdir(parents=True)
    (inner / "file").write_text("deep")


def _closed_folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").write_text("x")
    path.chmod(0o500)


def _old(path: Path) -> None:
    path.write_text("x")
    os.utime(path, (1, 1))


def _unreadable(path: Path) -> None:
    path.write_text("x")
    path.chmod(0)


MAKE: dict[str, Callable[[Path], object]] = {
    "file": lambda path: path.write_bytes(bytes(range(256)) * 1000),
    "empty file": Path.touch,
    "empty folder": Path.mkdir,
    "symbolic link": _link,
    "hard link": _hard_link,
    "pipe": os.mkfifo,
    "socket": lambda path: os.mknod(path, stat.S_IFSOCK | 0o600),
    "holes": _sparse,
    "name that is no text": _bytes_as_name,
    "long path": _deep,
    "unreadable file": _unreadable,
    "read-only folder": _closed_folder,
    "old file": _old,
}


@pytest.mark.parametrize("kind", MAKE)
def test_what_is_there_stays_as_it_is(tmp_path: Path, kind: str) -> None:
    """Whatever lies in the folders is there again, of the same kind and mode."""
    folder = tmp_path / "work"
    folder.mkdir()
    MAKE[kind](folder / "it")
    before = _told(folder)
    packed = pack([str(folder)])
    for path in folder.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(folder)
    unpack(packed)
    assert _told(folder) == before


def test_holes_stay_holes(tmp_path: Path) -> None:
    """A large file of nothing takes no room, packed or not."""
    _sparse(tmp_path / "it")
    packed = pack([str(tmp_path)])
    assert len(packed) < 1 << 20
    (tmp_path / "it").unlink()
    unpack(packed)
    assert (tmp_path / "it").stat().st_blocks * 512 < 1 << 20
    assert (tmp_path / "it").read_bytes().endswith(b"\0the end")


def test_what_is_skipped_or_missing_is_left_alone(tmp_path: Path) -> None:
    """Skipped paths are not packed, a missing folder is none, and one is packed once."""
    (tmp_path / "kept").write_text("a")
    (tmp_path / "skipped").write_text("b")
    folders = [str(tmp_path), str(tmp_path), str(tmp_path / "missing")]
    packed = pack(folders, skip={str(tmp_path / "skipped")})
    for name in ("kept", "skipped"):
        (tmp_path / name).write_text("later")
    unpack(packed)
    assert (tmp_path / "kept").read_text() == "a"
    assert (tmp_path / "skipped").read_text() == "later"


@pytest.mark.parametrize("limit", ["ARCHIVE_LIMIT", "CONTENT_LIMIT"])
def test_too_much_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    """What is larger than the bounds is not packed in part."""
    monkeypatch.setattr(archives, limit, 1000)
    (tmp_path / "it").write_bytes(os.urandom(2000))
    with pytest.raises(TooLargeError, match="more than 1,000 bytes"):
        pack([str(tmp_path)])
