"""Component: latency and error rate of a tool, recall of a retriever."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.grade import Grade
from evalkit.graders import Trial, find_grader, graders_for
from evalkit.suite import Scenario
from evalkit.trace import Document, Span, ToolCall, Trace, Turn


def component(expect: dict[str, Any], trace: Trace, *, whole: bool = True) -> Grade:
    """Grade the parts of a trace."""
    scenario = {"id": "s", "input": "Go.", "expect": {"component": expect}}
    return find_grader("component")(Trial(Scenario.model_validate(scenario), trace, whole=whole))


def search(**limits: Any) -> dict[str, Any]:
    """Set limits for the tool `search`."""
    return {"tools": {"search": limits}}


def calls(*made: tuple[float | None, Any]) -> Trace:
    """Make calls of `search` with these durations and statuses."""
    return Trace.from_calls(
        [ToolCall("search", {"n": n}, status, duration_s=duration_s)
         for n, (duration_s, status) in enumerate(made)]
    )  # fmt: skip


def retrieved(*ids: str, name: str = "docs", span_id: str = "r") -> Span:
    """Make a retriever's span."""
    return Span(span_id, name=name, kind="retriever", documents=tuple(map(Document, ids)))


def spans(*made: Span, tools_observed: bool = True) -> Trace:
    """Make a trace of spans only."""
    return Trace((Turn("Go.", ("Done.",)),), spans=made, tools_observed=tools_observed)


# --- a tool's latency ------------------------------------------------------------


@pytest.mark.parametrize(
    ("made", "status"),
    [
        ([(0.5, "ok")], "passed"),
        ([(1.0, "ok")], "passed"),
        ([(1.1, "ok")], "failed"),
        ([(0.5, "ok"), (1.1, "error")], "failed"),
        ([(None, "ok")], "incomplete"),
        ([(0.5, "ok"), (None, "ok")], "incomplete"),
        ([(None, "ok"), (1.1, "ok")], "failed"),
        ([(float("nan"), "ok")], "incomplete"),
        ([(-0.1, "ok")], "incomplete"),
        ([], "incomplete"),
    ],
)
def test_latency_limit_is_for_each_call(made: Any, status: str) -> None:
    """One slow call fails; one that nobody timed keeps the rest from passing."""
    assert component(search(max_latency_s=1.0), calls(*made)).status == status


def test_slow_tool_is_named_with_its_latency() -> None:
    """The reason localises: which tool, how slow, how often."""
    grade = component(search(max_latency_s=1.0), calls((0.1, "ok"), (2.5, "ok"), (1.5, "ok")))
    assert grade.reason == "search took too long in 2 of 3 calls: 2.5 s, at most 1 s"


def test_calls_of_other_tools_do_not_count() -> None:
    """A limit for one tool says nothing of another."""
    trace = Trace.from_calls([ToolCall("search", duration_s=0.1), ToolCall("book", duration_s=9.0)])
    assert component(search(max_latency_s=1.0), trace).passed


def test_latency_comes_from_the_calls_span_where_the_call_has_none() -> None:
    """A call without a duration of its own has that of its span."""
    call = ToolCall("search", span_id="t")
    slow = Trace((Turn(),), (call,), spans=(Span("t", kind="tool", start_s=0.0, end_s=3.0),))
    assert component(search(max_latency_s=1.0), slow).status == "failed"
    assert component(search(max_latency_s=3.0), slow).passed


@pytest.mark.parametrize(
    "span",
    [
        Span("t", name="search", kind="tool", start_s=0.0, end_s=3.0),
        Span("t", name="execute_tool search", kind="tool", start_s=0.0, end_s=3.0,
             attributes={"gen_ai.tool.name": "search"}),
    ],
)  # fmt: skip
def test_tool_spans_stand_in_for_calls(span: Span) -> None:
    """Where a trace has spans only, those of kind tool are a tool's calls."""
    assert component(search(max_latency_s=1.0), spans(span)).status == "failed"
    assert component(search(max_latency_s=3.0), spans(span)).passed


def test_unobserved_tool_is_incomplete() -> None:
    """A tool that nobody watched is within no limit."""
    grade = component(search(max_latency_s=1.0), spans(tools_observed=False))
    assert (grade.status, grade.reason_code) == ("incomplete", "tools_not_observed")


def test_evidence_describes_the_calls() -> None:
    """The figures stand in the evidence, also of a tool within its limits."""
    made = [(n / 10, "ok") for n in range(1, 21)]
    grade = component(search(max_latency_s=5), calls(*made, (None, "error")))
    assert grade.evidence["tools"]["search"] == {
        "n_calls": 21,
        "n_failed": 1,
        "n_timed": 20,
        "latency_p50_s": 1.0,
        "latency_p95_s": 1.9,
        "latency_max_s": 2.0,
    }


# --- a tool's error rate -----------------------------------------------------------


@pytest.mark.parametrize(
    ("statuses", "most", "status"),
    [
        (["ok", "ok"], 0.0, "passed"),
        (["ok", "error"], 0.0, "failed"),
        (["ok", "error"], 0.5, "passed"),
        (["timeout", "denied", "ok"], 0.5, "failed"),
        (["ok", "unknown"], 0.0, "incomplete"),
        (["error", "unknown"], 0.4, "failed"),
        (["ok", "unknown"], 0.5, "passed"),
        ([], 1.0, "incomplete"),
    ],
)
def test_error_rate_counts_unknown_statuses_both_ways(
    statuses: list[str], most: float, status: str
) -> None:
    """A rate fails or passes only if it does so whatever became of the unknown calls."""
    made = calls(*((0.1, one) for one in statuses))
    assert component(search(max_error_rate=most), made).status == status


