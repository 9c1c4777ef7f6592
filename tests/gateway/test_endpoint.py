"""The endpoint as a whole: what is recorded and when, findings, restarts, determinism."""

from __future__ import annotations

import json
import threading
import time
from typing import Any

import pytest

from evalkit.gateway import Endpoint
from evalkit.ledger import Event, decode, digest, event_line
from evalkit.reading import trace_of
from evalkit.recording import Recorder
from evalkit.serving.http1 import HttpRequest

HELLO: dict[str, Any] = {
    "model": "m",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "Hello."}],
    "tools": [{"name": name, "input_schema": {"type": "object"}} for name in ("get_weather", "t")],
}
WEATHER = {"tool": "get_weather", "args": {"city": "Denver"}}


def _turn(*steps: Any) -> dict[str, Any]:
    return {"": {"when": None, "steps": list(steps)}}


def _request(body: Any, target: str = "/v1/messages") -> HttpRequest:
    return HttpRequest("POST", target, {}, json.dumps(body).encode(), keeps_open=True)


def test_events_are_safe_before_the_answer_is_given() -> None:
    """All events of a request are recorded, then settled, and only then is there an answer."""
    order: list[str] = []
    recorder = Recorder(lambda event: order.append(event.kind))
    endpoint = Endpoint(
        [_turn({"tools": [WEATHER]})], recorder.event, settle=lambda: order.append("settled")
    )
    endpoint.answer(_request(HELLO))
    assert order == ["model_call", "model_reply", "tool_call", "settled"]
    order.clear()
    endpoint.answer(_request(HELLO))
    assert order == ["model_call", "fault", "model_reply", "settled"]


def test_left_over_steps_are_safe_at_once() -> None:
    """What is found between requests waits for no later request."""
    order: list[str] = []
    recorder = Recorder(lambda event: order.append(event.kind))
    turns = [_turn({"text": "a"}), _turn({"text": "b"}), _turn()]
    endpoint = Endpoint(turns, recorder.event, settle=lambda: order.append("settled"))
    endpoint.begin_turn(1)
    assert order == ["fault", "settled"]
    endpoint.begin_turn(2)
    endpoint.finish()
    assert order == ["fault", "settled"] * 2


def test_nothing_is_answered_that_could_not_be_recorded() -> None:
    """Where the ledger cannot be written, the error comes out and no step is answered."""

    def refuse(kind: str, data: Any, *, span: str = "") -> None:
        raise BrokenPipeError("the controller is gone")

    with pytest.raises(BrokenPipeError):
        Endpoint([_turn({"text": "never"})], refuse).answer(_request(HELLO))


def test_client_of_a_lost_ledger_gets_no_answer(serve) -> None:
    """Over the socket such a request ends with a closed connection."""

    def refuse(*_: Any, **__: Any) -> None:
        raise BrokenPipeError

    gateway = serve([{"text": "never"}])
    object.__setattr__(gateway.endpoint._witness, "record", refuse)
    with pytest.raises(ConnectionError):
        gateway.post("/v1/messages", HELLO)


