"""From the spans of one trace to what the agent did.

A model span holds the whole conversation up to it, so one message is met many
times. Spans are put together into *threads*: a span goes on with a thread if its
prompt begins with that thread's prompt. The longest thread is the one that the
user sees; the others (a sub-agent, a router) add their tool calls only.

A call is seen twice, where a model asks for it and where the tool runs. Both are
joined into one, by id, else by name and arguments, else by name.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from evalkit.errors import TraceError
from evalkit.ledger import JSON
from evalkit.messages.conversation import Conversation, Result
from evalkit.spans import dialects
from evalkit.spans.chat import Message, has_calls
from evalkit.spans.exported import RawSpan, in_order
from evalkit.spans.nesting import without_wrappers
from evalkit.trace import ModelCall, Span, SpanKind, ToolCall, Trace, Turn


@dataclass(slots=True)
class _Thread:
    """One conversation with a model, as far as it was seen."""

    system: str = ""
    keys: list[bytes] = field(default_factory=list)
    """Keys of the messages of its last prompt."""
    n_answers: int = 0
    """Messages that answered its last prompt."""


@dataclass(frozen=True, slots=True)
class _Step:
    """New messages of one model span."""

    span: RawSpan
    thread: int
    known: int
    """How many of the prompt's messages were met before."""
    prompt: tuple[Message, ...]
    answer: tuple[Message, ...]


def trace_of_spans(spans: Iterable[RawSpan], *, metadata: Mapping[str, JSON]) -> Trace:
    """Build the trace of one trial out of the spans of one OpenTelemetry trace."""
    ordered = in_order(spans)
    kinds = {span.id: dialects.kind_of(span) for span in ordered}
    innermost = without_wrappers(ordered, kinds)
    model_spans = [span for span in innermost if kinds[span.id] == "model"]
    tool_spans = [span for span in innermost if kinds[span.id] == "tool"]
    told = _Telling(_steps(model_spans))
    trace = told.trace(metadata)
    if not told.has_content:
        trace = replace(trace, turns=_outermost_turn(ordered))
    calls = _joined(told, trace.tool_calls, tool_spans)
    return replace(
        trace,
        tool_calls=tuple(calls),
        spans=tuple(_span(span, kinds[span.id]) for span in ordered),
        tools_observed=bool(tool_spans) or told.shows_calls,
        models_observed=bool(model_spans),
    )


def _span(span: RawSpan, kind: SpanKind) -> Span:
    return Span(
        id=span.id,
        parent_id=span.parent_id,
        name=span.name,
        kind=kind,
        start_s=None if span.start_ns is None else span.start_ns / 1e9,
        end_s=None if span.end_ns is None else span.end_ns / 1e9,
        status=span.status,
        attributes=span.attributes,
        documents=dialects.documents_of(span),
    )


def _steps(spans: Sequence[RawSpan]) -> list[_Step]:
    """Sort model spans into threads."""
    threads: list[_Thread] = []
    return [_step(span, threads) for span in spans]


def _step(span: RawSpan, threads: list[_Thread]) -> _Step:
    everything = dialects.prompt_of(span)
    system = "\n".join(m.text for m in everything if m.role == "system")
    prompt = [m for m in everything if m.role != "system"]
    answer = dialects.answer_of(span)
    keys = [message.key() for message in prompt]
    number, known, goes_on = _thread_for(keys, system, threads)
    thread = threads[number]
    if goes_on:
        answered = prompt[known : known + thread.n_answers]
        known += sum(message.role == "assistant" for message in answered)
    thread.system, thread.keys, thread.n_answers = system, keys, len(answer)
    return _Step(span, number, known, tuple(everything), tuple(answer))


