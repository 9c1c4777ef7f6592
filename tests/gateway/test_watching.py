"""Tool calls on the wire: which result belongs to which call."""

from __future__ import annotations

from typing import Any

import pytest

from evalkit.gateway.canonical import Asked, Returned, ToolUse
from evalkit.gateway.watching import ToolWatch
from evalkit.gateway.witness import Witness
from evalkit.ledger import Event
from evalkit.reading import trace_of
from evalkit.recording import Recorder
from evalkit.serving.jsontext import to_text


def _use(name: str, id_: str, **args: Any) -> ToolUse:
    return ToolUse(name, args, to_text(args), id_)


class Watched:
    """A watch, and what it has recorded."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.watch = ToolWatch(Witness(Recorder(self.events.append).event))

    def ask(self, *uses: ToolUse, tell: bool = True) -> None:
        self.watch.asked(uses, turn=0, asked_by=0, tell=tell)

    @property
    def results(self) -> list[tuple[str, str, Any]]:
        calls = trace_of(self.events).tool_calls
        return [(call.name, call.status, call.result) for call in calls]


@pytest.fixture
def watched() -> Watched:
    """Give a watch that has seen nothing."""
    return Watched()


def test_a_result_is_noted_once(watched: Watched) -> None:
    """History is sent again and again; a result counts when it comes for the first time."""
    history = [Asked("a", "book", {"n": 1}), Returned("a", "done")]
    watched.ask(_use("book", "a", n=1))
    watched.watch.returned([])
    assert watched.results == [("book", "unknown", None)]
    for _ in range(3):
        watched.watch.returned(history)
    assert watched.results == [("book", "ok", "done")]
    assert len(watched.events) == 2


def test_ids_that_repeat_are_paired_by_position(watched: Watched) -> None:
    """Where every call has the same id, the second result belongs to the second call."""
    first = [Asked("x", "search", {"q": 1}), Returned("x", "one")]
    watched.ask(_use("search", "x", q=1))
    watched.watch.returned(first)
    watched.ask(_use("search", "x", q=2))
    watched.watch.returned([*first, Asked("x", "search", {"q": 2}), Returned("x", "two", "error")])
    assert watched.results == [("search", "ok", "one"), ("search", "error", "two")]


def test_ids_that_repeat_in_one_answer_are_paired_by_position(watched: Watched) -> None:
    """Parallel calls under one id get their results in order."""
    watched.ask(_use("a", "x"), _use("b", "x"))
    asked = [Asked("x", "a", {}), Asked("x", "b", {})]
    watched.watch.returned([*asked, Returned("x", "of a"), Returned("x", "of b")])
    assert watched.results == [("a", "ok", "of a"), ("b", "ok", "of b")]


def test_a_shortened_history_is_paired_from_its_end(watched: Watched) -> None:
    """An agent that drops old messages still returns its newest results."""
    for number in range(3):
        watched.ask(_use("search", "x", q=number))
    watched.watch.returned([Asked("x", "search", {"q": 2}), Returned("x", "newest")])
    assert [result for _, _, result in watched.results] == [None, None, "newest"]


def test_results_may_come_in_any_order(watched: Watched) -> None:
    """Ids decide, not the order in which parallel tools were done."""
    watched.ask(_use("a", "1"), _use("b", "2"))
    asked = [Asked("1", "a", {}), Asked("2", "b", {})]
    watched.watch.returned([*asked, Returned("2", "of b"), Returned("1", "of a")])
    assert watched.results == [("a", "ok", "of a"), ("b", "ok", "of b")]


def test_results_without_their_calls_are_paired_by_id(watched: Watched) -> None:
    """A provider that keeps the history gets nothing but results."""
    watched.ask(_use("a", "1"), _use("b", "2"))
    watched.watch.returned([Returned("2", "of b")])
    assert watched.results == [("a", "unknown", None), ("b", "ok", "of b")]


def test_a_client_may_give_ids_of_its_own(watched: Watched) -> None:
    """Where an id is nobody's, name and arguments tell which call was meant."""
    watched.ask(_use("search", "call_1", q=1), _use("search", "call_2", q=2))
    asked = [Asked("own-b", "search", {"q": 2}), Asked("own-a", "search", {"q": 1})]
    watched.watch.returned([*asked, Returned("own-a", "one"), Returned("own-b", "two")])
    assert [result for _, _, result in watched.results] == ["one", "two"]


def test_examples_in_a_prompt_are_no_calls(watched: Watched) -> None:
    """Tool uses that no answer has asked for are passed over, results and all."""
    watched.ask(_use("book", "a", n=1))
    watched.watch.returned([Asked("ex", "book", {"n": 0}), Returned("ex", "fake")])
    assert watched.results == [("book", "unknown", None)]


def test_half_an_answer_is_told_only_when_acted_upon(watched: Watched) -> None:
    """A call that the agent could not have seen whole is no call until a result comes."""
    watched.ask(_use("ghost", "1"), tell=False)
    watched.ask(_use("book", "2"))
    watched.watch.returned([Asked("2", "book", {}), Returned("2", "done")])
    assert watched.results == [("book", "ok", "done")]
    watched.watch.returned([Asked("1", "ghost", {}), Returned("1", "boo")])
    assert watched.results == [("ghost", "ok", "boo"), ("book", "ok", "done")]


def test_broken_arguments_stay_an_error(watched: Watched) -> None:
    """Whatever a tool made of them, the call has failed and keeps its raw text."""
    watched.ask(ToolUse("book", {"n": 1}, '{"n"', "a", is_cut=True))
    watched.watch.returned([Asked("a", "book", {}), Returned("a", "booked")])
    [call] = trace_of(watched.events).tool_calls
    assert (call.status, call.args, call.raw_args) == ("error", None, '{"n"')


def test_a_restored_watch_pairs_what_was_asked_before(watched: Watched) -> None:
    """After a restart of the agent, results of old calls find them, and numbers go on."""
    watched.ask(_use("ghost", "g"), tell=False)
    watched.ask(_use("a", "1"), ToolUse("b", {}, '{"x', "2", is_cut=True))
    watched.watch.returned([Asked("1", "a", {}), Returned("1", "of a")])
    again = Watched()
    Recorder(watched.events.append).tool_started("a", {})  # its number means something else
    again.events.extend(watched.events)
    again.watch.restore(watched.events)
    again.ask(_use("c", "3"))
    history = [Asked("1", "a", {}), Returned("1", "twice"), Asked("2", "b", {}), Returned("2", 7)]
    again.watch.returned(history)
    assert again.results == [("a", "ok", "of a"), ("b", "error", 7), ("c", "unknown", None)]
    numbers = [event.data["call"] for event in again.events if event.span.startswith("tool:")]
    assert sorted(set(numbers)) == [1, 2, 3]
