"""HTTP as clients really speak it: chunks, keep-alive, odd heads, garbage, size."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi ☔"}]}).encode()
PATH = b"POST /v1/messages HTTP/1.1\r\n"


def _plain(body: bytes = BODY, head: bytes = b"") -> bytes:
    return PATH + head + b"content-length: %d\r\n\r\n" % len(body) + body


def _chunked(*chunks: bytes) -> bytes:
    parts = [b"%x;ext=1\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks]
    return PATH + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(parts) + b"0\r\nX: y\r\n\r\n"


def _status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1])


def test_chunked_body_is_read(serve) -> None:
    """A body in chunks, with extensions and trailers, is the same request."""
    gateway = serve([{"text": "fine"}])
    assert _status(gateway.raw(_chunked(BODY[:7], BODY[7:20], BODY[20:]))) == 200
    assert gateway.of_kind("model_call")[0]["prompt"]["messages"][0]["content"] == "Hi ☔"


def test_one_connection_takes_many_requests(serve) -> None:
    """Requests sent one behind the other on a connection are answered in order."""
    gateway = serve([{"text": "one"}, {"text": "two"}, {"text": "three"}])
    answer = gateway.raw(_plain() + _chunked(BODY) + _plain(head=b"Connection: close\r\n"))
    assert answer.count(b"HTTP/1.1 200 OK") == 3
    assert answer.index(b'"one"') < answer.index(b'"two"') < answer.index(b'"three"')


@pytest.mark.parametrize(
    ("head", "n_answers"),
    [(PATH, 2), (PATH + b"Connection: CLOSE\r\n", 1), (PATH.replace(b"1.1", b"1.0"), 1)],
)
def test_connection_lasts_as_long_as_the_client_wants(serve, head: bytes, n_answers: int) -> None:
    """HTTP/1.1 goes on unless the client closes, HTTP/1.0 does not."""
    request = head + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
    answer = serve([{"text": "a"}] * 2).raw(request * 2)
    assert answer.count(b"HTTP/1.1 200") == n_answers


def test_client_that_waits_to_continue_is_told_to(serve) -> None:
    """`Expect: 100-continue`, which curl sends before large bodies, is answered at once."""
    gateway = serve([{"text": "fine"}])
    with socket.create_connection(("127.0.0.1", gateway.port), timeout=5) as client:
        head = b"Expect: 100-continue\r\ncontent-length: %d\r\n\r\n" % len(BODY)
        client.sendall(PATH + head)
        assert client.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(BODY)
        assert client.recv(100).startswith(b"HTTP/1.1 200 OK")


GARBAGE: dict[str, tuple[bytes, str]] = {
    "no request": (b"\x16\x03\x01\x02\x00garbage\r\n\r\n", "no HTTP/1.1 request"),
    "no version": (b"GET /\r\n\r\n", "no HTTP/1.1 request"),
    "bad length": (PATH + b"content-length: ten\r\n\r\n", "content-length is b'ten'"),
    "negative length": (PATH + b"content-length: -1\r\n\r\n", "content-length is b'-1'"),
    "bad chunk": (PATH + b"transfer-encoding: chunked\r\n\r\nzz\r\n", "size of a chunk is b'zz"),
    "long line": (PATH + b"x: " + b"y" * 70_000 + b"\r\n\r\n", "more than 65536 bytes"),
    "many headers": (PATH + b"x: y\r\n" * 300 + b"\r\n", "more than 200 headers"),
    "no JSON": (_plain(b"{not json"), "no JSON"),
    "empty": (_plain(b""), "no JSON"),
    "not UTF-8": (_plain(b'{"model": "\xff"}'), "no JSON"),
    "NaN": (_plain(b'{"model": "m", "messages": [{"role": "user"}], "x": NaN}'), "NaN is no JSON"),
    "deep": (_plain(b'{"model": ' + b"[" * 5000 + b"]" * 5000 + b"}"), "nested"),
    "list": (_plain(b"[1, 2]"), "must be a JSON object, not list"),
    "no model": (_plain(b'{"messages": [{}]}'), "`model` must be the name"),
    "no messages": (_plain(b'{"model": "m"}'), "`messages` must be a list"),
    "empty messages": (_plain(b'{"model": "m", "messages": []}'), "`messages` must be a list"),
    "bad message": (_plain(b'{"model": "m", "messages": ["hi"]}'), "`messages[0]` must be an obj"),
    "compressed": (_plain(head=b"content-encoding: gzip\r\n"), "compressed (gzip)"),
}


@pytest.mark.parametrize(("content", "reason"), GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_refused_with_a_sentence(serve, content: bytes, reason: str) -> None:
    """What is no request gets a 400 that says why, is recorded, and takes no step."""
    gateway = serve([{"text": "never"}])
    answer = gateway.raw(content)
    assert _status(answer) == 400
    message = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]["message"]
    assert message.startswith("BAD REQUEST: ")
    assert reason in message
    assert b"x-should-retry: false" in answer
    assert gateway.kinds == ["model_call", "fault", "model_reply"]
    codes = [finding.code for finding in gateway.finish()]
    assert codes == ["bad_request", "left_over_steps"]


def test_body_beyond_the_limit_is_refused_unread(serve) -> None:
    """A body that is too large is refused by its announced size, chunked ones as they grow."""
    gateway = serve([{"text": "never"}], max_body=1000)
    for request in (_plain(b" " * 1001), _chunked(b" " * 600, b" " * 600)):
        answer = gateway.raw(request)
        assert _status(answer) == 413
        assert b"more than 1,000 bytes" in answer


def test_client_that_goes_away_harms_nobody(serve) -> None:
    """A request that never came whole was never asked: no answer, no event, no finding."""
    gateway = serve([{"text": "fine"}])
    for content in (b"", b"POST", PATH + b"x: ", _plain()[:-1], _chunked(BODY)[:-30]):
        assert gateway.raw(content) == b""
    assert gateway.events == []
    assert _status(gateway.raw(_plain())) == 200
    assert gateway.finish() == ()


def test_large_prompt_is_answered_and_recorded_whole(serve) -> None:
    """A prompt of a megabyte is no problem, in bytes or in chunks."""
    text = "Grüße ☔ " * 100_000
    body: Any = {"model": "m", "messages": [{"role": "user", "content": text}]}
    content = json.dumps(body, ensure_ascii=False).encode()
    assert len(content) > 1_000_000
    gateway = serve([{"text": "a"}, {"text": "b"}])
    chunks = [content[at : at + 65_536] for at in range(0, len(content), 65_536)]
    assert _status(gateway.raw(_plain(content))) == 200
    assert _status(gateway.raw(_chunked(*chunks))) == 200
    prompts = [call["prompt"]["messages"][0]["content"] for call in gateway.of_kind("model_call")]
    assert prompts == [text, text]


def test_lone_surrogates_and_huge_numbers_survive(serve) -> None:
    """What JSON allows and a fast reader refuses is recorded as it was sent."""
    body = b'{"model": "m", "n": 123456789012345678901234567890, "messages": [{"role": "user", "content": "\\ud800"}]}'  # noqa: E501
    gateway = serve([{"text": "fine"}])
    assert _status(gateway.raw(_plain(body))) == 200
    prompt = gateway.of_kind("model_call")[0]["prompt"]
    assert prompt["messages"][0]["content"] == "\ud800"
    assert prompt["n"] == 123456789012345678901234567890
