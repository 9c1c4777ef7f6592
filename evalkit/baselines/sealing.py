"""The text of a baseline file: how it is laid out, sealed, and read back.

Keys are sorted; each run, scenario and grader's count has a line of its own, so
that a diff is short. The seal tells an edit by accident, or one that nobody was
meant to see in review. It is no signature: who can change the file can seal it again.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from statistics import StatisticsError
from typing import Any, Final, NoReturn, TypeVar

from evalkit.baselines.records import (
    COSTS,
    FORMAT,
    MIN_RUNS,
    Baseline,
    PinnedGrader,
    PinnedRun,
    PinnedScenario,
    with_rates,
)
from evalkit.errors import BaselineError

_T = TypeVar("_T")
_SEAL: Final = "sha256"
_LISTS: Final[Mapping[str, type]] = {
    "runs": PinnedRun,
    "scenarios": PinnedScenario,
    "by_grader": PinnedGrader,
}
_MAX_TRIALS: Final = 10_000_000
"""More than any suite has; a count that a frame could not hold is a broken file."""


def content_of(baseline: Baseline) -> dict[str, Any]:
    """Give what the seal covers as JSON data."""
    return json.loads(json.dumps(asdict(baseline)))  # type: ignore[no-any-return]


def seal_of(baseline: Baseline) -> str:
    """Hash the content of a baseline."""
    return _hash(content_of(baseline))


def _hash(content: Mapping[str, Any]) -> str:
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def text_of(baseline: Baseline) -> str:
    """Give the text of a baseline's file."""
    data = baseline.to_json()
    return (
        "{\n"
        + ",\n".join(f"  {json.dumps(key)}: {_laid(data[key])}" for key in sorted(data))
        + "\n}\n"
    )


