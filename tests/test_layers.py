"""Imports run one way only: the layers, the cycles, and the names of modules."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import evalkit

PACKAGE = Path(evalkit.__file__).parent

# From the bottom up; a module may import only what stands in a lower row.
ROWS: tuple[frozenset[str], ...] = tuple(
    frozenset(row.split())
    for row in (
        "errors",
        "ledger matching scanning metering shipped markup when_keys",
        "grade trace provenance terminal",
        "joining",
        "recording reading messages observing serving",
        "spans",
        "suite agents sandbox gateway outside judge stats",
        "graders trial results",
        "importers diffing canaries",
        "run summaries outcomes baselines calibration plots labelling drafting scaffolding",
        "gating mutation",
        "reporting publishing testing",
        "examples",
        "cli pytest_plugin",
    )
)
# `evalkit` itself gathers public names; it imports them when they are asked for.
FACADE = "evalkit"


def _module(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _sources() -> dict[str, Path]:
    return {_module(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def _imports(path: Path, *, at_module_level: bool = False) -> set[str]:
    """Name the evalkit modules that a file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nodes = _module_level(tree) if at_module_level else list(ast.walk(tree))
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] == "evalkit"}


def _module_level(tree: ast.Module) -> list[ast.AST]:
    """Give the statements that run on import, not those for type checkers."""
    return [
        node
        for statement in tree.body
        if not (isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test))
        for node in ast.walk(statement)
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]


def _part(module: str) -> str:
    return module.split(".")[1] if "." in module else FACADE


def _row(part: str) -> int:
    return next((i for i, row in enumerate(ROWS) if part in row), -1)


def test_every_module_has_a_row() -> None:
    """A new top-level module must be given its place in the layers."""
    parts = {_part(module) for module in _sources()} - {FACADE}
    assert parts <= frozenset().union(*ROWS), sorted(parts - frozenset().union(*ROWS))


@pytest.mark.parametrize("module", [name for name in _sources() if name != FACADE])
def test_module_imports_only_lower_rows(module: str) -> None:
    """A module imports lower rows or its own package, never a sibling or what is above."""
    own = _part(module)
    for imported in _imports(_sources()[module]):
        other = _part(imported)
        if other == FACADE:  # `from evalkit import x` names x as well
            continue
        assert other == own or _row(other) < _row(own), f"{module} imports {imported}"


def test_there_are_no_cycles() -> None:
    """No two modules need each other in order to be imported."""
    sources = _sources()
    edges = {
        module: {name for name in _imports(path, at_module_level=True) if name in sources}
        - {module, FACADE}
        for module, path in sources.items()
    }
    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, f"cycle: {' -> '.join((*trail, module))}"
        if module not in done:
            for other in sorted(edges[module]):
                # A package's __init__ gathers names from its own modules.
                if not module.startswith(f"{other}."):
                    visit(other, (*trail, module))
            done.add(module)

    for module in sources:
        visit(module, ())


def test_no_module_is_a_grab_bag() -> None:
    """Modules say what they hold."""
    forbidden = {"utils", "util", "common", "helpers", "helper", "misc"}
    assert not [m for m in _sources() if m.split(".")[-1].strip("_") in forbidden]


def test_no_module_has_the_name_of_a_public_function() -> None:
    """`evalkit.x` is either a module or a public name, never both by chance."""
    functions = {
        name for name in evalkit.__all__ if callable(getattr(evalkit, name)) and name.islower()
    }
    modules = {module.split(".")[-1] for module in _sources() if module.count(".") == 1}
    assert not functions & modules


@pytest.mark.parametrize("module", _sources())
def test_functions_and_modules_are_short(module: str) -> None:
    """No function body over 60 lines, no module over 400 without a reason in `LONG`."""
    source = _sources()[module].read_text(encoding="utf-8")
    assert source.count("\n") <= LONG.get(module, 400)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) and len(node.body) > 1 else node.body
            length = (node.end_lineno or 0) - body[0].lineno + 1
            assert length <= 60, f"{node.name}: {length} lines"


LONG: dict[str, int] = {}
