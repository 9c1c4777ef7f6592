"""From a step of a script to the answer that it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from evalkit.gateway.canonical import ModelAnswer, ModelRequest, ToolUse
from evalkit.ledger import JSON
from evalkit.serving.jsontext import to_text

_CUT_TEXT: Final = "This answer of the scripted model breaks off before its end."


def answer_of(step: Mapping[str, Any], request: ModelRequest) -> ModelAnswer:
    """Build the answer of a step that is no fault.

    Parameters
    ----------
    step
        ``{text}``, ``{tools: [{tool, args}, ...], text}``, ``{json}`` or ``{refusal}``;
        ``thinking`` may stand beside ``text`` and ``tools``.
    request
        What is answered. JSON goes into the tool that the request forces, if it
        forces one, else into the text.
    """
    if "json" in step:
        return _json_answer(step["json"], request)
    return ModelAnswer(
        text=step.get("text") or "",
        tool_uses=tuple(tool_use(use["tool"], use.get("args")) for use in step.get("tools") or ()),
        refusal=step.get("refusal") or "",
        thinking=step.get("thinking") or "",
    )


def _json_answer(value: JSON, request: ModelRequest) -> ModelAnswer:
    if request.forced_tool and isinstance(value, Mapping):
        use = tool_use(request.forced_tool, value)
        return ModelAnswer(tool_uses=(use,), json=value, is_json=True)
    return ModelAnswer(text=to_text(value), json=value, is_json=True)


def tool_use(name: str, args: Mapping[str, JSON] | None) -> ToolUse:
    """Build a tool use."""
    args = args or {}
    return ToolUse(name, args, to_text(args))


def content_of_fault(step: Mapping[str, Any], *, default_tool: str) -> ModelAnswer:
    """Build what a fault spoils: what its step says, else a tool use or some text."""
    name = step.get("tool") or default_tool
    uses = (tool_use(name, step.get("args")),) if name else ()
    text = step.get("text") or ("" if uses else _CUT_TEXT)
    return ModelAnswer(text=text, tool_uses=uses)


def cut_tool(answer: ModelAnswer) -> ModelAnswer:
    """Cut the arguments of the last tool use in the middle."""
    *uses, last = answer.tool_uses
    cut = replace(last, raw=last.raw[: max(1, len(last.raw) // 2)], is_cut=True)
    return replace(answer, tool_uses=(*uses, cut))


def cut(answer: ModelAnswer) -> ModelAnswer:
    """Cut an answer in the middle of what comes last in it."""
    if answer.tool_uses:
        return cut_tool(answer)
    return replace(answer, text=answer.text[: max(1, len(answer.text) // 2)])
