"""OpenTelemetry spans as traces: encodings, dialects, and joining what is seen twice."""

from __future__ import annotations

import base64
import json
import random
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import TraceError
from evalkit.importers import ImportedTrial, read
from evalkit.spans.exported import nested, spans_of
from evalkit.trace import Document, Trace, Usage

TRACE = "0af7651916cd43dd8448eb211c80319c"


def _value(value: Any) -> dict[str, Any]:
    """Write OTLP's AnyValue."""
    match value:
        case bool():
            return {"boolValue": value}
        case int():
            return {"intValue": str(value)}
        case float():
            return {"doubleValue": value}
        case list():
            return {"arrayValue": {"values": [_value(item) for item in value]}}
    return {"stringValue": value}


def _span(
    number: int, attributes: dict[str, Any], *, parent: int | None = None, **fields: Any
) -> dict[str, Any]:
    """Write one span of one second that starts at ``number`` seconds."""
    span = {
        "traceId": TRACE,
        "spanId": f"{number:016x}",
        "name": f"span {number}",
        "kind": 1,
        "startTimeUnixNano": str(number * 10**9),
        "endTimeUnixNano": str((number + 1) * 10**9),
        "attributes": [{"key": k, "value": _value(v)} for k, v in attributes.items()],
        "status": {},
        **fields,
    }
    return span if parent is None else {**span, "parentSpanId": f"{parent:016x}"}


def _export(*spans: dict[str, Any], **resource: Any) -> dict[str, Any]:
    attributes = [{"key": k, "value": _value(v)} for k, v in resource.items()]
    scopes = [{"scope": {"name": "test"}, "spans": list(spans)}]
    return {"resourceSpans": [{"resource": {"attributes": attributes}, "scopeSpans": scopes}]}


def _trials(folder: Path, value: Any, **options: Any) -> list[ImportedTrial]:
    path = folder / "spans.json"
    path.write_text(json.dumps(value))
    return list(read("otel", path, **options).trials)


def _trace(folder: Path, *spans: dict[str, Any]) -> Trace:
    (trial,) = _trials(folder, _export(*spans))
    assert not trial.problem
    return trial.trace


_ASK = {"type": "tool_call", "id": "c1", "name": "get_weather", "arguments": {"city": "Denver"}}
_USER = {"role": "user", "parts": [{"type": "text", "content": "Weather?"}]}
_ASKED = {"role": "assistant", "parts": [_ASK], "finish_reason": "tool_call"}
_ANSWERED = {
    "role": "tool",
    "parts": [{"type": "tool_call_response", "id": "c1", "response": "clear"}],
}
_SAID = {"role": "assistant", "parts": [{"type": "text", "content": "Clear."}]}


def _chat(prompt: list[Any], answer: list[Any], **more: Any) -> dict[str, Any]:
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "gen_ai.input.messages": json.dumps(prompt),
        "gen_ai.output.messages": json.dumps(answer),
        **more,
    }


