"""Tokens: the simple count, and what is read from the cache."""

from __future__ import annotations

from typing import Any

import pytest

LONG = "All about flights to Denver. " * 400
MARK = {"cache_control": {"type": "ephemeral"}}


def _claude(*messages: Any, system: Any = LONG, **extra: Any) -> dict[str, Any]:
    said = [{"role": "user", "content": text} for text in messages]
    return {"model": "m", "max_tokens": 9, "system": system, "messages": said, **extra}


def _usage(gateway: Any, body: Any) -> dict[str, int]:
    return gateway.post("/v1/messages", body).json["usage"]


def test_four_bytes_are_a_token(serve) -> None:
    """The count is that of the prompt's JSON and the answer's text, rounded up."""
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
    usage = _usage(serve([{"text": "x" * 401}]), body)
    assert usage["input_tokens"] == 8  # {"role":"user","content":"Hi"} is 30 bytes
    assert usage["output_tokens"] == 101


def test_streaming_does_not_change_the_count(serve) -> None:
    """The same prompt counts the same in both ways of asking."""
    gateway = serve([{"text": "a"}, {"text": "a"}])
    whole = _usage(gateway, _claude("Hi"))
    events = dict(gateway.post("/v1/messages", _claude("Hi", stream=True)).events)
    assert events["message_delta"]["usage"]["input_tokens"] == whole["input_tokens"]


def test_marked_prefix_is_written_once_and_then_read(serve) -> None:
    """Anthropic caches up to the mark; a mark that moves on reads what was written before."""
    gateway = serve([{"text": "a"}] * 3)
    marked = [{"type": "text", "text": LONG, **MARK}]
    first = _usage(gateway, _claude("Hi", system=marked))
    second = _usage(gateway, _claude("Hi", "And now?", system=marked))
    assert first["cache_creation_input_tokens"] > 1024
    assert first["cache_read_input_tokens"] == 0
    assert second["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    assert second["cache_creation_input_tokens"] == 0
    moved = _claude("Hi", "And now?", system=[{"type": "text", "text": LONG}])
    moved["messages"][1]["content"] = [{"type": "text", "text": "And now?", **MARK}]
    third = _usage(gateway, moved)
    assert third["cache_read_input_tokens"] == first["cache_creation_input_tokens"]
    assert third["input_tokens"] == 0


@pytest.mark.parametrize(
    "body",
    [_claude("Hi"), _claude("Hi", model="other", **MARK)],
    ids=["unmarked", "other model"],
)
def test_nothing_is_read_that_was_not_cached(serve, body: Any) -> None:
    """Without a mark, or of another model, nothing comes from the cache."""
    gateway = serve([{"text": "a"}] * 2)
    _usage(gateway, _claude("Hi", **MARK))
    assert _usage(gateway, body)["cache_read_input_tokens"] == 0


def test_short_prompts_are_not_cached(serve) -> None:
    """Below 1,024 tokens a mark does nothing, however often the prompt comes."""
    gateway = serve([{"text": "a"}] * 2)
    for _ in range(2):
        usage = _usage(gateway, _claude("Hi", system="short", **MARK))
        assert usage["cache_read_input_tokens"] == usage["cache_creation_input_tokens"] == 0


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/responses"])
def test_openai_caches_by_itself_in_steps_of_128(serve, path: str) -> None:
    """OpenAI needs no mark, and counts what is cached as part of the input."""
    gateway = serve([{"text": "a"}] * 2)
    system = {"role": "system", "content": LONG}
    messages = [system, {"role": "user", "content": "Hi"}]
    key = "input" if path.endswith("responses") else "messages"
    for _ in range(2):
        usage = gateway.post(path, {"model": "m", key: messages}).json["usage"]
    details = usage.get("prompt_tokens_details") or usage["input_tokens_details"]
    total = usage.get("prompt_tokens") or usage["input_tokens"]
    assert details["cached_tokens"] % 128 == 0
    assert 1024 < details["cached_tokens"] <= total
    recorded = gateway.trace.model_calls[1].usage
    assert (recorded.input_tokens, recorded.cache_read_tokens) == (total, details["cached_tokens"])
