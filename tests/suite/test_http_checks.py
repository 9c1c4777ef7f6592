"""Fixtures that can never answer, or never alone, are found before anything runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import SuiteError
from evalkit.run import load_suite

HOST = "https://a.example.test"


def problems(tmp_path: Path, *http: Any, **more: Any) -> list[str]:
    """Load a suite with these fixtures; give what is wrong with it."""
    scenario = {
        "id": "a",
        "input": "Go.",
        "model": [],
        "fixtures": {"http": list(http)},
        "expect": {"reply": {"contains": "x"}},
        **more,
    }
    path = tmp_path / "suite.yaml"
    path.write_text(json.dumps({"suite": "s", "scenarios": [scenario]}))
    try:
        load_suite(path)
    except SuiteError as error:
        return [str(problem) for problem in error.problems]
    return []


def test_fixtures_that_can_answer_are_fine(tmp_path: Path) -> None:
    """Absolute addresses, stars, ports, queries in any form; different methods of one address."""
    requests = [
        f"GET {HOST}/x",
        f"POST {HOST}/x",
        f"GET {HOST}:8443/x",
        f"GET {HOST}/y?a=1",
        f"GET {HOST}/y?a=2&*",
        "GET http://192.0.2.7/",
        "GET http://[2001:db8::1]/",
        "GET *://b.example.test/z",
        "* https://*.c.example.test/*",
    ]
    assert problems(tmp_path, *({request: {"text": "a"}} for request in requests)) == []


ROUTES = {
    "GET /x": "must be absolute, or begin with `*`, or it never answers",
    "GET a.example.test/x": "write https://a.example.test/x, say",
    f"GTE {HOST}/x": "no client sends GTE. Did you mean `GET`?",
    f"CONNECT {HOST}/x": "no client sends CONNECT",
    f"GET {HOST}/x#part": "has a fragment, which no client sends",
    "GET https://me@a.example.test/": "has a user before the host",
    "GET https:///x": "names no host",
    f"GET {HOST}:99999/": "ports go from 1 to 65535",
    f"GET {HOST}:http/": "has a port that is no number",
}


@pytest.mark.parametrize("request_", ROUTES, ids=range(len(ROUTES)))
def test_route_that_never_answers_is_found(tmp_path: Path, request_: str) -> None:
    """With what is wrong, and what would be right."""
    (problem,) = problems(tmp_path, {request_: {"text": "a"}})
    assert ROUTES[request_] in problem


ANSWERS = [
    ({"status": 101}, "101 is no final answer"),
    ({"status": 204, "text": "x"}, "204 has no body: remove it"),
    ({"fault": "timeout", "status": 500}, "nothing is answered with a fault: remove `status`"),
    ({"headers": {"bad name": "x"}}, "is no name of a header"),
    ({"headers": {"x-a": "one\r\nSet-Cookie: two"}}, "a header is one line of text"),
    ({"headers": {"x-a": "☔"}}, "a header has only characters of Latin-1"),
    ({"headers": {"Content-Length": "many"}}, "must be a number, not 'many'"),
    ({"headers": {"transfer-encoding": "gzip"}}, "can only be `chunked`"),
]


@pytest.mark.parametrize(("answer", "message"), ANSWERS, ids=range(len(ANSWERS)))
def test_answer_that_cannot_be_given_is_found(tmp_path: Path, answer: Any, message: str) -> None:
    """Nothing that would break out of a header, or that no server sends."""
    (problem,) = problems(tmp_path, {f"GET {HOST}/": answer})
    assert message in problem


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (f"GET {HOST}/x", f"GET {HOST}:443/x"),
        (f"GET {HOST}/x", "GET https://A.example.test/x"),
        (f"GET {HOST}/*", f"GET {HOST}/x"),
        ("* *", f"GET {HOST}/x"),
        (f"GET {HOST}/x", f"GET {HOST}/x?a=1"),
    ],
    ids=["usual port", "capitals", "star", "anything", "query"],
)
def test_fixture_that_another_one_covers_is_found(tmp_path: Path, one: str, other: str) -> None:
    """Whichever comes first: nobody could say which of them answers."""
    for pair in ((one, other), (other, one)):
        (problem,) = problems(tmp_path, *({request: {"text": "a"}} for request in pair))
        assert "two fixtures answer" in problem


@pytest.mark.parametrize(
    ("host", "message"),
    [
        ("https://a.test/x", "must be `host` or `host:port`, and no address: write a.test"),
        ("a.test:0", "ports go from 1"),
        ("a.test:web", "has a port that is no number"),
    ],
    ids=["address", "zero", "word"],
)
def test_host_that_nobody_can_mean_is_found(tmp_path: Path, host: str, message: str) -> None:
    """Under ``network.allow``."""
    fixture = {f"GET {HOST}/": {"text": "a"}}
    (problem,) = problems(tmp_path, fixture, network={"allow": [host]})
    assert message in problem


def test_port_of_this_machine_that_is_taken_is_found(tmp_path: Path) -> None:
    """The scripted model has one of its own."""
    (problem,) = problems(tmp_path, {"GET http://localhost:8377/": {"text": "a"}})
    assert "port 8377 of this machine is taken by the scripted model" in problem
