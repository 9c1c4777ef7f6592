"""The public surface: what `evalkit` exports, and how it documents it."""

from __future__ import annotations

import inspect
import pickle
import re

import pytest

import evalkit
from evalkit import errors


def test_every_public_name_exists() -> None:
    """`__all__` promises nothing that is not there."""
    assert [name for name in evalkit.__all__ if getattr(evalkit, name, None) is None] == []


def test_public_names_are_sorted_and_complete() -> None:
    """`__all__` is alphabetical, and `dir` shows all of it."""
    assert list(evalkit.__all__) == sorted(evalkit.__all__)
    assert set(evalkit.__all__) <= set(dir(evalkit))


def test_unknown_name_is_an_attribute_error() -> None:
    """A typing error at the top level is no import error."""
    with pytest.raises(AttributeError, match="no attribute 'run_suit'"):
        evalkit.run_suit  # noqa: B018 - the access is the test


@pytest.mark.parametrize(
    "name", [name for name in evalkit.__all__ if not inspect.ismodule(getattr(evalkit, name))]
)
def test_public_name_is_documented(name: str) -> None:
    """Every public function and class says what it does in its first line."""
    doc = inspect.getdoc(getattr(evalkit, name))
    assert doc
    assert doc.splitlines()[0].endswith(".")


def _classes() -> list[type]:
    return [
        value
        for value in vars(errors).values()
        if inspect.isclass(value) and issubclass(value, errors.EvalkitError)
    ]


def test_error_tree_is_as_drawn() -> None:
    """The tree in the docstring of `errors` names every class, and no other."""
    drawn = re.findall(r"^    [├└│─ ]*(\w+)", errors.__doc__ or "", flags=re.MULTILINE)
    assert set(drawn) == {cls.__name__ for cls in _classes()}


@pytest.mark.parametrize("cls", _classes(), ids=lambda cls: cls.__name__)
def test_errors_survive_pickling(cls: type[Exception]) -> None:
    """Errors cross process borders with their message."""
    made = {
        "SuiteError": lambda: errors.SuiteError([errors.Problem("s.yaml", 3, "suite", "is wrong")]),
        "MissingDependency": lambda: errors.MissingDependency("papermill", "report"),
    }.get(cls.__name__, lambda: cls("what, where, what to do"))()
    copy = pickle.loads(pickle.dumps(made))
    assert type(copy) is cls
    assert str(copy) == str(made) != ""
