"""``import evalkit`` is quick, because what is heavy waits until it is needed."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

HEAVY = (
    "anthropic",
    "cloudpickle",
    "langgraph",
    "matplotlib",
    "nbconvert",
    "numpy",
    "pandas",
    "papermill",
    "pydantic",
    "scipy",
    "tqdm",
    "yaml",
)
CPU_LIMIT_S = 0.2
SLACK = 1.3


def _loaded(statement: str) -> set[str]:
    """Return the top-level modules that a fresh interpreter has after a statement."""
    script = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def _cpu_s(statement: str) -> float:
    """Return the CPU seconds of a fresh interpreter that runs a statement."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@pytest.fixture(scope="module")
def loaded_by_import() -> set[str]:
    """List the top-level modules after ``import evalkit``."""
    return _loaded("import evalkit")


@pytest.fixture(scope="module")
def loaded_by_names() -> set[str]:
    """List the top-level modules once every public name was imported."""
    return _loaded("from evalkit import *")


@pytest.mark.parametrize("name", HEAVY)
def test_import_of_evalkit_leaves_heavy_packages_alone(
    name: str, loaded_by_import: set[str]
) -> None:
    """No heavy dependency is loaded before something of evalkit is used."""
    assert "evalkit" in loaded_by_import
    assert name not in loaded_by_import


@pytest.mark.parametrize("name", ["matplotlib", "pandas", "papermill", "scipy"])
def test_public_names_leave_heavy_packages_alone(name: str, loaded_by_names: set[str]) -> None:
    """What only frames, statistics and reports need waits for the first of them."""
    assert "pydantic" in loaded_by_names
    assert name not in loaded_by_names


@pytest.mark.parametrize("name", HEAVY)
def test_the_check_would_notice_a_heavy_package(name: str) -> None:
    """A package that is loaded is seen as loaded, where it is installed."""
    pytest.importorskip(name)
    assert name in _loaded(f"import {name}")


@pytest.mark.benchmark
def test_import_of_evalkit_takes_little_cpu() -> None:
    """A process that imports evalkit takes less than 0.2 s of CPU, with a slack of 1.3."""
    _cpu_s("import evalkit")  # compiles the bytecode
    assert min(_cpu_s("import evalkit") for _ in range(5)) <= CPU_LIMIT_S * SLACK
