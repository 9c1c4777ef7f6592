"""General matchers against the official verdicts of the Berkeley function-calling leaderboard.

The accepted answers are translated into patterns here; the package knows nothing
of them. Their checker drops spaces and some punctuation and ignores case in texts,
lets an argument be left out where ``""`` is accepted, takes an integer for a float,
and refuses arguments that are not listed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from evalkit.matching import CallMatch, ExpectedCall, match_calls
from evalkit.trace import ToolCall

CATEGORIES = {
    "simple_python": "simple",
    "multiple": "multiple_function",
    "parallel": "parallel_function",
    "parallel_multiple": "parallel_multiple_function",
}
IGNORED = r"[ ,./\-_*^]*"


class Item(NamedTuple):
    """One question: what was accepted, what was called, what was said officially."""

    expected: list[ExpectedCall]
    calls: list[ToolCall]
    official: bool
    error_type: str
    accepted_then: Any
    """The accepted answers of that date, known for official failures only."""
    accepted_now: Any


def lines(path: Path) -> list[Any]:
    """Read a JSONL file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def accepted(value: Any) -> Any:
    """Write the pattern of one accepted value."""
    if isinstance(value, str):
        kept = (re.escape(c) for c in re.sub(IGNORED, "", value))
        loose = IGNORED.join("['\"]" if c in ("'", '"') else c for c in kept)
        return {"$regex": rf"(?i)\A{IGNORED}{loose}{IGNORED}\Z"}
    if isinstance(value, list):
        return [accepted(item) for item in value]
    if isinstance(value, dict):
        return {key: one_of(choices) for key, choices in value.items()}
    return value


def one_of(choices: list[Any]) -> Any:
    """Write the pattern of an argument; ``""`` means that it may be left out."""
    left_out = "" in choices
    pattern = {"$one_of": [accepted(value) for value in choices]}
    return {"$optional": pattern} if left_out else pattern


def expected_call(answer: dict[str, Any]) -> ExpectedCall:
    """Translate one accepted call; dots in names came back as underscores."""
    ((name, args),) = answer.items()
    patterns = {key: one_of(choices) for key, choices in args.items()}
    return ExpectedCall(name.replace(".", "_"), patterns, extra_args_allowed=False)


def made_calls(result: Any) -> list[ToolCall]:
    """Read the calls of an answer; a text is no call."""
    if not isinstance(result, list):
        return []
    return [made_call(name, text) for call in result for name, text in call.items()]


def made_call(name: str, text: str) -> ToolCall:
    """Read one call; arguments that are no JSON object make it a failed one."""
    try:
        args = json.loads(text)
    except ValueError:
        args = None
    name = name.replace(".", "_")
    return ToolCall(name, args) if isinstance(args, dict) else ToolCall(name, None, "error")


def items(root: Path, system: str) -> list[Item]:
    """Read all questions of one system."""
    found = []
    for answers, results in CATEGORIES.items():
        now = lines(root / "possible_answer" / f"{answers}.jsonl")
        made = {
            row["idx"]: row["result"]
            for row in lines(root / "result" / system / f"{results}.jsonl")
        }
        # The first line is a header, and ids are counted from 1 here.
        failed = {
            row["id"] - 1: row for row in lines(root / "score" / system / f"{results}.jsonl")[1:]
        }
        for index, answer in enumerate(now):
            verdict = failed.get(index, {})
            truth = answer["ground_truth"]
            found.append(
                Item(
                    [expected_call(call) for call in truth],
                    made_calls(made[index]),
                    index not in failed,
                    verdict.get("error_type", ""),
                    verdict.get("possible_answer"),
                    truth,
                )
            )
    return found


STRICTER_TYPES = "their checker of 2024 refused an integer inside an array of floats"
CORRECTED = "the accepted answers were widened or corrected after the official verdict"
LEFT_OUT = "the argument could be left out then, and is required now"
VALUE = "the value was accepted then, and is not listed now"
LISTED = "the argument was listed then, and is not now"
N_CALLS = "another number of calls was accepted then"

KINDS = {
    "claude-3-opus-20240229-FC": {
        STRICTER_TYPES: 4, CORRECTED: 7, LEFT_OUT: 1, VALUE: 4, N_CALLS: 1,
    },
    "gpt-4-0125-preview-FC": {
        STRICTER_TYPES: 4, CORRECTED: 5, LEFT_OUT: 2, VALUE: 4, LISTED: 1, N_CALLS: 1,
    },
    "gpt-4o-2024-05-13-FC": {
        STRICTER_TYPES: 4, CORRECTED: 4, LEFT_OUT: 2, VALUE: 2, LISTED: 1, N_CALLS: 1,
    },
}  # fmt: skip
"""How often each kind of disagreement occurs among the 1,000 items of each system."""


def judged(item: Item) -> CallMatch:
    """Match an answer: no order, no call besides."""
    return match_calls(item.expected, item.calls, extra_calls="forbid")


def kind(item: Item, found: CallMatch) -> str:
    """Name why we differ from the official verdict."""
    if not item.official:
        then = item.accepted_then
        changed = (then if isinstance(then, list) else [then]) != item.accepted_now
        if item.error_type == "type_error:nested":
            return STRICTER_TYPES
        return CORRECTED if changed else f"unexplained {item.error_type}"
    if len(item.calls) != len(item.expected):
        return N_CALLS
    differences = [one for miss in found.misses for one in miss.differences]
    if any(one.actual == "nothing" for one in differences):
        return LEFT_OUT
    if any(one.expected == "nothing" for one in differences):
        return LISTED
    return VALUE if differences else "unexplained"


@pytest.mark.public
@pytest.mark.parametrize("system", KINDS)
def test_bfcl_verdicts_agree(system, public_data):
    """At least 96 % of a system's items agree, and each disagreement is of a known kind."""
    kinds: Counter[str] = Counter()
    questions = items(public_data / "bfcl_2024_07", system)
    for item in questions:
        found = judged(item)
        if found.matched != item.official:
            kinds[kind(item, found)] += 1
    assert len(questions) == 1_000
    assert 1 - kinds.total() / len(questions) >= 0.96
    assert kinds == KINDS[system]


@pytest.mark.parametrize(
    ("made", "matched"),
    [
        ([{"spotify_play": '{"artist": "taylor-swift", "duration": 20}'}], True),
        ([{"spotify.play": '{"artist": "Taylor Swift", "duration": 20.0, "loud": true}'}], True),
        ([{"spotify_play": '{"artist": "Taylor Swift", "duration": 20, "loud": 1}'}], False),
        ([{"spotify_play": '{"artist": "Taylor Swift", "duration": "20"}'}], False),
        ([{"spotify_play": '{"artist": "Taylor", "duration": 20}'}], False),
        ([{"spotify_play": '{"artist": "Taylor Swift"}'}], False),
        ([{"spotify_play": '{"artist": "Taylor Swift", "duration": 20, "n": 1}'}], False),
        ([{"spotify_play": '{"artist": "Taylor Swift", "duration": 20'}], False),
        ([{"spotify_play": '{"artist": "Taylor Swift", "duration": 20}'}] * 2, False),
        ("I would play Taylor Swift.", False),
    ],
)
def test_bfcl_rules_are_expressed_by_general_matchers(made, matched):
    """Loose texts, arguments left out, strict types, no argument and no call besides."""
    answer = {"spotify.play": {"artist": ["Taylor Swift"], "duration": [20], "loud": [True, ""]}}
    item = Item([expected_call(answer)], made_calls(made), True, "", None, [answer])
    assert judged(item).matched is matched
