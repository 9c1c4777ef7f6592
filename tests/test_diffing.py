"""Where two ledgers differ: the first event, every leaf, and the order without chance."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit import shipped
from evalkit.diffing import (
    ABSENT,
    canonical,
    first_difference,
    leaves_that_differ,
    trials_that_differ,
)
from evalkit.importers import import_run
from evalkit.ledger import Event, EventKind, digest
from evalkit.recording import events_of
from evalkit.results import Run
from evalkit.run import run_suite
from evalkit.suite import parse_suite, suite_from_data
from evalkit.trace import Trace

RULES = "evalkit.examples.travel_rules"
TWIN = Path(__file__).parents[1] / "data" / "traces" / "tau_bench_twin.json"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Run the good agent twice, and one that books another flight."""
    suite = parse_suite(shipped.suite("travel"))
    return {
        name: run_suite(
            suite,
            agent=f"{RULES}:{agent}",
            lane="live",
            isolation="none",
            out=tmp_path_factory.mktemp(name),
        )
        for name, agent in (("good", "agent"), ("again", "agent"), ("bad", "wrong_id"))
    }


def test_the_same_agent_twice_does_not_differ(runs: dict[str, Run]) -> None:
    """Real times apart, two runs of one thing are equal: no trial, no leaf."""
    good, again = runs["good"], runs["again"]
    assert trials_that_differ(good, again) == []
    for scenario in good.trials.scenario:
        ledgers = good.ledger(scenario), again.ledger(scenario)
        assert [event.real for event in ledgers[0]] != [event.real for event in ledgers[1]]
        assert first_difference(*ledgers) is None
        assert leaves_that_differ(*ledgers) == []


def test_another_argument_is_the_first_difference(runs: dict[str, Run]) -> None:
    """The event, the key, both values, and two events before."""
    good, bad = (runs[name].ledger("weather-gate-book") for name in ("good", "bad"))
    found = first_difference(good, bad)
    assert found is not None
    assert (found.path, found.values) == ("data.args.flight_id", ("AA123", "AA999"))
    assert (found.first, found.second) == (good[found.position], bad[found.position])
    assert [event.kind for event in found.context] == ["tool_call", "tool_result"]
    assert leaves_that_differ(good, bad)[0] == f"[{found.position}].data.args.flight_id"


def test_trials_whose_digests_differ_are_listed(runs: dict[str, Run], tmp_path: Path) -> None:
    """By scenario and trial, with trials that one run lacks."""
    found = trials_that_differ(runs["good"], runs["bad"])
    assert [(one.scenario, one.trial) for one in found] == [
        ("weather-gate-book", 0),
        ("search-before-book", 0),
    ]
    assert {one.reason for one in found} == {"the digests differ"}
    suite = suite_from_data(
        {"suite": "s", "scenarios": [{"id": "weather-only", "input": "x", "expect": {"tools": []}}]}
    )
    other = run_suite(
        suite, agent=f"{RULES}:agent", lane="live", isolation="none", n_trials=2, out=tmp_path
    )
    reasons = {one[:2]: one.reason for one in trials_that_differ(other, runs["good"])}
    assert reasons["weather-only", 1] == "only the first run has it"
    assert reasons["weather-gate-book", 0] == "only the second run has it"


def test_a_trial_that_did_not_finish_is_never_equal(runs: dict[str, Run], tmp_path: Path) -> None:
    """Two missing ledgers are not the same ledger."""
    run = import_run("tau-bench", TWIN, out=tmp_path)
    lines = (run.folder / "trials.jsonl").read_bytes().splitlines(keepends=True)
    (run.folder / "trials.jsonl").write_bytes(b"".join(lines[:-1]))
    cut = Run(run.folder)
    [found] = trials_that_differ(cut, cut)
    assert found.reason == "finished in neither run"
    [found] = trials_that_differ(cut, run)
    assert found.reason == "not finished in the first run"


def _log(seq: int, text: str = "x", **more: Any) -> Event:
    return Event(seq, "log", {"text": text, **more})


