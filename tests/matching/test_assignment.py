"""Whole assignments: one to one, every rule kept, always found, never greedy."""

from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.matching import ExpectedCall, match_calls
from evalkit.trace import ToolCall

ORDERS = ("any", "in_order", "exact")


def called(*letters: str) -> list[ToolCall]:
    """Make calls of one tool whose only argument is a letter."""
    return [ToolCall("t", {"x": letter}) for letter in letters]


def wants(*choices: str, **more: object) -> ExpectedCall:
    """Expect a call of the tool with one of the letters."""
    return ExpectedCall("t", {"x": {"$one_of": list(choices)}}, **more)


def satisfiable(expected, calls, order, extra) -> bool:
    """Decide by trying every one-to-one assignment of every number of calls."""
    room = [(one, n) for one in expected for n in _ranges(one, len(calls))]
    by_expected = [[n for other, n in room if other is one] for one in expected]
    return any(
        _works(expected, calls, order, extra, list(owners))
        for counts in itertools.product(*by_expected)
        for owners in _owners(counts, len(calls))
    )


def _ranges(one, n_calls):
    low, high = one.times or (1, 1)
    return range(low, min(n_calls, n_calls if high is None else high) + 1)


def _owners(counts, n_calls):
    """Give every way to hand calls to expectations, as the owner of each call."""
    hands = [index for index, count in enumerate(counts) for _ in range(count)]
    if len(hands) > n_calls:
        return set()
    return set(itertools.permutations(hands + [None] * (n_calls - len(hands))))


def _works(expected, calls, order, extra, owners) -> bool:
    own = [[c for c, owner in enumerate(owners) if owner == e] for e in range(len(expected))]
    first = [spots[: one.n_required] for one, spots in zip(expected, own, strict=True)]
    ids = {one.id: at for at, one in enumerate(expected) if one.id}
    sequence = [spot for spots in own for spot in spots]
    left = [spot for spot, owner in enumerate(owners) if owner is None]
    return (
        all(_owner_fits(at, expected, calls, ids, order, own, first) for at in range(len(expected)))
        and (order == "any" or sequence == sorted(sequence))
        and not any(
            _exceeds(one, calls[spot], ids, first, calls) for one in expected for spot in left
        )
        and _may_be_left([calls[spot].name for spot in left], order, extra)
    )


def _owner_fits(at, expected, calls, ids, order, own, first) -> bool:
    one, spots = expected[at], own[at]
    if not spots:
        return True
    fits = all(_fits(one, calls[spot], ids, first, calls) for spot in spots)
    listed = order == "any" or all(ids[name] < at for name in (*one.after, *_refers(one)))
    waits = [*_refers(one), *(one.after if order == "any" else ())]
    return fits and listed and all(max(first[ids[w]], default=-1) < spots[0] for w in waits)


def _exceeds(one, call, ids, first, calls) -> bool:
    return bool(one.times) and one.times[1] is not None and _fits(one, call, ids, first, calls)


def _may_be_left(names, order, extra) -> bool:
    if extra == "free":
        return order != "exact" or not names
    return not names if extra == "forbid" else set(names) <= set(extra)


def _refers(one) -> list[str]:
    return [one.args["y"]["$ref"].split(".")[0]] if "y" in one.args else []


def _fits(one, call, ids, first, calls) -> bool:
    if call.args["x"] not in one.args["x"]["$one_of"]:
        return False
    return all(
        any(calls[spot].result == call.args.get("y") for spot in first[ids[name]])
        for name in _refers(one)
    )


letters = st.sampled_from("abc")
choices = st.lists(letters, min_size=1, max_size=3, unique=True)


@st.composite
def problems(draw):
    """Draw few expectations with every rule, and few calls."""
    n = draw(st.integers(1, 4))
    ids = [f"e{number}" for number in range(n)]
    expected = []
    for number in range(n):
        args = {"x": {"$one_of": draw(choices)}}
        earlier = ids[:number]
        if earlier and draw(st.integers(0, 3)) == 0:
            args["y"] = {"$ref": f"{draw(st.sampled_from(earlier))}.result"}
        after = draw(st.lists(st.sampled_from(earlier), max_size=2, unique=True)) if earlier else []
        times = draw(st.sampled_from([None, None, None, (1, 1), (1, 2), (2, None), (0, 1), (2, 2)]))
        expected.append(ExpectedCall("t", args, id=ids[number], after=tuple(after), times=times))
    order_of_list = draw(st.permutations(range(n)))
    calls = [
        ToolCall(
            "t", {"x": draw(letters), "y": draw(st.integers(0, 1))}, result=draw(st.integers(0, 1))
        )
        for _ in range(draw(st.integers(0, 5)))
    ]
    return [expected[at] for at in order_of_list], calls