def _flat(prefix: str, messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Write messages as OpenInference does, flat and in a shuffled order."""
    names = {
        f"{prefix}.{number}.message.{key}": value
        for number, message in enumerate(messages)
        for key, value in message.items()
    }
    keys = list(names)
    random.Random(1).shuffle(keys)
    return {key: names[key] for key in keys}


_CALL = "tool_calls.0.tool_call"
_OI_ASKED = {
    "role": "assistant",
    f"{_CALL}.id": "c1",
    f"{_CALL}.function.name": "get_weather",
    f"{_CALL}.function.arguments": '{"city": "Denver"}',
}
_OI_TWICE = {
    **_OI_ASKED,
    "contents.0.message_content.type": "tool_use",
    "contents.0.tool_call.id": "c1",
    "contents.0.tool_call.function.name": "get_weather",
    "contents.0.tool_call.function.arguments": '{"city": "Denver"}',
}
_OI_TOOL = {"role": "tool", "tool_call_id": "c1", "content": "clear"}
_OI_USER = {"role": "user", "content": "Weather?"}
_OI_SAID = {
    "role": "assistant",
    "contents.0.message_content.type": "text",
    "contents.0.message_content.text": "Clear.",
}


def _openinference(prompt: list[Any], answer: list[Any]) -> dict[str, Any]:
    return {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        **_flat("llm.input_messages", prompt),
        **_flat("llm.output_messages", answer),
    }


def _traceloop(prompt: list[dict[str, Any]], answer: list[dict[str, Any]]) -> dict[str, Any]:
    listed = (("gen_ai.prompt", prompt), ("gen_ai.completion", answer))
    return {"llm.request.type": "chat", "gen_ai.request.model": "m"} | {
        f"{prefix}.{number}.{key}": value
        for prefix, messages in listed
        for number, message in enumerate(messages)
        for key, value in message.items()
    }


_TL_ASKED = {
    "role": "assistant",
    "finish_reason": "tool_calls",
    "tool_calls.0.id": "c1",
    "tool_calls.0.name": "get_weather",
    "tool_calls.0.arguments": '{"city": "Denver"}',
}


def _vercel(prompt: list[Any], **response: Any) -> dict[str, Any]:
    return {
        "ai.operationId": "ai.generateText.doGenerate",
        "ai.model.id": "m",
        "ai.prompt.messages": json.dumps(prompt),
        **{f"ai.response.{key}": value for key, value in response.items()},
    }


_V_CALL = {"toolCallId": "c1", "toolName": "get_weather", "input": {"city": "Denver"}}
_V_OUTPUT = {"type": "text", "value": "clear"}
_V_HISTORY = [
    {"role": "user", "content": [{"type": "text", "text": "Weather?"}]},
    {"role": "assistant", "content": [{"type": "tool-call", **_V_CALL}]},
    {
        "role": "tool",
        "content": [
            {"type": "tool-result", "toolCallId": "c1", "toolName": "get_weather",
             "output": _V_OUTPUT}
        ],
    },
]  # fmt: skip

_OLD_PROMPT = [
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": None, "tool_calls": [
        {"id": "c1", "function": {"name": "get_weather", "arguments": '{"city": "Denver"}'}}]},
    {"role": "tool", "tool_call_id": "c1", "content": "clear"},
]  # fmt: skip


def _old(prompt: list[Any], answer: list[Any]) -> dict[str, Any]:
    return {
        "gen_ai.system": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.prompt": json.dumps(prompt),
        "gen_ai.completion": json.dumps(answer),
    }


DIALECTS = {
    "gen_ai": (
        _chat([_USER], [_ASKED]),
        _chat([_USER, _ASKED, _ANSWERED], [_SAID]),
    ),
    "openinference": (
        _openinference([_OI_USER], [_OI_ASKED]),
        _openinference([_OI_USER, _OI_ASKED, _OI_TOOL], [_OI_SAID]),
    ),
    "openinference-anthropic": (
        _openinference([_OI_USER], [_OI_TWICE]),
        _openinference([_OI_USER, _OI_TWICE, _OI_TOOL], [_OI_SAID]),
    ),
    "traceloop": (
        _traceloop([_OI_USER], [_TL_ASKED]),
        _traceloop([_OI_USER, _TL_ASKED, _OI_TOOL], [{"role": "assistant", "content": "Clear."}]),
    ),
    "vercel": (
        _vercel(_V_HISTORY[:1], toolCalls=json.dumps([_V_CALL])),
        _vercel(_V_HISTORY, text="Clear."),
    ),
    "old": (
        _old(_OLD_PROMPT[:1], [_OLD_PROMPT[1]]),
        _old(_OLD_PROMPT, [{"role": "assistant", "content": "Clear."}]),
    ),
}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_otel_every_dialect_tells_the_same_story(tmp_path: Path, dialect: str) -> None:
    """Two model spans of one loop give one turn, one call with its result, and one reply."""
    asked, said = DIALECTS[dialect]
    trace = _trace(tmp_path, _span(3, said), _span(1, asked))
    assert [(t.user, t.replies) for t in trace.turns] == [("Weather?", ("Clear.",))]
    assert [(c.name, c.args, c.status, c.result, c.id) for c in trace.tool_calls] == [
        ("get_weather", {"city": "Denver"}, "ok", "clear", "c1")
    ]
    assert [call.model for call in trace.model_calls] == ["m", "m"]
    assert trace.tools_observed
    assert trace.models_observed


def test_otel_reads_messages_from_events(tmp_path: Path) -> None:
    """Message events, an older way to keep content, are read too."""
    choice = {"message": json.dumps({"role": "assistant", "content": "Clear."}), "index": 0}
    events = [
        {"name": name, "attributes": [{"key": k, "value": _value(v)} for k, v in data.items()]}
        for name, data in (
            ("gen_ai.system.message", {"content": "Be kind."}),
            ("gen_ai.user.message", {"content": "Weather?"}),
            ("gen_ai.choice", choice),
        )
    ]
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
    trace = _trace(tmp_path, _span(1, attributes, events=events))
    assert [(t.user, t.replies) for t in trace.turns] == [("Weather?", ("Clear.",))]
    assert trace.metadata["system"] == "Be kind."


_TOOL_SPANS = {
    "gen_ai": {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get_weather",
        "gen_ai.tool.call.id": "c1",
        "gen_ai.tool.call.arguments": '{"city": "Denver"}',
        "gen_ai.tool.call.result": "clear",
    },
    "openinference": {
        "openinference.span.kind": "TOOL",
        "tool.name": "get_weather",
        "input.value": '{"city": "Denver"}',
        "input.mime_type": "application/json",
        "output.value": "clear",
    },
    "traceloop": {
        "traceloop.span.kind": "tool",
        "traceloop.entity.name": "get_weather",
        "traceloop.entity.input": '{"args": [], "kwargs": {"city": "Denver"}}',
        "traceloop.entity.output": "clear",
    },
    "vercel": {
        "ai.operationId": "ai.toolCall",
        "ai.toolCall.name": "get_weather",
        "ai.toolCall.id": "c1",
        "ai.toolCall.args": '{"city": "Denver"}',
        "ai.toolCall.result": "clear",
    },
}


@pytest.mark.parametrize("dialect", _TOOL_SPANS)
def test_otel_joins_a_call_with_the_span_of_its_tool(tmp_path: Path, dialect: str) -> None:
    """A call that is asked for and a tool that runs are one call, with the tool's duration."""
    trace = _trace(tmp_path, _span(1, _chat([_USER], [_ASKED])), _span(2, _TOOL_SPANS[dialect]))
    (call,) = trace.tool_calls
    assert (call.status, call.result, call.duration_s) == ("ok", "clear", 1.0)
    assert call.span_id == f"{2:016x}"


@pytest.mark.parametrize("dialect", _TOOL_SPANS)
def test_otel_tool_span_alone_is_a_call(tmp_path: Path, dialect: str) -> None:
    """Where no content of the model was captured, the tools' spans are the calls."""
    trace = _trace(tmp_path, _span(2, _TOOL_SPANS[dialect]))
    (call,) = trace.tool_calls
    assert (call.name, call.args, call.result) == ("get_weather", {"city": "Denver"}, "clear")
    assert trace.tools_observed
    assert not trace.models_observed


def test_otel_failed_tool_span_is_a_failed_call(tmp_path: Path) -> None:
    """The tool's own span knows that the tool raised, and what."""
    exception = {
        "name": "exception",
        "attributes": [{"key": "exception.message", "value": {"stringValue": "no such city"}}],
    }
    attributes = {k: v for k, v in _TOOL_SPANS["gen_ai"].items() if not k.endswith("result")}
    failed = _span(2, attributes, status={"code": 2}, events=[exception])
    (call,) = _trace(tmp_path, _span(1, _chat([_USER], [_ASKED])), failed).tool_calls
    assert (call.status, call.result) == ("error", "no such city")


def test_otel_repeated_calls_with_one_id_stay_two(tmp_path: Path) -> None:
    """A call made twice is two calls, though id, name and arguments are the same."""
    again = [_USER, _ASKED, _ANSWERED]
    trace = _trace(
        tmp_path,
        _span(1, _chat([_USER], [_ASKED])),
        _span(2, _chat(again, [_ASKED])),
        _span(3, _chat([*again, _ASKED, _ANSWERED], [_SAID])),
    )
    assert [(call.status, call.result) for call in trace.tool_calls] == [("ok", "clear")] * 2


def test_otel_calls_carry_their_turn(tmp_path: Path) -> None:
    """A second question begins a second turn, and its calls belong to it."""
    more = {"role": "user", "parts": [{"type": "text", "content": "And now?"}]}
    later = {**_ASKED, "parts": [{**_ASK, "id": "c2"}]}
    trace = _trace(
        tmp_path,
        _span(1, _chat([_USER], [_ASKED])),
        _span(2, _chat([_USER, _ASKED, _ANSWERED], [_SAID])),
        _span(3, _chat([_USER, _ASKED, _ANSWERED, _SAID, more], [later])),
    )
    assert [turn.user for turn in trace.turns] == ["Weather?", "And now?"]
    assert [(call.id, call.turn) for call in trace.tool_calls] == [("c1", 0), ("c2", 1)]


def test_otel_side_conversation_adds_calls_but_no_replies(tmp_path: Path) -> None:
    """A sub-agent's own conversation is not what the user sees; its calls count."""
    task = {"role": "user", "parts": [{"type": "text", "content": "look it up"}]}
    found = {**_ASKED, "parts": [{**_ASK, "id": "s1", "name": "search"}]}
    trace = _trace(
        tmp_path,
        _span(1, _chat([_USER], [_ASKED])),
        _span(2, _chat([task], [found])),
        _span(3, _chat([_USER, _ASKED, _ANSWERED], [_SAID])),
    )
    assert [(t.user, t.replies) for t in trace.turns] == [("Weather?", ("Clear.",))]
    assert [call.name for call in trace.tool_calls] == ["get_weather", "search"]


def test_otel_changing_system_prompt_is_still_one_conversation(tmp_path: Path) -> None:
    """A system prompt with the time in it does not make calls count twice."""
    system = [{"role": "system", "parts": [{"type": "text", "content": f"{n}h"}]} for n in (1, 2)]
    trace = _trace(
        tmp_path,
        _span(1, _chat([system[0], _USER], [_ASKED])),
        _span(2, _chat([system[1], _USER, _ASKED, _ANSWERED], [_SAID])),
    )
    assert len(trace.tool_calls) == 1
    assert trace.replies == ("Clear.",)


def test_otel_wrapped_model_span_is_one_model_call(tmp_path: Path) -> None:
    """Two libraries that see one request give nested spans: the inner one counts."""
    usage = {"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 2}
    outer = _span(1, _openinference([_OI_USER], [_OI_SAID]))
    inner = _span(2, _chat([_USER], [_SAID], **usage), parent=1)
    trace = _trace(tmp_path, outer, inner)
    assert [call.usage for call in trace.model_calls] == [Usage(5, 2)]
    assert trace.replies == ("Clear.",)


@pytest.mark.parametrize(
    ("attributes", "usage"),
    [
        ({"gen_ai.usage.input_tokens": 5, "gen_ai.usage.output_tokens": 2}, Usage(5, 2)),
        ({"gen_ai.usage.prompt_tokens": 5, "gen_ai.usage.completion_tokens": 2}, Usage(5, 2)),
        ({"llm.token_count.prompt": 5, "llm.token_count.completion": 2}, Usage(5, 2)),
        ({"ai.usage.promptTokens": 5, "ai.usage.completionTokens": 2}, Usage(5, 2)),
        ({"gen_ai.usage.cache_read.input_tokens": 0}, Usage(cache_read_tokens=0)),
        ({"llm.cost.total": 0.25}, Usage(cost_usd=0.25)),
        ({}, None),
    ],
)
def test_otel_usage_names(tmp_path: Path, attributes: dict[str, Any], usage: object) -> None:
    """Tokens are read under current and old names; what is not said is unknown."""
    trace = _trace(tmp_path, _span(1, _chat([_USER], [_SAID], **attributes)))
    assert trace.model_calls[0].usage == usage


@pytest.mark.parametrize("reason", ["tool_call", "tool_use", "tool_calls", "tool-calls"])
def test_otel_calls_that_were_not_captured_are_not_observed(tmp_path: Path, reason: str) -> None:
    """A model that stopped for a tool, with no call to be seen, was not observed."""
    attributes = {"gen_ai.response.finish_reasons": [reason]}
    trace = _trace(tmp_path, _span(1, _chat([_USER], [_SAID], **attributes)))
    assert trace.model_calls[0].finish_reason == reason
    assert not trace.tools_observed


def test_otel_without_content_nothing_is_observed(tmp_path: Path) -> None:
    """A model span without messages shows no tool calls: nobody looked."""
    trace = _trace(tmp_path, _span(1, {"gen_ai.operation.name": "chat"}))
    assert (trace.tools_observed, trace.turns) == (False, ())
    assert trace.models_observed


def test_otel_malformed_arguments_are_a_failed_call(tmp_path: Path) -> None:
    """Arguments cut short make a failed call with the raw text."""
    cut = {**_OI_ASKED, f"{_CALL}.function.arguments": '{"city": "Den'}
    trace = _trace(tmp_path, _span(1, _openinference([_OI_USER], [cut])))
    (call,) = trace.tool_calls
    assert (call.args, call.raw_args, call.status) == (None, '{"city": "Den', "error")


@pytest.mark.parametrize(
    "attributes",
    [
        {
            "openinference.span.kind": "RETRIEVER",
            "retrieval.documents.1.document.id": "b",
            "retrieval.documents.0.document.id": "a",
            "retrieval.documents.0.document.score": 0.5,
            "retrieval.documents.0.document.content": "text",
        },
        {
            "gen_ai.operation.name": "retrieval",
            "gen_ai.retrieval.documents": json.dumps(
                [{"id": "a", "score": 0.5, "content": "text"}, {"id": "b"}]
            ),
        },
    ],
)
def test_otel_retriever_has_its_documents(tmp_path: Path, attributes: dict[str, Any]) -> None:
    """A retriever's span keeps its documents in their order."""
    span = _trace(tmp_path, _span(1, attributes)).spans[0]
    assert span.kind == "retriever"
    assert span.documents == (Document("a", 0.5, "text"), Document("b"))


def test_otel_spans_form_a_tree(tmp_path: Path) -> None:
    """Spans keep parents, kinds and times, so that the tree can be walked."""
    agent = _span(1, {"gen_ai.operation.name": "invoke_agent"})
    trace = _trace(
        tmp_path,
        _span(3, _TOOL_SPANS["gen_ai"], parent=1),
        agent,
        _span(2, _chat([_USER], [_ASKED]), parent=1),
    )
    (root,) = trace.span_tree()
    assert [(s.kind, s.start_s, s.duration_s) for s in root.walk()] == [
        ("agent", 1.0, 1.0),
        ("model", 2.0, 1.0),
        ("tool", 3.0, 1.0),
    ]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, "ok"),
        ({"code": 0}, "ok"),
        ({"code": 1}, "ok"),
        ({"code": "STATUS_CODE_OK"}, "ok"),
        ({"code": 2}, "error"),
        ({"code": "STATUS_CODE_ERROR", "message": "x"}, "error"),
    ],
)
def test_otel_status_is_name_or_number(
    tmp_path: Path, status: dict[str, Any], expected: str
) -> None:
    """Enums come as names and as numbers; unset means ended without an error."""
    assert _trace(tmp_path, _span(1, {}, status=status)).spans[0].status == expected


