"""tau-bench result files: trajectories, rewards, and gold actions as a suite.

A file is a list of ``{task_id, trial, reward, info, traj}``. The trial's grade is
named ``reward``. Task 7 becomes the scenario ``task-7``; its gold actions, as far
as they write, become expectations of the suite that travels with the run.

A reward compares the state of a database; the suite compares calls. They agree
mostly and not always: an attempt that failed and was repeated ends in the right
state, but is an extra call.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from evalkit.errors import TraceError
from evalkit.grade import Grade
from evalkit.importers.files import documents, fingerprint
from evalkit.importers.recognition import refuse_other
from evalkit.importers.records import (
    Draft,
    Imported,
    ImportedTrial,
    Row,
    Trials,
    UnreadableRow,
    numbered,
)
from evalkit.ledger import JSON
from evalkit.matching.compiling import write_pattern
from evalkit.messages import openai
from evalkit.trace import Trace

AIRLINE_WRITES: Final = frozenset({
    "book_reservation",
    "cancel_reservation",
    "send_certificate",
    "update_reservation_baggages",
    "update_reservation_flights",
    "update_reservation_passengers",
})  # fmt: skip
"""The airline tools that change the database: in the published gpt-4o trajectories each answers
with the reservation that it made or changed, or says that it sent a certificate. All others look
up, calculate, think or hand over; with these six, calls agree with rewards in 187 of 200 trials."""

AIRLINE_READS: Final = frozenset({
    "calculate", "get_reservation_details", "get_user_details", "list_all_airports",
    "search_direct_flight", "search_onestop_flight", "think", "transfer_to_human_agents",
})  # fmt: skip

RETAIL_WRITES: Final = frozenset({
    "cancel_pending_order",
    "exchange_delivered_order_items",
    "modify_pending_order_address",
    "modify_pending_order_items",
    "modify_pending_order_payment",
    "modify_user_address",
    "return_delivered_order_items",
})  # fmt: skip
"""The retail tools that change the database, by the benchmark's own tool definitions."""

RETAIL_READS: Final = frozenset({
    "calculate", "find_user_id_by_email", "find_user_id_by_name_zip", "get_order_details",
    "get_product_details", "get_user_details", "list_all_product_types", "think",
    "transfer_to_human_agents",
})  # fmt: skip

DOMAINS: Final[Mapping[str, tuple[frozenset[str], frozenset[str]]]] = {
    "airline": (AIRLINE_WRITES, AIRLINE_READS),
    "retail": (RETAIL_WRITES, RETAIL_READS),
}
"""Writing and reading tools of the domains that evalkit knows."""

_ERROR: Final = re.compile(r"Error: |Unknown action ")
"""How tau-bench's environment answers a call that failed."""


def read_tau_bench(path: Path, *, write_tools: Iterable[str] | None = None) -> Imported:
    """Read a tau-bench result file, or a folder of them.

    Parameters
    ----------
    path
        The JSON file.
    write_tools
        Tools that change the database; gold actions with other tools are not
        expected. Known for the airline and the retail domain. For another
        domain there is no guess: without it, the run has no suite.

    Raises
    ------
    TraceError
        If the file cannot be read or is of another format.
    """
    rows = list(_rows(path))
    tasks = _tasks(rows)
    domain = _domain(tasks.values())
    suite = _suite(rows, tasks, domain=domain, write_tools=write_tools)
    source = {"format": "tau-bench", "domain": domain, **fingerprint(path)}
    if suite is None:
        source["no_suite"] = "the domain is unknown: name the tools that write (write_tools)"

    def start() -> Iterator[ImportedTrial]:
        return numbered(iter(rows), lambda row: _draft(row, domain))

    return Imported("tau-bench", path, Trials(start), suite, source)


def _rows(path: Path) -> Iterator[Row]:
    for document in documents(path):
        if document.problem:
            yield Row(document.where, document.scenario, problem=document.problem)
            continue
        refuse_other(document.value, format="tau-bench", where=document.where)
        records = document.value if isinstance(document.value, list) else [document.value]
        for number, record in enumerate(records):
            where = f"{document.where}[{number}]" if document.line is None else document.where
            yield Row(where, f"row-{number}", record)


def _draft(row: Row, domain: str) -> Draft:
    record = row.value
    if not isinstance(record, Mapping) or record.get("task_id") is None:
        raise TraceError("a row of tau-bench is an object with task_id, trial, reward, info, traj")
    draft = Draft(
        Trace(),
        scenario=_scenario_id(record["task_id"]),
        trial=_trial(record.get("trial")),
        tags=(domain,) if domain else (),
    )
    try:
        trace, grade = _trace(record), _reward(record)
    except TraceError as error:
        raise UnreadableRow(str(error), draft) from error
    return Draft(trace, draft.scenario, draft.trial, (grade,), draft.tags)


def _scenario_id(task_id: JSON) -> str:
    return f"task-{task_id}"


def _trial(value: JSON) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _trace(record: Mapping[str, Any]) -> Trace:
    messages = record.get("traj")
    if not isinstance(messages, list) or not messages:
        raise TraceError("traj: no messages")
    info = record.get("info") or {}
    known = {"task_id": record["task_id"], "user_cost": info.get("user_cost")}
    return openai.trace_of_messages(map(_with_status, messages), metadata=known)


