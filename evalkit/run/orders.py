"""From a suite's scenario to the order that a worker is given."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from evalkit.results import Manifest
from evalkit.run.databases import database_files, looks_of
from evalkit.run.turns import polls_of, turns_of
from evalkit.run.worlds import Worlds, captures_of, modules_of
from evalkit.sandbox.barrier import Barrier
from evalkit.sandbox.certificates import NO_AUTHORITY, make_authority
from evalkit.sandbox.clock import DEFAULT_TIME
from evalkit.sandbox.environment import GATEWAY_PORT, server_environment
from evalkit.sandbox.room import Room
from evalkit.suite import Scenario, Suite
from evalkit.suite.journey import TurnBase
from evalkit.trial import Staging, Surroundings, TrialOrder, trial_seed

_FIRST_PROCESS: Final = 0


class Orders:
    """Writes the orders of one run.

    Parameters
    ----------
    suite
        Its scenarios say what happens.
    manifest
        Lane, seed and barrier.
    faketime
        Path of libfaketime, where the agent needs it for the scenario's clock.
    """

    def __init__(self, suite: Suite, manifest: Manifest, *, faketime: str = "") -> None:
        self._faketime = faketime
        self._suite = suite
        self._scenarios = {scenario.id: scenario for scenario in suite}
        self._manifest = manifest
        self._authority = make_authority() if self.is_staged else NO_AUTHORITY
        self._worlds = Worlds(self._authority, self._folder)
        # The home is named so that it can be hidden; in a trial it is another.
        home = os.environ.get("HOME", "")
        self._env = server_environment(home=home) if self.is_staged else {}

    @property
    def is_staged(self) -> bool:
        """Whether trials run in a sandbox against a scripted model."""
        return self._manifest.lane == "contract"

    @property
    def surroundings(self) -> Surroundings | None:
        """What the server needs that trials are forked from."""
        if not self.is_staged:
            return None
        return Surroundings(
            self._barrier,
            self._env,
            self._keep,
            self._authority.certificate,
            modules=self._modules,
        )

    @property
    def _modules(self) -> tuple[str, ...]:
        """Name what only some trials need, so that no trial has to import it."""
        planned = [self._scenarios[entry.id] for entry in self._manifest.plan]
        watches = any(looks_of(scenario) is not None for scenario in planned)
        brings = any(scenario.deliveries or scenario.reply_from for scenario in planned)
        ways = ("evalkit.trial.delivering", "evalkit.trial.replying")
        worlds = tuple(dict.fromkeys(name for one in planned for name in modules_of(one)))
        return ("evalkit.trial.databases",) * watches + ways * brings + worlds

    @cached_property
    def _keep(self) -> tuple[str, ...]:
        """Name the folders that an agent is imported from, wherever they lie."""
        folder = [self._suite.path.parent] if self._suite.path is not None else []
        return tuple(str(path.resolve()) for path in (*folder, Path.cwd()))

    @property
    def _barrier(self) -> Barrier:
        barrier: Any = self._manifest.barrier
        return barrier  # type: ignore[no-any-return]

    def order(self, scenario_id: str, trial: int) -> TrialOrder:
        """Write the order of one trial."""
        scenario = self._scenarios[scenario_id]
        return TrialOrder(
            scenario=scenario_id,
            trial=trial,
            turns=turns_of(scenario, self._folder),
            lane=self._manifest.lane,
            seed=trial_seed(self._manifest.seed, scenario_id, trial),
            env=dict(scenario.env),
            deadline_s=scenario.deadline_s,
            staging=self._staging(scenario) if self.is_staged else None,
        )

    def _staging(self, scenario: Scenario) -> Staging:
        # Trials of the contract lane are copies: their number changes nothing in them.
        clock = scenario.clock
        room = Room(
            barrier=self._barrier,
            env=None,  # the server was started with it
            more_env=dict(scenario.env),
            clock=DEFAULT_TIME if clock is None else clock.at,
            frozen=clock is not None and clock.frozen,
            seed=(self._manifest.seed, scenario.id, _FIRST_PROCESS),
            files=self._files(scenario),
            certificate=self._authority.certificate,
            keep=self._keep,
            faketime=self._faketime,
            spare=os.path.join(tempfile.gettempdir(), f"evalkit-{os.urandom(6).hex()}"),  # noqa: PTH118
            captures=captures_of(scenario),
        )
        return Staging(
            scripts=tuple(map(_scripts, scenario.turns)),
            room=room,
            port=GATEWAY_PORT if self._barrier == "namespace" else 0,
            polls=polls_of(scenario),
            reply_from=_reply_source(scenario),
            databases=looks_of(scenario),
            world=self._worlds.plan(scenario),
        )

    def _files(self, scenario: Scenario) -> Mapping[str, bytes | str]:
        """Give the fixture files, and the databases, by where they go in the working directory."""
        files = scenario.fixtures.files if scenario.fixtures is not None else {}
        paths = {name: str((self._folder / source).resolve()) for name, source in files.items()}
        return {**paths, **database_files(scenario, self._folder)}

    @property
    def _folder(self) -> Path:
        return self._suite.path.parent if self._suite.path is not None else Path.cwd()


def _reply_source(scenario: Scenario) -> tuple[str, str] | None:
    source = scenario.reply_from
    return None if source is None else (source.request, source.field)


def _scripts(turn: TurnBase) -> dict[str, dict[str, Any]]:
    """Give a turn's scripts as plain data."""
    if turn.model is None:
        return {}
    return {
        name: {
            "when": None if script.when is None else dict(script.when),
            "steps": [step.model_dump(by_alias=True, exclude_none=True) for step in script.steps],
        }
        for name, script in turn.model.scripts.items()
    }
