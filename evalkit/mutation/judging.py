"""Whether the suite's graders notice a mutant, and which expectation would."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from evalkit.grade import Ending, Status, judge_status
from evalkit.graders import Trial, grade_trial, planted_in
from evalkit.mutation import records
from evalkit.mutation.pasting import with_suggestion
from evalkit.mutation.records import Made, Mutant, MutantResult, Operator, Subject, Suggestion
from evalkit.scanning import hiding_for


@dataclass(frozen=True, slots=True)
class GradingAgain:
    """Grades traces by the expectations of a suite, without running anything.

    Parameters
    ----------
    more
        Further graders that the run had.
    strict
        Whether the suite's defaults are strict.
    """

    more: Sequence[str] = ()
    strict: bool = False

    def ending_of(self, trial: Trial) -> Ending:
        """Say what the graders make of a trial that ran to its end.

        What a judge said of it is left out: only code can say the same twice.
        """
        grades = [grade for grade in grade_trial(trial, more=self.more) if not grade.rubric]
        return judge_status(Ending(), grades)

    def ending_of_mutant(self, subject: Subject, mutant: Mutant) -> Ending:
        """Say what the graders make of a mutant."""
        return self.ending_of(replace(subject.trial, trace=mutant.trace))

    def closing(
        self, operator: Operator, subject: Subject, mutant: Mutant, *, alone: Subject
    ) -> Suggestion | None:
        """Find an expectation that the original meets and the mutant does not.

        It must do so on top of what the subject's scenario expects, and ``alone``, on
        top of that of another: of the suite as it is.
        """
        for close in operator.closers:
            for suggested in close(subject, mutant):
                if all(self.closes(suggested, one, mutant) for one in (subject, alone)):
                    return suggested
        return None

    def closes(self, suggested: Suggestion, subject: Subject, mutant: Mutant) -> bool:
        """Say whether the original meets an expectation and the mutant does not."""
        patched = self.patched(subject, suggested)
        if patched is None:
            return False
        is_noticed = self.ending_of_mutant(patched, mutant).status == "failed"
        return is_noticed and self.ending_of(patched.trial).status == "passed"

    def patched(self, subject: Subject, suggested: Suggestion) -> Subject | None:
        """Give the subject with an expectation added to its scenario, if a suite can have it."""
        scenario = with_suggestion(subject.trial.scenario, suggested, strict=self.strict)
        if scenario is None:
            return None
        return replace(subject, trial=replace(subject.trial, scenario=scenario))


_RESULT: Final[dict[Status, records.Status]] = {
    "failed": "killed",
    "passed": "survived",
    "incomplete": "incomplete",
}


class TrialJudge:
    """Judges the mutants of one trial; what is suggested for one counts for the next."""

    def __init__(self, subject: Subject, grading: GradingAgain) -> None:
        self._subject = self._patched = subject
        self._grading = grading
        # A report names a canary, never its value.
        self._hiding = hiding_for(planted_in(subject.trial.scenario))
        self._suggested: list[Suggestion] = []

    def result(self, made: Made) -> MutantResult:
        """Judge one mutant."""
        operator, mutant = made
        plain = self._plain(operator, mutant)
        suggestion = plain.suggestion
        if suggestion is not None:
            suggestion = suggestion._replace(text=self._hiding.text(suggestion.text))
        return replace(
            plain,
            what=self._hiding.text(plain.what),
            reason=self._hiding.text(plain.reason),
            suggestion=suggestion,
        )

    def _plain(self, operator: Operator, mutant: Mutant) -> MutantResult:
        """Judge one mutant; what is told may hold canaries."""
        result = MutantResult(
            scenario=self._subject.trial.scenario.id,
            trial=self._subject.trial.trial,
            operator=operator.name,
            kind=operator.kind,
            what=mutant.what,
            status="excluded",
            reason=mutant.excluded,
        )
        if mutant.excluded:
            return result
        ending = self._grading.ending_of_mutant(self._subject, mutant)
        status = _RESULT[ending.status]
        if status != "survived":
            return replace(result, status=status, reason=ending.reason)
        suggestion = self._suggestion(operator, mutant)
        return replace(result, status=status, reason=mutant.remark, suggestion=suggestion)

    def _suggestion(self, operator: Operator, mutant: Mutant) -> Suggestion | None:
        """Find what closes a hole: an earlier suggestion, or a further one on top of those."""
        for earlier in self._suggested:
            if self._grading.closes(earlier, self._subject, mutant):
                return earlier
        closing, subject = self._grading.closing, self._subject
        found = closing(operator, self._patched, mutant, alone=subject)
        patched = found and self._grading.patched(self._patched, found)
        if found is None or patched is None:
            return closing(operator, subject, mutant, alone=subject)
        self._suggested.append(found)
        self._patched = patched
        return found
