"""Turns that are no calls: when an agent that polls gets them, and when they are over."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest

from evalkit.agents import BadReplyError, Conversation
from evalkit.agents.hosting import Answer, Hosted, Request
from evalkit.errors import AgentError
from evalkit.grade import Ending
from evalkit.ledger import Event
from evalkit.reading import trace_of
from evalkit.recording import Recorder
from evalkit.trace import Trace
from evalkit.trial.delivering import Courier, Poller, Update, Ways
from evalkit.trial.order import Advance, Deliver
from evalkit.trial.replying import ReplyWatch, text_of, without_replies

GET = "GET https://api.example.test/updates"
IDLE = b"[]"
FIRST = Update({}, b"first")
SECOND = Update({}, b"second")


@pytest.fixture
def ask() -> Any:
    """Give a function that polls from another thread."""
    with ThreadPoolExecutor(8) as pool:
        yield lambda poller: pool.submit(poller.answer)


Ask = Callable[[Poller], "Future[Update]"]


def poller(hold_s: float = 10.0) -> Poller:
    """Make a poller."""
    return Poller(GET, IDLE, hold_s=hold_s)


def asked(one: Poller) -> bool:
    """Wait until a request is held."""
    return one.wait(one.is_asking, 5)


def test_request_is_held_until_something_is_there(ask: Ask) -> None:
    """An update goes to the request that waits; the turn is over when the agent asks again."""
    one = poller()
    first = ask(one)
    assert asked(one)
    assert not first.done()
    one.give(FIRST)
    assert first.result(5) == FIRST
    assert not one.is_done()
    second = ask(one)
    assert one.wait(one.is_done, 5)
    assert asked(one)
    one.give(SECOND)
    assert second.result(5) == SECOND


def test_update_waits_for_the_agent(ask: Ask) -> None:
    """What is given while nobody asks goes to whoever asks next."""
    one = poller()
    one.give(FIRST)
    assert not one.is_done()
    assert ask(one).result(5) == FIRST
    assert not one.is_done()


def test_patience_ends_with_nothing(ask: Ask) -> None:
    """A request that is held for long is answered that nothing is there, and no turn ends."""
    one = poller(hold_s=0.01)
    assert ask(one).result(5).body == IDLE
    one.give(FIRST)
    assert ask(one).result(5) == FIRST
    assert not one.is_done()
    assert ask(one).result(5).body == IDLE
    assert one.is_done()


def test_newest_request_gets_the_update(ask: Ask) -> None:
    """A client that lost patience has asked anew: the old connection leads nowhere."""
    one = poller()
    old = ask(one)
    assert asked(one)
    new = ask(one)
    assert old.result(5).body == IDLE
    one.give(FIRST)
    assert new.result(5) == FIRST


class Bot(Hosted):
    """An agent that is looked after."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.answer = answer
        self.sent: list[tuple[int, Request]] = []
        self.is_dead = False

    def deliver(self, request: Request, *, turn: int) -> Answer:
        """Answer what is delivered."""
        self.sent.append((turn, request))
        assert self.answer is not None
        return self.answer

    def check(self, *, turn: int) -> None:
        """Say whether it has ended."""
        if self.is_dead:
            raise BadReplyError("agent_exited", f"ended in turn {turn}")

    def reply(self, text: str) -> str:
        """Be an agent."""
        return text


def courier(bot: object, *pollers: Poller, deadline_s: float = 5.0) -> tuple[Courier, list[Event]]:
    """Make a courier; give it, and the events that it writes."""
    events: list[Event] = []
    ways = Ways({one.request: one for one in pollers}, None)
    conversation = Conversation(bot)
    return (
        Courier(conversation, Recorder(events.append), ways=ways, deadline_s=deadline_s),
        events,
    )


UPDATE = Deliver("Hi.", 1, False, *GET.split(" "), {"A": "b"}, b"update")


def test_agent_that_polls_is_brought_a_turn(ask: Ask) -> None:
    """Its turn begins when it asks, and ends when it asks again; time passes for it too."""
    one = poller()
    brings, events = courier(Bot(), one)
    first = ask(one)
    brings.make_ready(UPDATE, number=1)
    bot = threading.Thread(target=lambda: (first.result(5), ask(one).result(5), ask(one)))
    bot.start()
    brings.bring(UPDATE, number=1)
    assert first.result(0) == Update({"A": "b"}, b"update")
    brings.make_ready(Advance(60), number=2)
    brings.bring(Advance(60), number=2)
    bot.join(5)
    assert [event.kind for event in events] == ["state"]
    one.give()


def test_agent_that_never_asks_is_given_up() -> None:
    """The reason says what one waited for; whoever has ended is not waited for."""
    brings, _ = courier(Bot(), poller(), deadline_s=0.01)
    with pytest.raises(BadReplyError, match=r"did not ask for its updates \(GET https") as caught:
        brings.make_ready(UPDATE, number=1)
    assert caught.value.code == "deadline"
    dead = Bot()
    dead.is_dead = True
    brings, _ = courier(dead, poller(), deadline_s=60)
    with pytest.raises(BadReplyError, match="ended in turn 4"):
        brings.make_ready(UPDATE, number=4)


