"""Reports: parameters checked before a kernel starts, and views that account for every trial."""

from __future__ import annotations

import ast
import html
import importlib.util
import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import evalkit
from evalkit.errors import LedgerError, MissingDependency, ReportError, UsageError
from evalkit.markup import visible
from evalkit.reporting import find_notebook, parse_parameters, render_report, views
from evalkit.reporting.parameters import (
    check_parameters,
    declared_parameters,
    parse_assignments,
)
from evalkit.results import Manifest, PlannedScenario

PARAMETERS = """
run: str = ""
confidence: float = 0.95
limit: int = 50
raw: bool = True
tags: list[str] = []
names: dict[str, int] = {}
floor: float | None = None
"""


@pytest.fixture
def notebook(tmp_path: Path) -> Path:
    """Write a notebook that declares one parameter of each type."""
    return write_notebook(tmp_path / "own.ipynb", PARAMETERS)


def write_notebook(path: Path, parameters: str, *cells: str, tags: Any = ("parameters",)) -> Path:
    """Write a notebook with a parameters cell and further code cells."""
    sources = [(parameters, {"tags": list(tags)}), *((source, {}) for source in cells)]
    content = {
        "cells": [
            {
                "cell_type": "code",
                "id": f"c{number}",
                "metadata": metadata,
                "execution_count": None,
                "outputs": [],
                "source": source,
            }
            for number, (source, metadata) in enumerate(sources)
        ],
        "metadata": {"kernelspec": {"name": "python3", "display_name": "x", "language": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


# --- parameters ---------------------------------------------------------------------------


def test_declared_parameters_are_read_in_order(notebook: Path) -> None:
    """Names, types as written, and defaults come from the tagged cell."""
    declared = declared_parameters(notebook)
    assert list(declared) == ["run", "confidence", "limit", "raw", "tags", "names", "floor"]
    assert declared["floor"].type == "float | None"
    assert declared["confidence"].default == 0.95


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1", "must read 'name: type = default'"),
        ("x: int", "must read 'name: type = default'"),
        ("x: int = len('a')", "'x'"),
        ("x: Path = 1", "type 'Path' is not supported"),
        ("x: int = (", "no Python"),
        ("import os", "must read"),
    ],
)
def test_badly_declared_parameter_is_a_report_error(
    tmp_path: Path, source: str, message: str
) -> None:
    """A parameter without a type or a plain default is refused, with the notebook's name."""
    path = write_notebook(tmp_path / "bad.ipynb", source)
    with pytest.raises(ReportError, match=re.escape(message)) as caught:
        declared_parameters(path)
    assert "bad.ipynb" in str(caught.value)


def test_notebook_without_parameters_cell_is_a_report_error(tmp_path: Path) -> None:
    """Without the tag, papermill would put the values where the defaults overwrite them."""
    path = write_notebook(tmp_path / "untagged.ipynb", "x: int = 1", tags=())
    with pytest.raises(ReportError, match="0 code cells tagged 'parameters'"):
        declared_parameters(path)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"cells": [{}]}', "null"])
def test_file_that_is_no_notebook_is_a_report_error(tmp_path: Path, text: str) -> None:
    """Whatever stands in the file, the error names it."""
    path = tmp_path / "broken.ipynb"
    path.write_text(text)
    with pytest.raises(ReportError, match=re.escape("broken.ipynb")):
        declared_parameters(path)


def test_unknown_parameter_is_refused_with_a_suggestion(notebook: Path) -> None:
    """A typo is an error that names the nearest parameter, not a silent default."""
    with pytest.raises(UsageError, match=r"no parameter 'confidense'. Did you mean 'confidence'"):
        check_parameters(declared_parameters(notebook), {"confidense": 0.9}, notebook="own")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("confidence", "0.9"),
        ("limit", 1.0),
        ("limit", True),
        ("confidence", True),
        ("raw", "false"),
        ("raw", 0),
        ("run", 3),
        ("run", None),
        ("tags", ["a", 1]),
        ("tags", "a"),
        ("names", {"a": "b"}),
        ("names", {1: 1}),
        ("names", ["a"]),
        ("floor", "none"),
    ],
)
def test_value_of_another_type_is_refused(notebook: Path, name: str, value: Any) -> None:
    """A value must be of the declared type; a truth value is no number."""
    with pytest.raises(UsageError, match=f"parameter '{name}' must be"):
        check_parameters(declared_parameters(notebook), {name: value}, notebook="own")


