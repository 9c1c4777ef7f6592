"""Frames of trials to gate: rates in, outcomes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import pandas as pd
import pytest


class MakeTrials(Protocol):
    """Makes a frame of trials from the outcomes of each scenario."""

    def __call__(self, outcomes: Mapping[str, str], **columns: Any) -> pd.DataFrame:
        """Give one row an outcome: ``p`` passed, ``f`` failed, ``i`` incomplete."""


_WORDS = {"p": "passed", "f": "failed", "i": "incomplete"}


def trials_of(outcomes: Mapping[str, str], **columns: Any) -> pd.DataFrame:
    """Write outcomes such as ``{"book": "ppf"}`` as the trials of a run."""
    rows = [
        (scenario, trial, _WORDS[letter])
        for scenario, letters in outcomes.items()
        for trial, letter in enumerate(letters)
    ]
    frame = pd.DataFrame(rows, columns=["scenario", "trial", "status"])
    told = {"run_id": "run", "suite": "s", "lane": "live"} | columns
    return frame.assign(**told)


@pytest.fixture
def make_trials() -> MakeTrials:
    """Give :func:`trials_of` to tests, which cannot import each other."""
    return trials_of


@pytest.fixture
def many() -> Mapping[str, str]:
    """Outcomes of 200 scenarios, four in five of which always pass."""
    return {f"s{i:03}": "ppp" if i % 5 else "fff" for i in range(200)}
