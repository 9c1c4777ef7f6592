"""Planning the files of a new project, and making those that are missing."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path, PurePosixPath
from string import Template
from typing import Final, Literal

from evalkit import shipped
from evalkit.errors import UsageError
from evalkit.scaffolding.kinds import KINDS, Kind

State = Literal["missing", "there", "yours", "conflict"]

_NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_LONGEST_NAME: Final = 50
_NO_NAMES: Final = frozenset({"true", "false", "null"})
"""Words that YAML takes for something else."""
_KEPT: Final = frozenset({".gitignore"})
"""Files that a project has already, and that need not be evalkit's."""
_GUIDE: Final = "EVALS.md"
"""Where the guide goes in a project that has a README of its own."""


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file of the project, and what is there now."""

    path: str
    """Below the project's folder, with slashes."""
    content: bytes
    state: State
    """
    ``missing``; ``there``, just as planned; ``yours``: another one, which does as
    well; ``conflict``: another one, or something that is in the way.
    """


@dataclass(frozen=True, slots=True)
class ProjectPlan:
    """What a project will have, before anything is written."""

    folder: Path
    name: str
    kind: Kind
    files: tuple[PlannedFile, ...]

    def paths(self, state: State) -> tuple[str, ...]:
        """Name the files that are in a state."""
        return tuple(file.path for file in self.files if file.state == state)

    @property
    def guide(self) -> str:
        """Name the file that says what to do next."""
        return next(file.path for file in self.files if file.path in (_GUIDE, "README.md"))


def plan_project(
    folder: str | Path, *, agent: str = "callable", name: str | None = None
) -> ProjectPlan:
    """Plan a project; writes nothing.

    Parameters
    ----------
    folder
        Of the project; it need not exist, and may hold files already.
    agent
        One of ``KINDS``.
    name
        Of the project and its suite: lower-case letters, digits, and hyphens
        between them. Unless given, it is made of the folder's name.

    Returns
    -------
    ProjectPlan
        Each file with what is in its place now.

    Raises
    ------
    UsageError
        If there is no such kind of agent, the name is none, or ``folder`` is a file.

    Examples
    --------
    >>> plan = plan_project("shop-bot")
    >>> plan.name, plan.kind.name, plan.paths("missing")[0]
    ('shop-bot', 'callable', 'README.md')
    """
    if agent not in KINDS:
        raise UsageError(_unknown_kind(agent))
    path = Path(folder)
    if path.exists() and not path.is_dir():
        raise UsageError(f"{path}: this is a file; name a folder for the project")
    name = _checked(name) if name is not None else _name_of(path)
    planned = tuple(_planned(path, *file) for file in _contents(path, name, KINDS[agent]))
    return ProjectPlan(path, name, KINDS[agent], planned)


def make_project(plan: ProjectPlan, *, keep_existing: bool = False) -> tuple[str, ...]:
    """Write the files of a project that are missing.

    Parameters
    ----------
    plan
        What :func:`plan_project` gave.
    keep_existing
        Leave files that differ as they are, and write the others. Without it,
        nothing at all is written if there is a conflict.

    Returns
    -------
    tuple of str
        The files that were written.

    Raises
    ------
    UsageError
        On conflicts, or where the folder cannot be written; then nothing is left
        of what was begun.
    """
    conflicts = plan.paths("conflict")
    if conflicts and not keep_existing:
        raise UsageError(_in_the_way(plan.folder, conflicts))
    written: list[Path] = []
    try:
        for file in plan.files:
            if file.state == "missing":
                _write(plan.folder / file.path, file.content, written)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        raise UsageError(
            f"cannot write {error.filename or plan.folder}: {error.strerror}; nothing was made"
        ) from error
    return plan.paths("missing")