def test_error_rate_is_named() -> None:
    """The reason gives both counts."""
    grade = component(search(max_error_rate=0.25), calls((0.1, "error"), (0.1, "ok")))
    assert grade.reason == "1 of 2 call(s) of search failed, at most 25% may"


# --- a retriever's recall ------------------------------------------------------------


@pytest.mark.parametrize(
    ("expect", "found", "status"),
    [
        ({"relevant": ["a", "b"]}, ["b", "x", "a"], "passed"),
        ({"relevant": ["a", "b"]}, ["a", "x"], "failed"),
        ({"relevant": ["a", "b"], "min_recall": 0.5}, ["a", "x"], "passed"),
        ({"relevant": ["a", "b"], "k": 2}, ["b", "x", "a"], "failed"),
        ({"relevant": ["a", "b"], "k": 3}, ["b", "x", "a"], "passed"),
        ({"relevant": ["a", "b"], "k": 9}, ["b", "a"], "passed"),
        ({"relevant": ["a", "a", "b"], "min_recall": 0.6}, ["a"], "failed"),
        ({"relevant": ["a"]}, [], "incomplete"),
    ],
)
def test_recall_at_k_of_the_relevant_documents(expect: Any, found: list[str], status: str) -> None:
    """Recall is the share of different relevant documents among the first k."""
    assert component({"retriever": expect}, spans(retrieved(*found))).status == status


def test_recall_names_what_is_missing() -> None:
    """The reason gives the recall and the documents that were not found."""
    expect = {"retriever": {"relevant": ["a", "b", "c"], "k": 2}}
    grade = component(expect, spans(retrieved("a", "x", "b")))
    assert grade.reason == ("recall@2 is 1 of 3, at least 100% is expected; missing: b, c")
    assert grade.evidence["faults"][0]["recall"] == pytest.approx(1 / 3)


def test_retriever_is_found_by_name() -> None:
    """Where there are several retrievers, the named one is judged; unnamed, none can be."""
    trace = spans(retrieved("a", name="one"), retrieved("b", name="two", span_id="r2"))
    assert component({"retriever": {"relevant": ["b"], "name": "two"}}, trace).passed
    assert component({"retriever": {"relevant": ["b"], "name": "one"}}, trace).status == "failed"
    unnamed = component({"retriever": {"relevant": ["b"]}}, trace)
    assert (unnamed.status, "one, two" in unnamed.reason) == ("incomplete", True)
    other = component({"retriever": {"relevant": ["b"], "name": "three"}}, trace)
    assert (other.status, "'three'" in other.reason) == ("incomplete", True)


def test_retriever_asked_twice_found_what_either_found() -> None:
    """Several spans of one retriever count together, each with its own first k."""
    trace = spans(retrieved("a", "x"), retrieved("b", "y", span_id="r2"))
    assert component({"retriever": {"relevant": ["a", "b"], "k": 1}}, trace).passed
    assert component({"retriever": {"relevant": ["x"], "k": 1}}, trace).status == "failed"


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.sampled_from("abcdef"), min_size=1, max_size=6, unique=True),
    st.sets(st.sampled_from("abcdef"), min_size=1),
    st.integers(1, 6),
)
def test_recall_never_falls_with_a_larger_k(found: list[str], relevant: set[str], k: int) -> None:
    """More documents can only find more, and recall agrees with counting."""

    def passes(k: int, min_recall: float) -> bool | None:
        expect = {"relevant": sorted(relevant), "k": k, "min_recall": min_recall}
        return component({"retriever": expect}, spans(retrieved(*found))).passed

    recall = len(relevant & set(found[:k])) / len(relevant)
    assert passes(k, recall)
    assert passes(k + 1, recall)
    assert passes(k, min(recall + 0.01, 1.0)) is (recall == 1.0)


# --- when it applies -----------------------------------------------------------------


def test_component_applies_only_where_it_is_asked_for() -> None:
    """It localises a failure; nobody gets it unasked."""
    plain = Scenario.model_validate({"id": "s", "input": "Go."})
    assert "component" not in graders_for(Trial(plain, calls((9.0, "error"))))
    asking = plain.model_copy(
        update={"expect": Scenario.model_validate(
            {"id": "s", "input": "Go.", "expect": {"component": search(max_latency_s=1)}}
        ).expect}
    )  # fmt: skip
    assert "component" in graders_for(Trial(asking, Trace()))


def test_component_named_without_limits_is_incomplete() -> None:
    """A grader that is named but has nothing to check does not pass."""
    plain = Scenario.model_validate({"id": "s", "input": "Go."})
    assert find_grader("component")(Trial(plain, Trace())).status == "incomplete"


def test_component_of_a_trial_cut_short_is_incomplete() -> None:
    """Rates and recall of half a trial say nothing."""
    assert component(search(max_error_rate=0.0), calls((0.1, "error")), whole=False).status == (
        "incomplete"
    )


def test_limits_of_a_turn_look_at_its_calls() -> None:
    """A turn's limit counts its own calls, and spans tell no turn."""
    limit = {"expect": {"component": search(max_latency_s=1.0)}}
    scenario = Scenario.model_validate(
        {"id": "s", "turns": [{"user": "a"}, {"user": "b", **limit}]}
    )
    turns = (Turn("a", ("x",)), Turn("b", ("y",)))

    def grade(*made: ToolCall, **more: Any) -> Grade:
        return find_grader("component")(Trial(scenario, Trace(turns, made, **more)))

    slow, fast = ToolCall("search", duration_s=9.0), ToolCall("search", duration_s=0.1, turn=1)
    assert grade(slow, fast).passed
    assert grade(slow).status == "incomplete"
    assert grade(spans=(Span("t", name="search", kind="tool", start_s=0, end_s=0.1),)).status == (
        "incomplete"
    )
