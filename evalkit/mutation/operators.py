"""The operators: every way in which a trial is broken, in the order in which they are tried.

They were fixed before any shipped suite was held against them.
"""

from __future__ import annotations

from typing import Final

from evalkit.mutation import breaking_arguments as arguments
from evalkit.mutation import breaking_calls as calls
from evalkit.mutation import breaking_replies as replies
from evalkit.mutation.closing_calls import (
    ask_for_call,
    count_calls,
    forbid_extra_arguments,
    forbid_extra_calls,
    forbid_tool,
    keep_order,
    limit_path,
    list_calls,
    n_model_calls,
    n_tool_calls,
)
from evalkit.mutation.closing_replies import (
    ask_for_last_words,
    ask_for_lost_words,
    ask_for_whole_reply,
    refuse_leak,
    refuse_new_words,
)
from evalkit.mutation.records import Closer, Operator
from evalkit.mutation.values import Look

_LISTED: Final = (list_calls("any"), list_calls("in_order"), list_calls("exact"))
_CALL: Final[tuple[Closer, ...]] = (ask_for_call, count_calls, *_LISTED)
_EXTRA: Final[tuple[Closer, ...]] = (count_calls, forbid_extra_calls, *_LISTED)
_OTHER_TOOL: Final[tuple[Closer, ...]] = (forbid_tool, forbid_extra_calls, *_LISTED)
_ROUTE: Final[tuple[Closer, ...]] = (
    limit_path("max_tool_calls", n_tool_calls), forbid_extra_calls, *_LISTED,
)  # fmt: skip
_WORDS: Final[tuple[Closer, ...]] = (
    ask_for_last_words, ask_for_lost_words, ask_for_whole_reply,
)  # fmt: skip
_OPPOSITE: Final[tuple[Closer, ...]] = (
    ask_for_lost_words, refuse_new_words, ask_for_whole_reply,
)  # fmt: skip


def _changing(look: Look, *, does: str) -> Operator:
    return Operator(
        f"change-{look}",
        "arguments",
        does=f"changes an argument: {does}",
        applies=f"arguments that look like {look}",
        breaks=arguments.change(look),
        closers=_CALL,
    )


OPERATORS: Final[tuple[Operator, ...]] = (
    Operator(
        "drop-call", "calls",
        does="leaves out a call",
        applies="each call",
        breaks=calls.drop_call, closers=_CALL,
    ),
    Operator(
        "repeat-call", "calls",
        does="makes a call once more, right after itself",
        applies="each call that may not be repeated: not one that failed, nor one that is polled",
        breaks=calls.repeat_call, closers=_EXTRA,
    ),
    Operator(
        "swap-calls", "order",
        does="lets two neighbouring calls change places",
        applies="different calls of a turn that the model did not ask for at once",
        breaks=calls.swap_calls, closers=(keep_order, *_LISTED),
    ),
    _changing("id", does="its last digit counts on (AA123 -> AA124)"),
    _changing("date", does="one day or month later (Friday -> Saturday)"),
    _changing("number", does="one more"),
    _changing("boolean", does="true for false, false for true"),
    _changing("text", does="another value of its enum, else a text that nobody meant"),
    _changing("nested", does="the first value inside a list or an object"),
    Operator(
        "drop-argument", "arguments",
        does="leaves out an argument",
        applies="each argument of each call",
        breaks=arguments.drop_argument, closers=_CALL,
    ),
    Operator(
        "add-argument", "arguments",
        does="gives an argument that nobody asked for",
        applies="arguments that a tool declares and the call did not use",
        breaks=arguments.add_argument, closers=(forbid_extra_arguments, *_LISTED),
    ),
    Operator(
        "forbidden-tool", "tools",
        does="calls a tool that the scenario forbids",
        applies="each tool under `forbid`",
        breaks=calls.call_forbidden_tool, closers=_OTHER_TOOL,
    ),
    Operator(
        "unexpected-tool", "tools",
        does="calls another tool of the agent",
        applies="tools that a turn neither uses nor names",
        breaks=calls.call_unexpected_tool, closers=_OTHER_TOOL,
    ),
    Operator(
        "failed-call", "claims",
        does="lets a call fail, and the reply still claims success",
        applies="each call that did not fail",
        breaks=calls.fail_call, closers=_CALL,
    ),
    Operator(
        "claim-without-calls", "claims",
        does="leaves out all calls of a turn, and the reply still claims success",
        applies="turns with two calls or more; with one, drop-call does the same",
        breaks=calls.claim_without_calls, closers=_LISTED,
    ),
    Operator(
        "cut-reply", "reply",
        does="keeps the first half of a reply's words",
        applies="the last reply of each turn, of two words or more",
        breaks=replies.cut_reply, closers=_WORDS,
    ),
    Operator(
        "empty-reply", "reply",
        does="empties a reply",
        applies="the last reply of each turn",
        breaks=replies.empty_reply, closers=_WORDS,
    ),
    Operator(
        "contradict-reply", "reply",
        does='says the opposite ("booked" -> "did not book", and back)',
        applies="the last reply of each turn, where a rule of English fits",
        breaks=replies.contradict_reply, closers=_OPPOSITE,
    ),
    Operator(
        "swap-replies", "reply",
        does="lets the replies of two turns change places",
        applies="turns that follow each other and have different last replies",
        breaks=replies.swap_replies, closers=_WORDS,
    ),
    Operator(
        "leak-canary", "leaks",
        does="adds a canary to the last reply",
        applies="each canary that may not appear in a reply",
        breaks=replies.leak(replies.plain, "as it is"), closers=(refuse_leak,),
    ),
    Operator(
        "leak-canary-base64", "leaks",
        does="adds a canary in base64 to the last reply",
        applies="each canary that may not appear in a reply",
        breaks=replies.leak(replies.base64_of, "in base64"), closers=(refuse_leak,),
    ),
    Operator(
        "extra-model-calls", "route",
        does="asks the model three times more",
        applies="trials with model calls; not in the contract lane, which refuses them by itself",
        breaks=replies.thrash, closers=(limit_path("max_model_calls", n_model_calls),),
    ),
    Operator(
        "loop", "route",
        does="makes the last two different calls of a turn once more: A-B-A-B",
        applies="turns with two different calls that follow each other",
        breaks=calls.loop_calls, closers=_ROUTE,
    ),
)  # fmt: skip
"""Every operator, in the order of a report."""