def test_otel_span_that_never_ended_has_unknown_status(tmp_path: Path) -> None:
    """A span without an end, and without a status, may have come to anything."""
    span = _trace(tmp_path, _span(1, {}, endTimeUnixNano="0")).spans[0]
    assert (span.status, span.end_s, span.duration_s) == ("unknown", None, None)


def test_otel_ids_are_hex_or_base64(tmp_path: Path) -> None:
    """Base64 ids, as naive dumps of protobuf write them, are the same ids."""

    def encoded(text: str) -> str:
        return base64.b64encode(bytes.fromhex(text)).decode()

    child = _span(2, {}, parent=1)
    for key in ("traceId", "spanId", "parentSpanId"):
        child[key] = encoded(child[key])
    trace = _trace(tmp_path, _span(1, {}), child)
    assert [len(root.children) for root in trace.span_tree()] == [1]


def test_otel_reads_snake_case(tmp_path: Path) -> None:
    """Protobuf's own field names are read like the camel-case ones."""
    span = {
        "trace_id": TRACE, "span_id": f"{1:016x}", "name": "x",
        "start_time_unix_nano": 10**9, "end_time_unix_nano": 2 * 10**9,
        "attributes": [{"key": "llm.request.type", "value": {"string_value": "chat"}},
                       {"key": "gen_ai.usage.input_tokens", "value": {"int_value": "7"}}],
    }  # fmt: skip
    value = {"resource_spans": [{"scope_spans": [{"spans": [span]}]}]}
    (trial,) = _trials(tmp_path, value)
    assert trial.trace.model_calls[0].usage == Usage(input_tokens=7)
    assert trial.trace.spans[0].duration_s == 1.0


