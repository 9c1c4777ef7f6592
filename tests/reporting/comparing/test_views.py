"""Views of two sides: the verdict first, reasons of the run only, nothing left out unsaid."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from evalkit.gating import Verdict, gate
from evalkit.reporting import comparing as views
from evalkit.reporting.comparing.comparison import Comparison
from evalkit.reporting.comparing.parts import word_for
from evalkit.reporting.comparing.sources import facts_of
from evalkit.reporting.comparing.verdicts import p_text

Make = Callable[..., Any]
Text = Callable[[Any], str]

MANY = {f"s{i:02}": "ppp" for i in range(20)}
ONCE = dict.fromkeys(MANY, "p")  # a baseline pools three runs
WORSE = MANY | {f"s{i:02}": "fff" for i in range(8)}
NAN = float("nan")


@pytest.fixture
def gated(pin: Make, make_run: Make) -> Callable[..., Comparison]:
    """Compare a run with the pinned baseline ``main``."""

    def compared(now: dict[str, str], before: dict[str, str] = ONCE, **more: Any) -> Comparison:
        rules = {name: more.pop(name) for name in ("floor", "margin") if name in more}
        baseline = pin(before, lane=more.get("lane", "live"))
        return views.compare_with(make_run(now, **more), baseline, **rules)

    return compared


@pytest.fixture
def two_runs(make_run: Make) -> Callable[..., Comparison]:
    """Compare a run with another one."""

    def compared(now: dict[str, str], before: dict[str, str] = MANY, **more: Any) -> Comparison:
        return views.compare_with(make_run(now, **more), make_run(before, name="r0", **more))

    return compared


# --- verdict ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "margin", "words", "class_"),
    [
        (WORSE, 0.05, "✕ FAIL against baseline main", "ek-failed"),
        (MANY, 0.3, "✓ PASS against baseline main", "ek-passed"),
        (MANY, 0.01, "? INCONCLUSIVE against baseline main: too little to tell", "ek-open"),
        (dict.fromkeys(MANY, "ppi"), 0.3, "◌ INVALID against baseline main", "ek-open"),
    ],
    ids=["fail", "pass", "inconclusive", "invalid"],
)
def test_verdict_leads_with_symbol_and_word(
    gated: Make, text_of: Text, now: dict[str, str], margin: float, words: str, class_: str
) -> None:
    """The word is the gate's, with a symbol, a class, and the reason below it."""
    comparison = gated(now, margin=margin)
    view = views.verdict(comparison)
    assert text_of(view).startswith(words)
    assert f'class="ek-verdict {class_}"' in view.html
    assert comparison.verdict is not None
    assert comparison.verdict.reasons[0] in text_of(view)


def test_verdict_draws_the_interval_that_decided(gated: Make) -> None:
    """The picture has the gate's numbers, zero and the margin."""
    comparison = gated(WORSE)
    html = views.verdict(comparison).html
    low, high = (f"{100 * x:.1f}".replace("-", "−") for x in _bounds(comparison))
    assert f"difference: −40.0 points, interval {low} to {high}, below zero" in html
    assert "margin of −5.0" in html
    assert "it decided nothing" not in html


def _bounds(comparison: Comparison) -> tuple[float, float]:
    """Return the interval that decided."""
    check = comparison.regression
    assert check is not None
    assert check.low is not None
    assert check.high is not None
    return check.low, check.high


def test_verdict_says_the_rates_once(gated: Make, text_of: Text) -> None:
    """Where the gate's reason has the rates, no second sentence repeats them."""
    text = text_of(views.verdict(gated(WORSE)))
    before_folds = text.partition("Everything that the gate looked at")[0]
    assert before_folds.count("60.0%") == 1


def test_invalid_verdict_still_shows_what_is_known(gated: Make, text_of: Text) -> None:
    """Numbers that decided nothing are shown as such."""
    text = text_of(views.verdict(gated(dict.fromkeys(MANY, "ppi"))))
    assert "20 of 60 planned trials have no result" in text
    assert "Pass rate 100.0% against 100.0% in baseline main" in text
    assert "it decided nothing" in text


