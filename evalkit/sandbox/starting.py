"""Start the server program, wait until it is ready, and end it again."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, NoReturn

from evalkit.errors import AgentError, SandboxError
from evalkit.sandbox.processes import kill_group
from evalkit.sandbox.protocol import Lines, Message, Request, read_range

_PROGRAM = str(Path(__file__).with_name("__main__.py"))
_CONTROL_TIMEOUT_S = 30.0
_CLOSE_TIMEOUT_S = 5.0
_OUTPUT_TAIL = 4_000


class ServerProcess:
    """The server program as a process, with the socket and the output of it."""

    def __init__(
        self, request: Request, *, kind: str, env: Mapping[str, str], cwd: str | Path | None
    ) -> None:
        self._output = unnamed_file()
        self._ready = False
        self.control, theirs = socket.socketpair()
        with theirs, unnamed_file(request.encode()) as file:
            self._process = self._popen(kind, file, control=theirs, env=env, cwd=cwd)

    def _popen(
        self,
        kind: str,
        request: IO[bytes],
        *,
        control: socket.socket,
        env: Mapping[str, str],
        cwd: str | Path | None,
    ) -> subprocess.Popen[bytes]:
        """Start the program in a session of its own, out of reach of Ctrl-C."""
        fds = (request.fileno(), control.fileno())
        try:
            return subprocess.Popen(
                [sys.executable, "-P", "-u", _PROGRAM, kind, *map(str, fds)],
                pass_fds=fds,
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                start_new_session=True,
                env=env,
                cwd=cwd,
            )
        except OSError as error:
            self.control.close()
            self._output.close()
            raise SandboxError(
                f"the server for trials could not be started with {sys.executable!r} in "
                f"{str(cwd or Path.cwd())!r}: {error}"
            ) from error

    def await_ready(self, timeout_s: float) -> Message:
        """Return the server's first message, once everything is imported."""
        deadline = time.monotonic() + timeout_s
        lines = Lines()
        while True:
            data = self._receive(max(0.001, deadline - time.monotonic()), timeout_s=timeout_s)
            for message in lines.feed(data):
                if message["event"] == "refused":
                    _raise_refused(message)
                self.control.settimeout(_CONTROL_TIMEOUT_S)
                self._ready = True
                return message

    def _receive(self, patience_s: float, *, timeout_s: float) -> bytes:
        """Return what the starting server says next."""
        self.control.settimeout(patience_s)
        try:
            data = self.control.recv(1 << 16)
        except TimeoutError:
            raise SandboxError(
                f"the imports for trials were not done after {timeout_s:g} s. Look for a module "
                f"that waits when it is imported, or allow more time.{self._last_words()}"
            ) from None
        except ConnectionResetError:
            data = b""
        if not data:
            raise SandboxError(
                f"the process that imports for trials ended with {self._end()} before it was "
                f"done. Look for a module that exits when it is imported.{self._last_words()}"
            )
        return data

    def explain_loss(self) -> str:
        """Say how the server ended, and what to do."""
        end = self._end()
        advice = (
            "Most likely memory ran out: run fewer trials at once, or free memory"
            if end == "SIGKILL"
            else "Run again; if it happens again, look at its output for the cause"
        )
        return f"the server for trials ended with {end}. {advice}.{self._last_words()}"

    def _end(self) -> str:
        """Return the name of the signal or the exit status of the server."""
        self._await_end()
        status = self._process.returncode
        return signal.Signals(-status).name if status < 0 else f"status {status}"

    def _await_end(self) -> None:
        """Wait for the end; bring it about when it does not come, or while it imports."""
        try:
            self._process.wait(_CLOSE_TIMEOUT_S if self._ready else 0.1)
        except subprocess.TimeoutExpired:
            kill_group(self._process.pid)
            self._process.wait()

    def _last_words(self) -> str:
        """Return the last lines of the server's output, for a message."""
        fd = self._output.fileno()
        size = os.fstat(fd).st_size
        text = read_range(fd, max(0, size - _OUTPUT_TAIL), size).decode(errors="replace").strip()
        return f" Its last output:\n{text}" if text else " It printed nothing."

    def close(self) -> None:
        """Hang up, which makes the server kill everything; wait for its end."""
        self.control.close()
        self._await_end()
        self._output.close()


def unnamed_file(content: bytes = b"") -> IO[bytes]:
    """Return an open file without a name that appends, so that writers never overwrite."""
    import fcntl  # not on Windows, where ForkServer says so itself

    file: IO[bytes] = tempfile.TemporaryFile(buffering=0)  # noqa: SIM115 - the caller closes it
    flags = fcntl.fcntl(file, fcntl.F_GETFL)
    fcntl.fcntl(file, fcntl.F_SETFL, flags | os.O_APPEND)
    return _filled(file, content)


def payload_file(content: bytes) -> IO[bytes]:
    """Return an open file that holds a payload; in memory, where the system can do that."""
    if not hasattr(os, "memfd_create"):
        return unnamed_file(content)
    return _filled(os.fdopen(os.memfd_create("evalkit-payload"), "wb", buffering=0), content)


def _filled(file: IO[bytes], content: bytes) -> IO[bytes]:
    """Write the whole of something into an unbuffered file."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) :]
    return file


def _raise_refused(message: Message) -> NoReturn:
    """Raise what the server met while it imported."""
    if message["kind"]:
        kind = AgentError if message["kind"] == AgentError.__name__ else SandboxError
        raise kind(message["problem"])
    raise SandboxError(
        f"the imports for trials failed: {message['problem']}. They run in a process of "
        "their own: check the module names, sys.path, environment and working directory "
        f"given to it.\n{message['traceback']}"
    )
