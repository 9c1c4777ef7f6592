"""What stands around a conversation in the contract lane, inside the trial's process.

The room (namespaces, folders, clock, ids) is entered before anything of the
agent runs; then the scripted model listens, and the clock moves one second a model
reply. At the end the stage says what the agent did to it: calls that nobody
scripted, steps and processes that it left over, connections that were refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from evalkit.gateway import Endpoint, GatewayServer
from evalkit.grade import Ending
from evalkit.ledger import JSON, EventKind
from evalkit.recording import Recorder
from evalkit.sandbox.connections import NOBODY, Refused
from evalkit.sandbox.room import Entered
from evalkit.trial.files import record_files
from evalkit.trial.leftovers import Leftovers
from evalkit.trial.order import Staging
from evalkit.trial.outbox import Outbox
from evalkit.trial.ports import entered_port


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
    """

    def __init__(
        self,
        staging: Staging,
        entered: Entered,
        *,
        recorder: Recorder,
        outbox: Outbox,
        refused_before: Refused = NOBODY,
    ) -> None:
        self._entered = entered
        self._recorder = recorder
        self._outbox = outbox
        self._refused_before = refused_before
        self._leftovers = Leftovers()
        self._endpoint = Endpoint(
            staging.scripts, self._record, settle=outbox.settle, traces_here=True
        )
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
        record_files(self._recorder, Path(self._entered.places.work))
        refused = self._refused_connections()
        grave = next((one for one in findings if one.code != "left_over_steps"), None)
        if grave is not None:
            return Ending(grave.status, grave.code, grave.reason)
        if ending.status == "passed" and findings:
            ending = Ending(findings[0].status, findings[0].code, findings[0].reason)
        if left:
            ending = _explained(ending, left, code="left_process")
        return _explained(ending, refused, code="outside_connection") if refused else ending

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


def _explained(ending: Ending, finding: str, *, code: str) -> Ending:
    """Name a finding first in the reason: what happened then may come of it."""
    if ending.status == "failed":
        return replace(ending, reason=f"{finding}; {ending.reason}")
    return Ending("failed", code, "; ".join(filter(None, (finding, ending.reason))))
