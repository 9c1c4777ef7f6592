"""Putting ledgers into files; where the disk does not take one, the error says what is safe."""

from __future__ import annotations

from pathlib import Path

from evalkit.errors import LedgerError
from evalkit.ledger import LedgerFile


def open_ledger(path: Path) -> LedgerFile:
    """Begin a trial's ledger."""
    try:
        return LedgerFile(path)
    except OSError as error:
        raise not_written(path, error) from error


def write_ledger(path: Path, content: bytes) -> None:
    """Write a whole ledger at once."""
    ledger = open_ledger(path)
    try:
        ledger.append(content)
    except OSError as error:
        ledger.close(whole=False)
        raise not_written(path, error) from error
    ledger.close()


def not_written(path: Path, error: OSError) -> LedgerError:
    """Say that a ledger could not be written, and how to go on."""
    return LedgerError(
        f"{path}: cannot write the ledger ({error.strerror}); finished trials are safe; "
        "when there is room again, go on with: evalkit run --resume"
    )