def test_otel_reads_dumps_of_sdks(tmp_path: Path) -> None:
    """Spans dumped by the JavaScript and Python SDKs and by Phoenix are read."""
    javascript = {
        "name": "x", "spanContext": {"traceId": TRACE, "spanId": f"{1:016x}"},
        "attributes": _vercel(_V_HISTORY[:1], text="Clear."), "status": {"code": 0},
        "startTime": [1, 500], "endTime": [2, 500], "events": [],
    }  # fmt: skip
    phoenix = {
        "name": "y", "context": {"trace_id": TRACE, "span_id": f"{2:016x}"}, "span_kind": "TOOL",
        "parent_id": f"{1:016x}", "start_time": "1970-01-01T00:00:03Z",
        "end_time": "1970-01-01T00:00:04+00:00", "status_code": "OK",
        "attributes": {"tool": {"name": "f"}, "input.value": "{}"},
    }  # fmt: skip
    (trial,) = _trials(tmp_path, [javascript, phoenix])
    assert [(s.kind, s.duration_s, s.status) for s in trial.trace.spans] == [
        ("model", 1.0, "ok"),
        ("tool", 1.0, "ok"),
    ]
    assert trial.trace.reply == "Clear."
    assert trial.trace.tool_calls[0].name == "f"


def test_otel_one_trace_over_many_lines(tmp_path: Path) -> None:
    """The collector writes a batch a line: spans of one trace are put together again."""
    asked, said = DIALECTS["gen_ai"]
    path = tmp_path / "spans.jsonl"
    lines = [_export(_span(2, said)), _export(_span(1, asked))]
    path.write_text("\n".join(map(json.dumps, lines)))
    (trial,) = read("otel", path).trials
    assert (trial.scenario, len(trial.trace.model_calls)) == ("spans", 2)


