"""What the user of the pytest plugin asks for: the command line's options, else the ini file's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import UsageError


@dataclass(frozen=True, slots=True)
class Choices:
    """What the user asked for, on the command line or in the ini file."""

    lane: str | None
    n_trials: int
    seed: int
    agent: str | None
    floor: float | None
    out: Path | None
    network_barrier: Any
    """Checked when the suite is run."""

    @classmethod
    def of(cls, config: pytest.Config) -> Choices:
        """Read them.

        Raises
        ------
        UsageError
            If one of them makes no sense.
        """
        floor = _given(config, "floor")
        choices = cls(
            lane=_given(config, "lane"),
            n_trials=_number(config, "trials", default=1),
            seed=_number(config, "seed", default=0),
            agent=_given(config, "agent"),
            floor=None if floor is None else _rate(floor),
            out=_folder(config),
            network_barrier=_given(config, "network-barrier") or "namespace",
        )
        if choices.lane not in {None, "contract", "live", "quality"}:
            raise UsageError(f"--evalkit-lane {choices.lane!r}: choose contract, live or quality")
        return choices


def _given(config: pytest.Config, name: str) -> str | None:
    """Give an option as text: the command line's, else the ini file's."""
    plain = name.replace("-", "_")
    value = config.getoption(f"evalkit_{plain}")
    return value if value is not None else (config.getini(f"evalkit_{plain}") or None)


def _folder(config: pytest.Config) -> Path | None:
    """Give the folder for runs: relative to where one types, or to the ini file."""
    typed: str | None = config.getoption("evalkit_out")
    if typed:
        return config.invocation_params.dir / typed
    written = config.getini("evalkit_out")
    return config.rootpath / written if written else None


def _number(config: pytest.Config, name: str, *, default: int) -> int:
    text = _given(config, name)
    try:
        return default if text is None else int(text)
    except ValueError:
        raise UsageError(f"--evalkit-{name} {text!r}: is no whole number") from None


def _rate(text: str) -> float:
    try:
        floor = float(text)
    except ValueError:
        floor = -1.0
    if 0 <= floor <= 1:
        return floor
    raise UsageError(f"--evalkit-floor {text!r}: must be a rate between 0 and 1, such as 0.9")