@given(problems(), st.sampled_from(ORDERS), st.sampled_from(["free", "forbid", ("t",)]))
@settings(deadline=None, max_examples=100)
def test_assignment_is_found_exactly_when_one_exists(problem, order, extra):
    """The verdict equals that of trying every assignment, under all rules together."""
    expected, calls = problem
    found = match_calls(expected, calls, order=order, extra_calls=extra)
    assert not found.undecided
    assert found.matched == satisfiable(expected, calls, order, extra)


@given(problems(), st.sampled_from(ORDERS))
@settings(deadline=None, max_examples=100)
def test_no_call_satisfies_two_expectations(problem, order):
    """Calls are given away once, whatever the rules."""
    expected, calls = problem
    found = match_calls(expected, calls, order=order)
    used = [call for _, call in found.pairs]
    assert len(used) == len(set(used))


@given(st.lists(choices, min_size=1, max_size=5), st.lists(letters, max_size=6), st.randoms())
@settings(deadline=None, max_examples=100)
def test_any_order_ignores_the_order_of_calls(expected, made, random):
    """Swapping calls never changes the verdict, precision or recall where order is free."""
    shuffled = random.sample(made, len(made))
    one, other = (
        match_calls([wants(*some) for some in expected], called(*calls))
        for calls in (made, shuffled)
    )
    assert (one.matched, one.recall, one.precision) == (
        other.matched,
        other.recall,
        other.precision,
    )


@given(st.lists(choices, min_size=1, max_size=4), st.lists(letters, max_size=5))
@settings(deadline=None, max_examples=100)
def test_unexpected_argument_never_helps(expected, made):
    """Adding an argument that nobody listed never turns a failure into a pass."""
    for allowed in (True, False):
        wanted = [wants(*some, extra_args_allowed=allowed) for some in expected]
        plain = match_calls(wanted, called(*made)).matched
        more = [ToolCall("t", {"x": letter, "z": 1}) for letter in made]
        assert match_calls(wanted, more).matched <= plain


def test_perfect_assignment_is_not_missed_by_greed():
    """The specific expectation gets its call although the loose one could take it first."""
    found = match_calls([wants("a", "b"), wants("a")], called("a", "b"))
    assert found.matched
    assert found.pairs == ((0, 1), (1, 0))


def test_value_equal_calls_stay_two_calls():
    """Two equal calls satisfy two equal expectations; one call does not."""
    twice = [wants("a"), wants("a")]
    assert match_calls(twice, called("a", "a")).matched
    assert not match_calls(twice, called("a")).matched


@pytest.mark.parametrize(
    ("times", "n_calls", "matched"),
    [
        (None, 1, True),
        (None, 3, True),
        ((1, 1), 2, False),
        ((2, 2), 2, True),
        ((2, 2), 1, False),
        ((2, 2), 3, False),
        ((1, None), 9, True),
        ((2, 3), 4, False),
        ((0, 1), 0, True),
        ((0, 1), 2, False),
        ((0, 0), 1, False),
    ],
)
@pytest.mark.parametrize("order", ORDERS[:2])
def test_times_bounds_the_calls_that_match(times, n_calls, matched, order):
    """``times`` counts the matching calls; without it further ones are extra calls."""
    found = match_calls([wants("a", times=times)], called(*"a" * n_calls), order=order)
    assert found.matched is matched


def test_times_leaves_calls_to_other_expectations():
    """A call that another expectation takes does not count against the limit."""
    expected = [wants("a", "b", times=(1, 1)), wants("a")]
    assert match_calls(expected, called("a", "b")).matched
    too_many = match_calls(expected, called("a", "b", "b"))
    assert [(one.expected) for one in too_many.left_over] == [0]


