"""Running a suite: trials are executed, graded, and written as they finish.

The runner plans, grades, and is the only writer of a run's results; what
happens inside a trial is :mod:`evalkit.trial`'s.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TypeAlias

from evalkit.agents import AgentRef
from evalkit.agents.declared import declared_tools
from evalkit.errors import LedgerError, TraceError, UsageError
from evalkit.grade import Ending, Grade
from evalkit.graders import grade_trial
from evalkit.ledger import digest, event_line
from evalkit.recording import ledger_of
from evalkit.results import (
    Manifest,
    Run,
    RunWriter,
    TrialRecord,
    load_run,
    read_manifest,
    trial_record,
)
from evalkit.run.agreeing import Copies
from evalkit.run.declaring import check_tools
from evalkit.run.feasible import check_same_clock, clock_of, find_hindrance
from evalkit.run.hiding import without_values
from evalkit.run.loading import PathLike, load_suite
from evalkit.run.orders import Orders
from evalkit.run.planning import GraderName, default_lane, grader_names, new_manifest, planned
from evalkit.run.reaching import agent_of
from evalkit.run.viewing import TrialViewer
from evalkit.sandbox.barrier import BARRIERS, Barrier
from evalkit.suite import Suite
from evalkit.trace import Trace
from evalkit.trial import (
    LANES,
    FinishedTrial,
    ProcessTrials,
    TrialOrder,
    run_here,
)

Isolation: TypeAlias = Literal["process", "none"]
LedgerPath: TypeAlias = Callable[[TrialOrder], Path]
_MODULE_AND_NAME: Final = re.compile(r"(?:http: )?([\w.]+:[\w.]+)(?: \(.*\))?")
DEFAULT_OUT: Final = "data/runs"


def run_suite(  # noqa: PLR0913 - each is one thing that a user says about a run
    suite: Suite | PathLike,
    *,
    agent: Any = None,
    lane: str | None = None,
    n_trials: int = 1,
    seed: int = 0,
    out: PathLike = DEFAULT_OUT,
    n_parallel: int | None = None,
    isolation: Isolation = "process",
    network_barrier: Barrier = "namespace",
    graders: Sequence[GraderName] = (),
    scenarios: Sequence[str] = (),
    progress: bool | None = None,
) -> Run:
    """Run an agent through a suite, grade what it does, and keep both.

    Parameters
    ----------
    suite
        A suite, or its file.
    agent
        ``"module:name"``, a callable ``agent(text) -> reply`` (sync or async), a
        zero-argument factory of an object with ``reply(text)``, or such an
        object; a reply is text or a whole ``Trace``. Defaults to the suite's.
    lane
        ``contract`` runs the agent offline, in a sandbox, against the scripted
        model; ``live`` with its own model, or none. Defaults to ``contract`` where
        every scenario has a script.
    n_trials
        Attempts at each scenario.
    seed
        Randomness of a trial is seeded from this, its scenario and its number.
    out
        Folder that gets the run directory.
    n_parallel
        Trials in flight at a time; defaults to the number of CPUs.
    isolation
        ``process``: a fresh process for each trial. ``none``: this very process,
        for debugging; deadlines are not kept there.
    network_barrier
        What shuts the network off from trials of the contract lane: ``namespace``
        (the kernel), ``python`` (only what Python itself connects to), ``none``.
        Anything but the first is stamped into the manifest.
    graders
        Further graders (names or decorated functions) for every scenario.
    scenarios
        Ids of the scenarios to run; by default all.
    progress
        Show a progress bar; by default only on a terminal.

    Returns
    -------
    Run
        With ``.trials``, ``.grades``, ``.tool_calls`` ... as DataFrames.

    Raises
    ------
    SuiteError, AgentError, UsageError
        Before anything runs. During the run nothing of one trial raises: it is
        ``failed`` or ``incomplete``, with the reason.
    LedgerError
        If the disk does not take a result; finished trials are kept.
    """
    suite = suite if isinstance(suite, Suite) else load_suite(suite)
    lane = lane or default_lane(suite)
    _check_choices(
        lane,
        n_trials=n_trials,
        n_parallel=n_parallel,
        isolation=isolation,
        barrier=network_barrier,
    )
    reference = agent_of(suite, agent, lane=lane)
    manifest = new_manifest(
        suite,
        lane=lane,
        plan=planned(suite, n_trials=n_trials, only=scenarios),
        agent=reference.description,
        agent_hash=reference.hash,
        seed=seed,
        isolation=isolation,
        barrier=network_barrier if lane == "contract" else "",
        clock=clock_of(reference, lane=lane).name,
        more_graders=grader_names(graders),
    )
    runner = _Runner(suite, manifest, reference, n_parallel=n_parallel, progress=progress)
    folder = Path(out) / manifest.run_id
    return runner.run(agent, lambda: RunWriter.create(folder, manifest))


def resume_run(
    run: PathLike,
    *,
    suite: Suite | PathLike | None = None,
    agent: Any = None,
    n_parallel: int | None = None,
    progress: bool | None = None,
) -> Run:
    """Go on with a run that was interrupted; the result equals an uninterrupted one.

    Parameters
    ----------
    run
        The run directory.
    suite, agent
        Only needed where the run's own came from memory (a notebook).
    n_parallel, progress
        As for :func:`run_suite`.

    Raises
    ------
    UsageError
        If suite or agent are not the ones that the run began with.
    """
    manifest = read_manifest(Path(run))
    given = suite if suite is not None else manifest.suite_path
    if not given:
        raise UsageError(f"{run}: its suite came from memory; give it with suite=...")
    suite = given if isinstance(given, Suite) else load_suite(given)
    again = agent if agent is not None else _agent_again(manifest)
    reference = agent_of(suite, again, lane=manifest.lane)
    _check_same(manifest, suite, reference)
    runner = _Runner(suite, manifest, reference, n_parallel=n_parallel, progress=progress)
    return runner.run(agent, lambda: RunWriter.resume(Path(run)))


def _agent_again(manifest: Manifest) -> str | None:
    """Name the agent that a run began with, if it has a name; else it is the suite's."""
    named = _MODULE_AND_NAME.fullmatch(manifest.agent)
    return named[1] if named else None


