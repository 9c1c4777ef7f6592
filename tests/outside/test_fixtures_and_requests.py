"""What a world answers, refuses and writes down; without a socket."""

from __future__ import annotations

import gzip
import itertools
import struct
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.ledger import Event
from evalkit.outside import Answer, Fixture, World, WorldPlan
from evalkit.outside.choosing import Choice, UnscriptedError
from evalkit.outside.names import answer_to, question_of
from evalkit.outside.telling import MAX_TEXT, Sent, told_of

JOBS = "https://jobs.example.test"
ADDRESS = "198.18.0.1"


def sent(url: str, method: str = "GET", body: bytes = b"", **headers: str) -> Sent:
    """Write a request."""
    given_ = {
        name.replace("_", "-").encode(): value.encode("latin-1") for name, value in headers.items()
    }
    return Sent(method, url, given_, body)


class Room:
    """A world, and everything that it told, in order."""

    def __init__(self, *fixtures: Fixture, **more: Any) -> None:
        plan = WorldPlan(fixtures, more.pop("allow", ()))
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        self.world = World(
            plan,
            record=lambda kind, data: self.told.append((kind, data)),
            settle=lambda: self.told.append(("settled", {})),
            listeners=[lambda data: self.told.append(("heard", data))],
            **more,
        )

    def ask(self, url: str, method: str = "GET", **more: Any) -> tuple[int, bytes]:
        """Send a request; give status and body of the answer."""
        delivery = self.world.answer(sent(url, method, **more)).delivery
        return delivery.status, delivery.body

    @property
    def kinds(self) -> list[str]:
        """What was told, in one word each."""
        return [kind for kind, _ in self.told]

    @property
    def reasons(self) -> list[str]:
        """Why the trial fails."""
        return [one.reason for one in self.world.findings]


def fixture(request: str, *answers: Answer) -> Fixture:
    """Write a fixture."""
    return Fixture(request, answers or (Answer(body=b"yes"),))


def test_answers_come_in_order_and_the_last_one_repeats() -> None:
    """``times`` says how often; without it once, and the last for ever."""
    choice = Choice([fixture(f"GET {JOBS}/", Answer(503, times=2), Answer(201), Answer(200))])
    taken = [choice.take("GET", f"{JOBS}/").answer.status for _ in range(6)]
    assert taken == [503, 503, 201, 200, 200, 200]


def test_answers_can_be_used_up() -> None:
    """A last answer with ``times`` is not repeated, and the reason counts."""
    choice = Choice([fixture(f"GET {JOBS}/", Answer(times=2))])
    for _ in range(2):
        choice.take("GET", f"{JOBS}/")
    with pytest.raises(UnscriptedError, match=r"answers for 2 request.* is request 3 of them"):
        choice.take("GET", f"{JOBS}/")


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.data())
def test_restored_choice_goes_on_where_it_was(times: list[int], data: st.DataObject) -> None:
    """What the ledger says was answered is not answered again."""
    answers = tuple(Answer(200 + n, times=one) for n, one in enumerate(times))
    statuses = list(itertools.chain(*([answer.status] * (answer.times or 1) for answer in answers)))
    n_before = data.draw(st.integers(0, len(statuses)))
    choice = Choice([fixture(f"GET {JOBS}/", *answers)])
    choice.restore([f"GET {JOBS}/"] * n_before, n_settled=n_before)
    rest = [choice.take("GET", f"{JOBS}/").answer.status for _ in statuses[n_before:]]
    assert rest == statuses[n_before:]


def test_request_is_told_and_settled_before_it_is_answered() -> None:
    """In this order, and with all that graders need."""
    room = Room(fixture(f"POST {JOBS}/save", Answer(201, body=b"{}")))
    room.world.begin_turn(2)
    body = b'{"id": 17}'
    assert room.ask(f"{JOBS}:443/save", "POST", body=body, content_type="application/json") == (
        201,
        b"{}",
    )
    assert room.kinds == ["http", "heard", "settled"]
    assert room.told[0][1] == {
        "to": "fixture",
        "turn": 2,
        "n": 1,
        "method": "POST",
        "url": f"{JOBS}/save",
        "headers": {"content-type": "application/json"},
        "json": {"id": 17},
        "text": None,
        "size": 10,
        "fixture": f"POST {JOBS}/save",
        "status": 201,
        "fault": None,
    }
    assert room.world.findings == ()


