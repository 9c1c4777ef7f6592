"""A mutation report for people: text for a terminal, HTML for a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from evalkit.markup import Safe, escape, join, table, tag
from evalkit.mutation.records import Kind, MutantResult, Status, Suggestion
from evalkit.mutation.report import MutationReport
from evalkit.terminal import columns, one_line, percent, printable

_NO_SUGGESTION = "no expectation that was tried notices it"
_LISTED = 50
"""Survivors and other mutants that a text names one by one."""

_Counts = Mapping[tuple[str, Kind], Counter[Status]]


def report_text(report: MutationReport) -> str:
    """Write a report: the score, a table by scenario and kind, each survivor."""
    parts = [
        _headline(report),
        _table(report),
        *_survivors(report),
        *_unmeasured(report),
        *_excluded(report),
    ]
    return "\n\n".join(part for part in parts if part)


def _headline(report: MutationReport) -> str:
    n = report.n_killed + report.n_survived
    if not n:
        return f"mutation score of {printable(report.suite)}: none, nothing could be measured"
    rest = [
        f"{report.n_incomplete} could not be graded, "
        f"{percent(report.score_low)} if they count as survivors"
        if report.n_incomplete
        else "",
        f"{report.n_excluded} excluded" if report.n_excluded else "",
        f"{sum(report.untried.values())} not tried (max_mutants)" if report.untried else "",
    ]
    more = "".join(f"; {text}" for text in rest if text)
    return (
        f"mutation score of {printable(report.suite)}: {percent(report.score)}, "
        f"{report.n_killed} of {n} mutants noticed{more}"
    )


def _table(report: MutationReport) -> str:
    """Count what was noticed, by scenario and kind; what is not 3/3 is where to look."""
    if not report.results:
        return ""
    kinds = report.kinds
    counts = report.counts()
    rows = [
        (name, *(_cell(counts, [name], kind) for kind in kinds), _cell(counts, [name]))
        for name in dict.fromkeys(result.scenario for result in report.results)
    ]
    names = [row[0] for row in rows]
    rows.append(("all", *(_cell(counts, names, kind) for kind in kinds), _cell(counts, names)))
    return columns(rows, head=("noticed", *kinds, "all"), right="l" + "r" * (len(kinds) + 1))


def _cell(counts: _Counts, names: list[str], kind: Kind | None = None) -> str:
    total: Counter[Status] = Counter()
    for (name, its_kind), counted in counts.items():
        if name in names and kind in (None, its_kind):
            total += counted
    n = total["killed"] + total["survived"] + total["incomplete"]
    return f"{total['killed']}/{n}" if n else ""


def _survivors(report: MutationReport) -> Iterator[str]:
    """Name each survivor; those that one expectation closes stand together."""
    shown = report.survivors[:_LISTED]
    together: dict[tuple[str, Suggestion | None], list[MutantResult]] = {}
    for result in shown:
        together.setdefault((result.scenario, result.suggestion), []).append(result)
    for (_, suggested), results in together.items():
        heads = [f"survived  {_named(one)}{_note(one)}" for one in results]
        yield "\n".join([*heads, *_suggested(suggested)])
    rest = report.n_survived - len(shown)
    if rest > 0:
        yield f"... and {rest} more survivors; --json names them all"


def _note(result: MutantResult) -> str:
    return f" ({result.reason})" if result.reason else ""


def _named(result: MutantResult) -> str:
    return f"{one_line(result.scenario)}  {result.operator}: {one_line(result.what)}"


def _suggested(made: Suggestion | None) -> list[str]:
    if made is None:
        return [f"  {_NO_SUGGESTION}"]
    lines = printable(made.text).split("\n")
    return [f"  would be noticed with, {made.where}:", *(f"    {line}" for line in lines)]


def _unmeasured(report: MutationReport) -> Iterator[str]:
    if report.left_out:
        rows = [f"  {one_line(name)}: {one_line(reason)}" for name, reason in report.left_out]
        yield "\n".join([f"left out, no trial passes: {len(rows)}", *rows])
    unsure = [result for result in report.results if result.status == "incomplete"]
    if unsure:
        rows = [f"  {_named(one)}: {one_line(one.reason)}" for one in unsure[:_LISTED]]
        yield "\n".join([f"could not be graded: {len(unsure)}", *rows])


def _excluded(report: MutationReport) -> Iterator[str]:
    """Say what nobody should notice, counted by operator and reason."""
    left = Counter(
        (result.operator, result.reason) for result in report.results if result.status == "excluded"
    )
    if left:
        rows = [f"  {n} {operator}: {one_line(why)}" for (operator, why), n in left.items()]
        yield "\n".join(["excluded, because nobody should notice them:", *rows])


def report_html(report: MutationReport) -> str:
    """Write a report as HTML in which every text is escaped."""
    survivors = [
        {
            "scenario": result.scenario,
            "operator": result.operator,
            "what": result.what,
            "note": result.reason,
            "would be noticed with": _html(result.suggestion),
        }
        for result in report.survivors
    ]
    rows = [{"scenario": one.scenario, "reason": one.reason} for one in report.left_out]
    return join(
        [
            tag("p", tag("strong", _headline(report))),
            _html_table(report),
            table(survivors, caption="survivors") if survivors else "",
            table(rows, caption="left out, no trial passes") if rows else "",
            *(tag("pre", text) for text in _excluded(report)),
        ]
    )


def _html(made: Suggestion | None) -> Safe:
    if made is None:
        return escape(_NO_SUGGESTION)
    return join([escape(made.where), tag("pre", made.text)])


def _html_table(report: MutationReport) -> Safe:
    counts, kinds = report.counts(), report.kinds
    names = list(dict.fromkeys(result.scenario for result in report.results))
    rows = [
        {"noticed": name, **{kind: _cell(counts, [name], kind) for kind in kinds},
         "all": _cell(counts, [name])}
        for name in names
    ]  # fmt: skip
    return table(rows, numbers=[*kinds, "all"]) if rows else Safe()
