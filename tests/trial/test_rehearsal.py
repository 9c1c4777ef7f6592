"""The rehearsal before the forks: it is like a trial, and leaves nothing behind."""

from __future__ import annotations

import _thread
import logging
import socket
import sys
import threading
import time
from dataclasses import replace
from types import ModuleType
from typing import Any

import anthropic
import openai
import pytest

from evalkit.grade import Ending
from evalkit.observing import watched_tools
from evalkit.sandbox import processes
from evalkit.sandbox.environment import server_environment
from evalkit.trial import rehearsal

SDKS = {"anthropic": anthropic, "openai": openai}


@pytest.fixture
def endings(monkeypatch: pytest.MonkeyPatch) -> list[Ending]:
    """Give the ends of conversations that are rehearsed, on a free port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    for name, value in server_environment(port=port).items():
        monkeypatch.setenv(name, value)
    assert rehearsal._ORDER.staging is not None
    staging = replace(rehearsal._ORDER.staging, port=port)
    monkeypatch.setattr(rehearsal, "_ORDER", replace(rehearsal._ORDER, staging=staging))
    monkeypatch.setattr(rehearsal, "_TRACING", "not loaded")
    monkeypatch.setattr(rehearsal, "_ROUNDS", 2)
    seen: list[Ending] = []
    hold = rehearsal.converse

    def noted(*args: Any, **options: Any) -> Ending:
        seen.append(hold(*args, **options))
        return seen[-1]

    monkeypatch.setattr(rehearsal, "converse", noted)
    return seen


@pytest.mark.parametrize("name", SDKS)
def test_a_rehearsal_is_a_whole_trial(
    endings: list[Ending], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Every round passes: all steps are answered, and every line is acknowledged."""
    monkeypatch.setattr(rehearsal, "_TALKS", {name: rehearsal._TALKS[name]})
    rehearsal.rehearse()
    assert [ending.status for ending in endings] == ["passed", "passed"]


@pytest.mark.usefixtures("endings")
def test_a_rehearsal_leaves_nothing_behind() -> None:
    """No thread, no child, no handler of logs, no watch on tools: else forks were impossible."""
    threads, listed = _thread._count(), set(threading.enumerate())
    children, handlers = processes.children(), list(logging.getLogger().handlers)
    tools = watched_tools()
    rehearsal.rehearse()
    deadline = time.monotonic() + 5
    while _thread._count() > threads and time.monotonic() < deadline:
        time.sleep(0.01)
    # Less may be there than before: what other tests left ends at its own pace.
    assert _thread._count() <= threads
    assert (set(threading.enumerate()) <= listed, processes.children() <= children) == (True, True)
    assert (list(logging.getLogger().handlers), watched_tools()) == (handlers, tools)


def test_a_rehearsal_that_fails_is_no_error(
    endings: list[Ending], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An SDK of another make costs the server one attempt."""
    monkeypatch.setitem(sys.modules, "anthropic", ModuleType("anthropic"))
    monkeypatch.setattr(rehearsal, "_TALKS", {"anthropic": rehearsal._TALKS["anthropic"]})
    rehearsal.rehearse()
    assert [ending.status for ending in endings] == ["failed"]


def test_an_agents_tracer_takes_no_part(
    endings: list[Ending], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where OpenTelemetry is set up there is no rehearsal: it would be among the spans."""
    monkeypatch.setattr(rehearsal, "_TRACING", "sys")
    rehearsal.rehearse()
    assert endings == []
