"""JUnit XML, as Jenkins, GitLab and everything that shows test results read it.

One ``testsuite`` a run, one ``testcase`` a scenario. (Not one a trial: dashboards
follow a test by its name, and a name with a trial's number in it has another history
with each number of trials, while two tests of one name are merged or dropped. The
trials of a scenario stand in its text.) The shape is the common part of what Ant,
Surefire and Jenkins describe: no attribute that one of them does not know.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from evalkit.markup import visible
from evalkit.outcomes import Outcome, outcomes, show_command
from evalkit.publishing.places import scenario_place
from evalkit.publishing.verdicts import GateVerdict, some_runs
from evalkit.terminal import one_line

if TYPE_CHECKING:
    from evalkit.results import Run

_NEVER_IN_XML: Final = re.compile("[\ufffe\uffff]")
_TAGS: Final = {"failed": "failure", "incomplete": "error"}
_COUNTS: Final = {"failures": "failure", "errors": "error"}
_MESSAGE: Final = 500
"""Characters of a message; the text has the rest."""


def junit_xml(runs: Iterable[Run] | Run, *, verdict: GateVerdict | None = None) -> bytes:
    """Write runs as JUnit XML.

    Parameters
    ----------
    runs
        One or more; each becomes a ``testsuite`` with a ``testcase`` a scenario.
        ``failed`` is a ``failure``, ``incomplete`` an ``error``, with the first
        line of the reason as message and all reasons, trial by trial, as text.
    verdict
        A gate's; it comes first, as a test of its own.

    Returns
    -------
    bytes
        UTF-8; valid XML 1.0 whatever the runs hold: what XML cannot hold is shown
        by visible characters.

    Raises
    ------
    ValueError
        If there is no run: a file without a test looks like a pass.
    """
    found = some_runs(runs)
    suites = [] if verdict is None else [_gate(verdict)]
    names = Counter(_class_name(run) for run in found)
    suites += [_suite(run, is_unique=names[_class_name(run)] == 1) for run in found]
    root = ET.Element("testsuites", {"name": "evalkit", **_sums(suites)})
    root.extend(suites)
    ET.indent(root)
    content: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _suite(run: Run, *, is_unique: bool) -> ET.Element:
    """Write one run."""
    manifest = run.manifest
    mark = "" if is_unique else f".{run.id}"
    found = outcomes(run)
    suite = ET.Element("testsuite", {"name": _text(f"{manifest.suite}{mark}")})
    if stamp := re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", manifest.created_at):
        suite.set("timestamp", stamp[0])
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(run):
        ET.SubElement(properties, "property", {"name": name, "value": _text(value)})
    cases = [_case(run, outcome, class_name=f"{_class_name(run)}{mark}") for outcome in found]
    _add_cases(suite, cases or [_nothing_planned(run)])
    times = [outcome.duration_s for outcome in found if outcome.duration_s is not None]
    suite.set("time", f"{sum(times):.3f}")
    return suite


def _properties(run: Run) -> list[tuple[str, object]]:
    """Say what a result is worth nothing without."""
    manifest = run.manifest
    told = {
        "run_id": run.id,
        "lane": manifest.lane,
        "agent": manifest.agent,
        "agent_hash": manifest.agent_hash,
        "suite_hash": manifest.suite_hash,
        "seed": manifest.seed,
        "n_trials": manifest.n_planned,
        "network_barrier": manifest.barrier,
        "digest": run.digest or "none: trials are missing",
        "status": run.status,
    }
    return [(name, value) for name, value in told.items() if value != ""]


def _class_name(run: Run) -> str:
    return f"evalkit.{run.manifest.lane}.{run.manifest.suite}"


def _case(run: Run, outcome: Outcome, *, class_name: str) -> ET.Element:
    """Write one scenario."""
    case = _named_case(outcome.scenario, class_name)
    if outcome.duration_s is not None:
        case.set("time", f"{outcome.duration_s:.3f}")
    if outcome.status != "passed":
        place = scenario_place(run, outcome.scenario)
        show = f"look closer: {show_command(run, outcome)}"
        body = "\n".join(filter(None, (outcome.reasons, place and f"at {place}", show)))
        code = outcome.deciding.reason_code if outcome.deciding is not None else ""
        _tell(case, _TAGS[outcome.status], message=outcome.headline, code=code, body=body)
    return case


def _gate(verdict: GateVerdict) -> ET.Element:
    """Write a gate's verdict as a test of its own."""
    suite = ET.Element("testsuite", {"name": "evalkit gate"})
    case = _named_case("verdict", "evalkit.gate")
    body = "\n".join(map(str, verdict.reasons))
    headline = f"{verdict.verdict}: {body}" if body else str(verdict.verdict)
    if verdict.exit_code:
        tag = "failure" if verdict.exit_code == 1 else "error"
        _tell(case, tag, message=headline, code=str(verdict.verdict), body=body)
    else:
        ET.SubElement(case, "system-out").text = _text(headline)
    _add_cases(suite, [case])
    return suite


def _nothing_planned(run: Run) -> ET.Element:
    """Stand in for the tests of a run that has none."""
    case = _named_case("no scenario", _class_name(run))
    message = "the run has no scenario: nothing was measured"
    _tell(case, "error", message=message, code="no_scenario", body=message)
    return case


def _named_case(name: str, class_name: str) -> ET.Element:
    return ET.Element("testcase", {"classname": _text(class_name), "name": _text(name)})


def _tell(case: ET.Element, tag: str, *, message: str, code: str, body: str) -> None:
    shown = one_line(message, limit=_MESSAGE)
    told = ET.SubElement(case, tag, {"message": _text(shown), "type": _text(code or tag)})
    told.text = _text(body)


def _add_cases(suite: ET.Element, cases: list[ET.Element]) -> None:
    suite.extend(cases)
    suite.set("tests", str(len(cases)))
    for name, tag in _COUNTS.items():
        suite.set(name, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("skipped", "0")


def _sums(suites: list[ET.Element]) -> dict[str, str]:
    return {
        name: str(sum(int(suite.get(name, "0")) for suite in suites))
        for name in ("tests", "failures", "errors")
    }


def _text(value: object) -> str:
    r"""Give a text that XML 1.0 can hold.

    Examples
    --------
    >>> _text("\x00 \ufffe \ud800")
    '␀ \\ufffe \\ud800'
    """
    return _NEVER_IN_XML.sub(lambda match: f"\\u{ord(match[0]):04x}", visible(str(value)))
