"""The main job on the data that ships: run, grade, look at failures, render a report.

Run it with ``python -m evalkit.examples.demo``; needs no key and no network.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Final

import evalkit as ek
from evalkit import shipped
from evalkit.errors import EvalkitError, MissingDependency
from evalkit.suite import AgentEntry
from evalkit.summaries import run_text
from evalkit.terminal import columns, printable

RULES: Final = "evalkit.examples.travel_rules"
RECORDED: Final = ("good", "wrong_id", "looping", "forbidden")
MISTAKES: Final = {
    "wrong_id": "the-cheaper-one",
    "no_weather_check": "rain-reaches-the-model",
    "default_answer": "weather-only",
    "looping": "ambiguous-needs-search",
    "forgets_conversation": "the-cheaper-one",
    "runs_tool_with_empty_args": "truncated-tool-json",
    "fabricated_success": "overloaded",
    "retries_forever": "overloaded",
    "swallowed_error": "truncated-stream",
    "ignores_stop_reason": "clean-early-end",
    "guesses_on_timeout": "timeout",
    "uncaught_error": "malformed-json",
}
"""Planted mistakes, and a scenario that catches each."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration from the command line and give its exit code.

    It is 0 where everything could be shown, whatever the agents shown do.

    Parameters
    ----------
    arguments
        Defaults to the process's own.
    """
    options = _options(arguments)
    try:
        demonstrate(out=options.out, reports=options.reports)
    except MissingDependency as error:
        sys.stderr.write(f"demo: {error}\n")
        return 3
    except EvalkitError as error:
        sys.stderr.write(f"demo: {printable(error)}\n")
        return 2
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evalkit.examples.demo")
    parser.description = "Run, grade and report on the travel suite; needs no model and no key."
    parser.add_argument("--out", default="data/runs", help="folder for the runs [%(default)s]")
    parser.add_argument("--reports", default="reports", help="folder for the report [%(default)s]")
    return parser.parse_args(arguments)


def demonstrate(*, out: str = "data/runs", reports: str = "reports") -> None:
    """Show a real agent offline, its planted mistakes, recorded ones, and a flaky agent.

    Parameters
    ----------
    out
        Folder for the runs.
    reports
        Folder for the report.
    """
    if find_spec("anthropic") is None:
        raise MissingDependency("anthropic", "examples")
    travel, faults = (ek.load_suite(shipped.suite(name)) for name in ("travel", "travel_faults"))
    say("1. A real agent on the anthropic SDK, offline, against a scripted model: contract lane")
    for suite in (travel, faults):
        say(run_text(ek.run_suite(suite, out=out)))

    say("2. The same agent with one planted mistake each")
    mistaken = ek.run_suite(with_mistakes(travel, faults), out=out)
    caught = (
        (*r.scenario.split("--"), r.status, r.reason.partition("\n")[0]) for r in mistaken.records
    )
    say(columns(caught, head=("mistake", "scenario", "status", "what was wrong")))

    say("3. Four recorded behaviours of a travel agent, imported and graded")
    say(columns(recorded_behaviours(travel, out), head=("recording", "status", "what was wrong")))

    say("4. A rule-based agent that fails now and then: live lane, ten trials each")
    flaky = f"{RULES}:flaky"
    run = ek.run_suite(travel, agent=flaky, lane="live", n_trials=10, seed=1, out=out)
    say(run_text(run))

    for shown in (mistaken, run):
        say(f"report  {printable(ek.render_report('pass_rates', run=shown, out=reports))}")


def with_mistakes(*suites: ek.Suite) -> ek.Suite:
    """Copy, for each mistake, the scenario that catches it."""
    scenarios = {scenario.id: scenario for suite in suites for scenario in suite}
    copies = tuple(
        scenarios[name].model_copy(
            update={
                "id": f"{mistake}--{name}",
                "env": {**scenarios[name].env, "TRAVEL_MISTAKE": mistake},
            }
        )
        for mistake, name in MISTAKES.items()
    )
    agent = AgentEntry(python="evalkit.examples.travel.bugs:planted")
    update = {"name": "travel-mistakes", "agent": agent, "scenarios": copies, "path": None}
    return suites[0].model_copy(update=update)


def recorded_behaviours(suite: ek.Suite, out: str) -> Iterator[tuple[str, str, str]]:
    """Grade each recording and say what was wrong with it."""
    for name in RECORDED:
        imported = ek.import_run("openai", shipped.trace(f"travel_{name}.jsonl"), out=out)
        graded = ek.grade_run(imported, suite)
        wrong = [f"{r.scenario}: {r.reason}" for r in graded.records if r.status != "passed"]
        yield name, graded.status, "; ".join(wrong) or "nothing"


def say(text: str) -> None:
    """Print a paragraph, at once, so that a pipe shows it too."""
    sys.stdout.write(f"{text}\n\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
