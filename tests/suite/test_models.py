"""Short forms become the one long form that graders and the runner meet."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError

from evalkit.errors import SuiteError
from evalkit.suite import (
    AdvanceTurn,
    CallExpect,
    Canary,
    Expect,
    FaultStep,
    Forbid,
    JsonStep,
    PathExpect,
    RedeliverTurn,
    RestartTurn,
    Scenario,
    Suite,
    TextStep,
    ToolsExpect,
    ToolsStep,
    UserTurn,
    suite_from_data,
)


def scenario(**keys: Any) -> Scenario:
    """Load a suite of one scenario and give the scenario."""
    return load({}, **keys).scenarios[0]


def load(header: dict[str, Any], **keys: Any) -> Suite:
    """Load a suite of one scenario."""
    body = {"id": "a", "expect": {"replies": 1}, **keys}
    if "turns" not in body:
        body["input"] = "x"
    return suite_from_data({"suite": "s", **header, "scenarios": [body]})


def tools(written: Any, *, strict: bool = False) -> ToolsExpect:
    """Load expected tool calls."""
    found = load({"defaults": {"strict": strict}}, expect={"tools": written}).scenarios[0]
    assert found.expect is not None
    assert found.expect.tools is not None
    return found.expect.tools


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("book", CallExpect(tool="book")),
        ({"book": {}}, CallExpect(tool="book")),
        ({"book": {"a": 1}}, CallExpect(tool="book", args={"a": 1})),
        ({"tool": "book", "args": {"a": 1}}, CallExpect(tool="book", args={"a": 1})),
        ({"tool": "tool"}, CallExpect(tool="tool")),
    ],
)
def test_call_has_three_written_forms(written: Any, expected: CallExpect) -> None:
    """A bare name, a name with arguments and the long form give the same record."""
    assert tools([written]).calls == (expected,)


@pytest.mark.parametrize(
    ("times", "least", "most"),
    [
        (None, 1, None),
        (1, 1, 1),
        (3, 3, 3),
        ({"min": 2}, 2, None),
        ({"max": 3}, 1, 3),
        ({"min": 0, "max": 2}, 0, 2),
    ],
)
def test_times_become_bounds(times: Any, least: int, most: int | None) -> None:
    """A number is exact, a mapping a range; nothing means once, and more are extra calls."""
    call = {"tool": "book"} | ({} if times is None else {"times": times})
    found = tools([call]).calls[0]
    assert (found.times_min, found.times_max) == (least, most)
    assert (found.times is None) == (times is None)


@pytest.mark.parametrize("written", [[], {"calls": []}])
def test_no_tools_forbids_extra_calls(written: Any) -> None:
    """An empty list of expected calls says that no tool may be called."""
    assert tools(written) == ToolsExpect(calls=(), extra_calls="forbid")


def test_programmatic_empty_tools_mean_the_same() -> None:
    """The same rule holds for a model built in Python."""
    assert Expect.model_validate({"tools": ()}).tools == ToolsExpect(calls=(), extra_calls="forbid")


def test_allowed_extra_calls_are_names() -> None:
    """``{allow: [...]}`` becomes a tuple of names, also where the list is one name."""
    assert tools({"calls": ["a"], "extra_calls": {"allow": "b"}}).extra_calls == ("b",)
    assert tools({"calls": [], "extra_calls": {"allow": ["b", "c"]}}).extra_calls == ("b", "c")


def test_strict_forbids_what_is_not_said() -> None:
    """``strict`` fills in ``forbid`` where a suite says nothing, and nowhere else."""
    found = tools(["a", {"tool": "b", "extra_args": "free"}], strict=True)
    assert found.extra_calls == "forbid"
    assert [call.extra_args for call in found.calls] == ["forbid", "free"]
    assert tools({"calls": ["a"], "extra_calls": "free"}, strict=True).extra_calls == "free"
    assert tools(["a"]).extra_calls == "free"


def test_strict_reaches_the_turns() -> None:
    """Expectations of one turn are strict as well."""
    suite = load({"defaults": {"strict": True}}, turns=[{"user": "x", "expect": {"tools": ["a"]}}])
    expect = suite.scenarios[0].turns[0].expect
    assert expect is not None
    assert expect.tools is not None
    assert (expect.tools.extra_calls, expect.tools.calls[0].extra_args) == ("forbid", "forbid")


def test_input_becomes_one_user_turn_with_the_model() -> None:
    """``input`` and ``model`` are one turn, as if they had been written so."""
    short = scenario(model=[{"text": "y"}])
    long = scenario(turns=[{"user": "x", "model": [{"text": "y"}]}])
    assert short.model_copy(update={"hash": ""}) == long.model_copy(update={"hash": ""})
    assert short.hash == long.hash
    assert short.input == "x"


def test_steps_have_their_kinds() -> None:
    """Each step is the record of its kind; one tool is a list of one."""
    model = (
        scenario(
            model=[
                {"text": "a"},
                {"tool": "b", "args": {"c": 1}, "text": "d"},
                {"tools": ["e", {"f": {"g": 2}}]},
                {"json": None},
                {"fault": "timeout", "times": 3},
            ]
        )
        .turns[0]
        .model
    )
    assert model is not None
    text, single, several, json, fault = model.scripts[""].steps
    assert text == TextStep(text="a")
    assert isinstance(single, ToolsStep)
    assert (single.text, single.tools[0].tool, single.tools[0].args) == ("d", "b", {"c": 1})
    assert isinstance(several, ToolsStep)
    assert [use.tool for use in several.tools] == ["e", "f"]
    assert json == JsonStep(json=None)
    assert fault == FaultStep(fault="timeout", times=3)


def test_model_forms_tell_silence_from_absence() -> None:
    """``[]`` says that no model is called; no ``model`` says that there is no script."""
    silent = scenario(model=[])
    assert silent.turns[0].model is not None
    assert silent.turns[0].model.is_silent
    assert silent.is_scripted
    assert scenario().turns[0].model is None
    assert not scenario().is_scripted


def test_silent_model_holds_for_each_turn() -> None:
    """``model: []`` above turns holds for those that have no script."""
    found = scenario(model=[], turns=[{"user": "x"}, {"user": "y", "model": [{"text": "z"}]}])
    first, second = found.turns
    assert first.model is not None
    assert first.model.is_silent
    assert second.model is not None
    assert not second.model.is_silent


def test_journey_turns_are_typed() -> None:
    """Each kind of turn is its own record, with durations in seconds."""
    turns = scenario(
        turns=[{"user": "x"}, {"advance": "2d"}, {"restart": "kill"}, {"redeliver": 1}]
    ).turns
    assert [type(turn) for turn in turns] == [UserTurn, AdvanceTurn, RestartTurn, RedeliverTurn]
    assert turns[1].advance_s == 172800  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        (20, 20),
        (0.5, 0.5),
        ("500ms", 0.5),
        ("20s", 20),
        ("1h30m", 5400),
        ("2d", 172800),
        ("1w", 604800),
    ],
)
def test_durations_are_seconds(written: Any, seconds: float) -> None:
    """A number is seconds, a text has units."""
    assert scenario(deadline=written).deadline_s == seconds


def test_deadline_is_a_minute_unless_given() -> None:
    """An agent that hangs is stopped even where nobody thought of it."""
    assert scenario().deadline_s == 60


@pytest.mark.parametrize(
    "written", ["2026-01-05T09:00:00Z", "2026-01-05T10:00:00+01:00", {"at": "2026-01-05T09:00:00Z"}]
)
def test_clock_is_a_moment_with_zone(written: Any) -> None:
    """The clock's forms give one moment."""
    clock = scenario(clock=written).clock
    assert clock is not None
    assert clock.at == datetime(2026, 1, 5, 9, tzinfo=UTC)
    assert not clock.frozen


