"""The model endpoint without its socket: a request comes in, an answer goes out.

Every request is recorded before it is answered, and one after the other: the
events of a request stand together in the ledger, however many come at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from evalkit.gateway import openai_chat
from evalkit.gateway.answers import answer_of
from evalkit.gateway.canonical import BadRequest, ModelAnswer, ModelRequest, Stamp
from evalkit.gateway.counting import Meter, prompt_tokens
from evalkit.gateway.delivery import NO_RETRY, Exchange, Wire
from evalkit.gateway.faults import Spoiled, spoil
from evalkit.gateway.script import LeftOver, Script, Taken, Unscripted
from evalkit.gateway.telemetry import Telemetry, is_grpc, is_telemetry
from evalkit.gateway.watching import ToolWatch
from evalkit.gateway.wires import Route, route_of, wire_for_errors
from evalkit.gateway.witness import Record, Witness
from evalkit.ledger import JSON, Event
from evalkit.serving.delivery import Delivery
from evalkit.serving.finding import Finding
from evalkit.serving.http1 import BadHttp, HttpRequest
from evalkit.serving.jsontext import parse, to_bytes


class _Planned(NamedTuple):
    """An answer that is recorded, and how it is written."""

    exchange: Exchange
    deliver: Callable[[Exchange, ModelAnswer], Delivery]
    answer: ModelAnswer


_NOTHING_USED: Final[Mapping[str, int]] = {"input_tokens": 0, "output_tokens": 0}


class Endpoint:
    """Answers the model calls of one trial from its script.

    Parameters
    ----------
    turns
        For each turn its scripts by name, as plain data:
        ``{"chat": {"when": {...} | None, "steps": [...]}}``.
    record
        Takes each event, in order. Never called by two threads at a time.
    settle
        Called when everything is recorded that belongs together, and before a
        request is answered; returns when it is safe. Never called by two threads
        at a time.
    traces_here
        Whether the agent runs in this process, so that what its exporter still holds
        is asked for at the end of each turn.

    Raises
    ------
    UsageError
        If a script cannot be understood.
    """

    def __init__(
        self,
        turns: Sequence[Mapping[str, Mapping[str, Any]]],
        record: Record,
        *,
        settle: Callable[[], None] = lambda: None,
        traces_here: bool = False,
    ) -> None:
        self._script = Script(turns)
        self._record = record
        self._witness = Witness(record)
        self._watch = ToolWatch(self._witness)
        self._meter = Meter()
        self._telemetry = Telemetry(watches_sdk=traces_here)
        self._settle = settle
        self._lock = threading.Lock()
        self._n_calls = 0
        self._findings: list[Finding] = []

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What fails the trial so far."""
        return tuple(self._findings)

    def begin_turn(self, turn: int) -> None:
        """Go on to a turn, from 0; steps left over by the one before are a finding."""
        self._fetch_spans()
        with self._lock:
            self._note_left_over(self._script.advance(turn))
        self._telemetry.begin_turn()

    def finish(self) -> tuple[Finding, ...]:
        """End the trial: steps left over by the last turn are a finding; give all findings."""
        self._fetch_spans(is_end=True)
        with self._lock:
            self._note_left_over(self._script.left_over())
            return self.findings

    def _fetch_spans(self, *, is_end: bool = False) -> None:
        """Write down the spans of the turn that ends."""
        news = self._telemetry.fetch(is_end=is_end)
        if news:
            with self._lock:
                self._telemetry.write(self._record, turn=self._script.turn)
                self._settle()

    def restore(
        self, events: Iterable[Event], *, n_turns: int, n_settled: int | None = None
    ) -> None:
        """Take up a trial whose process died: its ledger says what was asked and answered.

        What its caches held is lost, as are findings, which stand in the ledger.

        Parameters
        ----------
        events
            All of the trial so far.
        n_turns
            How many turns are behind it, or in the last of which it is.
        n_settled
            How many of the events count for the script; by default all. What came after
            them is asked anew.
        """
        events = tuple(events)
        with self._lock:
            self._n_calls = sum(event.kind == "model_call" for event in events)
            self._script.restore(events[:n_settled])
            self._script.turn = max(n_turns - 1, 0)
            self._watch.restore(events)
            self._telemetry.restore(events, n_turns=n_turns)

    def leave(self) -> tuple[Finding, ...]:
        """End this part of the trial, but no turn of it; give all findings."""
        self._fetch_spans(is_end=True)
        with self._lock:
            return self.findings

    def answer(self, received: HttpRequest) -> Delivery:
        """Answer one request."""
        route = route_of(received.method, received.target)
        turn = self._script.turn
        if route is None and is_telemetry(received.method, received.target):
            return self._take_telemetry(received)
        if route is None:
            reason = f"UNSCRIPTED: nothing answers {received.method} {received.target} here"
            return self._refuse_unread(received, Finding("unscripted_call", reason, turn), 400)
        try:
            request = route.wire.read({**_body(received), **route.told})
        except BadRequest as error:
            finding = Finding("bad_request", f"BAD REQUEST: {error}", turn)
            return self._refuse_unread(received, finding, 400)
        if route.counted_as:
            return self._count(route, request, received.target)
        with self._lock:
            planned = self._planned(route.wire, request)
            self._settle()
        return planned.deliver(planned.exchange, planned.answer)

    def _take_telemetry(self, received: HttpRequest) -> Delivery:
        taken = self._telemetry.take(received)
        if taken.missing:
            reason, turn = taken.missing, self._script.turn
            with self._lock:
                self._note(Finding("spans_unreadable", reason, turn, "incomplete"))
                self._settle()
        return taken.delivery

    def reject(self, problem: BadHttp) -> Delivery:
        """Answer bytes that are no request."""
        if is_telemetry("POST", problem.target) or is_grpc(str(problem)):
            return self._telemetry.reject(problem)
        received = HttpRequest("", problem.target, {}, b"", keeps_open=False)
        finding = Finding("bad_request", f"BAD REQUEST: {problem}", self._script.turn)
        return self._refuse_unread(received, finding, problem.status)

    def broken(self, error: Exception) -> Delivery:
        """Answer in place of a gateway that has failed itself: nobody can tell what would be."""
        reason = f"the gateway failed: {type(error).__name__}: {error}"
        finding = Finding("gateway_failed", reason, self._script.turn, "incomplete")
        with self._lock:
            self._note(finding)
            self._settle()
        return Exchange(openai_chat, ModelRequest("", ""), Stamp(0, 0)).refuse(
            500, reason, NO_RETRY
        )

    def _planned(self, wire: Wire, request: ModelRequest) -> _Planned:
        """Choose the answer and record everything about it."""
        self._watch.returned(request.history)
        exchange = self._numbered(wire, request)
        try:
            taken = self._script.take(request)
        except Unscripted as problem:
            self._record_call(exchange, None)
            finding = Finding(problem.code, f"UNSCRIPTED: {problem}", self._script.turn)
            return self._refused(exchange, finding)
        self._record_call(exchange, taken)
        spoiled = _spoiled(taken.step, exchange)
        if "fault" in taken.step:
            self._fault(taken.step["fault"], "", exchange, injected=True)
        answer = self._completed(spoiled.answer, exchange)
        self._record_answer(exchange, spoiled, answer)
        return _Planned(exchange, spoiled.deliver, answer or ModelAnswer())

    def _numbered(self, wire: Wire, request: ModelRequest) -> Exchange:
        self._n_calls += 1
        return Exchange(wire, request, Stamp(self._n_calls, int(time.time())))

    def _completed(self, answer: ModelAnswer | None, exchange: Exchange) -> ModelAnswer | None:
        """Give an answer its ids and counts."""
        if answer is None:
            return None
        first = exchange.stamp.id(exchange.wire.tool_prefix)
        uses = (
            replace(use, id=f"{first}_{index}" if index > 1 else first)
            for index, use in enumerate(answer.tool_uses, start=1)
        )
        tokens = self._meter.tokens(exchange.request, answer)
        return replace(answer, tool_uses=tuple(uses), tokens=tokens)

    def _record_call(self, exchange: Exchange, taken: Taken | None) -> None:
        request = exchange.request
        self._witness.model_call(
            exchange.call,
            {
                "turn": self._script.turn,
                "model": request.model,
                "prompt": request.prompt,
                "wire": request.wire,
                "stream": request.stream,
                "script": None if taken is None else taken.script,
                "step": None if taken is None else taken.position,
            },
        )

    def _record_answer(
        self, exchange: Exchange, spoiled: Spoiled, answer: ModelAnswer | None
    ) -> None:
        """Record what goes back, and the tools that it asks for."""
        wire, call = exchange.wire, exchange.call
        reply = {"status": spoiled.status, "http_status": spoiled.http_status}
        if answer is None:
            self._witness.model_reply(call, {**reply, "reply": None, "usage": _NOTHING_USED})
            return
        reason = wire.finish_reason(answer) if spoiled.status == "ok" else ""
        told = {"reply": answer.as_step(), "usage": wire.usage(answer.tokens)}
        self._witness.model_reply(call, {**reply, **told, "finish_reason": reason})
        if not answer.is_json:
            turn = self._script.turn
            is_cut = any(use.is_cut for use in answer.tool_uses)
            tell = spoiled.asks and (wire.carries_cut_args or not is_cut)
            self._watch.asked(answer.tool_uses, turn=turn, asked_by=call, tell=tell)

    def _refused(self, exchange: Exchange, finding: Finding, *, status: int = 400) -> _Planned:
        """Record that a request is refused; give how its client is told."""
        self._findings.append(finding)
        self._fault(finding.code, finding.reason, exchange, injected=False)
        said = {"status": "denied", "http_status": status, "reply": None, "usage": _NOTHING_USED}
        self._witness.model_reply(exchange.call, said)

        def deliver(exchange: Exchange, _: ModelAnswer) -> Delivery:
            return exchange.refuse(status, f"{finding.reason}", NO_RETRY)

        return _Planned(exchange, deliver, ModelAnswer())

    def _refuse_unread(self, received: HttpRequest, finding: Finding, status: int) -> Delivery:
        """Refuse what could not be read as a request to a model."""
        wire = wire_for_errors(received.target)
        shown = received.body.decode("utf-8", "backslashreplace")
        request = ModelRequest("", "", raw={"path": received.target, "body": shown})
        with self._lock:
            exchange = self._numbered(wire, request)
            self._record_call(exchange, None)
            planned = self._refused(exchange, finding, status=status)
            self._settle()
        return planned.deliver(exchange, planned.answer)

    def _count(self, route: Route, request: ModelRequest, target: str) -> Delivery:
        """Say how many tokens a prompt has; that takes no step of the script."""
        with self._lock:
            self._witness.side_request(target, request.raw)
            self._settle()
        body = to_bytes({route.counted_as: prompt_tokens(request)})
        return Exchange(route.wire, request, Stamp(self._n_calls, 0)).broken(body=body)

    def _note_left_over(self, left: Sequence[LeftOver]) -> None:
        for one in left:
            self._note(Finding("left_over_steps", str(one), one.turn))
        if left:
            self._settle()

    def _note(self, finding: Finding) -> None:
        self._findings.append(finding)
        code, reason, turn = finding.code, finding.reason, finding.turn
        self._witness.fault(code, reason, turn=turn, call=None, injected=False)

    def _fault(self, name: str, reason: str, exchange: Exchange, *, injected: bool) -> None:
        turn, call = self._script.turn, exchange.call
        self._witness.fault(name, reason, turn=turn, call=call, injected=injected)


def _spoiled(step: Mapping[str, Any], exchange: Exchange) -> Spoiled:
    """Give what a step answers, spoiled by its fault if it has one."""
    if "fault" in step:
        overloaded = exchange.wire.overloaded_status
        return spoil(step, exchange.request, overloaded=overloaded)
    return Spoiled(answer_of(step, exchange.request), True, "ok", 200, Exchange.deliver)


def _body(received: HttpRequest) -> Mapping[str, JSON]:
    """Read the body of a request as a JSON object."""
    if encoding := received.headers.get(b"content-encoding"):
        raise BadRequest(f"the body is compressed ({encoding.decode('latin-1')}); send it plain")
    try:
        body = parse(received.body)
    except ValueError as error:
        raise BadRequest(f"the body is no JSON: {error}") from error
    if not isinstance(body, Mapping):
        raise BadRequest(f"the body must be a JSON object, not {type(body).__name__}")
    return body
