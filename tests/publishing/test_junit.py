"""JUnit XML: what a result becomes, and that it is valid whatever a run holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree as ET
from xml.parsers import expat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evalkit.grade import Grade
from evalkit.publishing import junit_xml
from evalkit.results import Run, TrialRecord

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)

ATTRIBUTES = {
    "testsuites": ({"name", "tests", "failures", "errors"}, set()),
    "testsuite": ({"name", "tests", "failures", "errors", "skipped"}, {"time", "timestamp"}),
    "properties": (set(), set()),
    "property": ({"name", "value"}, set()),
    "testcase": ({"classname", "name"}, {"time"}),
    "failure": ({"message", "type"}, set()),
    "error": ({"message", "type"}, set()),
    "system-out": (set(), set()),
}
"""By element: attributes that must and that may be there, in the common part of all schemas."""
CHILDREN = {
    "testsuites": r"(testsuite )+",
    "testsuite": r"(properties )?(testcase )+",
    "properties": r"(property )+",
    "testcase": r"((failure|error) )?(system-out )?",
}


def checked(content: bytes) -> ET.Element:
    """Parse strictly, and hold the result against the shape that readers expect."""
    expat.ParserCreate().Parse(content, True)
    root = ET.fromstring(content)
    assert root.tag == "testsuites"
    for element in root.iter():
        must, may = ATTRIBUTES[element.tag]
        assert must <= set(element.keys()) <= must | may, element.attrib
        inside = "".join(f"{child.tag} " for child in element)
        assert re.fullmatch(CHILDREN.get(element.tag, ""), inside), (element.tag, inside)
    for suite in root.iter("testsuite"):
        assert int(suite.attrib["tests"]) == len(suite.findall("testcase"))
        assert int(suite.attrib["failures"]) == len(suite.findall("testcase/failure"))
        assert int(suite.attrib["errors"]) == len(suite.findall("testcase/error"))
    names = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(names) == len(set(names)), "dashboards merge tests of one name"
    return root


def cases_of(root: ET.Element) -> dict[str, ET.Element]:
    """Give the test cases by name."""
    return {str(case.get("name")): case for case in root.iter("testcase")}


@pytest.mark.parametrize(
    ("scenario", "tag", "message"),
    [
        ("good", None, None),
        ("bad", "failure", "truth: missing/incorrect: book"),
        ("lost", "error", "truth: nobody saw the calls"),
        ("flaky", "failure", "2 of 3 trials failed: truth: called book twice"),
    ],
)
def test_status_becomes_what_readers_know(
    some_run: Run, scenario: str, tag: str | None, message: str | None
) -> None:
    """Failed is a failure, incomplete an error; passed is neither."""
    case = cases_of(checked(junit_xml(some_run)))[scenario]
    assert [child.tag for child in case] == ([tag] if tag else [])
    if tag:
        assert case[0].get("message") == message


def test_text_names_every_grader_that_did_not_pass(
    run_of: Callable[..., Run], record: Callable[..., TrialRecord]
) -> None:
    """The message has the first line of one reason, the text all reasons."""
    grades = (Grade("truth", 0.0, reason="no\nbooking"), Grade("answer", 0.0, reason="wrong"))
    run = run_of(record("a", reason="no\nbooking", grades=grades))
    told = cases_of(checked(junit_xml(run)))["a"][0]
    assert told.get("message") == "truth: no"
    assert "truth: no\nbooking\nanswer: wrong" in str(told.text)


def test_trials_of_which_the_same_is_said_stand_together(some_run: Run) -> None:
    """One scenario is one test; its trials stand in its text."""
    text = str(cases_of(checked(junit_xml(some_run)))["flaky"][0].text)
    assert "trials 1, 2 failed:\n  truth: called book twice" in text
    assert "evalkit show data/runs/r1 flaky 1" in text


def test_properties_say_what_a_result_comes_from(some_run: Run) -> None:
    """Lane, seed and digest stand beside each run."""
    root = checked(junit_xml(some_run))
    told = {each.get("name"): each.get("value") for each in root.iter("property")}
    assert told["lane"] == "live"
    assert told["seed"] == "0"
    assert told["digest"] == "d" * 64


def test_two_runs_of_one_suite_are_told_apart(
    run_of: Callable[..., Run], record: Callable[..., TrialRecord]
) -> None:
    """Their tests would have one name otherwise, and be merged."""
    runs = [run_of(record("a"), run_id=name) for name in ("r1", "r2")]
    root = checked(junit_xml(runs))
    assert {case.get("classname") for case in root.iter("testcase")} == {
        "evalkit.live.travel.r1",
        "evalkit.live.travel.r2",
    }


@pytest.mark.parametrize(
    ("verdict", "exit_code", "tag"),
    [
        ("PASS", 0, "system-out"),
        ("FAIL", 1, "failure"),
        ("INVALID", 2, "error"),
        ("INCONCLUSIVE", 2, "error"),
        ("INCONCLUSIVE", 0, "system-out"),
    ],
)
def test_verdict_comes_first(
    some_run: Run, decided: Any, verdict: str, exit_code: int, tag: str
) -> None:
    """A gate is a test of its own, with its reasons."""
    given_verdict = decided(verdict, ("rate 0.81 < 0.90", "2 newly failing"), exit_code)
    root = checked(junit_xml(some_run, verdict=given_verdict))
    first = root[0][0]
    assert (first.get("classname"), first.get("name")) == ("evalkit.gate", "verdict")
    assert [child.tag for child in first] == [tag]
    assert "2 newly failing" in str(first[0].text)


def test_no_run_and_no_scenario_are_no_pass(run_of: Callable[..., Run]) -> None:
    """A file without a test, or a suite without one, would be green."""
    with pytest.raises(ValueError, match="at least one"):
        junit_xml([])
    assert len(list(checked(junit_xml(run_of())).iter("error"))) == 1


def test_huge_reason_is_cut_and_the_rest_counted(
    run_of: Callable[..., Run], record: Callable[..., TrialRecord]
) -> None:
    """A dashboard must be able to load the file."""
    content = junit_xml(run_of(record("a", reason="x" * 3_000_000)))
    assert len(content) < 30_000
    assert "more characters" in str(cases_of(checked(content))["a"][0].text)


@given(reason=ANY_TEXT, scenario=ANY_TEXT, suite=ANY_TEXT, agent=ANY_TEXT)
@settings(
    deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_text_gives_valid_xml(
    run_of: Callable[..., Run],
    record: Callable[..., TrialRecord],
    reason: str,
    scenario: str,
    suite: str,
    agent: str,
) -> None:
    """Control characters, lone surrogates and non-characters included."""
    run = run_of(record(scenario, reason=reason), suite=suite, agent=agent, lane="live")
    checked(junit_xml(run))


ARRIVES = {
    "cdata-end": ("a]]>b", "a]]>b"),
    "cdata": ("<![CDATA[ x", "<![CDATA[ x"),
    "doctype": ("<!DOCTYPE x>", "<!DOCTYPE x>"),
    "entities": ("&lt;&#0;", "&lt;&#0;"),
    "surrogate": ("a\ud800b", "a\\ud800b"),
    "non-characters": ("\ufffe\uffff", "\\ufffe\\uffff"),
    "lines": ("a\n\tb", "a\n\tb"),
    "controls": ("".join(map(chr, range(9))), "␀␁␂␃␄␅␆␇␈"),
    "escapes": ("\x1b[2J\r.", "␛[2J␍."),
}


@pytest.mark.parametrize("name", ARRIVES)
def test_hostile_text_arrives_as_text(
    run_of: Callable[..., Run], record: Callable[..., TrialRecord], name: str
) -> None:
    """What XML can hold arrives unchanged, the rest visible."""
    reason, arrives = ARRIVES[name]
    told = cases_of(checked(junit_xml(run_of(record("a", reason=reason)))))["a"][0]
    assert f"truth: {arrives}\n" in str(told.text)


def test_place_of_the_scenario_is_named(
    run_of: Callable[..., Run], record: Callable[..., TrialRecord], tmp_path: Any
) -> None:
    """The text says where the scenario is written, as file and line."""
    suite = tmp_path / "s.yaml"
    suite.write_text("suite: s\nscenarios:\n  - id: other\n    input: a\n  - id: a\n    input: b\n")
    told = cases_of(checked(junit_xml(run_of(record("a"), suite_path=str(suite)))))["a"][0]
    assert f"at {suite}:5" in str(told.text)
