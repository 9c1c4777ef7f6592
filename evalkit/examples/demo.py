"""The main job on the data that ships: run, grade, look at failures, render a report.

Run it with ``evalkit demo``; needs no key and no network. A part that cannot be shown
is left out, and said to be, with what it lacks.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from typing import Final

import evalkit as ek
from evalkit import shipped
from evalkit.errors import EvalkitError, MissingDependency
from evalkit.results import Run
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
_TITLES: Final = (
    "A real agent on the anthropic SDK, offline, against a scripted model: contract lane",
    "The same agent with one planted mistake each",
    "Four recorded behaviours of a travel agent, imported and graded",
    "A rule-based agent that fails now and then: live lane, ten trials each",
    "Reports on the mistakes and on the flaky agent, one HTML file each",
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the demonstration from the command line and give its exit code.

    Parameters
    ----------
    arguments
        Defaults to the process's own.
    """
    options = _options(arguments)
    return show(out=options.out, reports=options.reports)


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evalkit.examples.demo")
    parser.description = "Run, grade and report on the travel suite; needs no model and no key."
    parser.add_argument("--out", default="data/runs", help="folder for the runs [%(default)s]")
    parser.add_argument("--reports", default="reports", help="folder for the report [%(default)s]")
    return parser.parse_args(arguments)


def show(*, out: str = "data/runs", reports: str = "reports") -> int:
    """Show a real agent offline, its planted mistakes, recorded ones, and a flaky agent.

    Parameters
    ----------
    out
        Folder for the runs.
    reports
        Folder for the reports.

    Returns
    -------
    int
        0 if everything was shown, whatever the agents shown do; 3 if a package is
        missing for a part, 2 if a part could not be run.
    """
    travel, faults = (ek.load_suite(shipped.suite(name)) for name in ("travel", "travel_faults"))
    worth_a_report: list[Run] = []

    def real_agent() -> None:
        _need_anthropic()
        for suite in (travel, faults):
            say(run_text(ek.run_suite(suite, out=out)))

    def mistakes() -> None:
        _need_anthropic()
        run = ek.run_suite(with_mistakes(travel, faults), out=out)
        worth_a_report.append(run)
        say(columns(_caught(run), head=("mistake", "scenario", "status", "what was wrong")))

    def recordings() -> None:
        head = ("recording", "status", "what was wrong")
        say(columns(recorded_behaviours(travel, out), head=head))

    def flaky_agent() -> None:
        flaky = f"{RULES}:flaky"
        run = ek.run_suite(travel, agent=flaky, lane="live", n_trials=10, seed=1, out=out)
        worth_a_report.append(run)
        say(run_text(run))

    def written_reports() -> None:
        if not worth_a_report:
            say("There is no run to report on.")
        for run in worth_a_report:
            say(f"report  {printable(ek.render_report('pass_rates', run=run, out=reports))}")

    parts = (real_agent, mistakes, recordings, flaky_agent, written_reports)
    return _show_each(dict(zip(_TITLES, parts, strict=True)))


def _show_each(parts: Mapping[str, Callable[[], None]]) -> int:
    """Show what can be shown, then say what cannot and why."""
    left_out: dict[str, list[str]] = {}
    code = 0
    for number, (title, part) in enumerate(parts.items(), start=1):
        say(f"{number}. {title}")
        try:
            part()
        except EvalkitError as error:
            say("Left out; see the end.")
            left_out.setdefault(printable(error), []).append(str(number))
            code = 3 if isinstance(error, MissingDependency) and code != 2 else 2
    for why, numbers in left_out.items():
        sys.stderr.write(f"demo: left out {', '.join(numbers)}: {why}\n")
    return code


def _need_anthropic() -> None:
    if find_spec("anthropic") is None:
        raise MissingDependency("anthropic", "examples")


def _caught(run: Run) -> Iterator[tuple[str, ...]]:
    """Say what each planted mistake was caught by."""
    for record in run.records:
        wrong = record.reason.partition("\n")[0]
        yield (*record.scenario.split("--"), record.status, wrong)


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
