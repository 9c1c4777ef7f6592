"""The GitHub workflows are valid, ask for little, and do what their steps say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from evalkit.scaffolding import make_project, plan_project

CHECKOUT = Path(__file__).resolve().parents[1]
OWN = CHECKOUT / ".github" / "workflows"
TEMPLATES = CHECKOUT / "evalkit" / "scaffolding" / "templates"
NAMES = ("agent-evals.yml", "evaluate.yml")
# A source distribution has no hidden folders; a checkout without its workflows is broken.
FOLDERS = {"template": TEMPLATES}
if OWN.is_dir() or (CHECKOUT / ".git").exists():
    FOLDERS["own"] = OWN
every_workflow = pytest.mark.parametrize(
    "path",
    [pytest.param(folder / name, id=f"{key}-{name}")
     for key, folder in FOLDERS.items() for name in NAMES],
)  # fmt: skip
every_folder = pytest.mark.parametrize("folder", FOLDERS.values(), ids=list(FOLDERS))
PLANTED = '    if order["status"] != "delivered":'


def read(path: Path) -> Any:
    """Read a workflow as YAML 1.2 does: `on` is a word."""

    class Loader(yaml.SafeLoader):
        pass

    Loader.yaml_implicit_resolvers = {
        first: [each for each in known if each[0] != "tag:yaml.org,2002:bool"]
        for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }
    Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile("^(true|false)$"), list("tf"))
    return yaml.load(path.read_text(), Loader)


def steps_of(path: Path) -> Iterator[dict[str, Any]]:
    """Give the steps of all jobs."""
    for job in read(path)["jobs"].values():
        yield from job.get("steps", ())


@pytest.fixture(scope="module")
def schema() -> Any:
    """Read the published schema of workflows, as check-jsonschema carries it."""
    folder = files("check_jsonschema.builtin_schemas.vendor")
    return json.loads((folder / "github-workflows.json").read_text())


@every_workflow
def test_workflow_follows_the_published_schema(path: Path, schema: Any) -> None:
    """Each file is a workflow as GitHub's schema has it."""
    jsonschema.validators.validator_for(schema)(schema).validate(read(path))


def test_schema_bites(schema: Any) -> None:
    """A misspelt key is found, so the test above can fail."""
    wrong = read(TEMPLATES / "evaluate.yml")
    wrong["jobs"]["evaluate"]["runs_on"] = wrong["jobs"]["evaluate"].pop("runs-on")
    assert list(jsonschema.validators.validator_for(schema)(schema).iter_errors(wrong))


@every_workflow
def test_workflow_asks_for_little(path: Path) -> None:
    """Read-only token, a limit on time, known actions by major version."""
    workflow = read(path)
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        assert job.get("permissions", {}) in ({}, {"contents": "read"})
        assert "timeout-minutes" in job or "uses" in job
    used = {step["uses"] for step in steps_of(path) if "uses" in step}
    assert all(re.fullmatch(r"actions/[a-z-]+@v\d+", action) for action in used), used


@every_workflow
def test_no_text_of_others_is_pasted_into_a_script(path: Path) -> None:
    """What a script gets from outside, it gets as environment variables."""
    for step in steps_of(path):
        assert "${{" not in step.get("run", "")


@every_folder
def test_pull_requests_see_no_secret(folder: Path) -> None:
    """Secrets go to jobs that no pull request starts; without a key no money is spent."""
    workflow = read(folder / "agent-evals.yml")
    assert "pull_request_target" not in workflow["on"]
    assert "secrets" not in json.dumps(workflow["jobs"]["contract"])
    assert "pull_request" not in workflow["jobs"]["key"]["if"]
    assert workflow["jobs"]["live"]["needs"] == ["contract", "key"]
    assert workflow["jobs"]["live"]["if"] == "needs.key.outputs.present == 'yes'"
    assert workflow["concurrency"]["cancel-in-progress"] == (
        "${{ github.event_name == 'pull_request' }}"
    )


@every_folder
def test_callers_give_inputs_that_exist(folder: Path) -> None:
    """The reusable workflow knows every input and secret that it is called with."""
    called = read(folder / "evaluate.yml")["on"]["workflow_call"]
    jobs = [job for job in read(folder / "agent-evals.yml")["jobs"].values() if "uses" in job]
    assert len(jobs) == 2
    for job in jobs:
        assert job["uses"] == "./.github/workflows/evaluate.yml"
        assert job["with"].keys() <= called["inputs"].keys()
        assert job.get("secrets", {}).keys() <= called["secrets"].keys()
    assert {"suite", "lane", "trials", "baseline", "python-version"} <= called["inputs"].keys()


