"""Which fixture answers a request, and with which of its answers.

Nothing is ever answered by default, and never one of two: a request that no fixture
means, or that two mean, is a fault of suite or agent that somebody must see.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from typing import Final

from evalkit.matching.requests import Address, RequestPattern
from evalkit.outside.plan import Answer, Fixture

_NEAR: Final = 40
"""Fixtures that are compared letter by letter in order to find the nearest."""


class UnscriptedError(Exception):
    """No fixture answers a request, or more than one would; the text says why."""

    def __init__(self, message: str, *, code: str = "unscripted_request") -> None:
        super().__init__(message)
        self.code = code


class _Route:
    """One fixture, and how far its answers are used."""

    def __init__(self, fixture: Fixture) -> None:
        self.request = fixture.request
        self.pattern = RequestPattern(fixture.request)
        self._answers = fixture.answers
        self.n_taken = 0
        self.is_used = False

    def take(self) -> Answer | None:
        """Give the next answer; ``None`` once all are used."""
        self.is_used = True
        left = self.n_taken
        self.n_taken += 1
        last = self._answers[-1]
        for answer in self._answers:
            if answer is last and answer.times is None:
                return answer
            left -= answer.times or 1
            if left < 0:
                return answer
        return None

    @property
    def n_answers(self) -> int:
        """How many requests it answers at most, where that is said."""
        return sum(answer.times or 1 for answer in self._answers)


class Taken:
    """An answer, and the fixture that it belongs to."""

    __slots__ = ("answer", "request")

    def __init__(self, request: str, answer: Answer) -> None:
        self.request = request
        self.answer = answer


class Choice:
    """The fixtures of one trial.

    Parameters
    ----------
    fixtures
        In the suite's order.

    Examples
    --------
    >>> choice = Choice([Fixture("GET https://a.test/", (Answer(204),))])
    >>> choice.take("GET", "https://a.test/").answer.status
    204
    """

    def __init__(self, fixtures: Sequence[Fixture]) -> None:
        self._routes = [_Route(fixture) for fixture in fixtures]

    def take(self, method: str, url: str) -> Taken:
        """Take the answer to a request.

        Raises
        ------
        UnscriptedError
            If there is none, or more than one fixture would answer.
        """
        address = Address.of(url)
        found = [route for route in self._routes if route.pattern.fits(method, address)]
        if not found:
            near = self._nearest(method, url)
            raise UnscriptedError(f"no fixture answers {method} {url}{near}")
        if len(found) > 1:
            named = " and ".join(f"`{route.request}`" for route in found)
            said = f"{len(found)} fixtures answer {method} {url}: {named}; keep one of them"
            raise UnscriptedError(said, code="ambiguous_fixture")
        route = found[0]
        answer = route.take()
        if answer is None:
            said = (
                f"`{route.request}` has answers for {route.n_answers} request(s), and "
                f"{method} {url} is request {route.n_taken} of them"
            )
            raise UnscriptedError(said)
        return Taken(route.request, answer)

    def _nearest(self, method: str, url: str) -> str:
        """Name the fixture that misses a request by least, and by what."""
        if not self._routes:
            return " (the scenario has no `fixtures.http`)"
        wanted = f"{method} {url}"
        ranked = sorted(
            self._routes,
            key=lambda route: -difflib.SequenceMatcher(None, route.request, wanted).quick_ratio(),
        )[:_NEAR]
        nearest = min(ranked, key=lambda route: len(list(route.pattern.differences(method, url))))
        why = "; ".join(nearest.pattern.differences(method, url))
        return f" (nearest: `{nearest.request}`, but {why})"

    def restore(self, requests: Iterable[str | None], *, n_settled: int) -> None:
        """Go on where earlier processes of the trial stopped.

        Parameters
        ----------
        requests
            The fixture that answered each request so far.
        n_settled
            How many of them count for the order of answers; those after come anew.
        """
        routes = {route.request: route for route in self._routes}
        for number, request in enumerate(requests):
            route = routes.get(request or "")
            if route is not None:
                route.is_used = True
                route.n_taken += number < n_settled

    @property
    def unused(self) -> tuple[str, ...]:
        """Fixtures that nobody asked for."""
        return tuple(route.request for route in self._routes if not route.is_used)
