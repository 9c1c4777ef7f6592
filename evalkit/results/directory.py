"""The run directory: written by one process, crash-safe, resumable.

::

    <run_id>/
      manifest.json                        what was run; replaced as a whole
      trials.jsonl                         one fdatasynced line a finished trial
      ledgers/<scenario>.<trial>.jsonl     what each trial did

A trial counts as finished once its line in ``trials.jsonl`` is whole; a torn
last line is cut off before the next is written.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote

from evalkit.errors import GraderError, LedgerError
from evalkit.ledger import LedgerFile, combined_digest, decode, encode
from evalkit.results.records import Manifest, TrialRecord, manifest_from, record_from

MANIFEST: Final = "manifest.json"
TRIALS: Final = "trials.jsonl"

_MAX_NAME: Final = 180
"""Bytes of an id in a file name; file systems take 255 for the whole of it."""


def ledger_name(scenario: str, trial: int) -> str:
    """Name the ledger file of a trial.

    Ids that are no safe file names on every system (long, with slashes, or equal
    but for upper case) are percent-encoded, clipped and told apart by a hash.

    Examples
    --------
    >>> ledger_name("weather-only", 2)
    'weather-only.2.jsonl'
    >>> ledger_name("a/B", 0)
    'a%2FB~f42815d1.0.jsonl'
    """
    content = scenario.encode("utf-8", "surrogatepass")
    safe = quote(content, safe=" ,;=+@#()[]")[:_MAX_NAME]
    if safe != scenario or safe != safe.lower() or "~" in safe or safe[:1] in {"", ".", " "}:
        safe = f"{safe.lstrip('. ')}~{hashlib.sha256(content).hexdigest()[:8]}"
    return f"{safe}.{trial}.jsonl"


def read_manifest(folder: Path) -> Manifest:
    """Read a run's manifest.

    Raises
    ------
    LedgerError
        If the folder is no run directory.
    """
    path = folder / MANIFEST
    try:
        data = decode(path.read_bytes())
    except FileNotFoundError:
        raise LedgerError(f"{folder}: not a run directory (no {MANIFEST})") from None
    except (OSError, ValueError) as error:
        raise LedgerError(f"{path}: cannot read the manifest: {error}") from error
    return manifest_from(data, where=str(path))


def read_records(folder: Path) -> dict[tuple[str, int], TrialRecord]:
    """Read the finished trials of a run by ``(scenario, trial)``; a torn last line is dropped.

    Raises
    ------
    LedgerError
        If a line other than a torn last one is broken, or one trial stands there twice.
    """
    path = folder / TRIALS
    records: dict[tuple[str, int], TrialRecord] = {}
    for number, line in enumerate(_whole_lines(path), start=1):
        try:
            record = record_from(decode(line))
        except (ValueError, TypeError, KeyError, GraderError) as error:
            raise LedgerError(f"{path}:{number}: broken line: {error}") from error
        key = (record.scenario, record.trial)
        if key in records:
            raise LedgerError(f"{path}:{number}: trial {key[1]} of {key[0]!r} stands here twice")
        records[key] = record
    return records


def _whole_lines(path: Path) -> list[bytes]:
    try:
        return path.read_bytes().split(b"\n")[:-1]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise LedgerError(f"{path}: cannot read: {error.strerror}") from error


def new_run_id(suite: str, *, now: datetime | None = None) -> str:
    """Make a run id that sorts by time and names the suite.

    Examples
    --------
    >>> new_run_id("travel", now=datetime(2026, 1, 5, 9, tzinfo=UTC))
    '20260105T090000.000000Z-travel-...'
    """
    stamp = (now or datetime.now(UTC)).strftime("%Y%m%dT%H%M%S.%fZ")
    word = "".join(c if c.isalnum() or c in "-_." else "-" for c in suite).strip("-.")[:40]
    return f"{stamp}-{word or 'run'}-{os.urandom(3).hex()}"


class RunWriter:
    """The only writer of one run directory.

    Use :meth:`create` or :meth:`resume`, then :meth:`add` for each finished
    trial, and :meth:`finish`.
    """

    def __init__(self, folder: Path, manifest: Manifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._digests: dict[tuple[str, int], str] = {}
        self._planned = frozenset(manifest.keys())
        self._ledgers = folder / manifest.ledgers
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(folder / TRIALS, flags, 0o600)

    @classmethod
    def create(cls, folder: Path, manifest: Manifest) -> RunWriter:
        """Make a new run directory.

        Raises
        ------
        LedgerError
            If there is one already, or it cannot be made.
        """
        with _explained(folder):
            folder.mkdir(parents=True, exist_ok=False)
            if manifest.ledgers == "ledgers":
                (folder / "ledgers").mkdir()
            _replace_file(folder / MANIFEST, _manifest_bytes(manifest))
            writer = cls(folder, manifest)
            writer._lock()
            return writer

    @classmethod
    def resume(cls, folder: Path) -> RunWriter:
        """Open an unfinished run directory to go on with what is missing.

        Raises
        ------
        LedgerError
            If it is none, is broken, or another process is writing it.
        """
        manifest = read_manifest(folder)
        with _explained(folder):
            writer = cls(folder, manifest)
            try:
                writer._lock()
                _cut_torn_line(folder / TRIALS)
                records = read_records(folder)
            except BaseException:
                os.close(writer._descriptor)
                raise
        writer._digests.update((key, record.digest) for key, record in records.items())
        return writer

    def _lock(self) -> None:
        """Make sure that nobody else writes this run; the end of the process unlocks it."""
        try:
            import fcntl

            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LedgerError(
                f"{self.folder}: another process is writing this run; wait for its end"
            ) from None
        except (ImportError, OSError):
            return  # Windows, or a file system without locks

    @property
    def done(self) -> frozenset[tuple[str, int]]:
        """``(scenario, trial)`` of every trial that is written."""
        return frozenset(self._digests)

    @property
    def missing(self) -> list[tuple[str, int]]:
        """``(scenario, trial)`` of every planned trial that is not written, in plan order."""
        return [key for key in self.manifest.keys() if key not in self._digests]  # noqa: SIM118 - not a mapping

    def ledger_path(self, scenario: str, trial: int) -> Path:
        """Say where the ledger of a trial lies."""
        return self._ledgers / ledger_name(scenario, trial)

    def add(self, record: TrialRecord, ledger: bytes | None = None) -> None:
        """Write a finished trial: its ledger first, if given, then its line.

        Raises
        ------
        LedgerError
            If the trial is not in the plan, is written already, or the disk
            does not take it. Trials written before are safe.
        """
        key = (record.scenario, record.trial)
        if key not in self._planned:
            raise LedgerError(f"{self.folder}: trial {key[1]} of {key[0]!r} is not in the plan")
        if key in self._digests:
            raise LedgerError(f"{self.folder}: trial {key[1]} of {key[0]!r} is written already")
        line = _line_of(record)
        with _explained(self.folder):
            if ledger is not None:
                self._write_ledger(self.ledger_path(*key), ledger)
            self._append(line)
        self._digests[key] = record.digest

    def _write_ledger(self, path: Path, content: bytes) -> None:
        file = LedgerFile(path)
        try:
            file.append(content)
        except BaseException:
            file.close(whole=False)
            raise
        file.close()

    def _append(self, line: bytes) -> None:
        """Append one line as a whole or not at all."""
        start = os.fstat(self._descriptor).st_size
        try:
            view = memoryview(line)
            while view:
                view = view[os.write(self._descriptor, view) :]
            _sync(self._descriptor)
        except BaseException as error:
            is_whole = os.fstat(self._descriptor).st_size == start + len(line)
            if isinstance(error, OSError) or not is_whole:  # Ctrl-C spares a whole line
                with contextlib.suppress(OSError):  # the first error says more
                    os.ftruncate(self._descriptor, start)
            raise

    def finish(self) -> Manifest:
        """Close the run; if every planned trial is there, seal it with its digest."""
        os.close(self._descriptor)
        if self.missing:
            return self.manifest
        digest = combined_digest(
            f"{scenario}.{trial} {self._digests[scenario, trial]}"
            for scenario, trial in self.manifest.keys()  # noqa: SIM118 - not a mapping
        )
        now = datetime.now(UTC).isoformat(timespec="seconds")
        finished = replace(self.manifest, digest=digest, finished_at=now)
        with _explained(self.folder):
            self.manifest = replace(finished, seal=seal_of(self.folder, finished))
            _replace_file(self.folder / MANIFEST, _manifest_bytes(self.manifest))
        return self.manifest


def seal_of(folder: Path, manifest: Manifest) -> str:
    """Hash what a finished run says: its manifest, and the lines of its trials in any order.

    It tells a run that was changed by a slip from one that was not. Whoever changes
    both the run and its seal is not found out.
    """
    sha = hashlib.sha256(encode(replace(manifest, seal=None)))
    for line in sorted(_whole_lines(folder / TRIALS)):
        sha.update(b"\n" + line)
    return sha.hexdigest()


def _line_of(record: TrialRecord) -> bytes:
    """Encode a record; evidence that JSON cannot hold must not cost the whole run its result."""
    try:
        return encode(record.to_json()) + b"\n"
    except (LedgerError, RecursionError) as error:
        told = {"not_written": str(error)}
        grades = tuple(replace(grade, evidence=told) for grade in record.grades)
        return encode(replace(record, grades=grades).to_json()) + b"\n"


def _manifest_bytes(manifest: Manifest) -> bytes:
    return encode(manifest) + b"\n"


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest of a run directory as a whole."""
    with _explained(folder):
        _replace_file(folder / MANIFEST, _manifest_bytes(manifest))


def _replace_file(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old one or the new one, never half of it."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _sync(descriptor: int) -> None:
    """Wait until the disk has the data; macOS knows only fsync."""
    getattr(os, "fdatasync", os.fsync)(descriptor)


def _cut_torn_line(path: Path) -> None:
    """Cut off what a dying process left of a line."""
    with contextlib.suppress(FileNotFoundError):
        content = path.read_bytes()
        os.truncate(path, content.rfind(b"\n") + 1)


@contextlib.contextmanager
def _explained(folder: Path) -> Iterator[None]:
    """Turn the system's error into one that says what to do."""
    try:
        yield
    except FileExistsError as error:
        raise LedgerError(f"{folder}: there is a run already; choose another --out") from error
    except OSError as error:
        full = error.errno in {errno.ENOSPC, errno.EDQUOT}
        advice = (
            "free some space, then go on with: evalkit run --resume"
            if full
            else "check the folder's permissions"
        )
        raise LedgerError(
            f"{folder}: cannot write the run ({error.strerror}); finished trials are safe; {advice}"
        ) from error
