"""Graders and tools that nobody has are found, with line and nearest name."""

from __future__ import annotations

from pathlib import Path

from evalkit.suite import Suite, grader_problems, parse_suite, suite_from_data, tool_problems

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
    found = tool_problems(suite(tmp_path), {"book": None, "serch": None})
    assert [one.key for one in found] == ["scenarios[0].forbid.tools[0]"]


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
