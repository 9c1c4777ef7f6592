"""What a scenario needs and this version does not have is named, never left out."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.suite import Scenario, suite_from_data
from evalkit.trial import unbuilt_parts

HTTP_FIXTURE = {"http": [{"GET https://a.example.test/x": {"status": 200, "text": "x"}}]}

DATABASE = {"database": "a.db", "query": "select 1", "n_rows": 1}


def scenario(**keys: Any) -> Scenario:
    """Load a suite of one scenario and give the scenario."""
    body = {"id": "a", "expect": {"replies": 1}, **keys}
    if "turns" not in body:
        body["input"] = "x"
    return suite_from_data({"suite": "s", "scenarios": [body]}).scenarios[0]


def test_a_plain_scenario_can_be_run() -> None:
    """What users say, tools and replies need nothing more."""
    plain = scenario(
        turns=[{"user": "a"}, {"user": "b", "expect": {"tools": []}}],
        expect={"reply": {"contains": "x"}, "path": {"max_tool_calls": 3}},
        forbid={"tools": ["book"]},
        tags=["t"],
        env={"A": "b"},
    )
    assert unbuilt_parts(plain, lane="live") == ()


def test_a_lane_that_is_not_built_is_named() -> None:
    """A trial does not run in another lane than was asked for."""
    assert unbuilt_parts(scenario(), lane="quality") == ("the quality lane",)


def test_the_contract_lane_has_a_clock_and_files() -> None:
    """The sandbox gives what the live lane lacks; a budget guards only what costs something."""
    staged = scenario(
        turns=[{"user": "a"}, {"advance": "2d"}, {"restart": "kill"}],
        clock="2026-01-05T09:00:00Z",
        budget={"model_calls": 3},
    )
    assert unbuilt_parts(staged, lane="contract") == ()
    turns = ("a `advance` turn", "a `restart` turn")
    assert unbuilt_parts(staged, lane="live") == ("`clock`", "`budget`", *turns)


@pytest.mark.parametrize(
    ("keys", "part"),
    [
        ({"clock": "2026-01-05T09:00:00Z"}, "`clock`"),
        ({"fixtures": HTTP_FIXTURE}, "`fixtures`"),
        ({"network": {"allow": ["a.example.test"]}}, "`network`"),
        ({"budget": {"model_calls": 3}}, "`budget`"),
        ({"turns": [{"user": "a"}, {"advance": "2d"}]}, "a `advance` turn"),
        ({"turns": [{"user": "a"}, {"restart": "kill"}]}, "a `restart` turn"),
        (
            {
                "turns": [{"deliver": {"http": "POST /in"}}, {"redeliver": 1}],
                "expect": {"tools": []},
            },
            "a `deliver` turn",
        ),
        (
            {
                "deliver": {"http": "POST /in", "text": "{text}"},
                "expect": {"log": {"contains": "x"}},
            },
            "`deliver`",
        ),
        ({"expect": {"database": [DATABASE]}}, "`expect.database`"),
        ({"turns": [{"user": "a", "expect": {"database": [DATABASE]}}]}, "`expect.database`"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_part_that_is_not_built_is_named(keys: dict[str, Any], part: str) -> None:
    """Leaving the part out would measure something else."""
    assert part in unbuilt_parts(scenario(**keys), lane="live")


def test_databases_and_states_are_there_in_the_contract_lane() -> None:
    """The sandbox has them, and an agent tells its state in the live lane as well."""
    asked = scenario(expect={"database": [DATABASE], "state": {"a": 1}})
    assert unbuilt_parts(asked, lane="contract") == ()
    assert unbuilt_parts(scenario(expect={"state": {"a": 1}}), lane="live") == ()
