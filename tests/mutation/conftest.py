"""Trials to be broken, and a suite file to paste suggestions into."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from evalkit.graders import Trial
from evalkit.mutation import OPERATORS, MutantResult, Operator, Subject, Suggestion
from evalkit.mutation.judging import GradingAgain, TrialJudge
from evalkit.mutation.making import mutants_of
from evalkit.mutation.records import Made
from evalkit.mutation.toolset import Toolset
from evalkit.suite import Suite, suite_from_data
from evalkit.suite.loading import parse_suite
from evalkit.trace import ModelCall, ToolCall, Trace, Turn

JSON = Any


def _tool(name: str, *needed: str, **more: JSON) -> JSON:
    properties = {key: {"type": "string"} for key in needed} | more
    schema = {"type": "object", "properties": properties, "required": list(needed)}
    return {"name": name, "input_schema": schema}


PROMPT: JSON = {
    "tools": [
        _tool("search", "destination", stops={"type": "integer"}),
        _tool("book", "flight_id", "date"),
        _tool("get_weather", "city"),
        _tool("cancel", "flight_id"),
    ]
}

CALLS = (
    ToolCall(
        "search",
        {"destination": "Seattle", "max_price": 200, "direct": True, "sort": ["price", "time"]},
        asked_by=1,
    ),
    ToolCall("book", {"flight_id": "AA315", "date": "next Monday"}, asked_by=2),
)
"""Between them, arguments of every look."""


@dataclass(frozen=True)
class Case:
    """A scenario as a suite file has it, and what a trial of it did."""

    scenario: JSON
    trace: Trace
    lane: str = "live"
    defaults: JSON = None

    @property
    def data(self) -> dict[str, JSON]:
        """The suite."""
        more = {} if self.defaults is None else {"defaults": self.defaults}
        return {"suite": "s", **more, "scenarios": [self.scenario]}

    @property
    def suite(self) -> Suite:
        """The suite, loaded."""
        return suite_from_data(self.data)

    @property
    def grading(self) -> GradingAgain:
        """What grades its mutants."""
        return GradingAgain(strict=bool((self.defaults or {}).get("strict")))

    def trial(self, suite: Suite | None = None) -> Trial:
        """Give the trial, seen by the suite."""
        return Trial((suite or self.suite).scenarios[0], self.trace, lane=self.lane)

    def subject(self) -> Subject:
        """Give the trial, to be broken."""
        return Subject(self.trial(), Toolset.seen_in([self.trace]))

    def judged(self, *names: str) -> list[tuple[Made, MutantResult]]:
        """Make the mutants of some operators and judge them."""
        assert self.grading.ending_of(self.trial()).status == "passed"
        subject = self.subject()
        judge = TrialJudge(subject, self.grading)
        made = mutants_of(subject, [one for one in OPERATORS if not names or one.name in names])
        return [(one, judge.result(one)) for one in made]

    def results(self, *names: str) -> list[MutantResult]:
        """Judge the mutants of some operators."""
        return [result for _, result in self.judged(*names)]

    def pasted(self, suggestion: Suggestion, folder: Any) -> Suite:
        """Paste a suggestion into the suite's file, and load it."""
        data = copy.deepcopy(self.data)
        (scenario,) = data["scenarios"]
        holder = scenario if suggestion.turn is None else scenario["turns"][suggestion.turn]
        text = yaml.safe_load(f"{suggestion.section}:\n" + _indented(suggestion.text))
        holder.setdefault(suggestion.section, {}).update(text[suggestion.section])
        path = folder / "suite.yaml"
        path.write_text(yaml.safe_dump(data, allow_unicode=True), encoding="utf-8")
        return parse_suite(path)

    def is_closed_by(self, suggestion: Suggestion, mutant: Trace, folder: Any) -> bool:
        """Say whether a pasted suggestion notices a mutant and lets the original pass."""
        scenario = self.pasted(suggestion, folder).scenarios[0]
        broken, good = (
            self.grading.ending_of(Trial(scenario, trace, lane=self.lane)).status
            for trace in (mutant, self.trace)
        )
        return (broken, good) == ("failed", "passed")


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.split("\n"))


def make_trace(calls: Sequence[ToolCall], *replies: str, **more: Any) -> Trace:
    """Make the trace of a trial with one reply a turn, whose model calls were seen."""
    turns = tuple(Turn("Go on.", (reply,)) for reply in replies)
    model_calls = (ModelCall("m", prompt=PROMPT, reply={}),) * 3
    told: Mapping[str, Any] = {"models_observed": True, "model_calls": model_calls} | more
    return Trace(turns=turns, tool_calls=tuple(calls), **told)


@pytest.fixture
def case() -> type[Case]:
    """Give :class:`Case` to tests, which cannot import each other."""
    return Case


@pytest.fixture
def trace_of_calls() -> Any:
    """Give :func:`make_trace`."""
    return make_trace


@pytest.fixture
def calls() -> tuple[ToolCall, ...]:
    """Give calls with arguments of every look."""
    return CALLS


@pytest.fixture
def operator() -> Any:
    """Find an operator by name."""
    known: Mapping[str, Operator] = {one.name: one for one in OPERATORS}
    return known.__getitem__
