"""A conversation written down, turn by turn, as its trial's process holds it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

from evalkit.agents import Conversation
from evalkit.observing import watch_tools, watched_tools
from evalkit.recording import Recorder
from evalkit.trace import Trace
from evalkit.trial.order import Advance, Deliver, Restart, TrialOrder
from evalkit.trial.pen import Pen

if TYPE_CHECKING:
    from evalkit.trial.delivering import Courier
    from evalkit.trial.leaving import Leaver
    from evalkit.trial.lives import Past
    from evalkit.trial.stage import Stage


class Turns:
    """Writes down a conversation, turn by turn, and tells the stage of it."""

    def __init__(
        self,
        recorder: Recorder,
        stage: Stage | None,
        pen: Pen,
        *,
        past: Past | None = None,
        leaver: Leaver | None = None,
    ) -> None:
        self._recorder = recorder
        self._stage = stage
        self._pen = pen
        self._past = past
        self._leaver = leaver
        if leaver is not None:
            leaver.stage = stage
        self._n = 0 if past is None else past.life.first_turn
        self._is_again = past is not None and past.life.is_again

    @property
    def n(self) -> int:
        """Number of the turn that began last, from 1."""
        return self._n

    def open(self, conversation: Conversation) -> None:
        """Take in what wrapped tools do from now on; the turn that died is over now."""
        if self._leaver is not None:
            self._leaver.conversation = conversation
        self._watch()
        if self._past is not None and self._past.owes_end:
            self.end(conversation)

    def _watch(self) -> None:
        tools = watched_tools()
        if tools:
            self._recorder.watched(tools)
            watch_tools(self._recorder)

    def courier(self, conversation: Conversation, order: TrialOrder) -> Courier | None:
        """Give who brings turns that are no calls; ``None`` where all of them are."""
        staging = order.staging
        if self._stage is None or staging is None:
            return None
        if not (staging.polls or any(isinstance(turn, Deliver) for turn in order.turns)):
            return None
        from evalkit.trial.delivering import Courier

        return Courier(
            conversation, self._recorder, ways=self._stage.ways, deadline_s=order.deadline_s
        )

    def begin(self, turn: str | Advance | Deliver | Restart) -> None:
        """Begin a turn."""
        if self._stage is not None:
            self._stage.begin_turn(self._n)
        self._n += 1
        again, self._is_again = self._is_again, False
        match turn:
            case str():
                self._recorder.turn(turn, again=again)
            case Deliver():
                self._recorder.turn(turn.text, again=again, **turn.told)
            case Restart():
                self._recorder.turn("", restart=turn.kind)
            case Advance():
                self._recorder.turn("", advance_s=turn.seconds)
                if self._stage is not None:
                    self._stage.advance(turn.seconds)

    def leave(self, *, is_kill: bool) -> NoReturn:
        """End this process, and let another one go on."""
        assert self._stage is not None
        assert self._leaver is not None
        with self._pen.aside():
            ending = self._stage.leave(is_kill=is_kill)
        self._leaver.leave(ending)

    def reply(self, conversation: Conversation, text: str) -> Trace:
        """Say something to the agent; where replies come out elsewhere, it may return nothing."""
        if self._stage is None or self._stage.ways is None or self._stage.ways.replies is None:
            return conversation.reply(text)
        from evalkit.trial.replying import without_replies

        return without_replies(conversation, text)

    def end(self, conversation: Conversation) -> None:
        """Write how the turn leaves the agent and its world."""
        if conversation.has_state:
            from evalkit.trial.states import state_told

            told = state_told(conversation)
            self._recorder.event("state", {**told, "turn": self._n - 1})
        if self._stage is not None and self._stage.looks_at_turns:
            with self._pen.aside():
                self._stage.end_turn()

    def answer(self, trace: Trace) -> None:
        """Write what the agent did in the turn that began last."""
        if self._stage is None:
            if not trace.tools_observed and watched_tools():
                trace = replace(trace, tools_observed=True)
            with self._pen.together():
                self._recorder.answer(trace)
            return
        # The scripted model saw what was asked for; what the agent tells is what ran.
        if trace.tool_calls:
            self._recorder.watched(sorted({call.name for call in trace.tool_calls}))
        for call in trace.tool_calls:
            self._recorder.ran(call)
        told = replace(trace, tool_calls=(), model_calls=())
        with self._pen.together():
            self._recorder.answer(replace(told, tools_observed=True, models_observed=True))
