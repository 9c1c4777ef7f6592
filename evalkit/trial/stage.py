"""What stands around a conversation in the contract lane, inside the trial's process.

The room (namespaces, folders, clock, ids) is entered before anything of the
agent runs; then the scripted model listens, and the clock moves one second a model
reply. At the end the stage says what the agent did to it: calls that nobody
scripted, steps and processes that it left over, connections that were refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evalkit.gateway import Endpoint, GatewayServer
from evalkit.grade import Ending
from evalkit.ledger import JSON, EventKind
from evalkit.recording import Recorder
from evalkit.sandbox.connections import NOBODY, Refused
from evalkit.sandbox.room import Entered
from evalkit.trial.files import record_files
from evalkit.trial.leftovers import Leftovers
from evalkit.trial.order import DatabaseLooks, Staging
from evalkit.trial.outbox import Outbox
from evalkit.trial.ports import entered_port

if TYPE_CHECKING:
    from evalkit.outside import World, WorldPlan
    from evalkit.serving.finding import Finding
    from evalkit.trial.databases import Databases
    from evalkit.trial.delivering import Ways
    from evalkit.trial.lives import Past


class Stage:
    """The scripted model and the world of one trial.

    Parameters
    ----------
    staging
        What to set up.
    entered
        The room that this process is in.
    recorder
        Takes the events.
    outbox
        Sends them.
    refused_before
        Attempts to reach the outside while the agent was imported.
    past
        What other processes of the trial did before this one.
    """

    def __init__(
        self,
        staging: Staging,
        entered: Entered,
        *,
        recorder: Recorder,
        outbox: Outbox,
        refused_before: Refused = NOBODY,
        past: Past | None = None,
    ) -> None:
        self._entered = entered
        self._recorder = recorder
        self._outbox = outbox
        self._refused_before = refused_before
        self._leftovers = Leftovers()
        self._n_begun = 0 if past is None else past.life.n_begun
        self._given = frozenset(staging.room.files)
        self._databases = (
            None if staging.databases is None else self._watch(staging.databases, past)
        )
        self.ways = _ways(staging, recorder)
        """The ways to and from the agent that are no calls; ``None`` where there are none."""
        self._endpoint = Endpoint(
            staging.scripts, self._record, settle=outbox.settle, traces_here=True
        )
        if past is not None:
            self._go_on(past)
        self._world = None if staging.world is None else self._open(staging.world, past)
        self._gateway = GatewayServer(self._endpoint, port=staging.port or entered_port()).start()

    def _record(
        self,
        kind: EventKind,
        data: Mapping[str, JSON],
        *,
        span: str = "",
        real: Mapping[str, JSON] | None = None,
    ) -> None:
        self._outbox.hold()  # until the gateway has told all of a request
        self._recorder.event(kind, data, span=span, real=real)
        if kind == "model_reply" and self._entered.clock is not None:
            self._entered.clock.tick()

    def begin_turn(self, turn: int) -> None:
        """Go on to a turn, from 0."""
        self._endpoint.begin_turn(turn)
        self._n_begun = turn + 1
        if self._world is not None:
            self._world.begin_turn(turn)
        if self._databases is not None:
            self._databases.begin_turn(turn)

    @property
    def looks_at_turns(self) -> bool:
        """Whether anybody wants to see the world after a turn."""
        return self._databases is not None

    def end_turn(self) -> None:
        """Look at the world that the turn leaves."""
        if self._databases is not None:
            self._databases.end_turn()

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        if self._entered.clock is not None:
            self._entered.clock.advance(seconds)

    def close(self) -> None:
        """Stop listening; a trial's own process need not, for it ends."""
        self._gateway.stop()

    def verdict(self, ending: Ending) -> Ending:
        """Say how the trial ended, given how the conversation did.

        What nobody scripted explains what the agent then did, and so do connections
        that were refused; steps that were left over matter once the agent did well.
        """
        findings = self._endpoint.finish()
        left = self._leftovers.end()
        if self._world is not None:
            findings = _by_turn(self._world.finish(), findings)
        if self._databases is not None:
            self._databases.finish()
        record_files(
            self._recorder,
            Path(self._entered.places.work),
            databases=self._databases,
            look_late=self._look_late,
            given=self._given,
        )
        return self._judged(ending, findings, left)

    def _judged(self, ending: Ending, findings: Sequence[Finding], left: str) -> Ending:
        refused = self._refused_connections()
        grave = next((one for one in findings if one.code != "left_over_steps"), None)
        if grave is not None:
            return Ending(grave.status, grave.code, grave.reason)
        unread = self.ways and self.ways.replies and self.ways.replies.finding()
        if unread:
            return unread
        if ending.status == "passed" and findings:
            ending = Ending(findings[0].status, findings[0].code, findings[0].reason)
        if left:
            ending = _explained(ending, left, code="left_process")
        return _explained(ending, refused, code="outside_connection") if refused else ending

    def _go_on(self, past: Past) -> None:
        """Take up what the script has answered before this process."""
        life = past.life
        self._endpoint.restore(past.events, n_turns=life.n_begun, n_settled=life.n_settled)

    def leave(self, *, is_kill: bool) -> Ending:
        """Say what is wrong with the trial where this process of it ends, and another goes on.

        Whoever is killed can end nothing that it started, and send nothing that it holds.
        """
        if self._databases is not None:
            self._databases.leave()
        findings = self._endpoint.findings if is_kill else self._endpoint.leave()
        if self._world is not None:
            findings = _by_turn(self._world.leave(), findings)
        return self._judged(Ending(), findings, "" if is_kill else self._leftovers.end())

    def so_far(self) -> Ending:
        """Say what is wrong with the trial so far, without looking for more."""
        found = self._endpoint.findings
        if self._world is not None:
            found = _by_turn(self._world.findings, found)
        return Ending(found[0].status, found[0].code, found[0].reason) if found else Ending()

    @property
    def seen_databases(self) -> Mapping[str, bytes] | None:
        """What was last seen of each database; ``None`` if none is watched."""
        return None if self._databases is None else self._databases.seen

    def _open(self, plan: WorldPlan, past: Past | None) -> World:
        """Open the world: from now on somebody answers the agent's requests."""
        from evalkit.trial.worlds import open_world

        return open_world(
            plan,
            self._entered,
            record=self._record,
            settle=self._outbox.settle,
            ways=self.ways,
            past=past,
        )

    def _watch(self, looks: DatabaseLooks, past: Past | None) -> Databases:
        """Watch the databases from here on."""
        from evalkit.trial.databases import Databases

        found = Databases(looks, self._entered.places, self._recorder)
        seen = None if past is None else past.estate.databases
        if seen is None:
            found.begin()
        else:
            found.go_on(seen, turn=max(self._n_begun - 1, 0))
        return found

    def _look_late(self) -> Databases:
        """Look at databases that the agent made where nobody asked for any."""
        from evalkit.trial.databases import Databases

        found = Databases(DatabaseLooks(), self._entered.places, self._recorder)
        found.look_late(self._given, turn=self._n_begun - 1)
        return found

    def _refused_connections(self) -> str:
        """Count what tried to reach the outside, and was refused; say so if anything did."""
        early, late = self._refused_before, self._entered.refused()
        if not (early.n or late.n):
            return ""
        said = []
        for refused, when in ((early, "import"), (late, "")):
            if refused.n:
                told = {"n_refused": refused.n, "destinations": list(refused.destinations)}
                at = {"at": when} if when else {}
                self._recorder.event("http", {"to": "outside", **told, **at})
                while_ = " while the agent was imported" if when else ""
                said.append(f"{refused}{while_}")
        return "; ".join(said)


def _by_turn(of_world: Sequence[Finding], of_model: Sequence[Finding]) -> tuple[Finding, ...]:
    """Put findings in the order of turns: what the world did not answer explains what came then."""
    return tuple(sorted((*of_world, *of_model), key=lambda one: one.turn))


def _ways(staging: Staging, recorder: Recorder) -> Ways | None:
    if not staging.polls and staging.reply_from is None:
        return None
    from evalkit.trial.delivering import ways_of

    return ways_of(staging, recorder)


def _explained(ending: Ending, finding: str, *, code: str) -> Ending:
    """Name a finding first in the reason: what happened then may come of it."""
    if ending.status == "failed":
        return replace(ending, reason=f"{finding}; {ending.reason}")
    return Ending("failed", code, "; ".join(filter(None, (finding, ending.reason))))
