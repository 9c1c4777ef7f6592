"""Seeing tools at work: what really ran, how long it took, what it raised.

A tool that is wrapped with :func:`tool` tells the trial that it runs in; outside
of a trial the wrapper does nothing. On the wire one sees what a model *asked
for*; only at the tool one sees what *ran*. Tools that are traced with OpenTelemetry need
no wrapper in the contract lane: see :mod:`evalkit.gateway.telemetry`.
"""

from __future__ import annotations

import functools
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Protocol, TypeVar, cast, overload

from evalkit.ledger import JSON
from evalkit.trace import CallStatus

_Function = TypeVar("_Function", bound=Callable[..., Any])


class ToolSink(Protocol):
    """Where a trial takes in what its tools do."""

    def tool_started(self, name: str, args: Mapping[str, JSON]) -> int:
        """Note that a tool begins; gives the number of the call."""

    def tool_ended(self, call: int, *, status: CallStatus, result: JSON, duration_s: float) -> None:
        """Note how it ended."""


_sink: ToolSink | None = None
_names: set[str] = set()
_guard = threading.Lock()


def watched_tools() -> tuple[str, ...]:
    """Name every tool that is wrapped in this process."""
    return tuple(sorted(_names))


def watch_tools(sink: ToolSink | None) -> None:
    """Send what wrapped tools do to a trial; ``None`` stops that."""
    global _sink  # noqa: PLW0603, RUF100 - one trial a process; threads and loops of the agent share it
    _sink = sink


@overload
def tool(function: _Function, /) -> _Function: ...


@overload
def tool(*, name: str | None = None) -> Callable[[_Function], _Function]: ...


def tool(
    function: _Function | None = None, /, *, name: str | None = None
) -> _Function | Callable[[_Function], _Function]:
    """Let evalkit see a tool at work.

    Parameters
    ----------
    function
        The tool, sync or async. It behaves as before.
    name
        The name by which the model knows it; defaults to the function's.

    Examples
    --------
    >>> @tool
    ... def book(flight_id: str) -> str:
    ...     return f"booked {flight_id}"
    >>> book("AA123")
    'booked AA123'
    """

    def wrap(function: _Function) -> _Function:
        own_name = name or function.__name__
        with _guard:
            _names.add(own_name)
        wrapper = _async_wrapper if inspect.iscoroutinefunction(function) else _wrapper
        wrapped = functools.wraps(function)(wrapper(function, own_name))
        wrapped.tool_name = own_name  # type: ignore[attr-defined]
        return cast("_Function", wrapped)

    return wrap if function is None else wrap(function)


def _wrapper(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        if _sink is None:
            return function(*args, **kwargs)
        with _Watch(_sink, name, _arguments(function, args, kwargs)) as watch:
            watch.result = function(*args, **kwargs)
            return watch.result

    return call


def _async_wrapper(
    function: Callable[..., Awaitable[Any]], name: str
) -> Callable[..., Awaitable[Any]]:
    async def call(*args: Any, **kwargs: Any) -> Any:
        if _sink is None:
            return await function(*args, **kwargs)
        with _Watch(_sink, name, _arguments(function, args, kwargs)) as watch:
            watch.result = await function(*args, **kwargs)
            return watch.result

    return call


class _Watch:
    """Notes the beginning and the end of one call."""

    def __init__(self, sink: ToolSink, name: str, args: Mapping[str, JSON]) -> None:
        self.result: Any = None
        self._sink = sink
        self._call = sink.tool_started(name, args)
        self._started = time.monotonic()

    def __enter__(self) -> _Watch:
        return self

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        status: CallStatus = "ok"
        result = self.result
        if error is not None:
            status = "timeout" if isinstance(error, TimeoutError) else "error"
            result = f"{type(error).__name__}: {error}"
        duration_s = time.monotonic() - self._started
        self._sink.tool_ended(self._call, status=status, result=result, duration_s=duration_s)


def _arguments(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, JSON]:
    """Name the arguments of a call; what does not fit the signature raises there, not here."""
    try:
        bound = inspect.signature(function).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return dict(kwargs)
    named = dict(bound.arguments)
    for parameter in bound.signature.parameters.values():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            named |= named.pop(parameter.name, {})
    named.pop("self", None)
    return named