def test_floor_that_was_held_is_drawn(gated: Make, text_of: Text) -> None:
    """The rate stands on its own scale, the floor as a dashed line."""
    view = views.verdict(gated(WORSE, floor=0.9))
    assert "dashes: the floor of 90.0%" in text_of(view)
    assert "pass rate of the run: 60%" in view.html


def test_floor_is_drawn_where_the_interval_starts_at_zero(gated: Make, text_of: Text) -> None:
    """A lower bound of exactly zero is a bound."""
    view = views.verdict(gated(dict.fromkeys(MANY, "fff"), floor=0.9))
    assert "dashes: the floor of 90.0%" in text_of(view)


def test_suite_says_what_it_can_resolve(gated: Make, text_of: Text) -> None:
    """A reader learns which drops could have been seen at all."""
    text = text_of(views.verdict(gated(MANY)))
    assert re.search(r"What this suite can resolve: these 20 scenarios x 3 trials", text)


@pytest.mark.parametrize(
    ("now", "before", "words"),
    [
        (WORSE, MANY, "↓ Lower than run r0 by 40.0 points"),
        (MANY, WORSE, "↑ Higher than run r0 by 40.0 points"),
        (MANY, MANY, "? No clear difference from run r0: the interval spans zero"),
        ({"a": "p"}, {"b": "p"}, "◌ Nothing to compare with run r0"),
    ],
    ids=["lower", "higher", "same", "nothing"],
)
def test_two_runs_get_words_and_no_verdict(
    two_runs: Make, text_of: Text, now: dict[str, str], before: dict[str, str], words: str
) -> None:
    """The direction is said, and plainly that no gate is applied; no verdict's colour is used."""
    view = views.verdict(two_runs(now, before))
    text = text_of(view)
    assert text.startswith(words)
    assert "Two single runs are compared. No gate is applied" in text
    assert "evalkit baseline pin" in text
    assert 'class="ek-verdict ek-open"' in view.html
    assert "margin" not in view.html
    assert not re.search(r"\b(PASS|FAIL|INVALID|INCONCLUSIVE)\b", text)


def test_nothing_in_common_is_said_clearly(two_runs: Make, gated: Make, text_of: Text) -> None:
    """Both kinds of comparison say that nothing is the same, and ask the right question."""
    for comparison in (two_runs({"a": "p"}, {"b": "p"}), gated({"a": "p"}, {"b": "p"})):
        text = text_of(views.verdict(comparison))
        assert "nothing to compare" in text.lower()
        assert "Are both of one suite?" in text
        assert "1 removed" in text_of(views.key_numbers(comparison))
        assert views.rates_side_by_side(comparison) is None
        assert views.newly_failing(comparison) is None
        assert text_of(views.not_compared(comparison)).count("not there") == 2


def test_cautions_of_two_runs_stand_in_the_verdict(make_run: Make, text_of: Text) -> None:
    """What was not measured alike is said where the numbers are."""
    other = make_run(MANY, name="r0", suite="hotels")
    text = text_of(views.verdict(views.compare_with(make_run(MANY), other)))
    assert "Not measured alike: the suite is 'travel' in this run and 'hotels'" in text


def test_contract_lane_has_a_verdict_and_no_interval(
    gated: Make, two_runs: Make, text_of: Text
) -> None:
    """Scripted trials are copies: newly failing is listed, nothing is estimated."""
    for make, words in (
        (gated, "✕ FAIL against baseline main"),
        (two_runs, "✕ FAIL in the contract lane"),
    ):
        comparison = make({"a": "p", "b": "f"}, {"a": "p", "b": "p"}, lane="contract")
        text = text_of(views.verdict(comparison))
        assert text.startswith(words)
        assert "no interval" in text
        assert "<figure" not in views.verdict(comparison).html
        assert "What this suite can resolve" not in text
        assert views.differences_by(comparison, "grader") is None
        failing = text_of(views.newly_failing(comparison))
        assert "now 0 of 1 b truth: called forbidden tool: book" in failing
        assert "five trials" not in failing


# --- scenarios ----------------------------------------------------------------------------


