"""The same scenario passes with unmodified agents on every SDK, and twice the same."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import evalkit as ek
from evalkit.diffing import leaves_that_differ

pytestmark = [pytest.mark.sdk, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")]

AGENTS = Path(__file__).parent / "agents"
CHECKOUT = Path(__file__).parents[2]
NODE_SDK = "@anthropic-ai/sdk@1.14.0"

WEATHER = {"city": "Seattle"}
BOOKING = {"flight_id": "AA123", "date": "Friday"}
ANSWER = "It is clear in Seattle. Booked AA123 for Friday."

# Two tools are asked for at once, then one that needs what they gave, then comes the answer.
JOURNEY: dict[str, Any] = {
    "input": "Book the flight to Seattle for Friday if it is clear there.",
    "deadline": "60s",
    "model": [
        {"tools": [{"get_weather": WEATHER}, {"search": {"destination": "Seattle"}}]},
        {"tool": "book", "args": BOOKING},
        {"text": ANSWER},
    ],
    "expect": {
        "tools": {
            "order": "any",
            "extra_calls": "forbid",
            "calls": [
                {"id": "weather", "tool": "get_weather", "args": WEATHER, "status": "ok"},
                {"id": "flights", "tool": "search", "args": {"destination": "Seattle"}},
                {"tool": "book", "args": BOOKING, "after": ["weather", "flights"], "status": "ok"},
            ],
        },
        "reply": {"equals": ANSWER},
        "prompt": {
            "contains": [
                "Book the flight to Seattle for Friday",
                "It is clear in Seattle.",
                "AA123 to Seattle for $129",
                "AA123 is booked for Friday.",
            ]
        },
        "path": {"max_model_calls": 3},
    },
}

TWO_AT_ONCE: dict[str, Any] = {
    "input": "What flies to Seattle on Friday, and is it clear there?",
    "model": {
        "flights": {
            "when": {"system": {"$contains": "flights"}},
            "steps": [{"text": "AA123 does."}],
        },
        "weather": {
            "when": {"system": {"$contains": "weather"}},
            "steps": [{"text": "It is."}],
        },
    },
    "expect": {"reply": {"equals": "AA123 does. It is."}, "path": {"max_model_calls": 2}},
}

SINGLE_THREADED: Mapping[str, tuple[str, Sequence[str]]] = {
    "on_anthropic": (
        "anthropic",
        ("sync", "built_at_import", "streaming", "asynchronous", "async_streaming"),
    ),
    "on_openai": (
        "openai",
        (
            "chat",
            "chat_streaming",
            "chat_asynchronous",
            "responses",
            "responses_streaming",
            "built_at_import",
        ),
    ),
    "on_gemini": (
        "google.genai",
        (
            "by_hand",
            "built_at_import",
            "calling_by_itself",
            "chat",
            "chat_streaming",
            "asynchronous",
            "async_streaming",
        ),
    ),
    "on_pydantic_ai": (
        "pydantic_ai",
        ("with_anthropic", "with_openai_chat", "with_openai_responses", "with_gemini", "streaming"),
    ),
    "on_openai_agents": ("agents", ("responses", "chat", "streaming")),
}
MANY_THREADED: Mapping[str, tuple[str, Sequence[str]]] = {
    "on_langgraph": ("langchain.agents", ("with_anthropic", "with_openai", "streaming")),
    "two_at_once": ("anthropic", ("threads",)),
}


def need(condition: object, reason: str) -> None:
    """Skip where a part is missing; in CI a missing part is a failure."""
    if condition:
        return
    if os.environ.get("EVALKIT_REQUIRE_ALL") == "1":
        pytest.fail(f"EVALKIT_REQUIRE_ALL=1, but {reason}")
    pytest.skip(reason)


def need_package(name: str) -> None:
    """Skip where a package is missing."""
    need(importlib.util.find_spec(name.partition(".")[0]), f"{name} is not installed")


def write_suite(folder: Path, agent: Any, scenarios: Sequence[Mapping[str, Any]]) -> Path:
    """Write a suite beside the agents, which are copied there."""
    shutil.copytree(AGENTS, folder, dirs_exist_ok=True)
    path = folder / "sdks.yaml"
    path.write_text(json.dumps({"suite": "sdks", "agent": agent, "scenarios": scenarios}))
    return path


def suite_of(module: str, variants: Sequence[str], folder: Path) -> Path:
    """Write a suite with a scenario for each variant; its environment says which one."""
    code = f"def agent(text): return getattr({module}, os.environ['VARIANT'])(text)\n"
    told = TWO_AT_ONCE if module == "two_at_once" else JOURNEY
    scenarios = [{"id": name, **told, "env": {"VARIANT": name}} for name in variants]
    path = write_suite(folder, "chosen:agent", scenarios)
    (folder / "chosen.py").write_text(f"import os, {module}\n{code}")
    return path


def run_twice(suite: Path, out: Path) -> tuple[ek.Run, ek.Run]:
    """Run a suite twice; all must pass, every tool's result be known, streams be streams."""
    first, second = (ek.run_suite(suite, out=out / name) for name in ("first", "second"))
    for run in (first, second):
        assert {record.scenario: record.reason for record in run.records if record.reason} == {}
        assert run.status == "passed"
        assert set(run.tool_calls.status) <= {"ok"}
        for name in (record.scenario for record in run.records if "streaming" in record.scenario):
            calls = [event for event in run.ledger(name) if event.kind == "model_call"]
            assert {event.data["stream"] for event in calls} == {True}
    return first, second