def test_unscripted_request_fails_the_trial_and_names_what_is_near() -> None:
    """It is recorded, told in the answer, and explained at the end."""
    room = Room(fixture(f"GET {JOBS}/posting/17"), fixture("GET http://other.example.test/"))
    status, body = room.ask(f"{JOBS}/posting/18")
    assert status == 599
    assert b"the path is /posting/18, not /posting/17" in body
    room.world.finish()
    assert room.reasons[0].startswith(f"UNSCRIPTED: no fixture answers GET {JOBS}/posting/18")
    assert room.reasons[0].endswith(
        f"never asked for: `GET {JOBS}/posting/17`, `GET http://other.example.test/`"
    )
    assert room.told[0][1]["fault"] == "unscripted"


@pytest.mark.parametrize(
    ("allow", "url", "is_allowed"),
    [
        ("a.example.test", "https://a.example.test/x", True),
        ("a.example.test", "http://a.example.test:8080/x", True),
        ("a.example.test:443", "https://a.example.test/x", True),
        ("a.example.test:443", "http://a.example.test/x", False),
        ("*.example.test", "https://deep.a.example.test/", True),
        ("*.example.test", "https://example.test/", False),
        ("a.example.test", "https://a.example.test.evil.test/", False),
    ],
)
def test_allowed_host_is_refused_without_failing_the_trial(
    allow: str, url: str, is_allowed: bool
) -> None:
    """By host, by host and port, or by a star; never by a part of a name."""
    room = Room(allow=(allow,))
    status, body = room.ask(url)
    assert status == 599
    assert body.startswith(b"REFUSED" if is_allowed else b"UNSCRIPTED")
    assert (room.world.findings == ()) is is_allowed
    assert room.told[0][1]["fault"] == ("refused" if is_allowed else "unscripted")


def test_two_fixtures_that_answer_are_an_error() -> None:
    """Never one of two, even if the host is allowed."""
    room = Room(
        fixture("GET https://a.test/*/x"), fixture("GET https://a.test/y/*"), allow=("a.test",)
    )
    assert room.ask("https://a.test/y/x")[0] == 599
    assert [one.code for one in room.world.findings] == ["ambiguous_fixture"]


def test_host_that_was_only_looked_up_is_told() -> None:
    """Whatever it speaks, it is not HTTP; once a request came, all is well."""
    room = Room(fixture(f"GET {JOBS}/"), allow=("ok.test",))
    for name in ("db.example.test.", "jobs.example.test", "ok.test"):
        room.world.looked_up(name)
    room.ask(f"{JOBS}/")
    room.world.distrusted("strict.example.test", "unknown ca")
    room.world.leave()
    assert "looked up db.example.test, and sent no HTTP request" in room.reasons[0]
    assert "did not accept the certificate of strict.example.test (unknown ca)" in room.reasons[0]
    assert "ok.test" not in room.reasons[0]
    assert "jobs" not in room.reasons[0]


def test_answerer_goes_before_fixtures_and_is_not_recorded() -> None:
    """How long a poll waits is no matter of the trial's."""

    class Update:
        headers: Mapping[str, str] = {"content-type": "application/json"}
        body = b"[]"

    room = Room(answerers={"GET */getUpdates": lambda _method, _url: Update()})
    assert room.ask("https://api.test/bot1/getUpdates?offset=3") == (200, b"[]")
    assert room.told == []


