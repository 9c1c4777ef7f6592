"""An agent's own program: which one is meant, and the process that it becomes.

What is said to it is :mod:`evalkit.agents.command`'s and
:mod:`evalkit.agents.http`'s. Its environment and its working directory are those
of this process, which are the trial's; what escapes its process group is ended
by whoever ends the trial's process.
"""

from __future__ import annotations

import errno
import hashlib
import os
import selectors
import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from evalkit.errors import AgentError

_STDERR: Final = 2
_TAIL_BYTES: Final = 2_000
_LAST_BYTES: Final = 1_000_000
_PRUNED: Final = frozenset({"node_modules", "__pycache__", "venv"})


@dataclass(frozen=True, slots=True)
class Program:
    """A command as a suite writes it, and the suite's folder.

    A word of the command that names a file in that folder means this file,
    wherever the program runs. The first word is looked for on the ``PATH``
    unless it has a ``/``.
    """

    command: tuple[str, ...]
    folder: str

    def __str__(self) -> str:
        return shlex.join(self.command)

    def words(self) -> list[str]:
        """Give the command with whole paths.

        Raises
        ------
        AgentError
            If there is no such program.

        Examples
        --------
        >>> Program(("/bin/sh", "-c", "echo"), "/").words()
        ['/bin/sh', '-c', 'echo']
        """
        if not self.command:
            raise AgentError("agent: its command is empty")
        return [self._executable(), *map(self._argument, self.command[1:])]

    def _executable(self) -> str:
        word = self.command[0]
        path = Path(self.folder, word)
        found = shutil.which(word if os.sep not in word else str(path))
        if found is not None:
            return found
        raise AgentError(f"agent {self}: {_why_not(word, path)}")

    def _argument(self, word: str) -> str:
        return str(Path(self.folder, word)) if self._names_file(word) else word

    def _names_file(self, word: str) -> bool:
        try:
            return not word.startswith("-") and Path(self.folder, word).is_file()
        except OSError:  # a script as a word is too long for a name
            return False

    def code_hash(self) -> str:
        """Hash the command and the code that it names.

        That is each file of the suite's folder that it names, and all files of
        the same kind (``.py``, ``.mjs`` ...) beside and below it; not what a
        package manager installed.
        """
        sha = hashlib.sha256()
        for part in self._code_parts():
            sha.update(len(part).to_bytes(8, "big") + part)
        return sha.hexdigest()

    def _code_parts(self) -> Iterator[bytes]:
        for word in self.command:
            yield word.encode("utf-8", "surrogatepass")
            if self._names_file(word):
                path = Path(self.folder, word)
                for file in _same_kind(path):
                    yield os.fsencode(file.relative_to(path.parent))
                    yield file.read_bytes()


def _why_not(word: str, path: Path) -> str:
    """Say why a word names no program."""
    if path.is_file() and os.sep not in word:
        return f"no program {word!r} on the PATH; for the file in the suite's folder write ./{word}"
    if path.is_file():
        return f"{path} may not be executed; name what runs it ([python3, {word}]), or chmod +x"
    if os.sep in word:
        return f"there is no {path}; a path is looked for from the suite's folder"
    return f"no program {word!r} on the PATH"


def _same_kind(path: Path) -> list[Path]:
    """Find the files that a program of one file may be made of."""
    if not path.suffix:
        return [path]
    found: list[Path] = []
    for folder, below, names in os.walk(path.parent):
        below[:] = [name for name in below if name not in _PRUNED and not name.startswith(".")]
        files = (Path(folder, name) for name in names if name.endswith(path.suffix))
        found += [file for file in files if file.is_file()]
    return sorted(found)


