"""Start fresh processes for trials, many at a time, from one thread.

The caller's side: :class:`ForkServer` starts the server program, hands it trials
and collects what they send, print and end with. Deadlines are the caller's: it
bounds :meth:`ForkServer.wait` and kills. Nothing here waits for a trial.
"""

from __future__ import annotations

import difflib
import os
import selectors
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from typing import Literal, Self

from evalkit.errors import SandboxError
from evalkit.sandbox.channel import Channel
from evalkit.sandbox.child import Child, Ended, Event, Readable, Received
from evalkit.sandbox.processes import kill_group
from evalkit.sandbox.protocol import Lines, Message, Request, encode_message
from evalkit.sandbox.starting import ServerProcess, payload_file, unnamed_file

Mode = Literal["auto", "fork", "spawn"]

_ROOT = str(Path(__file__).resolve().parents[2])

# Hash seed: so that sets have one order. The others: numerical libraries start
# threads when they are imported, and a process with threads cannot be forked.
_SERVER_ENV = {
    "PYTHONHASHSEED": "0",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}


class ForkServer:
    """A warm process that gives every trial a fresh one; a context manager.

    Entering imports ``entry`` and runs ``prepare``; leaving kills whatever is left.
    It belongs to one thread at a time, which need not be the main thread.

    Parameters
    ----------
    entry
        ``"module:function"``, called in each fresh process as
        ``entry(prepared, payload, channel)``. The process ends when it returns
        (status 0) or raises (70, with the traceback in its output).
    prepare
        ``"module:function"``, called once before any trial as
        ``prepare(prepare_payload)``; what it returns is ``prepared``.
    enter
        ``"module:function"``, called as ``enter(payload)`` in each fresh process, before
        the entry and before anything of the agent runs there: the place to build a
        :class:`~evalkit.sandbox.room.Room` around it. A spawned process calls it before
        ``prepare``, while it still has one thread.
    path
        Entries for the front of ``sys.path``. By default the caller's own.
    env
        Complete environment of the server and of all trials. By default the
        caller's own. ``PYTHONHASHSEED=0`` and one thread for numerical libraries
        are added where it says nothing.
    cwd
        Working directory. By default the caller's own.
    mode
        ``fork``; ``spawn``, a fresh interpreter for each trial, same behaviour and
        slower; ``auto`` forks on Linux. Whatever is asked for, ``spawn`` is used
        when the imports started threads: see :attr:`threads`.
    secluded
        Whether to give the server a table of processes of its own, where the machine
        allows it: nothing outlives the server then, and trials see and signal nothing
        of the machine's. Process ids of children are numbers in that table.
    startup_timeout_s
        Seconds that ``prepare`` and all imports may take.
    output_limit
        Bytes of a trial's output that are kept after its end.

    Raises
    ------
    SandboxError
        On entering, when the imports fail; on any later use, when the server is lost.

    Examples
    --------
    >>> with ForkServer("builtins:print") as server:
    ...     child = server.start(b"book a flight")
    ...     end = server.wait()[-1]
    >>> end.exit_status, child.read_output().text[:21]
    (0, "None b'book a flight'")
    """

    def __init__(  # noqa: PLR0913 - each says one thing about the process
        self,
        entry: str,
        *,
        prepare: str = "",
        prepare_payload: bytes = b"",
        enter: str = "",
        path: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | Path | None = None,
        mode: Mode = "auto",
        secluded: bool = False,
        startup_timeout_s: float = 300.0,
        output_limit: int = 1_000_000,
    ) -> None:
        self._kind = _kind(mode)
        self._request = Request(
            path=_whole_path(sys.path if path is None else path),
            entry=_checked(entry),
            prepare=_checked(prepare) if prepare else "",
            caller_pid=os.getpid(),
            payload=prepare_payload,
            enter=_checked(enter) if enter else "",
            secluded=secluded,
        )
        self._env = _SERVER_ENV | dict(os.environ if env is None else env)
        self._cwd = cwd
        self._startup_timeout_s = startup_timeout_s
        self._output_limit = output_limit
        self._stack = ExitStack()
        self._lines = Lines()
        self._tokens = count(1)
        self._running: dict[int, tuple[Child, Channel]] = {}
        self._watched: set[socket.socket | int] = set()
        self._events: list[Event] = []
        self._mode: Mode = mode
        self._threads: tuple[str, ...] = ()
        self._secluded = False
        self._broken = "the server for trials is used outside its with statement"

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._process = ServerProcess(
                self._request, kind=self._kind, env=self._env, cwd=self._cwd
            )
            stack.callback(self._process.close)
            ready = self._process.await_ready(self._startup_timeout_s)
            self._selector = stack.enter_context(selectors.DefaultSelector())
            self._selector.register(self._process.control, selectors.EVENT_READ, self._on_control)
            self._stack = stack.pop_all()
        self._mode = "fork" if ready["mode"] == "fork" else "spawn"
        self._threads = tuple(ready["threads"])
        self._secluded = bool(ready["secluded"])
        self._broken = ""
        return self

    def __exit__(self, *_: object) -> None:
        self._broken = "the server for trials is closed"
        self._process.close()
        for token in list(self._running):
            self._finish(token, None, reason=self._broken)
        self._events.clear()
        self._stack.close()

    @property
    def mode(self) -> Mode:
        """How processes are made: ``fork`` or ``spawn``."""
        self._check()
        return self._mode

    @property
    def secluded(self) -> bool:
        """Whether the server has a table of processes of its own."""
        self._check()
        return self._secluded

    @property
    def threads(self) -> tuple[str, ...]:
        """Threads that the imports started, because of which processes are spawned."""
        self._check()
        return self._threads

    def start(self, payload: bytes) -> Child:
        """Start a fresh process that runs the entry on ``payload``.

        Returns at once. Start as many as should run side by side.

        Raises
        ------
        SandboxError
            When the server is lost, or no more files can be opened.
        """
        self._check()
        token = next(self._tokens)
        try:
            child, sock = self._hand_over(token, payload)
        except OSError as error:
            raise SandboxError(
                f"trial process {token} could not be started: {error}. Close files, or raise "
                "the limits of this process (ulimit -n), or make room in the temporary folder."
            ) from error
        channel = Channel(sock, self._selector, partial(self._on_channel, token))
        child.attach(channel)
        self._running[token] = child, channel
        return child

    def _hand_over(self, token: int, payload: bytes) -> tuple[Child, socket.socket]:
        """Send the trial's files to the server; return what stays here."""
        with ExitStack() as stack:
            output = stack.enter_context(unnamed_file())
            ours, theirs = map(stack.enter_context, socket.socketpair())
            with theirs, payload_file(payload) as request:
                fds = [theirs.fileno(), output.fileno(), request.fileno()]
                message = encode_message(op="start", token=token)
                socket.send_fds(self._process.control, [message], fds)
            stack.pop_all()
            return Child(token, output, kill=self._kill), ours

    def wait(self, timeout: float | None = None) -> list[Event]:
        """Wait until something happens, and return everything that has.

        Parameters
        ----------
        timeout
            Seconds to wait at most; ``None`` for no bound.

        Returns
        -------
        list of Received, Ended or Readable
            In order for each child, ``Ended`` last. Empty after the timeout, or at
            once when nothing is running and nothing watched. When the server is
            lost, every unfinished child ends with ``exit_status=None``.

        Raises
        ------
        SandboxError
            When the server is lost and all its children were reported.
        """
        if not self._events:
            self._check()
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._events and (self._running or self._watched):
            if not self._select(deadline):
                break
        events, self._events = self._events, []
        return events

    def _select(self, deadline: float | None) -> bool:
        """Handle what is ready; say whether anything was before the deadline."""
        patience = None if deadline is None else max(0.0, deadline - time.monotonic())
        ready = self._selector.select(patience)
        for key, mask in ready:
            key.data(mask)
        return bool(ready)

    def watch(self, file: socket.socket | int) -> None:
        """Have :meth:`wait` also return ``Readable(file)`` while ``file`` can be read.

        For whatever else the caller waits for, such as a socket by which a thread
        says that it is done.
        """
        self._check()
        self._selector.register(
            file, selectors.EVENT_READ, lambda _: self._events.append(Readable(file))
        )
        self._watched.add(file)

    def unwatch(self, file: socket.socket | int) -> None:
        """Stop watching a file; do so before it is closed."""
        self._watched.remove(file)
        self._selector.unregister(file)

    def _kill(self, token: int) -> None:
        """Have the server, which alone knows that the process is still there, kill it."""
        try:
            self._process.control.sendall(encode_message(op="kill", token=token))
        except OSError:
            self._lose()

    def _on_control(self, _: int) -> None:
        """Handle what the server reports."""
        try:
            data = self._process.control.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._lose()
        for message in self._lines.feed(data):
            self._handle(message)

    def _handle(self, message: Message) -> None:
        """Handle one report."""
        if message["event"] == "started":
            self._running[message["token"]][0].pid = message["pid"]
        else:
            how = {"reason": message["reason"], "n_refused": message["refused"]}
            self._finish(message["token"], message["status"], **how)

    def _on_channel(self, token: int, mask: int) -> None:
        """Move bytes between a child and its caller."""
        if token not in self._running:  # it ended in the same round
            return
        child, channel = self._running[token]
        if mask & selectors.EVENT_READ and (data := channel.receive()):
            self._events.append(Received(child, data))
        if mask & selectors.EVENT_WRITE:
            channel.flush()

    def _finish(
        self, token: int, status: int | None, *, reason: str, n_refused: int | None = None
    ) -> None:
        """Report what a dead child left in its channel, then its end."""
        child, channel = self._running.pop(token)
        self._events += [Received(child, data) for data in channel.drain()]
        child.finish(status, output_limit=self._output_limit)
        self._events.append(Ended(child, status, reason, n_refused))

    def _lose(self) -> None:
        """Report every unfinished child as lost, since the server is."""
        if self._broken:
            return
        self._selector.unregister(self._process.control)
        self._broken = self._process.explain_loss()
        for token, (child, _) in list(self._running.items()):
            if child.pid is not None and not self._secluded:
                kill_group(child.pid)  # the process itself died with the server
            self._finish(token, None, reason=self._broken)

    def _check(self) -> None:
        """Raise when the server cannot be used."""
        if self._broken:
            raise SandboxError(self._broken)


def _kind(mode: Mode) -> str:
    """Return how to make processes on this platform."""
    if not hasattr(socket, "send_fds") or not hasattr(os, "fork"):
        raise SandboxError(
            f"fresh processes for trials need a Unix system, and this is {sys.platform}. "
            'Use WSL, or isolation="none".'
        )
    if mode == "auto":
        return "fork" if sys.platform == "linux" else "spawn"
    if mode not in ("fork", "spawn"):
        near = difflib.get_close_matches(mode, ["auto", "fork", "spawn"], n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise SandboxError(f"mode={mode!r} is none of 'auto', 'fork' and 'spawn'.{hint}")
    return mode


def _checked(name: str) -> str:
    """Return a name of the form ``module:function``."""
    module, _, function = name.partition(":")
    if not module or not function.isidentifier():
        raise SandboxError(f"{name!r} is not of the form 'module:function'")
    return name


def _whole_path(path: Sequence[str]) -> tuple[str, ...]:
    """Return absolute entries that let the server find evalkit, too."""
    entries = [os.path.abspath(entry) for entry in path]  # noqa: PTH100 - also of ""
    return tuple(dict.fromkeys([*entries, _ROOT]))