def test_a_ledger_that_ends_early_differs() -> None:
    """The event that is missing is the difference, and each of its leaves counts."""
    found = first_difference([_log(1)], [_log(1), _log(2)])
    assert found is not None
    assert (found.first, found.second, found.path) == (None, _log(2), "")
    assert found.values[0] is ABSENT
    assert leaves_that_differ([_log(1)], [_log(1), _log(2)]) == [
        "[1].data.text", "[1].kind", "[1].parent", "[1].seq", "[1].span",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "path"),
    [
        ({"a": 1}, {"a": True}, "data.a"),
        ({"a": 1}, {"a": 1.0}, "data.a"),
        ({"a": [1, 2]}, {"a": [1, 3]}, "data.a[1]"),
        ({"a": [1]}, {"a": [1, 3]}, "data.a[1]"),
        ({"a": {}}, {"a": []}, "data.a"),
        ({"a": {"b.c": 1}}, {"a": {"b.c": 2}}, "data.a['b.c']"),
        ({}, {"a": None}, "data"),
    ],
)
def test_values_differ_as_a_digest_sees_them(
    one: dict[str, Any], other: dict[str, Any], path: str
) -> None:
    """Whatever changes a digest is a difference with a path."""
    found = first_difference([Event(1, "log", one)], [Event(1, "log", other)])
    assert found is not None
    assert found.path == path


def test_kind_says_more_than_numbers() -> None:
    """An event of another kind is named by its kind, not by a number in it."""
    found = first_difference([Event(1, "log", {"a": 1})], [Event(2, "reply", {"b": 1})])
    assert found is not None
    assert (found.path, found.values) == ("kind", ("log", "reply"))


def _parallel(order: Sequence[int], *, ids: str) -> list[Event]:
    """Write the ledger of a turn with two branches whose requests arrive in some order.

    Branch 0 and 1 each ask a model, run its two tools, and ask again.
    """
    events = [Event(0, "trial_start", {"scenario": "s"}), Event(0, "turn", {"turn": 0})]
    calls: dict[str, int] = {}
    tools: dict[tuple[int, int], int] = {}

    def add(kind: EventKind, span: str, **data: Any) -> None:
        events.append(Event(0, kind, data, span))

    for branch in order:
        is_second = f"{branch}.0" in calls
        number = calls.setdefault(f"{branch}.{int(is_second)}", len(calls))
        span = f"model:{number}"
        prompt: list[Any] = [{"role": "user", "content": f"branch {branch}"}]
        if is_second:
            for n in (0, 1):
                call = tools[branch, n]
                prompt.append({"role": "tool", "tool_call_id": f"{ids}{call}", "content": "ok"})
                add("tool_result", f"tool:{call}", call=call, status="ok", result="ok")
        add("model_call", span, call=number, turn=0, prompt={"messages": prompt})
        add("model_reply", span, call=number, reply={"text": f"done {branch}"})
        for n in () if is_second else (0, 1):
            call = tools[branch, n] = len(tools)
            args = {"branch": branch, "id": f"own-{n}"}
            add("tool_call", f"tool:{call}", call=call, asked_by=number, id=f"{ids}{call}",
                name="t", args=args)  # fmt: skip
    events += [Event(0, "reply", {"text": "all done"}), Event(0, "trial_end", {})]
    return [event._replace(seq=seq) for seq, event in enumerate(events, start=1)]


@pytest.mark.parametrize("order", [(1, 0, 0, 1), (0, 0, 1, 1), (1, 1, 0, 0), (0, 1, 1, 0)])
def test_canonical_order_forgets_who_came_first(order: tuple[int, ...]) -> None:
    """Parallel branches and ids of a runtime's own make no difference after it."""
    one, other = _parallel((0, 1, 0, 1), ids="call_"), _parallel(order, ids="toolu-")
    assert leaves_that_differ(one, other)
    assert leaves_that_differ(one, other, in_canonical_order=True) == []
    assert digest(canonical(one)) == digest(canonical(other))


def test_canonical_order_keeps_what_matters() -> None:
    """Other arguments, also under `id`, other replies and their order, still differ."""
    one = _parallel((0, 1, 0, 1), ids="c")
    at = next(i for i, event in enumerate(one) if event.kind == "tool_call")
    args = {**one[at].data["args"], "id": "stolen"}
    for change in ({"args": args}, {"name": "other"}):
        other = [*one[:at], one[at]._replace(data={**one[at].data, **change}), *one[at + 1 :]]
        assert first_difference(one, other, in_canonical_order=True) is not None
    replies = [Event(1, "reply", {"text": text}) for text in "ab"]
    assert first_difference(replies, replies[::-1], in_canonical_order=True) is not None


