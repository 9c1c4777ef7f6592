"""The gate as a build meets it: agents that change, commands in processes, exit codes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

import evalkit.examples.travel
from evalkit import shipped

HERE = Path(__file__).parent
TRAVEL = Path(evalkit.examples.travel.__file__).parent
CHECKOUT = HERE.parents[1]

pytestmark = pytest.mark.timeout(600)


class Said(NamedTuple):
    """What a command said, and how it exited."""

    code: int
    text: str


class Project:
    """A user's folder with an agent of their own, and the commands that they type."""

    def __init__(self, folder: Path, env: Mapping[str, str] = {}) -> None:
        self.folder = folder
        self._env = {**os.environ, "PYTHONPATH": str(CHECKOUT), **env}

    def evalkit(self, *arguments: str | Path) -> Said:
        """Run a command in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-m", "evalkit.cli", *map(str, arguments)],
            cwd=self.folder,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
        )
        return Said(done.returncode, done.stdout + done.stderr)

    def run(self, suite: str | Path, *options: str, seed: int = 0) -> Path:
        """Run a suite, and give the run's folder."""
        out = self.folder / "runs" / f"{len(list(self.folder.glob('runs/*'))):03}"
        said = self.evalkit("run", suite, "--seed", str(seed), "--out", out, *options)
        assert said.code in (0, 1), said.text
        (folder,) = out.iterdir()
        return folder

    def pin(self, name: str, suite: str | Path, *options: str) -> None:
        """Pin three runs."""
        runs = [self.run(suite, *options, seed=seed) for seed in (101, 102, 103)]
        said = self.evalkit("baseline", "pin", name, *runs)
        assert said.code == 0, said.text

    def edit(self, file: str, old: str, new: str) -> None:
        """Change the agent's code."""
        path = self.folder / file
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Give a folder with a copy of the travel agent."""
    shutil.copytree(TRAVEL, tmp_path / "my_travel", ignore=shutil.ignore_patterns("__pycache__"))
    return Project(tmp_path)


def test_a_change_of_code_that_breaks_the_agent_turns_the_contract_gate_red(
    project: Project,
) -> None:
    """The unchanged agent passes; one that no longer runs its tools fails, and it is said how."""
    suite, agent = shipped.suite("travel"), ("--agent", "my_travel:agent")
    good = project.evalkit("gate", project.run(suite, *agent))
    assert good.code == 0, good.text
    assert good.text.startswith("PASS")
    assert "all 5 planned trials passed" in good.text
    project.edit(
        "my_travel/assistant.py",
        '{"role": "user", "content": self.results_for(message)}',
        '{"role": "user", "content": "Done."}',
    )
    bad = project.evalkit("gate", project.run(suite, *agent))
    assert bad.code == 1, bad.text
    assert bad.text.startswith("FAIL")
    assert "of 5 trials failed: weather-gate-book (" in bad.text


@pytest.fixture
def model_url() -> Iterator[str]:
    """Give the address of a stand-in model that obeys its prompt."""
    command = [sys.executable, str(HERE / "stand_in_model.py")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.kill()


SCENARIO = """
  - id: {weather}-{number}
    input: Book AA123 for Friday, but only if it isn't raining in Denver. ({number})
    env: {{TRAVEL_RAINY_CITIES: {rainy}}}
    expect: {{reply: {{contains: {wanted}}}}}"""


def _live_suite() -> str:
    """Write a suite: in half of the scenarios it rains, and nothing must be booked."""
    dry = ("dry", "Boston", "is booked")
    wet = ("wet", "Denver", "did not book")
    scenarios = (
        SCENARIO.format(weather=weather, number=number, rainy=rainy, wanted=wanted)
        for number in range(8)
        for weather, rainy, wanted in (dry, wet)
    )
    return f"suite: rain\nagent: my_travel:agent\nscenarios:{''.join(scenarios)}\n"


def test_a_change_of_prompt_turns_the_live_gate_red(project: Project, model_url: str) -> None:
    """Dropping one sentence of the prompt books flights in the rain, and the gate sees it."""
    keys = {"ANTHROPIC_BASE_URL": model_url, "ANTHROPIC_API_KEY": "sk-nobody"}
    live = Project(project.folder, keys)
    (live.folder / "rain.yaml").write_text(_live_suite())
    live.pin("main", "rain.yaml", "--lane", "live")
    options = ("--baseline", "main", "--margin", "0.3")
    again = live.evalkit("gate", live.run("rain.yaml", "--lane", "live", "-n", "2"), *options)
    assert again.code == 0, again.text
    assert again.text.startswith("PASS")
    live.edit(
        "my_travel/assistant.py",
        '    "If the user sets a condition, check it first, and book only if it holds.",\n',
        "",
    )
    bad = live.evalkit("gate", live.run("rain.yaml", "--lane", "live", "-n", "2"), *options)
    assert bad.code == 1, bad.text
    assert bad.text.startswith("FAIL")
    assert "worse than the baseline" in bad.text
    assert "newly failing, most of its trials: wet-0, wet-1" in bad.text


STOCHASTIC = """
import hashlib, random

WORSE = 0.0

def ability(text):
    "Some scenarios are hard, whoever asks."
    return 0.97 - 0.5 * (int(hashlib.sha256(text.encode()).hexdigest(), 16) % 1000 < 250)

def agent(text):
    return "Booked." if random.random() < ability(text) - WORSE else "Sorry."
"""
SEEDS = range(1, 21)
"""Fixed before the first run."""
LIVE = ("--lane", "live", "-n", "3", "--isolation", "none")
"""The agent does no harm, and 26,000 processes would only cost time."""


@pytest.fixture(scope="module")
def chancy(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Set up a stochastic agent on 200 scenarios, with a baseline of three runs of three trials."""
    project = Project(tmp_path_factory.mktemp("chancy"))
    (project.folder / "bot.py").write_text(STOCHASTIC)
    scenarios = "".join(
        f"  - {{id: s{i:03}, input: book {i}, expect: {{reply: {{contains: booked}}}}}}\n"
        for i in range(200)
    )
    text = f"suite: chancy\nagent: bot:agent\nscenarios:\n{scenarios}"
    (project.folder / "chancy.yaml").write_text(text)
    project.pin("main", "chancy.yaml", *LIVE)
    return project


def _verdicts(project: Project) -> list[str]:
    """Run and gate with every seed; give the verdicts."""
    words = []
    for seed in SEEDS:
        run = project.run("chancy.yaml", *LIVE, seed=seed)
        said = project.evalkit("gate", run, "--baseline", "main")
        words.append(said.text.split()[0])
        assert said.code == {"PASS": 0, "INCONCLUSIVE": 0, "FAIL": 1}[words[-1]], said.text
    return words


def test_an_unchanged_stochastic_agent_mostly_passes(chancy: Project) -> None:
    """Of 20 runs of 200 scenarios x 3, at least 12 pass and at most 2 fail."""
    words = _verdicts(chancy)
    assert words.count("PASS") >= 12, words
    assert words.count("FAIL") <= 2, words


def test_a_stochastic_agent_that_got_worse_fails_every_time(chancy: Project) -> None:
    """Made 20 points worse, it fails with every seed."""
    chancy.edit("bot.py", "WORSE = 0.0", "WORSE = 0.2")
    try:
        assert _verdicts(chancy) == ["FAIL"] * len(SEEDS)
    finally:
        chancy.edit("bot.py", "WORSE = 0.2", "WORSE = 0.0")
