"""A notebook session as people type it: agents and graders in cells, cells run twice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest

from evalkit import shipped

pytestmark = pytest.mark.notebook

SETUP = f"""
import warnings
warnings.simplefilter("error")
import evalkit as ek

suite = ek.load_suite({str(shipped.suite("travel"))!r})
WEATHER = [("get_weather", {{"city": "Denver"}})]
only = {{"lane": "live", "scenarios": ["weather-only"]}}
"""
SYNC = """
def agent(text):
    return ek.Trace.from_calls(WEATHER, reply="Denver is clear")

run = ek.run_suite(suite, agent=agent, n_trials=2, **only)
assert run.status == "passed", run.records
"""
ASYNC = """
import asyncio

async def agent(text):
    await asyncio.sleep(0)
    return ek.Trace.from_calls(WEATHER, reply="Denver is clear")

run = ek.run_suite(suite, agent=agent, **only)
assert run.status == "passed", run.records
"""
FACTORY = """
class Agent:
    def __init__(self):
        self.told = []

    def reply(self, text):
        self.told.append(text)
        return ek.Trace.from_calls(WEATHER, reply=f"Denver is clear, {len(self.told)}")

    def close(self):
        self.told.clear()

run = ek.run_suite(suite, agent=Agent, n_trials=2, **only)
assert run.status == "passed", run.records
assert {run.trace("weather-only", n).reply for n in range(2)} == {"Denver is clear, 1"}
"""
GRADER = """
@ek.grader
def is_polite(trial):
    "The reply thanks."
    return "thank" in trial.reply, "no thanks in it"

run = ek.run_suite(suite, agent=agent, graders=[is_polite], **only)
assert run.grades.set_index("grader").reason["is_polite"] == "no thanks in it"
graded = ek.grade_run(run, suite, graders=["is_polite"])
assert graded.status == "failed"
"""
CLIENT = """
import threading

class Client:
    def __init__(self):
        self.lock = threading.Lock()

client = Client()

def agent_with_client(text):
    with client.lock:
        return "Denver"

ek.run_suite(suite, agent=agent_with_client, **only)
"""
SHOWN = (
    "run",
    "run.trials",
    "run.grades",
    "ek.load_runs('data/runs')",
    "ek.pass_rates(run, by='scenario')",
)


class Session:
    """A notebook with a live kernel, to which cells are added."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def run(self, source: str) -> list[Any]:
        """Execute one more cell and give its outputs; an error in it is raised."""
        import nbformat

        cell = nbformat.v4.new_code_cell(source)  # type: ignore[no-untyped-call]
        self._client.nb.cells.append(cell)
        self._client.execute_cell(cell, len(self._client.nb.cells) - 1)
        return list(cell.outputs)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    """Start a kernel of this interpreter in an empty folder."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.v4.new_notebook()  # type: ignore[no-untyped-call]
    folder = tmp_path_factory.mktemp("session")
    client = NotebookClient(
        notebook, timeout=120, kernel_name="python3", resources={"metadata": {"path": str(folder)}}
    )
    # Whatever a kernel of that name is elsewhere on the machine.
    client.create_kernel_manager().kernel_spec.argv[0] = sys.executable
    with client.setup_kernel():
        session = Session(client)
        session.run(SETUP)
        yield session


@pytest.mark.parametrize("cell", [SYNC, ASYNC, FACTORY], ids=["sync", "async", "factory"])
def test_agent_of_a_cell_runs_in_fresh_processes(session: Session, cell: str) -> None:
    """An agent that exists in a cell only is run, inside the kernel's event loop, silently."""
    assert session.run(cell) == []


def test_cell_with_a_grader_runs_twice(session: Session) -> None:
    """Running a cell again, and changing the grader in it, replaces the grader."""
    session.run(SYNC)
    assert session.run(GRADER) == []
    assert session.run(GRADER) == []
    session.run(GRADER.replace("no thanks in it", "please say thanks"))


def test_captured_client_is_named_with_ways_out(session: Session) -> None:
    """An agent that cannot be sent is refused before the run; the message names the variable."""
    from nbclient.exceptions import CellExecutionError

    with pytest.raises(CellExecutionError) as caught:
        session.run(CLIENT)
    assert caught.value.ename == "AgentError"
    for words in ("'client'", "zero-argument factory", "isolation='none'"):
        assert words in caught.value.evalue


@pytest.mark.parametrize("expression", SHOWN)
def test_results_show_themselves_as_html(session: Session, expression: str) -> None:
    """What a cell ends with is shown as a table that names what it shows, without script."""
    session.run(SYNC)
    (output,) = session.run(expression)
    html = output["data"]["text/html"]
    assert "<table" in html
    assert "travel" in html or "weather-only" in html
    assert "<script" not in html


def test_markup_in_a_reason_is_text(session: Session) -> None:
    """What an agent says cannot become markup of the notebook."""
    session.run("def rude(text):\n    raise ValueError('<img src=x onerror=alert(1)>')")
    (output,) = session.run("ek.run_suite(suite, agent=rude, **only)")
    assert "&lt;img" in output["data"]["text/html"]
    assert "<img" not in output["data"]["text/html"]


def test_changed_cell_is_another_agent(session: Session) -> None:
    """A run is not resumed with another version of the cell; with the same one it is."""
    session.run(SYNC)
    session.run("assert ek.resume_run(run.folder, suite=suite, agent=agent).digest == run.digest")
    changed = SYNC.partition("\nrun = ")[0].replace("clear", "cloudy")
    told = session.run(
        f"{changed}\ntry:\n    ek.resume_run(run.folder, suite=suite, agent=agent)\n"
        "except ek.errors.UsageError as error:\n    print(error)"
    )
    assert "the agent's code has changed" in told[0]["text"]


def test_session_leaves_runs_only(session: Session) -> None:
    """Whatever was run lies under data/runs."""
    (output,) = session.run("import os; sorted(os.listdir()), sorted(os.listdir('data'))")
    assert output["data"]["text/plain"] == "(['data'], ['runs'])"