def test_unscripted_call_fails_the_trial_even_if_swallowed(serve) -> None:
    """One 400 that is not retried, an event, and a finding with the same sentence."""
    gateway = serve([{"text": "only one"}])
    gateway.post("/v1/messages", HELLO)
    answer = gateway.post("/v1/messages", HELLO)
    assert (answer.status, answer.headers["x-should-retry"]) == (400, "false")
    [finding] = gateway.finish()
    assert (finding.code, finding.status, finding.turn) == ("unscripted_call", "failed", 0)
    assert finding.reason.startswith("UNSCRIPTED: all 1 step(s)")
    assert answer.json["error"]["message"] == finding.reason
    [fault] = gateway.of_kind("fault")
    assert (fault["fault"], fault["injected"], fault["call"]) == ("unscripted_call", False, 1)
    assert fault["reason"] == finding.reason
    assert gateway.trace.model_calls[1].status == "denied"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/v1/embeddings"),
        ("GET", "/v1/models"),
        ("GET", "/v1/messages"),
        ("POST", "/v1beta/models/gemini-x:embedContent"),
        ("POST", "/v1/responses/resp_1/cancel"),
        ("DELETE", "/v1/chat/completions"),
        ("POST", "/"),
    ],
)
def test_other_endpoints_answer_nothing(serve, method: str, path: str) -> None:
    """Whatever is no model call of a known format is unscripted, with all that was sent."""
    gateway = serve([{"text": "never"}])
    answer = gateway.request(method, path, b'{"input": "secret"}', {})
    assert answer.status == 400
    assert f"UNSCRIPTED: nothing answers {method} {path}" in answer.json["error"]["message"]
    [call] = gateway.of_kind("model_call")
    assert "secret" in call["prompt"]["body"]
    assert gateway.finish()[0].code == "unscripted_call"


def test_left_over_steps_are_events_and_findings(serve) -> None:
    """Steps that a turn did not use fail the trial, at its next turn or its end."""
    gateway = serve(turns=[_turn({"text": "a"}, {"tools": [WEATHER]}), _turn({"text": "b"})])
    gateway.endpoint.begin_turn(0)
    gateway.post("/v1/messages", HELLO)
    gateway.endpoint.begin_turn(1)
    assert [finding.turn for finding in gateway.endpoint.findings] == [0]
    findings = gateway.finish()
    assert [finding.code for finding in findings] == ["left_over_steps"] * 2
    assert findings[0].reason == (
        "turn 1: 1 step(s) were never asked for: tool get_weather {'city': 'Denver'}"
    )
    assert [fault["turn"] for fault in gateway.of_kind("fault")] == [0, 1]


def test_calls_belong_to_the_turn_that_goes_on(serve) -> None:
    """Model calls and tool calls bear the turn in which they were made."""
    gateway = serve(turns=[_turn({"text": "a"}), _turn({"tools": [WEATHER]})])
    for turn in (0, 1):
        gateway.endpoint.begin_turn(turn)
        gateway.post("/v1/messages", HELLO)
    assert [call.turn for call in gateway.trace.model_calls] == [0, 1]
    assert [call.turn for call in gateway.trace.tool_calls] == [1]


def test_a_fault_of_the_gateway_is_nobody_else_s() -> None:
    """Where evalkit itself fails, the trial is incomplete and the agent is told at once."""
    events: list[Event] = []
    endpoint = Endpoint([_turn()], Recorder(events.append).event)
    delivery = endpoint.broken(RuntimeError("a bug"))
    assert (delivery.status, delivery.headers["x-should-retry"]) == (500, "false")
    [finding] = endpoint.finish()
    assert (finding.code, finding.status) == ("gateway_failed", "incomplete")
    assert "RuntimeError: a bug" in finding.reason
    assert events[0].data["injected"] is False


def _conversation(gateway: Any) -> list[bytes]:
    """Hold one conversation over all wire formats; give the bytes of all answers."""
    answers = []
    tool = {"type": "function", "name": "get_weather"}
    forms = {
        "/v1/messages": {"messages": HELLO["messages"], "tools": HELLO["tools"]},
        "/v1/chat/completions": {
            "messages": HELLO["messages"],
            "tools": [{"type": "function", "function": tool}],
        },
        "/v1/responses": {"input": HELLO["messages"], "tools": [tool]},
    }
    for path, asked in forms.items():
        for stream in (False, True):
            body = {"model": "m", "stream": stream, **asked}
            answers += [gateway.post(path, body).body for _ in range(3)]
    return answers


