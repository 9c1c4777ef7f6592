"""From the turns of a scenario to what is brought to the agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalkit.run import run_suite
from evalkit.run.turns import polls_of, turns_of
from evalkit.suite import Scenario, suite_from_data
from evalkit.trial import Advance, Deliver

HOOK = {"http": "POST /hook", "json": {"id": "{update_id}", "text": "{text}"}}
JSON = {"Content-Type": "application/json"}


def turns(*given: Any, folder: Path = Path(), **keys: Any) -> tuple[Any, ...]:
    """Write turns down."""
    return turns_of(Scenario.model_validate({"id": "a", "turns": given, **keys}), folder)


def test_agent_that_is_called_hears_texts() -> None:
    """What is said again is marked, and is said in the same words."""
    assert turns({"user": "a"}, {"advance": "2s"}, {"user": "b"}, {"redeliver": 3}) == (
        "a",
        Advance(2),
        "b",
        Deliver("b", 3, is_again=True),
    )


def test_update_bears_the_number_of_its_turn() -> None:
    """Every entry counts, and a second delivery has the number and the body of the first."""
    first = b'{"id": 2, "text": "a"}'
    sent = turns({"advance": "2s"}, {"user": "a"}, {"redeliver": 2}, {"user": "b"}, deliver=HOOK)
    assert sent[1] == Deliver("a", 2, False, "POST", "/hook", JSON, first)
    assert sent[2] == Deliver("a", 2, True, "POST", "/hook", JSON, first)
    assert (sent[3].update_id, sent[3].body) == (4, b'{"id": 4, "text": "b"}')
    assert [turn.told for turn in sent[2:]] == [
        {"deliver": "POST /hook", "update_id": 2, "redelivered": 2},
        {"deliver": "POST /hook", "update_id": 4, "redelivered": None},
    ]


def test_delivery_of_another_shape_is_shown_in_words(tmp_path: Path) -> None:
    """Nobody speaks, so the trace shows what was sent."""
    (tmp_path / "cv.pdf").write_bytes(b"%PDF")
    sent = turns(
        {"deliver": {"http": "PUT /cv", "body_file": "cv.pdf"}},
        {"deliver": {"http": "POST /in", "text": "no. {update_id}"}},
        {"deliver": {"http": "POST /in", "json": {"doc": 1}}},
        {"deliver": {"http": "DELETE /in"}},
        folder=tmp_path,
    )
    assert [turn.text for turn in sent] == [
        "(the file cv.pdf)", "no. {update_id}", '{"doc":1}', "",
    ]  # fmt: skip
    assert [turn.body for turn in sent] == [b"%PDF", b"no. 2", b'{"doc": 1}', b""]


@pytest.mark.parametrize(
    ("turn", "n"),
    [
        ({"user": "a"}, 1),
        ({"user": "a", "expect": {"replies": 3}}, 3),
        ({"user": "a", "expect": {"replies": {"min": 2, "max": 5}}}, 2),
        ({"user": "a", "expect": {"replies": 0}}, 0),
        ({"redeliver": 1}, 0),
        ({"redeliver": 1, "expect": {"replies": 1}}, 1),
    ],
)
def test_replies_are_waited_for_as_expected(turn: dict[str, Any], n: int) -> None:
    """One to what is new, unless the turn says how many; none where nobody asked to wait."""
    keys = {"reply_from": {"http": "POST */send", "field": "text"}}
    given = ({"user": "x"}, turn)
    assert turns(*given, deliver={**HOOK, "until": "reply"}, **keys)[1].n_replies == n
    assert turns(*given, deliver=HOOK, **keys)[1].n_replies == 0


def test_polled_addresses_are_named_with_their_silence() -> None:
    """An agent that polls is answered before anything is there."""
    updates, other = "GET https://a.example.test/updates", "GET https://a.example.test/other"
    scenario = Scenario.model_validate(
        {
            "id": "a",
            "turns": [{"user": "a"}, {"deliver": {"http": other, "idle": []}}],
            "deliver": {"http": updates, "json": "{text}"},
        }
    )
    assert polls_of(scenario) == {updates: b'{"ok": true, "result": []}', other: b"[]"}
    assert polls_of(Scenario.model_validate({"id": "a", "input": "x", "deliver": HOOK})) == {}


def test_live_agent_that_is_called_can_be_told_again(tmp_path: Path) -> None:
    """A second delivery needs no sandbox where the agent is called."""
    heard: list[str] = []

    def agent(text: str) -> str:
        heard.append(text)
        return f"no. {len(heard)}"

    scenario = {
        "id": "a",
        "turns": [{"user": "hi"}, {"redeliver": 1, "expect": {"reply": {"equals": "no. 2"}}}],
    }
    suite = suite_from_data({"suite": "s", "scenarios": [scenario]})
    run = run_suite(suite, agent=agent, lane="live", isolation="none", out=tmp_path)
    assert run.status == "passed"
    assert heard == ["hi", "hi"]
