"""Turns that are no calls: how they are brought to the agent, and how one knows that they are over.

An agent with a port is sent a request. One that polls is answered when it asks, and while
nothing is there for it its request is held open, as in long polling; so it is known
when it has done with an update: it asks for the next one. What comes out as a reply is
:mod:`evalkit.trial.replying`'s.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from evalkit.agents.conversation import BadReplyError, Conversation
from evalkit.agents.hosting import Answer, Hosted, Request
from evalkit.agents.http import status_text
from evalkit.errors import AgentError
from evalkit.ledger import JSON
from evalkit.trace import Trace
from evalkit.trial.order import Advance, Deliver

if TYPE_CHECKING:
    from evalkit.recording import Recorder
    from evalkit.trial.order import Staging
    from evalkit.trial.replying import ReplyWatch

HOLD_S: Final = 2.0
"""Seconds for which a poll is held open: shorter than clients wait by themselves."""

_LOOK_S: Final = 0.1
_PATIENCE: Final = 0.9
"""Part of the deadline that a turn may wait: whoever waits longer is killed without a word."""

_MAX_TEXT: Final = 100_000


class Update(NamedTuple):
    """What an agent that polls is answered."""

    headers: Mapping[str, str]
    body: bytes


class Poller:
    """One address that the agent polls.

    Parameters
    ----------
    request
        As the suite writes it.
    idle
        What is answered while nothing is there.
    hold_s
        Seconds for which a request is held open.
    """

    def __init__(self, request: str, idle: bytes, *, hold_s: float = HOLD_S) -> None:
        self.request = request
        self._idle = Update({"Content-Type": "application/json"}, idle)
        self._hold_s = hold_s
        self._changed = threading.Condition()
        self._n_polls = 0
        self._n_taken = 0
        """Number of the poll that took the last update."""
        self._is_held = False
        self._update: Update | None = None

    def answer(self, *_: object) -> Update:
        """Answer one poll, whatever it says, from the thread of its connection."""
        with self._changed:
            self._n_polls += 1
            mine, self._is_held = self._n_polls, True
            self._changed.notify_all()
            # A client that lost patience asks anew: only its newest request is worth an update.
            self._changed.wait_for(
                lambda: self._update is not None or mine != self._n_polls, self._hold_s
            )
            if mine != self._n_polls:
                return self._idle
            self._is_held = False
            update, self._update = self._update, None
            if update is None:
                return self._idle
            self._n_taken = mine
            return update

    def give(self, update: Update | None = None) -> None:
        """Answer the request that is held, or the next one; by default that nothing is there."""
        with self._changed:
            self._update = update or self._idle
            self._changed.notify_all()

    def is_asking(self) -> bool:
        """Say whether a request is held."""
        with self._changed:
            return self._is_held

    def is_done(self) -> bool:
        """Say whether the agent has asked again after the last update."""
        with self._changed:
            return self._update is None and self._n_polls > self._n_taken

    def wait(self, is_so: Callable[[], bool], seconds: float) -> bool:
        """Wait for a moment, or until something is so; say whether it is."""
        with self._changed:
            return self._changed.wait_for(is_so, seconds)


class Ways(NamedTuple):
    """The ways to and from an agent that are no calls."""

    pollers: Mapping[str, Poller]
    """By the request, as the suite writes it."""
    replies: ReplyWatch | None
    """Where replies come out; ``None``: nowhere but in what it returns."""

    @property
    def answerers(self) -> Mapping[str, Callable[..., Update]]:
        """What answers the agent's polls, by the request; it may take its time."""
        return {request: poller.answer for request, poller in self.pollers.items()}

    @property
    def listeners(self) -> tuple[Callable[[Mapping[str, JSON]], None], ...]:
        """What is to hear of each other request that was recorded."""
        return () if self.replies is None else (self.replies.hear,)


NO_WAYS: Final = Ways({}, None)


def ways_of(staging: Staging, recorder: Recorder) -> Ways:
    """Set up the ways of one trial.

    Parameters
    ----------
    staging
        What the suite says of them.
    recorder
        Takes replies.
    """
    pollers = {request: Poller(request, idle) for request, idle in staging.polls.items()}
    if staging.reply_from is None:
        return Ways(pollers, None)
    from evalkit.trial.replying import ReplyWatch

    return Ways(pollers, ReplyWatch(*staging.reply_from, recorder=recorder))


