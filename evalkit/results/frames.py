"""The five frames of a run, and the one place that documents their columns.

======================  ==========================================================
``run.trials``          one row a planned trial, finished or not
``run.grades``          one row a grade
``run.tool_calls``      one row an attempt to use a tool
``run.model_calls``     one row a request to a model
``run.events``          one row an event of a ledger
======================  ==========================================================

Columns and dtypes are in :data:`COLUMNS`. Unknown is missing (``NaN``,
``<NA>``, ``None``), never 0. ``turn`` counts from 1, as in the suite file; ``trial``
and ``call`` count from 0. Rows stand in plan order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from evalkit.grade import Grade
from evalkit.ledger import Event
from evalkit.results.records import Manifest, TrialRecord
from evalkit.trace import ModelCall, ToolCall, Trace

if TYPE_CHECKING:
    import pandas as pd

_ID: Final = {"run_id": "str", "scenario": "str", "trial": "int64"}

COLUMNS: Final[Mapping[str, Mapping[str, str]]] = {
    "trials": {
        "run_id": "str",
        "suite": "str",
        "scenario": "str",
        "trial": "int64",
        "lane": "str",
        "status": "str",
        "reason_code": "str",
        "reason": "str",
        "quality_status": "str",
        "n_turns": "Int64",
        "n_model_calls": "Int64",
        "n_tool_calls": "Int64",
        "input_tokens": "Int64",
        "output_tokens": "Int64",
        "cost_usd": "float64",
        "duration_s": "float64",
        "tags": "object",
        "cluster": "str",
        "scenario_hash": "str",
        "seed": "Int64",
    },
    "grades": {
        **_ID,
        "grader": "str",
        "rubric": "str",
        "value": "float64",
        "score": "float64",
        "passed": "boolean",
        "reason": "str",
        "evidence": "object",
        "turn": "Int64",
    },
    "tool_calls": {
        **_ID,
        "call": "int64",
        "turn": "int64",
        "name": "str",
        "args": "object",
        "raw_args": "object",
        "status": "str",
        "result": "object",
        "duration_s": "float64",
    },
    "model_calls": {
        **_ID,
        "call": "int64",
        "turn": "int64",
        "model": "str",
        "status": "str",
        "finish_reason": "str",
        "input_tokens": "Int64",
        "output_tokens": "Int64",
        "cache_read_tokens": "Int64",
        "cache_write_tokens": "Int64",
        "cost_usd": "float64",
        "duration_s": "float64",
    },
    "events": {
        **_ID,
        "seq": "int64",
        "kind": "str",
        "span": "str",
        "parent": "str",
        "data": "object",
        "real": "object",
    },
}
"""Name -> column -> dtype of each frame. ``str`` is pandas' default text dtype."""

_TOO_MUCH: Final = 2**63

_Key = tuple[str, str, int]
"""Run id, scenario, trial."""


def frame(name: str, rows: Sequence[Sequence[Any]]) -> pd.DataFrame:
    """Make one of the five frames from rows in the order of its columns."""
    import pandas as pd

    columns = COLUMNS[name]
    values = zip(*rows, strict=True) if rows else ([] for _ in columns)
    return pd.DataFrame(
        {
            column: _series(list(cells), dtype)
            for (column, dtype), cells in zip(columns.items(), values, strict=True)
        }
    )


def _series(cells: list[Any], dtype: str) -> pd.Series[Any]:
    """Make one column; what its dtype cannot hold must not cost the whole frame."""
    import pandas as pd

    try:
        return pd.Series(cells, dtype=dtype)
    except UnicodeEncodeError:  # text that is stored by pyarrow takes no lone surrogates
        return pd.Series([cell and _escaped(cell) for cell in cells], dtype=dtype)
    except OverflowError:  # no real count has 64 bits: unknown
        known = [None if cell is None or abs(cell) >= _TOO_MUCH else cell for cell in cells]
        return pd.Series(known, dtype=dtype)


def _escaped(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def trial_rows(manifest: Manifest, records: Iterable[TrialRecord]) -> list[tuple[Any, ...]]:
    """Give the rows of ``run.trials``."""
    run_id, suite, lane = manifest.run_id, manifest.suite, manifest.lane
    hashes = {planned.id: planned.hash for planned in manifest.plan}
    return [
        (
            run_id, suite, r.scenario, r.trial, lane, r.status, r.reason_code, r.reason,
            r.quality_status, r.n_turns, r.n_model_calls, r.n_tool_calls, r.input_tokens,
            r.output_tokens, r.cost_usd, r.duration_s, r.tags, r.cluster or r.scenario,
            hashes[r.scenario], r.seed,
        )
        for r in records
    ]  # fmt: skip


def grade_rows(key: _Key, grades: Iterable[Grade]) -> list[tuple[Any, ...]]:
    """Give the rows of ``run.grades`` of one trial."""
    return [
        (
            *key,
            g.grader,
            g.rubric,
            g.value,
            g.score,
            g.passed,
            g.reason,
            g.evidence,
            _from_1(g.turn),
        )
        for g in grades
    ]


def _from_1(turn: int | None) -> int | None:
    return None if turn is None else turn + 1


def tool_call_rows(key: _Key, trace: Trace) -> list[tuple[Any, ...]]:
    """Give the rows of ``run.tool_calls`` of one trial."""
    return [_tool_call_row(key, number, call) for number, call in enumerate(trace.tool_calls)]


def _tool_call_row(key: _Key, number: int, call: ToolCall) -> tuple[Any, ...]:
    told = (call.turn + 1, call.name, call.args, call.raw_args, call.status, call.result)
    return (*key, number, *told, call.duration_s)


def model_call_rows(key: _Key, trace: Trace) -> list[tuple[Any, ...]]:
    """Give the rows of ``run.model_calls`` of one trial."""
    return [_model_call_row(key, number, call) for number, call in enumerate(trace.model_calls)]


def _model_call_row(key: _Key, number: int, call: ModelCall) -> tuple[Any, ...]:
    usage = call.usage
    used = (
        (None,) * 5
        if usage is None
        else (
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_read_tokens,
            usage.cache_write_tokens,
            usage.cost_usd,
        )
    )
    told = (call.turn + 1, call.model, call.status, call.finish_reason)
    return (*key, number, *told, *used, call.duration_s)


def event_rows(key: _Key, events: Iterable[Event]) -> list[tuple[Any, ...]]:
    """Give the rows of ``run.events`` of one trial."""
    return [(*key, e.seq, e.kind, e.span, e.parent, e.data, e.real) for e in events]
