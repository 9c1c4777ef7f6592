"""The wheel, built once, and one fresh environment that has it; shared by all workers."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
# What people's tools leave in a checkout; none of it may travel.
LITTER = ("notebooks/.ipynb_checkpoints/x-checkpoint.ipynb", "data/suites/.travel.yaml.swp",
          "data/runs/r1/manifest.json", "evalkit/__pycache__/x.cpython-311.pyc")  # fmt: skip
NOT_COPIED = shutil.ignore_patterns(".*", "runs", "reports", "dist", "build", "__pycache__")
WITHOUT_REPORT: Mapping[str, tuple[str, ...]] = {
    "modules": (
        "-c",
        "import evalkit, importlib, pkgutil\n"
        # Programs, examples, and what only pytest or OpenTelemetry's SDK have imported.
        "others = ('__main__', '.examples.', '.pytest_plugin', '.gateway.flushing')\n"
        "for module in pkgutil.walk_packages(evalkit.__path__, 'evalkit.'):\n"
        "    if not any(other in module.name for other in others):\n"
        "        importlib.import_module(module.name)\n",
    ),
    "demo": ("-m", "evalkit.examples.demo"),
    "run": (
        "-c",
        "import evalkit as ek\n"
        "from evalkit import shipped\n"
        "agent = 'evalkit.examples.travel_rules:agent'\n"
        "ek.run_suite(shipped.suite('travel'), agent=agent, lane='live')\n",
    ),
    "report": ("-m", "evalkit.cli", "report", "pass_rates", "--run", "data/runs"),
}
"""What is tried, in this order, before any extra is installed."""


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


class Installed(NamedTuple):
    """An environment that has the wheel, and what it did while it lacked the extra."""

    folder: Path
    before: dict[str, Done]

    def python(self, *arguments: str, cwd: Path) -> Done:
        """Run its interpreter."""
        return run([str(self.folder / "bin" / "python"), "-W", "error", *arguments], cwd=cwd)

    def shell(self, line: str, *, cwd: Path) -> Done:
        """Run a line as it is typed where the environment is activated."""
        return run(["bash", "-c", f'PATH="{self.folder / "bin"}:$PATH"; {line}'], cwd=cwd)

    def evalkit(self, *arguments: str, cwd: Path) -> Done:
        """Run its command ``evalkit``."""
        return run([str(self.folder / "bin" / "evalkit"), *arguments], cwd=cwd)


def run(words: list[str], *, cwd: Path) -> Done:
    """Run a command that sees nothing of the checkout or of this environment."""
    hidden = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "EVALKIT_PUBLIC_DATA"}
    env = {name: value for name, value in os.environ.items() if name not in hidden}
    done = subprocess.run(
        words, cwd=cwd, env=env, capture_output=True, text=True, timeout=500, check=False
    )
    return Done(done.returncode, done.stdout, done.stderr)


def must(words: list[str], *, cwd: Path) -> None:
    """Run a command that prepares a test."""
    done = run(words, cwd=cwd)
    if done.code:
        pytest.fail(f"{' '.join(words)} exits with {done.code}:\n{done.out}{done.err}")


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Make a folder in one worker and let the others wait for it."""
    root = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        root = root.parent
    folder, ready = root / name, root / f"{name}.ready"
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ready.exists():
            folder.mkdir()
            make(folder)
            ready.touch()
    return folder


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, and the wheel from the sdist; give the folder of both."""
    return made_once(tmp_path_factory, "built", _build)


def _build(folder: Path) -> None:
    copy = folder / "checkout"
    shutil.copytree(CHECKOUT, copy, ignore=NOT_COPIED)
    shutil.copy(CHECKOUT / ".gitignore", copy)
    for name in LITTER:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_text("litter")
    must([sys.executable, "-m", "build", "--outdir", str(folder), str(copy)], cwd=folder)
    # A wheel that is built from the checkout itself must not differ.
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", "direct"]
    must([*pip, str(copy)], cwd=folder)


@pytest.fixture(scope="session")
def installed(built: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """Install the wheel into a fresh environment: bare first, then with two extras."""

    def make(folder: Path) -> None:
        must([sys.executable, "-m", "venv", str(folder)], cwd=folder)
        (wheel,) = built.glob("*.whl")
        python = str(folder / "bin" / "python")
        constraints = str(CHECKOUT / "constraints.txt")
        pip = [python, "-m", "pip", "install", "-qq", "--no-compile", "-c", constraints]
        must([*pip, str(wheel)], cwd=folder)
        empty = folder / "empty"
        empty.mkdir()
        bare = Installed(folder, {})
        before = {name: bare.python(*words, cwd=empty) for name, words in WITHOUT_REPORT.items()}
        (folder / "before.json").write_text(json.dumps(before))
        must([*pip, f"{wheel}[examples,report]"], cwd=folder)

    folder = made_once(tmp_path_factory, "installed", make)
    before = json.loads((folder / "before.json").read_text())
    return Installed(folder, {name: Done(*ending) for name, ending in before.items()})
