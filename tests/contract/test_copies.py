"""Several trials of the contract lane check that an agent always does the same."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evalkit as ek

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

WORDS = {"one": [{"text": "1"}], "two": [{"text": "2"}]}


def scenario(deed: str) -> dict[str, Any]:
    """Write a scenario that passes if the agent only answers."""
    model: Any = [{"text": "Hello."}] if deed in {"prompt", "steady"} else []
    if deed == "side by side":
        model = {
            name: {"when": {"user": {"$contains": name}}, "steps": steps}
            for name, steps in WORDS.items()
        }
    answer = {"reply": {"equals": "done"}}
    return {"id": deed.replace(" ", "-"), "input": deed, "model": model, "expect": answer}


@pytest.fixture
def unsteady(tmp_path: Path, write_suite: Callable[..., Path]) -> Callable[..., Path]:
    """Write a suite with the deeds given."""
    return lambda *deeds: write_suite(
        tmp_path / "suite", "unsteady:agent", [scenario(deed) for deed in deeds]
    )


@pytest.mark.parametrize(
    ("deed", "event", "path"),
    [("prompt", "model_call", "data.prompt"), ("tool", "tool_call", "data.args.number")],
)
def test_unsteady_agent_is_no_pass(
    deed: str, event: str, path: str, unsteady: Callable[..., Path], tmp_path: Path
) -> None:
    """Each of its trials would pass alone; the first event that differs is named."""
    suite = unsteady(deed)
    assert ek.run_suite(suite, out=tmp_path / "alone").status == "passed"
    run = ek.run_suite(suite, n_trials=3, out=tmp_path / "runs")
    assert run.status == "failed"
    assert sorted(record.reason_code for record in run.records) == ["", *["not_deterministic"] * 2]
    (reason, _) = (record.reason for record in run.records if record.reason)
    assert f"({event}), {path}" in reason
    regraded = ek.grade_run(run, suite=suite, out=tmp_path / "again")
    assert [record.reason_code for record in regraded.records].count("not_deterministic") == 2


def test_steady_agents_agree(unsteady: Callable[..., Path], tmp_path: Path) -> None:
    """Copies of what is steady pass; what ran side by side may have come in any order."""
    run = ek.run_suite(unsteady("steady", "side by side"), n_trials=6, out=tmp_path / "runs")
    assert {record.reason for record in run.records} == {""}
    assert run.status == "passed"
