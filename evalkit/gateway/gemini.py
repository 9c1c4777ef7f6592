"""Google's Gemini API, ``generateContent``: translation, nothing else.

The model, and whether the answer is a stream, stand in the path and not in the body:
``wires`` hands them over as ``model`` and ``stream``. Names are read as Google reads
them, in camel case or with underscores. Function calls may come without ids: a
response belongs to the first call of that name that waits for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, Final

from evalkit.gateway.canonical import (
    Asked,
    BadRequest,
    Message,
    ModelAnswer,
    ModelRequest,
    Returned,
    Stamp,
    Tokens,
    Tool,
    ToolChoice,
    ToolUse,
)
from evalkit.gateway.frames import Frame, Framing, pieces
from evalkit.gateway.reading import (
    as_count,
    as_object,
    as_text,
    forced,
    listed,
    model_of,
    objects,
    paired,
    role_of,
    stops_of,
)
from evalkit.ledger import JSON
from evalkit.serving.jsontext import to_text

name: Final = "gemini"
tool_prefix: Final = "call"
request_header: Final = ""
overloaded_status: Final = 503
carries_cut_args: Final = False

_ROLES: Final = ("user", "model", "function")
_TOOLS: Final = ("functionCall", "functionResponse")
_BESIDE: Final = (
    "thought", "thoughtSignature", "videoMetadata", "mediaResolution", "partMetadata",
)  # fmt: skip
"""Keys of a part that say something about it, and are not what it holds."""
_VALUES: Final = ("output", "result")
"""Under which the API and its SDK wrap what a function gave."""
_SIGNATURE: Final = "c2NyaXB0ZWQ="
_BLOCKED: Final = {
    "category": "HARM_CATEGORY_DANGEROUS_CONTENT",
    "probability": "HIGH",
    "blocked": True,
}
_ERRORS: Final[Mapping[int, str]] = {
    400: "INVALID_ARGUMENT",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
_UNDERSCORE: Final = re.compile(r"_(.)")


def read(body: Mapping[str, JSON]) -> ModelRequest:
    """Read the body of a request, with ``model`` and ``stream`` from its path.

    Raises
    ------
    BadRequest
        If nothing could be answered to it.
    """
    asked = _asked(body)
    contents = [_content(content) for content in listed(asked, "contents")]
    said = [_message(content) for content in contents]
    system = as_object(asked.get("systemInstruction"))
    config = as_object(asked.get("generationConfig"))
    tools = tuple(_tools(asked.get("tools")))
    calling = _camel(as_object(asked.get("toolConfig")).get("functionCallingConfig"))
    choice, allowed = _choice(calling), _allowed(calling)
    offered = [tool for tool in tools if tool.name in allowed] if allowed else tools
    prompt = (asked.get("tools"), asked.get("systemInstruction"), *contents)
    framing: Framing = "array" if body.get("stream") == "array" else "sse"
    return ModelRequest(
        wire=name,
        model=model_of(body),
        system=_text_of(_parts(system)) if system else "",
        messages=tuple(said),
        history=paired(_history(contents)),
        tools=tools,
        stream=bool(body.get("stream")),
        framing=framing,
        max_tokens=as_count(config.get("maxOutputTokens")),
        wants_json=config.get("responseMimeType") == "application/json",
        schema=config.get("responseJsonSchema") or config.get("responseSchema"),
        tool_choice=choice,
        stops=stops_of(config.get("stopSequences")),
        forced_tool=forced(None, must=choice == "required", tools=offered),
        allowed_tools=allowed,
        pieces=prompt,
        n_cached=len(prompt),
        raw=body,
    )


def _asked(body: Mapping[str, JSON]) -> Mapping[str, Any]:
    """Give what is asked, names brought to one case; counting may wrap it once more."""
    asked = _camel(body)
    asked = _camel(asked.get("generateContentRequest")) or asked
    inner: dict[str, Any] = {
        key: _camel(asked[key]) for key in ("generationConfig", "toolConfig") if key in asked
    }
    return {**asked, **inner}


def _camel(value: JSON) -> dict[str, Any]:
    """Write an object's own names in camel case; an empty one in place of anything else."""
    return {
        _UNDERSCORE.sub(lambda found: found[1].upper(), key): item
        for key, item in as_object(value).items()
    }


def _content(content: Mapping[str, JSON]) -> dict[str, Any]:
    """Check one content; without a role it is the user's."""
    parts = content.get("parts")
    if not isinstance(parts, list) or not parts:
        raise BadRequest("a content has no `parts`; a provider wants at least one in each")
    if not all(isinstance(part, Mapping) and _kind(_camel(part)) for part in parts):
        raise BadRequest("a part of a content holds nothing; a provider wants text or other data")
    return {**content, "role": content.get("role") or "user", "parts": parts}


