"""``evalkit show``: a run, or one trial of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from evalkit.cli.app import PASSED
from evalkit.cli.hiding import checked, hidden_events, hiding_of, reveal_option
from evalkit.cli.paths import run_folder
from evalkit.summaries import run_text
from evalkit.terminal import columns, one_line, percent, printable

if TYPE_CHECKING:
    from evalkit.results import Run
    from evalkit.scanning import Hiding


@click.command(epilog="Example: evalkit show data/runs/RUN weather-gate-book 0")
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("scenario", required=False)
@click.argument("trial", required=False, type=int, default=0)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for scripts.")
@reveal_option
def show(run: Path, scenario: str | None, trial: int, *, as_json: bool, reveal: bool) -> int:
    """Show RUN with its rates; with SCENARIO and TRIAL, what that trial did.

    RUN is a run directory, or a folder of runs: then its latest. A canary is named
    in place of its value.
    """
    from evalkit.publishing import for_log
    from evalkit.results import load_run

    loaded = load_run(run_folder(run))
    if scenario is None:
        whole = [run_text(loaded), "", *_figure_lines(loaded)] if not as_json else []
        text = "\n".join(whole) or json.dumps(_figures(loaded), indent=2, default=str)
    else:
        hiding = hiding_of([loaded], reveal=reveal)
        if as_json:
            told = _trial_json(loaded, scenario, trial, hiding=hiding)
            text = json.dumps(told, indent=2, default=str)
        else:
            text = "\n".join(_trial_lines(loaded, scenario, trial, hiding=hiding))
        checked(text, hiding)
    click.echo(text if as_json else for_log(text))
    return PASSED


def _figures(run: Run) -> dict[str, Any]:
    """Give the figures of a run for scripts."""
    from evalkit.stats import pass_hat_k, pass_rates, standard_errors

    def rows(frame: Any) -> list[dict[str, Any]]:
        return json.loads(frame.to_json(orient="records"))  # type: ignore[no-any-return]

    depth = max(entry.n_trials for entry in run.manifest.plan)
    return {
        "run_id": run.id,
        "status": run.status,
        "pass_rate": rows(pass_rates(run))[0],
        "standard_errors": rows(standard_errors(run))[0],
        "by_grader": rows(pass_rates(run, by="grader")) if len(run.grades) else [],
        "by_scenario": rows(pass_rates(run, by="scenario")),
        "pass_hat_k": rows(pass_hat_k(run, k=list(range(1, depth + 1)))),
    }


def _figure_lines(run: Run) -> Iterator[str]:
    figures = _figures(run)
    spread = figures["standard_errors"]
    yield (
        f"standard error  {_number(spread['se_flat'])} over {spread['n_trials']} trials as if "
        f"independent, {_number(spread['se_clustered'])} clustered by scenario"
    )
    for row in figures["pass_hat_k"]:
        if row["estimate"] is not None:
            yield f"pass^{row['k']}  {row['estimate']:.3f}  {_bounds(row)}".rstrip()
    if figures["by_grader"]:
        yield ""
        yield columns(
            (
                (g["grader"], percent(g["rate"]), g["n_passed"], g["n_failed"], g["n_incomplete"])
                for g in figures["by_grader"]
            ),
            head=("grader", "rate", "passed", "failed", "incomplete"),
            right="lrrrr",
        )


def _bounds(row: dict[str, Any]) -> str:
    """Give the interval of an estimate; nothing where there is none."""
    if row["estimate_low"] is None:
        return ""
    return f"(95% {percent(row['estimate_low'])} to {percent(row['estimate_high'])})"


def _number(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.4f}"


def _trial_json(run: Run, scenario: str, trial: int, *, hiding: Hiding) -> dict[str, Any]:
    record = run.record(scenario, trial)
    events = [
        {"seq": event.seq, "kind": event.kind, "data": event.data, "real": event.real}
        for event in hidden_events(run.ledger(scenario, trial), hiding)
    ]
    return {"trial": hiding.json(record.to_json()), "events": events}


def _trial_lines(run: Run, scenario: str, trial: int, *, hiding: Hiding) -> Iterator[str]:
    record = run.record(scenario, trial)
    yield printable(f"{scenario}, trial {trial}: {record.status}")
    if record.reason:
        yield printable(f"  {hiding.text(record.reason)}")
    yield ""
    for event in hidden_events(run.ledger(scenario, trial), hiding):
        told = _event_text(event.kind, event.data)
        if told:
            yield f"{event.seq:>4}  {event.kind:<12}  {told}"
    yield ""
    for grade in record.grades:
        yield printable(f"{grade.status:<10}  {grade.grader}: {hiding.text(grade.reason)}")


def _event_text(kind: str, data: Any) -> str:
    """Say in one line what an event tells; empty for what only machines need."""
    tell = _TELLERS.get(kind)
    return "" if tell is None else one_line(tell(data))


def _tell_turn(data: Any) -> str:
    if "advance_s" in data:
        return f"the clock moves {data['advance_s']:g} s"
    if "restart" in data:
        return f"restart ({data['restart']})"
    if "deliver" not in data and "redelivered" not in data:
        return f"user: {data['user']}"
    again = f"turn {data['redelivered']} again" if "redelivered" in data else ""
    way = f"update {data['update_id']}, {data['deliver']}" if "deliver" in data else ""
    return f"user: {data['user']} ({', '.join(filter(None, (again, way)))})"


def _tell_call(data: Any) -> str:
    asked = data.get("raw_args") if data["args"] is None else json.dumps(data["args"])
    return f"{data['name']} {asked}{_where(data)}"


def _tell_reply(data: Any) -> str:
    said = json.dumps(data["reply"]) if data["reply"] is not None else ""
    return f"{data['status']} {data.get('finish_reason', '')} {said}"


def _tell_fault(data: Any) -> str:
    return (
        f"{data['fault']} (injected)" if data["injected"] else f"{data['fault']}: {data['reason']}"
    )


def _tell_http(data: Any) -> str:
    if data["to"] == "outside":
        places = ", ".join(data["destinations"]) or "not known where to"
        when = " while the agent was imported" if data.get("at") == "import" else ""
        return f"{data['n_refused']} connections to the outside refused{when}: {places}"
    if data["to"] == "model":
        return f"{data['method']} {data['path']}"
    if data["to"] == "names":
        return f"looked up, and sent no HTTP request: {', '.join(data['names'])}"
    body = data["text"] if data.get("json") is None else json.dumps(data["json"])
    outcome = data.get("fault") or f"status {data['status']}"
    if data["to"] == "agent":
        return f"agent: {outcome} for {data['method']} {data['url']}: {body or ''}"
    return f"{data['method']} {data['url']} {body or ''} ({outcome})"


def _tell_database(data: Any) -> str:
    name = data["database"]
    if "sql" in data:
        return f"{name}: {data['sql']}"
    if "n_statements_left_out" in data:
        return f"{name}: {data['n_statements_left_out']:,} more statements were not kept"
    if "changes" in data:
        return f"{name}: {', '.join(_changed(data)) or 'can be read again'}"
    asked = f"{data['query']}: " if "query" in data else ""
    return f"{name}: {asked}{data['problem'] if 'problem' in data else json.dumps(data['rows'])}"


def _changed(data: Any) -> Iterator[str]:
    """Count what changed in a database, table by table."""
    for one in data.get("schema", ()):
        how = "dropped" if one["after"] is None else "made" if one["before"] is None else "altered"
        yield f"{one['type']} {one['name']} {how}"
    for table, changes in data["changes"].items():
        more = data.get("unlisted", {}).get(table, {})
        numbers = {kind: len(rows) + more.get(kind, 0) for kind, rows in changes.items()}
        yield f"{table} " + ", ".join(f"{n:,} {kind}" for kind, n in numbers.items() if n)
    for table, why in data.get("problems", {}).items():
        yield f"{table} {why}"


def _tell_state(data: Any) -> str:
    if "problem" in data:
        return str(data["problem"])
    if "unused_fixtures" in data:
        return f"never asked for: {', '.join(data['unused_fixtures'])}"
    return json.dumps(data["state"]) if "state" in data else ""


def _where(data: Any) -> str:
    """Tell what a tool itself told apart from what was seen on the wire."""
    return " (ran)" if data.get("at") in ("tool", "span") else ""


_TELLERS: Final[Mapping[str, Callable[[Any], str]]] = {
    "turn": _tell_turn,
    "reply": lambda data: f"agent: {data['text']}",
    "tool_call": _tell_call,
    "tool_result": lambda data: f"{data['status']}: {json.dumps(data['result'])}{_where(data)}",
    "model_call": lambda data: str(data["model"]),
    "model_reply": _tell_reply,
    "fault": _tell_fault,
    "http": _tell_http,
    "database": _tell_database,
    "state": _tell_state,
    "file": lambda data: f"{data['path']}, {data['size']} bytes",
    "log": lambda data: str(data["text"]),
    "trial_end": lambda data: f"{data['status']} {data['reason']}",
}
