"""What a run owes: its lane, its trials, and the manifest that says so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias

from evalkit.errors import UsageError
from evalkit.graders import find_grader, known_graders
from evalkit.provenance import git_state, versions
from evalkit.results import Manifest, PlannedScenario, new_run_id
from evalkit.suite import Suite

GraderName: TypeAlias = str | Callable[..., Any]
"""A grader by name, or its decorated function."""


def default_lane(suite: Suite) -> str:
    """Choose the contract lane where every scenario has a script.

    Raises
    ------
    UsageError
        If one has none: what should run instead must be said.
    """
    bare = [scenario.id for scenario in suite if not scenario.is_scripted]
    if not bare:
        return "contract"
    raise UsageError(
        f"suite {suite.name!r}: {len(bare)} of {len(suite)} scenarios have no `model:` script "
        f"({', '.join(bare[:3])}{' ...' if len(bare) > 3 else ''}), so the contract lane cannot "
        "run it; run the agent with its own model: --lane live (lane='live')"
    )


def planned(
    suite: Suite, *, n_trials: int, only: Collection[str] = ()
) -> tuple[PlannedScenario, ...]:
    """Plan the trials of a suite, or only of some of its scenarios.

    Raises
    ------
    UsageError
        If one of ``only`` is no scenario of the suite.
    """
    for scenario_id in only:
        try:
            suite.scenario(scenario_id)
        except KeyError as error:
            raise UsageError(str(error.args[0])) from None
    return tuple(
        PlannedScenario(
            id=scenario.id,
            n_trials=n_trials,
            hash=scenario.hash,
            tags=tuple(scenario.tags),
            cluster=scenario.cluster or "",
            must_pass=scenario.must_pass,
            min_pass_rate=scenario.min_pass_rate,
        )
        for scenario in suite
        if not only or scenario.id in only
    )


def new_manifest(
    suite: Suite, *, lane: str, plan: tuple[PlannedScenario, ...], **more: Any
) -> Manifest:
    """Write down what a run of a suite owes, and with what it is made.

    Parameters
    ----------
    suite
        What is run.
    lane
        How.
    plan
        Its trials.
    **more
        Further fields of :class:`~evalkit.results.Manifest`.
    """
    folder = suite.path.parent if suite.path is not None else Path.cwd()
    return Manifest(
        run_id=new_run_id(suite.name),
        suite=suite.name,
        suite_hash=suite.hash,
        suite_path="" if suite.path is None else str(suite.path.resolve()),
        lane=lane,
        plan=plan,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        graders={name: find_grader(name).version for name in known_graders()},
        versions=versions(),
        git=git_state(folder),
        **more,
    )


def grader_names(given: Iterable[GraderName]) -> tuple[str, ...]:
    """Name graders that are given by name or as decorated functions.

    Raises
    ------
    GraderError
        If one of them is not registered.
    """
    return tuple(
        find_grader(one if isinstance(one, str) else getattr(one, "__name__", repr(one))).name
        for one in given
    )