def test_world_goes_on_after_a_restart() -> None:
    """Numbers follow all requests, answers only those that count."""
    first = Room(fixture(f"GET {JOBS}/", Answer(201), Answer(202), Answer(203)))
    for _ in range(2):
        first.ask(f"{JOBS}/")
    told = [data for kind, data in first.told if kind == "http"]
    events = [Event(seq, "http", data) for seq, data in enumerate(told, start=1)]
    second = Room(fixture(f"GET {JOBS}/", Answer(201), Answer(202), Answer(203)))
    second.world.restore(events, n_settled=1)
    assert second.ask(f"{JOBS}/")[0] == 202
    assert second.told[0][1]["n"] == 3


def test_fault_of_the_world_is_not_the_agents() -> None:
    """It makes the trial incomplete."""
    room = Room()
    room.world.broken(ValueError("x"))
    (finding,) = room.world.findings
    assert (finding.code, finding.status) == ("world_failed", "incomplete")


BODIES: Mapping[str, tuple[Sent, Any, Any]] = {
    "json": (sent("u", body=b'[{"a": 1}]'), [{"a": 1}], None),
    "a number is text": (sent("u", body=b"17"), None, "17"),
    "a number is json": (sent("u", body=b"17", content_type="application/json"), 17, None),
    "broken json": (sent("u", body=b'{"a": '), None, '{"a": '),
    "form": (sent("u", body=b"a=1&b=2"), None, "a=1&b=2"),
    "nothing": (sent("u"), None, None),
    "binary": (sent("u", body=b"\x89PNG\xff"), None, None),
    "zeros": (sent("u", body=b"a\0b"), None, None),
    "too large": (sent("u", body=b"x" * (MAX_TEXT + 1)), None, None),
    "packed": (sent("u", body=gzip.compress(b'{"a": 1}'), content_encoding="gzip"), {"a": 1}, None),
    "bomb": (
        sent("u", body=gzip.compress(bytes(50_000_000)), content_encoding="gzip"),
        None,
        None,
    ),
    "packed, but not": (sent("u", body=b"plain", content_encoding="gzip"), None, "plain"),
}


@pytest.mark.parametrize("name", BODIES)
def test_body_is_told_as_far_as_it_can_be(name: str) -> None:
    """JSON as JSON, text as text; of the rest the size."""
    request, as_json, as_text = BODIES[name]
    told = told_of(request)
    assert (told["json"], told["text"]) == (as_json, as_text)
    assert told["size"] == len(request.body)


def test_only_telling_headers_are_kept() -> None:
    """What differs from client to client is not recorded."""
    told = told_of(sent("u", user_agent="x/1", authorization="Bearer t", x_trace="1", accept="*"))
    assert told["headers"] == {"authorization": "Bearer t", "x-trace": "1"}


def question(name: str, kind: int = 1) -> bytes:
    """Write a question as a client does."""
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack("!6H", 9, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack("!2H", kind, 1)


@pytest.mark.parametrize(
    ("kind", "n_answers", "code"),
    [(1, 1, 0), (28, 0, 0), (65, 0, 0), (12, 0, 3)],
    ids=["A", "AAAA", "HTTPS", "PTR"],
)
def test_every_host_is_at_one_address(kind: int, n_answers: int, code: int) -> None:
    """Other kinds of records are not there; which host is at an address nobody knows."""
    answer = answer_to(question("API.example.test", kind), ADDRESS)
    number, flags, _, answers, _, _ = struct.unpack("!6H", answer[:12])
    assert (number, flags & 0x8000, flags & 0xF, answers) == (9, 0x8000, code, n_answers)
    assert answer.endswith(bytes([198, 18, 0, 1])) is bool(n_answers)


@settings(deadline=None, max_examples=100)
@given(st.binary(max_size=80))
def test_garbage_is_no_question_and_raises_nothing(message: bytes) -> None:
    """Whatever comes, an answer has the number of its question, or there is none."""
    found, answer = question_of(message), answer_to(message, ADDRESS)
    assert answer == b"" if len(message) < 12 else answer[:2] == message[:2]
    if found is None and answer:
        assert answer[3] & 0xF == 1
