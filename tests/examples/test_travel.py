"""The travel agent against a stand-in for the provider, which shares no code with evalkit."""

from __future__ import annotations

import ast
import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, get_args

import pytest

pytest.importorskip("anthropic", reason="needs the extra `examples`")

from evalkit import shipped
from evalkit.examples import travel
from evalkit.examples.travel.assistant import MAX_STEPS, MODEL, TravelAgent
from evalkit.examples.travel.tools import TOOLS, run_tool
from evalkit.examples.travel.world import Booking, NotPossible, World
from evalkit.suite import Suite
from evalkit.suite.loading import parse_suite
from evalkit.suite.model_script import FaultName, FaultStep

JSON = Any
Answer = Callable[["Handler"], None]
BOOK = {"flight_id": "AA123", "date": "Friday"}
BOTH = pytest.mark.parametrize("make", [travel.agent, travel.agent_streaming])


# --- the stand-in -----------------------------------------------------------------------


class Provider(ThreadingHTTPServer):
    """Gives one prepared answer after the other, and keeps what it was sent."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list[Answer] = []
        self.requests: list[dict[str, JSON]] = []
        self.over = threading.Event()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients may go whenever they like."""


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    server: Provider

    def do_POST(self) -> None:
        """Keep the request and give the next answer."""
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.requests.append({"path": self.path, **json.loads(body)})
        self.server.answers.pop(0)(self)

    def log_message(self, *_: object) -> None:
        """Print nothing."""

    def begin(self, kind: str, *framing: str, status: int = 200) -> None:
        """Send the head of an answer."""
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header(*framing)
        self.end_headers()

    def send_body(self, body: bytes, *, status: int = 200) -> None:
        """Send a whole answer."""
        self.begin("application/json", "content-length", str(len(body)), status=status)
        self.wfile.write(body)


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """Start a stand-in that the SDK finds; clients give up at once unless told otherwise."""
    server = Provider()
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("ANTHROPIC_BASE_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "not-a-key")
    monkeypatch.setenv("TRAVEL_MAX_RETRIES", "0")
    yield server
    server.over.set()
    server.shutdown()
    server.server_close()


def text(said: str) -> dict[str, JSON]:
    """Write a block of text."""
    return {"type": "text", "text": said}


def use(name: str, args: dict[str, JSON], use_id: str = "t1") -> dict[str, JSON]:
    """Write a request for a tool."""
    return {"type": "tool_use", "id": use_id, "name": name, "input": args}


def message(*content: dict[str, JSON], stop: str | None = "") -> dict[str, JSON]:
    """Write a message of the model."""
    wants_tools = any(block["type"] == "tool_use" for block in content)
    return {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": MODEL,
        "content": list(content),
        "stop_reason": ("tool_use" if wants_tools else "end_turn") if stop == "" else stop,
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def answer(*content: dict[str, JSON], stop: str | None = "") -> Answer:
    """Give a message, streamed or not, as the client asks."""
    whole = message(*content, stop=stop)

    def give(handler: Handler) -> None:
        if handler.server.requests[-1].get("stream"):
            send_events(handler, list(events(whole)))
        else:
            handler.send_body(json.dumps(whole).encode())

    return give


def events(whole: dict[str, JSON], cut: str = "") -> Iterator[dict[str, JSON]]:
    """Write a message as the events of a stream; ``cut`` is sent in place of tool arguments."""
    yield {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for index, block in enumerate(whole["content"]):
        is_text = block["type"] == "text"
        bare = {**block, "text": ""} if is_text else {**block, "input": {}}
        yield {"type": "content_block_start", "index": index, "content_block": bare}
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if is_text
            else {"type": "input_json_delta", "partial_json": cut or json.dumps(block["input"])}
        )
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": stop, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def send_events(handler: Handler, sent: list[dict[str, JSON]], *, end: bool = True) -> None:
    """Stream events; without an end the connection breaks after the last."""
    handler.begin("text/event-stream", "transfer-encoding", "chunked")
    for event in sent:
        frame = f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()
        handler.wfile.write(b"%x\r\n%s\r\n" % (len(frame), frame))
    if end:
        handler.wfile.write(b"0\r\n\r\n")
    else:
        handler.close_connection = True


def streamed(whole: dict[str, JSON], *, n: int, end: bool = True) -> Answer:
    """Give only the first events of a message."""
    return lambda handler: send_events(handler, list(events(whole))[:n], end=end)


def streamed_cut(whole: dict[str, JSON], raw: str) -> Answer:
    """Give a whole stream whose tool arguments are cut off."""
    return lambda handler: send_events(handler, list(events(whole, raw)))


def status(code: int, *, retry_at_once: bool = False) -> Answer:
    """Give an error."""

    def give(handler: Handler) -> None:
        body = json.dumps({"type": "error", "error": {"type": "x", "message": "y"}}).encode()
        handler.send_response(code)
        handler.send_header("content-length", str(len(body)))
        if retry_at_once:
            handler.send_header("retry-after-ms", "1")
        handler.end_headers()
        handler.wfile.write(body)

    return give


def body(raw: bytes) -> Answer:
    """Give bytes as an answer."""
    return lambda handler: handler.send_body(raw)


def hang_up(handler: Handler) -> None:
    """Close the connection without an answer."""
    handler.close_connection = True


def say_nothing(handler: Handler) -> None:
    """Let the client wait until the test is over."""
    handler.server.over.wait(10)
    handler.close_connection = True


def converse(provider: Provider, *answers: Answer, make: type[TravelAgent]) -> TravelAgent:
    """Prepare answers and an agent that gets them."""
    provider.answers = list(answers)
    return make()


def one_reply(
    provider: Provider,
    *answers: Answer,
    make: type[TravelAgent] = travel.agent_streaming,
    said: str = "Book AA123 for Friday.",
) -> tuple[str, list[Booking]]:
    """Say one thing, and give the reply and the bookings."""
    agent = converse(provider, *answers, make=make)
    with contextlib.closing(agent):
        return agent.reply(said), agent.world.bookings


# --- what goes well ---------------------------------------------------------------------


@BOTH
def test_agent_runs_the_tools_that_the_model_asks_for(
    provider: Provider, make: type[TravelAgent]
) -> None:
    """Asked for a booking, it books, tells the model, and passes the model's words on."""
    reply, bookings = one_reply(
        provider, answer(use("book", BOOK)), answer(text("Booked.")), make=make
    )
    assert (reply, bookings) == ("Booked.", [Booking("AA123", "Friday")])
    first, second = provider.requests
    assert first["path"] == "/v1/messages"
    assert (first["model"], [tool["name"] for tool in first["tools"]]) == (
        MODEL,
        ["search", "get_weather", "book"],
    )
    assert "book only if it holds" in first["system"]
    (result,) = second["messages"][-1]["content"]
    assert result == {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": "Booked AA123 for Friday; this is booking number 1.",
    }


@BOTH
def test_parallel_tools_are_answered_each_to_its_own_call(
    provider: Provider, make: type[TravelAgent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results of tools asked for together go back in one message, under their own ids."""
    monkeypatch.setenv("TRAVEL_RAINY_CITIES", "Seattle, Boston")
    asked = [use("get_weather", {"city": city}, city) for city in ("Denver", "Seattle", "Atlantis")]
    one_reply(provider, answer(*asked), answer(text("So it is.")), make=make)
    results = provider.requests[1]["messages"][-1]["content"]
    assert [(one["tool_use_id"], one["content"], one.get("is_error")) for one in results] == [
        ("Denver", "It is clear in Denver.", None),
        ("Seattle", "It is raining in Seattle.", None),
        ("Atlantis", "There is no weather station in Atlantis.", True),
    ]


@BOTH
def test_conversation_is_remembered_also_after_a_failure(
    provider: Provider, make: type[TravelAgent]
) -> None:
    """Each request carries all that was said, users and model in turn."""
    answers = [
        answer(use("search", {"destination": "Seattle"})), status(500),
        answer(text("AA315.")),
    ]  # fmt: skip
    agent = converse(provider, *answers, make=make)
    with contextlib.closing(agent):
        assert "could not finish" in agent.reply("What flies to Seattle?")
        assert agent.reply("Well?") == "AA315."
    told = provider.requests[-1]["messages"]
    assert [one["role"] for one in told] == ["user", "assistant"] * 2 + ["user"]
    assert (told[0]["content"], told[-1]["content"]) == ("What flies to Seattle?", "Well?")
    assert "could not finish" in told[3]["content"]


@pytest.mark.parametrize("code", [429, 529, 500])
@BOTH
def test_retries_are_left_to_the_sdk(
    provider: Provider, make: type[TravelAgent], code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is over after two more attempts is not even noticed."""
    monkeypatch.delenv("TRAVEL_MAX_RETRIES")
    failing = [status(code, retry_at_once=True)] * 2
    reply, _ = one_reply(provider, *failing, answer(text("Here I am.")), make=make)
    assert reply == "Here I am."


# --- what goes wrong --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        (status(429), "the model gets too many requests at the moment"),
        (status(529), "the model is overloaded at the moment"),
        (status(503), "the model is overloaded at the moment"),
        (status(500), "the model's service reported an error (500)"),
        (status(401), "the model's service reported an error (401)"),
        (hang_up, "the connection to the model was lost"),
        (answer(text("No."), stop="refusal"), "the model declined to answer"),
        (answer(text("So"), stop="max_tokens"), "the model's answer was too long and was cut off"),
        (answer(use("book", BOOK), stop="max_tokens"),
         "the model's answer was too long and was cut off"),
        (answer(text(" ")), "the model gave an empty answer"),
        (answer(), "the model gave an empty answer"),
    ],
)  # fmt: skip
@BOTH
def test_failure_is_told_and_no_booking_claimed(
    provider: Provider, make: type[TravelAgent], fault: Answer, told: str
) -> None:
    """The user learns why there is no answer, and that nothing was booked."""
    reply, bookings = one_reply(provider, fault, make=make)
    assert reply == f"Sorry, I could not finish this: {told}. I did not book anything."
    assert bookings == []
    assert len(provider.requests) == 1


WEATHER = message(text("It is clear in Denver."))
WANTS_BOOK = message(use("book", BOOK))


@pytest.mark.parametrize(
    ("make", "fault", "told"),
    [
        (travel.agent, body(b'{"id": "m1", "content'), "could not be read"),
        (travel.agent, body(json.dumps({**WEATHER, "stop_reason": None}).encode()), "broke off"),
        (travel.agent_streaming, streamed(WEATHER, n=3, end=False), "connection"),
        (travel.agent_streaming, streamed(WEATHER, n=3), "broke off"),
        (travel.agent_streaming, streamed(WEATHER, n=1), "broke off"),
        (travel.agent_streaming, streamed(WANTS_BOOK, n=3), "broke off"),
        (travel.agent_streaming, streamed(WANTS_BOOK, n=4), "broke off"),
    ],
)
def test_half_an_answer_is_never_acted_on(
    provider: Provider, make: type[TravelAgent], fault: Answer, told: str
) -> None:
    """What breaks off, with a bang or cleanly, is neither passed on nor run."""
    reply, bookings = one_reply(provider, fault, make=make)
    assert told in reply
    assert reply.endswith("I did not book anything.")
    assert bookings == []


def test_unreadable_stream_is_told(provider: Provider) -> None:
    """An event that is no JSON is no crash."""

    def broken(handler: Handler) -> None:
        frame = b'event: message_start\ndata: {"type": "mess\n\n'
        handler.begin("text/event-stream", "content-length", str(len(frame)))
        handler.wfile.write(frame)

    reply, _ = one_reply(provider, broken)
    assert "could not be read" in reply


@BOTH
def test_silence_ends_with_the_agents_patience(
    provider: Provider, make: type[TravelAgent], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model that does not answer is told as such."""
    monkeypatch.setenv("TRAVEL_TIMEOUT_S", "0.1")
    reply, _ = one_reply(provider, say_nothing, make=make)
    assert "the model did not answer in time" in reply


@BOTH
def test_booking_made_before_a_failure_is_told(provider: Provider, make: type[TravelAgent]) -> None:
    """Whoever heard "not booked" would book twice."""
    two = [use("book", BOOK, "a"), use("book", {"flight_id": "AA310", "date": "Monday"}, "b")]
    reply, _ = one_reply(provider, answer(*two), status(500), make=make)
    assert reply.endswith("Before that I booked AA123 for Friday and AA310 for Monday.")


def test_booking_of_an_earlier_message_is_not_told_again(provider: Provider) -> None:
    """What was booked counts for the message that asked for it."""
    answers = [answer(use("book", BOOK)), answer(text("Booked.")), status(500)]
    agent = converse(provider, *answers, make=travel.agent)
    with contextlib.closing(agent):
        agent.reply("Book AA123 for Friday.")
        assert agent.reply("Another one.").endswith("I did not book anything.")


@pytest.mark.parametrize(
    ("name", "raw", "told"),
    [
        ("book", '{"flight_id": "AA1', "missing flight_id, date"),
        ("book", '{"flight_id": "AA123", "da', "missing date"),
        ("get_weather", '{"city": "Den', "missing city"),
        ("search", "{", "missing destination"),
        ("cancel", '{"flight_id": "AA1', "There is no tool cancel"),
    ],
)
def test_tool_is_not_run_on_truncated_arguments(
    provider: Provider, name: str, raw: str, told: str
) -> None:
    """What the SDK makes of half of the JSON lacks arguments; the model is told which."""
    cut = streamed_cut(message(use(name, {})), raw)
    reply, bookings = one_reply(provider, cut, answer(text("I could not do that.")))
    assert (reply, bookings) == ("I could not do that.", [])
    (result,) = provider.requests[1]["messages"][-1]["content"]
    assert result["is_error"]
    assert told in result["content"]


def test_agent_stops_a_model_that_goes_round_in_circles(provider: Provider) -> None:
    """After the most steps for one message the user hears of it."""
    asked = answer(use("search", {"destination": "coast"}))
    reply, _ = one_reply(provider, *[asked] * (MAX_STEPS + 1))
    assert f"I needed more than {MAX_STEPS} steps" in reply
    assert len(provider.requests) == MAX_STEPS


# --- tools and world --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "args", "result"),
    [
        ("search", {"destination": "seattle"}, "AA315 to Seattle, $129\nAA310 to Seattle, $189"),
        ("search", {"destination": "the coast"}, "AA420 to San Diego, $99\nAA315 to Seattle, $129\n"
         "AA310 to Seattle, $189\nAA999 to Boston, $279"),
        ("search", {"destination": "Atlantis"}, "There are no flights to Atlantis."),
        ("get_weather", {"city": "Denver", "unit": "F"}, "It is clear in Denver."),
        ("book", BOOK, "Booked AA123 for Friday; this is booking number 1."),
    ],
)  # fmt: skip
def test_tool_says_what_it_found_or_did(name: str, args: dict[str, JSON], result: str) -> None:
    """A tool gives a text for the model; arguments that nobody declared are ignored."""
    assert run_tool(World(), name, args) == result


@pytest.mark.parametrize(
    ("name", "args", "problem"),
    [
        ("book", {"flight_id": "AA777", "date": "Friday"}, "no flight AA777. Nothing was booked"),
        ("book", {"flight_id": "", "date": "Friday"}, "missing flight_id"),
        ("book", {"flight_id": 123, "date": None}, "missing flight_id, date"),
        ("get_weather", {"city": "Atlantis"}, "no weather station in Atlantis"),
        ("Book", BOOK, "no tool Book; there are search, get_weather, book"),
    ],
)
def test_tool_that_cannot_do_it_says_so(name: str, args: dict[str, JSON], problem: str) -> None:
    """What is impossible or not fully said is refused, and changes nothing."""
    world = World()
    with pytest.raises(NotPossible, match=problem):
        run_tool(world, name, args)
    assert world.bookings == []


def test_every_declared_tool_can_be_run() -> None:
    """The model is offered no tool that the agent does not have."""
    args = {"destination": "coast", "city": "Denver", **BOOK}
    assert all(run_tool(World(), tool["name"], args) for tool in TOOLS)


def test_each_conversation_has_a_world_of_its_own(provider: Provider) -> None:
    """Bookings of one user are nothing to another."""
    with contextlib.closing(travel.agent()) as one, contextlib.closing(travel.agent()) as other:
        one.world.book("AA123", "Friday")
        assert other.world.bookings == []


# --- the agent knows nothing of evalkit, and the suites ----------------------------------


def test_agent_is_an_ordinary_agent() -> None:
    """No module of it imports evalkit: what is tested is what would be deployed."""
    sources = list(Path(travel.__file__).parent.glob("*.py"))
    assert len(sources) >= 4
    for source in sources:
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            assert not [name for name in names if name.split(".")[0] == "evalkit"], source


@pytest.fixture(scope="module")
def faults() -> Suite:
    """Load the suite of what goes wrong."""
    return parse_suite(shipped.suite("travel_faults"))


@pytest.mark.parametrize("fault", get_args(FaultName))
def test_suite_has_a_journey_for_each_fault(faults: Suite, fault: str) -> None:
    """Every fault has its scenario, named like it, which says something of tools and reply."""
    scenario = faults.scenario(fault.replace("_", "-"))
    scripts = [script for turn in scenario.turns for script in turn.model.scripts.values()]  # type: ignore[union-attr]
    steps = [step for script in scripts for step in script.steps]
    assert [step.fault for step in steps if isinstance(step, FaultStep)] == [fault]
    assert scenario.expect is not None
    assert scenario.expect.tools is not None
    assert scenario.expect.reply is not None


@pytest.mark.parametrize(
    ("suite", "agent"), [("travel", "agent"), ("travel_faults", "agent_streaming")]
)
def test_suites_are_scripted_and_name_the_agent(suite: str, agent: str) -> None:
    """Both suites can run in the contract lane as they are."""
    loaded = parse_suite(shipped.suite(suite))
    assert loaded.agent_path == f"evalkit.examples.travel:{agent}"
    assert all(scenario.is_scripted for scenario in loaded)