def answer(status: int, data: bytes) -> Answer:
    """Make an answer of the agent's."""
    return Answer(status, "Reason", "text/plain", None, data)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b'{"ok": true}', {"json": {"ok": True}, "text": None, "size": 12}),
        (b"fine", {"json": None, "text": "fine", "size": 4}),
        (b"\xff", {"json": None, "text": None, "size": 1}),
        (b"x" * 100_001, {"json": None, "text": None, "size": 100_001}),
        (b"", {"json": None, "text": "", "size": 0}),
    ],
)
def test_answer_of_an_agent_is_recorded(data: bytes, told: dict[str, Any]) -> None:
    """What it answers may leak something, whoever reads it."""
    bot = Bot(answer(204, data))
    brings, events = courier(bot)
    hook = Deliver("Hi.", 1, False, "POST", "/hook", {"A": "b"}, b"body")
    brings.bring(hook, number=2)
    assert bot.sent == [(2, Request("POST", "/hook", {"A": "b"}, b"body"))]
    place = {"to": "agent", "turn": 1, "method": "POST", "url": "/hook", "status": 204}
    assert events[0].data == {**place, **told}


@pytest.mark.parametrize("status", [199, 302, 404, 500])
def test_refusal_fails_the_trial_and_is_recorded(status: int) -> None:
    """A sender of webhooks takes nothing but a success for an answer."""
    brings, events = courier(Bot(answer(status, b"no")))
    with pytest.raises(BadReplyError, match=f"answered POST /hook with status {status}") as caught:
        brings.bring(Deliver("", 1, False, "POST", "/hook"), number=1)
    assert caught.value.code == "delivery_refused"
    assert [event.data["status"] for event in events] == [status]


def test_agent_that_is_called_cannot_be_sent_anything() -> None:
    """That is no fault of the agent's."""
    brings, _ = courier(str.upper)
    with pytest.raises(AgentError, match="it is called, so no request can be delivered"):
        brings.bring(Deliver("", 1, False, "POST", "/hook"), number=1)


def watch(field: str = "text") -> tuple[ReplyWatch, Recorder, list[Event]]:
    """Listen to requests."""
    events: list[Event] = []
    recorder = Recorder(events.append)
    return ReplyWatch("POST */send", field, recorder=recorder), recorder, events


def request(url: str = "https://a.test/send", **more: Any) -> dict[str, Any]:
    """Make the data of a request."""
    return {"method": "POST", "url": url, "headers": {}, "json": None, "text": None, **more}


def test_requests_that_match_are_replies() -> None:
    """Each is one reply of the turn that began last; others say nothing."""
    replies, recorder, events = watch()
    replies.hear(request(json={"text": "up"}))  # before anybody spoke
    recorder.turn("a")
    replies.hear(request(json={"text": "one"}))
    replies.hear(request("https://a.test/other", json={"text": "x"}))
    replies.hear({**request(json={"text": "x"}), "method": "GET"})
    replies.hear(request(json={"text": "two"}))
    recorder.turn("b")
    replies.hear(request(json={"text": ""}))
    assert [turn.replies for turn in trace_of(events).turns] == [("one", "two"), ("",)]
    assert replies.finding() is None


@pytest.mark.parametrize(
    ("sent", "what"),
    [
        (request(json={"txt": "x"}), "no `text`"),
        (request(json={"text": 3}), "no text, but int, `text`"),
        (request(json=[1]), "no `text`"),
        (request(text="text=x"), "no `text`"),
    ],
)
def test_reply_without_a_text_fails_the_trial(sent: dict[str, Any], what: str) -> None:
    """It is recorded, and nothing that comes after makes it good."""
    replies, recorder, events = watch()
    recorder.turn("a")
    replies.hear(sent)
    replies.hear(request(json={"text": "x"}))
    reason = f"POST https://a.test/send: a reply with {what}"
    assert replies.finding() == Ending("failed", "bad_reply", reason)
    assert [event.kind for event in events] == ["turn", "fault", "reply"]


@pytest.mark.parametrize(
    ("sent", "field"),
    [
        (request(json={"a": {"b": ["x", "Hi."]}}), "a.b.1"),
        (request("https://a.test/send?text=Hi.&n=1"), "text"),
        (
            request(
                text="n=1&text=Hi.",
                headers={"content-type": "application/x-www-form-urlencoded; charset=utf-8"},
            ),
            "text",
        ),
    ],
)
def test_text_is_found_where_clients_put_it(sent: dict[str, Any], field: str) -> None:
    """In JSON, in a form, in a query."""
    assert text_of(sent, field) == "Hi."
    assert text_of(sent, "nothing") is None


@pytest.mark.parametrize("returned", [None, "text", Trace.from_calls(["look"])])
def test_what_is_returned_is_no_reply(returned: Any) -> None:
    """Where replies come out elsewhere an agent may return nothing, and may return something."""
    with Conversation(lambda _: returned) as conversation:
        assert without_replies(conversation, "Hi.").replies == ()


def test_what_is_returned_must_still_be_right() -> None:
    """Nothing is right; nonsense is not."""
    with (
        Conversation(lambda _: 3) as conversation,
        pytest.raises(BadReplyError, match="returned int"),
    ):
        without_replies(conversation, "Hi.")
