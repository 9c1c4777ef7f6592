"""Arguments by their look, and the values that they are changed to."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.mutation.values import changed_value, look_of

TABLE: dict[str, tuple[str, Any, str, Any]] = {
    "flight": ("flight", "AA123", "id", "AA124"),
    "last 9": ("x", "AA199", "id", "AA190"),
    "uuid": ("x", "3f2504e0-4f89", "id", "3f2504e0-4f80"),
    "digits": ("x", "40017", "id", "40018"),
    "url": ("url", "https://x.test/posting/17", "id", "https://x.test/posting/18"),
    "named id": ("user_id", "alice", "id", "alica"),
    "ends in a": ("user_id", "anna", "id", "annb"),
    "camel": ("bookingId", "zz", "id", "za"),
    "iso": ("date", "2026-02-28", "date", "2026-03-01"),
    "iso time": ("at", "2026-12-31T09:00:00Z", "date", "2027-01-01T09:00:00Z"),
    "no such day": ("date", "2026-02-31", "date", "2026-02-32"),
    "weekday": ("day", "Friday", "date", "Saturday"),
    "next sunday": ("day", "next Sunday", "date", "next Monday"),
    "lower": ("day", "friday", "date", "saturday"),
    "upper": ("day", "FRIDAY", "date", "SATURDAY"),
    "relative": ("day", "tomorrow", "date", "yesterday"),
    "month": ("day", "December 24", "date", "January 24"),
    "slashes": ("day", "24/12/2026", "date", "24/12/2027"),
    "clock": ("at", "12:30", "date", "12:31"),
    "whole": ("n", 2, "number", 3),
    "real": ("price", 1.5, "number", 2.5),
    "yes": ("direct", True, "boolean", False),
    "no": ("direct", False, "boolean", True),
    "city": ("city", "Denver", "text", "some other city"),
    "named": ("search_term", "shoes", "text", "some other search term"),
    "empty": ("note", "", "text", "some other note"),
    "sentence": (
        "note",
        "See you on Monday at the station, if the weather holds.",
        "text",
        "some other note",
    ),
    "list": ("tags", ["AA1", "b"], "nested", ["AA2", "b"]),
    "object": ("who", {"name": None, "age": 40}, "nested", {"name": None, "age": 41}),
    "deep": ("who", {"a": [{"b": True}]}, "nested", {"a": [{"b": False}]}),
    "nothing inside": ("who", [None, None], "nested", [None]),
}


@pytest.mark.parametrize(("name", "value", "look", "new"), TABLE.values(), ids=TABLE)
def test_argument_is_changed_by_its_look(name: str, value: Any, look: str, new: Any) -> None:
    """Each look has its own change, which keeps the look."""
    assert look_of(name, value) == look
    assert changed_value(name, value) == new


@pytest.mark.parametrize("value", [None, [], {}])
def test_what_looks_like_nothing_is_left_alone(value: Any) -> None:
    """Null and empty containers have no other value that looks alike."""
    assert look_of("x", value) == ""


def test_a_text_of_an_enum_becomes_another_one_of_it() -> None:
    """Where a tool declares what an argument may be, the mutant stays within."""
    schema = {"enum": ["economy", "business", "first"]}
    assert changed_value("cabin", "economy", schema=schema) == "business"
    assert changed_value("cabin", "first", schema=schema) == "economy"
    assert changed_value("cabin", "sofa", schema=schema) == "some other cabin"
    assert changed_value("cabin", "economy", schema={"enum": ["economy"]}) == "some other cabin"


SCALARS = st.text(max_size=30) | st.integers() | st.booleans() | st.floats(-1e6, 1e6)
NESTED = st.recursive(SCALARS, lambda inner: st.lists(inner, min_size=1, max_size=3), max_leaves=5)


@given(name=st.text(max_size=8), value=NESTED)
def test_a_changed_value_differs(name: str, value: Any) -> None:
    """Whatever the value, the mutant's is another one."""
    if value not in (f"some other {name.replace('_', ' ')}",):
        assert changed_value(name, value) != value
