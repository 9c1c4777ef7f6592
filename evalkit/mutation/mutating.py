"""Breaking the passing trials of a run, and asking the suite whether it notices."""

from __future__ import annotations

import difflib
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from evalkit.errors import UsageError
from evalkit.mutation.judging import GradingAgain, TrialJudge
from evalkit.mutation.making import chosen_among, mutants_of
from evalkit.mutation.operators import OPERATORS
from evalkit.mutation.originals import OriginalReader
from evalkit.mutation.records import LeftOut, MutantResult, Operator, Subject
from evalkit.mutation.report import MutationReport
from evalkit.mutation.toolset import Toolset
from evalkit.results import Run, load_run
from evalkit.run import load_suite, run_suite
from evalkit.suite import Suite

PathLike: TypeAlias = str | os.PathLike[str]

MAX_MUTANTS: Final = 200
"""Mutants of one trial that are judged, unless another number is asked for."""


def mutate_suite(
    suite: Suite | PathLike,
    run: Run | PathLike | None = None,
    *,
    agent: Any = None,
    out: PathLike = "data/runs",
    operators: Sequence[str] = (),
    n_trials: int = 1,
    max_mutants: int = MAX_MUTANTS,
    seed: int = 0,
) -> MutationReport:
    r"""Break passing trials on purpose, and report what the suite does not notice.

    Each mutant is the trace of a trial that passed, with one thing broken: a call
    dropped, an argument changed, a reply contradicted. It is graded again by the
    suite's expectations; no agent runs. One that still passes is a hole in the suite.

    Parameters
    ----------
    suite
        A suite, or its file.
    run
        A run of it, or its directory; without one, the suite is run in the contract
        lane first.
    agent, out
        For that run, as :func:`evalkit.run_suite` takes them.
    operators
        Names of the operators to use; by default all
        (:data:`evalkit.mutation.OPERATORS`).
    n_trials
        Passing trials of each scenario that are broken, at most.
    max_mutants
        Mutants of each trial, at most. Where there are more, each operator keeps
        some, chosen by ``seed``; what is left out is counted.
    seed
        The same seed gives the same mutants.

    Returns
    -------
    MutationReport
        With ``score``, ``survivors`` and ``to_frame()``; scenarios without a trial
        that passes are in ``left_out``.

    Raises
    ------
    SuiteError, AgentError, UsageError
        If suite, agent or arguments are wrong.
    LedgerError
        If the run is broken.

    Notes
    -----
    Only graders that are code take part. A mutant is excluded, with the reason, where
    nobody should notice it: two calls that were asked for at once swapped, a failed
    call tried again, what the suite allows in so many words; and where its trace is
    the original's or that of another mutant.

    Examples
    --------
    >>> import tempfile
    >>> from evalkit.suite import suite_from_data
    >>> expect = {"reply": {"contains": "hello"}}
    >>> scenarios = [{"id": "hi", "input": "Hi", "expect": expect}]
    >>> suite = suite_from_data({"suite": "s", "scenarios": scenarios})
    >>> def agent(text):
    ...     return "Hello, how are you?"
    >>> with tempfile.TemporaryDirectory() as out:
    ...     run = run_suite(suite, agent=agent, lane="live", isolation="none", out=out)
    ...     report = mutate_suite(suite, run)
    >>> [(hole.operator, hole.suggestion.text) for hole in report.survivors][0]
    ('cut-reply', 'reply:\n  contains: [hello, you]')
    """
    chosen = _chosen(operators)
    if n_trials < 1 or max_mutants < 1:
        raise UsageError("n_trials and max_mutants must be at least 1")
    suite = suite if isinstance(suite, Suite) else load_suite(suite)
    if run is None:
        run = run_suite(suite, agent=agent, lane="contract", out=out)
    run = run if isinstance(run, Run) else load_run(run)
    work = _Mutation(suite, run, chosen, limit=max_mutants, seed=seed)
    return work.report(n_trials)


def _chosen(names: Sequence[str]) -> tuple[Operator, ...]:
    known = {operator.name: operator for operator in OPERATORS}
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"there is {', '.join(known)}"
            raise UsageError(f"no mutation operator is called {name!r}; {hint}")
    return tuple(known[name] for name in names) if names else OPERATORS


@dataclass(slots=True)
class _Mutation:
    """One suite held against the mutants of one run."""

    suite: Suite
    run: Run
    operators: Sequence[Operator]
    limit: int
    seed: int

    def report(self, n_trials: int) -> MutationReport:
        """Break trials of every scenario of the suite."""
        strict = self.suite.defaults.get("strict") is True
        grading = GradingAgain(tuple(self.run.manifest.more_graders), strict=strict)
        reader = OriginalReader(self.suite, self.run, grading)
        originals = {one.id: reader.passing(one, n_trials) for one in self.suite}
        trials = [trial for found in originals.values() for trial in found.trials]
        tools = Toolset.seen_in(trial.trace for trial in trials)
        results: list[MutantResult] = []
        untried: dict[str, int] = {}
        for trial in trials:
            subject = Subject(trial, tools)
            made = list(mutants_of(subject, self.operators))
            name = trial.scenario.id
            chance = random.Random(f"{self.seed}:{name}:{trial.trial}")
            kept = chosen_among(made, self.limit, chance)
            judge = TrialJudge(subject, grading)
            results += map(judge.result, kept)
            if len(kept) < len(made):
                untried[name] = untried.get(name, 0) + len(made) - len(kept)
        return MutationReport(
            suite=self.suite.name,
            run_id=self.run.id,
            lane=self.run.manifest.lane,
            seed=self.seed,
            scenarios=tuple(originals),
            results=tuple(results),
            left_out=tuple(
                LeftOut(name, found.reason) for name, found in originals.items() if not found.trials
            ),
            untried=untried,
        )
