"""The verdict as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from evalkit.gating.verdicts import Verdict
from evalkit.terminal import printable

_LOUD: Final = {
    "INCONCLUSIVE": "not a pass: there is too little to tell",
    "INVALID": "nothing was decided: what is named here must be mended first",
}


def verdict_text(verdict: Verdict) -> str:
    """Say the verdict first, then why, then what else was looked at.

    Examples
    --------
    >>> from evalkit.gating import Check, Verdict
    >>> print(verdict_text(Verdict("PASS", (Check("floor", "PASS", "above it"),), run="r1")))
    PASS  r1
      above it
    """
    return printable("\n".join(_lines(verdict)))


def _lines(verdict: Verdict) -> Iterator[str]:
    against = f" against baseline {verdict.baseline!r}" if verdict.baseline else ""
    loud = f"  ({_LOUD[verdict.verdict]})" if verdict.verdict in _LOUD else ""
    yield f"{verdict.verdict}  {verdict.run or 'run'}{against}{loud}"
    yield from (f"  {reason}" for reason in verdict.reasons)
    others = [check for check in verdict.checks if check.outcome != verdict.verdict]
    if others:
        yield "also"
        yield from (f"  {check.outcome:<12}  {check.reason}" for check in others)
    more = [*filter(None, [verdict.resolution]), *verdict.notes]
    if more:
        yield "note"
        yield from (f"  {line}" for line in more)
