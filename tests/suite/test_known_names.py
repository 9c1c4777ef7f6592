"""Graders and tools that nobody has are found, with line and nearest name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalkit.suite import (
    Suite,
    grader_problems,
    names_tools,
    parse_suite,
    suite_from_data,
    tool_problems,
)

TEXT = """\
suite: s
scenarios:
  - id: a
    input: x
    graders:
      - polite
      - names_flight: {strict: true}
    expect:
      tools:
        - book: {flight: AA1, dat: Friday}
        - tool: serch
    forbid: {tools: [delete]}
"""


def suite(folder: Path) -> Suite:
    """Write and load the suite."""
    (folder / "s.yaml").write_text(TEXT)
    return parse_suite(folder / "s.yaml")


def test_unknown_grader_is_named_with_line(tmp_path: Path) -> None:
    """A grader that is not registered has a line, a key path and the nearest name."""
    found = grader_problems(suite(tmp_path), ["polite", "names_the_flight"])
    assert [str(one) for one in found] == [
        f"{tmp_path}/s.yaml:7: scenarios[0].graders[1]: there is no grader 'names_flight'. "
        "Did you mean `names_the_flight`?"
    ]


def test_unknown_tool_and_argument_are_named_with_line(tmp_path: Path) -> None:
    """Tools and arguments are compared with what the agent declares."""
    declared = {"book": ["flight", "date"], "search": None, "delete": None}
    found = tool_problems(suite(tmp_path), declared)
    assert [(one.line, one.key, one.message) for one in found] == [
        (
            10,
            "scenarios[0].expect.tools[0].book.dat",
            "'book' takes no argument 'dat'. Did you mean `date`?",
        ),
        (
            11,
            "scenarios[0].expect.tools[1]",
            "the agent has no tool 'serch'. Did you mean `search`?",
        ),
    ]


def test_forbidden_tool_must_exist_too(tmp_path: Path) -> None:
    """A misspelt ban would never fire, so it is a problem."""
    found = tool_problems(suite(tmp_path), {"book": None, "serch": None, "deleted": None})
    assert [(one.key, one.message) for one in found] == [
        (
            "scenarios[0].forbid.tools[0]",
            "a ban of 'delete' never fires: the agent has no such tool. Did you mean `deleted`?",
        )
    ]


@pytest.mark.parametrize("tool", ["book", "serch", "delete_all", "undelete_every"])
def test_what_an_agent_must_never_get_may_be_banned(tmp_path: Path, tool: str) -> None:
    """A ban of a tool that the agent does not have is no slip."""
    assert tool_problems(suite(tmp_path), {"book": None, "serch": None, tool: None}) == []


def test_script_may_ask_wrongly_on_purpose_but_not_for_a_missing_tool(tmp_path: Path) -> None:
    """Wrong arguments are a test of the agent; a missing tool is `fault: wrong_tool`."""
    steps = [
        {"tool": "book", "args": {"whatever": 1}},
        {"tools": [{"tool": "bok"}, {"tool": "book"}]},
        {"fault": "wrong_tool", "tool": "fly"},
        {"text": "Done."},
    ]
    scenario = {"id": "a", "input": "x", "model": steps, "expect": {"replies": 1}}
    path = tmp_path / "s.yaml"
    path.write_text(json.dumps({"suite": "s", "scenarios": [scenario]}))
    (found,) = tool_problems(parse_suite(path), {"book": ["flight"]})
    assert found.key == "scenarios[0].model[1]"
    assert found.message == "the agent has no tool 'bok'. Did you mean `book`?"


def test_tools_that_may_be_called_besides_must_exist() -> None:
    """A name that allows or pardons nothing is a slip as well."""
    expect = {
        "tools": {"calls": [{"book": {}}], "extra_calls": {"allow": ["serch"]}},
        "path": {"poll": ["pol"]},
    }
    scenario = {"id": "a", "input": "x", "expect": expect}
    told = suite_from_data({"suite": "s", "scenarios": [scenario]})
    found = tool_problems(told, {"book": None, "search": None, "poll": None})
    assert [one.message for one in found] == [
        "the agent has no tool 'serch'. Did you mean `search`?",
        "the agent has no tool 'pol'. Did you mean `poll`?",
    ]
    assert names_tools(told)


def test_suite_may_name_no_tool() -> None:
    """Then there is nothing to ask an agent."""
    told = {"id": "a", "input": "x", "expect": {"replies": 1}}
    assert not names_tools(suite_from_data({"suite": "s", "scenarios": [told]}))


def test_problems_without_a_file_have_a_place() -> None:
    """A suite from memory has no lines, but its places are named."""
    data = {"suite": "s", "scenarios": [{"id": "a", "input": "x", "graders": ["no"]}]}
    (found,) = grader_problems(suite_from_data(data), [])
    assert str(found) == "s: scenarios[0].graders[0]: there is no grader 'no'."


def test_known_names_give_no_problem(tmp_path: Path) -> None:
    """Nothing is said about what exists."""
    one = suite(tmp_path)
    assert grader_problems(one, {"polite", "names_flight"}) == []
    assert tool_problems(one, {"book": None, "serch": [], "delete": []}) == []