def test_same_conversation_gives_the_same_bytes(serve, monkeypatch) -> None:
    """Answers, and the ledger's digest, are identical byte for byte when run again."""
    monkeypatch.setattr("evalkit.gateway.endpoint.time.time", lambda: 1_767_603_600.5)
    steps = [
        {"tools": [WEATHER, WEATHER]},
        {"fault": "rate_limited"},
        {"thinking": "t", "text": "x"},
    ]
    first, second = serve(steps * 6), serve(steps * 6)
    assert _conversation(first) == _conversation(second)
    assert digest(first.events) == digest(second.events)
    assert b"1767603600" in b"".join(_conversation(serve(steps * 6)))


def test_parallel_requests_are_numbered_one_by_one(serve, in_threads) -> None:
    """Many threads at a time: every step once, numbers without gaps, events side by side."""
    steps = [{"tools": [{"tool": "t", "args": {"n": number}}]} for number in range(40)]
    gateway = serve(steps)
    answers = in_threads(lambda _: gateway.post("/v1/messages", HELLO), range(40))
    got = sorted(answer.json["content"][0]["input"]["n"] for answer in answers)
    assert got == list(range(40))
    assert gateway.kinds == ["model_call", "model_reply", "tool_call"] * 40
    assert [call["call"] for call in gateway.of_kind("model_call")] == list(range(40))
    assert [event.seq for event in gateway.events] == list(range(1, 121))
    assert len({answer.json["id"] for answer in answers}) == 40


def test_record_and_settle_are_called_by_one_thread_at_a_time(in_threads) -> None:
    """A slow ledger sees one request after the other, never two mixed."""
    busy, order = threading.Lock(), []

    def record(kind: str, *_: Any, **__: Any) -> None:
        assert busy.acquire(blocking=False), "two threads at a time"
        time.sleep(0.0005)  # lets any other thread in
        order.append(kind)
        busy.release()

    endpoint = Endpoint([_turn(*[{"text": "a"}] * 8)], record, settle=lambda: record("settled"))
    in_threads(lambda _: endpoint.answer(_request(HELLO)), range(8))
    assert order == ["model_call", "model_reply", "settled"] * 8


def test_a_trial_goes_on_after_its_agent_was_restarted() -> None:
    """Steps, numbers and open tool calls are what the ledger says, in a new process too."""
    turns = [_turn({"tools": [WEATHER]}, {"text": "It rains."}), _turn({"text": "Bye."})]
    events: list[Event] = []
    recorder = Recorder(events.append)
    before = Endpoint(turns, recorder.event)
    before.answer(_request(HELLO))

    after = Endpoint(turns, recorder.event)
    after.restore([_reread(event) for event in events], n_turns=1)
    results = [
        {"role": "assistant",
         "content": [{"type": "tool_use", "id": "toolu_0001", "name": "get_weather",
                      "input": {"city": "Denver"}}]},
        {"role": "user",
         "content": [{"type": "tool_result", "tool_use_id": "toolu_0001", "content": "rain"}]},
    ]  # fmt: skip
    body = HELLO | {"messages": [*HELLO["messages"], *results]}
    answer = json.loads(after.answer(_request(body)).body)
    assert answer["id"] == "msg_0002"
    assert answer["content"][0]["text"] == "It rains."
    after.begin_turn(1)
    after.answer(_request(HELLO))
    assert after.finish() == ()
    trace = trace_of(events)
    assert [call.result for call in trace.tool_calls] == ["rain"]
    assert len(trace.model_calls) == 3


def _reread(event: Event) -> Event:
    """Take an event through the bytes of a ledger."""
    record = decode(event_line(event).rstrip(b"\n"))
    return Event(record["seq"], record["kind"], record["data"], record.get("span", ""))


def test_events_of_a_call_share_its_span(serve) -> None:
    """Call, fault and reply have one span; a tool call and its result another."""
    gateway = serve([{"fault": "rate_limited"}, {"tools": [WEATHER]}])
    for _ in range(2):
        gateway.post("/v1/messages", HELLO)
    spans = [event.span for event in gateway.events]
    assert spans == ["model:0"] * 3 + ["model:1"] * 2 + ["tool:0"]
    assert gateway.of_kind("tool_call")[0]["asked_by"] == 1
