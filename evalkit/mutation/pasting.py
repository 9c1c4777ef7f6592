"""A suggested expectation: how it is written, and a scenario with it pasted in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from evalkit.drafting.yaml_text import key_lines
from evalkit.errors import SuiteError
from evalkit.ledger import JSON
from evalkit.mutation.records import Subject, Suggestion
from evalkit.suite import Expect, Forbid, Scenario
from evalkit.suite.checks import scenario_problems
from evalkit.suite.variables import fill_scenario
from evalkit.suite.yaml_reader import parse_yaml


def suggestion(
    subject: Subject,
    place: int | None,
    *,
    section: Literal["expect", "forbid"],
    key: str,
    value: JSON,
) -> Suggestion:
    """Write an expectation as YAML for one place of a scenario."""
    scenario = subject.trial.scenario
    holder = getattr(subject, section)(place)
    lines = key_lines(key, _literal(value, scenario.vars), indent=0)
    return Suggestion(place, section, key, "\n".join(lines), bool(getattr(holder, key, None)))


def _literal(value: Any, variables: Mapping[str, str]) -> Any:
    """Double the braces of what would be taken for a variable."""
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda found: _doubled(found, variables), value)
    if isinstance(value, Mapping):
        return {key: _literal(item, variables) for key, item in value.items()}
    return [_literal(item, variables) for item in value] if isinstance(value, list) else value


def _doubled(found: re.Match[str], variables: Mapping[str, str]) -> str:
    return f"{{{found[0]}}}" if found[1] in variables else found[0]


def with_suggestion(scenario: Scenario, made: Suggestion, *, strict: bool) -> Scenario | None:
    """Give the scenario with an expectation pasted in; ``None`` if a suite would refuse it.

    Parameters
    ----------
    scenario
        As loaded.
    made
        Its text is read as the suite's file would be.
    strict
        Whether the suite's defaults are strict.
    """
    context = {"authored": True, "strict": strict, "known_keys": {}, "fixtures": {}}
    model: type[Expect | Forbid] = Expect if made.section == "expect" else Forbid
    try:
        data = parse_yaml(made.text.encode("utf-8"), where="suggestion").data
        written = fill_scenario({"vars": dict(scenario.vars), made.section: data})[made.section]
        new = model.model_validate(written, context=context)
    except (SuiteError, ValueError):
        return None
    patched = _pasted(scenario, made, new)
    return None if any(True for _ in scenario_problems(patched)) else patched


def _pasted(scenario: Scenario, made: Suggestion, new: Expect | Forbid) -> Scenario:
    holder = scenario if made.turn is None else scenario.turns[made.turn]
    old = getattr(holder, made.section)
    update = {made.key: getattr(new, made.key)}
    merged = new if old is None else old.model_copy(update=update)
    changed = holder.model_copy(update={made.section: merged})
    if made.turn is None:
        assert isinstance(changed, Scenario)
        return changed
    turns = (*scenario.turns[: made.turn], changed, *scenario.turns[made.turn + 1 :])
    return scenario.model_copy(update={"turns": turns})
