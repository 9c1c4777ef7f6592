"""What `evalkit init` makes works on a fresh machine, by the commands that its README names."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from evalkit.scaffolding import KINDS

# A fresh environment is filled from the package index while the other worker is busy.
pytestmark = [pytest.mark.install, pytest.mark.timeout(600)]

CHECKOUT = Path(__file__).resolve().parents[2]
NAMED = ("pip install", "doctor", "check", "run", "gate", "pytest", "report")
"""What a guide must name, in this order."""


def commands(guide: Path) -> list[str]:
    """Give the commands of a guide that need no key: those with a prompt."""
    return re.findall(r"^\$ (.+)$", guide.read_text(), re.MULTILINE)


def script_of(lines: list[str], wheels: Path) -> str:
    """Type the commands one after the other, up to the first that fails."""
    settings = {
        # The Python that tests run on, and nothing of their environment.
        "PATH": f"{Path(sys.base_prefix) / 'bin'}{os.pathsep}{os.defpath}",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_CONSTRAINT": str(CHECKOUT / "constraints.txt"),
        "PIP_NO_COMPILE": "1",
        "PIP_QUIET": "2",
    }
    exported = [f"export {name}={shlex.quote(value)}" for name, value in settings.items()]
    return "\n".join([*exported, "set -e", *(f"echo {shlex.quote('$ ' + x)}; {x}" for x in lines)])


@pytest.mark.parametrize("kind", KINDS)
def test_readme_commands_are_green_on_a_fresh_machine(
    kind: str, built: Path, installed: Any, tmp_path: Path
) -> None:
    """Init, then what its README names, in an environment of its own: within five minutes."""
    assert installed.evalkit("init", "bot", "--agent", kind, cwd=tmp_path).code == 0
    project = tmp_path / "bot"
    lines = commands(project / "README.md")
    places = [next(i for i, line in enumerate(lines) if name in line) for name in NAMED]
    assert places == sorted(places)

    began = time.monotonic()
    done = installed.shell(script_of(lines, built), cwd=project)
    told = f"exit code {done.code}\n{done.out}\n{done.err}"
    assert done.code == 0, told
    assert time.monotonic() - began < 300, told
    assert "4 passed, 0 failed, 0 incomplete of 4 trials" in done.out
    assert list((project / "reports").glob("*.html"))
    # What git would keep is what was made, and the baseline where one was pinned.
    pinned = list(project.glob("data/baselines/*.json"))
    assert len(pinned) == (0 if KINDS[kind].has_model else 1)


def test_demo_is_a_command(installed: Any, tmp_path: Path) -> None:
    """`evalkit demo` says where it writes, before it writes anything."""
    done = installed.evalkit("demo", "--help", cwd=tmp_path)
    assert done.code == 0
    assert "data/runs" in done.out
    assert list(tmp_path.iterdir()) == []
