"""Every real file of the formats: imported, or refused with a sentence."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from evalkit.errors import TraceError
from evalkit.importers import ImportedTrial, import_run, read

_IMPORTERS = {
    "openai_anthropic": ("openai", "anthropic"),
    "langchain": ("langchain",),
    "otel": ("otel",),
}


def _files() -> list[tuple[str, str]]:
    """List format and file of every real file; one stand-in, to be skipped, without the data."""
    root = Path(os.environ.get("EVALKIT_PUBLIC_DATA", "/nonexistent")) / "formats"
    found = [
        (name, f"{folder}/{path.name}")
        for folder, names in _IMPORTERS.items()
        for path in sorted((root / folder).glob("*"))
        for name in names
    ]
    return found or [("openai", "none")]


REFUSED = {
    ("openai", "openai_anthropic/anth_hist.pair.json"): "Anthropic messages.*import anthropic",
    ("openai", "openai_anthropic/anth_tools.pair.json"): "Anthropic messages.*import anthropic",
    ("anthropic", "openai_anthropic/oai_toolcalls.pair.json"): "OpenAI chat.*import openai",
    ("anthropic", "openai_anthropic/oai_tools.pair.json"): "OpenAI chat.*import openai",
    ("otel", "otel/gen_ai.input.messages.schema.json"): "JSON Schema",
    ("otel", "otel/gen_ai.output.messages.schema.json"): "JSON Schema",
    ("otel", "otel/how_made_replay.py"): "how_made_replay.py:1: not JSON",
}


@pytest.mark.public
@pytest.mark.parametrize(("name", "file"), _files())
def test_real_file_is_imported_or_refused(
    public_data: Path, tmp_path: Path, name: str, file: str
) -> None:
    """Each real file becomes a run without an unreadable trial, or is refused for what it is."""
    path = public_data / "formats" / file
    if (name, file) in REFUSED:
        with pytest.raises(TraceError, match=REFUSED[name, file]):
            read(name, path)
        return
    run = import_run(name, path, out=tmp_path)
    assert run.is_finished
    assert set(run.trials.reason_code) == {"not_graded"}


def _only(public_data: Path, name: str, file: str) -> ImportedTrial:
    (trial,) = read(name, public_data / "formats" / file).trials
    return trial


def _calls(trial: ImportedTrial) -> list[tuple[str, object, str]]:
    return [(call.name, call.args, call.status) for call in trial.trace.tool_calls]


@pytest.mark.public
@pytest.mark.parametrize("case", ["anth_hist", "anth_tools", "oai_tools", "oai_toolcalls"])
def test_real_request_reads_the_same_from_the_wire_and_from_spans(
    public_data: Path, case: str
) -> None:
    """One request, seen as its bodies and by two instrumentations, gives the same calls."""
    vendor = "anthropic" if case.startswith("anth") else "openai"
    wire = _only(public_data, vendor, f"openai_anthropic/{case}.pair.json")
    for library in ("openllmetry", "openinference"):
        spans = _only(public_data, "otel", f"otel/{case}.{library}.otlp.json")
        assert _calls(spans) == _calls(wire)
        assert spans.trace.turns == wire.trace.turns
        sent, seen = wire.trace.model_calls[0], spans.trace.model_calls[0]
        assert seen.model == sent.model
        assert sent.usage is not None
        assert seen.usage is not None
        assert seen.usage.input_tokens == sent.usage.input_tokens
        assert seen.usage.output_tokens == sent.usage.output_tokens
        assert re.sub(r"tool_(call|use).*", "tool", seen.finish_reason) == re.sub(
            r"tool_(call|use).*", "tool", sent.finish_reason
        )


@pytest.mark.public
def test_real_langchain_dumps_give_one_trace(public_data: Path) -> None:
    """The three dumps of one conversation are one trace, three calls over three turns."""
    traces = [
        _only(public_data, "langchain", f"langchain/{name}.json").trace
        for name in ("messages_to_dict", "dumpd_lc_constructor", "model_dump")
    ]
    assert traces[0] == traces[1] == traces[2]
    assert [call.name for call in traces[0].tool_calls] == [
        "get_user_details",
        "get_reservation_details",
        "get_reservation_details",
    ]
    assert len(traces[0].turns) == 3


@pytest.mark.public
def test_real_vercel_dump_gives_a_trial_for_each_trace(public_data: Path) -> None:
    """Ten traces of the Vercel AI SDK are ten trials; four of them hold a model call."""
    path = public_data / "formats" / "otel/vercel_ai_sdk_v6_readable_spans.json"
    trials = list(read("otel", path).trials)
    assert len(trials) == 10
    assert sum(len(trial.trace.model_calls) for trial in trials) == 4
    assert trials[2].trace.reply == "3 + 3 equals 6."
