"""Annotations for GitHub: they are what they say, and nobody else's orders pass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalkit.publishing import github_annotations, inert
from evalkit.results import Run, TrialRecord

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
PIECES = st.lists(
    st.sampled_from(
        [
            *("::", ":", "#", "##[", "[", "]", " ", "\n", "\r", "\t", "\u00ad", "\ufeff", "%0A"),
            *("add-mask", "stop-commands", "set-output name=a", "error", "x", "\x00", "\u2028"),
        ]
    ),
    max_size=12,
).map("".join)
KNOWN = {
    "add-mask", "add-matcher", "add-path", "debug", "echo", "endgroup", "error", "group",
    "notice", "remove-matcher", "save-state", "set-env", "set-output", "stop-commands", "warning",
}  # fmt: skip
IGNORED = "".join(map(chr, [*range(10), 11, 12, *range(14, 32), *range(127, 160)])) + (
    "\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2061\u2062\u2063\u2064\ufeff"
)


class Command(NamedTuple):
    """An order that a runner takes."""

    name: str
    properties: dict[str, str]
    data: str


def obeyed(text: str) -> list[Command]:
    """Read text as a runner does, taking for an order whatever any runner could."""
    lines = text.replace("\r", "\n").split("\n")
    return [command for line in lines if (command := _new(line) or _old(line))]


def _new(line: str) -> Command | None:
    """Read ``::name key=value,...::data``, leading white space and unseen marks ignored."""
    line = line.lstrip().translate(dict.fromkeys(map(ord, IGNORED))).lstrip()
    if not line.startswith("::") or "::" not in line[2:]:
        return None
    head, _, data = line[2:].partition("::")
    name, _, rest = head.partition(" ")
    if name.lower() not in KNOWN:
        return None
    pairs = (pair.split("=", 1) for pair in rest.split(",") if "=" in pair)
    return Command(name, {key: _unescape(value) for key, value in pairs}, _unescape(data))


def _old(line: str) -> Command | None:
    """Read ``##[name key=value;...]data``, anywhere in a line."""
    line = line.translate(dict.fromkeys(map(ord, IGNORED)))
    start = line.find("##[")
    if start < 0 or "]" not in line[start:]:
        return None
    head, _, data = line[start + 3 :].partition("]")
    name = head.partition(" ")[0]
    return Command(name, {}, data) if name.lower() in KNOWN else None


def _unescape(text: str) -> str:
    for sign, escaped in (("\r", "%0D"), ("\n", "%0A"), (":", "%3A"), (",", "%2C"), ("%", "%25")):
        text = text.replace(escaped, sign)
    return text


@given(text=ANY_TEXT | PIECES)
@example(text="::add-mask::x")
@example(text="a\n  ::stop-commands::x")
@example(text="a\r::set-output name=a::b")
@example(text="price ##[add-mask]x")
@example(text="\u00ad:\u00ad:add-mask::x")
@settings(deadline=None, max_examples=100)
def test_inert_text_gives_no_orders(text: str) -> None:
    """Neither at the beginning of a line nor within it."""
    assert obeyed(inert(text)) == []


@pytest.mark.parametrize("text", ["plain", "a::b", "std::vector<int>", "# title", "[x] ##", ""])
def test_inert_leaves_other_text_alone(text: str) -> None:
    """Only what could be an order is changed."""
    assert inert(text) == text


def test_reader_of_this_test_obeys() -> None:
    """The stand-in runner takes the orders that it must recognise."""
    assert [each.name for each in obeyed("::add-mask::x\n  ::error file=a::b\nx ##[set-env]y")] == [
        "add-mask",
        "error",
        "set-env",
    ]


def test_annotations_stand_at_the_scenario(
    run_of: Callable[..., Run], record: Callable[..., TrialRecord], tmp_path: Path
) -> None:
    """File relative to the checkout, line of the scenario, status in the title."""
    suite = tmp_path / "data, 1" / "s.yaml"
    suite.parent.mkdir()
    suite.write_text("suite: s\nscenarios:\n  - id: a\n    input: b\n")
    run = run_of(record("a", reason="no: 50%\nof it"), suite_path=str(suite))
    (line,) = github_annotations(run, workspace=tmp_path)
    assert line.startswith("::error title=")
    (command,) = obeyed(line)
    assert command.properties == {
        "title": "travel / a: failed",
        "file": "data, 1/s.yaml",
        "line": "3",
    }
    assert command.data == "truth: no: 50%\nof it"


def test_suite_outside_of_the_checkout_has_no_place(
    run_of: Callable[..., Run], record: Callable[..., TrialRecord], tmp_path: Path
) -> None:
    """GitHub could not show it, and a path of the machine says nothing."""
    run = run_of(record("a"), suite_path="/elsewhere/s.yaml")
    (command,) = obeyed(github_annotations(run, workspace=tmp_path)[0])
    assert "file" not in command.properties


def test_at_most_ten_and_the_rest_is_counted(
    run_of: Callable[..., Run], record: Callable[..., TrialRecord]
) -> None:
    """GitHub drops what comes after ten of a kind; failed scenarios come first."""
    lost = [record(f"l{i}", status="incomplete", reason="?") for i in range(4)]
    bad = [record(f"b{i}", reason="!") for i in range(9)]
    commands = obeyed("\n".join(github_annotations(run_of(*lost, *bad))))
    assert [each.name for each in commands] == ["error"] * 10 + ["notice"]
    assert "l0" in commands[9].properties["title"]
    assert commands[-1].data == "0 more scenarios failed, 3 more are incomplete"


@pytest.mark.parametrize(
    ("verdict", "exit_code", "kinds"),
    [
        ("FAIL", 1, ["error", "error"]),
        ("INCONCLUSIVE", 0, ["warning", "warning"]),
        ("INVALID", 2, ["error", "error"]),
        ("PASS", 0, ["notice", "warning"]),
    ],
)
def test_verdict_comes_first_and_colours_the_rest(
    run_of: Callable[..., Run],
    record: Callable[..., TrialRecord],
    decided: Any,
    verdict: str,
    exit_code: int,
    kinds: list[str],
) -> None:
    """Where a gate blocks nothing, a failed scenario is a warning."""
    given_verdict = decided(verdict, ("why",), exit_code)
    commands = obeyed("\n".join(github_annotations(run_of(record("a")), verdict=given_verdict)))
    assert [each.name for each in commands] == kinds
    assert verdict in commands[0].properties["title"]


@given(reason=ANY_TEXT | PIECES, scenario=ANY_TEXT | PIECES, suite=PIECES)
@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_no_text_adds_an_order(
    run_of: Callable[..., Run],
    record: Callable[..., TrialRecord],
    reason: str,
    scenario: str,
    suite: str,
) -> None:
    """One annotation is one order of our own, whatever is in it."""
    lines = github_annotations(run_of(record(scenario, reason=reason), suite=suite))
    assert [each.name for each in obeyed("\n".join(lines))] == ["error"]
    assert set(obeyed(lines[0])[0].properties) == {"title"}


def test_passed_run_has_no_annotation(
    run_of: Callable[..., Run], record: Callable[..., TrialRecord]
) -> None:
    """There is nothing to look at."""
    assert github_annotations(run_of(record("a", status="passed"))) == []
