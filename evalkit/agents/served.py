"""An agent that is a Python function which serves: a web application, or a loop that polls.

The function takes no arguments and does not return. It is imported once, in the warm
server, and runs in a daemon thread of each trial's own process; it ends with that process.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from evalkit.agents.continuing import next_talk
from evalkit.agents.hosting import Address
from evalkit.agents.http import HttpConversation
from evalkit.agents.protocol import AgentFault
from evalkit.agents.reference import AgentRef, code_hash, import_from, pickled, refer_to
from evalkit.agents.server import await_port, claim_port, not_ready
from evalkit.errors import AgentError

_LOOK_S: Final = 0.1
_TRACEBACK_LINES: Final = 12
_MAIN_THREAD: Final = "main thread"


@dataclass(frozen=True, slots=True)
class ServedAgent:
    """An agent that is a function which serves, as it travels to the process of a trial.

    It is a zero-argument factory of a conversation, so it can stand wherever an
    agent can.

    Examples
    --------
    >>> ServedAgent("my_bot.app:main", port=8080).description
    'http: my_bot.app:main (port 8080, POST /)'
    """

    serve: str | Callable[[], object]
    """``module:function``, or the function."""
    port: int | None = None
    """Where it listens; ``None`` for an agent that only polls."""
    path: str = "/"
    folders: tuple[str, ...] = ()
    """Folders to import from, before all others."""
    ready_s: float = 30.0
    """Seconds that it may take until its port accepts connections."""
    timeout_s: float = 600.0
    """Seconds without a byte of an answer."""

    @property
    def name(self) -> str:
        """What messages call the function."""
        if isinstance(self.serve, str):
            return self.serve
        module = getattr(self.serve, "__module__", "?")
        return f"{module}:{getattr(self.serve, '__qualname__', repr(self.serve))}"

    @property
    def description(self) -> str:
        """What a manifest calls it."""
        where = "polls" if self.port is None else f"port {self.port}, POST {self.path}"
        return f"http: {self.name} ({where})"

    @property
    def tools(self) -> object:
        """Which tools it says that it has; see :mod:`evalkit.agents.declared`."""
        return getattr(self.serve, "tools", None)

    def refer(self) -> AgentRef:
        """Make the reference that a worker is sent.

        Raises
        ------
        AgentError
            If there is no such module, or the function cannot be pickled.
        """
        if isinstance(self.serve, str):
            found = refer_to(self.serve, path=self.folders).hash
        else:
            _check_serves(self.serve, self.name)
            found = code_hash(self.serve)
        return AgentRef(self.description, self.folders, pickled(self, self.name), found)

    def __evalkit_load__(self) -> ServedAgent:
        """Give it with its function imported, and with all that its trials need.

        Raises
        ------
        AgentError
            If there is no such function, or it takes arguments.
        """
        import http.client  # noqa: F401 - else every fork would import it anew

        function = self.serve
        if isinstance(function, str):
            function = import_from(function, self.folders)
        _check_serves(function, self.name)
        return ServedAgent(
            function, self.port, self.path, self.folders, self.ready_s, self.timeout_s
        )

    def __call__(self) -> HttpConversation:
        """Start the function for one trial and wait until it can be talked to.

        Raises
        ------
        AgentError
            If its port is somebody else's, or it cannot be imported.
        AgentFault
            If it returns, raises, or does not listen in time.
        """
        agent = self.__evalkit_load__()
        host = _ServingThread(agent)
        host.start(agent.ready_s)
        return HttpConversation(host.address, next_talk(), host=host, timeout_s=agent.timeout_s)


def _check_serves(function: object, name: str) -> None:
    if not callable(function):
        raise AgentError(f"agent {name}: it is no function, but {type(function).__name__}")
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise AgentError(
            f"agent {name}: `serve` names a function without arguments that serves until the "
            f"trial ends, and this one cannot be called so ({error})"
        ) from error
    except ValueError:  # written in C: only a call would tell
        return


class _ServingThread:
    """A function that serves, in a thread of this process."""

    def __init__(self, agent: ServedAgent) -> None:
        self.address: Address | None = None
        self._agent = agent
        self._claim = None if agent.port is None else claim_port(agent.port)
        self._how: tuple[str, str] = ("agent_exited", "ended")
        # A daemon: nothing can make a server return, and it ends with the process.
        self._thread = threading.Thread(target=self._run, name="evalkit-agent", daemon=True)

    def start(self, ready_s: float) -> None:
        """Start it, and wait until its port accepts."""
        self._thread.start()
        port = self._agent.port
        if port is None:
            return
        when = f"before its port {port} accepted connections"
        try:
            host = await_port(
                port, ready_s, end=lambda: self.end(when) if self.has_ended() else None
            )
            if not host:
                raise AgentFault("no_reply", not_ready(port, ready_s))
        except BaseException:
            self.stop()
            raise
        self.address = Address(host, port, self._agent.path)

    def _run(self) -> None:
        serve: Any = self._agent.serve
        try:
            returned = serve()
            if inspect.iscoroutine(returned):
                asyncio.run(returned)
        except SystemExit as error:
            self._how = ("agent_exited", f"called sys.exit({error.code!r})")
        except BaseException as error:  # told by whoever talks to the agent
            self._how = ("agent_raised", f"raised {_raised(error)}")
        else:
            self._how = ("agent_exited", "returned, but should serve until the trial ends,")

    def has_ended(self) -> bool:
        """Say whether the function has ended."""
        return not self._thread.is_alive()

    def end(self, when: str) -> AgentFault | None:
        """Say how the function ended, if it did."""
        self._thread.join(_LOOK_S)
        if self._thread.is_alive():
            return None
        code, how = self._how
        first, _, rest = how.partition("\n")
        return AgentFault(
            code, "\n".join(filter(None, (f"{self._agent.name} {first} {when}", rest)))
        )

    def stop(self) -> None:
        """Give the port back; the function ends with the process."""
        if self._claim is not None:
            self._claim.close()

    def kill(self) -> None:
        """Do as :meth:`stop`: the function ends with the process, whatever is asked of it."""
        self.stop()


def _raised(error: BaseException) -> str:
    """Name what a function raised, first line first, then where."""
    shown = "".join(traceback.format_exception(error, limit=-_TRACEBACK_LINES)).rstrip()
    first = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}".removesuffix(": ")
    if _MAIN_THREAD in str(error):
        first += (
            " (it runs in a thread of the trial's process, where no signal can be taken: switch "
            "that off, as with handle_signals=False)"
        )
    return f"{first}\n{shown}"
