"""The main job on the data that ships: run, grade, look at failures, render a report.

Run it with ``python -m evalkit.examples.demo``; needs no model, key or network.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import Final

import evalkit as ek
from evalkit import shipped
from evalkit.errors import EvalkitError, MissingDependency
from evalkit.summaries import run_text
from evalkit.terminal import columns, printable

AGENT: Final = "evalkit.examples.travel_rules"
RECORDED: Final = ("good", "wrong_id", "looping", "forbidden")


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
        sys.stderr.write(f"no report: {error}\n")
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
    """Show a good agent, four recorded ones, and one that fails now and then.

    Parameters
    ----------
    out
        Folder for the runs.
    reports
        Folder for the report.
    """
    suite = ek.load_suite(shipped.suite("travel"))
    say("1. A rule-based travel agent, five scenarios, three trials each, fresh processes")
    good = ek.run_suite(suite, agent=f"{AGENT}:agent", lane="live", n_trials=3, out=out)
    say(run_text(good))

    say("2. Four recorded behaviours of a travel agent, imported and graded")
    say(columns(recorded_behaviours(suite, out), head=("recording", "status", "what was wrong")))

    say("3. The same agent with a fault that shows in some trials only")
    run = ek.run_suite(suite, agent=f"{AGENT}:flaky", lane="live", n_trials=10, seed=1, out=out)
    say(run_text(run))

    say(f"report  {printable(ek.render_report('pass_rates', run=run, out=reports))}")


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