@every_folder
def test_project_gets_the_workflow_that_is_used_here(folder: Path) -> None:
    """What the template does is what runs on this repository."""
    assert (folder / "evaluate.yml").read_bytes() == (TEMPLATES / "evaluate.yml").read_bytes()


def test_namespaces_are_allowed_before_anything_runs() -> None:
    """Ubuntu's runners forbid them until they are told otherwise."""
    runs = [step.get("run", "") for step in steps_of(TEMPLATES / "evaluate.yml")]
    allow = runs.index("sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")
    assert allow < runs.index("evalkit doctor") < runs.index('evalkit check "$SUITE"')


def test_results_are_kept_whatever_happened() -> None:
    """The upload always runs, and takes no run directories."""
    last = list(steps_of(TEMPLATES / "evaluate.yml"))[-1]
    assert last["if"] == "always()"
    assert last["with"]["path"] == "results/"


# --- the steps themselves ---------------------------------------------------------------


class Runner:
    """Runs the named steps of the reusable workflow in a project, as a runner does."""

    def __init__(self, project: Path, **inputs: str) -> None:
        self.project = project
        self.temp = project.parent / "temp"
        self.temp.mkdir(exist_ok=True)
        self.summary = self.temp / "summary.md"
        commands = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.env = {
            **os.environ, "PATH": commands, "RUNNER_TEMP": str(self.temp), "GITHUB_ACTIONS": "true",
            "GITHUB_STEP_SUMMARY": str(self.summary), "SUITE": "data/suites", "LANE": "contract",
            "TRIALS": "1", "BASELINE": "", "FLOOR": "", "ANTHROPIC_API_KEY": "",
        } | inputs  # fmt: skip
        self.steps = {step.get("name"): step for step in steps_of(TEMPLATES / "evaluate.yml")}

    def __call__(self, name: str) -> int:
        """Run a step; gives its exit code."""
        script = self.temp / "step.sh"
        script.write_text(self.steps[name]["run"])
        # What GitHub makes of `shell: bash`.
        bash = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        return subprocess.run(
            bash, cwd=self.project, env=self.env, timeout=250, check=False
        ).returncode


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Make a project that needs no model."""
    make_project(plan_project(tmp_path / "bot"))
    return tmp_path / "bot"


def break_agent(project: Path) -> None:
    """Let the agent refund what has not arrived."""
    agent = project / "support_agent.py"
    text = agent.read_text()
    assert PLANTED in text
    agent.write_text(text.replace(PLANTED, "    if False:"))


def test_contract_steps_are_green_and_red(project: Path) -> None:
    """Unchanged, check, run and gate pass and leave JUnit; broken, run and gate are red."""
    runner = Runner(project)
    assert [runner(name) for name in ("Check the suites", "Run", "Gate")] == [0, 0, 0]
    assert "<testcase" in (project / "results/junit.xml").read_text()
    assert runner.summary.read_text()
    break_agent(project)
    assert [runner(name) for name in ("Run", "Gate")] == [1, 1]


def test_gate_decides_in_the_live_lane(project: Path) -> None:
    """A trial that fails is a rate: the run step goes on, and the floor decides."""
    runner = Runner(project, LANE="live", TRIALS="2", FLOOR="0.70")
    break_agent(project)
    assert [runner(name) for name in ("Run", "Gate")] == [0, 0]
    runner.env["FLOOR"] = "0.90"
    assert runner("Gate") == 1


def test_nothing_measured_is_red(project: Path) -> None:
    """A suite that is missing stops the run, and a gate without runs is no pass."""
    runner = Runner(project, SUITE="data/suites/other.yaml", LANE="live")
    assert runner("Run") == 3
    assert runner("Gate") == 3


@pytest.mark.notebook
def test_report_step_writes_a_report_a_run(project: Path) -> None:
    """The reports land among the results."""
    runner = Runner(project)
    assert [runner(name) for name in ("Run", "Report")] == [0, 0]
    (report,) = (project / "results").glob("*.html")
    assert "Pass rates" in report.read_text()