def _thread_for(
    keys: Sequence[bytes], system: str, threads: list[_Thread]
) -> tuple[int, int, bool]:
    """Find the thread that a prompt belongs to, or begin one.

    Gives its number, how many messages of the prompt are known, and whether the
    prompt goes on after all of the thread's last one. A prompt that leaves the
    thread earlier (a retry, a branch) belongs to it if the system prompt is the same.
    """
    found: list[tuple[bool, int, int, bool]] = []
    for number, thread in enumerate(threads):
        common = _n_common(keys, thread.keys)
        goes_on, same = common == len(thread.keys) < len(keys), thread.system == system
        if common and (goes_on or same):
            found.append((same, common, number, goes_on))
    if found:
        _, common, number, goes_on = max(found)
        return number, common, goes_on
    longest = max((_n_common(keys, thread.keys) for thread in threads), default=0)
    threads.append(_Thread(system))
    return len(threads) - 1, longest, False


def _n_common(one: Sequence[bytes], other: Sequence[bytes]) -> int:
    pairs = zip(one, other, strict=False)
    return next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


class _Telling:
    """Tells a conversation what the model spans hold, in the order of time."""

    def __init__(self, steps: Sequence[_Step]) -> None:
        self.talk = Conversation()
        self.times: list[int] = []
        """Start of the model span that each tool call was seen in."""
        self.marks: list[tuple[int, int]] = []
        """From which time on which turn was going on."""
        self.orphans = 0
        self.hidden_calls = False
        self.has_content = any(step.prompt or step.answer for step in steps)
        self._counted: set[bytes] = set()
        self._seen_threads: set[int] = set()
        self._main = _longest(steps)
        for step in steps:
            self._tell(step)

    @property
    def shows_calls(self) -> bool:
        """Whether the messages let us see every tool call."""
        return self.has_content and not self.orphans and not self.hidden_calls

    def trace(self, metadata: Mapping[str, JSON]) -> Trace:
        """Give the trace of the messages alone."""
        return self.talk.trace(metadata=metadata)

    def _tell(self, step: _Step) -> None:
        is_new = step.thread not in self._seen_threads
        self._seen_threads.add(step.thread)
        is_main = step.thread == self._main
        position = -1
        for message in step.prompt:
            if message.role == "system":
                self._system(message, only=is_main and is_new)
                continue
            position += 1
            if position >= step.known:
                self._message(message, step, says=is_main, history=True)
            elif is_main and is_new:
                self._says(message)
        for message in step.answer:
            self._message(message, step, says=is_main, history=False)
        self._model_call(step)
        self.marks.append((step.span.start_ns or 0, self.talk.turn))

    def _system(self, message: Message, *, only: bool) -> None:
        if only:
            self.talk.system(message.text)

    def _message(self, message: Message, step: _Step, *, says: bool, history: bool) -> None:
        if says:
            self._says(message)
        for part in message.parts:
            if isinstance(part, ToolCall):
                self._call(part, step, history=history)
            elif isinstance(part, Result):
                self._result(part)

    def _says(self, message: Message) -> None:
        if message.role == "user":
            self.talk.user(message.text)
        elif message.role == "assistant":
            self.talk.reply(message.text)

    def _call(self, call: ToolCall, step: _Step, *, history: bool) -> None:
        """Add a call, unless it is history of a call that was counted where it was made."""
        key = Message("", (call,)).key() + call.id.encode("utf-8", "surrogatepass")
        if history and call.id and key in self._counted:
            return
        self._counted.add(key)
        self.talk.call(call)
        self.times.append(step.span.start_ns or 0)

    def _result(self, result: Result) -> None:
        try:
            self.talk.result(result, where="")
        except TraceError:
            self.orphans += not self._is_repeated(result)

    def _is_repeated(self, result: Result) -> bool:
        """Say whether the call of this result is known, and answered already."""
        return any(call.id == result.id for call in self.talk.trace().tool_calls if call.id)

    def _model_call(self, step: _Step) -> None:
        reason = dialects.finish_reason_of(step.span, step.answer)
        self.hidden_calls |= reason in _TOOL_REASONS and not has_calls(step.answer)
        self.talk.model_call(
            ModelCall(
                model=dialects.model_of(step.span),
                usage=dialects.usage_of(step.span),
                prompt=_plain(step.prompt),
                reply=_plain(step.answer),
                finish_reason=reason,
                duration_s=step.span.duration_s,
                status=step.span.status,
                span_id=step.span.id,
            )
        )


