"""evalkit tells whether a change made an agent worse, and how sure one can be.

A map of the package, top down:

================  ============================================================
``run``           suite x agent x trials -> graded run; grading again
``drafting``      a recorded trial -> a scenario
``baselines``     several runs, sealed, for a gate to compare with
``diffing``       where two trials differ
``mutation``      does a suite notice what is broken?
``testing``       for tests of your own; kill an agent at every moment
``gating``        is it good enough, is it worse than the baseline? verdict + reasons
``reporting``     notebooks -> self-contained HTML
``importers``     other tools' traces -> a run
``results``       a run's directory and its DataFrames
``graders``       truth, path, answer, component ... and your own
``trial``         one trial: the worker and who watches it
``agents``        how an agent is reached
``sandbox``       fresh processes, in rooms of their own
``gateway``       the scripted model
``outside``       what answers the agent's own requests
``stats``         rates, intervals, pass@k, pass^k: frames in, frames out
``suite``         the suite file: models, checks, hashes, JSON Schema
``trace``         what a trial did, as frozen records
``ledger``        what a trial did, as events on disk
``errors``        every error, as a tree
================  ============================================================

Everything is imported when it is first used, so that ``import evalkit`` is quick.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalkit import agents, diffing, drafting, errors, graders, stats
    from evalkit.baselines import Baseline, load_baseline, pin_baseline
    from evalkit.gating import Verdict, gate
    from evalkit.grade import Grade
    from evalkit.graders import Trial, grader
    from evalkit.importers import import_run
    from evalkit.observing import tool
    from evalkit.reporting import render_report
    from evalkit.results import Run, Runs, load_run, load_runs
    from evalkit.run import grade_run, load_suite, resume_run, run_suite
    from evalkit.stats import (
        compare,
        compare_scenarios,
        flakiness,
        pass_at_k,
        pass_hat_k,
        pass_rates,
    )
    from evalkit.suite import Scenario, Suite
    from evalkit.trace import ModelCall, Span, ToolCall, Trace, Turn, Usage

__all__ = [
    "Baseline",
    "Grade",
    "ModelCall",
    "Run",
    "Runs",
    "Scenario",
    "Span",
    "Suite",
    "ToolCall",
    "Trace",
    "Trial",
    "Turn",
    "Usage",
    "Verdict",
    "agents",
    "compare",
    "compare_scenarios",
    "diffing",
    "drafting",
    "errors",
    "flakiness",
    "gate",
    "grade_run",
    "grader",
    "graders",
    "import_run",
    "load_baseline",
    "load_run",
    "load_runs",
    "load_suite",
    "pass_at_k",
    "pass_hat_k",
    "pass_rates",
    "pin_baseline",
    "render_report",
    "resume_run",
    "run_suite",
    "stats",
    "tool",
]

_HOME = {
    "Grade": "grade",
    "Trial": "graders",
    "grader": "graders",
    "import_run": "importers",
    "render_report": "reporting",
    **dict.fromkeys(("Run", "Runs", "load_run", "load_runs"), "results"),
    **dict.fromkeys(("grade_run", "load_suite", "resume_run", "run_suite"), "run"),
    **dict.fromkeys(("Baseline", "load_baseline", "pin_baseline"), "baselines"),
    **dict.fromkeys(("Verdict", "gate"), "gating"),
    **dict.fromkeys(("compare", "compare_scenarios"), "stats"),
    **dict.fromkeys(("flakiness", "pass_at_k", "pass_hat_k", "pass_rates"), "stats"),
    **dict.fromkeys(("Scenario", "Suite"), "suite"),
    "tool": "observing",
    **dict.fromkeys(("ModelCall", "Span", "ToolCall", "Trace", "Turn", "Usage"), "trace"),
}
"""Module that each public name comes from."""


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("evalkit-lab")
    if name in _HOME:
        return getattr(import_module(f"evalkit.{_HOME[name]}"), name)
    if name in __all__:
        return import_module(f"evalkit.{name}")
    raise AttributeError(f"module 'evalkit' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__, "__version__"])
