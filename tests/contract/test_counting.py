"""What only has its tokens counted is no model call, but it has left."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("anthropic", reason="needs the extra `examples`")

import evalkit as ek

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


def test_forbidden_text_that_was_counted_fails_the_trial(
    tmp_path: Path, write_suite: Callable[..., Path]
) -> None:
    """The turn in which it left is the one that fails; one model call a turn is counted."""
    model = [{"text": "Hello."}]
    ban = {"forbid": {"prompt": "4111"}}
    told = {
        "id": "card",
        "turns": [
            {"user": "Hi.", "model": model, **ban},
            {"user": "My card is 4111.", "model": model, **ban},
        ],
        "expect": {"path": {"max_model_calls": 2}},
    }
    run = ek.run_suite(
        write_suite(tmp_path / "suite", "counts:agent", [told]), out=tmp_path / "runs"
    )
    (record,) = run.records
    assert record.status == "failed"
    assert record.n_model_calls == 2
    assert record.reason.startswith("prompt: turn 2: what was sent to have its tokens counted")
    assert [grade.grader for grade in record.grades if not grade.passed] == ["prompt"]