def _check_choices(
    lane: str, *, n_trials: int, n_parallel: int | None, isolation: str, barrier: str
) -> None:
    if lane not in LANES or lane == "imported":
        raise UsageError(f"lane {lane!r}: choose contract, live or quality")
    if n_trials < 1:
        raise UsageError(f"n_trials == {n_trials}, must be at least 1")
    if n_parallel is not None and n_parallel < 1:
        raise UsageError(f"n_parallel == {n_parallel}, must be at least 1")
    if isolation not in {"process", "none"}:
        raise UsageError(f"isolation {isolation!r}: choose 'process' or 'none'")
    if lane == "contract" and isolation == "none":
        raise UsageError(
            "the contract lane needs a process for each trial: isolation='none' is for --lane live"
        )
    if barrier not in BARRIERS:
        raise UsageError(f"network barrier {barrier!r}: choose {', '.join(BARRIERS)}")


def _check_same(manifest: Manifest, suite: Suite, agent: AgentRef) -> None:
    """Refuse to mix results of different suites or agents in one run."""
    pairs = (
        ("suite", manifest.suite_hash, suite.hash),
        ("agent's code", manifest.agent_hash, agent.hash),
    )
    for what, before, now in pairs:
        if before != now:
            raise UsageError(
                f"{manifest.run_id}: the {what} has changed since this run began, so its trials "
                "would not be comparable; start a new run"
            )


