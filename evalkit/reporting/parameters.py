"""Read, check and parse the parameters that a notebook declares.

A notebook declares its parameters in one code cell tagged ``parameters``, each
as ``name: type = default``. Types are ``str``, ``int``, ``float``, ``bool``,
``list[...]``, ``dict[str, ...]`` and ``... | None``. Everything is checked
here, before a kernel starts: papermill itself only warns about an unknown
name, hands ``false`` on as a text that counts as true, and ignores types.
"""

from __future__ import annotations

import ast
import difflib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from evalkit.errors import ReportError, UsageError

__all__ = ["Parameter", "check_parameters", "declared_parameters", "parse_assignments"]

_SCALARS: Final = {"str": (str,), "int": (int,), "float": (int, float), "bool": (bool,)}
_TRUTHS: Final = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
_NOTHING: Final = {"none", "null"}


class Parameter(NamedTuple):
    """One parameter that a notebook declares."""

    name: str
    type: str
    """As written, such as ``float`` or ``list[str] | None``."""
    default: Any


def declared_parameters(notebook: Path) -> dict[str, Parameter]:
    """Read what the ``parameters`` cell of a notebook declares.

    Parameters
    ----------
    notebook
        Path of an ``.ipynb`` file.

    Returns
    -------
    dict[str, Parameter]
        By name, in the order of declaration.

    Raises
    ------
    ReportError
        The file is no notebook, has no or several such cells, or a parameter
        has no type or a default that is no plain value.
    """
    source = _parameters_cell(notebook)
    try:
        body = ast.parse(source).body
    except SyntaxError as error:
        raise ReportError(f"{notebook}: the parameters cell is no Python: {error}") from error
    found = [_declaration(statement, notebook) for statement in body if not _is_comment(statement)]
    return {parameter.name: parameter for parameter in found}


def _parameters_cell(notebook: Path) -> str:
    """Return the source of the one cell tagged ``parameters``."""
    try:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        tagged = [cell for cell in cells if "parameters" in cell["metadata"].get("tags", ())]
        sources = ["".join(cell["source"]) for cell in tagged if cell["cell_type"] == "code"]
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise ReportError(f"{notebook} cannot be read as a notebook: {error}") from error
    if len(sources) != 1:
        raise ReportError(
            f"{notebook} has {len(sources)} code cells tagged 'parameters'; it needs exactly one"
        )
    return sources[0]


def _is_comment(statement: ast.stmt) -> bool:
    """Tell whether a statement is a lone string."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _declaration(statement: ast.stmt, notebook: Path) -> Parameter:
    """Read one ``name: type = default``."""
    if not (
        isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and statement.value is not None
    ):
        raise ReportError(
            f"{notebook}: in the parameters cell, {ast.unparse(statement)!r} must read "
            "'name: type = default'"
        )
    name, kind = statement.target.id, ast.unparse(statement.annotation)
    try:
        default = ast.literal_eval(statement.value)
        _mismatch(default, statement.annotation)
    except ValueError as error:
        raise ReportError(f"{notebook}: parameter {name!r}: {error}") from error
    return Parameter(name, kind, default)


def check_parameters(
    declared: Mapping[str, Parameter], given: Mapping[str, Any], *, notebook: str
) -> dict[str, Any]:
    """Check given parameters against the declared ones and make them plain.

    Parameters
    ----------
    declared
        From :func:`declared_parameters`.
    given
        Values by name; a path becomes a text, a NumPy scalar a plain number.
    notebook
        Its name, for messages.

    Returns
    -------
    dict[str, Any]
        All declared parameters: the given values, defaults for the rest.

    Raises
    ------
    UsageError
        A name is not declared, or a value is not of the declared type.
    """
    values = {name: parameter.default for name, parameter in declared.items()}
    for name, value in given.items():
        parameter = _known(name, declared, notebook)
        values[name] = _checked(parameter, _plain(value), notebook)
    return values


def _known(name: str, declared: Mapping[str, Parameter], notebook: str) -> Parameter:
    """Return the declared parameter of that name."""
    if name in declared:
        return declared[name]
    near = difflib.get_close_matches(name, declared, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    there = ", ".join(f"{p.name}: {p.type}" for p in declared.values()) or "none"
    raise UsageError(f"{notebook} has no parameter {name!r}.{hint} It has: {there}")


def _checked(parameter: Parameter, value: Any, notebook: str) -> Any:
    """Return the value if it is of the declared type."""
    problem = _mismatch(value, ast.parse(parameter.type, mode="eval").body)
    if problem:
        raise UsageError(f"{notebook}: parameter {parameter.name!r} {problem}")
    return value


def _plain(value: Any) -> Any:
    """Turn paths and NumPy scalars into what JSON can carry."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if type(value).__module__ == "numpy" and getattr(value, "ndim", 1) == 0:
        return value.item()
    return list(value) if isinstance(value, tuple) else value


