"""HTTP: which requests the agent sent to the outside, and what was in them.

Requests are matched to expectations one to one by maximum matching, as tool calls are. A
request counts whatever it was answered. In ``json`` the keys that are listed must match,
and others are free; ``body`` looks at the body as text, or at any text in it where it is
JSON. ``forbid`` covers every attempt.

``outcome["requests"]`` has what was sent, in order; without it nobody looked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any, Final

from evalkit.grade import Grade
from evalkit.graders.base import Grader, Trial, add_grader
from evalkit.graders.findings import Finding, fault, gap, grade_of
from evalkit.graders.places import Place, places_of
from evalkit.graders.prompt import texts_of
from evalkit.graders.texts import is_over, text_misses
from evalkit.ledger import JSON, encode
from evalkit.matching import (
    CallMatch,
    ExpectedCall,
    Pattern,
    compile_arguments,
    compile_pattern,
    match_calls,
    show,
)
from evalkit.matching.requests import request_matches
from evalkit.suite import HttpExpect
from evalkit.trace import ToolCall

NAME: Final = "http"
_SENT: Final = "request"
_LISTED: Final = 3
"""Differences that a reason names."""


def grade_http(trial: Trial) -> Grade:
    """Grade the requests that the agent sent to the outside.

    Parameters
    ----------
    trial
        Whole or cut short; of the latter, turns that another one followed are
        judged, and what must not be sent.

    Returns
    -------
    Grade
        Value 1.0 or 0.0; incomplete where nobody saw the requests.

    Examples
    --------
    >>> from evalkit.suite import Scenario
    >>> from evalkit.trace import Trace
    >>> scenario = Scenario.model_validate(
    ...     {"id": "tell", "input": "Hi.", "expect": {"http": ["POST https://a.example.test/x"]}}
    ... )
    >>> grade_http(Trial(scenario, Trace(), outcome={"requests": []})).reason
    'missing request: POST https://a.example.test/x (nothing was sent)'
    """
    places = [place for place in places_of(trial.scenario) if _speaks(place)]
    if not places:
        return Grade.incomplete(NAME, "the scenario expects nothing of requests")
    sent: Any = trial.outcome.get("requests")
    if sent is None:
        findings: Iterator[Finding] = iter([gap("nobody saw the agent's requests to the outside")])
    else:
        findings = chain.from_iterable(_found(place, trial, sent) for place in places)
    return grade_of(
        NAME,
        findings,
        trial=trial,
        passed="the requests to the outside are as expected",
        evidence={} if sent is None else {"n_requests": len(sent)},
    )


def _applies(trial: Trial) -> bool:
    return any(map(_speaks, places_of(trial.scenario)))


def _speaks(place: Place) -> bool:
    """Say whether a place says anything of requests."""
    _, expect, forbid = place
    wanted = expect is not None and expect.http is not None
    return wanted or (forbid is not None and bool(forbid.http))


def _found(place: Place, trial: Trial, sent: Sequence[Mapping[str, JSON]]) -> Iterator[Finding]:
    turn, expect, forbid = place
    here = [_Sent(told) for told in sent if turn in (None, told["turn"])]
    for pattern in forbid.http if forbid is not None else ():
        hits = dict.fromkeys(one.name for one in here if one.is_one_of(pattern))
        for name in hits:
            yield fault(f"sent forbidden request: {name}", turn=turn)
    if expect is not None and expect.http is not None:
        wanted = [_Wanted(one) for one in expect.http]
        yield from _unmet(wanted, here, turn=turn, is_over=is_over(trial, turn))


def _unmet(
    wanted: Sequence[_Wanted], sent: Sequence[_Sent], *, turn: int | None, is_over: bool
) -> Iterator[Finding]:
    found = _matched(wanted, sent)
    if found.undecided:
        yield gap(f"the requests could not be matched: {found.undecided}", turn=turn)
        return
    taken = {number for _, number in found.pairs}
    free = [one for number, one in enumerate(sent) if number not in taken]
    for miss in found.misses if is_over else ():
        counted = (miss.n_found, len(sent))
        yield _missing(wanted[miss.expected], free, counted=counted, turn=turn)
    excess = [one.expected for one in found.left_over if one.expected is not None]
    for index in dict.fromkeys(excess):
        n_more = excess.count(index)
        one = wanted[index]
        most = one.times and one.times[1]
        text = f"too many requests: {one.expect.request} (at most {most}, {n_more} more)"
        yield fault(text, turn=turn)


def _matched(wanted: Sequence[_Wanted], sent: Sequence[_Sent]) -> CallMatch:
    """Match as tool calls are: a request is a call, and fits where its argument is true."""
    calls = [
        ToolCall(_SENT, {str(i): not one.misses(each) for i, one in enumerate(wanted)})
        for each in sent
    ]
    expected = [
        ExpectedCall(
            _SENT,
            {str(i): True},
            times=None
            if one.expect.times is None
            else (one.expect.times.min, one.expect.times.max),
        )
        for i, one in enumerate(wanted)
    ]
    return match_calls(expected, calls)


def _missing(
    wanted: _Wanted, free: Sequence[_Sent], *, counted: tuple[int, int], turn: int | None
) -> Finding:
    """Say that too few requests are as expected, and how the nearest of the others differs."""
    n_found, n_sent = counted
    n_wanted = 1 if wanted.times is None else wanted.times[0]
    count = f" ({n_found} of {n_wanted} requests)" if n_wanted > 1 else ""
    text = f"missing request: {wanted.expect.request}{count}"
    near = [one for one in free if one.is_one_of(wanted.expect.request)]
    if any(one.is_unseen for one in near) and wanted.looks_inside:
        return gap(f"{text} may be there: the body of one was not kept", turn=turn)
    if not free:
        sent = "no other was sent" if n_sent else "nothing was sent"
        return fault(f"{text} ({sent})", turn=turn)
    nearest = min(near or free, key=lambda one: len(wanted.misses(one)))
    misses = wanted.misses(nearest)
    rest = f" and {len(misses) - _LISTED} more" if len(misses) > _LISTED else ""
    named = f"; {', '.join(misses[:_LISTED])}{rest}" if near else ""
    return fault(
        f"{text} (nearest: {nearest.name}{named})",
        turn=turn,
        n=nearest.told.get("n"),
        misses=misses,
    )


@dataclass(frozen=True)
class _Sent:
    """One request that was sent."""

    told: Mapping[str, JSON]

    @property
    def name(self) -> str:
        return f"{self.told['method']} {self.told['url']}"

    @property
    def is_unseen(self) -> bool:
        """Whether it had a body that was not kept."""
        is_kept = self.told.get("json") is not None or self.told.get("text") is not None
        return bool(self.told.get("size")) and not is_kept

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The body as text; where it is JSON, every text in it as well."""
        value = self.told.get("json")
        if value is None:
            return (self.told.get("text") or "",)
        return (encode(value).decode("utf-8").strip(), *texts_of([value]))

    def is_one_of(self, pattern: str) -> bool:
        """Say whether method and address are meant by a pattern."""
        return request_matches(pattern, self.told["method"], self.told["url"])