def _kind(part: Mapping[str, JSON]) -> str:
    return next((key for key in part if key not in _BESIDE), "")


def _parts(content: Mapping[str, JSON]) -> list[dict[str, Any]]:
    return [_camel(part) for part in objects(content.get("parts"))]


def _message(content: Mapping[str, JSON]) -> Message:
    said = [part for part in _parts(content) if _kind(part) not in _TOOLS]
    return Message(role_of(content, _ROLES), _text_of(said))


def _text_of(parts: Sequence[Mapping[str, JSON]]) -> str:
    shown = [part for part in parts if part.get("thought") is not True]
    return "\n".join(
        as_text(part["text"]) if "text" in part else f"[{_kind(part)}]" for part in shown
    )


def _tools(tools: JSON) -> Iterator[Tool]:
    """Give the functions that are declared; what Google runs itself is never asked for."""
    for tool in objects(tools):
        for declared in objects(_camel(tool).get("functionDeclarations")):
            function = _camel(declared)
            schema = function.get("parametersJsonSchema") or function.get("parameters")
            yield Tool(as_text(function.get("name")), schema)


def _choice(calling: Mapping[str, JSON]) -> ToolChoice:
    mode = as_text(calling.get("mode")).upper()
    if mode == "NONE":
        return "none"
    return "required" if mode == "ANY" else "auto"


def _allowed(calling: Mapping[str, JSON]) -> tuple[str, ...]:
    names = calling.get("allowedFunctionNames")
    return tuple(map(as_text, names)) if isinstance(names, list) else ()


def _history(contents: Sequence[Mapping[str, JSON]]) -> Iterator[Asked | Returned | None]:
    """Give calls and results; in between, of what the user says, nothing but that it is there.

    What the model says may stand in several contents, as its stream came.
    """
    waiting: list[Asked] = []
    numbers = count(1)
    before = ""
    for content in contents:
        role, parts = content["role"], _parts(content)
        if role == "model" and before != "model":
            yield None
        results = [part for part in parts if _kind(part) == "functionResponse"]
        yield from (_returned(_camel(part["functionResponse"]), waiting) for part in results)
        if role != "model" and len(results) < len(parts):
            yield None
        for part in parts:
            if _kind(part) == "functionCall":
                waiting.append(_call(_camel(part["functionCall"]), numbers))
                yield waiting[-1]
        before = role


def _call(call: Mapping[str, JSON], numbers: Iterator[int]) -> Asked:
    number = next(numbers)
    id_ = as_text(call.get("id")) or f"call {number} of the request"
    return Asked(id_, as_text(call.get("name")), call.get("args") or {})


def _returned(response: Mapping[str, JSON], waiting: list[Asked]) -> Returned:
    """Find the call that a response answers: by its id, else by its name, the first of it."""
    id_, name_ = as_text(response.get("id")), as_text(response.get("name"))
    call = next((one for one in waiting if (one.id == id_ if id_ else one.name == name_)), None)
    if call is not None:
        waiting.remove(call)
        id_ = call.id
    return Returned(id_ or name_, *_given(response))


def _given(response: Mapping[str, JSON]) -> tuple[JSON, Any]:
    """Give what a function gave, and whether it went well."""
    given = response.get("response")
    if response.get("parts") or not isinstance(given, Mapping) or len(given) != 1:
        return (dict(response) if response.get("parts") else given), "ok"
    [(key, value)] = given.items()
    if key == "error":
        return value, "error"
    return (value if key in _VALUES else given), "ok"


def whole(answer: ModelAnswer, request: ModelRequest, stamp: Stamp) -> dict[str, JSON]:
    """Write an answer as one body."""
    said = [*_thoughts(answer, request, (answer.thinking,)), *_spoken(answer, (answer.text,))]
    return _response(
        _ended(answer, said or [{"text": ""}]), request, stamp, usage=_usage(answer.tokens)
    )


def _response(
    candidate: Mapping[str, JSON],
    request: ModelRequest,
    stamp: Stamp,
    *,
    usage: Mapping[str, JSON],
) -> dict[str, JSON]:
    return {
        "candidates": [candidate],
        "usageMetadata": usage,
        "modelVersion": request.model,
        "responseId": stamp.id("resp"),
    }


def _candidate(parts: Sequence[JSON]) -> dict[str, JSON]:
    return {"content": {"parts": parts, "role": "model"}, "index": 0}


