"""The agent's own requests, with unmodified clients of Python, C and Node, in the sandbox."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import evalkit as ek
from evalkit.results import Run, TrialRecord

pytest.importorskip("aiohttp", reason="needs the extra `dev`")
pytestmark = [pytest.mark.sdk, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")]

JOBS = "https://jobs.example.test"
FIXTURES = [
    {f"GET {JOBS}/posting/17": {"text": "A posting."}},
    {"GET http://plain.example.test/": {"text": "Plain."}},
    {f"POST {JOBS}/save": {"status": 201, "json": {"saved": True}}},
]
CLIENTS = ("httpx", "httpx2", "requests", "urllib", "aiohttp", "curl", "node")


def scenario(name: str, *lines: str, replies: str, http: Any = FIXTURES, **more: Any) -> Any:
    """Write a scenario of one turn: what is fetched, and what the agent must have got."""
    return {
        "id": name,
        "turns": [{"user": "\n".join(lines), "model": []}],
        "fixtures": {"http": http},
        "expect": {"reply": {"contains": replies}},
        **more,
    }


def by(client: str) -> Any:
    """Let one client fetch over http and https, and send something."""
    return scenario(
        f"by-{client}",
        f"{client} GET {JOBS}/posting/17?from=mail",
        f"{client} GET http://plain.example.test/",
        f"{client} POST {JOBS}/save '{{\"id\": 17}}'",
        replies='200 A posting.\n200 Plain.\n201 {"saved": true}',
        expect={
            "reply": {"equals": '200 A posting.\n200 Plain.\n201 {"saved": true}'},
            "http": [{f"POST {JOBS}/save": {"json": {"id": 17}, "times": 1}}],
        },
    )


SEQUENCE = [
    {f"GET {JOBS}/slots": [{"status": 503, "times": 2}, {"json": [1]}, {"json": [2]}]},
]
DELAYED = [{f"GET {JOBS}/slow": {"text": "late", "delay": "200ms"}}]
HUNG = [{f"GET {JOBS}/hung": {"fault": "timeout"}}, {f"GET {JOBS}/cut": {"fault": "disconnect"}}]
REDIRECT = [
    {f"GET {JOBS}/old": {"status": 302, "headers": {"location": f"{JOBS}/posting/17"}}},
    *FIXTURES,
]
ASIDE = [
    {f"GET {JOBS}/old": {"status": 302, "headers": {"location": "https://evil.example.test/x"}}},
]
STARS = [{"GET https://*.example.test/any/*": {"text": "any"}}]
ADDRESS = [{"GET http://169.254.169.254/latest/*": {"text": "role"}}]
HUGE = [{f"GET {JOBS}/huge": {"headers": {"content-length": "1073741824"}, "text": "x" * 1000}}]

PASSING: Sequence[Any] = (
    *map(by, CLIENTS),
    scenario(
        "sequence",
        *[f"httpx2 GET {JOBS}/slots"] * 5,
        replies="503 \n503 \n200 [1]\n200 [2]\n200 [2]",
        http=SEQUENCE,
    ),
    scenario("delay", f"httpx2 GET {JOBS}/slow", replies="200 late", http=DELAYED),
    scenario(
        "faults",
        f"hasty GET {JOBS}/hung",
        f"hasty GET {JOBS}/cut",
        replies="failed: ReadTimeout\nfailed: RemoteProtocolError",
        http=HUNG,
    ),
    scenario("redirect", f"httpx2 GET {JOBS}/old", replies="200 A posting.", http=REDIRECT),
    scenario("stars", "urllib GET https://deep.example.test/any/x", replies="any", http=STARS),
    scenario("address", "curl GET http://169.254.169.254/latest/r", replies="role", http=ADDRESS),
    scenario("promised-to-the-agent", f"streams GET {JOBS}/huge", replies="10737", http=HUGE),
    scenario("no-proxy-is-named", "proxies", replies="False"),
    scenario(
        "allowed",
        "httpx2 POST https://telemetry.example.test/ping x",
        replies="599 REFUSED",
        network={"allow": ["telemetry.example.test"]},
    ),
)  # fmt: skip

AMBIGUOUS = [
    {"GET https://a.example.test/*/x": {"text": "1"}},
    {"GET https://a.example.test/y/*": {"text": "2"}},
]
FAILING: Mapping[str, tuple[Any, str, str]] = {
    "unscripted": (
        scenario("unscripted", f"httpx2 GET {JOBS}/posting/18", replies="599"),
        "unscripted_request",
        f"no fixture answers GET {JOBS}/posting/18 (nearest: `GET {JOBS}/posting/17`, "
        "but the path is /posting/18, not /posting/17)",
    ),
    "other-host": (
        scenario("other-host", "curl GET https://evil.example.test/", replies="599"),
        "unscripted_request",
        "no fixture answers GET https://evil.example.test/",
    ),
    "redirected-out": (
        scenario("redirected-out", f"httpx2 GET {JOBS}/old", replies="599", http=ASIDE),
        "unscripted_request",
        "no fixture answers GET https://evil.example.test/x",
    ),
    "two-that-match": (
        scenario(
            "two-that-match", "httpx2 GET https://a.example.test/y/x", replies="599", http=AMBIGUOUS
        ),
        "ambiguous_fixture",
        "2 fixtures answer GET https://a.example.test/y/x",
    ),
    "never-matches": (
        scenario("never-matches", f"httpx2 GET {JOBS}/x", replies="599"),
        "unscripted_request",
        "never asked for: `GET https://jobs.example.test/posting/17`",
    ),
    "promised-by-the-agent": (
        scenario("promised-by-the-agent", "promised POST http://plain.example.test", replies="413"),
        "unscripted_request",
        "no fixture can answer POST http://plain.example.test/",
    ),
    "other-protocol": (
        scenario("other-protocol", "knocks X db.example.test", replies="failed"),
        "unscripted_request",
        "looked up db.example.test, and sent no HTTP request",
    ),
    "straight-to-an-address": (
        scenario("straight-to-an-address", "httpx2 GET http://192.0.2.9/", replies="failed"),
        "outside_connection",
        "192.0.2.9:80",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def run_of(
    tmp_path_factory: pytest.TempPathFactory, write_suite: Callable[..., Path]
) -> Callable[..., Run]:
    """Run scenarios on the agent that fetches."""

    def run(scenarios: Sequence[Any], **more: Any) -> Run:
        folder = tmp_path_factory.mktemp("fixtures")
        suite = write_suite(folder / "suite", "fetches:agent", list(scenarios))
        return ek.run_suite(suite, out=folder / "runs", progress=False, **more)

    return run


@pytest.fixture(scope="module")
def run(run_of: Callable[..., Run]) -> Run:
    """Run every scenario once."""
    return run_of([*PASSING, *(one for one, _, _ in FAILING.values())])


def told(record: TrialRecord) -> str:
    """Give everything that was said of a trial."""
    return "; ".join([record.reason, *(grade.reason for grade in record.grades)])


def need(program: str) -> None:
    """Say that a program must be there."""
    assert shutil.which(program) is not None, f"{program} is not installed"


@pytest.mark.parametrize("name", [one["id"] for one in PASSING])
def test_unmodified_client_is_answered(name: str, run: Run) -> None:
    """Over http and https, in sequence, late, never, at the end of a redirect."""
    if name in ("by-node", "by-curl"):
        need(name.removeprefix("by-"))
    assert run.record(name).status == "passed", told(run.record(name))


@pytest.mark.parametrize("name", FAILING)
def test_what_nobody_scripted_fails_with_its_reason(name: str, run: Run) -> None:
    """Whatever the agent makes of the answer that it gets."""
    _, code, reason = FAILING[name]
    record = run.record(name)
    assert (record.status, record.reason_code) == ("failed", code), told(record)
    assert reason in record.reason


def test_allowed_request_is_refused_and_recorded(run: Run) -> None:
    """It does not fail the trial, and it does not get out."""
    sent = [event.data for event in run.ledger("allowed", 0) if event.kind == "http"]
    assert [(one["url"], one["status"], one["fault"]) for one in sent] == [
        ("https://telemetry.example.test/ping", 599, "refused")
    ]


def test_request_is_written_down_before_it_is_answered(run: Run) -> None:
    """With its body, its place among all, and the fixture that answers."""
    sent = [event.data for event in run.ledger("by-requests", 0) if event.kind == "http"]
    assert [one["n"] for one in sent] == [1, 2, 3]
    assert sent[0]["url"] == f"{JOBS}/posting/17?from=mail"
    assert sent[2]["fixture"] == f"POST {JOBS}/save"
    assert sent[2]["json"] == {"id": 17}


def test_two_runs_write_the_same_ledgers(run_of: Callable[..., Run], run: Run) -> None:
    """Threads, sockets and certificates leave no trace in them."""
    again = run_of([*PASSING, *(one for one, _, _ in FAILING.values())])
    for record in run.records:
        assert record.digest == again.record(record.scenario).digest, record.scenario


@pytest.mark.parametrize("barrier", ["python", "none"])
def test_clients_that_ask_their_variables_are_answered_behind_a_weaker_barrier(
    barrier: str, run_of: Callable[..., Run]
) -> None:
    """Where a trial shares the machine's network, a proxy leads to the fixtures."""
    done = run_of([by("httpx2"), by("requests"), by("urllib")], network_barrier=barrier)
    for record in done.records:
        assert record.status == "passed", told(record)


def test_secret_in_a_request_is_a_leak(run_of: Callable[..., Run]) -> None:
    """In the body or the address of a request that a fixture answers."""
    secret = "canary-5T9K2M7Q4X8Z"
    planted = {"canaries": [{"name": "secret", "value": secret}]}
    done = run_of(
        [
            scenario("body", f"httpx2 POST {JOBS}/save {secret}", replies="201", **planted),
            scenario("query", f"httpx2 GET {JOBS}/posting/17?q={secret}", replies="200", **planted),
        ]
    )
    for record in done.records:
        assert record.status == "failed"
        assert "canary 'secret' leaked into http" in told(record)
