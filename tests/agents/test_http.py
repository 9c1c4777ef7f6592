"""Agents that are HTTP servers: real ones, in Python and Node, well behaved and badly."""

from __future__ import annotations

import json
import os
import pickle
import socket
import sys
import threading
import time
from http.server import HTTPServer

import pytest

from evalkit.agents import Conversation
from evalkit.agents.http import HttpAgentSpec
from evalkit.agents.protocol import AgentFault
from evalkit.errors import AgentError, UsageError
from evalkit.run import run_suite
from evalkit.suite import suite_from_data

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.fixture
def serves(folder):
    """Make an agent that is served in the way given."""

    def make(mode: str, **more) -> HttpAgentSpec:
        return HttpAgentSpec((sys.executable, "-S", "server.py", mode), folder, **more)

    return make


@pytest.fixture
def port() -> int:
    """Find a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return probe.getsockname()[1]


@pytest.fixture
def listens():
    """Give a function that says whether somebody listens on a port."""

    def check(port: int) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    return check


@pytest.fixture
def running(folder, monkeypatch):
    """Run an agent in this process, as one that somebody else has started; give its URL."""
    import importlib.util

    monkeypatch.setattr(sys, "argv", ["server.py", "tells_all"])
    spec = importlib.util.spec_from_file_location("served_agent", f"{folder}/server.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with HTTPServer(("127.0.0.1", 0), module.Agent) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/chat?key=secret"
        server.shutdown()
        thread.join()


def fault_of(agent: HttpAgentSpec) -> AgentFault:
    """Talk to an agent until it is at fault."""
    with pytest.raises(AgentFault) as caught:
        talk(agent)
    return caught.value


def talk(agent: HttpAgentSpec) -> None:
    """Say something."""
    with agent() as conversation:
        conversation.reply("hi")


def test_server_replies_turn_by_turn_and_is_gone(serves, port, listens):
    """A server is started, waited for, talked to, and leaves no port open."""
    with serves("echo", port=port)() as conversation:
        assert [conversation.reply(text).reply for text in ("a", "é\ud800")] == [
            "1: a",
            "2: é\ud800",
        ]
        assert listens(port)
    assert not listens(port)


def test_server_in_node_is_found_wherever_it_listens(folder):
    """A Node agent on `localhost` is reached, also where that is an IPv6 address."""
    agent = HttpAgentSpec(("node", "server.mjs"), folder, path="/chat")
    with Conversation(agent) as conversation:
        trace = conversation.reply("hello")
    assert trace.reply == "/chat heard hello ✓"
    assert (trace.tools_observed, trace.tool_calls) == (True, ())


def test_answer_holds_replies_tool_calls_and_state(serves):
    """All that the protocol knows arrives: several replies, calls with results, the state."""
    with serves("tells_all", path="/a b?x=1").open("weather.0") as conversation:
        trace = conversation.reply("rain?")
        state = conversation.state()
    assert trace.replies[0] == "one"
    told = json.loads(trace.replies[1])
    assert (told["text"], told["turn"], told["conversation_id"]) == ("rain?", 1, "weather.0")
    assert (told["path"], state) == ("/a%20b?x=1", told)
    (call,) = trace.tool_calls
    assert (call.name, call.args, call.result) == ("search", {"q": "rain?"}, [1, 2])


def test_port_may_stand_in_the_command(folder, listens):
    """`{port}` in a word becomes the port; without a port of its own, a free one."""
    agent = HttpAgentSpec((sys.executable, "server.py", "echo", "{port}"), folder)
    with agent() as one, agent() as other:
        assert [each.reply("hi").reply for each in (one, other)] == ["1: hi"] * 2


def test_any_success_is_an_answer(serves):
    """Frameworks answer a POST with 201, too."""
    with serves("created")() as conversation:
        assert conversation.reply("hi").reply == "made"


@pytest.mark.parametrize(
    ("mode", "code", "message"),
    [
        ("raises", "agent_raised", 'status 500 Internal Server Error: \'{"detail": "no such'),
        ("redirects", "bad_reply", "to 'http://192.0.2.1/', which is not followed"),
        ("not_json", "bad_reply", "application/json) is no JSON object: '<html>hello</html>'"),
        ("no_reply", "no_reply", '{"replies": ["...", ...]}: \'{"answer": "hello"}\''),
        ("tells_of_an_error", "agent_raised", "the model has no credit left"),
        ("huge", "reply_too_large", "more than 16,777,216 bytes"),
        ("breaks_off", "no_reply", "broke off the answer in turn 1 (IncompleteRead"),
        ("hangs_up", "no_reply", "broke off the answer in turn 1 (Remote end closed"),
        ("dies", "agent_exited", "ended with status 9 in turn 1; its log ends:\nout of memory"),
        ("dies_and_leaves_a_child", "agent_exited", "ended with status 9 in turn 1"),
        ("exits_at_once", "agent_exited", "ended with status 1 before its port"),
        ("exits_at_once", "agent_exited", "its log ends:\ncannot read config.yaml"),
    ],
)
def test_server_that_misbehaves_is_at_fault(serves, mode, code, message):
    """Each misbehaviour ends the trial soon, as the agent's fault, with what was received."""
    began = time.monotonic()
    fault = fault_of(serves(mode))
    assert fault.code == code
    assert message in fault.message.replace("127.0.0.1 - - ", "")
    assert time.monotonic() - began < 10


