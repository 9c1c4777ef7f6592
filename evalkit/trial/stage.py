"""What stands around a conversation in the contract lane, inside the trial's process.

The room (namespaces, folders, clock, ids) is entered before anything of the
agent runs; then the scripted model listens, and the clock moves one second a model
reply. At the end the stage says what the agent did to it: calls that nobody
scripted, steps that it left over, connections that were refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from evalkit.gateway import Endpoint, GatewayServer
from evalkit.grade import Ending
from evalkit.ledger import JSON, EventKind
from evalkit.recording import Recorder
from evalkit.sandbox.room import Entered
from evalkit.trial.files import record_files
from evalkit.trial.order import Staging
from evalkit.trial.outbox import Outbox
from evalkit.trial.ports import entered_port

_NAMED: Final = 5
"""Destinations that a reason names."""


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
    """

    def __init__(
        self, staging: Staging, entered: Entered, *, recorder: Recorder, outbox: Outbox
    ) -> None:
        self._entered = entered
        self._recorder = recorder
        self._outbox = outbox
        self._endpoint = Endpoint(staging.scripts, self._record, settle=outbox.settle)
        GatewayServer(self._endpoint, port=staging.port or entered_port()).start()

    def _record(self, kind: EventKind, data: Mapping[str, JSON], *, span: str = "") -> None:
        self._outbox.hold()  # until the gateway has told all of a request
        self._recorder.event(kind, data, span=span)
        if kind == "model_reply" and self._entered.clock is not None:
            self._entered.clock.tick()

    def begin_turn(self, turn: int) -> None:
        """Go on to a turn, from 0."""
        self._endpoint.begin_turn(turn)

    def advance(self, seconds: float) -> None:
        """Move the clock forward."""
        if self._entered.clock is not None:
            self._entered.clock.advance(seconds)

    def verdict(self, ending: Ending) -> Ending:
        """Say how the trial ended, given how the conversation did.

        What nobody scripted explains what the agent then did, and so do connections
        that were refused; steps that were left over matter once the agent did well.
        """
        findings = self._endpoint.finish()
        record_files(self._recorder, Path(self._entered.places.work))
        refused = self._refused_connections()
        grave = next((one for one in findings if one.code != "left_over_steps"), None)
        if grave is not None:
            return Ending(grave.status, grave.code, grave.reason)
        if ending.status == "passed" and findings:
            ending = Ending(findings[0].status, findings[0].code, findings[0].reason)
        return _explained(ending, refused) if refused else ending

    def _refused_connections(self) -> str:
        """Count what tried to reach the outside, and was refused; say so if anything did."""
        refused = self._entered.refused()
        if not refused.n:
            return ""
        told = {"n_refused": refused.n, "destinations": list(refused.destinations)}
        self._recorder.event("http", {"to": "outside", **told})
        named = ", ".join(refused.destinations[:_NAMED]) or "where to is not known"
        what = (
            "connection to the outside was" if refused.n == 1 else "connections to the outside were"
        )
        return f"{refused.n} {what} refused ({named})"


def _explained(ending: Ending, refused: str) -> Ending:
    """Name refused connections first in the reason: what happened then comes of them."""
    if ending.status == "failed":
        return replace(ending, reason=f"{refused}; {ending.reason}")
    return Ending("failed", "outside_connection", "; ".join(filter(None, (refused, ending.reason))))