def _laid(value: Any) -> str:
    """Lay out one value: a list of records with a line each, all else on one line."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(f"    {_line(each)}" for each in value) + "\n  ]"
    return _line(value)


def _line(value: Any) -> str:
    # ASCII: marks that reorder text must not hide from a reviewer what a line says.
    return json.dumps(value, sort_keys=True, ensure_ascii=True, allow_nan=False)


def baseline_from(text: str, *, where: str) -> Baseline:
    """Read the text of a baseline's file, and check all of it.

    Raises
    ------
    BaselineError
        If it is no baseline, of a newer format, was edited, or contradicts itself.
    """
    content = _parsed(text, where)
    _check_format(content, where)
    seal = content.pop(_SEAL, None)
    if seal != _hash(content):
        raise BaselineError(
            [f"{where}: was edited: its content does not match its seal; {_REMEDY}"]
        )
    try:
        baseline = _typed(Baseline, content)
    except (TypeError, KeyError) as error:
        raise BaselineError([f"{where}: not a baseline: {error.args[0]}"]) from None
    wrong = list(_contradictions(baseline))
    if wrong:
        raise BaselineError([f"{where}: contradicts itself: {each}; {_REMEDY}" for each in wrong])
    if text_of(baseline) != text:
        raise BaselineError(
            [f"{where}: was edited: its layout is not the one it was pinned with; {_REMEDY}"]
        )
    return baseline


_REMEDY: Final = "restore it from version control, or pin a new one: evalkit baseline pin"


def _parsed(text: str, where: str) -> dict[str, Any]:
    try:
        content = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BaselineError([f"{where}: not a baseline: no JSON: {error}; {_REMEDY}"]) from None
    if not isinstance(content, dict):
        raise BaselineError([f"{where}: not a baseline: no JSON object; {_REMEDY}"])
    return content


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _check_format(content: Mapping[str, Any], where: str) -> None:
    version = content.get("format")
    if type(version) is not int:
        raise BaselineError([f"{where}: not a baseline: it names no format; {_REMEDY}"])
    if version > FORMAT:
        raise BaselineError(
            [
                f"{where}: written by a newer evalkit (format {version}, this one reads up to "
                f"{FORMAT}); upgrade with: pip install -U evalkit-lab"
            ]
        )


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= _MAX_TRIALS


def _is_rate(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1  # type: ignore[operator]


def _or_none(holds: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or holds(value)


def _each(holds: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, list) and all(map(holds, value))


_CHECKS: Final[Mapping[str, Callable[[object], bool]]] = {
    "str": _is_text,
    "int": lambda value: type(value) is int,
    "bool": lambda value: isinstance(value, bool),
    "bool | None": lambda value: value is None or isinstance(value, bool),
    "float": _is_rate,
    "float | None": _or_none(_is_rate),
    "tuple[str, ...]": _each(_is_text),
    "tuple[int, ...]": _each(_is_count),
    "tuple[float | None, ...]": _each(_or_none(_is_rate)),
    "Mapping[str, str]": lambda value: (
        isinstance(value, dict) and all(map(_is_text, value.values()))
    ),
}
"""What a field of each type may hold in the file; all its floats but the cost are rates."""


def _typed(kind: type[_T], data: Any) -> _T:
    """Build a record from JSON, with exactly its fields and their types."""
    name = kind.__name__
    if not isinstance(data, dict):
        raise TypeError(f"{name} is no JSON object")
    types = {each.name: str(each.type) for each in fields(kind)}  # type: ignore[arg-type]
    odd = sorted(types.keys() ^ data.keys())
    if odd:
        raise KeyError(f"{name}: {', '.join(map(repr, odd))} missing or unknown")
    return kind(**{field: _value(field, types[field], data[field]) for field in types})


def _value(field: str, type_name: str, value: Any) -> Any:
    if field in _LISTS:
        if not isinstance(value, list):
            raise TypeError(f"{field} is no list")
        return tuple(_typed(_LISTS[field], each) for each in value)
    holds = _is_cost if field == "cost_usd" else _CHECKS[type_name]
    if not holds(value):
        raise TypeError(f"{field} is no {type_name}")
    return tuple(value) if isinstance(value, list) else value


def _is_cost(value: object) -> bool:
    return value is None or (type(value) in (int, float) and 0 <= value < float("inf"))  # type: ignore[operator]


def _contradictions(baseline: Baseline) -> Iterator[str]:
    """Name what cannot be true of any baseline, whoever sealed it."""
    n_runs = len(baseline.runs)
    if n_runs < MIN_RUNS:
        yield f"it pools {n_runs} runs, at least {MIN_RUNS} are needed"
    yield from _repeated("run", [run.run_id for run in baseline.runs])
    yield from _repeated("scenario", [each.id for each in baseline.scenarios])
    keys = [f"{each.scenario}: {each.grader} {each.rubric}".rstrip() for each in baseline.by_grader]
    yield from _repeated("grader", keys)
    if baseline.cost not in COSTS or (baseline.cost == "metered") != (
        baseline.cost_usd is not None
    ):
        yield f"its cost is {baseline.cost!r} with {baseline.cost_usd!r} USD"
    if baseline.n_trials > _MAX_TRIALS:
        yield f"it counts {baseline.n_trials} trials"
    elif not _fits(baseline):
        yield "its counts are not those of its runs"
    elif not _follows(baseline):
        yield "its rates do not follow from its counts"


def _repeated(what: str, names: Sequence[str]) -> Iterator[str]:
    return (f"{what} {name!r} stands there twice" for name, n in Counter(names).items() if n > 1)


def _fits(baseline: Baseline) -> bool:
    """Say whether each scenario and grader has one count a run, and no grader too many."""
    n_runs = len(baseline.runs)
    n_trials = {each.id: each.n_trials for each in baseline.scenarios if _is_whole(each, n_runs)}
    return len(n_trials) == len(baseline.scenarios) > 0 and all(
        said.scenario in n_trials
        and len(said.passed) == len(said.failed) == len(said.mean) == n_runs
        and all(
            p + f <= n
            for p, f, n in zip(said.passed, said.failed, n_trials[said.scenario], strict=True)
        )
        for said in baseline.by_grader
    )


def _is_whole(scenario: PinnedScenario, n_runs: int) -> bool:
    return (
        len(scenario.passed) == len(scenario.failed) == n_runs
        and min(scenario.n_trials, default=0) > 0
    )


def _follows(baseline: Baseline) -> bool:
    try:
        return with_rates(baseline) == baseline
    except (StatisticsError, ZeroDivisionError):
        return False
