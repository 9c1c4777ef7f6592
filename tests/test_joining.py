"""Calls that ran, joined with those asked for: by id, by arguments, by name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.joining import joined
from evalkit.trace import ToolCall

UNTOLD = ("args", "result")
A1 = ToolCall("book", {"flight": "A1"}, result="booked A1", id="x")
A2 = ToolCall("book", {"flight": "A2"}, result="booked A2", id="y")


@pytest.mark.parametrize(
    ("ran", "answers"),
    [
        ([ToolCall("book", {}, id="y", untold=UNTOLD)], [1]),
        ([ToolCall("book", {"flight": "A2"})], [1]),
        ([ToolCall("book", {}, untold=UNTOLD)], [0]),
        ([ToolCall("book", {}, untold=UNTOLD), ToolCall("book", {"flight": "A1"})], [1, 0]),
        ([ToolCall("book", {}, untold=UNTOLD)] * 3, [0, 1, None]),
        ([ToolCall("book", {"flight": "A3"})], [None]),
        ([ToolCall("search", {}, untold=UNTOLD)], [None]),
        # An id that nobody gave is another call.
        ([ToolCall("book", {}, id="z", untold=UNTOLD)], [None]),
    ],
)
def test_what_ran_answers_what_was_asked_for(
    ran: list[ToolCall], answers: list[int | None]
) -> None:
    """Ids decide first, then arguments, then the order of those without."""
    asked = dict(enumerate([A1, A2]))
    found = joined(dict(enumerate(ran)), asked)
    assert [key for _, key in found.values()] == answers


def test_a_call_asked_for_later_is_not_what_ran() -> None:
    """Nothing runs in answer to a later turn."""
    asked = {"a": ToolCall("book", {"flight": "A1"}, turn=1)}
    assert joined({"r": ToolCall("book", {}, untold=UNTOLD)}, asked)["r"][1] is None


def test_what_is_told_stays() -> None:
    """Only what a span did not hold is filled in, and no result for a tool that failed."""
    ran = {0: ToolCall("book", {}, status="error", id="x", untold=UNTOLD)}
    call, _ = joined(ran, {0: A1})[0]
    assert (call.args, call.result, call.status) == ({"flight": "A1"}, None, "error")
    told = {0: ToolCall("book", {"flight": "B"}, result="r", id="x")}
    assert joined(told, {0: A1})[0][0] == told[0]


CALLS = st.lists(
    st.builds(
        ToolCall,
        st.sampled_from(["book", "search"]),
        st.fixed_dictionaries({"n": st.integers(0, 2)}),
        id=st.sampled_from(["", "x", "y"]),
        turn=st.integers(0, 2),
        untold=st.sampled_from([(), UNTOLD]),
    ),
    max_size=6,
)


@given(CALLS, CALLS)
@settings(deadline=None, max_examples=100)
def test_each_call_is_answered_once(ran: list[ToolCall], asked: list[ToolCall]) -> None:
    """No call asked for is answered twice, and only by one of its tool."""
    found = joined(dict(enumerate(ran)), dict(enumerate(asked)))
    keys = [key for _, key in found.values() if key is not None]
    assert len(keys) == len(set(keys))
    assert list(found) == list(range(len(ran)))
    for call, key in found.values():
        assert key is None or asked[key].name == call.name