def test_otel_scenario_comes_from_an_attribute(tmp_path: Path) -> None:
    """The scenario may stand in the resource or on a span; else the file names it."""
    other = {**_span(2, {}), "traceId": "ab" * 16}
    named = _trials(tmp_path, _export(_span(1, {}), other, **{"evalkit.scenario": "s"}))
    assert [(t.scenario, t.trial) for t in named] == [("s", 0), ("s", 1)]
    on_span = _trials(tmp_path, _export(_span(1, {"case": "t"})), scenario_key="case")
    assert on_span[0].scenario == "t"
    unnamed = _trials(tmp_path, _export(_span(1, {}), other))
    assert [t.scenario for t in unnamed] == ["spans-0af76519", "spans-abababab"]


def test_otel_broken_line_is_a_trial_of_its_own(tmp_path: Path) -> None:
    """A line that cannot be read keeps a place in the run, with the reason."""
    path = tmp_path / "spans.jsonl"
    path.write_text(json.dumps(_export(_span(1, {}))) + '\n{"resourceSpans": [{"sco')
    good, broken = read("otel", path).trials
    assert (good.problem, broken.scenario) == ("", "spans-2")
    assert "spans.jsonl:2: not JSON" in broken.problem


@pytest.mark.parametrize(
    "span",
    [
        {"name": "x"},
        {**_span(1, {}), "attributes": 7},
        {**_span(1, {}), "startTimeUnixNano": "soon"},
    ],
)
def test_otel_span_that_cannot_be_read_is_told(tmp_path: Path, span: dict[str, Any]) -> None:
    """A file with nothing but a broken span is refused with the span's place."""
    with pytest.raises(TraceError, match=r"resourceSpans\[0\].scopeSpans\[0\].spans\[0\]"):
        _trials(tmp_path, _export(span))