def _ended(answer: ModelAnswer, parts: Sequence[JSON]) -> dict[str, JSON]:
    """Give the candidate with which an answer ends; a blocked one has no content."""
    reason = finish_reason(answer)
    if reason == "SAFETY":
        told = {"finishMessage": answer.refusal, "safetyRatings": [_BLOCKED]}
        return {"finishReason": reason, "index": 0, **told}
    if reason == "MALFORMED_FUNCTION_CALL":
        cut = next(use for use in answer.tool_uses if use.is_cut)
        told = {"finishMessage": f"Malformed function call: {cut.name}({cut.raw}"}
        return {**_candidate([{"text": ""}]), "finishReason": reason, **told}
    return {**_candidate(parts), "finishReason": reason}


def _thoughts(
    answer: ModelAnswer, request: ModelRequest, texts: Sequence[str]
) -> Iterator[dict[str, JSON]]:
    """Give what the model thought, if the request asks for that."""
    config = _camel(_asked(request.raw).get("generationConfig", {}).get("thinkingConfig"))
    if answer.thinking and config.get("includeThoughts") is True:
        yield from ({"text": text, "thought": True} for text in texts)


def _spoken(answer: ModelAnswer, texts: Sequence[str]) -> Iterator[dict[str, JSON]]:
    """Give text and calls; the first call, else the last text, is signed after a thought."""
    uses = [use for use in answer.tool_uses if not use.is_cut]
    signed = {"thoughtSignature": _SIGNATURE} if answer.thinking else {}
    texts = [text for text in texts if text]
    for number, text in enumerate(texts, start=1):
        yield {"text": text, **(signed if number == len(texts) and not uses else {})}
    for number, use in enumerate(uses):
        yield {"functionCall": _use(use), **({} if number else signed)}


def _use(use: ToolUse) -> dict[str, JSON]:
    return {"id": use.id, "name": use.name, "args": dict(use.args)}


def finish_reason(answer: ModelAnswer) -> str:
    """Say why the model stopped, in this format's words."""
    if answer.refusal:
        return "SAFETY"
    if any(use.is_cut for use in answer.tool_uses):
        return "MALFORMED_FUNCTION_CALL"
    return "MAX_TOKENS" if answer.finish == "length" else "STOP"


def usage(tokens: Tokens) -> dict[str, int]:
    """Count what a call used; input tokens include what is cached."""
    return {
        "input_tokens": tokens.prompt,
        "output_tokens": tokens.output,
        "cache_read_tokens": tokens.cache_read,
    }


def _usage(tokens: Tokens) -> dict[str, JSON]:
    counted: dict[str, JSON] = {
        "promptTokenCount": tokens.prompt,
        "candidatesTokenCount": tokens.output - tokens.reasoning,
        "totalTokenCount": tokens.prompt + tokens.output,
    }
    if tokens.cache_read:
        counted["cachedContentTokenCount"] = tokens.cache_read
    if tokens.reasoning:
        counted["thoughtsTokenCount"] = tokens.reasoning
    return counted


def frames(answer: ModelAnswer, request: ModelRequest, stamp: Stamp) -> Iterator[Frame]:
    """Write an answer as a stream; calls come whole, and all at once."""
    begun = {"promptTokenCount": answer.tokens.prompt, "totalTokenCount": answer.tokens.prompt}
    deltas = [] if answer.refusal else list(_deltas(answer, request))
    for number, parts in enumerate(deltas):
        chunk = _response(_candidate(parts), request, stamp, usage=begun)
        yield _framed(chunk, request, before="," if number else "[", is_delta=True)
    last = _response(_ended(answer, [{"text": ""}]), request, stamp, usage=_usage(answer.tokens))
    yield _framed(last, request, before="," if deltas else "[", after="]")


def _deltas(answer: ModelAnswer, request: ModelRequest) -> Iterator[list[dict[str, JSON]]]:
    """Give the parts of one piece of a stream after the other."""
    for thought in _thoughts(answer, request, tuple(pieces(answer.thinking))):
        yield [thought]
    spoken = list(_spoken(answer, tuple(pieces(answer.text))))
    yield from ([part] for part in spoken if "text" in part)
    if calls := [part for part in spoken if "text" not in part]:
        yield calls
    elif any(use.is_cut for use in answer.tool_uses):
        yield [{"text": ""}]  # a call that is cut off never comes


def _framed(
    chunk: Mapping[str, JSON],
    request: ModelRequest,
    *,
    before: str,
    after: str = "",
    is_delta: bool = False,
) -> Frame:
    if request.framing == "sse":
        return Frame(chunk, is_delta=is_delta)
    return Frame(f"{before}{to_text(chunk)}{after}", is_delta=is_delta, framing="array")


def error(status: int, message: str, stamp: Stamp) -> dict[str, JSON]:
    """Write an error as a body."""
    del stamp  # errors of this provider have no id in their body
    return {"error": {"code": status, "message": message, "status": _ERRORS.get(status, "UNKNOWN")}}