@pytest.mark.parametrize(
    ("name", "value", "plain"),
    [
        ("confidence", 1, 1),
        ("confidence", np.float64(0.9), 0.9),
        ("limit", np.int64(3), 3),
        ("run", Path("a") / "b", "a/b"),
        ("tags", ("a", "b"), ["a", "b"]),
        ("names", {"a": 1}, {"a": 1}),
        ("floor", None, None),
        ("floor", 0.9, 0.9),
    ],
)
def test_fitting_value_becomes_plain_json(
    notebook: Path, name: str, value: Any, plain: Any
) -> None:
    """Paths, tuples and NumPy scalars become what JSON can carry; defaults fill the rest."""
    values = check_parameters(declared_parameters(notebook), {name: value}, notebook="own")
    assert values[name] == plain
    assert json.loads(json.dumps(values)) == values
    assert len(values) == 7


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("raw=false", False),
        ("raw=False", False),
        ("raw=0", False),
        ("raw=YES", True),
        ("limit=007", 7),
        ("confidence=1e-3", 0.001),
        ("confidence=1", 1.0),
        ("run=007", "007"),
        ("run=a=b", "a=b"),
        ("run=", ""),
        ("run=none", "none"),
        ("floor=none", None),
        ("floor=0.9", 0.9),
        ('tags=["a", "b"]', ["a", "b"]),
        ('names={"a": 1}', {"a": 1}),
    ],
)
def test_assignment_is_parsed_by_the_declared_type(notebook: Path, text: str, value: Any) -> None:
    """The declared type decides what a text means, so false is false and 007 may be a name."""
    parsed = parse_assignments(declared_parameters(notebook), [text], notebook="own")
    assert parsed == {text.partition("=")[0]: value}
    assert type(parsed[text.partition("=")[0]]) is type(value)


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["limit"], "name=value"),
        (["limit=1", "limit=2"], "given twice"),
        (["limit=many"], "must be int, not str: 'many'"),
        (["raw=maybe"], "must be bool"),
        (["tags=a,b"], r"must be list\[str\]"),
        (["floor=low"], "must be float"),
        (["limits=1"], "Did you mean 'limit'"),
    ],
)
def test_assignment_that_does_not_parse_is_refused(
    notebook: Path, texts: list[str], message: str
) -> None:
    """What cannot be parsed is an error that says what it must be."""
    with pytest.raises(UsageError, match=message):
        parse_assignments(declared_parameters(notebook), texts, notebook="own")


def test_parse_parameters_knows_the_shipped_notebook() -> None:
    """The command line parses by what the shipped notebook declares."""
    assert parse_parameters("pass_rates", ["max_failures=3"]) == {"max_failures": 3}


# --- refusing before a kernel starts -------------------------------------------------------


