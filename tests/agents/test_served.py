"""Agents that are functions which serve: started, waited for, talked to, and found out."""

from __future__ import annotations

import importlib.util
import pickle
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from evalkit.agents import Conversation, refer_to
from evalkit.agents.declared import declared_tools
from evalkit.agents.hosting import Hosted, Request
from evalkit.agents.http import HttpAgentSpec
from evalkit.agents.protocol import AgentFault
from evalkit.agents.served import ServedAgent
from evalkit.errors import AgentError


@pytest.fixture
def served(folder: str) -> Iterator[ModuleType]:
    """Give the module of functions that serve; end those that do."""
    spec = importlib.util.spec_from_file_location("served_module", f"{folder}/serving.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    module.STOP.set()
    for thread in threading.enumerate():
        if thread.name == "evalkit-agent":
            thread.join(5)


@pytest.fixture
def port() -> int:
    """Find a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


def watch(hosted: Hosted, *, turn: int) -> None:
    """Look after an agent until it has ended."""
    due = time.monotonic() + 10
    while time.monotonic() < due:
        hosted.check(turn=turn)
        time.sleep(0.01)


def test_function_is_called_and_sent_requests(served: ModuleType, port: int) -> None:
    """Turns are posted to its path in the protocol of all servers; requests go anywhere."""
    agent = ServedAgent(served.serves_on(port), port, "/chat")
    with Conversation(agent) as conversation:
        assert '"text": "hi"' in conversation.reply("hi").reply
        assert conversation.hosted is not None
        answer = conversation.hosted.deliver(
            Request("POST", "/hook?x=1", {"X-A": "b"}, b"raw"), turn=2
        )
        assert (answer.status, answer.is_success) == (200, True)
        assert answer.data == b'{"reply": "raw", "path": "/hook?x=1"}'
        refused = conversation.hosted.deliver(Request("POST", "/refuses"), turn=3)
        assert (refused.status, refused.is_success) == (503, False)
        conversation.hosted.check(turn=3)


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("returns", "agent_exited", "returned, but should serve until the trial ends"),
        ("raises", "agent_raised", "raised RuntimeError: no token before its port"),
        ("exits", "agent_exited", "called sys.exit(3)"),
        ("raises_later", "agent_raised", "raised RuntimeError: no loop"),
        ("takes_signals", "agent_raised", "switch that off"),
    ],
)
def test_function_that_ends_is_at_fault(
    served: ModuleType, port: int, name: str, code: str, words: str
) -> None:
    """Whoever returns or raises is told so, with the place, and does not make one wait."""
    with pytest.raises(AgentFault) as caught:
        ServedAgent(getattr(served, name), port)()
    assert caught.value.code == code
    assert words in caught.value.message
    assert ("Traceback" in caught.value.message) == (code == "agent_raised")


def test_end_in_the_middle_is_found_out(served: ModuleType, port: int) -> None:
    """A server that ends in a turn is no mystery of the network."""
    with Conversation(ServedAgent(served.serves_on(port), port)) as conversation:
        conversation.reply("hi")
        served.STOP.set()
        for thread in threading.enumerate():
            if thread.name == "evalkit-agent":
                thread.join(5)
        hosted = conversation.hosted
        assert hosted is not None
        with pytest.raises(AgentFault, match=r"returned, .* in turn 2") as caught:
            hosted.check(turn=2)
        assert caught.value.code == "agent_exited"
        with pytest.raises(AgentFault, match=r"returned, .* in turn 2"):
            hosted.deliver(Request("POST", "/"), turn=2)


def test_function_that_never_listens_is_given_up(served: ModuleType, port: int) -> None:
    """It has its time to begin."""
    with pytest.raises(AgentFault, match=rf"no.* connections on port {port} within 0.05 s"):
        ServedAgent(served.hangs, port, ready_s=0.05)()


def test_function_that_polls_has_no_port(served: ModuleType) -> None:
    """Nobody waits for one, and it cannot be called."""
    with Conversation(ServedAgent(served.hangs)) as conversation:
        assert conversation.hosted is not None
        conversation.hosted.check(turn=1)
        with pytest.raises(AgentError, match="it has no port"):
            conversation.reply("hi")


@pytest.mark.usefixtures("nothing_left")
def test_program_that_polls_has_no_port() -> None:
    """A program is started all the same, and its end is seen."""
    agent = HttpAgentSpec((sys.executable, "-S", "-c", "input()"), listens=False)
    assert agent.description.endswith("(polls)")
    with agent() as conversation:
        with pytest.raises(AgentError, match="it has no port"):
            conversation.deliver(Request("GET", "/"), turn=1)
        with pytest.raises(AgentFault, match=r"ended with status 1 in turn 4; its log ends"):
            watch(conversation, turn=4)


def test_port_of_somebody_else_is_no_fault_of_the_agent(served: ModuleType) -> None:
    """In a shared network two trials cannot both have it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AgentError, match=f"somebody else listens on port {port}"):
            ServedAgent(served.hangs, port)()


def test_reference_names_the_function_and_is_loaded_once(folder: str) -> None:
    """It travels as a name, is imported where it is loaded, and has the hash of its module."""
    agent = ServedAgent("serving:hangs", 8080, folders=(folder,))
    reference = refer_to(agent)
    assert reference.description == "http: serving:hangs (port 8080, POST /)"
    assert reference.hash == refer_to("serving:takes_text", path=(folder,)).hash
    assert not reference.is_program
    loaded = reference.load()
    assert loaded.serve is sys.modules["serving"].hangs
    assert declared_tools(loaded) is None
    loaded.serve.tools = ["book"]
    assert declared_tools(loaded) == {"book": None}


def test_function_of_a_notebook_travels_with_its_code() -> None:
    """What has no module is pickled by value."""

    def main() -> None:
        raise RuntimeError("here")

    reference = refer_to(ServedAgent(main))
    assert "main" in reference.description
    with Conversation(pickle.loads(pickle.dumps(reference)).load()) as conversation:
        hosted = conversation.hosted
        assert hosted is not None
        with pytest.raises(AgentFault, match="raised RuntimeError: here in turn 1"):
            watch(hosted, turn=1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("serving:takes_text", "a function without arguments that serves"),
        ("serving:missing", "no 'missing' there"),
        ("serving:STOP", "it is no function, but Event"),
    ],
)
def test_what_does_not_serve_is_refused(folder: str, name: str, words: str) -> None:
    """It is told when the agent is loaded, before any trial."""
    with pytest.raises(AgentError, match=words):
        refer_to(ServedAgent(name, 8080, folders=(folder,))).load()


def test_module_that_is_missing_is_refused_at_once(tmp_path: Path) -> None:
    """Nothing is loaded to find that out."""
    with pytest.raises(AgentError, match="no module 'nowhere_to_be_found'"):
        refer_to(ServedAgent("nowhere_to_be_found:main", 8080, folders=(str(tmp_path),)))