def test_path_can_be_switched_off_or_left_alone() -> None:
    """``false`` is off; limits have the documented default; silence stays silence."""
    assert scenario(expect={"path": False}).expect == Expect(path=False)
    assert scenario(expect={"path": {}}).expect == Expect(path=PathExpect(max_ratio=2.0))
    expect = scenario(expect={"replies": 1}).expect
    assert expect is not None
    assert expect.path is None


@pytest.mark.parametrize("written", [["book", {"pay": {"n": 1}}], {"book": {}, "pay": {"n": 1}}])
def test_forbidden_calls_have_two_forms(written: Any) -> None:
    """A list and a mapping of names give the same bans."""
    forbid = scenario(forbid={"tools": written}).forbid
    assert forbid == Forbid(tools=({"tool": "book"}, {"tool": "pay", "args": {"n": 1}}))  # type: ignore[arg-type]


def test_texts_are_tuples() -> None:
    """One text and a list of texts are told apart no more after loading."""
    expect = scenario(expect={"reply": {"contains": "a", "one_of": ["b", "c"]}}).expect
    assert expect is not None
    assert expect.reply is not None
    assert (expect.reply.contains, expect.reply.one_of) == (("a",), ("b", "c"))


def test_variables_are_filled_in_everywhere() -> None:
    """Variables reach every text, routes too; doubled braces and others stay literal."""
    found = scenario(
        vars={"n": "17", "host": "h.example.test"},
        turns=[{"user": "job {n}, {{n}}, {m}, {n"}],
        fixtures={"http": [{"GET https://{host}/{n}": {"text": "{n}"}}]},
        expect={"tools": [{"save": {"url": {"$regex": "/{n}$"}, "{n}": "{n}"}}]},
        tags=["{n}"],
    )
    assert found.input == "job 17, {n}, {m}, {n"
    assert found.fixtures is not None
    assert found.fixtures.http[0].request == "GET https://h.example.test/17"
    assert found.fixtures.http[0].responses[0].text == "17"
    assert found.expect is not None
    assert found.expect.tools is not None
    assert found.expect.tools.calls[0].args == {"url": {"$regex": "/17$"}, "{n}": "17"}
    assert found.tags == ("{n}",)


