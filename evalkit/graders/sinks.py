"""Sinks: the places where a trial's data came out, as streams of texts to be searched.

What the sandbox feeds in is no sink: the user's turns, what the script answers, fixtures
as they were. Where an agent passes on what it was told - a user's turn in a prompt, the
arguments that the script asks for - that text is taken out as it was fed in, and all
around it stays. A tool that tells what it was really given is believed.

The world outside of a trace stands in ``outcome["sinks"]``: by the name of a sink
(``http``, ``database``, ``state``, ``error``) what came out there, as JSON.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple, get_args

from evalkit.graders.base import Trial
from evalkit.graders.files import World
from evalkit.ledger import JSON
from evalkit.matching.values import is_list
from evalkit.suite import DeliverTurn, UserTurn
from evalkit.suite.fixtures import Sink
from evalkit.trace import ToolCall

SINKS: Final[tuple[str, ...]] = get_args(Sink)
_LONG: Final = 200
"""Characters of a text that is searched once, though it is sent with every prompt."""
_LEAST_NUMBER: Final = 100_000
_CUT: Final = re.compile(r"\[\.\.\. [0-9,]+ more characters$")


class Piece(NamedTuple):
    """One text of a stream."""

    place: str
    """Where it is: ``model call 3``, ``file out.txt``."""
    text: str


class Stream(NamedTuple):
    """Texts that came out at one place, one after the other."""

    sinks: tuple[str, ...]
    """The sink; of log and errors together both, and a value must be forbidden in each."""
    pieces: list[Piece]
    holds_input: bool = False
    """Whether what the sandbox fed in may stand in it."""


def streams_of(trial: Trial) -> Iterator[Stream]:
    """Give every stream that was seen."""
    trace = trial.trace
    replies = enumerate(trace.replies, start=1)
    yield Stream(("reply",), [Piece(f"reply {number}", text) for number, text in replies])
    yield Stream(("model_prompt",), list(_prompts(trial)), holds_input=True)
    yield from _arguments(trial)
    yield from _logged(trial)
    for path, text in _changed_files(trial):
        yield Stream(("file",), [Piece(f"file {path}", path), Piece(f"file {path}", text)])
    yield Stream(("trace",), list(_spans(trial)))
    for sink, told in _world(trial).items():
        if sink != "error":
            yield Stream((sink,), list(_pieces(sink, told)))


def _world(trial: Trial) -> Mapping[str, Sequence[JSON]]:
    found: Any = trial.outcome.get("sinks") or {}
    return {sink: told for sink, told in found.items() if sink in SINKS}


def _prompts(trial: Trial) -> Iterator[Piece]:
    """Give what the model was sent, a text that comes again and again but once."""
    counted: Any = trial.outcome.get("counted_prompts", ())
    calls = [{"model": call.model, "prompt": call.prompt} for call in trial.trace.model_calls]
    sent = [*_pieces("model call", calls), *_pieces("count of tokens", counted)]
    seen: set[str] = set()
    for piece in sent:
        if len(piece.text) < _LONG or piece.text not in seen:
            seen.add(piece.text)
            yield piece


def _arguments(trial: Trial) -> Iterator[Stream]:
    """Give what tools were given, and what the model asked to give them."""
    trace = trial.trace
    told = [call for call in trace.tool_calls if call.name in trace.watched_tools]
    asked = [call for call in trace.tool_calls if call.name not in trace.watched_tools]
    yield Stream(("tool_args",), list(_calls(told)))
    yield Stream(("tool_args",), list(_calls([*asked, *trace.asked_calls])), holds_input=True)


def _calls(calls: Iterable[ToolCall]) -> Iterator[Piece]:
    given = [{"name": call.name, "args": call.args, "raw": call.raw_args} for call in calls]
    return _pieces("tool call", given)


def _logged(trial: Trial) -> Iterator[Stream]:
    """Give the log, what of it was logged as an error or raised, and both as they came."""
    logs, errors = trial.trace.logs, Counter(trial.trace.errors)
    plain: list[Piece] = []
    for number, text in enumerate(logs, start=1):
        if errors[text] > 0:
            errors[text] -= 1
        else:
            plain.append(Piece(f"entry {number}", text))
    raised = _world(trial).get("error", ())
    grave = list(_pieces("error", [*trial.trace.errors, *raised]))
    yield Stream(("log",), plain)
    yield Stream(("error",), grave)
    if plain and grave:
        both = [Piece(f"entry {number}", text) for number, text in enumerate(logs, start=1)]
        yield Stream(("log", "error"), both)


def _changed_files(trial: Trial) -> Iterator[tuple[str, str]]:
    """Give what was written, by path: of a fixture, the lines that it did not have."""
    world = World.of(trial)
    if world is None:
        return
    before: Any = trial.outcome.get("fixture_texts") or {}
    for path, how in world.touched().items():
        entry = world.files.get(path, {})
        text = entry.get("text")
        old = before.get(world.sources.get(path, ""), "")
        yield path, _new_lines(old, text) if isinstance(text, str) and how != "removed" else ""


def _new_lines(old: str, new: str) -> str:
    rest = Counter(old.splitlines())
    found = []
    for line in new.splitlines():
        if rest[line] > 0:
            rest[line] -= 1
        else:
            found.append(line)
    return "\n".join(found)


def _spans(trial: Trial) -> Iterator[Piece]:
    told = [
        {
            "name": span.name,
            "attributes": dict(span.attributes),
            "documents": [asdict(document) for document in span.documents],
        }
        for span in trial.trace.spans
    ]
    return _pieces("span", told)


def _pieces(what: str, values: Iterable[JSON]) -> Iterator[Piece]:
    """Give the texts of several values, each with its number from 1."""
    for number, value in enumerate(values, start=1):
        for text in leaves_of(value):
            yield Piece(f"{what} {number}", text)


def leaves_of(value: JSON) -> list[str]:
    """Give every text of JSON data in order, long numbers too, and then every key.

    Examples
    --------
    >>> leaves_of({"to": ["a", {"b": "c", "n": 12345678}], "ok": True})
    ['a', 'c', '12345678', 'to', 'ok', 'b', 'n']
    """
    found: list[str] = []
    keys: list[str] = []
    waiting = [value]  # a stack, because an agent chooses how deep its data is
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            found.append(one)
        elif isinstance(one, Mapping):
            keys += map(str, one)
            waiting += list(one.values())[::-1]
        elif is_list(one):
            waiting += list(one)[::-1]
        elif isinstance(one, int | float) and abs(one) >= _LEAST_NUMBER:
            found.append(str(one))
    return found + keys


def fed_in(trial: Trial, holds: Callable[[str], bool]) -> tuple[str, ...]:
    """Give the texts that the sandbox fed in and that hold something, the longest first.

    Parameters
    ----------
    trial
        Whose turns and script are meant; of the script in the contract lane only.
    holds
        Says whether a text holds something to be searched for.
    """
    texts = [turn.user for turn in trial.trace.turns]
    for turn in trial.scenario.turns:
        if isinstance(turn, UserTurn):
            texts.append(turn.user)
        if isinstance(turn, DeliverTurn):
            texts += [turn.deliver.text or "", *leaves_of(turn.deliver.json_body)]
        script = getattr(turn, "model", None)
        if script is not None and trial.lane == "contract":
            texts += leaves_of(script.model_dump())
    held = [text for text in dict.fromkeys(texts) if holds(text)]
    return tuple(sorted(dict.fromkeys(form for text in held for form in _forms(text)), key=len))[
        ::-1
    ]


def _forms(text: str) -> tuple[str, ...]:
    """Write a text as it is, and as it stands inside of JSON."""
    return text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]


def unseen_sinks(trial: Trial) -> dict[str, str]:
    """Say which sinks were not seen, or not whole, and why."""
    trace = trial.trace
    found = {
        "model_prompt": _unseen_prompts(trial),
        "tool_args": "" if trace.tools_observed else "nobody saw the agent's tool calls",
        "log": _unseen_log(trial),
        "error": _unseen_log(trial),
        "file": _unseen_files(trial),
        "http": _unseen_requests(trial),
        "trace": _unseen_spans(trial),
        "database": str(trial.outcome.get("database_gap") or ""),
        "state": _unseen_state(trial),
    }
    return {sink: why for sink, why in found.items() if why}


def _unseen_prompts(trial: Trial) -> str:
    if not trial.trace.models_observed:
        return "nobody saw what the agent sent to its model"
    calls = trial.trace.model_calls
    n_lost = sum(not call.prompt for call in calls)
    return f"the prompt of {n_lost} of {len(calls)} model call(s) was not recorded" * bool(n_lost)


def _unseen_log(trial: Trial) -> str:
    if trial.lane == "imported":
        return "nobody saw the agent's log"
    return str(trial.outcome.get("log_gap") or "")


def _unseen_files(trial: Trial) -> str:
    world = World.of(trial)
    if world is None:
        return "nobody looked which files the trial left"
    touched = world.touched()
    unread = [
        path
        for path, how in touched.items()
        if how != "removed" and not _is_read(world.files[path])
    ]
    unread += world.doubtful()
    if unread:
        more = f" and {len(unread) - 1} more" if len(unread) > 1 else ""
        return f"{unread[0]}{more} cannot be read: no UTF-8 text, or too large to be kept"
    return world.unseen


def _unseen_requests(trial: Trial) -> str:
    if trial.lane != "contract":
        return "nobody saw the agent's requests"
    n_lost = sum(map(_was_lost, _world(trial).get("http", ())))
    said = f"the body of {n_lost} request(s) was not kept: no UTF-8 text, or too large"
    return said * bool(n_lost)


def _was_lost(told: JSON) -> bool:
    """Say whether a request had a body that its ledger has not."""
    if not isinstance(told, Mapping) or not told.get("size"):
        return False
    return told.get("json") is None and told.get("text") is None


def _is_read(entry: Mapping[str, JSON]) -> bool:
    """Say whether what a file holds is known; of a database, its rows tell."""
    return isinstance(entry.get("text"), str) or bool(entry.get("database"))


def _unseen_state(trial: Trial) -> str:
    told: Any = trial.outcome.get("state") or ()
    lost = [one["problem"] for one in told if "are kept" in one.get("problem", "")]
    return str(lost[0]) if lost else ""


def _unseen_spans(trial: Trial) -> str:
    trace = trial.trace
    if trace.span_gaps:
        return "; ".join(trace.span_gaps)
    if trial.lane != "contract" and not trace.spans:
        return "nobody took in the spans that the agent exported"
    is_cut = any(
        isinstance(value, str) and _CUT.search(value[-60:])
        for span in trace.spans
        for value in span.attributes.values()
    )
    return "an attribute of a span was cut" if is_cut else ""