@pytest.mark.parametrize(
    ("order", "made", "matched"),
    [
        ("any", "ba", True),
        ("in_order", "ba", False),
        ("in_order", "cacb", True),
        ("exact", "ab", True),
        ("exact", "acb", False),
        ("exact", "ba", False),
    ],
)
def test_order_modes(order, made, matched):
    """``in_order`` asks for a subsequence, ``exact`` for nothing else besides."""
    assert match_calls([wants("a"), wants("b")], called(*made), order=order).matched is matched


def test_exact_with_allowed_tools_skips_their_calls():
    """With ``extra_calls: {allow}`` those tools may be called in between."""
    calls = [*called("a"), ToolCall("search"), *called("b")]
    expected = [wants("a"), wants("b")]
    assert match_calls(expected, calls, order="exact", extra_calls=["search"]).matched
    assert not match_calls(expected, calls, order="exact", extra_calls=["find"]).matched


def test_after_needs_a_later_call():
    """A call counts only after those that it waits for; a late second one does."""
    expected = [wants("b", after=("w",)), wants("a", id="w")]
    assert not match_calls(expected, called("b", "a")).matched
    assert match_calls(expected, called("b", "a", "b")).matched
    miss = match_calls(expected, called("b", "a")).misses[0]
    assert str(miss.differences[0]) == "order: expected a call after w, got it as call 1"


def test_after_is_decided_together_with_the_assignment():
    """The call that is waited for is chosen so that everything fits."""
    expected = [wants("a", "c", id="w"), wants("b", after=("w",)), wants("c")]
    assert match_calls(expected, called("c", "b", "c")).matched
    assert not match_calls(expected, called("b", "c", "c")).matched


@pytest.mark.parametrize("after", [("w",), ("nobody",)])
def test_after_itself_or_nobody_never_matches(after):
    """A circle or an unknown id fails closed."""
    assert not match_calls([wants("a", id="w", after=after)], called("a", "a")).matched


def searched(flight: str) -> ToolCall:
    """Make a search that found one flight, as the JSON text that tools answer with."""
    return ToolCall("search", result=f'{{"flights": [{{"id": "{flight}"}}]}}')


BOOK_FOUND = [
    ExpectedCall("search", id="s"),
    ExpectedCall("book", {"flight_id": {"$ref": "s.result.flights[0].id"}}),
]


@pytest.mark.parametrize("order", ORDERS[:2])
def test_ref_reads_an_earlier_call(order):
    """The value must come from a call made before, and be equal."""
    book = ToolCall("book", {"flight_id": "AA1"})
    assert match_calls(BOOK_FOUND, [searched("AA1"), book], order=order).matched
    assert not match_calls(BOOK_FOUND, [book, searched("AA1")], order=order).matched
    wrong = match_calls(BOOK_FOUND, [searched("AA2"), book], order=order)
    assert str(wrong.misses[0].differences[0]) == (
        "flight_id: expected the value of s.result.flights.0.id, 'AA2', got 'AA1'"
    )


@pytest.mark.parametrize("order", ORDERS[:2])
def test_ref_finds_the_right_one_of_several_calls(order):
    """Which search is meant is searched for, not taken to be the first."""
    calls = [searched("AA1"), searched("AA2"), ToolCall("book", {"flight_id": "AA2"})]
    found = match_calls(BOOK_FOUND, calls, order=order)
    assert found.matched
    assert found.pairs == ((0, 1), (1, 2))


def test_ref_to_a_missing_call_never_matches():
    """Nothing to compare with is no match, also under ``$not``."""
    calls = [ToolCall("book", {"flight_id": "AA1"})]
    for pattern in ({"$ref": "s.result.id"}, {"$not": {"$ref": "s.result.id"}}):
        expected = [ExpectedCall("search", id="s"), ExpectedCall("book", {"flight_id": pattern})]
        assert len(match_calls(expected, calls).misses) == 2


@pytest.mark.parametrize(
    ("wanted", "made", "matched"),
    [
        (None, "ok", True),
        (None, "unknown", True),
        (None, "error", False),
        (None, "denied", False),
        (None, "timeout", False),
        ("ok", "unknown", False),
        ("error", "error", True),
        ("error", "ok", False),
        ("any", "timeout", True),
    ],
)
def test_status_of_a_call(wanted, made, matched):
    """A known failure satisfies nothing unless the expectation says so."""
    found = match_calls([ExpectedCall("t", status=wanted)], [ToolCall("t", status=made)])
    assert found.matched is matched


