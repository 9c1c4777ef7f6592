"""From a scenario's fixtures to the world that its trials are given."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from mimetypes import MimeTypes
from pathlib import Path
from typing import TYPE_CHECKING, Final

from evalkit.errors import Problem
from evalkit.matching.addresses import place_of
from evalkit.sandbox.environment import GATEWAY_PORT
from evalkit.suite import HttpResponse, Scenario, Suite
from evalkit.suite.fields import KeyPath
from evalkit.suite.known_names import placed_problems

if TYPE_CHECKING:
    from evalkit.outside import Answer, Fixture, Leaf, WorldPlan
    from evalkit.sandbox.certificates import Authority

_MODULES: Final = ("evalkit.outside", "evalkit.trial.worlds")
_ISSUING: Final = "trustme"
"""For hosts that nobody named before."""
_UNKNOWN: Final = "application/octet-stream"


def has_world(scenario: Scenario) -> bool:
    """Say whether anything outside of the agent answers it, or may be asked."""
    fixtures = scenario.fixtures is not None and bool(scenario.fixtures.http)
    polled = any(delivery.is_polled for delivery in scenario.deliveries)
    return fixtures or polled or scenario.network is not None or scenario.reply_from is not None


def modules_of(scenario: Scenario) -> tuple[str, ...]:
    """Name the modules that its trials need, so that the server has imported them already."""
    if not has_world(scenario):
        return ()
    places = [place_of(request.partition(" ")[2]) for request in _requests(scenario)]
    issues = any(
        place is None or ("*" in place.host and place.scheme != "http") for place in places
    )
    return (*_MODULES, _ISSUING) if issues else _MODULES


class Worlds:
    """Plans the worlds of one run; certificates are issued once for the same hosts.

    Parameters
    ----------
    authority
        Signs them.
    folder
        Of the suite, where the files lie.
    """

    def __init__(self, authority: Authority, folder: Path) -> None:
        self._authority = authority
        self._folder = folder
        self._leaves: dict[frozenset[str], Leaf] = {}
        self._plans: dict[str, WorldPlan] = {}

    def plan(self, scenario: Scenario) -> WorldPlan | None:
        """Plan the world of a scenario; ``None`` if it has none."""
        if not has_world(scenario):
            return None
        if scenario.id not in self._plans:
            self._plans[scenario.id] = self._planned(scenario)
        return self._plans[scenario.id]

    def _planned(self, scenario: Scenario) -> WorldPlan:
        from evalkit.outside import WorldPlan

        return WorldPlan(
            self._fixtures(scenario),
            () if scenario.network is None else scenario.network.allow,
            self._leaf(scenario),
            (self._authority.certificate, self._authority.key),
        )

    def _fixtures(self, scenario: Scenario) -> tuple[Fixture, ...]:
        from evalkit.outside import Fixture

        given = () if scenario.fixtures is None else scenario.fixtures.http
        return tuple(
            Fixture(fixture.request, tuple(map(self._answer, fixture.responses)))
            for fixture in given
        )

    def _answer(self, response: HttpResponse) -> Answer:
        from evalkit.outside import Answer

        body, kind = self._body(response)
        is_typed = any(name.lower() == "content-type" for name in response.headers)
        given: Mapping[str, str] = {} if is_typed or not kind else {"content-type": kind}
        return Answer(
            response.status,
            {**given, **response.headers},
            body,
            response.fault or "",
            response.delay_s or 0.0,
            response.times,
        )

    def _body(self, response: HttpResponse) -> tuple[bytes, str]:
        """Give a body, and of which type it is."""
        if response.body_file is not None:
            return (self._folder / response.body_file).read_bytes(), _kind_of(response.body_file)
        if response.text is not None:
            return response.text.encode(), "text/plain; charset=utf-8"
        if "json_body" in response.model_fields_set:
            return json.dumps(response.json_body).encode("ascii"), "application/json"
        return b"", ""

    def _leaf(self, scenario: Scenario) -> Leaf:
        """Issue a certificate for the hosts that a scenario names."""
        from evalkit.outside.places import secure_hosts
        from evalkit.outside.plan import NO_LEAF
        from evalkit.outside.secure import issue

        hosts = frozenset(secure_hosts(_requests(scenario)))
        if hosts and hosts not in self._leaves:
            self._leaves[hosts] = issue(
                sorted(hosts), authority=(self._authority.certificate, self._authority.key)
            )
        return self._leaves[hosts] if hosts else NO_LEAF


def captures_of(scenario: Scenario) -> tuple[tuple[str, int], ...]:
    """Give the addresses and ports that a scenario's world must have; nothing without one."""
    if not has_world(scenario):
        return ()
    from evalkit.outside.places import listening_at

    allow = () if scenario.network is None else scenario.network.allow
    return listening_at(_requests(scenario), allow)


def port_problems(suite: Suite) -> list[Problem]:
    """List the fixtures whose place on loopback somebody else has: agent or scripted model.

    Parameters
    ----------
    suite
        A parsed suite.
    """
    http = None if suite.agent is None else suite.agent.http
    taken = {GATEWAY_PORT: "the scripted model"}
    if http is not None and http.port is not None:
        taken[http.port] = "the agent"
    return placed_problems(suite, _taken_ports(suite, taken))


def _taken_ports(suite: Suite, taken: Mapping[int, str]) -> Iterator[tuple[KeyPath, str]]:
    for index, scenario in enumerate(suite):
        given = () if scenario.fixtures is None else scenario.fixtures.http
        for number, fixture in enumerate(given):
            place = place_of(fixture.request.partition(" ")[2])
            for port in place.ports if place is not None and place.is_loopback else ():
                if port in taken:
                    path = ("scenarios", index, "fixtures", "http", number, "request")
                    yield path, f"port {port} of this machine is taken by {taken[port]}"


def _requests(scenario: Scenario) -> list[str]:
    """Give all that is answered, as ``METHOD address``."""
    given = () if scenario.fixtures is None else scenario.fixtures.http
    polled = (delivery.request for delivery in scenario.deliveries if delivery.is_polled)
    return [*(fixture.request for fixture in given), *polled]


def _kind_of(path: str) -> str:
    # Python's own list, and not the machine's, which is another on each.
    kind, packing = MimeTypes(filenames=()).guess_type(path)
    if packing or kind is None:
        return _UNKNOWN
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