def _mismatch(value: Any, annotation: ast.expr) -> str:
    """Say why a value is not of a type; nothing where it is."""
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        sides = [_mismatch(value, side) for side in (annotation.left, annotation.right)]
        return "" if "" in sides else _must_be(annotation, value)
    if isinstance(annotation, ast.Constant) and annotation.value is None:
        return "" if value is None else _must_be(annotation, value)
    if isinstance(annotation, ast.Name) and annotation.id in _SCALARS:
        fits = isinstance(value, _SCALARS[annotation.id])
        a_truth = isinstance(value, bool) and annotation.id != "bool"
        return "" if fits and not a_truth else _must_be(annotation, value)
    return _container_mismatch(value, annotation)


def _container_mismatch(value: Any, annotation: ast.expr) -> str:
    """Say why a value is no list or dictionary of a type."""
    match annotation:
        case ast.Subscript(value=ast.Name(id="list"), slice=inner):
            problems = [_mismatch(item, inner) for item in value] if _is(value, list) else ["no"]
        case ast.Subscript(value=ast.Name(id="dict"), slice=ast.Tuple(elts=[key, inner])):
            pairs = value.items() if _is(value, dict) else ()
            problems = [_mismatch(k, key) or _mismatch(v, inner) for k, v in pairs]
            problems += [] if _is(value, dict) else ["no"]
        case _:
            raise ValueError(f"the type {ast.unparse(annotation)!r} is not supported")
    return _must_be(annotation, value) if any(problems) else ""


def _is(value: Any, kind: type) -> bool:
    """Tell whether a value is of a container type."""
    return isinstance(value, kind)


def _must_be(annotation: ast.expr, value: Any) -> str:
    """Say what a value must be and what it is."""
    shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}…"
    return f"must be {ast.unparse(annotation)}, not {type(value).__name__}: {shown}"


def parse_assignments(
    declared: Mapping[str, Parameter], assignments: Sequence[str], *, notebook: str
) -> dict[str, Any]:
    """Parse ``name=value`` texts of a command line by the declared types.

    Parameters
    ----------
    declared
        From :func:`declared_parameters`.
    assignments
        Such as ``["confidence=0.9", "raw=false"]``; lists and dictionaries
        are JSON; ``none`` is None where the type allows it.
    notebook
        Its name, for messages.

    Returns
    -------
    dict[str, Any]
        The parsed values; defaults are not filled in.

    Raises
    ------
    UsageError
        An assignment has no ``=``, comes twice, names no parameter or does
        not parse.

    Examples
    --------
    >>> declared = {"raw": Parameter("raw", "bool", True)}
    >>> parse_assignments(declared, ["raw=false"], notebook="failures")
    {'raw': False}
    """
    values: dict[str, Any] = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals:
            raise UsageError(f"{assignment!r}: a parameter is written name=value")
        if name in values:
            raise UsageError(f"parameter {name!r} is given twice")
        parameter = _known(name, declared, notebook)
        annotation = ast.parse(parameter.type, mode="eval").body
        values[name] = _checked(parameter, _parsed(text, annotation), notebook)
    return values


def _parsed(text: str, annotation: ast.expr) -> Any:
    """Parse a text by its type; what does not parse stays a text."""
    if isinstance(annotation, ast.BinOp):
        return _parsed_either(text, annotation)
    if isinstance(annotation, ast.Constant):
        return None if text.lower() in _NOTHING else text
    kind = annotation.id if isinstance(annotation, ast.Name) else "json"
    try:
        return _PARSERS[kind](text)
    except (ValueError, KeyError):
        return text


def _parsed_either(text: str, annotation: ast.BinOp) -> Any:
    """Parse a text as the first of two types that fits, None before others."""
    sides = sorted((annotation.left, annotation.right), key=lambda s: isinstance(s, ast.Name))
    for side in sides:
        value = _parsed(text, side)
        if not _mismatch(value, side):
            return value
    return text


_PARSERS: Final[Mapping[str, Any]] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": lambda text: _TRUTHS[text.lower()],
    "json": json.loads,
}
