"""The server program: imports once, then gives every trial a fresh process.

One thread, no polling. It is asked over a control socket, forks, reaps, reports,
and kills what a trial leaves behind. Where forking is not safe (the imports
started threads, or the platform) it replaces itself by a bare copy that starts a
fresh interpreter for each trial, with the same set-up and the same reports.

Whatever a trial starts stays below its process, and falls to the server when
that ends (see :func:`evalkit.sandbox.worker.settle`). So a child that the server
does not know belongs to a trial that is over, and is killed.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from evalkit.errors import EvalkitError
from evalkit.sandbox import processes, worker
from evalkit.sandbox.barrier import refused_of
from evalkit.sandbox.memory import reserve_memory, settle_memory
from evalkit.sandbox.protocol import Lines, Request, encode_message, read_whole
from evalkit.sandbox.seclusion import seclude

_HOLD_S = 1.0  # how long an end is kept back for leftovers that are not dead yet
_STOP_S = 3.0  # how long the server waits for its children when it stops itself
_MAX_FDS = 64  # per read; each start brings three

Launch = Callable[[worker.Descriptors], NoReturn]


def main(kind: str, fds: Sequence[int]) -> None:
    """Be a server (``fork``, ``spawn``, bare ``worker`` server), or run a trial ``once``."""
    request = Request.decode(read_whole(fds[0]))
    worker.write_through()
    if kind == "once":
        _run_once(request, fds)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # a thread of the caller may block some
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the caller decides what Ctrl-C means
    caller = fds[2:] or _watch(request.caller_pid)  # here the caller still has a number
    is_secluded = kind != "worker" and request.secluded and seclude([*fds[:2], *caller])
    processes.adopt_orphans()
    control = socket.socket(fileno=fds[1])
    if kind == "worker":
        launch = _spawning(fds[0])
    else:
        beginning = _Beginning(request, fds[0], control, caller, is_secluded)
        launch = _forking(beginning, spawn=kind == "spawn")
    Server(control, launch, caller).serve()


class _Beginning(NamedTuple):
    """What a server knows and holds before it has imported anything."""

    request: Request
    request_fd: int
    control: socket.socket
    caller: Sequence[int]
    is_secluded: bool

    def report_ready(self, mode: str, threads: Sequence[str] = ()) -> None:
        """Tell the caller that the imports are done."""
        message = {"mode": mode, "threads": list(threads), "secluded": self.is_secluded}
        self.control.sendall(encode_message(event="ready", **message))


def _watch(pid: int) -> Sequence[int]:
    """Return a descriptor that is ready when the caller ends (Linux); ends if it has.

    The socket alone would not do: a fork of the caller may still hold it.
    """
    if sys.platform != "linux":
        return []
    try:
        return [os.pidfd_open(pid)]
    except OSError:
        if os.getppid() != pid:
            os._exit(0)
        return []


def _run_once(request: Request, fds: Sequence[int]) -> NoReturn:
    """Run one trial in this fresh interpreter, which a spawning server has set up."""
    request_fd, channel_fd, payload_fd = fds
    os.close(request_fd)

    def load() -> tuple[worker.Entry, Any]:
        try:
            return worker.load(request)
        except BaseException:  # also an exit with status 0: it is not the entry's
            traceback.print_exc()
            os._exit(worker.ENTRY_RAISED)

    enter = worker.resolve(request.enter) if request.enter else None
    worker.run(load, enter=enter, payload_fd=payload_fd, channel_fd=channel_fd)


def _forking(beginning: _Beginning, *, spawn: bool) -> Launch:
    """Import everything and return how a fork runs a trial; or become a spawning server."""
    request = beginning.request
    processes.die_with_parent(os.getppid())  # an import that hangs hears nothing else
    if beginning.is_secluded and not spawn:
        reserve_memory()
    try:
        enter = worker.resolve(request.enter) if request.enter else None
        loaded = worker.load(request)
    except BaseException as error:
        _refuse(beginning.control, error)
    if not beginning.is_secluded:
        processes.outlive_parent()  # it means the thread, which may now end before the caller
    threads = processes.other_threads()
    if spawn or threads:
        _become_spawning(beginning, threads)
    os.close(beginning.request_fd)
    gc.collect()
    settle_memory()
    gc.freeze()  # a collection in a child would otherwise copy every page
    beginning.report_ready("fork")

    def launch(fds: worker.Descriptors) -> NoReturn:
        worker.run(lambda: loaded, enter=enter, payload_fd=fds.payload, channel_fd=fds.channel)

    return launch


def _refuse(control: socket.socket, error: BaseException) -> NoReturn:
    """Tell the caller why the imports failed, and end."""
    text = "".join(traceback.format_exception(error))
    kind = type(error).__name__
    is_ours = isinstance(error, EvalkitError)  # the message says it all
    problem = str(error) if is_ours else f"{kind}: {error}"
    message = encode_message(
        event="refused", problem=problem, traceback=text, kind=kind if is_ours else ""
    )
    control.sendall(message)
    os._exit(worker.ENTRY_RAISED)


def _become_spawning(beginning: _Beginning, threads: Sequence[str]) -> NoReturn:
    """Replace this process, its imports and their threads by a bare spawning server."""
    beginning.report_ready("spawn", threads)
    _execute("worker", beginning.request_fd, beginning.control.fileno(), *beginning.caller)


def _spawning(request_fd: int) -> Launch:
    """Return how a fork turns into a fresh interpreter that runs a trial."""

    def launch(fds: worker.Descriptors) -> NoReturn:
        _execute("once", request_fd, fds.channel, fds.payload)

    return launch


def _execute(kind: str, *fds: int) -> NoReturn:
    """Replace this process by a fresh interpreter that runs this program."""
    for fd in fds:
        os.set_inheritable(fd, True)
    program = str(Path(__file__).with_name("__main__.py"))
    os.execv(sys.executable, [sys.executable, "-P", "-u", program, kind, *map(str, fds)])


class Server:
    """The loop: requests in, processes started, ends reported."""

    def __init__(self, control: socket.socket, launch: Launch, caller: Sequence[int]) -> None:
        self._control = control
        self._launch = launch
        self._lines = Lines()
        self._arrived: deque[int] = deque()
        self._tokens: dict[int, int] = {}
        self._kept = processes.children()  # helpers that the imports started
        self._ends: list[bytes] = []
        self._refused: dict[int, int | None] = {}
        self._hold_until = 0.0
        self._running = True
        self._caller = caller
        self._own_fds = {control.fileno(), *caller}

    def serve(self) -> NoReturn:
        """Work until the caller closes the socket or is gone, then kill and end."""
        signals = self._listen()
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(signals, select.POLLIN)
        for fd in self._caller:
            poller.register(fd, select.POLLIN)
        while self._running:
            ready = {fd for fd, _ in poller.poll(self._patience_ms())}
            if ready & {*self._caller} or (signals in ready and self._told_to_stop(signals)):
                break
            if self._control.fileno() in ready:
                self._receive()
            self._reap()
            self._report()
        self._stop(signals)

    def _listen(self) -> int:
        """Have signals write their number to a pipe; return the end to read."""
        read_end, write_end = os.pipe()
        for fd in (read_end, write_end):
            os.set_blocking(fd, False)
        signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        self._own_fds |= {read_end, write_end}
        return read_end

    def _told_to_stop(self, signals: int) -> bool:
        """Empty the pipe of signal numbers; say whether one asked for the end."""
        numbers = os.read(signals, 4096)
        return signal.SIGTERM in numbers or signal.SIGHUP in numbers

    def _patience_ms(self) -> float | None:
        """Return how long to wait for the next thing to happen."""
        if not self._ends:
            return None
        return max(0.0, self._hold_until - time.monotonic()) * 1000

    def _receive(self) -> None:
        """Do what the caller asks; without a caller, stop."""
        data, fds, flags, _ = socket.recv_fds(self._control, 1 << 16, _MAX_FDS)
        self._arrived.extend(fds)
        if flags & socket.MSG_CTRUNC:
            raise RuntimeError("no file descriptors left; raise the limit (ulimit -n)")
        for fd in fds:
            os.set_inheritable(fd, False)
        self._running = bool(data)
        for message in self._lines.feed(data):
            if message["op"] == "start":
                self._start(message["token"])
            else:
                self._kill(message["token"])

    def _start(self, token: int) -> None:
        """Fork a process for one trial."""
        fds = worker.Descriptors(*(self._arrived.popleft() for _ in range(3)))
        server_pid = os.getpid()
        try:
            pid = os.fork()
        except OSError as error:
            self._ends.append(_end(token, None, f"no process could be started: {error}"))
        else:
            if pid == 0:
                self._become_worker(server_pid, fds)
            self._tokens[pid] = token
            self._send(encode_message(event="started", token=token, pid=pid))
        fds.close()

    def _become_worker(self, server_pid: int, fds: worker.Descriptors) -> NoReturn:
        """Continue as the process of a trial."""
        try:
            worker.settle(server_pid, fds.output)
            for fd in (*self._own_fds, *self._arrived):
                os.close(fd)
            self._launch(fds)
        except BaseException:
            os.write(2, traceback.format_exc().encode())
        finally:
            os._exit(worker.ENTRY_RAISED)

    def _kill(self, token: int) -> None:
        """Kill a trial's process and group; what left the group follows when it is reaped."""
        for pid, owner in self._tokens.items():
            if owner == token:
                self._refused[token] = refused_of(pid)  # the dead have no network
                processes.kill_group(pid)
                processes.kill(pid)  # it may not have a group of its own yet

    def _reap(self) -> None:
        """Collect every child that has ended."""
        with suppress(ChildProcessError):
            while (reaped := os.waitpid(-1, os.WNOHANG))[0]:
                self._bury(*reaped)

    def _bury(self, pid: int, status: int) -> None:
        """Note the end of one child, and kill its group."""
        self._kept.discard(pid)
        token = self._tokens.pop(pid, None)
        if token is None:
            return
        processes.kill_group(pid)  # Linux hands out process ids in turn: not used again yet
        self._hold_until = time.monotonic() + _HOLD_S
        refused = self._refused.pop(token, None)
        self._ends.append(_end(token, os.waitstatus_to_exitcode(status), "", refused=refused))

    def _report(self) -> None:
        """Report ends, as soon as nothing of the ended trials is alive any more."""
        if not self._ends:
            return
        if self._kill_strangers() and time.monotonic() < self._hold_until:
            return
        self._send(b"".join(self._ends))
        self._ends.clear()

    def _kill_strangers(self) -> bool:
        """Kill children that belong to no living trial; say whether there were any."""
        strangers = processes.children() - self._tokens.keys() - self._kept
        self._kept |= {pid for pid in strangers if not processes.kill(pid)}
        return bool(strangers - self._kept)

    def _send(self, data: bytes) -> None:
        """Send to the caller; without a caller, stop."""
        try:
            self._control.sendall(data)
        except OSError:
            self._running = False

    def _stop(self, signals: int) -> NoReturn:
        """Kill all that is left, and end without ceremony."""
        deadline = time.monotonic() + _STOP_S
        self._kept.clear()
        for token in list(self._tokens.values()):
            self._kill(token)
        poller = select.poll()
        poller.register(signals, select.POLLIN)
        while (self._kill_strangers() or self._tokens) and time.monotonic() < deadline:
            poller.poll(max(0.0, deadline - time.monotonic()) * 1000)
            self._told_to_stop(signals)
            self._reap()
        os._exit(0)


def _end(token: int, status: int | None, reason: str, *, refused: int | None = None) -> bytes:
    """Return the report of one end."""
    told = {"token": token, "status": status, "reason": reason, "refused": refused}
    return encode_message(event="ended", **told)