def test_newly_failing_has_the_reasons_of_the_run(make_run: Make, text_of: Text) -> None:
    """Each has the run's reason, folded but for the first; the baseline's are never shown."""
    before = make_run({"a": "ppf", "b": "ppp"}, name="r0", reason="OLD REASON")
    view = views.newly_failing(views.compare_with(make_run({"a": "ffp", "b": "fff"}), before))
    text = text_of(view)
    assert "2 scenarios passed most of their trials before, and do not now" in text
    assert "was 3 of 3, now 0 of 3 b" in text
    assert "truth trials 0, 1 called forbidden tool: book" in text
    assert "OLD REASON" not in text
    assert view is not None
    assert text.index(" b ") < text.index(" a ")  # the larger loss first
    assert view.html.count("<details") == 2
    assert view.html.count(" open>") == 1


def test_newly_failing_left_out_are_counted(two_runs: Make, text_of: Text) -> None:
    """A limit says how many more there are, also when it is zero."""
    comparison = two_runs(WORSE)
    assert "5 more scenarios not shown" in text_of(views.newly_failing(comparison, limit=3))
    assert "8 more scenarios not shown" in text_of(views.newly_failing(comparison, limit=0))


def test_newly_passing_says_before_and_now(two_runs: Make, text_of: Text) -> None:
    """A scenario that recovered is listed with its counts."""
    text = text_of(views.newly_passing(two_runs({"a": "ppf"}, {"a": "fff"})))
    assert "a 0 of 3 2 of 3" in text
    assert views.newly_passing(two_runs({"a": "f"}, {"a": "p"})) is None


def test_rates_are_drawn_side_by_side_by_loss(two_runs: Make, text_of: Text) -> None:
    """Those that differ are shown, the largest loss first; the others are counted."""
    before = {"a": "pp", "b": "pp", "c": "ff", "d": "pp"}
    comparison = two_runs({"a": "pf", "b": "ff", "c": "pp", "d": "pp"}, before)
    view = views.rates_side_by_side(comparison)
    text = text_of(view)
    assert "Of 4 compared scenarios, 2 have a lower rate than before, 1 a higher one" in text
    assert "b 100% 2 of 2 0% 0 of 2 −100.0" in text
    places = [text.index(f" {name} ") for name in ("b 100%", "a 100%", "c 0%")]
    assert places == sorted(places)
    assert " d " not in text
    assert view is not None
    assert "b: baseline 100%, run 0%" in view.html
    assert "2 more scenarios not shown" in text_of(views.rates_side_by_side(comparison, limit=1))


def test_rates_that_are_all_the_same_are_one_sentence(two_runs: Make, text_of: Text) -> None:
    """No table of zeros."""
    text = text_of(views.rates_side_by_side(two_runs(MANY)))
    assert text == "By scenario All 20 compared scenarios have the same rate as before."


def test_removed_comes_first_and_has_its_old_rate(two_runs: Make, text_of: Text) -> None:
    """What had failed and is gone is seen before what was added."""
    comparison = two_runs({"a": "p", "new": "p"}, {"a": "p", "gone": "pf"})
    text = text_of(views.not_compared(comparison))
    assert "gone removed 1 of 2 not there" in text
    assert "new added not there 1 of 1" in text
    assert text.index("gone") < text.index("new ")
    assert views.not_compared(two_runs({"a": "p"}, {"a": "p"})) is None


# --- parts --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("difference", "p_holm", "p_bh", "word"),
    [
        (-0.2, 0.01, 0.01, "lower"),
        (0.2, 0.05, 0.01, "higher"),
        (-0.2, 0.06, 0.05, "look here"),
        (-0.2, 0.2, 0.1, "no clear change"),
        (NAN, NAN, NAN, "no test"),
    ],
)
def test_word_of_a_part_is_the_corrected_one(
    difference: float, p_holm: float, p_bh: float, word: str
) -> None:
    """Holm decides what is called lower; Benjamini-Hochberg only says where to look."""
    record = {"difference": difference, "p_holm": p_holm, "p_bh": p_bh}
    assert word_for(record, alpha=0.05) == word


def test_parts_have_rates_interval_word_and_corrections(two_runs: Make, text_of: Text) -> None:
    """Each grader has its difference with an interval and a word; the methods are named."""
    view = views.differences_by(two_runs(WORSE), "grader")
    text = text_of(view)
    assert re.search(r"truth 20 scenarios 100% → 60% −40\.0 −\d+\.\d to −\d+\.\d lower", text)
    assert "path 20 scenarios 100% → 100% 0.0" in text
    assert "no clear change" in text
    assert "Holm's correction over all 2 rows" in text
    assert "Benjamini and Hochberg's" in text
    assert view is not None
    assert view.html.count("<svg") == 2