_TOOL_REASONS = frozenset({"tool_call", "tool_calls", "tool_use", "tool-calls", "function_call"})


def _longest(steps: Sequence[_Step]) -> int:
    """Pick the thread with the most messages; of several, the one that began last."""
    lengths: dict[int, int] = {}
    for step in steps:
        n = len(step.prompt) + len(step.answer)
        lengths[step.thread] = max(lengths.get(step.thread, 0), n)
    return max(lengths, key=lambda thread: (lengths[thread], thread), default=0)


def _plain(messages: Sequence[Message]) -> JSON:
    """Give messages as JSON; nothing where no content was captured."""
    return [
        {"role": message.role, "parts": [_plain_part(part) for part in message.parts]}
        for message in messages
    ] or None


def _plain_part(part: object) -> JSON:
    match part:
        case ToolCall():
            args = part.raw_args if part.args is None else dict(part.args)
            return {"type": "tool_call", "id": part.id, "name": part.name, "arguments": args}
        case Result():
            return {"type": "tool_call_response", "id": part.id, "response": part.content}
    return {"type": "text", "content": part}


def _outermost_turn(spans: Sequence[RawSpan]) -> tuple[Turn, ...]:
    """Take what went in and came out of the outermost span that tells it."""
    for span in spans:
        said = [m.text for m in dialects.prompt_of(span) if m.role == "user"]
        replies = [m.text for m in dialects.answer_of(span) if m.text]
        if said or replies:
            return (Turn(said[-1] if said else "", tuple(replies)),)
    for span in spans:
        texts = (span.attributes.get("input.value"), span.attributes.get("output.value"))
        if span.parent_id is None and all(isinstance(text, str) for text in texts):
            return (Turn(str(texts[0]), (str(texts[1]),)),)
    return ()


def _joined(
    told: _Telling, asked: Sequence[ToolCall], tool_spans: Sequence[RawSpan]
) -> list[ToolCall]:
    """Join calls that were asked for with the spans of the tools that ran."""
    calls, times = list(asked), list(told.times)
    free = set(range(len(calls)))
    left = [(span, dialects.tool_of(span)) for span in tool_spans]
    for fits in (_same_id, _same_arguments, _same_name):
        left = [(span, ran) for span, ran in left if not _join_one(calls, free, ran, fits=fits)]
    calls += [_in_turn(ran, span, told) for span, ran in left]
    times += [span.start_ns or 0 for span, _ in left]
    return [calls[index] for index in sorted(range(len(calls)), key=times.__getitem__)]


def _join_one(
    calls: list[ToolCall],
    free: set[int],
    ran: ToolCall,
    *,
    fits: Callable[[ToolCall, ToolCall], bool],
) -> bool:
    """Join a tool's run with the first call that fits and has none yet."""
    index = next((i for i in sorted(free) if fits(calls[i], ran)), None)
    if index is None:
        return False
    calls[index] = _both(calls[index], ran)
    free.remove(index)
    return True


def _same_id(asked: ToolCall, ran: ToolCall) -> bool:
    return bool(ran.id) and asked.id == ran.id and asked.name == ran.name


def _same_arguments(asked: ToolCall, ran: ToolCall) -> bool:
    return _same_name(asked, ran) and asked.args == ran.args


def _same_name(asked: ToolCall, ran: ToolCall) -> bool:
    return asked.name == ran.name and not (asked.id and ran.id)


def _both(asked: ToolCall, ran: ToolCall) -> ToolCall:
    """Take what the model asked for, and what became of it at the tool."""
    failed = ran.status in ("error", "timeout") and ran.args is not None
    status = ran.status if failed or asked.status == "unknown" else asked.status
    return replace(
        asked,
        status="error" if asked.args is None else status,
        result=asked.result if asked.status in ("ok", "error") else ran.result,
        duration_s=ran.duration_s,
        span_id=ran.span_id,
    )


def _in_turn(call: ToolCall, span: RawSpan, told: _Telling) -> ToolCall:
    place = bisect_right([time for time, _ in told.marks], span.start_ns or 0)
    return replace(call, turn=told.marks[place - 1][1] if place else 0)