class _Wanted:
    """One expected request, compiled."""

    def __init__(self, expect: HttpExpect) -> None:
        self.expect = expect
        self._json = _json_patterns(expect)
        self._headers = {
            name.lower(): compile_pattern(value) for name, value in expect.headers.items()
        }
        self._misses: dict[int, list[str]] = {}

    @property
    def times(self) -> tuple[int, int | None] | None:
        """At least and at most how many."""
        times = self.expect.times
        return None if times is None else (times.min, times.max)

    @property
    def looks_inside(self) -> bool:
        """Whether it says anything of the body."""
        return self.expect.body is not None or self._wants_json

    @property
    def _wants_json(self) -> bool:
        return "json_body" in self.expect.model_fields_set

    def misses(self, sent: _Sent) -> list[str]:
        """Say what a request is not, each as a part of a sentence; once for each request."""
        known = self._misses.get(id(sent))
        if known is None:
            known = self._misses[id(sent)] = list(self._found(sent))
        return known

    def _found(self, sent: _Sent) -> Iterator[str]:
        if not sent.is_one_of(self.expect.request):
            yield f"it is no {self.expect.request}"
            return
        if self._wants_json:
            yield from self._json_misses(sent.told.get("json"))
        if self.expect.body is not None:
            yield from (
                f"its body {miss.text}" for miss in text_misses(self.expect.body, sent.texts)
            )
        headers: Mapping[str, JSON] = sent.told.get("headers") or {}
        for name, pattern in self._headers.items():
            if name not in headers:
                yield f"it has no header {name}"
            else:
                yield from map(str, pattern.differences(headers[name], path=name))

    def _json_misses(self, value: JSON) -> Iterator[str]:
        if isinstance(self._json, Pattern):
            yield from map(str, self._json.differences(value, path="json"))
        elif not isinstance(value, Mapping):
            yield f"its body is no JSON object, but {show(value)}"
        else:
            for key, pattern in self._json.items():
                if key in value:
                    yield from map(str, pattern.differences(value[key], path=f"json.{key}"))
                elif not pattern.node.optional:
                    yield f"json.{key}: expected {pattern.node.describe()}, got nothing"


def _json_patterns(expect: HttpExpect) -> Pattern | Mapping[str, Pattern]:
    """Compile what the body must be: key by key, unless a matcher stands for the whole."""
    wanted = expect.json_body
    if isinstance(wanted, Mapping) and not any(map(_is_matcher, wanted)):
        return compile_arguments(wanted)
    return compile_pattern(wanted)


def _is_matcher(key: str) -> bool:
    return key.startswith("$") and not key.startswith("$$")


add_grader(Grader(NAME, grade_http, version="1", applies=_applies, reads_partial=True))
