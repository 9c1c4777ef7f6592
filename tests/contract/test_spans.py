"""Tools that are traced with OpenTelemetry are seen where they run, with unmodified agents."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import evalkit as ek
from evalkit.diffing import leaves_that_differ
from evalkit.reading import trace_of
from evalkit.trace import Trace

pytestmark = [pytest.mark.sdk, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")]

WEATHER = {"city": "Seattle"}
SEARCH = {"destination": "Seattle"}
BOOKING = {"flight_id": "AA123", "date": "Friday"}
MODEL: Sequence[Mapping[str, Any]] = [
    {"tools": [{"get_weather": WEATHER}, {"search": SEARCH}]},
    {"tool": "book", "args": BOOKING},
    {"text": "Done."},
]
RAN = [("get_weather", WEATHER), ("search", SEARCH), ("book", BOOKING)]
CALLS: Sequence[dict[str, Any]] = [{"tool": name, "args": args} for name, args in RAN]
TOOLS = {"order": "in_order", "extra_calls": "forbid", "calls": CALLS}
PASSING: Mapping[str, Mapping[str, str]] = {
    "plain": {},
    "plain-simple": {"PROCESSOR": "simple"},
    "plain-json": {"ENCODING": "json"},
    "plain-simple-json": {"ENCODING": "json", "PROCESSOR": "simple"},
    "plain-gzip": {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"},
    "silent": {},
    "openinference": {},
    "shuts_down": {},
}
FAULTS = {
    "skips": "asked for but never run: search {'destination': 'Seattle'}",
    "meddles": "run without being asked for: book {'flight_id': 'ZZ999', 'date': 'Monday'}",
}
HAS_JSON = importlib.util.find_spec("opentelemetry.exporter.otlp.json") is not None


def need_packages() -> None:
    """Skip where OpenTelemetry is missing; in CI that is a failure."""
    names = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http", "anthropic")
    try:
        missing = [name for name in names if importlib.util.find_spec(name) is None]
    except ModuleNotFoundError as error:
        missing = [str(error.name)]
    if missing and os.environ.get("EVALKIT_REQUIRE_ALL") == "1":
        pytest.fail(f"EVALKIT_REQUIRE_ALL=1, but {missing} are not installed")
    if missing:
        pytest.skip(f"{', '.join(missing)}: not installed")


def scenario(name: str, env: Mapping[str, str] = {}, **expect: Any) -> dict[str, Any]:
    """Write the scenario in which one agent books a flight."""
    return {
        "id": name,
        "input": "Book the flight.",
        "deadline": "60s",
        "env": {"VARIANT": name.partition("-")[0], **env},
        "model": MODEL,
        "expect": {"reply": {"equals": "Done."}, **expect},
    }


Runs = tuple[ek.Run, ek.Run]


def run_twice(
    write_suite: Callable[..., Path], folder: Path, told: Sequence[Any], *, at_import: bool
) -> Runs:
    """Run scenarios twice, traced from the import of the agent on or from its first word."""
    suite = write_suite(folder / "suite", "chosen:agent", told)
    set_up = ("traced.set_up()\n", "") if at_import else ("", "    traced.set_up()\n")
    call = "    return getattr(traced, os.environ['VARIANT'])(text)\n"
    code = f"import os, traced\n{set_up[0]}def agent(text):\n{set_up[1]}{call}"
    (suite.parent / "chosen.py").write_text(code)
    one, other = (ek.run_suite(suite, out=folder / name) for name in ("first", "second"))
    return one, other


@pytest.fixture(scope="module")
def runs(write_suite: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Run every agent that sets tracing up when it is called; those are forked."""
    need_packages()
    passing = {n: env for n, env in PASSING.items() if HAS_JSON or "json" not in n}
    told = [scenario(name, env, tools=TOOLS) for name, env in passing.items()]
    told += [scenario(name) for name in FAULTS]
    failing = [call | {"status": "error"} if call["tool"] == "search" else call for call in CALLS]
    told += [scenario("fails", tools={**TOOLS, "calls": failing})]
    told += [scenario("slow", component={"tools": {"book": {"max_latency_s": 30}}})]
    told += [scenario("many")]
    folder = tmp_path_factory.mktemp("spans")
    return run_twice(write_suite, folder, told, at_import=False)