def test_part_without_anything_to_compare_says_none(make_run: Make, text_of: Text) -> None:
    """A tag that only one side has keeps its row, without a number."""
    before = make_run({"a": "p", "b": "p"}, name="r0", tags={"a": ("x",), "b": ("old",)})
    now = make_run({"a": "p", "c": "p"}, tags={"a": ("x",), "c": ("new",)})
    text = text_of(views.differences_by(views.compare_with(now, before), "tag"))
    assert "old 0 scenarios none – – no test" in text


# --- what is missing, what it costs, where it comes from -----------------------------------


def test_what_was_not_measured_is_told_for_both_sides(two_runs: Make, text_of: Text) -> None:
    """Incomplete trials of the run have reasons; scenarios without a rate are named."""
    text = text_of(views.not_measured(two_runs({"a": "pi", "b": "ii"}, {"a": "pi", "b": "pp"})))
    assert "In this run, 3 of 4 planned trials have no result" in text
    assert "In run r0, 1 of 4 trials have no result" in text
    assert "not compared: 1 scenario (b)" in text
    assert text.count("nobody looked") == 3
    assert views.not_measured(two_runs(MANY)) is None


def test_trials_that_never_ran_are_not_measured(two_runs: Make, text_of: Text) -> None:
    """A run that stopped early shows the trials that it owes."""
    text = text_of(views.not_measured(two_runs({"a": "p-"}, {"a": "pp"}), limit=0))
    assert "1 of 2 planned trials have no result" in text
    assert "1 more trial not shown" in text


def test_costs_are_compared_where_both_are_known(make_run: Make, text_of: Text) -> None:
    """Means over the paired scenarios' trials; what one side lacks is named, never zero."""
    before = make_run({"a": "pp"}, name="r0", columns={"cost_usd": 0.01, "duration_s": None})
    now = make_run({"a": "pp"}, columns={"cost_usd": 0.015, "duration_s": 2.0})
    text = text_of(views.cost_and_calls(views.compare_with(now, before)))
    assert "cost, USD 0.01 0.015 +50%" in text
    assert re.search(r"Not known on both sides: [^.]*duration, seconds", text)


def test_costs_ignore_scenarios_that_are_not_compared(make_run: Make, text_of: Text) -> None:
    """An added scenario does not make the agent look dearer."""
    before = make_run({"a": "p"}, name="r0", columns={"cost_usd": 0.01})
    now = make_run({"a": "p", "b": "p"}, columns={"cost_usd": 0.01})
    assert "cost, USD 0.01 0.01 none" in text_of(
        views.cost_and_calls(views.compare_with(now, before))
    )


def test_tiny_change_is_not_called_none(make_run: Make, text_of: Text) -> None:
    """A change that rounds to nothing is still a change; from zero there is no percentage."""
    before = make_run({"a": "p"}, name="r0", columns={"cost_usd": 0.01, "n_tool_calls": 0})
    now = make_run({"a": "p"}, columns={"cost_usd": 0.01001, "n_tool_calls": 2})
    text = text_of(views.cost_and_calls(views.compare_with(now, before)))
    assert "cost, USD 0.01 0.01001 under 1%" in text
    assert "tool calls 0 2 from zero" in text


def test_cost_of_a_baseline_is_that_of_all_its_trials(gated: Make, text_of: Text) -> None:
    """It is compared where all of them are; else it is not known for what is compared."""
    comparison = gated({"a": "p"}, {"a": "p"}, columns={"cost_usd": 0.02})
    metered = replace(comparison.baseline, cost="metered", cost_usd=0.03)  # three trials
    text = text_of(views.cost_and_calls(replace(comparison, baseline=metered)))
    assert "cost, USD 0.01 0.02 +100%" in text
    fewer = replace(comparison, scenarios=comparison.scenarios.assign(change="removed"))
    assert views.cost_and_calls(replace(fewer, baseline=metered)) is None


