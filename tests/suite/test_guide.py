"""The guide to the suite file is true: its examples load, and it names every key."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from evalkit.suite import Suite, suite_from_data, suite_json_schema
from evalkit.suite.fields import SuiteModel
from evalkit.suite.yaml_reader import parse_yaml

GUIDE = (Path(__file__).parents[2] / "GUIDE.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```yaml\n(.*?)```", GUIDE, re.DOTALL)


def as_suite(block: str) -> Any:
    """Read a block: a whole suite, or some keys of a scenario."""
    data = parse_yaml(block.encode(), where="GUIDE.md").data
    if "suite" in data:
        return data
    scenario = {"id": "block", "expect": {"replies": 1}, **data}
    if "turns" not in data:
        scenario["input"] = "Hi"
    return {"suite": "guide", "scenarios": [scenario]}


def fixture_paths(data: Any) -> Iterator[str]:
    """Find the fixture files that an example names."""
    if isinstance(data, dict):
        for value in data.values():
            yield from fixture_paths(value)
    elif isinstance(data, list):
        for value in data:
            yield from fixture_paths(value)
    elif isinstance(data, str) and data.startswith("fixtures/"):
        yield data


@pytest.mark.parametrize("block", BLOCKS)
def test_example_of_the_guide_loads(tmp_path: Path, block: str) -> None:
    """Each example loads, and the editors' schema agrees with it."""
    data = as_suite(block)
    for name in fixture_paths(data):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert len(suite_from_data(data, folder=tmp_path))
    jsonschema.validate(data, suite_json_schema(), jsonschema.Draft202012Validator)


def models(base: type[SuiteModel]) -> Iterator[type[SuiteModel]]:
    """Walk the models below one."""
    for model in base.__subclasses__():
        yield model
        yield from models(model)


def test_guide_names_every_key() -> None:
    """A key of the format that the guide does not mention is a gap in the guide."""
    assert Suite in set(models(SuiteModel))
    words = set(re.findall(r"[A-Za-z_]\w*", " ".join(re.findall(r"`([^`\n]+)`", GUIDE))))
    keys = {
        (model.__name__, key)
        for model in models(SuiteModel)
        if model.__module__.startswith("evalkit.")
        for key in model.written_keys()
    }
    missing = {(name, key) for name, key in keys if key not in words}
    assert missing - {("ModelScript", "scripts")} == set()