def _write(path: Path, content: bytes, written: list[Path]) -> None:
    """Write a new file; one that has appeared meanwhile, or a link, is left alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("xb") as file:
        written.append(path)
        file.write(content)


def _planned(folder: Path, path: str, content: bytes) -> PlannedFile:
    return PlannedFile(path, content, _state(folder, path, content))


def _state(folder: Path, path: str, content: bytes) -> State:
    """Say what is in the place of a file."""
    place = folder / path
    try:
        if not _exists(place):
            parents = [folder / parent for parent in PurePosixPath(path).parents]
            blocked = any(_exists(parent) and not parent.is_dir() for parent in parents)
            return "conflict" if blocked else "missing"
        if place.read_bytes() == content:
            return "there"
    except OSError:  # a folder, a link that leads nowhere, what may not be read
        return "conflict"
    return "yours" if path in _KEPT else "conflict"


def _exists(path: Path) -> bool:
    """Say whether there is anything, be it a link that leads nowhere."""
    return path.is_symlink() or path.exists()


def _contents(folder: Path, name: str, kind: Kind) -> Iterator[tuple[str, bytes]]:
    """Give every file of a project and what is in it."""
    model = "with_model" if kind.has_model else "without_model"
    guide = _filled(
        "readme.md", name=name, about=kind.about, break_it=kind.break_it,
        live=_text(f"readme_live_{model}.md"),
    )  # fmt: skip
    yield _guide_path(folder, guide), guide
    yield "support_agent.py", _bytes(f"agent_{kind.name}.py.txt")
    yield "support_shop.py", _bytes("shop.py.txt")
    yield f"data/suites/{name}.yaml", _filled(f"suite_{model}.yaml", name=name, agent=kind.agent)
    yield "data/baselines/README.md", _bytes("baselines.md")
    yield "data/.gitignore", _bytes("gitignore_data.txt")
    yield "reports/.gitignore", _bytes("gitignore_reports.txt")
    for notebook in shipped.names("notebook"):
        yield f"notebooks/{notebook}.ipynb", shipped.notebook(notebook).read_bytes()
    yield ".github/workflows/agent-evals.yml", _bytes("agent-evals.yml")
    yield ".github/workflows/evaluate.yml", _bytes("evaluate.yml")
    yield "requirements-evals.txt", _requirements(kind)
    yield ".gitignore", _bytes("gitignore.txt")


def _guide_path(folder: Path, guide: bytes) -> str:
    """Leave a README that is there as it is: it is the user's."""
    is_free = _state(folder, "README.md", guide) in ("missing", "there")
    return "README.md" if is_free else _GUIDE


def _requirements(kind: Kind) -> bytes:
    evalkit = f"evalkit-lab[report]>={version('evalkit-lab')}"
    lines = ["# What the evaluations need; add what your agent needs.", evalkit, "pytest>=8.4"]
    return "".join(f"{line}\n" for line in (*lines, *kind.packages)).encode()


def _filled(template: str, **values: str) -> bytes:
    return Template(_text(template)).substitute(values).encode()


def _text(template: str) -> str:
    return _bytes(template).decode()


def _bytes(template: str) -> bytes:
    return (files("evalkit.scaffolding") / "templates" / template).read_bytes()


def _checked(name: str) -> str:
    """Give the name, if it is one."""
    if _NAME.fullmatch(name) and len(name) <= _LONGEST_NAME and name not in _NO_NAMES:
        return name
    near = _made_of(name)
    hint = f"; {near!r} would do" if near else ""
    raise UsageError(
        f"{name!r} is no name for a project: write lower-case letters, digits and single hyphens, "
        f"a letter first, at most {_LONGEST_NAME}{hint}"
    )


def _name_of(folder: Path) -> str:
    """Make a name of the folder's."""
    own = folder.resolve().name
    made = _made_of(own)
    if made:
        return made
    raise UsageError(f"no name can be made of the folder {own!r}; give one: --name my-agent")


def _made_of(text: str) -> str:
    """Make a name of what is there of letters and digits; nothing if that is too little."""
    words = re.sub(r"[^a-z0-9]+", "-", text.lower())
    made = words.lstrip("-0123456789")[:_LONGEST_NAME].strip("-")
    return "" if made in _NO_NAMES else made


def _unknown_kind(agent: str) -> str:
    near = difflib.get_close_matches(agent, KINDS, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return f"there is no kind of agent called {agent!r}.{hint} There are: {', '.join(KINDS)}"


def _in_the_way(folder: Path, conflicts: tuple[str, ...]) -> str:
    listed = "".join(f"\n  {folder / path}" for path in conflicts)
    return (
        f"nothing was made, because these are there already and differ:{listed}\n"
        "Move them away, or name another folder; --keep-existing leaves them as they are "
        "and adds what is missing."
    )