class _Runner:
    """Runs what is missing of a run, and grades it."""

    def __init__(
        self,
        suite: Suite,
        manifest: Manifest,
        reference: AgentRef,
        *,
        n_parallel: int | None,
        progress: bool | None,
    ) -> None:
        self._suite = suite
        self._scenarios = {scenario.id: scenario for scenario in suite}
        clock = clock_of(reference, lane=manifest.lane)
        check_same_clock(manifest, clock)
        self._hindrances = {
            planned.id: find_hindrance(self._scenarios[planned.id], lane=manifest.lane, clock=clock)
            for planned in manifest.plan
        }
        self._manifest = manifest
        self._reference = reference
        self._viewer = TrialViewer(suite, manifest)
        self._copies = Copies(manifest)
        self._desk = Orders(suite, manifest, faketime=clock.library)
        self._n_parallel = n_parallel or os.cpu_count() or 1
        self._progress = sys.stderr.isatty() if progress is None else progress

    def run(self, agent: Any, open_writer: Callable[[], RunWriter]) -> Run:
        """Run every missing trial; whatever stops it, finished trials stay.

        The agent is loaded first: if that fails, nothing was run, and nothing is written.
        """
        with self._trials(agent) as run_trials:
            writer = open_writer()
            with _resumable(writer), self._bar(writer) as advance:
                if writer.done:
                    self._copies.take_up(writer.folder)
                orders = [self._desk.order(*key) for key in writer.missing]
                # First trials of all scenarios come first: an interrupted run has seen them all.
                orders.sort(key=lambda order: order.trial)
                able = [order for order in orders if not self._hindrances[order.scenario]]
                for order in orders:
                    if hindrance := self._hindrances[order.scenario]:
                        self._skip(order, hindrance, writer)
                        advance()
                for finished in run_trials(able, ledger_path=_ledger_path(writer)):
                    writer.add(self._record(finished))
                    advance()
        return load_run(writer.folder)

    @contextmanager
    def _trials(self, agent: Any) -> Iterator[RunTrials]:
        """Load the agent, and give what runs its trials."""
        if all(self._hindrances.values()):
            yield lambda orders, *, ledger_path: iter(())  # noqa: ARG005 - nothing is run
        elif self._manifest.isolation == "none":
            in_memory = agent is not None and not isinstance(agent, str)
            loaded = agent if in_memory else self._reference.load()
            check_tools(self._suite, declared_tools(loaded))
            yield partial(run_here, agent=loaded)
        else:
            surroundings = self._desk.surroundings
            trials = ProcessTrials(
                self._reference, n_parallel=self._n_parallel, surroundings=surroundings
            )
            with trials:
                check_tools(self._suite, trials.declared_tools())
                yield trials.run

    def _skip(self, order: TrialOrder, ending: Ending, writer: RunWriter) -> None:
        """Record a trial that cannot be run here; it must not measure something else."""
        unseen = Trace(tools_observed=False)
        events = ledger_of(
            unseen, scenario=order.scenario, trial=order.trial, lane=order.lane, ending=ending
        )
        finished = FinishedTrial(order, events, ending)
        writer.add(self._record(finished), b"".join(map(event_line, events)))

    def _record(self, finished: FinishedTrial) -> TrialRecord:
        """Grade a trial; one whose ledger cannot be read must not end the run."""
        try:
            return self._graded(finished)
        except (LedgerError, TraceError) as error:
            reason = f"its ledger cannot be read: {error}"
            ending = replace(
                finished.ending, status="incomplete", reason_code="ledger_broken", reason=reason
            )
            return self._told(finished.order, Trace(tools_observed=False), ending=ending)

    def _graded(self, finished: FinishedTrial) -> TrialRecord:
        order, ending = finished.order, finished.ending
        scenario = self._scenarios[order.scenario]
        trial = self._viewer.view(finished.events, scenario, trial=order.trial, ending=ending)
        is_skipped = self._hindrances[order.scenario] is not None
        grades = () if is_skipped else grade_trial(trial, more=self._manifest.more_graders)
        tell = partial(
            self._told, order, trial.trace, grades=grades, digest=digest(finished.events)
        )
        record = tell(ending=ending)
        fault = self._copies.fault_of(record, finished.events)
        return record if fault is None else tell(ending=fault)

    def _told(
        self,
        order: TrialOrder,
        trace: Trace,
        *,
        ending: Ending,
        grades: Sequence[Grade] = (),
        digest: str = "",
    ) -> TrialRecord:
        scenario = self._scenarios[order.scenario]
        record = trial_record(
            order.scenario,
            order.trial,
            trace,
            ending=ending,
            grades=grades,
            seed=order.seed,
            digest=digest,
            tags=tuple(scenario.tags),
            cluster=scenario.cluster or "",
        )
        return without_values(record, scenario)

    @contextmanager
    def _bar(self, writer: RunWriter) -> Iterator[Callable[[], object]]:
        from tqdm.std import tqdm

        with tqdm(
            total=writer.manifest.n_planned,
            initial=len(writer.done),
            desc=self._suite.name,
            unit="trial",
            disable=not self._progress,
            leave=False,
        ) as bar:
            yield bar.update


class RunTrials(Protocol):
    """Runs orders, and gives the trials as they finish."""

    def __call__(
        self, orders: Iterable[TrialOrder], *, ledger_path: LedgerPath
    ) -> Iterator[FinishedTrial]:
        """Run them."""


def _ledger_path(writer: RunWriter) -> LedgerPath:
    return lambda order: writer.ledger_path(order.scenario, order.trial)


@contextmanager
def _resumable(writer: RunWriter) -> Iterator[None]:
    """Close a run whatever happens, and say how to go on with it."""
    try:
        yield
    except BaseException as error:
        error.add_note(
            f"{len(writer.done)} finished trials are kept; "
            f"go on with: evalkit run --resume {writer.folder}"
        )
        raise
    finally:
        writer.finish()