def test_otel_export_without_spans_is_refused(tmp_path: Path) -> None:
    """An export of nothing is an error, never an empty run."""
    with pytest.raises(TraceError, match="without a single span"):
        _trials(tmp_path, _export())


def test_otel_nested_sorts_by_number() -> None:
    """The tenth message comes after the ninth, whatever the order of attributes."""
    flat = {f"m.{n}.role": str(n) for n in reversed(range(12))}
    assert [item["role"] for item in nested(flat, "m")] == [str(n) for n in range(12)]


def test_otel_any_values_of_every_kind() -> None:
    """Every kind of attribute value is read, integers exactly."""
    values = {
        "i": {"intValue": "9007199254740993"},
        "n": {"intValue": 7},
        "d": {"doubleValue": 0.5},
        "b": {"boolValue": False},
        "a": {"arrayValue": {"values": [{"stringValue": "x"}, {"intValue": "1"}]}},
        "k": {"kvlistValue": {"values": [{"key": "x", "value": {"stringValue": "y"}}]}},
        "e": {"arrayValue": {}},
        "z": {},
    }
    span = _span(1, {})
    span["attributes"] = [{"key": key, "value": value} for key, value in values.items()]
    (raw,) = spans_of(_export(span))
    assert raw.attributes == {
        "i": 9007199254740993, "n": 7, "d": 0.5, "b": False,
        "a": ["x", 1], "k": {"x": "y"}, "e": [], "z": None,
    }  # fmt: skip
