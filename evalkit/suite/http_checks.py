"""Whether fixtures can answer requests as a scenario says, and never two of them one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from http import HTTPMethod
from typing import Final
from urllib.parse import urlsplit

from evalkit.matching.addresses import allowed_place
from evalkit.matching.requests import RequestPattern
from evalkit.suite.fields import KeyPath, suggestion
from evalkit.suite.fixtures import HttpFixture, HttpResponse
from evalkit.suite.models import Scenario

Found = Iterator[tuple[KeyPath, str]]

_SCHEMES: Final = ("http://", "https://")
_METHODS: Final = frozenset(HTTPMethod) - {HTTPMethod.CONNECT}
_MAX_PORT: Final = 65535
_BODILESS: Final = (204, 304)
_BODIES: Final = frozenset({"json_body", "text", "body_file"})
_HEADER_NAME: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")


def http_problems(scenario: Scenario) -> Found:
    """Find fixtures that answer nothing, or the same, and hosts that nobody can mean."""
    fixtures = scenario.fixtures.http if scenario.fixtures is not None else ()
    for index, fixture in enumerate(fixtures):
        path = ("fixtures", "http", index)
        for message in _route_problems(fixture.request):
            yield (*path, "request"), message
        for number, response in enumerate(fixture.responses):
            for key, message in _response_problems(response):
                yield (*path, "responses", number, *key), message
    yield from _clashes(scenario, fixtures)
    for index, host in enumerate(scenario.network.allow if scenario.network else ()):
        message = _host_problem(host)
        if message:
            yield ("network", "allow", index), message


def _route_problems(request: str) -> Iterator[str]:
    """Say why a route can never answer."""
    method, _, address = request.partition(" ")
    if method not in _METHODS and method != "*":
        hint = suggestion(method, _METHODS)
        if hint or method == HTTPMethod.CONNECT:
            yield f"no client sends {method}.{hint}"
    message = _address_problem(address)
    if message:
        yield message


def _address_problem(address: str) -> str:
    if "#" in address:
        return "has a fragment, which no client sends: remove `#` and what follows"
    if address.startswith("*"):
        return ""
    if not address.lower().startswith(_SCHEMES):
        near = f"https://api.example.test{address}" if address[0] == "/" else f"https://{address}"
        return f"must be absolute, or begin with `*`, or it never answers: write {near}, say"
    return _place_problem(urlsplit(address).netloc)


def _place_problem(place: str) -> str:
    if "@" in place:
        return "has a user before the host, which clients send as a header: remove it"
    found = allowed_place(place)
    if found is None:
        return f"has a port that is no number from 1 to {_MAX_PORT}: {place}"
    if not found.host:
        return "names no host, so it never answers"
    if found.port is not None and not 1 <= found.port <= _MAX_PORT:
        return f"has the port {found.port}: ports go from 1 to {_MAX_PORT}"
    return ""


def _host_problem(text: str) -> str:
    if "/" in text:
        host = urlsplit(text).netloc or text.partition("/")[0]
        return f"must be `host` or `host:port`, and no address: write {host}"
    return _place_problem(text)


def _response_problems(response: HttpResponse) -> Found:
    given = response.model_fields_set
    if response.status < 200:
        yield ("status",), f"{response.status} is no final answer: clients wait for another one"
    if response.status in _BODILESS and given & _BODIES:
        yield ("status",), f"{response.status} has no body: remove it"
    ignored = sorted(given & {"status", "headers"})
    if response.fault is not None and ignored:
        yield (ignored[0],), f"nothing is answered with a fault: remove `{ignored[0]}`"
    for name, value in response.headers.items():
        message = _header_problem(name.lower(), value)
        if message:
            yield ("headers", name), message


def _header_problem(name: str, value: str) -> str:
    if not _HEADER_NAME.fullmatch(name):
        return f"{name!r} is no name of a header"
    if "\n" in value or "\r" in value or not value.isprintable():
        return "a header is one line of text"
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return "a header has only characters of Latin-1: write others escaped"
    if name == "content-length" and not value.isdecimal():
        return f"must be a number, not {value!r}"
    if name == "transfer-encoding" and value.lower() != "chunked":
        return f"can only be `chunked`, not {value!r}"
    return ""


def _clashes(scenario: Scenario, fixtures: Iterable[HttpFixture]) -> Found:
    """Find routes of which one means all that the other means: that one never answers."""
    polled = {each.request for each in scenario.deliveries if each.is_polled}
    known = [RequestPattern(request) for request in sorted(polled)]
    for index, fixture in enumerate(fixtures):
        route = RequestPattern(fixture.request)
        path = ("fixtures", "http", index, "request")
        for other in known:
            message = _clash(route, other, is_polled=other.text in polled)
            if message:
                yield path, message
                break
        known.append(route)


def _clash(route: RequestPattern, other: RequestPattern, *, is_polled: bool) -> str:
    if is_polled:
        return f"never answers: `deliver` answers {other.text}" if other.covers(route) else ""
    is_wider, is_narrower = route.covers(other), other.covers(route)
    if is_wider and is_narrower:
        return f"two fixtures answer {other.text}: make them one, with a list of answers"
    if not (is_wider or is_narrower):
        return ""
    wide, narrow = (route, other) if is_wider else (other, route)
    return (
        f"two fixtures answer {narrow.text}, for {wide.text} means it, too: write the wider one so "
        "that it means only others"
    )
