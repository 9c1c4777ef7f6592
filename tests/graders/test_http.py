"""HTTP: which requests went out, matched one to one, and what the reason says of the nearest."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.grade import Grade
from evalkit.graders import Trial, grade_http, grade_trial
from evalkit.suite import Scenario
from evalkit.trace import Trace, Turn

SEND = "https://api.example.test/send"
ONE_TURN = ({"user": "a"},)


def sent(
    json: Any = None, *, method: str = "POST", url: str = SEND, turn: int = 0, **more: Any
) -> dict[str, Any]:
    """Give one request as the ledger tells it."""
    base = {"to": "fixture", "n": 1, "headers": {}, "text": None, "size": 2, "status": 200}
    return {**base, "turn": turn, "method": method, "url": url, "json": json, **more}


def graded(
    *requests: Any,
    turns: Any = ONE_TURN,
    whole: bool = True,
    n_turns: int | None = None,
    seen: bool = True,
    **keys: Any,
) -> Grade:
    """Grade a trial that sent some requests."""
    scenario = Scenario.model_validate({"id": "a", "turns": turns, **keys})
    trace = Trace(turns=(Turn("x"),) * (len(turns) if n_turns is None else n_turns))
    outcome = {"requests": list(requests)} if seen else {}
    return grade_http(Trial(scenario, trace, outcome=outcome, lane="contract", whole=whole))


def expecting(*requests: Any, wanted: Any, **more: Any) -> Grade:
    """Grade requests by `expect.http`."""
    return graded(*requests, expect={"http": wanted}, **more)


@pytest.mark.parametrize(
    ("wanted", "requests"),
    [
        ([f"POST {SEND}"], [sent()]),
        (["* */send"], [sent(url=f"{SEND}?silent=1")]),
        ([f"POST {SEND}?silent=1"], [sent(url=f"{SEND}?silent=1")]),
        ([{f"POST {SEND}": {"json": {"text": {"$contains": "sav"}}}}],
         [sent({"text": "saved", "n": 1})]),
        ([{f"POST {SEND}": {"json": {"$len": 2}}}], [sent([1, 2])]),
        ([{f"POST {SEND}": {"json": [1, {"$any": True}]}}], [sent([1, 2])]),
        ([{f"POST {SEND}": {"json": {"a": {"$optional": 1}}}}], [sent({})]),
        ([{f"POST {SEND}": {"json": {"$$a": 1}}}], [sent({"$a": 1})]),
        ([{f"POST {SEND}": {"body": {"contains": "SAVED", "not_contains": "error"}}}],
         [sent(text="text=Saved.")]),
        ([{f"POST {SEND}": {"body": {"equals": "two\nlines"}}}], [sent({"text": "two\nlines"})]),
        ([{f"POST {SEND}": {"headers": {"X-Key": {"$regex": "^k"}}}}],
         [sent(headers={"x-key": "key"})]),
        ([{f"POST {SEND}": {"times": 2}}], [sent(), sent()]),
        ([{f"POST {SEND}": {"times": {"min": 1}}}], [sent(), sent(), sent()]),
        ([f"POST {SEND}"], [sent(), sent()]),
        ([f"POST {SEND}"], [sent(status=599, fixture=None, fault="unscripted")]),
        # One to one: the loose expectation must leave the strict one its only request.
        ([f"POST {SEND}", {f"POST {SEND}": {"json": {"n": 1}}}], [sent({"n": 1}), sent({"n": 2})]),
    ],
)  # fmt: skip
def test_expected_requests_are_found(wanted: Any, requests: Any) -> None:
    """Patterns of address, JSON, body and headers match, and extra requests are free."""
    assert expecting(*requests, wanted=wanted).passed is True


@pytest.mark.parametrize(
    ("wanted", "requests", "reason"),
    [
        ([f"POST {SEND}"], [], f"missing request: POST {SEND} (nothing was sent)"),
        (
            [f"POST {SEND}"],
            [sent(method="GET")],
            f"missing request: POST {SEND} (nearest: GET {SEND})",
        ),
        (
            [{f"POST {SEND}": {"json": {"text": "a"}}}],
            [sent(url="https://b.example.test/x"), sent({"text": "b"})],
            f"missing request: POST {SEND} (nearest: POST {SEND}; "
            "json.text: expected 'a', got 'b')",
        ),
        (
            [{f"POST {SEND}": {"json": {"a": 1, "b": {"c": 2}}}}],
            [sent({"b": {"c": 2, "d": 3}})],
            "json.a: expected 1, got nothing, json.b.d: expected nothing, got 3",
        ),
        (
            [{f"POST {SEND}": {"json": {"a": 1}}}],
            [sent(text="a=1")],
            "its body is no JSON object, but None",
        ),
        (
            [{f"POST {SEND}": {"json": [1]}}],
            [sent([2])],
            "json[0]: expected 1, got 2",
        ),
        (
            [{f"POST {SEND}": {"body": {"contains": "saved"}, "headers": {"x-a": "1"}}}],
            [sent(text="sorry")],
            "its body does not contain 'saved', it has no header x-a)",
        ),
        (
            [{f"POST {SEND}": {"headers": {"x-a": "1"}}}],
            [sent(headers={"x-a": "2"})],
            "x-a: expected '1', got '2'",
        ),
        (
            [{f"POST {SEND}": {"times": 3}}],
            [sent(), sent()],
            f"missing request: POST {SEND} (2 of 3 requests) (no other was sent)",
        ),
        (
            [{f"POST {SEND}": {"times": 1}}],
            [sent(), sent(), sent()],
            f"too many requests: POST {SEND} (at most 1, 2 more)",
        ),
        (
            [f"POST {SEND}", f"POST {SEND}"],
            [sent()],
            f"missing request: POST {SEND} (no other was sent)",
        ),
    ],
)
def test_what_is_missing_is_told_with_the_nearest(wanted: Any, requests: Any, reason: str) -> None:
    """A reason names what came closest, and how it differs."""
    grade = expecting(*requests, wanted=wanted)
    assert grade.status == "failed"
    assert reason in grade.reason


def test_ban_covers_every_attempt() -> None:
    """A forbidden request fails, also one that nobody answered; each is named once."""
    grade = graded(
        sent(status=599, fault="unscripted"), sent(), sent(method="GET"), forbid={"http": "POST *"}
    )
    assert grade.reason == f"sent forbidden request: POST {SEND}"
    assert graded(sent(method="GET"), forbid={"http": "POST *"}).passed is True


def test_turns_look_at_their_own_requests() -> None:
    """What one turn expects, another does not give; what one forbids, another may do."""
    turns = (
        {"user": "a", "forbid": {"http": "POST *"}},
        {"user": "b", "expect": {"http": ["POST */send"]}},
    )
    assert graded(sent(turn=1), turns=turns).passed is True
    grade = graded(sent(turn=0), turns=turns)
    assert grade.reason == (
        f"turn 1: sent forbidden request: POST {SEND}; "
        "turn 2: missing request: POST */send (nothing was sent)"
    )


def test_nobody_looked_is_incomplete() -> None:
    """Where no world was around the agent, its requests are unknown."""
    for keys in ({"expect": {"http": [f"POST {SEND}"]}}, {"forbid": {"http": "* *"}}):
        grade = graded(seen=False, **keys)
        assert grade.status == "incomplete"
        assert "nobody saw" in grade.reason


def test_body_that_was_not_kept_is_no_fault() -> None:
    """What may have been right is not wrong; a request of another address is."""
    lost = sent(size=200_000)
    wanted = [{f"POST {SEND}": {"json": {"a": 1}}}]
    grade = expecting(lost, wanted=wanted)
    assert grade.status == "incomplete"
    assert "the body of one was not kept" in grade.reason
    assert expecting(lost, wanted=["POST */other"]).status == "failed"
    assert expecting(lost, wanted=[f"POST {SEND}"]).passed is True


def test_trial_cut_short_can_only_fail() -> None:
    """What could still have come is not missing; what must not be sent is."""
    assert expecting(wanted=[f"POST {SEND}"], whole=False).status == "incomplete"
    assert graded(sent(), forbid={"http": "* */send"}, whole=False).status == "failed"
    grade = expecting(sent(), sent(), wanted=[{f"POST {SEND}": {"times": 1}}], whole=False)
    assert grade.status == "failed"
    turns = ({"user": "a", "expect": {"http": ["POST *"]}}, {"user": "b"})
    assert graded(turns=turns, whole=False).status == "failed"


def test_it_applies_by_itself() -> None:
    """Whoever writes `expect.http` or `forbid.http` is graded by it, in a turn as well."""
    for scenario, is_asked in (
        ({"id": "a", "input": "x", "expect": {"replies": 1}}, False),
        ({"id": "a", "input": "x", "forbid": {"http": "POST *"}}, True),
        ({"id": "a", "turns": [{"user": "x", "expect": {"http": ["POST *"]}}]}, True),
    ):
        trial = Trial(Scenario.model_validate(scenario), Trace(turns=(Turn("x", ("y",)),)))
        assert ("http" in {grade.grader for grade in grade_trial(trial)}) is is_asked