class Courier:
    """Brings turns to the agent of one trial.

    Parameters
    ----------
    conversation
        With the agent.
    recorder
        Takes what the agent answered.
    ways
        What it polls, and where its replies come out.
    deadline_s
        The trial's.
    """

    def __init__(
        self,
        conversation: Conversation,
        recorder: Recorder,
        *,
        ways: Ways | None,
        deadline_s: float,
    ) -> None:
        self._hosted = conversation.hosted
        self._recorder = recorder
        self._pollers, self._replies = ways or NO_WAYS
        self._patience_s = deadline_s * _PATIENCE
        self._due = time.monotonic() + self._patience_s

    def make_ready(self, turn: object, *, number: int) -> None:
        """Wait until the agent asks for a turn, if it polls; before the turn begins.

        Parameters
        ----------
        turn
            What comes.
        number
            Which turn it is, from 1.

        Raises
        ------
        BadReplyError
            If the agent ends, or never asks.
        """
        for poller in self._concerned(turn):
            self._until(
                poller.is_asking,
                poller.wait,
                number=number,
                missing=f"the agent did not ask for its updates ({poller.request})",
            )

    def bring(self, turn: object, *, number: int) -> None:
        """Bring a turn to the agent, and wait until it is over.

        When the clock moves, whoever polls is answered that nothing is there: the agent
        may then look what time it is.

        Raises
        ------
        BadReplyError
            If the agent ends, refuses it, or does not come to an end with it.
        AgentError
            If it cannot be reached in this way.
        """
        if not isinstance(turn, Deliver):
            for each in self._concerned(turn):
                self._give(each, None, number)
            return
        n_before = 0 if self._replies is None else self._replies.n
        poller = self._pollers.get(turn.request)
        if poller is None:
            self._post(turn, number)
        else:
            self._give(poller, Update(turn.headers, turn.body), number)
        if turn.n_replies and self._replies is not None:
            self._await_replies(self._replies, n_before + turn.n_replies, number)
        self._recorder.header(Trace(models_observed=True))

    def _await_replies(self, replies: ReplyWatch, n: int, number: int) -> None:
        self._until(
            lambda: replies.n >= n,
            replies.wait,
            number=number,
            missing=f"the agent sent no reply, or too few ({replies.request}),",
        )

    def _concerned(self, turn: object) -> Iterator[Poller]:
        """Give the pollers that hear of a turn."""
        for request, poller in self._pollers.items():
            if isinstance(turn, Advance) or (isinstance(turn, Deliver) and turn.request == request):
                yield poller

    def _give(self, poller: Poller, update: Update | None, number: int) -> None:
        poller.give(update)
        self._until(
            poller.is_done,
            poller.wait,
            number=number,
            missing=f"the agent did not ask for its next update ({poller.request})",
        )

    def _post(self, turn: Deliver, number: int) -> None:
        request = Request(turn.method, turn.address, turn.headers, turn.body)
        answer = self._served().deliver(request, turn=number)
        told = {"to": "agent", "turn": number - 1, "method": turn.method, "url": turn.address}
        self._recorder.event("http", {**told, "status": answer.status, **_content(answer)})
        if not answer.is_success:
            what = f"{turn.method} {turn.address.partition('?')[0]}"
            raise BadReplyError(
                "delivery_refused", f"the agent answered {what} with {status_text(answer)}"
            )

    def _served(self) -> Hosted:
        if self._hosted is None:
            raise AgentError(
                "agent: it is called, so no request can be delivered to it; a `deliver` needs an "
                "agent {http: {command: [...], port: ...}} or {http: {serve: ..., port: ...}}"
            )
        return self._hosted

    def _until(
        self,
        is_so: Callable[[], bool],
        wait: Callable[[Callable[[], bool], float], bool],
        *,
        number: int,
        missing: str,
    ) -> None:
        """Wait for the agent to do something, but not for one that has ended."""
        while not wait(is_so, _LOOK_S):
            if self._hosted is not None:
                self._hosted.check(turn=number)
            if time.monotonic() > self._due:
                raise BadReplyError("deadline", f"{missing} within {self._patience_s:g} s")


def _content(answer: Answer) -> dict[str, JSON]:
    """Give the body of an answer: as JSON, as text, or only its size."""
    told: dict[str, JSON] = {"json": None, "text": None, "size": len(answer.data)}
    if len(answer.data) > _MAX_TEXT:
        return told
    try:
        text = answer.data.decode("utf-8")
    except UnicodeDecodeError:
        return told
    try:
        return {**told, "json": json.loads(text)}
    except (ValueError, RecursionError):
        return {**told, "text": text}
