"""Writing what others read: whole or not at all, and never yesterday's."""

from __future__ import annotations

import os
from pathlib import Path

from evalkit.errors import UsageError


def clear_target(path: Path) -> None:
    """Make sure that a file can be written later, and that no older one is taken for it.

    Raises
    ------
    UsageError
        If the path cannot be a file of ours.
    """
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file, such as {path / 'junit.xml'}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_file():
            path.unlink()
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror}") from error
    if not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path}: cannot be written: its folder takes no files")


def write_file(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the whole of it or none; a device gets it as it is.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    if path.exists() and not path.is_file():
        path.write_bytes(content)
        return
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def append_summary(path: Path, text: str) -> None:
    """Append to a step's summary, where other commands of the step may have written too.

    Raises
    ------
    OSError
        If it cannot be written.
    """
    content = f"{text}\n".encode("utf-8", "backslashreplace")
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        while content:
            content = content[os.write(descriptor, content) :]
    finally:
        os.close(descriptor)