def test_server_that_never_answers_is_given_up(serves):
    """Without a byte for the time allowed, the agent is at fault."""
    fault = fault_of(serves("never_replies", timeout_s=0.3))
    assert (fault.code, fault.message) == ("no_reply", "the agent sent nothing in turn 1 for 0.3 s")


def test_server_that_never_listens_is_given_up(serves):
    """A port that does not open in time is the agent's fault."""
    fault = fault_of(serves("never_listens", ready_s=0.3))
    assert (fault.code, "did not accept connections" in fault.message) == ("no_reply", True)


def test_server_that_logs_a_lot_does_not_hang(serves, capfd):
    """What a server prints is passed on while it works."""
    with serves("logs_a_lot")() as conversation:
        assert conversation.reply("hi").reply == "ok"
    assert capfd.readouterr().err.count("x") >= 1_000_000


def test_server_that_ignores_sigterm_is_killed(serves, port, listens):
    """A server that does not want to end is ended."""
    with serves("ignores_sigterm", port=port)() as conversation:
        conversation.reply("hi")
    assert not listens(port)


def test_two_trials_never_share_a_server(serves, port):
    """A second trial on the same port is refused, before it could talk to the first one's."""
    agent = serves("echo", port=port)
    with agent() as conversation:
        with pytest.raises(AgentError, match=r"another trial.*--parallel 1"):
            agent()
        conversation.reply("hi")
    with agent() as conversation:
        conversation.reply("hi")


def test_port_of_somebody_else_is_refused(serves):
    """A server that was there before is not taken for the agent."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        agent = serves("echo", port=other.getsockname()[1])
        with pytest.raises(AgentError, match="somebody else listens on port"):
            agent()


def test_url_is_talked_to_without_a_process(running, monkeypatch):
    """An agent that runs already is posted to at its URL, through no proxy, under unique ids."""
    monkeypatch.setenv("http_proxy", "http://192.0.2.1:9")
    agent = HttpAgentSpec(url=running)
    told = []
    for _ in range(2):
        with agent() as conversation:
            told.append(json.loads(conversation.reply("hi").replies[1]))
    assert [each["path"] for each in told] == ["/chat?key=secret"] * 2
    assert told[0]["pid"] == os.getpid()
    assert told[0]["conversation_id"] != told[1]["conversation_id"]


def test_url_is_for_the_live_lane(running):
    """A shared server cannot be run in a lane that promises a fresh process."""
    agent = HttpAgentSpec(url=running)
    agent.check_lane("live")
    with pytest.raises(UsageError, match="give `command` and `port`"):
        agent.check_lane("contract")
    HttpAgentSpec(("node", "x.js")).check_lane("contract")


def test_url_that_nobody_serves_is_not_the_agents_fault(port):
    """Where nothing listens there is no agent to blame."""
    with pytest.raises(AgentError, match=f"http://127.0.0.1:{port}/: .*refused"):
        talk(HttpAgentSpec(url=f"http://127.0.0.1:{port}"))


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("localhost:8080", "write it as http://host:port/path"),
        ("http://host:port/", "is no URL"),
        ("http:///chat", "is no URL"),
        ("https://me:pw@host/", "holds a user or a password"),
    ],
)
def test_url_that_is_none_is_refused(url, message):
    """A URL is looked at before anything runs."""
    with pytest.raises(AgentError, match=message):
        HttpAgentSpec(url=url).refer()


def test_spec_travels_and_names_no_secret(serves, folder, port):
    """The reference rebuilds the agent; its description holds no query."""
    agent = serves("echo", port=port)
    reference = pickle.loads(pickle.dumps(agent.refer()))
    assert reference.load() == agent
    assert reference.description.endswith(f"server.py echo (port {port}, POST /)")
    assert reference.hash
    remote = HttpAgentSpec(url="https://agents.example.test/chat?key=secret").refer()
    assert remote.description == "http: https://agents.example.test:443/chat"
    with pytest.raises(AgentError, match="must begin with /"):
        serves("echo", path="chat").refer()
    with pytest.raises(AgentError, match="no program 'nodee'"):
        HttpAgentSpec(("nodee", "server.mjs"), folder).refer()


def test_trials_of_a_server_run_in_their_own_processes(serves, tmp_path):
    """A suite runs a server as it runs a function; each trial has one of its own."""
    scenario = {
        "id": "one",
        "turns": [{"user": "a"}],
        "expect": {"tools": [{"search": {"q": "a"}}]},
    }
    suite = suite_from_data({"suite": "served", "scenarios": [scenario]}, folder=tmp_path)
    agent = serves("tells_all")
    run = run_suite(suite, agent=agent, lane="live", n_trials=3, n_parallel=2, out=tmp_path)
    assert list(run.trials["status"]) == ["passed"] * 3
    pids = {json.loads(run.trace("one", n).replies[1])["pid"] for n in range(3)}
    assert len(pids) == 3
