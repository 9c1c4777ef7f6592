"""How turns reach an agent that is not called: templates, and what is refused about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.errors import SuiteError
from evalkit.suite import Delivery, filled, suite_from_data

HOOK = {"http": "POST /hook", "json": {"id": "{update_id}", "message": {"text": "{text}"}}}
REPLIES = {"http": "POST */send", "field": "text"}
POLL = {**HOOK, "http": "GET https://api.example.test/updates"}
SERVED = {"http": {"serve": "bot:main", "port": 8080}}


def fill(delivery: dict[str, Any], text: str = "Hi.", update_id: int = 3) -> Any:
    """Fill in a template."""
    return filled(
        Delivery.model_validate(delivery), text=text, update_id=update_id, read=Path.read_bytes
    )


def suite(agent: Any = SERVED, **keys: Any) -> Any:
    """Load a suite of one scenario."""
    scenario = {"id": "a", "expect": {"log": {"contains": "x"}}, **keys}
    if "turns" not in scenario:
        scenario["input"] = "Hi."
    return suite_from_data({"suite": "s", "agent": agent, "scenarios": [scenario]})


def problems(agent: Any = SERVED, **keys: Any) -> list[str]:
    """Load a suite that is wrong and give what is said about it."""
    with pytest.raises(SuiteError) as caught:
        suite(agent, **keys)
    return [f"{one.key}: {one.message}" for one in caught.value.problems]


def test_a_number_of_its_own_becomes_a_number() -> None:
    """`"{update_id}"` alone is the number; inside of a text it is written."""
    body = fill({"http": "POST /a", "json": ["{update_id}", "no. {update_id}", {"a": True}]}).body
    assert json.loads(body) == [3, "no. 3", {"a": True}]


@pytest.mark.parametrize(
    ("template", "made"),
    [
        ("<{text}>", "<Hi.>"),
        ("{{text}} {text}", "{text} Hi."),
        ("{{update_id}}", "{update_id}"),
        ("{other} {}", "{other} {}"),
        ("{ text }", "{ text }"),
    ],
)
def test_braces_that_name_nothing_stay(template: str, made: str) -> None:
    """Two braces are a literal, and only the two names are filled in."""
    assert fill({"http": "POST /a", "text": template}).body.decode() == made
    assert json.loads(fill({"http": "POST /a", "json": {"k": template}}).body) == {"k": made}


@settings(deadline=None, max_examples=100)
@given(st.text())
def test_what_a_user_says_arrives_as_it_was_said(text: str) -> None:
    """Nothing that a user says is filled in, escaped or cut, also where it looks like a name."""
    said = json.loads(fill(HOOK, text).body)["message"]["text"]
    assert said == text
    form = {"http": "POST /a", "text": "Body={text}", "headers": {"content-type": FORM}}
    if text.isprintable() and not any("\ud800" <= char <= "\udfff" for char in text):
        from urllib.parse import parse_qs

        body = fill(form, text).body.decode()
        assert parse_qs(body, keep_blank_values=True) == {"Body": [text]}


FORM = "application/x-www-form-urlencoded"


def test_type_and_address_are_filled_in() -> None:
    """A body has a type unless the suite gives one; an address takes a text escaped."""
    assert fill(HOOK).headers == {"Content-Type": "application/json"}
    own = fill({**HOOK, "headers": {"content-type": "text/x", "X-Id": "{update_id}"}})
    assert own.headers == {"content-type": "text/x", "X-Id": "3"}
    asked = fill({"http": "GET /ask?q={text}&n={update_id}"}, "a&b c")
    assert (asked.address, asked.body, asked.headers) == ("/ask?q=a%26b%20c&n=3", b"", {})
    polled = fill({**POLL, "http": "GET https://api.example.test/*/{text}"})
    assert polled.address == "https://api.example.test/*/{text}"


def test_a_file_is_sent_as_it_is(tmp_path: Path) -> None:
    """An upload has the bytes of a fixture."""
    file = tmp_path / "cv.pdf"
    file.write_bytes(b"%PDF {text}")
    delivery = Delivery.model_validate({"http": "PUT /cv", "body_file": "cv.pdf"})
    sent = filled(delivery, text="x", update_id=1, read=lambda name: (tmp_path / name).read_bytes())
    assert sent.body == b"%PDF {text}"
    assert sent.headers == {"Content-Type": "application/octet-stream"}


def test_good_ways_load() -> None:
    """A webhook, a poll, an upload in a turn, a second delivery."""
    suite(deliver=HOOK, reply_from=REPLIES, expect={"replies": 1})
    suite({"http": {"serve": "bot:main"}}, deliver={**POLL, "idle": []})
    suite({"http": {"command": ["node", "bot.js"]}}, deliver=POLL)
    suite(
        deliver={**HOOK, "until": "reply"},
        reply_from=REPLIES,
        turns=[
            {"user": "a"},
            {"deliver": {"http": "PUT /cv", "text": "{{text}}"}},
            {"redeliver": 2, "expect": {"replies": 0}},
        ],
    )


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"deliver": {"http": "POST /a", "json": {"t": "{{text}}"}}}, "would not arrive"),
        ({"deliver": {"http": "POST a", "text": "{text}"}}, "must be a path of the agent's own"),
        ({"deliver": {"http": "* /a", "text": "{text}"}}, "its method and path have no `*`"),
        ({"deliver": {**HOOK, "idle": {}}}, "deliver.idle: answers an agent that polls"),
        ({"deliver": {**HOOK, "until": "reply"}}, "deliver.until: needs `reply_from`"),
        ({"deliver": {**HOOK, "text": "{text}"}}, "only one of json, text and body_file"),
        ({"deliver": {**HOOK, "headers": {"X-A": "{text}"}}}, "no header can hold"),
        ({"deliver": HOOK, "vars": {"update_id": "1"}}, "{update_id} is filled in by `deliver`"),
        ({"deliver": HOOK, "expect": {"reply": {"contains": "x"}}}, "expect.reply: the agent is"),
        ({"deliver": HOOK, "expect": {"replies": 0}}, "expect.replies: the agent is not called"),
        ({"deliver": HOOK, "forbid": {"reply": "x"}}, "forbid.reply: the agent is not called"),
        ({"reply_from": {"http": "POST /send", "field": "text"}}, "what the agent sends to others"),
        (
            {"turns": [{"deliver": {"http": "PUT /cv", "text": "{text}"}}]},
            "turns[0].deliver: nobody says anything",
        ),
        (
            {"turns": [{"user": "a"}, {"deliver": HOOK["http"]}]},
            "turns[1].deliver: must be a mapping",
        ),
        (
            {
                "turns": [
                    {"deliver": {"http": "PUT /cv"}},
                    {"user": "a"},
                    {"redeliver": 1, "expect": {"replies": 1}},
                ]
            },
            "turns[2].expect.replies: the agent is not called",
        ),
    ],
)
def test_what_cannot_work_is_refused(keys: dict[str, Any], words: str) -> None:
    """It is told before anything runs, with its place."""
    assert any(words in one for one in problems(**keys)), problems(**keys)


def test_replies_of_an_agent_that_is_called_need_no_source() -> None:
    """A scenario may call its agent, and send it something else as well."""
    keys: dict[str, Any] = {
        "turns": [{"user": "a", "expect": {"replies": 1}}, {"deliver": {"http": "PUT /cv"}}]
    }
    suite(**keys, expect={"reply": {"contains": "x"}})


@pytest.mark.parametrize(
    ("agent", "keys", "words"),
    [
        ("bot:main", {"deliver": HOOK}, "scenarios[0].deliver.http: needs an agent that listens"),
        ("bot:main", {"deliver": POLL}, "needs an agent that polls"),
        ({"http": {"serve": "bot:main"}}, {"deliver": HOOK}, "add `port`"),
        ({"http": {"command": ["x"]}}, {}, "agent.http: has no `port`, so it cannot be called"),
        (
            "bot:main",
            {"turns": [{"deliver": {"http": "PUT /cv"}}]},
            "scenarios[0].turns[0].deliver.http: needs an agent that listens",
        ),
        ({"http": {"serve": "bot:main", "command": ["x"], "port": 1}}, {}, "`command` or `serve`"),
        ({"http": {"serve": "bot"}}, {}, "agent.http.serve: must be module:name"),
    ],
)
def test_agent_that_cannot_be_reached_so_is_refused(
    agent: Any, keys: dict[str, Any], words: str
) -> None:
    """Each way needs an agent of its kind."""
    assert any(words in one for one in problems(agent, **keys)), problems(agent, **keys)


def test_place_of_a_shared_delivery_is_the_defaults(tmp_path: Path) -> None:
    """What all scenarios share is wrong where it is written."""
    data = {
        "suite": "s",
        "agent": "bot:main",
        "defaults": {"deliver": HOOK},
        "scenarios": [{"id": "a", "input": "x", "expect": {"tools": []}}],
    }
    with pytest.raises(SuiteError) as caught:
        suite_from_data(data, folder=tmp_path)
    assert [one.key for one in caught.value.problems] == ["defaults.deliver.http"]


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (
            {"a": {"when": {"sytem": "x"}, "steps": []}},
            "model.a.when.sytem: `when` cannot look at `sytem`. Did you mean `system`?",
        ),
        ({"a": {"when": {"zzz": "x"}, "steps": []}}, "`zzz`. It may look at system, user"),
    ],
)
def test_script_that_looks_at_nothing_is_refused(model: Any, words: str) -> None:
    """A request has some parts only; another name would end each trial."""
    assert any(words in one for one in problems("a:b", model=model))