class RunningProgram:
    """An agent's program as a process; ended by :meth:`stop`, with its process group.

    What it logs goes to this process's standard error at once, which is where a
    trial's log is kept; its last lines are held for messages.

    Parameters
    ----------
    program
        What to start.
    speaks
        Whether its standard input and output are pipes to talk through; else
        what it prints is its log.
    env
        Variables to add to the environment.

    Raises
    ------
    AgentError
        If it cannot be started.
    """

    def __init__(
        self, program: Program, *, speaks: bool, env: Mapping[str, str] | None = None
    ) -> None:
        words = program.words()
        self._is_swept = False
        self._log = _LogPump()
        try:
            self._process = subprocess.Popen(
                words,
                bufsize=0,
                stdin=subprocess.PIPE if speaks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if speaks else self._log.sink,
                stderr=self._log.sink,
                # Python would keep lines back that are not flushed.
                env={"PYTHONUNBUFFERED": "1", **os.environ, **(env or {})},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            self._log.close()
            raise AgentError(f"agent {program}: {_not_started(error)}") from error
        self._log.close_sink()

    @property
    def stdin(self) -> IO[bytes]:
        """Where it can be spoken to."""
        assert self._process.stdin is not None
        return self._process.stdin

    @property
    def stdout(self) -> IO[bytes]:
        """Where it answers."""
        assert self._process.stdout is not None
        return self._process.stdout

    def has_ended(self) -> bool:
        """Say whether the process has ended; if so, end the rest of its group."""
        if self._process.poll() is None:
            return False
        if not self._is_swept:  # once: later the group's number may be another's
            self._is_swept = True
            self._signal(signal.SIGKILL)
        return True

    def wait(self, seconds: float) -> bool:
        """Wait for the end; say whether it came."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(seconds)
        return self.has_ended()

    def stop(self, grace_s: float) -> None:
        """End it and its group; once or more often.

        Parameters
        ----------
        grace_s
            Seconds between being asked to end and being made to.
        """
        if not self.has_ended() and grace_s > 0:
            self._signal(signal.SIGTERM)
            self.wait(grace_s)
        if not self.has_ended():
            self._signal(signal.SIGKILL)
            self._process.wait()
            self.has_ended()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._log.close()

    def _signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def how_it_ended(self) -> tuple[str, str]:
        """Give the reason code and the words for the end of a process that has ended."""
        status = self._process.wait()
        if status >= 0:
            return "agent_exited", f"ended with status {status}"
        try:
            name = signal.Signals(-status).name
        except ValueError:
            name = f"signal {-status}"
        return "agent_killed", f"was ended by {name}"

    def last_words(self) -> str:
        """Give the last lines of the log, as a sentence for a message."""
        text = self._log.tail()
        return f"its log ends:\n{text}" if text else "it logged nothing"


def log_line(text: str) -> None:
    """Write a line to the trial's log."""
    _forward(f"{text}\n".encode("utf-8", "backslashreplace"))


def _forward(data: bytes) -> None:
    """Write to the real standard error: Python's may be somebody else's."""
    view = memoryview(data)
    with suppress(OSError):
        while view:
            view = view[os.write(_STDERR, view) :]


def _not_started(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.errno == errno.ENOEXEC:
        return "its file is no program: begin it with `#!/bin/sh` or the like, or name what runs it"
    return f"it cannot be started: {error}"


class _LogPump:
    """A pipe whose content is passed on by a thread, while its end is remembered."""

    def __init__(self) -> None:
        self._source, self.sink = os.pipe()
        self._woken, self._wake = os.pipe()
        self._tail = bytearray()
        self._sink_is_open = self._is_open = True
        self._thread = threading.Thread(target=self._run, name="evalkit-agent-log", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        left = _LAST_BYTES
        with selectors.DefaultSelector() as selector:
            for fd in (self._source, self._woken):
                selector.register(fd, selectors.EVENT_READ)
            while left > 0:
                ready = {key.fd for key, _ in selector.select()}
                # Woken with nothing left to read, or by the end of the last writer.
                if self._source not in ready or not (data := os.read(self._source, 65536)):
                    return
                _forward(data)
                self._tail += data
                del self._tail[:-_TAIL_BYTES]
                if self._woken in ready:  # somebody who escaped writes without end
                    left -= len(data)

    def close_sink(self) -> None:
        """Leave the pipe to the program."""
        if self._sink_is_open:
            self._sink_is_open = False
            os.close(self.sink)

    def close(self) -> None:
        """Pass on what has been written, and end; once or more often."""
        if not self._is_open:
            return
        self._is_open = False
        self.close_sink()
        os.close(self._wake)
        self._thread.join()
        os.close(self._source)
        os.close(self._woken)

    def tail(self) -> str:
        """Give the last lines; all of them are there once it is closed."""
        return bytes(self._tail).decode("utf-8", "backslashreplace").strip()