def test_value_of_a_variable_is_not_filled_again() -> None:
    """A variable that holds braces is put in as it is."""
    assert scenario(vars={"a": "{b}", "b": "x"}, turns=[{"user": "{a}"}]).input == "{b}"


@pytest.mark.parametrize(
    ("defaults", "keys", "attribute", "value"),
    [
        ({"deadline": 5}, {}, "deadline_s", 5),
        ({"deadline": 5}, {"deadline": 7}, "deadline_s", 7),
        ({"tags": ["a"]}, {"tags": ["b"]}, "tags", ("b",)),
        ({"env": {"A": "1", "B": "1"}}, {"env": {"B": "2"}}, "env", {"A": "1", "B": "2"}),
        (
            {"forbid": {"log": "x"}},
            {"forbid": {"tools": "b"}},
            "forbid",
            Forbid.model_validate({"log": "x", "tools": "b"}),
        ),
        ({"quality": {"skip": "x"}}, {"quality": {"rubrics": "r"}}, "must_pass", False),
        ({"input": "y"}, {"turns": [{"user": "z"}]}, "input", "z"),
    ],
)
def test_defaults_lie_below_the_scenario(
    defaults: dict[str, Any], keys: dict[str, Any], attribute: str, value: Any
) -> None:
    """A scenario's key wins; six mappings are merged one level deep; the rest is replaced."""
    assert getattr(load({"defaults": defaults}, **keys).scenarios[0], attribute) == value


def test_empty_expect_is_refused_despite_defaults() -> None:
    """A written ``expect: {}`` is an error even where defaults would fill it."""
    with pytest.raises(SuiteError, match="is empty"):
        load({"defaults": {"expect": {"errors": 0}}}, expect={})


def test_cluster_comes_from_a_variable() -> None:
    """The suite's ``cluster`` names the variable; the scenario's own cluster wins."""
    assert load({"cluster": "repo"}, vars={"repo": "numpy"}).scenarios[0].cluster == "numpy"
    assert load({"cluster": "repo"}, cluster="own").scenarios[0].cluster == "own"
    with pytest.raises(SuiteError, match="has no cluster"):
        load({"cluster": "repo"})


def test_suite_is_a_collection_of_scenarios() -> None:
    """A suite has a length, is iterated over, and finds scenarios by id."""
    suite = load({"agent": "pkg.mod:agent"})
    assert len(suite) == 1
    assert [one.id for one in suite] == ["a"]
    assert suite.scenario("a") is suite.scenarios[0]
    assert suite.agent_path == "pkg.mod:agent"
    with pytest.raises(KeyError, match="no scenario 'aa'"):
        suite.scenario("aa")


def test_suite_survives_pickling() -> None:
    """Scenarios travel to workers."""
    suite = load(
        {}, model=[{"text": "a"}], canaries=[{"name": "c", "value": "canary@example.test"}]
    )
    copy = pickle.loads(pickle.dumps(suite))
    assert copy == suite
    assert copy.scenarios[0].canaries == (Canary(name="c", value="canary@example.test"),)


def test_models_are_frozen() -> None:
    """Nobody changes a suite after it was checked."""
    with pytest.raises(ValidationError, match="frozen"):
        scenario().id = "b"