@pytest.mark.parametrize("module", SINGLE_THREADED)
def test_single_threaded_agent_passes_and_repeats_to_the_byte(module: str, tmp_path: Path) -> None:
    """Two runs of agents with one thread have one digest, and no value that differs."""
    package, variants = SINGLE_THREADED[module]
    need_package(package)
    first, second = run_twice(suite_of(module, variants, tmp_path / "suite"), tmp_path)
    for name in variants:
        assert leaves_that_differ(first.ledger(name), second.ledger(name)) == []
    assert first.digest == second.digest


@pytest.mark.parametrize("module", MANY_THREADED)
def test_many_threaded_agent_passes_and_repeats_in_canonical_order(
    module: str, tmp_path: Path
) -> None:
    """Two runs of agents with threads differ in nothing but the order of what happened at once."""
    package, variants = MANY_THREADED[module]
    need_package(package)
    first, second = run_twice(suite_of(module, variants, tmp_path / "suite"), tmp_path)
    for name in variants:
        ledgers = first.ledger(name), second.ledger(name)
        assert leaves_that_differ(*ledgers, in_canonical_order=True) == []


@pytest.fixture(scope="session")
def node_packages() -> Path:
    """Install the Node SDK once, in the checkout's cache folder."""
    need(shutil.which("node") and shutil.which("npm"), "there is no node, or no npm")
    cache = CHECKOUT / ".peer" / "node"
    if not (cache / "node_modules" / "@anthropic-ai" / "sdk" / "package.json").exists():
        cache.mkdir(parents=True, exist_ok=True)
        command = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(cache), NODE_SDK]
        done = subprocess.run(command, capture_output=True, text=True, timeout=240)
        need(done.returncode == 0, f"npm cannot install {NODE_SDK}: {done.stderr[-300:]}")
    return cache


@pytest.fixture
def node_folder(node_packages: Path) -> Iterator[Path]:
    """Give a folder for a suite, from which Node finds the SDK."""
    with tempfile.TemporaryDirectory(prefix="suite-", dir=node_packages) as folder:
        yield Path(folder)


@pytest.mark.parametrize("name", ["plain", "streaming"])
def test_node_agent_passes_and_repeats_in_canonical_order(
    name: str, node_folder: Path, tmp_path: Path
) -> None:
    """An agent in another language runs as a command, in the same sandbox and against the model."""
    agent = {"command": ["node", "on_node.mjs", name]}
    suite = write_suite(node_folder, agent, [{"id": name, **JOURNEY}])
    first, second = run_twice(suite, tmp_path)
    ledgers = first.ledger(name), second.ledger(name)
    assert leaves_that_differ(*ledgers, in_canonical_order=True) == []


def test_every_agent_here_is_run() -> None:
    """A module of agents, or an agent in one, that no test names would prove nothing."""
    tables = {**SINGLE_THREADED, **MANY_THREADED}
    assert {path.stem for path in AGENTS.glob("on_*.py")} | {"two_at_once"} == tables.keys()
    for module, (_, variants) in tables.items():
        tree = ast.parse((AGENTS / f"{module}.py").read_text())
        functions = [n for n in tree.body if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
        public = {function.name for function in functions if not function.name.startswith("_")}
        assert public == set(variants)
