"""Database: rows of queries and changes of tables, and what nobody could see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.grade import Grade
from evalkit.graders import Trial, find_grader, graders_for
from evalkit.graders.net_changes import net_changes
from evalkit.suite import Scenario
from evalkit.trace import Trace, Turn

QUERY = "SELECT id, state FROM jobs"
GIVEN = {"database": {"app.db": "app.sql"}}
TABLES: Mapping[str, Any] = {"app.db": ["jobs", "log"]}


def answer(rows: Sequence[Any] = (), *, turn: int | None = None, **more: Any) -> dict[str, Any]:
    """Tell what the query gave."""
    told = {"columns": ["id", "state"], "rows": list(rows), **more}
    if "problem" in more:
        told = more
    return {"database": "app.db", "turn": turn, "query": QUERY, **told}


def change(turn: int = 0, **more: Any) -> dict[str, Any]:
    """Tell what happened to jobs."""
    kinds: dict[str, Any] = {"inserted": [], "updated": [], "deleted": []}
    jobs = kinds | {kind: more.pop(kind) for kind in kinds if kind in more}
    told = {"changes": {"jobs": jobs}, "keys": {"jobs": ["id"]}, **more}
    return {"database": "app.db", "turn": turn, **told}


def problem(text: str, *, turn: int = 0, is_agents: bool = True) -> dict[str, Any]:
    """Tell what is wrong with the database."""
    return {"database": "app.db", "turn": turn, "problem": text, "is_agents": is_agents}


def graded(
    looks: Any, *events: Mapping[str, Any], turns: int = 1, in_turn: int | None = None, **more: Any
) -> Grade:
    """Grade what was told against what is expected, of the scenario or of one turn."""
    said: list[dict[str, Any]] = [{"user": "x"} for _ in range(turns)]
    expect = {"expect": {"database": looks if isinstance(looks, list) else [looks]}}
    if in_turn is not None:
        said[in_turn] |= expect
    scenario = Scenario.model_validate(
        {"id": "s", "turns": said, "fixtures": GIVEN, **(expect if in_turn is None else {})}
    )
    outcome = {"database": {"tables": more.pop("tables", TABLES), "events": list(events)}}
    trace = Trace(tuple(Turn("x", ("ok",)) for _ in range(more.pop("n_seen", turns))))
    return find_grader("database")(Trial(scenario, trace, outcome, lane="contract", **more))


def look(*rows: Any, **more: Any) -> dict[str, Any]:
    """Expect rows of the query."""
    return {"query": QUERY, "rows": list(rows), **more}


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        (look([1, "open"]), [[1, "open"]]),
        (look({"id": 1, "state": "open"}), [[1.0, "open"]]),
        (look([{"$gt": 0}, {"$regex": "^op"}]), [[1, "open"]]),
        (look({"$contains": {"id": 1}}), [[1, "open"]]),
        (look(), []),
        (look([2, "b"], {"id": 1, "state": "a"}, order="any"), [[1, "a"], [2, "b"]]),
        (look([{"$any": True}, "a"], [1, "a"], order="any"), [[1, "a"], [2, "a"]]),
        (look([None, {"base64": "AP8="}]), [[None, {"base64": "AP8="}]]),
        ({"query": QUERY, "n_rows": {"min": 1}}, [[1, "a"], [2, "b"]]),
        ({"database": "app.db", "query": QUERY, "n_rows": 0}, []),
    ],
)
def test_rows_as_expected_pass(wanted: Any, rows: list[Any]) -> None:
    """As lists or by column, by matchers, in any order where that is said."""
    assert graded(wanted, answer(rows)).passed


@pytest.mark.parametrize(
    ("wanted", "rows", "reason"),
    [
        (look([1, "done"]), [[1, "open"]], "state: expected 'done', got 'open'"),
        (look([1, "a"], [2, "b"]), [[1, "a"], [2, "c"]], "row 2: state: expected 'b', got 'c'"),
        (look([True, "a"]), [[1, "a"]], "id: expected True, got 1"),
        (look(["1", "a"]), [[1, "a"]], "id: expected '1', got 1"),
        (look([1, "a"]), [], "gave 0 rows, expected 1; row 1 is missing: [1, 'a']"),
        (look(), [[1, "a"]], "gave 1 row, expected 0; row 1 was not expected: [1, 'a']"),
        (look({"id": 1}), [[1, "a"]], "state: expected nothing, got 'a'"),
        (look([1]), [[1, "a"]], "expected [1], got [1, 'a']"),
        (look([2, "b"], [1, "a"]), [[1, "a"], [2, "b"]], "row 1: id: expected 2, got 1"),
        (
            look([1, "x"], order="any"),
            [[1, "a"]],
            "no row matches [1, 'x']; nearest: state: expected 'x', got 'a'",
        ),
        (look([1, "a"], order="any"), [[1, "a"], [2, "b"]], "not expected: [2, 'b']"),
        (
            look([1, "a"], [1, "a"], order="any"),
            [[1, "a"], [2, "a"]],
            "no row matches [1, 'a']; nearest: id: expected 1, got 2",
        ),
        ({"query": QUERY, "n_rows": {"min": 1, "max": 2}}, [], "gave 0 rows, expected 1 to 2"),
    ],
)
def test_other_rows_fail_with_what_is_otherwise(wanted: Any, rows: list[Any], reason: str) -> None:
    """The reason says what was expected, what came, and the nearest row."""
    grade = graded(wanted, answer(rows))
    assert grade.status == "failed"
    assert reason in grade.reason


def test_rows_that_were_not_kept_are_no_pass() -> None:
    """Their number still decides where it can."""
    few = answer([[1, "a"]], n_rows=2)
    assert graded(look([1, "a"], [2, "b"]), few).status == "incomplete"
    assert "gave 2 rows, expected 1" in graded(look([1, "a"]), few).reason
    assert graded({"query": QUERY, "n_rows": 2}, few).passed


@pytest.mark.parametrize(("is_agents", "status"), [(True, "failed"), (False, "incomplete")])
def test_query_without_an_answer_blames_whose_doing_it_is(is_agents: bool, status: str) -> None:
    """The agent dropped a table, or evalkit met a limit."""
    told = answer(problem="no such table: jobs", is_agents=is_agents)
    grade = graded(look([1, "a"]), told)
    assert grade.status == status
    assert "no such table: jobs" in grade.reason


def test_what_nobody_asked_is_no_pass() -> None:
    """A query that is new, a trial of another tool, a turn that never came."""
    assert "run the trial again" in graded(look()).reason
    scenario = Scenario.model_validate(
        {"id": "s", "input": "x", "fixtures": GIVEN, "expect": {"database": [look()]}}
    )
    grade = find_grader("database")(Trial(scenario, Trace(), lane="imported"))
    assert (grade.status, grade.reason) == ("incomplete", "nobody looked at the agent's databases")
    cut = graded(look(), turns=2, in_turn=1, whole=False, n_seen=1)
    assert (cut.status, cut.reason) == ("incomplete", "the trial did not run to its end")


def test_a_turn_is_judged_by_its_own_answer() -> None:
    """Also in a trial that was cut short later; gone through twice, the last one counts."""
    told = [answer([[1, "a"]], turn=0), answer([[2, "b"]], turn=0), answer(turn=None)]
    assert graded(look([2, "b"]), *told, turns=2, in_turn=0).passed
    cut = graded(look([1, "a"]), *told, turns=2, in_turn=0, whole=False)
    assert cut.status == "failed"
    assert cut.reason.startswith("turn 1: app.db: SELECT id, state FROM jobs: id: expected 1")


ROW = {"id": 1, "state": "open"}
DONE = {"id": 1, "state": "done"}
STEP = {"before": ROW, "after": DONE}


@pytest.mark.parametrize(
    ("events", "counts"),
    [
        ([change(inserted=[ROW])], {"inserted": 1, "updated": 0, "deleted": 0}),
        ([change(inserted=[ROW]), change(1, updated=[STEP])], {"inserted": 1, "updated": 0}),
        ([change(updated=[STEP]), change(1, deleted=[DONE])], {"deleted": 1, "updated": 0}),
        ([change(deleted=[ROW]), change(1, inserted=[DONE])], {"updated": 1, "inserted": 0}),
        (
            [change(inserted=[ROW]), change(1, deleted=[{**ROW, "new": None}])],
            {"inserted": 0, "updated": 0, "deleted": 0},
        ),
        ([change(inserted=[ROW], unlisted={"jobs": {"inserted": 8}})], {"inserted": 9}),
        ([], {"inserted": 0, "updated": 0, "deleted": 0}),
    ],
)
def test_changes_of_a_scenario_are_what_they_come_to(events: Any, counts: Any) -> None:
    """Against the fixture, whatever came and went in between."""
    assert graded({"changes": {"JOBS": counts}}, *events, turns=2).passed


def test_changes_of_a_turn_are_its_own() -> None:
    """What earlier turns did is not counted again."""
    events = [change(inserted=[ROW]), change(1, updated=[STEP])]
    wanted = {"changes": {"jobs": {"inserted": 0, "updated": 1}}}
    assert graded(wanted, *events, turns=2, in_turn=1).passed
    failed = graded(wanted, *events, turns=2, in_turn=0)
    assert "jobs: 1 row inserted, expected 0: {'id': 1, 'state': 'open'}" in failed.reason
    assert "jobs: 0 rows updated, expected 1" in failed.reason


@pytest.mark.parametrize(
    ("event", "status", "reason"),
    [
        (problem("does not exist any more"), "failed", "app.db does not exist any more"),
        (problem("is too large", is_agents=False), "incomplete", "app.db is too large"),
        (change(problems={"jobs": "cannot be read"}), "incomplete", "it cannot be read"),
    ],
)
def test_database_that_could_not_be_read_is_no_pass(event: Any, status: str, reason: str) -> None:
    """Removed or broken by the agent it is a fault, else a gap."""
    grade = graded({"changes": {"jobs": {"deleted": 0}}}, event)
    assert (grade.status, reason in grade.reason) == (status, True)


def test_problem_that_was_mended_is_none() -> None:
    """What counts is how it was when the turn, or the trial, was over."""
    events = [problem("does not exist any more"), change(1, inserted=[ROW])]
    wanted = {"changes": {"jobs": {"inserted": 1}}}
    assert graded(wanted, *events, turns=2).passed
    assert graded(wanted, *events, turns=2, in_turn=0).status == "failed"


def test_table_that_never_was_is_no_pass() -> None:
    """That nothing happened to a misspelt table says nothing."""
    grade = graded({"changes": {"jbos": {"deleted": 0}}})
    assert grade.status == "incomplete"
    assert "there was never such a table. Did you mean `jobs`?" in grade.reason
    assert graded({"changes": {"jbos": {"inserted": 1}}}).status == "failed"
    made = change(schema=[{"type": "table", "name": "jbos", "before": None, "after": "..."}])
    assert graded({"changes": {"jbos": {"deleted": 0}}}, made).passed
    assert graded({"changes": {"jbos": {"deleted": 0}}}, tables={"app.db": None}).passed


def test_rows_that_were_not_kept_in_several_turns_are_a_gap() -> None:
    """Nobody knows what they come to."""
    events = [change(inserted=[ROW], unlisted={"jobs": {"inserted": 8}}), change(1, deleted=[ROW])]
    grade = graded({"changes": {"jobs": {"inserted": 8}}}, *events, turns=2)
    assert grade.status == "incomplete"


def test_it_applies_where_databases_are_expected() -> None:
    """And nowhere else."""
    asked = {"id": "s", "turns": [{"user": "x", "expect": {"database": [look()]}}]}
    for keys, is_graded in ((asked, True), ({"id": "s", "input": "x"}, False)):
        trial = Trial(Scenario.model_validate(keys), Trace())
        assert ("database" in graders_for(trial)) is is_graded


STATES = st.dictionaries(st.integers(1, 4), st.sampled_from("abc"), max_size=4)


def between(old: Mapping[int, str], new: Mapping[int, str]) -> dict[str, Any]:
    """Tell what happened between two states of a table."""

    def row(table: Mapping[int, str], key: int) -> dict[str, Any]:
        return {"id": key, "state": table[key]}

    return change(
        inserted=[row(new, key) for key in new if key not in old],
        deleted=[row(old, key) for key in old if key not in new],
        updated=[
            {"before": row(old, key), "after": row(new, key)}
            for key in old
            if key in new and old[key] != new[key]
        ],
    )


@settings(max_examples=100, deadline=None)
@given(st.lists(STATES, min_size=2, max_size=5))
def test_several_changes_come_to_the_one_from_first_to_last(states: list[dict[int, str]]) -> None:
    """However a table got there."""
    steps = [between(old, new) for old, new in pairwise(states)]
    net, once = net_changes(steps, "jobs"), net_changes([between(states[0], states[-1])], "jobs")
    assert (net.n_inserted, net.n_updated, net.n_deleted) == once[3:6]
    for kind in ("inserted", "updated", "deleted"):
        assert sorted(getattr(net, kind), key=str) == sorted(getattr(once, kind), key=str)
