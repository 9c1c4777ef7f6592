"""Requests of any shape: read, or refused with a sentence; never an error of ours."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.gateway import Endpoint
from evalkit.serving.http1 import HttpRequest

WORDS = re.findall(
    r"\w+",
    "model messages input role content type text tool_use tool_result tool_calls function name "
    "arguments id call_id tools tool_choice stream system instructions response_format output "
    "function_call function_call_output user tool assistant developer cache_control json_schema "
    "output_config format required any stream_options include_usage",
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5)
    ),
    max_leaves=25,
)
BODIES = st.fixed_dictionaries(
    {"model": st.just("m") | VALUES},
    optional={word: VALUES for word in WORDS if word != "model"}
    | {"messages": st.lists(st.dictionaries(st.sampled_from(WORDS), VALUES), max_size=4)},
)


@settings(deadline=None, max_examples=100)
@given(
    BODIES,
    st.sampled_from(["/messages", "/chat/completions", "/responses"]),
    st.sampled_from([{"text": "x"}, {"json": {"a": 1}}, {"fault": "wrong_tool"}]),
)
def test_any_body_is_answered_or_refused(body: Any, path: str, step: Any) -> None:
    """Whatever JSON an agent sends gets a 200 or a 400 in JSON, and is recorded as it came."""
    prompts: list[Any] = []

    def record(kind: str, data: Any, *, span: str = "") -> None:
        prompts.extend([data["prompt"]] if kind == "model_call" else [])

    endpoint = Endpoint([{"": {"steps": [step]}}], record)
    content = json.dumps(body).encode()
    delivery = endpoint.answer(HttpRequest("POST", path, {}, content, keeps_open=True))
    assert delivery.status in (200, 400)
    if delivery.frames is None:
        json.loads(delivery.body)
    if delivery.status == 200 or "path" not in prompts[0]:  # answered, or no answer is possible
        assert prompts == [{key: body[key] for key in body if key not in ("model", "stream")}]
    else:
        assert json.loads(prompts[0]["body"]) == body


@pytest.mark.parametrize("path", ["/messages", "/chat/completions"])
def test_images_stand_in_the_text_by_their_type(serve, path: str) -> None:
    """A `when` on the user's text sees that there was more than text."""
    content = [{"type": "text", "text": "Look:"}, {"type": "image", "source": {}}]
    script = {"s": {"when": {"user": "Look:\n[image]"}, "steps": [{"text": "A cat."}]}}
    gateway = serve(script)
    body = {"model": "m", "messages": [{"role": "user", "content": content}]}
    assert gateway.post(path, body).status == 200


def test_results_of_tools_are_not_what_the_user_said(serve) -> None:
    """`user` is the last text of the user, also while tools answer."""
    script = {"s": {"when": {"user": "Book it."}, "steps": [{"text": "Done."}]}}
    gateway = serve(script)
    messages = [
        {"role": "user", "content": "Book it."},
        {"role": "assistant",
         "content": [{"type": "tool_use", "id": "t", "name": "book", "input": {}}]},
        {"role": "user",
         "content": [{"type": "tool_result", "tool_use_id": "t", "content": "ok"}]},
    ]  # fmt: skip
    assert gateway.post("/v1/messages", {"model": "m", "messages": messages}).status == 200


_ASKED_HALF = [
    pytest.param(
        "/v1/messages",
        "messages",
        [
            {"role": "user", "content": "Book it."},
            {"role": "assistant",
             "content": [{"type": "tool_use", "id": "t1", "name": "book", "input": {}}]},
        ],
        [{"role": "user",
          "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "ok"}]}],
        id="anthropic",
    ),
    pytest.param(
        "/v1/chat/completions",
        "messages",
        [
            {"role": "user", "content": "Book it."},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "t1", "type": "function",
                 "function": {"name": "book", "arguments": "{}"}}]},
        ],
        [{"role": "tool", "tool_call_id": "t1", "content": "ok"}],
        id="chat",
    ),
    pytest.param(
        "/v1/responses",
        "input",
        [
            {"role": "user", "content": "Book it."},
            {"type": "function_call", "call_id": "t1", "name": "book", "arguments": "{}"},
        ],
        [{"type": "function_call_output", "call_id": "t1", "output": "ok"}],
        id="responses",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("path", "key", "asked", "returned"), _ASKED_HALF)
def test_a_call_and_its_result_belong_together(
    serve, path: str, key: str, asked: list[Any], returned: list[Any]
) -> None:
    """A call without a result, or a result without its call, is refused as by a provider."""
    user = {"role": "user", "content": "Well?"}
    for half, words in ((asked, "without its result"), (asked[:1] + returned, "does not hold")):
        gateway = serve({"s": {"steps": [{"text": "Done."}]}})
        answer = gateway.post(path, {"model": "m", key: [*half, user]})
        assert answer.status == 400
        assert words in answer.body.decode()
        codes = [finding.code for finding in gateway.endpoint.finish()]
        assert codes == ["bad_request", "left_over_steps"]
    gateway = serve({"s": {"steps": [{"text": "Done."}]}})
    assert gateway.post(path, {"model": "m", key: [*asked, *returned, user]}).status == 200


@pytest.mark.parametrize(("path", "key", "asked", "returned"), _ASKED_HALF)
def test_an_id_that_comes_again_needs_a_result_again(
    serve, path: str, key: str, asked: list[Any], returned: list[Any]
) -> None:
    """An old result does not answer a new call, and a result never comes before its call."""
    again = [*asked, *returned, *asked]
    early = [asked[0], *returned, *asked[1:]]
    for torn in (again, early):
        gateway = serve({"s": {"steps": [{"text": "Done."}]}})
        assert gateway.post(path, {"model": "m", key: torn}).status == 400
        assert gateway.endpoint.finish()[0].code == "bad_request"
    gateway = serve({"s": {"steps": [{"text": "Done."}]}})
    taken = gateway.post(path, {"model": "m", key: [*again, *returned]}).status == 200
    assert taken is ("messages" not in path)  # Anthropic wants ids that never come again


@pytest.mark.parametrize(("path", "key", "asked", "returned"), _ASKED_HALF)
def test_nothing_may_come_between_a_call_and_its_result(
    serve, path: str, key: str, asked: list[Any], returned: list[Any]
) -> None:
    """Where a provider wants results right after their calls, words in between are refused."""
    gateway = serve({"s": {"steps": [{"text": "Done."}]}})
    parted = [*asked, {"role": "user", "content": "Well?"}, *returned]
    is_free = "responses" in path
    assert gateway.post(path, {"model": "m", key: parted}).status == (200 if is_free else 400)


def test_results_may_come_alone_where_the_provider_keeps_the_history(serve) -> None:
    """A response that continues another one brings only what is new."""
    gateway = serve({"s": {"steps": [{"text": "Done."}]}})
    body = {
        "model": "m",
        "previous_response_id": "resp_1",
        "input": [{"type": "function_call_output", "call_id": "t1", "output": "ok"}],
    }
    assert gateway.post("/v1/responses", body).status == 200
