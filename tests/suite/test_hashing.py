"""Hashes change with everything that can change a result, and with nothing else."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.suite import Suite, parse_suite, suite_from_data, with_versions

JOURNEY: dict[str, Any] = {
    "suite": "s",
    "agent": "a:b",
    "prices": {"m": {"input": 1.5, "output": 2}},
    "scenarios": [
        {
            "id": "one",
            "tags": ["x"],
            "clock": {"at": "2026-01-05T09:00:00Z", "frozen": True},
            "env": {"A": "1"},
            "deadline": 20,
            "canaries": [{"name": "c", "value": "canary@example.test", "allow": ["log"]}],
            "turns": [
                {
                    "user": "hello",
                    "model": {"m": [{"tool": "t", "args": {"k": [1, {"z": "v"}]}}, {"text": "d"}]},
                    "expect": {
                        "tools": [{"t": {"k": [1, {"z": "v"}]}}],
                        "reply": {"contains": ["d"]},
                    },
                },
                {"advance": 60},
            ],
            "forbid": {"tools": [{"u": {"q": True}}]},
            "budget": {"usd": 0.5},
        },
        {"id": "two", "input": "bye", "expect": {"replies": 2}, "min_pass_rate": 0.5},
    ],
}


def shuffled(data: Any, rng: random.Random) -> Any:
    """Give the same data with its keys in another order."""
    if isinstance(data, dict):
        items = [(key, shuffled(value, rng)) for key, value in data.items()]
        rng.shuffle(items)
        return dict(items)
    return [shuffled(item, rng) for item in data] if isinstance(data, list) else data


def places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Find the path of each single value."""
    if isinstance(data, dict | list):
        steps = data.items() if isinstance(data, dict) else enumerate(data)
        for step, value in steps:
            yield from places(value, (*path, step))
    else:
        yield path


def changed(value: Any) -> Any:
    """Give another valid value of the same kind."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value / 2 if isinstance(value, float) else value + 1
    swaps = {"2026-01-05T09:00:00Z": "2026-01-05T09:00:01Z", "log": "http", "a:b": "a:c"}
    return swaps.get(value, value + "x")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=2), inner, max_size=3)
    ),
    max_leaves=5,
)
PLACES = list(places(JOURNEY))


@settings(deadline=None, max_examples=50)
@given(seed=st.integers(0, 2**32), indent=st.integers(1, 4))
def test_hash_ignores_order_layout_and_comments(
    tmp_path_factory: Any, seed: int, indent: int
) -> None:
    """Key order, layout, comments and the file's place leave all hashes as they are."""
    rng = random.Random(seed)
    text = json.dumps(shuffled(JOURNEY, rng), indent=indent)
    path = tmp_path_factory.mktemp("s") / f"{seed}.yaml"
    path.write_text("# a comment\n" + text.replace("\n", f"  # {seed}\n"))
    assert hashes(parse_suite(path)) == hashes(suite_from_data(JOURNEY))


def hashes(suite: Suite) -> dict[str, str]:
    """Collect a suite's hash and those of its scenarios."""
    return {"": suite.hash, **{scenario.id: scenario.hash for scenario in suite}}


@pytest.mark.parametrize("path", PLACES, ids=lambda path: ".".join(map(str, path)))
def test_hash_changes_with_any_value(path: tuple[Any, ...]) -> None:
    """Each single value matters, for the suite and for its own scenario only."""
    data = copy.deepcopy(JOURNEY)
    holder = data
    for step in path[:-1]:
        holder = holder[step]
    holder[path[-1]] = changed(holder[path[-1]])
    before, after = suite_from_data(JOURNEY), suite_from_data(data)
    assert before.hash != after.hash
    if path[0] == "scenarios":
        moved = [old.hash != new.hash for old, new in zip(before, after, strict=True)]
        assert moved == [index == path[1] for index in range(2)]


@settings(deadline=None, max_examples=60)
@given(first=JSON, second=JSON)
def test_hash_is_equal_exactly_for_equal_arguments(first: Any, second: Any) -> None:
    """Arguments that differ as JSON, ``1`` and ``true`` too, give different hashes."""

    def of(value: Any) -> str:
        expect = {"tools": [{"t": {"a": value}}]}
        scenario = {"id": "a", "input": "x", "expect": expect}
        return suite_from_data({"suite": "s", "scenarios": [scenario]}).hash

    same = json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    assert (of(first) == of(second)) == same


def test_hash_ignores_order_of_scenarios_and_written_form() -> None:
    """Trials do not depend on each other, and short and long forms mean the same."""
    data = copy.deepcopy(JOURNEY)
    data["scenarios"].reverse()
    data["scenarios"][0] = {
        "id": "two",
        "turns": [{"user": "bye"}],
        "expect": {"replies": {"min": 2, "max": 2}},
        "min_pass_rate": 0.5,
        "deadline": "1m",
    }
    assert hashes(suite_from_data(data)) == hashes(suite_from_data(JOURNEY))


def test_hash_ignores_whether_a_key_is_a_default() -> None:
    """A key that moves into ``defaults`` and reaches the same scenarios changes nothing."""
    one = {"id": "a", "input": "x", "expect": {"replies": 1}}
    moved = {"suite": "s", "defaults": {"deadline": 5}, "scenarios": [one]}
    written = {"suite": "s", "scenarios": [one | {"deadline": 5}]}
    assert hashes(suite_from_data(moved)) == hashes(suite_from_data(written))


def fixture_suite(folder: Path, content: bytes, name: str = "f.sql") -> Suite:
    """Write and load a suite with one fixture."""
    folder.mkdir()
    (folder / name).write_bytes(content)
    (folder / "s.yaml").write_text(
        "suite: s\ndefaults: {input: x, expect: {replies: 1}}\nscenarios:\n  - id: b\n"
        f"  - {{id: a, fixtures: {{database: {{a.db: {name}}}}}}}\n"
    )
    return parse_suite(folder / "s.yaml")


def test_hash_covers_the_bytes_of_fixtures(tmp_path: Path) -> None:
    """A changed fixture changes the hash of its scenario and its suite; its place does not."""
    first = fixture_suite(tmp_path / "1", b"select 1")
    moved = fixture_suite(tmp_path / "2", b"select 1", name="g.sql")
    changed = fixture_suite(tmp_path / "3", b"select 2")
    assert hashes(first) == hashes(moved)
    assert first.hash != changed.hash
    assert first.scenario("a").hash != changed.scenario("a").hash
    assert first.scenario("b").hash == changed.scenario("b").hash


def test_versions_are_folded_in() -> None:
    """Another version of a grader is another hash; the order of names is none."""
    assert with_versions("h", {"a": "1", "b": "2"}) == with_versions("h", {"b": "2", "a": "1"})
    assert with_versions("h", {"a": "1"}) != with_versions("h", {"a": "2"})
    assert with_versions("h", {"a": "1"}) != with_versions("i", {"a": "1"})


def test_hash_stays_the_same_between_versions() -> None:
    """Baselines are found by hash: a change of this value invalidates all of them."""
    data = {"suite": "s", "scenarios": [{"id": "a", "input": "x", "expect": {"replies": 1}}]}
    assert (
        suite_from_data(data).scenario("a").hash
        == "8f076dcca0580d4fb27b8d65fa1e0ccc6033e71625b826e0fad9e8ac9e6b5907"
    )
