"""Small agents as files, run in real processes."""

from __future__ import annotations

import textwrap
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evalkit.agents import AgentRef
from evalkit.results import ledger_name
from evalkit.trial import FinishedTrial, ProcessTrials, TrialOrder, trial_seed

MakeAgent = Callable[[str], AgentRef]


@pytest.fixture
def make_agent(tmp_path: Path) -> MakeAgent:
    """Write a module with an ``agent``; give the reference to it."""

    def make(code: str) -> AgentRef:
        name = f"agent_{uuid.uuid4().hex[:8]}"
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(code), encoding="utf-8")
        return AgentRef(f"{name}:agent", (str(tmp_path),))

    return make


class Bench:
    """Runs trials of an agent and looks at what is left."""

    def __init__(self, folder: Path, make_agent: MakeAgent, mark: str) -> None:
        self.folder = folder
        self.make_agent = make_agent
        self.mark = mark

    def ledger_path(self, order: TrialOrder) -> Path:
        """Say where a ledger lies."""
        return self.folder / ledger_name(order.scenario, order.trial)

    def orders(self, n: int = 1, *, seed: int = 7, **more: Any) -> list[TrialOrder]:
        """Order so many trials of one scenario."""
        given: dict[str, Any] = {"turns": ("hello",), "deadline_s": 20.0} | more
        return [
            TrialOrder("a", trial, seed=trial_seed(seed, "a", trial), **given) for trial in range(n)
        ]

    def start(
        self, code: str, orders: list[TrialOrder], *, n_parallel: int = 2
    ) -> Iterator[FinishedTrial]:
        """Run them, one by one as the caller asks."""
        with ProcessTrials(self.make_agent(code), n_parallel=n_parallel) as trials:
            yield from trials.run(orders, ledger_path=self.ledger_path)

    def run(
        self, code: str, n: int = 1, *, n_parallel: int = 2, **more: Any
    ) -> list[FinishedTrial]:
        """Run so many trials of an agent; give them by their number."""
        finished = list(self.start(code, self.orders(n, **more), n_parallel=n_parallel))
        assert len(finished) == n
        return sorted(finished, key=lambda one: one.order.trial)

    def one(self, code: str, **more: Any) -> FinishedTrial:
        """Run one trial of an agent."""
        return self.run(code, **more)[0]

    def processes(self) -> set[int]:
        """Find the living processes that this test started, at whatever depth."""
        return {int(p.name) for p in Path("/proc").glob("[0-9]*") if self._bears_mark(p)}

    def _bears_mark(self, process: Path) -> bool:
        try:
            return self.mark.encode() in (process / "environ").read_bytes()
        except OSError:
            return False

    def left_over(self, timeout_s: float = 5.0) -> set[int]:
        """Wait for all of them to end; give those that do not."""
        deadline = time.monotonic() + timeout_s
        while (left := self.processes()) and time.monotonic() < deadline:
            time.sleep(0.01)
        return left


@pytest.fixture
def bench(tmp_path: Path, make_agent: MakeAgent, monkeypatch: pytest.MonkeyPatch) -> Bench:
    """Run agents, and see to it that no process is left."""
    mark = uuid.uuid4().hex
    monkeypatch.setenv("EVALKIT_TEST_MARK", mark)
    folder = tmp_path / "ledgers"
    folder.mkdir()
    return Bench(folder, make_agent, mark)
