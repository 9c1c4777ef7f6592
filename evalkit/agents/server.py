"""A server that is started for one trial: its port, its program, its readiness.

What is said to it is :mod:`evalkit.agents.http`'s.
"""

from __future__ import annotations

import errno
import socket
import time
from typing import Final, NamedTuple

from evalkit.agents.program import Program, RunningProgram
from evalkit.agents.protocol import AgentFault
from evalkit.errors import AgentError

_LOOPBACK: Final = ("127.0.0.1", "::1")
_LOOK_S: Final = 0.1
_TERM_GRACE_S: Final = 1.0
_PORT_WORD: Final = "{port}"


class Address(NamedTuple):
    """Where a server is reached."""

    host: str
    port: int
    path: str
    is_tls: bool = False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        shown = self.path.partition("?")[0]  # a query may hold a key
        return f"http{'s' if self.is_tls else ''}://{host}:{self.port}{shown}"


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
        self._claim = _claimed(port)
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
        due, pause = time.monotonic() + ready_s, 0.005
        while time.monotonic() < due:
            when = f"before its port {self._port} accepted connections"
            if self.program.has_ended() and (fault := self.end(when)):
                raise fault
            for host in _LOOPBACK:
                if _accepts(host, self._port):
                    return host
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        self.program.stop(0)
        raise AgentFault(
            "no_reply",
            f"the agent did not accept connections on port {self._port} within {ready_s:g} s; "
            f"{self.program.last_words()}",
        )

    def end(self, when: str) -> AgentFault | None:
        """Say how the program ended, if it did."""
        if not self.program.wait(_LOOK_S):
            return None
        self.program.stop(0)
        code, how = self.program.how_it_ended()
        return AgentFault(code, f"the agent {how} {when}; {self.program.last_words()}")

    def stop(self) -> None:
        """End the program and give the port back; once or more often."""
        try:
            self.program.stop(_TERM_GRACE_S)
        finally:
            self._claim.close()


def _claimed(port: int | None) -> socket.socket:
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
