"""Where both sides come from, side by side."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from typing import Any

from evalkit.baselines import Baseline
from evalkit.baselines.counting import grader_versions
from evalkit.markup import Safe, table, tag
from evalkit.reporting.comparing.comparison import Comparison
from evalkit.reporting.elements import View, pairs, scroll
from evalkit.reporting.rendering import COMMAND
from evalkit.reporting.sides import Side, name_of
from evalkit.results import Run

_UNKNOWN = "unknown"
_OWN = frozenset({"name", "created", "seed", "digest"})
"""What no two runs share, so that a difference says nothing."""


def provenance(comparison: Comparison) -> View:
    """Show what is needed to trace both sides, and where they differ."""
    now, before = facts_of(comparison.run), facts_of(comparison.baseline)
    rows = [
        {
            "what": what,
            "before": before[what],
            "now": now[what],
            "same": "" if what in _OWN else _likeness(before[what], now[what]),
        }
        for what in now
    ]
    columns = {
        "what": "what",
        "same": "alike?",
        "before": comparison.other,
        "now": "this run",
    }
    html = scroll(table(rows, columns=columns, class_="ek-sides"), "provenance of both sides")
    title = tag("h2", "Where this comes from", id="ek-provenance")
    how = pairs([("rebuild", os.environ.get(COMMAND) or _command(comparison))])
    return View(
        tag("section", title, html, how, class_="ek-source", aria_labelledby="ek-provenance")
    )


def _likeness(before: str, now: str) -> Safe | str:
    """Say in a word whether two facts agree."""
    if _UNKNOWN in (before, now):
        return _UNKNOWN
    return "same" if before == now else tag("strong", "differs")


def _command(comparison: Comparison) -> str:
    """Return a command line that makes the same report, in a notebook."""
    name = f"baseline={name_of(comparison.baseline)}"
    words = ["evalkit", "report", "compare_runs", "--run", comparison.run.id, "-p", name]
    return shlex.join(words)


def facts_of(side: Side) -> dict[str, str]:
    """Return what is known of a side's origin, by name, as text."""
    facts = _pinned(side) if isinstance(side, Baseline) else _ran(side)
    return {name: text or _UNKNOWN for name, text in facts.items()}


def _pinned(baseline: Baseline) -> dict[str, str]:
    """Return the facts of a pinned baseline."""
    runs = baseline.runs
    commits = dict.fromkeys(_commit({"commit": run.commit, "dirty": run.dirty}) for run in runs)
    return {
        "name": f"{baseline.name}: runs {', '.join(run.run_id for run in runs)}",
        "suite": baseline.suite,
        "suite hash": baseline.suite_hash,
        "lane": baseline.lane,
        "agent": baseline.agent,
        "agent hash": baseline.agent_hash,
        "models": ", ".join(sorted(baseline.models)),
        "graders": _versions(baseline.graders),
        "git": ", ".join(commits),
        "evalkit": baseline.evalkit,
        "seed": ", ".join(str(run.seed) for run in runs),
        "created": baseline.created_at,
        "digest": f"{baseline.sha256} (seal)",
    }


def _ran(run: Run) -> dict[str, str]:
    """Return the facts of a run."""
    manifest = run.manifest
    return {
        "name": manifest.run_id,
        "suite": manifest.suite,
        "suite hash": manifest.suite_hash,
        "lane": manifest.lane,
        "agent": manifest.agent,
        "agent hash": manifest.agent_hash,
        "models": ", ".join(sorted(manifest.models)),
        "graders": _versions(grader_versions(run)),
        "git": _commit(manifest.git),
        "evalkit": manifest.versions.get("evalkit-lab", ""),
        "seed": str(manifest.seed),
        "created": manifest.created_at,
        "digest": manifest.digest or "none, the run is not finished",
    }


def _versions(graders: Mapping[str, str]) -> str:
    """Write graders with their versions."""
    return ", ".join(f"{name} {version}".strip() for name, version in sorted(graders.items()))


def _commit(git: Mapping[str, Any]) -> str:
    """Write the commit of a checkout, and whether it had changes."""
    commit = str(git.get("commit") or "")
    return f"{commit} with changes" if commit and git.get("dirty") else commit
