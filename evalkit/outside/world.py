"""The world around one agent: it answers requests from fixtures, and writes each down before.

No sockets here; :mod:`evalkit.outside.server` brings requests. They are recorded one
after the other, however many come at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from evalkit.ledger import JSON, Event, EventKind
from evalkit.matching.addresses import allowed_place, place_of, plain_url
from evalkit.matching.requests import request_matches, star_fits
from evalkit.outside.choosing import Choice, UnscriptedError
from evalkit.outside.plan import Answer, WorldPlan
from evalkit.outside.telling import Sent, told_of
from evalkit.serving.delivery import Delivery
from evalkit.serving.finding import Finding

UNSCRIPTED: Final = 599
"""Status of what nobody scripted; no server on earth answers it."""
_LISTED: Final = 5
_CHUNK: Final = 16 * 1024
"""Bytes of a piece, where an answer is sent in pieces."""

Listener = Callable[[Mapping[str, JSON]], None]
Record = Callable[[EventKind, Mapping[str, JSON]], None]


class Update(Protocol):
    """What an answerer gives."""

    @property
    def headers(self) -> Mapping[str, str]:
        """Headers of the answer."""

    @property
    def body(self) -> bytes:
        """Its body; the status is 200."""


class Reply(NamedTuple):
    """What goes back, and when."""

    delivery: Delivery
    delay_s: float = 0.0


class World:
    """Answers the requests of one trial's agent to the outside.

    Parameters
    ----------
    plan
        What is answered, and who may be asked without harm.
    record
        Takes each event, in order. Never called by two threads at a time.
    settle
        Called when all is recorded that belongs to a request, before it is answered;
        returns when it is safe.
    listeners
        Told of each request that was recorded (the data of its event).
    answerers
        By ``METHOD address`` who answers such requests in place of fixtures; these are
        not recorded, and an answer may take its time.
    """

    def __init__(
        self,
        plan: WorldPlan,
        *,
        record: Record,
        settle: Callable[[], None] = lambda: None,
        listeners: Sequence[Listener] = (),
        answerers: Mapping[str, Callable[..., Update]] | None = None,
    ) -> None:
        self._choice = Choice(plan.fixtures)
        self._allow = [place for place in map(allowed_place, plan.allow) if place is not None]
        self._record = record
        self._settle = settle
        self._listeners = tuple(listeners)
        self._answerers = dict(answerers or {})
        self._lock = threading.Lock()
        self._turn = 0
        self._n = 0
        self._findings: list[Finding] = []
        self._looked_up: dict[str, None] = {}
        self._asked: set[str] = set()
        """Hosts that were sent a request."""
        self._distrusting: dict[str, str] = {}
        """Hosts whose certificate was refused, and how."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What fails the trial so far."""
        return tuple(self._findings)

    def begin_turn(self, turn: int) -> None:
        """Go on to a turn, from 0."""
        with self._lock:
            self._turn = turn

    def answer(self, sent: Sent) -> Reply:
        """Answer one request."""
        sent = sent._replace(url=plain_url(sent.url))
        for pattern, give in self._answerers.items():
            if request_matches(pattern, sent.method, sent.url):
                self._note_host(sent.url)
                update = give(sent.method, sent.url)
                return Reply(Delivery(200, update.headers, update.body))
        with self._lock:
            self._note_host(sent.url)
            reply = self._answered(sent)
            self._settle()
        return reply

    def _answered(self, sent: Sent) -> Reply:
        try:
            taken = self._choice.take(sent.method.upper(), sent.url)
        except UnscriptedError as problem:
            return self._refused(sent, str(problem), code=problem.code)
        answer = taken.answer
        status = None if answer.fault else answer.status
        self._tell(sent, fixture=taken.request, status=status, fault=answer.fault or None)
        return Reply(_delivery(answer), answer.delay_s)

    def _refused(self, sent: Sent, reason: str, *, code: str = "unscripted_request") -> Reply:
        """Answer what nobody scripted: the trial has failed, unless that is allowed."""
        if code == "unscripted_request" and self._allows(sent.url):
            self._tell(sent, status=UNSCRIPTED, fault="refused")
            host = _host(sent.url)
            return Reply(_told(f"REFUSED: {host} is in `network.allow`, and is not there"))
        fault = "ambiguous" if code == "ambiguous_fixture" else "unscripted"
        self._tell(sent, status=UNSCRIPTED, fault=fault)
        self._findings.append(Finding(code, f"UNSCRIPTED: {reason}", self._turn))
        return Reply(_told(f"UNSCRIPTED: {reason}"))

    def _tell(
        self,
        sent: Sent,
        *,
        fixture: str | None = None,
        status: int | None = None,
        fault: str | None = None,
    ) -> None:
        """Write one request down, and let others hear of it."""
        self._n += 1
        told: dict[str, JSON] = {"to": "fixture", "turn": self._turn, "n": self._n, **told_of(sent)}
        told |= {"fixture": fixture, "status": status, "fault": fault}
        self._record("http", told)
        for hear in self._listeners:
            hear(told)

    def reject(self, sent: Sent, reason: str, *, status: int) -> Delivery:
        """Answer what is no request, or one that is too large."""
        with self._lock:
            self._note_host(sent.url)
            sent = sent._replace(url=plain_url(sent.url))
            what = f"{sent.method} {sent.url}".strip()
            self._tell(sent, status=status, fault="unscripted")
            said = f"UNSCRIPTED: no fixture can answer {what}: {reason}"
            self._findings.append(Finding("unscripted_request", said, self._turn))
            self._settle()
        return _told(said, status=status)

    def broken(self, error: Exception) -> Delivery:
        """Answer in place of a world that has failed itself: nobody can tell what would be."""
        reason = f"the world around the agent failed: {type(error).__name__}: {error}"
        with self._lock:
            self._findings.append(Finding("world_failed", reason, self._turn, "incomplete"))
            self._settle()
        return _told(reason)

    def looked_up(self, name: str) -> None:
        """Take in that the agent asked where a host is."""
        self._looked_up[name.rstrip(".")] = None

    def distrusted(self, host: str, how: str) -> None:
        """Take in that a client did not accept the certificate of a host."""
        self._distrusting[host] = how

    def leave(self) -> tuple[Finding, ...]:
        """End this part of the trial: what was looked up must have been asked; give all findings.

        A host that was only looked up was reached, or was to be, with another protocol.
        """
        with self._lock:
            silent = sorted(self._looked_up.keys() | self._distrusting.keys())
            silent = [name for name in silent if name not in self._asked]
            if silent:
                self._note_silent(silent)
                self._settle()
            self._looked_up.clear()
            self._distrusting.clear()
            return self.findings

    def _note_silent(self, names: Sequence[str]) -> None:
        refused = {name: self._distrusting[name] for name in names if name in self._distrusting}
        told = {"to": "names", "turn": self._turn, "names": list(names), "distrusted": refused}
        self._record("http", told)
        grave = [name for name in names if not self._allows_name(name)]
        said = [_said_of(name, refused.get(name)) for name in grave[:_LISTED]]
        if said:
            more = f" (and {len(grave) - _LISTED} more hosts)" if len(grave) > _LISTED else ""
            reason = f"{'; '.join(said)}{more}"
            self._findings.append(Finding("unscripted_request", reason, self._turn))

    def finish(self) -> tuple[Finding, ...]:
        """End the trial; give all findings. Fixtures that nobody asked for are written down."""
        self.leave()
        with self._lock:
            unused = self._choice.unused
            if unused:
                self._record("state", {"unused_fixtures": list(unused)})
                self._settle()
                self._findings = [_with_unused(one, unused) for one in self._findings]
            return self.findings

    def restore(self, events: Iterable[Event], *, n_settled: int | None = None) -> None:
        """Take up a trial whose process died: its ledger says what was asked and answered.

        Parameters
        ----------
        events
            All of the trial so far.
        n_settled
            How many of them count for what fixtures answer next; by default all. What
            came after them is asked anew.
        """
        events = tuple(events)
        sent = [event for event in events if _is_request(event)]
        settled = sent if n_settled is None else [one for one in sent if one.seq <= n_settled]
        with self._lock:
            self._n = len(sent)
            self._asked |= {_host(event.data["url"]) for event in sent}
            requests = [event.data["fixture"] for event in sent]
            self._choice.restore(requests, n_settled=len(settled))

    def _note_host(self, url: str) -> None:
        self._asked.add(_host(url))

    def _allows(self, url: str) -> bool:
        place = place_of(url)
        return place is not None and any(
            star_fits(one.host, place.host) and one.port in (None, *place.ports)
            for one in self._allow
        )

    def _allows_name(self, name: str) -> bool:
        return any(star_fits(one.host, name) for one in self._allow)


