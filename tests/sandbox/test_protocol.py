"""How caller and server understand each other."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.sandbox.protocol import Lines, Request, encode_message

text = st.text(alphabet=st.characters(codec=None), max_size=20)  # lone surrogates, too


@settings(deadline=None, max_examples=100)
@given(st.lists(text), text, text, st.integers(min_value=1), st.binary())
def test_request_survives_the_file(path, entry, prepare, caller_pid, payload):
    """Any path, name and payload, with newlines or undecodable characters, come back the same."""
    request = Request(tuple(path), entry, prepare, caller_pid, payload)
    assert Request.decode(request.encode()) == request


@settings(deadline=None, max_examples=100)
@given(st.lists(text, min_size=1), st.data())
def test_messages_survive_any_cut(reasons, data):
    """Messages come back whole and in order, however the stream is cut."""
    stream = b"".join(encode_message(event="ended", reason=reason) for reason in reasons)
    cut = data.draw(st.integers(min_value=0, max_value=len(stream)))
    lines = Lines()
    messages = [*lines.feed(stream[:cut]), *lines.feed(stream[cut:])]
    assert [message["reason"] for message in messages] == reasons