@pytest.fixture(scope="module")
def early(write_suite: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """Run agents whose module sets tracing up, with the thread that the SDK starts."""
    need_packages()
    slow = {"tools": {name: {"max_latency_s": 30, "max_error_rate": 0} for name, _ in RAN}}
    found = {"retriever": {"name": "lookup", "relevant": ["visa", "luggage"], "k": 2}}
    told = [scenario("slow", component=slow), scenario("retrieves", component=found)]
    folder = tmp_path_factory.mktemp("early")
    return run_twice(write_suite, folder, told, at_import=True)


def grades(run: ek.Run, name: str) -> dict[str, Any]:
    """Give the grades of a scenario by grader."""
    return {grade.grader: grade for grade in record(run, name).grades}


def record(run: ek.Run, name: str) -> Any:
    """Give the record of a scenario."""
    return next(one for one in run.records if one.scenario == name)


def trace(run: ek.Run, name: str) -> Trace:
    """Give the trace of a scenario."""
    return trace_of(run.ledger(name))


@pytest.mark.parametrize("name", PASSING)
def test_traced_tools_are_seen_where_they_run(runs: Runs, name: str) -> None:
    """However spans are processed, encoded and worded: each call is there once, as it ran."""
    if "json" in name and not HAS_JSON:
        pytest.skip("the exporter for JSON is not installed")
    assert record(runs[0], name).reason == ""
    found = trace(runs[0], name)
    assert [(call.name, call.args) for call in found.tool_calls] == RAN
    assert {call.status for call in found.tool_calls} == {"ok"}
    assert {name for name, _ in RAN} == set(found.watched_tools)
    assert found.span_gaps == ()
    assert grades(runs[0], name)["wire_agreement"].passed is True


@pytest.mark.parametrize(("name", "reason"), FAULTS.items())
def test_what_ran_is_held_against_what_was_asked_for(runs: Runs, name: str, reason: str) -> None:
    """A tool whose result the agent made up, and one that nobody asked for, fail the trial."""
    grade = grades(runs[0], name)["wire_agreement"]
    assert (grade.status, record(runs[0], name).status) == ("failed", "failed")
    assert reason.partition(" {")[0] in grade.reason


def test_span_with_an_exception_is_a_failed_call(runs: Runs) -> None:
    """What the tool raised is known although the agent went on."""
    assert record(runs[0], "fails").reason == ""
    failed = [call for call in trace(runs[0], "fails").tool_calls if call.status == "error"]
    assert [(call.name, call.result) for call in failed] == [("search", "no route to the airline")]


def test_tool_that_tells_of_itself_counts_once(
    write_suite: Callable[..., Path], tmp_path: Path
) -> None:
    """Where `ek.tool` and a span see the same call, the wrapper's word counts."""
    need_packages()
    suite = write_suite(tmp_path / "suite", "chosen:agent", [scenario("both", tools=TOOLS)])
    code = "def agent(text):\n    traced.set_up()\n    return traced.both(text)\n"
    (suite.parent / "chosen.py").write_text(f"import traced, wrapped\n{code}")
    run = ek.run_suite(suite, out=tmp_path / "out")
    assert record(run, "both").reason == ""
    assert grades(run, "both")["wire_agreement"].passed is True
    found = trace(run, "both")
    assert len(found.tool_calls) == 3
    assert found.traced_tools == ()
    assert all(call.span_id.startswith("ran:") for call in found.tool_calls)
    assert len([span for span in found.spans if span.kind == "tool"]) == 3


def test_untold_arguments_are_those_asked_for(runs: Runs) -> None:
    """A span without content counts as the call that it answers, and the grade says so."""
    found = trace(runs[0], "silent")
    assert {call.untold for call in found.tool_calls} == {("args", "result")}
    assert found.tool_calls[2].result == "AA123 is booked for Friday."
    assert grades(runs[0], "silent")["wire_agreement"].evidence["n_untold"] == 3


def test_ten_thousand_spans_come_whole(runs: Runs) -> None:
    """None is lost in a queue, and none is left behind."""
    assert record(runs[0], "many").reason == ""
    steps = [span for span in trace(runs[0], "many").spans if span.name.startswith("step ")]
    assert [span.name for span in steps] == [f"step {number}" for number in range(10_000)]


def test_two_runs_have_one_digest(runs: Runs, early: Runs) -> None:
    """Ids, times and the moment of an export are chance, and in no digest."""
    for one, other in (runs, early):
        for name in (record.scenario for record in one.records):
            assert leaves_that_differ(one.ledger(name), other.ledger(name)) == [], name
        assert one.digest == other.digest


def test_tracing_that_an_import_sets_up_is_timed(early: Runs) -> None:
    """The trial's clock stands, but a tool's latency is real."""
    assert record(early[0], "slow").reason == ""
    figures = grades(early[0], "slow")["component"].evidence["tools"]
    assert all(figure["n_timed"] == 1 for figure in figures.values())
    assert all(figure["latency_max_s"] >= 0.05 for figure in figures.values())


def test_latency_that_no_clock_shows_is_unknown(runs: Runs) -> None:
    """Where nobody measured a span in the trial, whose clock stands, nothing passes for fast."""
    grade = grades(runs[0], "slow")["component"]
    assert grade.status == "incomplete"
    assert "how long 1 of 1 call(s) of book took is unknown" in grade.reason


def test_retriever_is_graded_by_its_span(early: Runs) -> None:
    """Recall is that of the documents in the span."""
    assert record(early[0], "retrieves").reason == ""
    assert grades(early[0], "retrieves")["component"].passed is True


def test_dry_calls_are_no_spans_of_the_agent(early: Runs) -> None:
    """What evalkit does with an SDK before the trial is kept out of the agent's spans."""
    models = [span for span in trace(early[0], "slow").spans if span.kind == "model"]
    assert len(models) <= 3
    assert not [event for event in early[0].ledger("slow") if event.kind == "log"]


def sent(name: str, expected: str, **env: str) -> dict[str, Any]:
    """Write a scenario in which bytes are sent, and the reply says what became of them."""
    told = {"input": "Go.", "model": [{"text": "Gone."}], "expect": {"reply": {"equals": expected}}}
    return {"id": name, "env": env, **told}


def test_bytes_that_are_no_spans(write_suite: Callable[..., Path], tmp_path: Path) -> None:
    """Malformed bodies are refused; without a reader the trial is incomplete."""
    reader = "opentelemetry.proto opentelemetry.proto.collector.trace.v1"
    protobuf = {"TYPE": "application/x-protobuf"}
    told = [
        sent("untouched", "0 False False"),
        sent("malformed", "400 False True", SENT="{", TYPE="application/json"),
        sent("unknown", "400 False True", SENT="{}", TYPE="text/plain"),
        sent("empty", "200 False True", SENT="{}", TYPE="application/json"),
        sent("unread", "400 True True", SENT="x", HIDDEN=reader, **protobuf),
    ]
    suite = write_suite(tmp_path / "suite", "untraceable:agent", told)
    run = ek.run_suite(suite, out=tmp_path / "out")
    ends = {one.scenario: (one.status, one.reason_code) for one in run.records}
    passed = dict.fromkeys(("untouched", "malformed", "unknown", "empty"), ("passed", ""))
    assert ends == {**passed, "unread": ("incomplete", "spans_unreadable")}
    assert 'pip install "evalkit-lab[otel]"' in record(run, "unread").reason
    assert "cannot be read" in trace(run, "malformed").span_gaps[0]
    assert trace(run, "untouched").span_gaps == ()
