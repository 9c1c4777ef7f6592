"""Whether a model could answer a request with a step of its script.

A script is written for requests as they should be. Where a request switches its tools
off, or leaves room for fewer tokens than the step has words, a real model would answer
something else, and the agent that sent it does not work.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evalkit.gateway.canonical import ModelRequest
from evalkit.serving.jsontext import parse, to_text


def why_impossible(step: Mapping[str, Any], request: ModelRequest) -> str:
    """Say why no model could answer a request with a step; empty if one could.

    Parameters
    ----------
    step
        Of a script; a fault or a refusal can come at any time.
    request
        What the agent asks.

    Examples
    --------
    >>> why_impossible({"text": "It is dry."}, ModelRequest("anthropic", "m", max_tokens=1))
    'the request allows 1 token(s) (max_tokens), and the next step has at least 3: a model ...'
    """
    if "fault" in step or "refusal" in step:
        return ""
    uses = step.get("tools") or ()
    return (
        _wrong_tools(step, uses, request)
        or _misnamed(uses, request)
        or _no_json(step, uses, request)
        or _too_long(step, uses, request)
    )


def _wrong_tools(
    step: Mapping[str, Any], uses: Sequence[Mapping[str, Any]], request: ModelRequest
) -> str:
    """Say how a step does not do what the request says of tools."""
    if uses and request.tool_choice == "none":
        return "the next step asks for a tool, but the request forbids that (tool_choice)"
    if len(uses) > 1 and not request.parallel:
        return "the next step asks for several tools, but the request wants one at a time"
    closed = [use["tool"] for use in uses if use["tool"] not in request.allowed_tools]
    if request.allowed_tools and closed:
        return (
            f"the next step asks for the tool `{closed[0]}`, but the request allows only "
            f"{', '.join(request.allowed_tools)} (allowedFunctionNames)"
        )
    if request.tool_choice != "required" or "json" in step:
        return ""
    if not uses:
        return "the next step is text, but the request demands a tool (tool_choice)"
    others = [use["tool"] for use in uses if use["tool"] != request.forced_tool]
    if request.forced_tool and others:
        return (
            f"the next step asks for the tool `{others[0]}`, but the request demands "
            f"`{request.forced_tool}` (tool_choice)"
        )
    return ""


def _misnamed(uses: Sequence[Mapping[str, Any]], request: ModelRequest) -> str:
    """Say where a tool's arguments have other names in the request.

    A model may leave an argument out, or make one up. One of each is a name that was
    changed on one side.
    """
    schemas = {tool.name: tool.schema for tool in request.tools}
    for use in uses:
        schema = schemas.get(use["tool"])
        known = schema.get("properties") if isinstance(schema, Mapping) else None
        if not isinstance(schema, Mapping) or not isinstance(known, Mapping):
            continue
        args, wanted = use.get("args") or {}, schema.get("required")
        strange = [name for name in args if name not in known]
        lacking = [n for n in wanted if n not in args] if isinstance(wanted, list) else []
        if strange and lacking:
            return (
                f"the next step gives the tool `{use['tool']}` the argument `{strange[0]}`, but "
                f"the request describes `{lacking[0]}`, which it lacks"
            )
    return ""


def _no_json(
    step: Mapping[str, Any], uses: Sequence[Mapping[str, Any]], request: ModelRequest
) -> str:
    """Say that a step is prose where the request demands JSON."""
    if not request.wants_json or uses or "json" in step:
        return ""
    try:
        parse((step.get("text") or "").encode("utf-8", "surrogatepass"))
    except ValueError:
        return "the next step is text that is no JSON, but the request demands JSON"
    return ""


def _too_long(
    step: Mapping[str, Any], uses: Sequence[Mapping[str, Any]], request: ModelRequest
) -> str:
    """Say where the request would end a step before its end."""
    text = to_text(step["json"]) if "json" in step else step.get("text") or ""
    # The tokens of these providers end where words do: so many there are at least.
    least = len(text.split()) + sum(1 + len(use.get("args") or ()) for use in uses)
    if request.max_tokens is not None and least > request.max_tokens:
        return (
            f"the request allows {request.max_tokens} token(s) (max_tokens), and the next step "
            f"has at least {least}: a model would be cut off"
        )
    stop = next((stop for stop in request.stops if stop in text), "")
    if stop:
        return f"the next step has the text {stop!r}, at which the request stops the model"
    return ""
