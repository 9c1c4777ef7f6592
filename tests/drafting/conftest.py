"""Runs to draft from: imported files, and an agent on a real SDK against the gateway."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import openai
import pytest

from evalkit.gateway import Endpoint, GatewayServer
from evalkit.grade import Ending
from evalkit.importers import import_run
from evalkit.ledger import Event, digest, event_line
from evalkit.reading import trace_of
from evalkit.recording import Recorder
from evalkit.results import Manifest, PlannedScenario, Run, RunWriter, load_run, trial_record
from evalkit.suite import Scenario
from evalkit.trace import Trace

Scripts = Sequence[Mapping[str, Any]]


@pytest.fixture
def imported(tmp_path: Path) -> Callable[..., Run]:
    """Import conversations of OpenAI messages, each under its own scenario."""

    def imported_run(*conversations: Sequence[Mapping[str, Any]], **record: Any) -> Run:
        path = tmp_path / "talk.jsonl"
        lines = (
            json.dumps({"scenario": f"talk-{n}", "messages": list(messages), **record})
            for n, messages in enumerate(conversations)
        )
        path.write_text("\n".join(lines), encoding="utf-8")
        return import_run("openai", path, out=tmp_path / "runs")

    return imported_run


class Chat:
    """OpenAI chat messages, in short."""

    @staticmethod
    def user(text: str) -> dict[str, Any]:
        """Say something."""
        return {"role": "user", "content": text}

    @staticmethod
    def model(text: str | None = None, *calls: tuple[str, str]) -> dict[str, Any]:
        """Let the model say something, and ask for tools, which get the ids c0, c1, ..."""
        asked = [
            {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": args}}
            for n, (name, args) in enumerate(calls)
        ]
        return {"role": "assistant", "content": text} | ({"tool_calls": asked} if asked else {})

    @staticmethod
    def tool(number: int = 0, content: str = "ok", **more: Any) -> dict[str, Any]:
        """Answer a call of the message before."""
        return {"role": "tool", "tool_call_id": f"c{number}", "content": content, **more}


@pytest.fixture
def chat() -> type[Chat]:
    """Give the builders of messages."""
    return Chat


@pytest.fixture
def replayed() -> Callable[..., list[Event]]:
    """Let an agent talk to the scripted model, by scripts or by a scenario's."""

    def replay(scripts: Scripts | Scenario, users: Sequence[str]) -> list[Event]:
        given = _scripts_of(scripts) if isinstance(scripts, Scenario) else scripts
        return _talk(given, users)

    return replay


def _scripts_of(scenario: Scenario) -> list[dict[str, Any]]:
    """Give a scenario's scripts as the gateway takes them."""
    turns: Any = scenario.turns
    return [
        {
            name: {
                "when": script.when,
                "steps": [step.model_dump(by_alias=True) for step in script.steps],
            }
            for name, script in turn.model.scripts.items()
        }
        for turn in turns
    ]


def _talk(scripts: Scripts, users: Sequence[str]) -> list[Event]:
    """Let a plain agent on the openai SDK talk to the scripted model; give its ledger."""
    events: list[Event] = []
    recorder = Recorder(events.append)
    endpoint = Endpoint(scripts, recorder.event)
    recorder.start(scenario="talk", trial=0, lane="contract")
    with GatewayServer(endpoint) as server:
        url = f"http://127.0.0.1:{server.port}/v1"
        with openai.OpenAI(base_url=url, api_key="none", max_retries=0) as client:
            messages: list[Any] = []
            for index, text in enumerate(users):
                recorder.turn(text)
                endpoint.begin_turn(index)
                messages.append(Chat.user(text))
                recorder.reply(_answer(client, messages))
    endpoint.finish()
    recorder.header(Trace(models_observed=True))
    recorder.end(Ending("failed", "grader_failed", "planted"))
    return events


_OFFERED: Any = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}}
    for name in ("a", "b", "c")
]


def _answer(client: openai.OpenAI, messages: list[Any]) -> str:
    while True:
        try:
            response = client.chat.completions.create(model="m", messages=messages, tools=_OFFERED)
        except openai.APIStatusError as error:
            if error.status_code in (429, 529, 503):
                continue
            return f"failed: {error.status_code}"
        message = response.choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            return message.content or message.refusal or ""
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": "done"}
            for call in message.tool_calls
        ]


@pytest.fixture
def recorded_run(tmp_path: Path) -> Callable[[Sequence[Event]], Run]:
    """Write a ledger as a run of one trial, with a suite beside it if one is given."""

    def write(events: Sequence[Event], *, suite_path: str = "") -> Run:
        name = events[0].data["scenario"]
        plan = (PlannedScenario(name, 1),)
        manifest = Manifest("run-1", "wired", "contract", plan, suite_path=suite_path)
        writer = RunWriter.create(tmp_path / "run-1", manifest)
        end = Ending("failed", "grader_failed", "planted")
        record = trial_record(
            name, 0, trace_of(events), ending=end, grades=(), digest=digest(events)
        )
        writer.add(record, b"".join(map(event_line, events)))
        writer.finish()
        return load_run(writer.folder)

    return write