def test_unreadable_arguments_satisfy_nothing_that_asks_for_arguments():
    """A malformed call fits only an expectation of a failed call without arguments."""
    call = ToolCall("t", None, "error", raw_args='{"x": "a')
    assert not match_calls([wants("a", status="error")], [call]).matched
    assert match_calls([ExpectedCall("t", status="error")], [call]).matched
    assert not match_calls(
        [ExpectedCall("t", status="any", extra_args_allowed=False)], [call]
    ).matched


def test_turn_narrows_to_the_calls_of_one_turn():
    """A call of another turn does not count."""
    calls = [ToolCall("t", turn=1)]
    assert match_calls([ExpectedCall("t", turn=1)], calls).matched
    miss = match_calls([ExpectedCall("t", turn=0)], calls).misses[0]
    assert str(miss.differences[0]) == "turn: expected 1, got 2"


def test_extra_arguments_are_free_unless_forbidden():
    """Unlisted arguments are ignored by default and a difference when forbidden."""
    calls = [ToolCall("t", {"x": "a", "note": "hi"})]
    assert match_calls([wants("a")], calls).matched
    miss = match_calls([wants("a", extra_args_allowed=False)], calls).misses[0]
    assert [str(one) for one in miss.differences] == ["note: expected nothing, got 'hi'"]


def test_nearest_call_is_the_one_with_the_fewest_differences():
    """A miss names the closest call of its tool, and whether the tool was called at all."""
    calls = [
        ToolCall("book", {"flight_id": "ZZ1", "date": "Monday"}),
        ToolCall("book", {"flight_id": "AA999", "date": "Friday"}),
    ]
    expected = [ExpectedCall("book", {"flight_id": "AA123", "date": "Friday"}), ExpectedCall("pay")]
    book, pay = match_calls(expected, calls).misses
    assert (book.nearest, book.tool_called) == (1, True)
    assert [str(one) for one in book.differences] == ["flight_id: expected 'AA123', got 'AA999'"]
    assert (pay.nearest, pay.tool_called) == (None, False)


def test_rates_of_an_assignment():
    """Precision is over calls made, recall over calls required, F1 their harmonic mean."""
    found = match_calls([wants("a"), wants("b")], called("a", "c", "c", "c"))
    assert (found.precision, found.recall) == (0.25, 0.5)
    assert found.f1 == pytest.approx(1 / 3)
    nothing = match_calls([], [])
    assert (nothing.matched, nothing.f1) == (True, 1.0)


@pytest.mark.parametrize("order", ORDERS)
def test_large_trial_is_matched_fast(order):
    """200 calls against 50 expectations, all alike, stay well under a second."""
    calls = called(*(["a"] * 200))
    start = time.process_time()
    found = match_calls([wants("a") for _ in range(50)], calls, order=order, extra_calls=["t"])
    assert found.matched
    assert time.process_time() - start < 1


def test_large_chain_is_matched_fast():
    """50 expectations in a chain of ``after`` over 200 calls are decided without backtracking."""
    expected = [wants("a", "b", id=f"e{n}", after=(f"e{n - 1}",) if n else ()) for n in range(50)]
    start = time.process_time()
    assert match_calls(expected, called(*("ab" * 100))).matched
    assert time.process_time() - start < 3


def test_adversarial_search_ends_undecided_and_never_matches():
    """What the cap on steps leaves open is named, and is no match."""
    # The list fits only if every search is pinned right, and no permutation is right.
    n = 9
    expected = [ExpectedCall("s", id=f"s{k}") for k in range(n)]
    expected.append(ExpectedCall("b", {"v": [{"$ref": f"s{k}.result"} for k in range(n)]}))
    calls = [ToolCall("s", result=k) for k in range(n)] + [ToolCall("b", {"v": [0] * n})]
    start = time.process_time()
    found = match_calls(expected, calls)
    assert not found.matched
    assert time.process_time() - start < 20
    assert "steps" in found.undecided
