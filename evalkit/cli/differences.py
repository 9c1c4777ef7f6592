"""``evalkit diff``: where two runs, or two trials, differ."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalkit.cli.app import FAILED, PASSED
from evalkit.cli.hiding import checked, hidden_events, hiding_of, reveal_option
from evalkit.cli.paths import run_folder
from evalkit.terminal import columns, one_line, printable

if TYPE_CHECKING:
    from evalkit.diffing import Difference
    from evalkit.ledger import Event
    from evalkit.results import Run
    from evalkit.scanning import Hiding

_BEFORE = 30
"""Characters of a text shown before the place where it differs."""


@click.command(epilog="Example: evalkit diff data/runs/RUN_A data/runs/RUN_B weather-gate-book 0")
@click.argument("first", metavar="RUN_A", type=click.Path(path_type=Path))
@click.argument("second", metavar="RUN_B", type=click.Path(path_type=Path))
@click.argument("scenario", required=False)
@click.argument("trial", required=False, type=click.IntRange(min=0), default=0)
@click.option(
    "--canonical",
    is_flag=True,
    help="Compare in an order without chance, with ids renumbered: for parallel agents.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
@reveal_option
def diff(first: Path, second: Path, scenario: str | None, **options: Any) -> int:
    """Show the first event that differs in a trial of RUN_A and RUN_B, real times apart.

    Without SCENARIO, list the trials whose ledgers differ. Exits with 0 if
    nothing differs, with 1 if something does. A canary is named in place of its value.
    """
    from evalkit.results import load_run

    runs = load_run(run_folder(first)), load_run(run_folder(second))
    trial, reveal = options.pop("trial"), options.pop("reveal")
    if scenario is None:
        return _diff_runs(runs, **options)
    return _diff_trial(runs, scenario, trial, hiding=hiding_of(runs, reveal=reveal), **options)


def _diff_runs(runs: tuple[Run, Run], *, canonical: bool, as_json: bool) -> int:
    from evalkit.diffing import trials_that_differ

    first, second = runs
    found = trials_that_differ(first, second, in_canonical_order=canonical)
    n = len({(r.scenario, r.trial) for run in (first, second) for r in run.records})
    if as_json:
        click.echo(
            json.dumps({"n_trials": n, "differ": [one._asdict() for one in found]}, indent=2)
        )
    elif found:
        click.echo(f"{len(found)} of {n} trials differ")
        click.echo(columns(found, head=("scenario", "trial", "why"), right="lr"))
        click.echo(f"look  evalkit diff RUN_A RUN_B {one_line(found[0].scenario)} {found[0].trial}")
    else:
        click.echo(f"same: {n} trials")
    return FAILED if found else PASSED


def _diff_trial(
    runs: tuple[Run, Run],
    scenario: str,
    trial: int,
    *,
    hiding: Hiding,
    canonical: bool,
    as_json: bool,
) -> int:
    from evalkit.diffing import first_difference, leaves_that_differ
    from evalkit.publishing import for_log

    ledgers = [run.ledger(scenario, trial) for run in runs]
    found = first_difference(*ledgers, in_canonical_order=canonical)
    leaves = leaves_that_differ(*ledgers, in_canonical_order=canonical) if found else []
    # Only now: values that differ in nothing but their writing differ, too.
    found, leaves = _hidden(found, hiding), hiding.json(leaves)
    if as_json:
        told = {"scenario": scenario, "trial": trial, "n_leaves": len(leaves), "leaves": leaves}
        difference = None if found is None else _difference_json(found)
        text = json.dumps(told | {"first": difference}, indent=2, default=str)
        click.echo(checked(text, hiding))
    elif found is None:
        click.echo(printable(f"{scenario}, trial {trial}: same, {len(ledgers[0])} events"))
    else:
        head = printable(f"{scenario}, trial {trial}: {_where(found)}")
        lines = [*_lines(found), "", f"{len(leaves)} values differ in all"]
        text = checked("\n".join([head, *lines]), hiding)
        click.echo(for_log(text))
    return FAILED if found else PASSED


def _hidden(found: Difference | None, hiding: Hiding) -> Difference | None:
    """Hide the values of canaries in all that is shown of a difference."""
    if found is None:
        return None
    first, second = (
        None if event is None else hidden_events([event], hiding)[0]
        for event in (found.first, found.second)
    )
    one, other = map(hiding.json, found.values)
    return replace(
        found,
        first=first,
        second=second,
        path=hiding.text(found.path),
        values=(one, other),
        context=tuple(hidden_events(found.context, hiding)),
    )


def _where(found: Difference) -> str:
    number = found.position + 1
    if found.first is None or found.second is None:
        which = "first" if found.first is None else "second"
        return f"event {number} is missing in the {which} run"
    return f"event {number} differs at {one_line(found.path)}"


def _lines(found: Difference) -> Iterator[str]:
    """Show the events before, both versions of the one that differs, and what differs in it."""
    for before in found.context:
        yield f"     {_event_line(before)}"
    for side, event in (("A", found.first), ("B", found.second)):
        yield f"  {side}  {'(the ledger has ended)' if event is None else _event_line(event)}"
    if found.first is not None and found.second is not None:
        yield ""
        for side, text in zip("AB", _values(found), strict=True):
            yield f"  {side}  {one_line(found.path)} = {text}"


def _event_line(event: Event) -> str:
    data = json.dumps(event.data, ensure_ascii=False, default=str)
    return f"{event.seq:>4}  {event.kind:<12}  {one_line(data)}"


def _values(found: Difference) -> Iterator[str]:
    """Show both values; of long texts the part from just before they differ."""
    from evalkit.diffing import ABSENT

    texts = [
        None if value is ABSENT else json.dumps(value, ensure_ascii=False, default=str)
        for value in found.values
    ]
    pairs = zip_longest(*(text or "" for text in texts))
    same = next((n for n, (one, other) in enumerate(pairs) if one != other), 0)
    start = max(0, same - _BEFORE)
    for text in texts:
        cut = "…" if start else ""
        yield "(not there)" if text is None else f"{cut}{one_line(text[start:])}"


def _difference_json(found: Difference) -> dict[str, Any]:
    from evalkit.diffing import ABSENT

    def event(one: Event | None) -> Any:
        return None if one is None else {"seq": one.seq, "kind": one.kind, "data": one.data}

    values = [{} if value is ABSENT else {"value": value} for value in found.values]
    return {
        "event": found.position + 1,
        "path": found.path,
        "values": values,
        "events": [event(found.first), event(found.second)],
        "context": [event(one) for one in found.context],
    }