def test_provenance_says_where_the_sides_differ(
    gated: Make, text_of: Text, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hashes stand side by side; what differs is said in a word; the command is there."""
    monkeypatch.setenv("EVALKIT_RENDER_COMMAND", "evalkit report compare_runs --run x")
    text = text_of(views.provenance(gated(MANY, agent_hash="b" * 64)))
    assert f"agent hash differs {'a' * 64} {'b' * 64}" in text
    assert f"suite hash same {'5' * 64}" in text
    assert "models unknown unknown unknown" in text
    assert "runs b0, b1, b2" in text
    assert "rebuild evalkit report compare_runs --run x" in text


def test_both_kinds_of_side_tell_the_same_facts(gated: Make) -> None:
    """A run and a baseline have the same rows, none of them empty."""
    comparison = gated(MANY)
    now, before = facts_of(comparison.run), facts_of(comparison.baseline)
    assert list(now) == list(before)
    assert all(now.values())
    assert all(before.values())
    assert now["evalkit"] == "0.3.0"


def test_tiny_p_value_is_never_zero() -> None:
    """A p-value is never written as zero."""
    assert p_text(0.0) == "p < 0.001"
    assert p_text(0.0123) == "p = 0.012"


# --- untrusted text -----------------------------------------------------------------------

ALL_VIEWS: dict[str, Callable[[Comparison], Any]] = {
    "context": views.context,
    "verdict": views.verdict,
    "key_numbers": views.key_numbers,
    "newly_failing": views.newly_failing,
    "newly_passing": views.newly_passing,
    "by_scenario": views.rates_side_by_side,
    "by_tag": lambda c: views.differences_by(c, "tag"),
    "by_grader": lambda c: views.differences_by(c, "grader"),
    "not_compared": views.not_compared,
    "not_measured": views.not_measured,
    "cost": views.cost_and_calls,
    "provenance": views.provenance,
}


@pytest.mark.parametrize("name", ALL_VIEWS)
@pytest.mark.parametrize("evil", ["<script>x()</script>", '"><svg onload=x()>', "a\x00\u202e"])
def test_every_view_escapes_what_both_sides_carry(
    make_run: Make, monkeypatch: pytest.MonkeyPatch, name: str, evil: str
) -> None:
    """Ids, tags, graders, reasons, the manifests and the gate's words are text in every view."""
    monkeypatch.setenv("EVALKIT_RENDER_COMMAND", "x")
    carried: dict[str, Any] = {
        "reason": evil, "grader": evil, "suite": evil, "agent": evil, "models": (evil,),
        "git": {"commit": evil}, "versions": {"evalkit-lab": evil}, "agent_hash": evil,
    }  # fmt: skip
    ids = {kind: f"{kind}{evil}" for kind in "abcdef"}
    tags = dict.fromkeys(ids.values(), (evil,))
    letters_now = {"a": "fff", "b": "ppp", "c": "iii", "d": "ppp", "f": "ppf"}
    letters_before = {"a": "ppp", "b": "fff", "c": "ppp", "e": "fff", "f": "ppp"}
    now, before = ({ids[k]: v for k, v in x.items()} for x in (letters_now, letters_before))
    run = make_run(now, tags=tags, **carried)
    other = make_run(before, name="r0", tags=tags, **carried | {"suite": evil + evil})
    said = gate(run.trials, floor=0.9)
    hostile = replace(said, checks=(replace(said.checks[0], reason=evil),), notes=(evil,))
    for verdict in (None, hostile):
        comparison = replace(views.compare_with(run, other), verdict=verdict)
        view = ALL_VIEWS[name](comparison)
        assert view is not None
        assert not re.search(r"<script|<svg onload|[\x00\u202e]", view._repr_html_())


def test_verdict_of_many_reasons_is_folded(gated: Make) -> None:
    """A flood of reasons does not push everything else off the page; all are in the fold."""
    comparison = gated(WORSE)
    checks = comparison.verdict.checks[:1] * 30
    flooded = replace(comparison, verdict=Verdict("FAIL", checks))
    html = views.verdict(flooded).html
    assert html.partition("<details")[0].count("ek-reason") == 8
    assert html.count(checks[0].reason.split("'")[0]) >= 38