def _is_request(event: Event) -> bool:
    return event.kind == "http" and event.data.get("to") == "fixture"


def _host(url: str) -> str:
    place = place_of(url)
    return "" if place is None else place.host


def _delivery(answer: Answer) -> Delivery:
    if answer.fault == "disconnect":
        return Delivery(0, ending="abrupt")
    if answer.fault == "timeout":
        return Delivery(0, ending="hang")
    headers = {name.lower(): value for name, value in answer.headers.items()}
    if headers.pop("transfer-encoding", "").lower() == "chunked":
        starts = range(0, len(answer.body), _CHUNK)
        frames = tuple(answer.body[start : start + _CHUNK] for start in starts)
        return Delivery(answer.status, headers, frames=frames)
    if headers.get("content-length", str(len(answer.body))) != str(len(answer.body)):
        headers["connection"] = "close"  # what was promised does not come
    return Delivery(answer.status, headers, answer.body)


def _told(text: str, *, status: int = UNSCRIPTED) -> Delivery:
    headers = {"content-type": "text/plain; charset=utf-8", "x-should-retry": "false"}
    return Delivery(status, headers, f"{text}\n".encode("utf-8", "replace"))


def _said_of(name: str, refusal: str | None) -> str:
    if refusal is None:
        return f"looked up {name}, and sent no HTTP request"
    return (
        f"did not accept the certificate of {name} ({refusal}): a client must trust the file that "
        "SSL_CERT_FILE names"
    )


def _with_unused(finding: Finding, unused: Sequence[str]) -> Finding:
    """Name what was never asked for: a request may have been meant for it."""
    if finding.code != "unscripted_request":
        return finding
    named = ", ".join(f"`{request}`" for request in unused[:_LISTED])
    more = f" and {len(unused) - _LISTED} more" if len(unused) > _LISTED else ""
    return finding._replace(reason=f"{finding.reason}; never asked for: {named}{more}")