def _with_status(message: JSON) -> JSON:
    """Say of a failed call's answer that it failed; tau-bench only words it so."""
    if not isinstance(message, Mapping) or message.get("role") != "tool":
        return message
    failed = isinstance(message.get("content"), str) and _ERROR.match(message["content"])
    return {**message, "status": "error"} if failed else message


def _reward(record: Mapping[str, Any]) -> Grade:
    """Turn the reward into a grade; a reward that was never computed is 0, and says so."""
    reward = record.get("reward")
    if isinstance(reward, bool) or not isinstance(reward, int | float) or not 0 <= reward <= 1:
        raise TraceError(f"reward: {reward!r} is no number in [0, 1]")
    told = (record.get("info") or {}).get("reward_info")
    if told is None:
        return _never_computed(float(reward), record["traj"])
    if not isinstance(told, Mapping) or told.get("reward") != reward:
        raise TraceError(f"reward: the row says {reward!r}, its reward_info says otherwise")
    how = told.get("info") or {}
    return Grade("reward", float(reward), reason=_reason(how, float(reward)), evidence=dict(how))


def _never_computed(reward: float, messages: Sequence[Any]) -> Grade:
    last = messages[-1].get("role") if isinstance(messages[-1], Mapping) else None
    reason = (
        f"the reward was never computed (reward_info is null): the conversation ran out of steps "
        f"after {len(messages)} messages, the last one from the {last}"
    )
    if reward:
        return Grade.incomplete("reward", f"{reason}; yet the row says {reward}")
    return Grade("reward", 0.0, reason=reason)


def _reason(how: Mapping[str, Any], reward: float) -> str:
    """Put either shape of reward_info into a sentence."""
    if "outputs" in how:
        missing = [text for text, said in how["outputs"].items() if not said]
        if missing:
            return f"the agent never said: {', '.join(missing)}"
        if reward == 1.0:
            return "the agent said everything that it had to say"
        return "the agent said everything, but the database did not end as it should"
    if reward == 1.0:
        return "the database ended as the gold actions leave it"
    return "the database did not end as the gold actions leave it"


def _tasks(rows: Iterable[Row]) -> dict[str, Mapping[str, Any]]:
    """Give the tasks of all readable rows by scenario id, in the order of their first row."""
    tasks: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        info = row.value.get("info") if isinstance(row.value, Mapping) else None
        task = info.get("task") if isinstance(info, Mapping) else None
        if isinstance(task, Mapping) and row.value.get("task_id") is not None:
            tasks.setdefault(_scenario_id(row.value["task_id"]), task)
    return tasks


def _actions(task: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    actions = task.get("actions")
    listed = actions if isinstance(actions, list) else []
    return [action for action in listed if isinstance(action, Mapping) and "name" in action]


def _domain(tasks: Iterable[Mapping[str, Any]]) -> str:
    """Name the domain whose tools the gold actions use; empty if it is none that is known."""
    used = {str(action["name"]) for task in tasks for action in _actions(task)}
    fits = [name for name, (writes, reads) in DOMAINS.items() if used and used <= writes | reads]
    return fits[0] if len(fits) == 1 else ""


def _suite(
    rows: Sequence[Row],
    tasks: Mapping[str, Mapping[str, Any]],
    *,
    domain: str,
    write_tools: Iterable[str] | None,
) -> dict[str, JSON] | None:
    writes, reads = DOMAINS.get(domain, (None, frozenset()))
    if write_tools is not None:
        writes = frozenset(write_tools)
    if writes is None or not tasks:
        return None
    others = sorted((reads | _tools_seen(rows, tasks)) - writes)
    scenarios = [_scenario(name, task, writes, others=others) for name, task in tasks.items()]
    name = f"tau-bench-{domain}" if domain else "tau-bench"
    return {"suite": name, "scenarios": scenarios}


def _scenario(
    name: str, task: Mapping[str, Any], writes: frozenset[str], *, others: Sequence[str]
) -> dict[str, JSON]:
    calls = [
        {
            "tool": action["name"],
            "args": write_pattern(action.get("kwargs") or {}),
            "extra_args": "forbid",
        }
        for action in _actions(task)
        if action["name"] in writes
    ]
    tags = ["writes" if calls else "no-writes", *(["outputs"] if task.get("outputs") else [])]
    tools = {"extra_calls": {"allow": list(others)} if others else "forbid", "calls": calls}
    said = str(task.get("instruction") or "(the file holds no instruction)")
    # Only the calls are judged: a reward does not ask how long the route was.
    expect = {"tools": tools, "path": False}
    return {"id": name, "tags": tags, "input": said, "expect": expect}


def _tools_seen(rows: Iterable[Row], tasks: Mapping[str, Mapping[str, Any]]) -> frozenset[str]:
    """Name every tool of the gold actions and of the calls."""
    gold = frozenset(str(action["name"]) for task in tasks.values() for action in _actions(task))
    return gold.union(*(_called(row.value) for row in rows))


def _called(record: JSON) -> set[str]:
    try:
        return {call.name for call in _trace(record).tool_calls}
    except (TraceError, AttributeError, KeyError, TypeError):
        return set()