@pytest.fixture
def no_child(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail the test if a process is started."""

    def refuse(*args: object, **kwargs: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr("evalkit.reporting.rendering.subprocess.Popen", refuse)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "needs a run"),
        ({"run": "nowhere"}, "no such run directory"),
        ({"run": ".", "parameters": {"run": "."}}, "given twice"),
        ({"run": ".", "parameters": {"confidense": 1}}, "Did you mean 'confidence'"),
        ({"run": ".", "parameters": {"confidence": "0.9"}}, "must be float"),
    ],
)
def test_render_refuses_before_anything_starts(
    no_child: None, tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    """Wrong use is an error before a kernel starts, and leaves no folder behind."""
    with pytest.raises(UsageError, match=message):
        render_report("pass_rates", out=tmp_path / "out", **arguments)
    assert list(tmp_path.iterdir()) == []


def test_render_refuses_a_folder_without_runs(no_child: None, tmp_path: Path) -> None:
    """A folder that is no run directory and holds none is an error before a kernel starts."""
    with pytest.raises(LedgerError, match="neither a run directory nor a folder of runs"):
        render_report("pass_rates", run=tmp_path)


@pytest.mark.parametrize("package", ["papermill", "nbconvert", "ipykernel"])
def test_render_names_the_missing_package_and_the_extra(
    no_child: None, notebook: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    """Without a package of the extra, the error says what to install."""
    real = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else real(name)
    )
    (notebook.parent / "manifest.json").write_text("{}")
    with pytest.raises(MissingDependency, match=rf"{package}.*evalkit-lab\[report\]"):
        render_report(notebook, run=notebook.parent)


@pytest.mark.parametrize("name", ["pass_rate", "nowhere/x.ipynb", "a/b"])
def test_unknown_notebook_is_refused(name: str) -> None:
    """A notebook that is neither shipped nor a file is an error."""
    with pytest.raises(UsageError, match="notebook"):
        find_notebook(name)


# --- views --------------------------------------------------------------------------------


def make_run(plan: Mapping[str, str], *, lane: str = "live", **columns: Any) -> Any:
    """Build a run from one letter a trial: p passed, f failed, i incomplete."""
    words = {"p": "passed", "f": "failed", "i": "incomplete"}
    trials = pd.DataFrame(
        [
            {
                "run_id": "r1",
                "suite": "travel",
                "scenario": scenario,
                "trial": number,
                "lane": lane,
                "status": words[letter],
                "reason_code": {"p": "", "f": "grader_failed", "i": "grader_raised"}[letter],
                "reason": "" if letter == "p" else f"truth: {scenario} went wrong",
                "tags": (),
                "input_tokens": float("nan"),
                "output_tokens": float("nan"),
                "cost_usd": float("nan"),
                "duration_s": float("nan"),
                **columns,
            }
            for scenario, letters in plan.items()
            for number, letter in enumerate(letters)
        ]
    )
    grades = trials[trials["status"] != "incomplete"][["run_id", "scenario", "trial"]].assign(
        grader="truth",
        rubric="",
        passed=trials["status"].eq("passed").astype("boolean"),
        reason=trials["reason"],
    )
    planned = tuple(PlannedScenario(name, len(letters)) for name, letters in plan.items())
    manifest = Manifest("r1", "travel", lane, planned, created_at="2026-11-30T17:45:00+00:00")
    return SimpleNamespace(trials=trials, grades=grades, manifest=manifest, folder=Path("r1"))


def text_of(view: views.View | None) -> str:
    """Return what a reader sees of a view."""
    assert view is not None
    words = re.sub(r"<title>.*?</title>|<[^>]*>", " ", view._repr_html_())
    return re.sub(r"\s+", " ", html.unescape(words)).replace(" ,", ",").strip()


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"a": "pp", "b": "pp"}, "✓ Passed: all 4 trials passed"),
        ({"a": "pf", "b": "pi"}, "✕ Failed: 1 of 4 trials failed, in 1 scenario"),
        ({"a": "pp", "b": "pi"}, "◌ Incomplete: 1 of 4 trials could not be measured, none failed"),
        ({"a": "i"}, "◌ Incomplete: 1 of 1 trial could not be measured, none failed"),
    ],
)
def test_verdict_leads_with_symbol_and_word(plan: dict[str, str], words: str) -> None:
    """Failed beats incomplete beats passed, said by a symbol, a word and a class."""
    view = views.verdict(views.summarise(make_run(plan)))
    assert text_of(view).startswith(words)
    assert f"ek-{words.split()[1].rstrip(':').lower()}" in view.html


def test_verdict_gives_the_mean_of_scenario_rates_with_interval_and_n() -> None:
    """The rate is the mean over scenarios, not over trials, with interval and count."""
    text = text_of(views.verdict(views.summarise(make_run({"a": "pppp", "b": "f"}))))
    assert "Mean of 2 scenario rates: 50.0%" in text
    assert re.search(r"95% interval \d+\.\d% to \d+\.\d%", text)
    assert "from 5 measured trials" in text


def test_verdict_bounds_what_was_not_measured() -> None:
    """Incomplete trials stand in plain sight, with the rates that they could make."""
    text = text_of(views.verdict(views.summarise(make_run({"a": "ppii", "b": "pppp"}))))
    assert "2 of 8 trials not measured and in no rate" in text
    assert "had they all failed, the rate would be 75.0%; had they all passed, 100.0%" in text


def test_verdict_of_nothing_measured_has_no_rate() -> None:
    """Where nothing was measured there is no rate, and certainly no zero."""
    text = text_of(views.verdict(views.summarise(make_run({"a": "ii"}))))
    assert "no pass rate: nothing was measured" in text
    assert "Mean of" not in text


def test_key_numbers_say_unknown_and_never_zero() -> None:
    """Cost and latency that nobody reported are unknown."""
    text = text_of(views.key_numbers(views.summarise(make_run({"a": "pp", "b": "pf"}))))
    assert "Cost unknown no trial reported it" in text
    assert "Duration, p95 unknown" in text
    assert "$0" not in text


def test_cost_known_for_some_trials_is_no_total() -> None:
    """A sum over some trials is not passed off as the run's cost."""
    run = make_run({"a": "pp", "b": "pf"})
    run.trials.loc[0, "cost_usd"] = 0.25
    summary = views.summarise(run)
    assert "Cost unknown known for 1 of 4 trials: $0.25" in text_of(views.key_numbers(summary))
    assert "cost, USD 1 of 4 unknown" in text_of(views.cost_and_latency(summary))


def test_cost_known_for_all_trials_is_added_up() -> None:
    """Where every trial's cost is known, the total and the mean are shown."""
    summary = views.summarise(make_run({"a": "pp", "b": "pf"}, cost_usd=0.25, duration_s=2.0))
    text = text_of(views.key_numbers(summary))
    assert "Cost $1.00 $0.2500 a trial" in text
    assert "Duration, p95 2 s median 2 s" in text


def test_scenarios_are_sorted_by_harm() -> None:
    """What could not be measured comes first, then the lowest rate."""
    run = make_run({"good": "pp", "half": "pf", "bad": "ff", "unknown": "ii"})
    text = text_of(views.pass_rates_by(views.summarise(run), "scenario"))
    places = [text.index(f" {name} ") for name in ("unknown", "bad", "half", "good")]
    assert places == sorted(places)


def test_rows_left_out_are_counted() -> None:
    """A limit on rows says how many are not shown."""
    summary = views.summarise(make_run({f"s{i}": "pf" for i in range(30)}))
    assert "20 rows with higher rates not shown" in text_of(
        views.pass_rates_by(summary, "scenario", limit=10)
    )


def test_rates_by_tag_only_where_there_are_tags() -> None:
    """A run without tags has no section on tags; one with tags has."""
    assert views.pass_rates_by(views.summarise(make_run({"a": "pf"})), "tag") is None
    run = make_run({"a": "pf", "b": "pp"})
    run.trials["tags"] = [("x", "y")] * 2 + [("y",)] * 2
    assert "y 2 scenarios" in text_of(views.pass_rates_by(views.summarise(run), "tag"))


def test_reliability_only_with_several_trials() -> None:
    """pass^k is shown up to the number of trials, and not at all for one."""
    assert views.reliability(views.summarise(make_run({"a": "p", "b": "f"}))) is None
    text = text_of(views.reliability(views.summarise(make_run({"a": "ppp", "b": "pff"}))))
    assert "3 of 3 trials pass 2 scenarios 50%" in text
    assert "4 of 4" not in text


def test_failures_name_scenario_trials_grader_and_reason() -> None:
    """Each failed trial is there with who found what; the first is open."""
    view = views.failures(views.summarise(make_run({"a": "pff", "b": "fpp", "c": "ppp"})))
    text = text_of(view)
    assert "3 trials failed, in 2 scenarios" in text
    assert "2 of 3 failed a truth: a went wrong truth trials 1, 2" in text
    assert "1 of 3 failed b truth: b went wrong truth trial 0" in text
    assert view is not None
    assert view.html.count("<details") == 2
    assert view.html.count(" open>") == 1


def test_failure_without_a_failing_grader_gives_the_trials_own_reason() -> None:
    """An agent that raised is shown with the reason code and the reason."""
    run = make_run({"a": "f"})
    run.trials[["reason_code", "reason"]] = ["agent_raised", "ValueError: no flight"]
    run.grades = run.grades.iloc[:0]
    assert "agent_raised trial 0 ValueError: no flight" in text_of(
        views.failures(views.summarise(run))
    )


def test_failures_left_out_are_counted() -> None:
    """A limit on failures says how many more there are, also when it is zero."""
    summary = views.summarise(make_run({"a": "f" * 30, "b": "f" * 30}))
    assert "30 more trials not shown" in text_of(views.failures(summary, limit=1))
    assert "30 of 30 failed" in text_of(views.failures(summary, limit=1))
    assert "not shown" not in text_of(views.failures(summary, limit=31))
    assert "60 more trials not shown" in text_of(views.failures(summary, limit=0))


def test_not_measured_lists_each_incomplete_trial() -> None:
    """What could not be measured is listed with code and reason, not dropped."""
    summary = views.summarise(make_run({"a": "pi", "b": "ii"}))
    text = text_of(views.not_measured(summary, limit=2))
    assert text.count("grader_raised") == 2
    assert "1 more trial not shown" in text
    assert views.not_measured(views.summarise(make_run({"a": "pf"}))) is None


def test_provenance_shows_what_rebuilds_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """The footer names run, suite, lane and the command; what is not known is unknown."""
    monkeypatch.setenv("EVALKIT_RENDER_COMMAND", "evalkit report pass_rates --run x")
    text = text_of(views.provenance(views.summarise(make_run({"a": "p"}))))
    assert "run r1" in text
    assert "suite travel, hash unknown" in text
    assert "digest none, the run is not finished" in text
    assert "rebuild evalkit report pass_rates --run x" in text


ALL_VIEWS = {
    "context": views.context,
    "verdict": views.verdict,
    "key_numbers": views.key_numbers,
    "by_scenario": lambda s: views.pass_rates_by(s, "scenario"),
    "by_tag": lambda s: views.pass_rates_by(s, "tag"),
    "by_grader": lambda s: views.pass_rates_by(s, "grader"),
    "reliability": views.reliability,
    "failures": views.failures,
    "not_measured": views.not_measured,
    "cost": views.cost_and_latency,
    "provenance": views.provenance,
}


@pytest.mark.parametrize("name", ALL_VIEWS)
@pytest.mark.parametrize("evil", ["<script>x()</script>", '"><svg onload=x()>', "a\x00\ud800"])
def test_every_view_escapes_what_a_run_carries(
    monkeypatch: pytest.MonkeyPatch, name: str, evil: str
) -> None:
    """Ids, tags, graders, reasons and the manifest are text in every view."""
    monkeypatch.setenv("EVALKIT_RENDER_COMMAND", visible(evil))
    run = make_run({evil: "pfi"}, reason=evil, reason_code=evil)
    run.trials["tags"] = [(evil,)] * 3
    run.grades = run.grades.assign(grader=evil, reason=evil)
    run.manifest = Manifest(evil, evil, evil, (), agent=evil, versions={evil: evil})
    view = ALL_VIEWS[name](views.summarise(run))
    assert view is not None
    found = view._repr_html_()
    assert not re.search(r"<script|<svg onload|[\x00\ud800]", found)


# --- habits -------------------------------------------------------------------------------


def sources() -> dict[str, str]:
    """Return the code that handles frames or HTML, and that of every notebook's cells."""
    package = Path(evalkit.__file__).parent
    texts = {str(path): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}
    # elsewhere, `style` is how a YAML scalar is written
    found = {path: text for path, text in texts.items() if "pandas" in text or "html" in text}
    for path in (find_notebook("pass_rates").parent).glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        code = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
        found[str(path)] = "\n".join(code)
    return found


def test_no_code_uses_a_way_to_show_raw_html() -> None:
    """DataFrame.style, HTML(...), Markdown(...) and Javascript(...) show text as markup."""
    found = {
        f"{path}:{node.lineno}"
        for path, source in sources().items()
        for node in ast.walk(ast.parse(source))
        if _shows_raw(node)
    }
    assert found == set()


def _shows_raw(node: ast.AST) -> bool:
    """Tell whether a piece of code shows untrusted text as markup."""
    if isinstance(node, ast.Attribute):
        return node.attr in {"style", "to_html"}
    name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    return name in {"HTML", "Markdown", "Javascript", "Latex"}


@pytest.mark.parametrize("code", ["df.style.bar()", "df.to_html()", "HTML(x)", "Markdown(x)"])
def test_the_habit_test_sees_raw_html(code: str) -> None:
    """The test above finds what it looks for."""
    assert any(map(_shows_raw, ast.walk(ast.parse(code))))
