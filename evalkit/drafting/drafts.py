"""Drafts: one scenario from one trial, and a suite from the trials of a run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from evalkit.drafting.draft import Draft, LeftOut, Undraftable
from evalkit.drafting.hiding import all_planted, hiding_of, without_values
from evalkit.drafting.proposing import Proposal, circumstances_of, propose, scripts_of
from evalkit.drafting.recorded import Note, Recorded, RecordedTurn, read_recorded, usable_turns
from evalkit.drafting.yaml_text import comment, key_lines
from evalkit.errors import LedgerError, SuiteError, TraceError, UsageError
from evalkit.grade import STATUSES, Status
from evalkit.importers.writing import SUITE_FILE
from evalkit.ledger import JSON, encode
from evalkit.results import Run, TrialRecord, load_run
from evalkit.scanning import Hiding, hiding_for
from evalkit.suite import AgentEntry, Scenario, Suite, parse_suite, suite_from_data
from evalkit.suite.yaml_reader import parse_yaml

Source: TypeAlias = Suite | str | PathLike[str] | None
Which: TypeAlias = Status | Literal["any"]

_MAX_ID: Final = 80
"""Characters of an id before its number."""


@dataclass(frozen=True, slots=True)
class DraftedSuite:
    """Drafts of one run, as a suite."""

    name: str
    run_id: str
    agent: str
    """``module:name``; empty where the run does not say."""
    drafts: tuple[Draft, ...]
    same: tuple[LeftOut, ...] = ()
    """Trials with the input and the calls of an earlier one."""
    undrafted: tuple[LeftOut, ...] = ()
    """Trials that no scenario could be drafted from."""

    @property
    def text(self) -> str:
        """The whole suite file.

        Raises
        ------
        UsageError
            If there is no draft: a suite has at least one scenario.
        """
        if not self.drafts:
            raise UsageError(f"{self.run_id}: there is nothing to write: no trial was drafted")
        items = ("\n".join(draft.lines) for draft in self.drafts)
        return "\n".join([*self._header(), "scenarios:", "\n\n".join(items), ""])

    def _header(self) -> Iterator[str]:
        yield comment(f"Drafted by evalkit from the run {self.run_id}.")
        yield "# The scripts let the model answer again as it did then; the agent's own tools run."
        yield "# Where the model was at fault, the agent has to catch it, or the script to change."
        yield "# REVIEW marks what a person has to decide."
        yield from key_lines("suite", self.name, indent=0)
        if self.agent:
            yield from key_lines("agent", self.agent, indent=0)
        else:
            yield "# REVIEW: name the agent: `agent: module:name`."


def draft_scenario(
    run: Run | str | PathLike[str], scenario: str, trial: int = 0, *, suite: Source = None
) -> Draft:
    """Draft a scenario from one trial of a run.

    Its model script replays what the model answered then, step by step, so that the
    agent meets the same situation; its ``expect`` is what the suite says, else the
    calls that were made, marked for review.

    Parameters
    ----------
    run
        The run, or its directory.
    scenario, trial
        Which trial.
    suite
        Says what should have happened; by default the run's own.

    Raises
    ------
    Undraftable
        If nothing can be drafted from the trial; the text says why.
    UsageError
        If the run has no such trial.
    SuiteError
        If the suite is wrong.
    """
    return _Drafting(run, suite).draft(scenario, trial)


def draft_suite(
    run: Run | str | PathLike[str],
    *,
    suite: Source = None,
    status: Which = "failed",
    scenario: str | None = None,
    trial: int | None = None,
) -> DraftedSuite:
    """Draft one scenario from each trial of a run that went a certain way.

    Parameters
    ----------
    run
        The run, or its directory.
    suite
        Says what should have happened; by default the run's own.
    status
        Which trials: ``failed``, ``incomplete``, ``passed`` or ``any``.
    scenario, trial
        Only trials of this scenario, only this one of them.

    Returns
    -------
    DraftedSuite
        Trials with the same input and the same calls give one draft.

    Raises
    ------
    UsageError
        If there is no such status, scenario or trial.
    SuiteError
        If the suite is wrong.
    """
    drafting = _Drafting(run, suite)
    return drafting.suite(drafting.records(status, scenario, trial=trial))


class _Drafting:
    """Drafts scenarios from one run."""

    def __init__(self, run: Run | str | PathLike[str], suite: Source) -> None:
        self._run = run if isinstance(run, Run) else load_run(run)
        self._gold = _gold_of(self._run, suite)
        self._known = hiding_for(all_planted(self._gold.values()))
        self._is_own = suite is None
        self._taken: Counter[str] = Counter()

    def records(self, status: str, scenario: str | None, *, trial: int | None) -> list[TrialRecord]:
        """List the trials that are asked for."""
        if status not in (*STATUSES, "any"):
            raise UsageError(f"status {status!r} is none of {', '.join(STATUSES)}, any")
        if scenario is not None:
            self._run.record(scenario, trial or 0)
        return [
            record
            for record in self._run.records
            if status in ("any", record.status)
            and scenario in (None, record.scenario)
            and trial in (None, record.trial)
        ]

    def suite(self, records: Sequence[TrialRecord]) -> DraftedSuite:
        """Draft every trial once; of equal ones, the first."""
        drafts: dict[bytes, Draft] = {}
        same: list[LeftOut] = []
        undrafted: list[LeftOut] = []
        for record in records:
            key = (record.scenario, record.trial)
            try:
                draft = self.draft(*key)
            except (Undraftable, LedgerError, TraceError) as error:
                undrafted.append(LeftOut(*key, self._known.text(str(error))))
                continue
            earlier = drafts.setdefault(_situation(draft), draft)
            if earlier is not draft:
                same.append(LeftOut(*key, f"same input and calls as {earlier.id}"))
        return DraftedSuite(
            name=f"{_file_safe(self._run.manifest.suite)}-drafts",
            run_id=self._run.id,
            agent=_agent_of(self._run),
            drafts=tuple(drafts.values()),
            same=tuple(same),
            undrafted=tuple(undrafted),
        )

    def draft(self, scenario: str, trial: int) -> Draft:
        """Draft one trial, and make sure that the draft can be read back."""
        record = self._run.record(scenario, trial)
        gold = self._gold.get(scenario)
        recorded = read_recorded(self._run.ledger(scenario, trial), gold)
        recorded = usable_turns(recorded, is_import=self._run.manifest.lane == "imported")
        if all(turn.is_silent for turn in recorded.turns):
            raise Undraftable("no user turn with an answer: nothing was said, or nothing recorded")
        proposal = propose(recorded, gold)
        model = _Scripts(gold)
        turns = _turns(recorded, proposal, model)
        data = _head(self._id(record), record, gold) | _said(turns)
        data |= {key: part for key, part in _whole(proposal) if part}
        notes = _placed([*recorded.notes, *model.notes, *proposal.notes], data)
        draft = Draft(data["id"], scenario, trial, data, notes, _about(self._run, record))
        draft = without_values(draft, self._hiding(record))
        _check(draft)
        return draft

    def _hiding(self, record: TrialRecord) -> Hiding:
        """Give what hides canaries: those of the whole suite, for agents mix things up."""
        gold = self._gold.get(record.scenario)
        planned = self._run.manifest.plan
        was = next((entry.hash for entry in planned if entry.id == record.scenario), "")
        is_changed = self._is_own and gold is not None and gold.hash != was
        return hiding_of(record, () if is_changed else tuple(self._gold.values()))

    def _id(self, record: TrialRecord) -> str:
        """Name a scenario after its trial; no two alike, also where case does not count."""
        name = f"{_file_safe(record.scenario)}-trial-{record.trial}"
        self._taken[name.casefold()] += 1
        n = self._taken[name.casefold()]
        return name if n == 1 else f"{name}-{n}"


def _gold_of(run: Run, suite: Source) -> dict[str, Scenario]:
    """Give the scenarios that say what should have happened, by id."""
    if suite is None:
        named = (run.folder / SUITE_FILE, Path(run.manifest.suite_path or "/nowhere"))
        suite = next((path for path in named if path.is_file()), None)
        if suite is None:
            return {}
    loaded = suite if isinstance(suite, Suite) else parse_suite(Path(suite))
    return {scenario.id: scenario for scenario in loaded}


class _Scripts:
    """Writes the model of each turn, plain or by the names of its scripts."""

    def __init__(self, gold: Scenario | None) -> None:
        self._gold = gold
        self.notes: list[Note] = []

    def of(self, turn: RecordedTurn) -> JSON:
        """Give the script of one turn; ``None`` where nothing is known of the model."""
        if turn.steps is None:
            text = f"turn {turn.index + 1}: no answer of the model was recorded; write its script"
            self.notes.append(Note("model", text))
            return None
        if not any(turn.scripts):
            return list(turn.steps)
        return self._named(turn, turn.steps)

    def _named(self, turn: RecordedTurn, steps: Sequence[dict[str, JSON]]) -> JSON:
        known = scripts_of(self._gold, turn.index)
        by_name: dict[str, Any] = {}
        for name, step in zip(turn.scripts, steps, strict=True):
            by_name.setdefault(name, []).append(step)
        if not by_name.keys() <= known.keys():
            text = f"turn {turn.index + 1}: several scripts answered, whose `when` is unknown"
            self.notes.append(Note("model", text))
            return list(steps)
        return {
            name: own if known[name] is None else {"when": known[name], "steps": own}
            for name, own in by_name.items()
        }


def _turns(recorded: Recorded, proposal: Proposal, scripts: _Scripts) -> list[dict[str, JSON]]:
    turns = []
    for position, turn in enumerate(recorded.turns):
        own = proposal.by_turn.get(position, {})
        if turn.advance_s is not None:
            turns.append({"advance": turn.advance_s, **own})
            continue
        script = scripts.of(turn)
        model = {} if script is None else {"model": script}
        if turn.restart is not None:
            turns.append({"restart": turn.restart, **(model if turn.steps else {}), **own})
            continue
        turns.append({"user": turn.user, **model, **own})
    return turns


def _head(name: str, record: TrialRecord, gold: Scenario | None) -> dict[str, JSON]:
    tags = [tag for tag in record.tags if tag.strip()]
    return {"id": name} | ({"tags": tags} if tags else {}) | circumstances_of(gold)


def _said(turns: Sequence[dict[str, JSON]]) -> dict[str, JSON]:
    """Write the turns; a single plain one as ``input``."""
    if len(turns) > 1 or turns[0].keys() - {"user", "model"}:
        return {"turns": list(turns)}
    return {"input" if key == "user" else key: value for key, value in turns[0].items()}


def _whole(proposal: Proposal) -> Iterator[tuple[str, JSON]]:
    yield "expect", proposal.expect
    yield "forbid", proposal.forbid


def _placed(notes: Sequence[Note], data: dict[str, JSON]) -> tuple[Note, ...]:
    """Put each note beside a key that the scenario has."""
    nearest = {"model": "turns", "expect": "forbid"}
    placed = []
    for note in notes:
        key = note.key if note.key in data else nearest.get(note.key, "")
        placed.append(note._replace(key=key if key in data else ""))
    return tuple(dict.fromkeys(placed))


def _about(run: Run, record: TrialRecord) -> tuple[str, ...]:
    """Say where a draft comes from, and what became of the trial."""
    source = f"From run {run.id}, scenario {record.scenario}, trial {record.trial}"
    why = f" ({record.reason_code})" if record.reason_code else ""
    told = (f"{source}: {record.status}{why}", record.reason)
    return tuple(text for text in told if text)


def _situation(draft: Draft) -> bytes:
    """Give what two drafts of the same situation have in common: the input and the calls."""
    turns = draft.data.get("turns") or [{"user": draft.data["input"], **draft.data}]
    said = (turn.get("user", turn.get("advance", turn.get("restart"))) for turn in turns)
    scripts = (_without_texts(turn.get("model")) for turn in turns)
    return encode([*zip(said, scripts, strict=True)])


def _without_texts(model: JSON) -> JSON:
    """Give a scripted model, or one of its named scripts, without what it says."""
    if not isinstance(model, dict):
        steps = [{key: part for key, part in step.items() if key != "text"} for step in model or ()]
        return [step for step in steps if step]
    if "steps" in model:
        return {**model, "steps": _without_texts(model["steps"])}
    return {name: _without_texts(script) for name, script in model.items()}


def _file_safe(text: str) -> str:
    """Make an id out of any text.

    Examples
    --------
    >>> _file_safe("Book a flight / Denver.")
    'Book-a-flight-Denver'
    """
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")
    return plain[:_MAX_ID].rstrip("-._") or "scenario"


def _agent_of(run: Run) -> str:
    """Give the run's agent, if a suite can name it."""
    try:
        return AgentEntry.model_validate(run.manifest.agent).python or ""
    except ValueError:
        return ""


def _check(draft: Draft) -> None:
    """Refuse a draft that would not be read back as it is meant."""
    text = "\n".join(["suite: draft", "scenarios:", *draft.lines, ""])
    try:
        document = parse_yaml(text.encode(), where=draft.id)
        suite_from_data(document.data, where=draft.id)
    except UnicodeEncodeError:
        raise Undraftable("a text holds half of a character (a lone surrogate)") from None
    except SuiteError as error:
        raise Undraftable(f"no suite can hold it: {error.problems[0]}") from error
    if encode(document.data["scenarios"]) != encode([draft.data]):
        raise Undraftable("it holds what YAML cannot write, such as an infinite number")
