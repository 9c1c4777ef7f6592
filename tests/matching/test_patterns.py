"""Patterns: JSON-typed comparison, every matcher, what is refused when compiled."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.errors import UsageError
from evalkit.matching import (
    MATCHERS,
    check_arguments,
    check_pattern,
    compile_arguments,
    compile_pattern,
    equal,
    explain,
    json_type,
    match,
    references,
    show,
    write_pattern,
)

keys = st.text(max_size=4) | st.sampled_from(["$ref", "$$ref", "$any", "$", "a"])
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(["\ud800", "\0", "1", "true", "null"])
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        ("1", 1, False),
        (None, False, False),
        (None, "", False),
        ([1, [2]], [1.0, [2]], True),
        ([1, [True]], [1, [1]], False),
        ({"a": {"b": 1}}, {"a": {"b": True}}, False),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ([1, 2], [2, 1], False),
        ([], {}, False),
        (10**17, 10**17 + 1, False),
        (10**17 + 1, float(10**17), False),
        (10**17, float(10**17), True),
        (2**53 + 1, float(2**53), False),
        (10**400, math.inf, False),
        (math.nan, math.nan, True),
        (math.nan, 0.0, False),
        (-0.0, 0, True),
        ((1, 2), [1, 2], True),
        ("é", "e\u0301", False),
    ],
)
def test_comparison_is_json_typed(expected, actual, same):
    """Types of JSON are kept apart and numbers keep all their digits, at any depth."""
    assert equal(expected, actual) is same
    assert equal(actual, expected) is same
    assert match(write_pattern(expected), actual) is same
    assert match({"deep": [expected]}, {"deep": [actual]}) is same


@given(json_values)
@settings(deadline=None, max_examples=100)
def test_pattern_matches_what_it_was_written_from(value):
    """The written pattern is valid, matches its value, and so explains nothing."""
    pattern = write_pattern(value)
    assert check_pattern(pattern) == []
    assert match(pattern, value)
    assert explain(pattern, value) == []


@given(json_values, json_values)
@settings(deadline=None, max_examples=100)
def test_written_pattern_matches_nothing_else(value, other):
    """A written pattern is exact: it matches another value only if that is equal."""
    assert match(write_pattern(value), other) == equal(value, other)


@given(st.sampled_from([True, False, 0, 1, "0", "1", "true", "false", None, "null"]), st.data())
@settings(deadline=None, max_examples=100)
def test_types_are_never_confused(value, data):
    """A boolean, a number, a text and null never match each other, whatever wraps them."""
    other = data.draw(st.sampled_from([True, False, 0, 1, "0", "1", "true", "false", None, "null"]))
    wrap = data.draw(
        st.sampled_from(
            [
                lambda v: v,
                lambda v: {"$one_of": [v]},
                lambda v: {"$not": {"$not": v}},
            ]
        )
    )
    same = type(value) is type(other) and value == other
    assert match(wrap(value), other) is same


CASES = [
    ({"$any": True}, [None, 0, "", {}], []),
    ({"$regex": "/posting/17$"}, ["x/posting/17"], ["/posting/170", 17, None, ["/posting/17"]]),
    ({"$contains": "Den"}, ["in Denver", ["Den"]], ["den", ["Denver"], {"Den": 1}, 5, None]),
    ({"$contains": {"id": 1}}, [{"id": 1, "x": 2}, [{"id": 1}]], [{"id": True}, "id", [{"id": 2}]]),
    ({"$contains": {"$gt": 5}}, [[1, 6]], [[1], 6, {"a": 6}, ["6"]]),
    ({"$contains": ["a", "b"]}, ["b a", ["b", "a", "c"]], ["a", ["a"], [["a", "b"]]]),
    ({"$contains": [["a", "b"]]}, [[["a", "b"]]], [["a", "b"]]),
    ({"$one_of": ["a", {"$gt": 5}]}, ["a", 6], ["b", 5, None]),
    ({"$approx": 10.0}, [10, 10.000001], [10.1, True, "10", math.nan, math.inf]),
    ({"$approx": {"value": 0.3, "abs": 0.1}}, [0.4, 0.2, 0.3], [0.41, 0.19]),
    ({"$approx": {"value": 100, "rel": 0.05}}, [95, 105], [94.9, 105.1]),
    ({"$approx": 0.3}, [0.1 + 0.2], []),
    ({"$approx": {"value": 10**20, "abs": 0}}, [10**20], [10**20 + 1]),
    ({"$gt": 1}, [1.5, 10**400], [1, True, "2", None, [2], math.nan]),
    ({"$gte": 1}, [1, 1.0], [0.5, True]),
    ({"$lt": 1}, [0, -(10**400)], [1, False, "0"]),
    ({"$lte": 1}, [1, 0], [1.5, False]),
    ({"$gt": 1, "$lt": 3}, [2], [1, 3]),
    ({"$len": 2}, ["ab", [1, 2], {"a": 1, "b": 2}, "\U0001f600a"], ["a", 2, None, True]),
    ({"$len": {"$gt": 2}}, ["abc"], ["ab"]),
    ({"$set": [1, 2]}, [[2, 1, 1], [1, 2]], [[1], [1, 2, 3], "12", [True, 2]]),
    ({"$set": []}, [[]], [[1]]),
    ({"$multiset": [1, 1, 2]}, [[1, 2, 1]], [[1, 2, 2], [1, 2], [1, 1, 2, 2]]),
    ({"$multiset": [{"$gt": 0}, 1]}, [[1, 5], [5, 1]], [[5, 6], [0, 1]]),
    ({"$type": "number"}, [1, 1.5, math.inf], [True, "1"]),
    ({"$type": "integer"}, [1, 1.0, 10**30], [1.5, True]),
    ({"$type": ["string", "null"]}, ["", None], [0, []]),
    ({"$type": "boolean"}, [False], [0]),
    ({"$type": "array"}, [[]], [{}, ""]),
    ({"$type": "object"}, [{}], [[]]),
    ({"$schema": {"type": "object", "required": ["a"]}}, [{"a": 1}], [{}, []]),
    ({"$schema": {"type": "integer"}}, [1, 1.0], [True, "1"]),
    (
        {"$schema": {"$ref": "#/$defs/x", "$defs": {"x": {"enum": [1]}}}},
        [1],
        [2, True],
    ),
    ({"$casefold": "Straße"}, ["STRASSE", "straße"], ["strase", None]),
    ({"$date": "2026-01-05"}, ["5 January 2026", "Jan 5th, 2026", "2026/1/5", "20260105"], []),
    ({"$date": "2026-01-05"}, ["2026-01-05T23:00:00-08:00"], ["2026-01-06", "5", 20260105, None]),
    ({"$date": "2026-01-05"}, [], ["01/05/2026", "January 5", "2026-02-30", "05.01.2026"]),
    (
        {"$date": "2026-01-05T09:00:00Z"},
        ["2026-01-05 10:00+01:00", "Mon, 05 Jan 2026 09:00:00 GMT"],
        ["2026-01-05", "2026-01-05T09:00:00", "2026-01-05T09:00:01Z"],
    ),
    ({"$date": "2026-01-05T09:00"}, ["2026-01-05 09:00:00"], ["2026-01-05T09:00:00Z"]),
    ({"$not": "a"}, ["b", None], ["a"]),
    ({"a": {"$optional": "x"}}, [{}, {"a": "x"}], [{"a": "y"}, {"a": None}]),
    ({"a": {"$optional": {"$not": {"$any": True}}}}, [{}], [{"a": None}]),
    ({"$$ref": 1}, [{"$ref": 1}], [{"$$ref": 1}]),
    ({"a": {"b": {"$gt": 1}}}, [{"a": {"b": 2}}], [{"a": {"b": 2, "c": 1}}, {"a": 2}, {}]),
]


@pytest.mark.parametrize(("pattern", "good", "bad"), CASES, ids=[str(case[0]) for case in CASES])
def test_matcher_accepts_and_refuses(pattern, good, bad):
    """Each matcher takes what it should and fails what it should, and the explanation agrees."""
    assert check_pattern(pattern) == []
    for value in good:
        assert match(pattern, value), value
        assert explain(pattern, value) == []
    for value in bad:
        assert not match(pattern, value), value
        assert explain(pattern, value)


def test_every_matcher_has_a_case():
    """No matcher goes untested."""
    used = {key for pattern, *_ in CASES for key in str(pattern).replace("'", " ").split()}
    assert MATCHERS.keys() <= used


@given(json_values, st.sampled_from([case[0] for case in CASES]))
@settings(deadline=None, max_examples=100)
def test_explanation_is_empty_exactly_when_it_matches(value, pattern):
    """Whatever the value, matching never raises and agrees with the explanation."""
    assert match(pattern, value) == (explain(pattern, value) == [])


BAD_PATTERNS = [
    ({"$regx": "a"}, ("$regx",), "did you mean $regex?"),
    ({"$exists": True}, ("$exists",), "these exist: "),
    ({"$gt": 1, "x": 2}, ("x",), "plain key beside a matcher"),
    ({"$regex": "("}, ("$regex",), "no regular expression"),
    ({"$regex": 5}, ("$regex",), "as text"),
    ({"$gt": "5"}, ("$gt",), "takes a number"),
    ({"$lt": True}, ("$lt",), "takes a number"),
    ({"$gte": math.nan}, ("$gte",), "takes a number"),
    ({"$approx": {"val": 1}}, ("$approx",), "{value, abs, rel}"),
    ({"$approx": {"value": 1, "abs": -1}}, ("$approx",), "not negative"),
    ({"$approx": math.inf}, ("$approx",), "finite"),
    ({"$one_of": "ab"}, ("$one_of",), "takes a list"),
    ({"$one_of": []}, ("$one_of",), "takes a list"),
    ({"$set": {"a": 1}}, ("$set",), "takes a list"),
    ({"$multiset": 1}, ("$multiset",), "takes a list"),
    ({"$any": ["a", "b"]}, ("$any",), "$one_of"),
    ({"$contains": ""}, ("$contains",), "something to look for"),
    ({"$len": -1}, ("$len",), "whole number"),
    ({"$len": True}, ("$len",), "whole number"),
    ({"$type": "int"}, ("$type",), "these are: string"),
    ({"$schema": {"type": "int"}}, ("$schema",), "no valid JSON Schema"),
    ({"$schema": {"$ref": "https://x.example.test/s"}}, ("$schema",), "leads nowhere"),
    ({"$schema": {"$ref": "#/$defs/none"}}, ("$schema",), "leads nowhere"),
    ({"$schema": {"pattern": "("}}, ("$schema",), "no valid JSON Schema"),
    ({"$schema": {"$schema": "https://x.example.test/d"}}, ("$schema",), "not known"),
    ({"$schema": "string"}, ("$schema",), "takes a JSON Schema"),
    ({"$casefold": ["a"]}, ("$casefold",), "takes a text"),
    ({"$date": "01/05/2026"}, ("$date",), "reads one way"),
    ({"$date": 2026}, ("$date",), "reads one way"),
    ({"$ref": "w.flight"}, ("$ref",), "<call id>.result.<path>"),
    ({"$ref": {"id": "w"}}, ("$ref",), "<call id>.result.<path>"),
    ({"a": [{"$optional": 1}]}, ("a", 0), "value of an argument"),
    ({"a": [{"$one_of": [{"$gt": None}]}]}, ("a", 0, "$one_of", 0, "$gt"), "takes a number"),
    ({1: "a"}, ("1",), "is no text"),
]


@pytest.mark.parametrize(
    ("pattern", "path", "message"), BAD_PATTERNS, ids=[str(case[0]) for case in BAD_PATTERNS]
)
def test_wrong_pattern_is_refused_when_compiled(pattern, path, message):
    """What is wrong is told with its place before anything is matched."""
    ((found_path, found_message),) = check_pattern(pattern)
    assert found_path == path
    assert message in found_message
    with pytest.raises(UsageError, match=r".+: .+"):
        compile_pattern(pattern)


def test_all_problems_are_listed_at_once():
    """Two mistakes give two problems."""
    assert len(check_pattern({"a": {"$gt": "x"}, "b": {"$regex": "("}})) == 2


def test_pattern_that_nests_too_deep_is_refused():
    """Depth is limited with a message, not by the interpreter."""
    deep: object = 1
    for _ in range(5_000):
        deep = [deep]
    assert any("deeper" in message for _, message in check_pattern(deep))


def test_argument_names_may_be_escaped_but_not_matchers():
    """``$$ref`` is the argument ``$ref``; a matcher cannot replace a name."""
    assert list(compile_arguments({"$$ref": 1})) == ["$ref"]
    assert check_arguments({"$any": True})[0][0] == ("$any",)
    with pytest.raises(UsageError, match="argument's name"):
        compile_arguments({"$any": True})


def test_hostile_values_never_raise():
    """Depth and size that an agent chose are compared and shown without trouble."""
    deep: object = 1
    other: object = 1
    for _ in range(20_000):
        deep, other = [deep], {"a": [other]}
    assert not match([[1]], deep)
    assert equal(deep, deep)
    assert not match({"$schema": {"type": "string"}}, deep)
    assert explain(1, deep)[0].actual == "<array too large to show>"
    assert show(10**6_000) == "<integer too large to show>"
    assert len(show("x" * 10**6)) <= 80
    assert show("\ud800").encode()


REFS = {
    "w": {"args": {"city": "Denver"}, "result": {"flights": [{"id": "AA1", "a.b": 5}], "n": 1}},
    "t": {"args": {}, "result": '{"id": 7}'},
    "many": [{"result": 1}, {"result": 2}],
}


@pytest.mark.parametrize(
    ("reference", "value", "matched"),
    [
        ("w.result.flights.0.id", "AA1", True),
        ("w.result.flights[0].id", "AA1", True),
        ({"call": "w", "path": "flights[0].id"}, "AA1", True),
        ({"call": "w", "path": ["flights", 0, "a.b"]}, 5, True),
        ("w.args.city", "Denver", True),
        ("w.result.n", True, False),
        ("w.result.n", 1.0, True),
        ("t.result.id", 7, True),
        ("t.result", '{"id": 7}', True),
        ("many.result", 2, True),
        ("many.result", 3, False),
        ("w.result.flights.9.id", None, False),
        ("w.result.none", None, False),
        ("nobody.result", None, False),
    ],
)
def test_ref_finds_the_value(reference, value, matched):
    """Both spellings walk objects, lists and JSON text; what is not there matches nothing."""
    pattern = {"$ref": reference}
    assert match(pattern, value, refs=REFS) is matched
    assert (explain(pattern, value, refs=REFS) == []) is matched


def test_unresolved_ref_fails_closed():
    """A reference to nothing is never true, also negated, unless another choice holds."""
    nowhere = {"$ref": "nobody.result"}
    assert not match({"$not": nowhere}, 1, refs={})
    assert "there is no value" in str(explain({"$not": nowhere}, 1, refs={})[0])
    assert match({"$one_of": [nowhere, 1]}, 1)
    assert not match({"$one_of": [nowhere, 1]}, 2)


def test_references_are_listed_but_not_those_of_a_schema():
    """The loader learns which calls a pattern needs; a JSON Schema's own ``$ref`` is none."""
    pattern = {
        "a": {"$not": {"$ref": {"call": "w"}}},
        "b": {"$schema": {"$ref": "#/$defs/x", "$defs": {"x": {}}}},
    }
    assert references(pattern) == [(("a", "$not", "$ref"), "w")]


def test_explanation_reads_expected_then_actual():
    """Differences name the path, what was expected and what was there, in that direction."""
    pattern = {"flight": {"id": "AA123", "legs": [{"$gt": 2}]}, "date": "Friday"}
    value = {"flight": {"id": "AA999", "legs": [1]}, "note": "x"}
    assert [str(one) for one in explain(pattern, value)] == [
        "flight.id: expected 'AA123', got 'AA999'",
        "flight.legs[0]: expected a number > 2, got 1",
        "date: expected 'Friday', got nothing",
        "note: expected nothing, got 'x'",
    ]


@pytest.mark.parametrize(
    ("value", "name"), [(True, "boolean"), (1.0, "integer"), ((), "array"), (b"", "bytes")]
)
def test_json_type_names(value, name):
    """JSON's names, and Python's where JSON has none."""
    assert json_type(value) == name


def test_jsonschema_is_imported_only_when_needed():
    """Matching without ``$schema`` does not pay for the library."""
    code = (
        "import sys; from evalkit.matching import match; match({'$gt': 1}, 2);"
        "sys.exit('jsonschema' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
