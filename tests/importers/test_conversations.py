"""Files of chat messages: the record around a conversation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import TraceError
from evalkit.importers import ImportedTrial, read

_SAID: list[dict[str, Any]] = [
    {"role": "user", "content": "hi"},
    {"role": "assistant", "content": "Bye."},
]
TRACES = Path(__file__).parents[2] / "data" / "traces"


def _read(folder: Path, *records: object, **options: Any) -> list[ImportedTrial]:
    path = folder / "talks.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in records))
    return list(read("openai", path, **options).trials)


def _names(trials: list[ImportedTrial]) -> list[tuple[str, int]]:
    return [(trial.scenario, trial.trial) for trial in trials]


def test_conversations_take_scenario_trial_and_tags_from_the_record(tmp_path: Path) -> None:
    """A record may say whose trial it is."""
    trials = _read(tmp_path, {"scenario": "s", "trial": 3, "tags": ["a"], "messages": _SAID})
    assert _names(trials) == [("s", 3)]
    assert trials[0].tags == ("a",)


def test_conversations_number_trials_of_a_scenario(tmp_path: Path) -> None:
    """Trials without a number are counted for each scenario."""
    trials = _read(tmp_path, *({"scenario": s, "messages": _SAID} for s in "aba"))
    assert _names(trials) == [("a", 0), ("b", 0), ("a", 1)]


def test_conversations_without_scenario_are_named_after_file_and_line(tmp_path: Path) -> None:
    """A record that names no scenario is one of its own; bare lists of messages too."""
    assert _names(_read(tmp_path, {"messages": _SAID}, _SAID)) == [("talks-1", 0), ("talks-2", 0)]


def test_conversations_take_other_keys_for_scenario_and_trial(tmp_path: Path) -> None:
    """Options name the keys under which somebody's records keep the scenario and the trial."""
    records = {"case": "s", "attempt": 1, "messages": _SAID}
    trials = _read(tmp_path, records, scenario_key="case", trial_key="attempt")
    assert _names(trials) == [("s", 1)]


def test_conversations_read_one_json_list_of_records(tmp_path: Path) -> None:
    """A JSON file may hold one conversation, a list of records, or one list of messages."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps([{"messages": _SAID}, {"scenario": "s", "messages": _SAID}]))
    assert _names(list(read("openai", path).trials)) == [("a-1", 0), ("s", 0)]
    path.write_text(json.dumps(_SAID))
    assert _names(list(read("anthropic", path).trials)) == [("a", 0)]


def test_conversations_read_folders(tmp_path: Path) -> None:
    """Files of one name in two folders are two trials of one scenario."""
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "weather.json").write_text(json.dumps(_SAID))
    trials = list(read("openai", tmp_path).trials)
    assert _names(trials) == [("weather", 0), ("weather", 1)]


@pytest.mark.parametrize(
    "grades",
    [{"human": False}, [{"grader": "human", "value": 0, "reason": "rude"}]],
)
def test_conversations_bring_grades_along(tmp_path: Path, grades: object) -> None:
    """What somebody said of a trial comes along as a grade."""
    trial = _read(tmp_path, {"messages": _SAID, "grades": grades})[0]
    assert (trial.grades[0].grader, trial.grades[0].status) == ("human", "failed")


def test_conversations_grade_without_value_is_incomplete(tmp_path: Path) -> None:
    """A grade that has no value measured nothing."""
    trial = _read(tmp_path, {"messages": _SAID, "grades": {"human": None}})[0]
    assert trial.grades[0].status == "incomplete"


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"messages": [{"role": "robot"}]}, "role 'robot'"),
        ({"messages": []}, "the conversation is empty"),
        ({"messages": None}, "no list of messages"),
        ({"messages": _SAID, "trial": -1}, "trial: -1 is no number"),
        ({"messages": _SAID, "trial": True}, "trial: True is no number"),
        ({"messages": _SAID, "tags": "a"}, "tags: 'a'"),
        ({"messages": _SAID, "grades": {"human": 7}}, "outside"),
        ({"messages": _SAID, "grades": {"human": "yes"}}, "'yes' is no number"),
        ({"messages": _SAID, "grades": "good"}, "grades: write"),
        ({"messages": _SAID, "scenrio": "x"}, "unknown key 'scenrio'; did you mean 'scenario'"),
        ({"request": {"messages": _SAID}}, "response"),
        ({"messages": [{"type": "human", "content": "x"}]}, "looks like LangChain"),
        (7, "an object or a list"),
    ],
)
def test_conversations_unreadable_record_is_a_trial_with_a_problem(
    tmp_path: Path, record: object, problem: str
) -> None:
    """A record that cannot be read keeps its place, says where it is and shows no calls."""
    trials = _read(tmp_path, {"scenario": "good", "messages": _SAID}, record)
    assert len(trials) == 2
    assert problem in trials[1].problem
    assert trials[1].problem.startswith("talks.jsonl:2: ")
    assert not trials[1].trace.tools_observed
    assert not trials[0].problem


def test_conversations_unreadable_record_keeps_the_scenario_it_names(tmp_path: Path) -> None:
    """Where a broken record says whose it is, that scenario lacks a trial, and no other."""
    good = {"scenario": "s", "messages": _SAID}
    trials = _read(tmp_path, good, {"scenario": "s", "messages": [7]})
    assert _names(trials) == [("s", 0), ("s", 1)]
    assert trials[1].problem


def test_conversations_refuse_a_trial_that_stands_twice(tmp_path: Path) -> None:
    """One trial of one scenario cannot stand in a file twice."""
    record = {"scenario": "s", "trial": 0, "messages": _SAID}
    with pytest.raises(TraceError, match=r"talks\.jsonl:2: trial 0 of scenario 's' stands in"):
        _read(tmp_path, record, record)


def test_conversations_can_be_iterated_again(tmp_path: Path) -> None:
    """The trials are read anew each time, so nobody meets an empty iterator."""
    path = tmp_path / "a.json"
    path.write_text(json.dumps(_SAID))
    imported = read("openai", path)
    assert len(list(imported.trials)) == len(list(imported.trials)) == 1


@pytest.mark.parametrize(
    ("name", "scenario", "calls"),
    [
        ("good", "weather-gate-book", ["get_weather", "book AA123"]),
        ("wrong_id", "weather-gate-book", ["get_weather", "book AA999"]),
        ("looping", "weather-gate-book", ["get_weather", "get_weather", "book AA123"]),
        ("good", "no-book-when-raining", ["get_weather"]),
        ("forbidden", "no-book-when-raining", ["get_weather", "book AA200"]),
    ],
)
def test_shipped_travel_traces_show_their_behaviour(
    name: str, scenario: str, calls: list[str]
) -> None:
    """Each shipped file of travel traces holds the five scenarios and its one behaviour."""
    trials = {t.scenario: t for t in read("openai", TRACES / f"travel_{name}.jsonl").trials}
    assert list(trials) == [
        "weather-gate-book",
        "search-before-book",
        "no-book-when-raining",
        "weather-only",
        "ambiguous-needs-search",
    ]
    made = trials[scenario].trace.tool_calls
    flights = [call.args.get("flight_id", "") if call.args else "" for call in made]
    shown = [f"{call.name} {flight}".strip() for call, flight in zip(made, flights, strict=True)]
    assert shown == calls
    assert {call.status for trial in trials.values() for call in trial.trace.tool_calls} == {"ok"}
