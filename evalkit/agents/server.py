"""A program that serves, started for one trial: its port, if it has one, and its readiness.

What is said to it is :mod:`evalkit.agents.http`'s.
"""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Callable
from typing import Final

from evalkit.agents.hosting import Address
from evalkit.agents.program import Program, RunningProgram
from evalkit.agents.protocol import AgentFault
from evalkit.errors import AgentError

_LOOPBACK: Final = ("127.0.0.1", "::1")
_LOOK_S: Final = 0.1
_TERM_GRACE_S: Final = 1.0
_PORT_WORD: Final = "{port}"


class Server:
    """A trial's own server: its port, and its program.

    Parameters
    ----------
    program
        What to start; ``{port}`` in a word becomes the port, and so does ``PORT``.
    port
        Where it listens; ``None`` for a free one.
    path
        Of its address.
    ready_s
        Seconds that it may take until its port accepts connections.

    Raises
    ------
    AgentError
        If it cannot be started, or its port is somebody else's.
    AgentFault
        If it ends, or does not listen in time.
    """

    def __init__(self, program: Program, *, port: int | None, path: str, ready_s: float) -> None:
        self._claim = claim_port(port)
        self._port: int = self._claim.getsockname()[1]
        words = tuple(word.replace(_PORT_WORD, str(self._port)) for word in program.command)
        try:
            self.program = RunningProgram(
                Program(words, program.folder), speaks=False, env={"PORT": str(self._port)}
            )
        except BaseException:
            self._claim.close()
            raise
        try:
            self.address = Address(self._host(ready_s), self._port, path)
        except BaseException:
            self.stop()
            raise

    def _host(self, ready_s: float) -> str:
        """Wait until the port accepts, and say at which address."""
        when = f"before its port {self._port} accepted connections"
        host = await_port(
            self._port, ready_s, end=lambda: self.end(when) if self.has_ended() else None
        )
        if host:
            return host
        self.program.stop(0)
        raise AgentFault(
            "no_reply", f"{not_ready(self._port, ready_s)}; {self.program.last_words()}"
        )

    def has_ended(self) -> bool:
        """Say whether its program has ended."""
        return self.program.has_ended()

    def end(self, when: str) -> AgentFault | None:
        """Say how the program ended, if it did."""
        return program_end(self.program, when)

    def stop(self) -> None:
        """End the program and give the port back; once or more often."""
        self._stop(_TERM_GRACE_S)

    def kill(self) -> None:
        """End it without a word."""
        self._stop(0)

    def _stop(self, grace_s: float) -> None:
        try:
            self.program.stop(grace_s)
        finally:
            self._claim.close()


class Background:
    """A trial's own program that listens nowhere: it polls.

    Parameters
    ----------
    program
        What to start.

    Raises
    ------
    AgentError
        If it cannot be started.
    """

    address = None

    def __init__(self, program: Program) -> None:
        self._program = RunningProgram(program, speaks=False)

    def has_ended(self) -> bool:
        """Say whether it has ended."""
        return self._program.has_ended()

    def end(self, when: str) -> AgentFault | None:
        """Say how the program ended, if it did."""
        return program_end(self._program, when)

    def stop(self) -> None:
        """End the program; once or more often."""
        self._program.stop(_TERM_GRACE_S)

    def kill(self) -> None:
        """End it without a word."""
        self._program.stop(0)


def program_end(program: RunningProgram, when: str) -> AgentFault | None:
    """Say how a program ended, if it did."""
    if not program.wait(_LOOK_S):
        return None
    program.stop(0)
    code, how = program.how_it_ended()
    return AgentFault(code, f"the agent {how} {when}; {program.last_words()}")


def await_port(port: int, seconds: float, *, end: Callable[[], AgentFault | None]) -> str:
    """Wait until a port accepts, and say at which address; empty if it does not.

    Parameters
    ----------
    port
        On the loopback.
    seconds
        How long to wait.
    end
        Gives the fault of an agent that has ended, which is raised.

    Raises
    ------
    AgentFault
        If it ended.
    """
    due, pause = time.monotonic() + seconds, 0.005
    while time.monotonic() < due:
        if fault := end():
            raise fault
        for host in _LOOPBACK:
            if _accepts(host, port):
                return host
        time.sleep(pause)
        pause = min(2 * pause, 0.05)
    return ""


def not_ready(port: int, seconds: float) -> str:
    """Say that nobody accepted."""
    return f"the agent did not accept connections on port {port} within {seconds:g} s"


def claim_port(port: int | None) -> socket.socket:
    """Keep other trials from a port, for as long as the socket given is open.

    Two trials in one network would else talk to one server, and not notice. The
    claim is on the UDP port of that number, which the kernel gives to one only,
    and takes back from the dead.

    Raises
    ------
    AgentError
        If another trial has it, or anybody listens there.
    """
    for number in [_free_port() for _ in range(8)] if port is None else [port]:
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            claim.bind((_LOOPBACK[0], number))
        except OSError as error:
            claim.close()
            if port is None and error.errno == errno.EADDRINUSE:
                continue
            raise AgentError(_not_claimed(number, error)) from error
        if any(_accepts(host, number) for host in _LOOPBACK):
            claim.close()
            raise AgentError(f"agent: somebody else listens on port {number} already")
        return claim
    raise AgentError("agent: no free port was found")


def _not_claimed(port: int, error: OSError) -> str:
    if error.errno != errno.EADDRINUSE:
        return f"agent: port {port} cannot be used: {error.strerror}"
    return (
        f"agent: port {port} is in use by another trial at the same time; run one at a time "
        "(--parallel 1), or in a sandbox with a network of its own"
    )


def _free_port() -> int:
    with socket.create_server((_LOOPBACK[0], 0)) as probe:
        return int(probe.getsockname()[1])


def _accepts(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), timeout=1.0) as probe:
            # A port that nobody listens on may be given to the probe itself.
            return bool(probe.getsockname() != probe.getpeername())
    except OSError:
        return False
