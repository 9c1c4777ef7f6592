"""What a crash does, at each moment of a scenario: :func:`crash_test`."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalkit.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from evalkit.graders import Trial
    from evalkit.ledger import Event
    from evalkit.run.orders import Orders
    from evalkit.sandbox.barrier import Barrier
    from evalkit.suite import Scenario, Suite
    from evalkit.trial import FinishedTrial, ProcessTrials, TrialOrder


def crash_test(
    suite: Suite | str | os.PathLike[str],
    scenario: str,
    *,
    agent: Any = None,
    seed: int = 0,
    n_parallel: int | None = None,
    network_barrier: Barrier = "namespace",
) -> pd.DataFrame:
    """Kill an agent at each moment of a scenario, and see whether it comes to the same end.

    The scenario is run once undisturbed, in the contract lane, and then once for each
    event of that trial: right after the event the agent's process is killed (SIGKILL),
    another one is started on the same files and databases, and what was under way comes
    again, as it does from whoever got no answer: the same words, or the same update with
    the same ``update_id``. A turn that had been answered does not come again.

    Parameters
    ----------
    suite
        A suite, or its file.
    scenario
        Id of a scenario that passes, and that expects something of ``database``,
        ``state`` or ``files``, for the whole or in its last turn.
    agent, seed, network_barrier
        As for :func:`~evalkit.run_suite`.
    n_parallel
        Trials in flight at a time; by default the number of CPUs.

    Returns
    -------
    DataFrame
        One row for each event, in their order:

        - ``event``, ``kind``, ``what``: number, kind and content of the event after which
          the agent was killed; ``turn``: in which turn, from 0 (``<NA>`` before the first).
        - ``status``: ``passed``, ``failed``, or ``incomplete`` where it could not be
          measured; ``reason``: why.
        - ``lost``: what does not hold any more of what the scenario expects at its end.
        - ``answered_twice``: whether a turn got more replies than undisturbed.
        - ``unanswered``: whether a turn got fewer.
        - ``n_replies``: replies in that turn, by both processes; ``n_replies_undisturbed``.

    Raises
    ------
    SuiteError, AgentError, UsageError
        If suite, scenario or agent are not fit for it.

    Notes
    -----
    A row is passed if nothing is lost and no turn is answered twice, and if the agent
    could go on at all. Nobody can do better: where a crash falls between sending a reply
    and noting that it was sent, the agent must choose between saying it twice or not at
    all, and once more is what users see. So a missing reply is told, and is no failure.
    Nor are steps of the script that were left over, or tools that were called
    again: both come of the crash. A call of the model that the script has nothing for is
    one: nobody knows what the agent would have done then.

    Where nothing tells an agent that words come for the second time (it is called with
    text alone), it can keep to this only if it notes what it did.

    Examples
    --------
    >>> rows = crash_test("data/suites/career.yaml", "save-posting")  # doctest: +SKIP
    >>> rows.query("status != 'passed'")  # doctest: +SKIP
    """
    import pandas as pd

    from evalkit.run import load_suite
    from evalkit.suite import Suite
    from evalkit.testing.crash_rows import COLUMNS, judged_row, n_replies

    suite = suite if isinstance(suite, Suite) else load_suite(suite)
    bench = _Bench(suite, scenario, agent, seed=seed, barrier=network_barrier)
    with bench.open(n_parallel or os.cpu_count() or 1) as run:
        calm = bench.calm(run)
        replies = n_replies(calm.events, suite.scenario(scenario))
        moments = moments_of(calm.events)
        crashed = {each.order.trial: each for each in run([each.seq for each in moments])}
        rows = [
            judged_row(
                event, calm=replies, crashed=crashed[event.seq], view=bench.view(crashed[event.seq])
            )
            for event in moments
        ]
    return pd.DataFrame(rows).astype(COLUMNS)


def moments_of(events: Sequence[Event]) -> list[Event]:
    """Give the events after which an agent can be killed: until evalkit looks what is left."""
    ends = (each.seq for each in events if _looks_back(each))
    end = next(ends, len(events))
    found = [event for event in events if event.seq < end]
    while found and found[-1].kind == "database" and found[-1].data.get("turn") is None:
        found.pop()
    return found


def _looks_back(event: Event) -> bool:
    return event.kind == "file" or (event.kind == "state" and "files" in event.data)


class _Bench:
    """Runs one scenario, undisturbed or not, and reads what it did."""

    def __init__(
        self, suite: Suite, scenario: str, agent: Any, *, seed: int, barrier: Barrier
    ) -> None:
        from evalkit.run.feasible import clock_of, find_hindrance
        from evalkit.run.orders import Orders
        from evalkit.run.planning import new_manifest, planned
        from evalkit.run.reaching import agent_of
        from evalkit.run.viewing import TrialViewer

        plan = planned(suite, n_trials=1, only=[scenario])
        self._scenario = suite.scenario(scenario)
        self._lasting = lasting(self._scenario)
        self._agent = agent_of(suite, agent, lane="contract")
        clock = clock_of(self._agent, lane="contract")
        hindrance = find_hindrance(self._scenario, lane="contract", clock=clock)
        if hindrance is not None:
            raise UsageError(f"scenario {scenario!r}: {hindrance.reason}")
        manifest = new_manifest(
            suite,
            lane="contract",
            plan=plan,
            agent=self._agent.description,
            seed=seed,
            isolation="process",
            barrier=barrier,
            clock=clock.name,
        )
        self._viewer = TrialViewer(suite, manifest)
        self._desk: Orders = Orders(suite, manifest, faketime=clock.library)

    @contextmanager
    def open(self, n_parallel: int) -> Iterator[_Run]:
        """Load the agent; give what runs the scenario."""
        from evalkit.trial import ProcessTrials

        around = self._desk.surroundings
        with (
            tempfile.TemporaryDirectory(prefix="evalkit-") as folder,
            ProcessTrials(self._agent, n_parallel=n_parallel, surroundings=around) as trials,
        ):
            yield _Run(self._desk.order(self._scenario.id, 0), trials, Path(folder))

    def calm(self, run: _Run) -> FinishedTrial:
        """Run it undisturbed.

        Raises
        ------
        UsageError
            If it does not pass then.
        """
        from evalkit.grade import judge_status
        from evalkit.graders import grade_trial

        (finished,) = run([None])
        trial = self._viewer.view(finished.events, self._scenario, trial=0, ending=finished.ending)
        verdict = judge_status(finished.ending, grade_trial(trial))
        if verdict.status != "passed":
            raise UsageError(
                f"scenario {self._scenario.id!r} does not pass without a crash "
                f"({verdict.status}: {verdict.reason}); let it pass first"
            )
        return finished

    def view(self, finished: FinishedTrial) -> Trial:
        """Give a trial as graders see it that ask for nothing but what lasts."""
        ending, number = finished.ending, finished.order.trial
        if ending.reason_code == "left_over_steps":  # it had no need of them; it went to its end
            ending = replace(ending, status="passed", reason_code="", reason="")
        return self._viewer.view(finished.events, self._lasting, trial=number, ending=ending)


class _Run:
    """Runs one scenario as often as is asked."""

    def __init__(self, order: TrialOrder, trials: ProcessTrials, folder: Path) -> None:
        self._order = order
        self._trials = trials
        self._folder = folder

    def __call__(self, deaths: Sequence[int | None]) -> Iterator[FinishedTrial]:
        """Run it once for each event after which it is to be killed; ``None``: it is not."""
        orders = [replace(self._order, trial=seq or 0, die_after=seq) for seq in deaths]
        yield from self._trials.run(
            orders, ledger_path=lambda order: self._folder / f"{order.trial}.jsonl"
        )


def lasting(scenario: Scenario) -> Scenario:
    """Give a scenario that expects only what must hold at the end.

    Raises
    ------
    UsageError
        If that is nothing.
    """
    from evalkit.suite import Expect

    *others, last = scenario.turns
    kept = []
    for place in (scenario, last):
        said = (
            {}
            if place.expect is None
            else {name: getattr(place.expect, name) for name in ("database", "state", "files")}
        )
        kept.append(Expect.model_construct(**said) if any(said.values()) else None)
    if not any(kept):
        raise UsageError(
            f"scenario {scenario.id!r} expects nothing of `database`, `state` or `files` at its "
            "end, so nobody could tell what a crash has lost: add one of them to its `expect`"
        )
    bare = {"expect": None, "forbid": None}
    turns = tuple(turn.model_copy(update=bare) for turn in others)
    turns += (last.model_copy(update={**bare, "expect": kept[1]}),)
    return scenario.model_copy(update={**bare, "expect": kept[0], "turns": turns})