def test_canonical_order_counts_calls_at_the_tool_apart() -> None:
    """Asked for in one order and run in another, as threads do, is the same after it."""
    asked = [
        Event(0, "tool_call", {"call": n, "name": "t", "args": {"n": n}}, f"tool:{n}")
        for n in (0, 1)
    ]
    ledgers = []
    for order in ((0, 1), (1, 0)):
        ran = [
            Event(0, "tool_call", {**asked[n].data, "call": place, "at": "tool"}, f"ran:{place}")
            for place, n in enumerate(order)
        ]
        ledgers.append([event._replace(seq=n) for n, event in enumerate(asked + ran, start=1)])
    assert first_difference(*ledgers) is not None
    assert first_difference(*ledgers, in_canonical_order=True) is None


def test_canonical_order_keeps_the_turns_of_a_trial_apart() -> None:
    """Nothing moves from one turn to another."""
    events = [Event(n, "turn", {"turn": n, "user": "x"}) for n in (1, 2)]
    one = [events[0], Event(3, "tool_call", {"call": 0, "name": "t"}), events[1]]
    other = [events[0], events[1], Event(3, "tool_call", {"call": 0, "name": "t"})]
    assert first_difference(one, other, in_canonical_order=True) is not None


_values = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["a", "b", "id-1"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["id", "call_id", "input", "x"]), inner, max_size=2)
    ),
    max_leaves=4,
)
_kinds: list[EventKind] = [
    "turn", "model_call", "model_reply", "tool_call", "tool_result", "span", "reply", "state",
    "log", "http", "fault", "trial_end",
]  # fmt: skip
_events = st.builds(
    Event,
    seq=st.integers(1, 9),
    kind=st.sampled_from(_kinds),
    data=st.dictionaries(
        st.sampled_from(["call", "asked_by", "id", "prompt", "reply", "args", "parent_id"]), _values
    ),
    span=st.sampled_from(["", "m:1", "t:1", "t:2", "span-1"]),
    parent=st.sampled_from(["", "m:1"]),
    real=st.dictionaries(st.just("at_s"), st.integers(0, 9)),
)
_ledgers = st.lists(_events, max_size=8)


@settings(deadline=None, max_examples=100)
@given(_ledgers)
def test_canonical_order_is_idempotent(events: list[Event]) -> None:
    """Once in order, always in order; no event is lost."""
    once = canonical(events)
    assert canonical(once) == once
    assert sorted(event.kind for event in once) == sorted(event.kind for event in events)


@settings(deadline=None, max_examples=100)
@given(_ledgers, _ledgers, st.booleans())
def test_differences_are_symmetric(one: list[Event], other: list[Event], in_order: bool) -> None:
    """A ledger does not differ from itself, and both sides see the same difference."""
    assert first_difference(one, one, in_canonical_order=in_order) is None
    left = first_difference(one, other, in_canonical_order=in_order)
    right = first_difference(other, one, in_canonical_order=in_order)
    assert (left is None) == (right is None)
    if left is not None and right is not None:
        assert (left.position, left.path) == (right.position, right.path)
        assert left.values == right.values[::-1]
    there = leaves_that_differ(one, other, in_canonical_order=in_order)
    assert sorted(there) == sorted(leaves_that_differ(other, one, in_canonical_order=in_order))
    assert bool(there) == (left is not None)
    if not in_order:
        assert (left is None) == (digest(one) == digest(other))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**16))
def test_canonical_order_of_parallel_tools_is_that_of_any_shuffle(seed: int) -> None:
    """Tools that ran at a time, seen at the tool, in whatever order they ended."""
    trace = Trace.from_calls([("t", {"n": n}) for n in range(5)], "Done.", user="go")
    events = list(events_of(trace))
    tools = [events[i : i + 2] for i in range(2, 12, 2)]
    random.Random(seed).shuffle(tools)
    shuffled = [*events[:2], *(event for pair in tools for event in pair), *events[12:]]
    assert leaves_that_differ(events, shuffled, in_canonical_order=True) == []
