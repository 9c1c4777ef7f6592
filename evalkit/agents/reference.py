"""How an agent travels to the process of a trial.

An agent that a suite names is a reference, ``module:name``, imported there. One
that a notebook hands over is pickled with cloudpickle; what cannot be pickled
is named, with the ways out.
"""

from __future__ import annotations

import difflib
import hashlib
import importlib.machinery
import inspect
import marshal
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from evalkit.agents.conversation import check_agent
from evalkit.errors import AgentError


@dataclass(frozen=True, slots=True)
class AgentRef:
    """An agent as it is sent to a worker."""

    description: str
    """``module:name``, or what the caller's object is called."""
    path: tuple[str, ...] = ()
    """Folders to import from, before all others."""
    pickled: bytes | None = None
    """The agent itself, where it is no reference."""
    hash: str = ""
    """Of the agent's code; a run is only resumed with the same."""
    is_program: bool = False
    """Whether it is another program."""
    executable: str = ""
    """Path of that program."""

    def load(self) -> Any:
        """Import or unpickle the agent.

        Raises
        ------
        AgentError
            If that fails.
        """
        _prepend(self.path)
        if self.pickled is None:
            agent = import_from(self.description, self.path)
            check_agent(agent)
            return agent
        import cloudpickle

        try:
            agent = cloudpickle.loads(self.pickled)
        except Exception as error:
            raise AgentError(
                f"agent {self.description}: cannot be rebuilt in the trial's process: {error!r}; "
                "move it into a module and name it as 'module:name'"
            ) from error
        load = getattr(type(agent), "__evalkit_load__", None)  # it names what is imported here
        return agent if load is None else load(agent)


def import_from(reference: str, folders: tuple[str, ...]) -> Any:
    """Import ``module:name``, from some folders before all others.

    Raises
    ------
    AgentError
        If there is no such module or name, or the module raises.
    """
    _prepend(folders)
    _forget_namesake(reference.partition(":")[0].partition(".")[0], folders)
    return import_agent(reference)


def _prepend(folders: tuple[str, ...]) -> None:
    """Put folders in front of all others, also those that stand further back already."""
    sys.path[:] = [*folders, *(folder for folder in sys.path if folder not in folders)]
    importlib.invalidate_caches()  # a file may be a moment old


def refer_to(agent: object, *, path: tuple[str, ...] = ()) -> AgentRef:
    """Make the reference of an agent.

    Parameters
    ----------
    agent
        ``"module:name"``, or the agent itself in any form that
        :mod:`evalkit.agents.conversation` names.
    path
        Folders to import from, before all others.

    Raises
    ------
    AgentError
        If it is no agent, or cannot be imported or pickled.

    Examples
    --------
    >>> refer_to("evalkit.examples.travel_rules:agent").description
    'evalkit.examples.travel_rules:agent'
    """
    if isinstance(agent, str):
        return AgentRef(agent, path, None, _files_hash(_locate(agent, path)))
    refer = getattr(agent, "refer", None)
    if callable(refer):  # a command or a server, which knows its own code
        reference = refer()
        assert isinstance(reference, AgentRef)
        return reference
    check_agent(agent)
    name = getattr(agent, "__qualname__", type(agent).__qualname__)
    return AgentRef(name, path, pickled(agent, name), code_hash(agent))


def _locate(reference: str, folders: tuple[str, ...]) -> Path | None:
    """Find the file of the module that a reference names, without importing it.

    Its code runs in the server only: there its clients find the scripted model, and
    there it cannot start a thread in a notebook.
    """
    module, colon, attribute = reference.partition(":")
    if not (module and colon and attribute):
        raise AgentError(f"agent {reference!r}: write it as 'module:name'")
    if "/" in module or module.endswith(".py"):
        hint = f"{Path(module).stem}:{attribute}"
        raise AgentError(
            f"agent {reference!r}: name the module, not its file: {hint!r}; it is looked for in "
            "the suite's folder, then the working directory"
        )
    importlib.invalidate_caches()  # a file may be a moment old
    search: Sequence[str] | None = [*folders, *sys.path]
    name, spec = "", None
    for part in module.split("."):
        name = f"{name}.{part}" if name else part
        spec = None if search is None else _find_spec(name, search)
        if spec is None:
            raise AgentError(_no_such_module(reference, name))
        search = spec.submodule_search_locations
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _find_spec(name: str, search: Sequence[str]) -> importlib.machinery.ModuleSpec | None:
    found = importlib.machinery.PathFinder.find_spec(name, search)
    return found or importlib.machinery.BuiltinImporter.find_spec(name)


def _no_such_module(reference: str, module: str) -> str:
    return (
        f"agent {reference!r}: no module {module!r}; it is looked for in the suite's "
        "folder, then the working directory, then among the installed packages"
    )


def _forget_namesake(name: str, folders: tuple[str, ...]) -> None:
    """Forget a loaded module that only shares its name with one in the agent's folders.

    Two suites may each have an ``agent.py`` beside them.
    """
    file = getattr(sys.modules.get(name), "__file__", None)
    spec = importlib.machinery.PathFinder.find_spec(name, list(folders))
    if file is None or spec is None or spec.origin is None or Path(spec.origin) == Path(file):
        return
    for loaded in [each for each in sys.modules if each.partition(".")[0] == name]:
        del sys.modules[loaded]


def import_agent(reference: str) -> Any:
    """Import ``module:name``.

    Raises
    ------
    AgentError
        If there is no such module or name, or the module raises.
    """
    module_name, colon, attribute = reference.partition(":")
    if not (module_name and colon and attribute):
        raise AgentError(f"agent {reference!r}: write it as 'module:name'")
    value: Any = _import_module(module_name, reference)
    for part in attribute.split("."):
        if not hasattr(value, part):
            raise AgentError(_no_such_name(reference, value, part))
        value = getattr(value, part)
    return value


def _import_module(name: str, reference: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and f"{name}.".startswith(f"{error.name}."):
            raise AgentError(_no_such_module(reference, error.name)) from error
        raise AgentError(f"agent {reference!r}: importing it failed: {error}") from error
    except (Exception, SystemExit) as error:
        raise AgentError(f"agent {reference!r}: importing it raised {error!r}") from error


def _no_such_name(reference: str, owner: object, name: str) -> str:
    public = [known for known in dir(owner) if not known.startswith("_")]
    near = difflib.get_close_matches(name, public, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has: {', '.join(public[:10])}"
    return f"agent {reference!r}: no {name!r} there; {hint}"


def code_hash(agent: object) -> str:
    """Hash the code of an agent: its module, or every Python file of its package.

    An agent without a file (a notebook cell) is hashed by its own source or
    bytecode.
    """
    code: Any = agent
    while isinstance(code, partial):
        code = code.func
    if not (inspect.isroutine(code) or inspect.isclass(code)):
        code = type(code)
    name = str(code.__module__)
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or name == "__main__":
        return _hash_of([_own_code(code)])
    return _files_hash(Path(file))


def _files_hash(source: Path | None) -> str:
    """Hash a module's file, or all Python files of the package that it lies in."""
    if source is None:
        return _hash_of([])
    top = source.parent
    while (top.parent / "__init__.py").exists():
        top = top.parent
    files = sorted(top.rglob("*.py")) if (top / "__init__.py").exists() else [source]
    return _hash_of(
        part
        for path in files
        for part in (path.relative_to(top).as_posix().encode(), path.read_bytes())
    )


def _hash_of(parts: Iterable[bytes]) -> str:
    sha = hashlib.sha256()
    for part in parts:
        sha.update(len(part).to_bytes(8, "big") + part)
    return sha.hexdigest()


def _own_code(code: Any) -> bytes:
    """Give the source of a function or class; else the bytecode of all its functions."""
    try:
        return inspect.getsource(code).encode()
    except (OSError, TypeError):
        functions = [code, *vars(code).values()] if inspect.isclass(code) else [code]
        codes = (getattr(function, "__code__", None) for function in functions)
        return b"".join(marshal.dumps(code) for code in codes if code is not None)


def pickled(agent: object, name: str) -> bytes:
    """Pickle an agent with cloudpickle.

    Raises
    ------
    AgentError
        If it cannot be; the message names the part that is to blame.
    """
    import cloudpickle

    try:
        return bytes(cloudpickle.dumps(agent))
    except Exception as error:
        culprit = _unpicklable_part(agent)
        where = f"its variable {culprit!r}" if culprit else "it"
        raise AgentError(
            f"agent {name}: cannot be sent to a fresh process, because {where} cannot be pickled "
            f"({error}). Create that object inside the agent, hand over a zero-argument factory, "
            "put the agent into a module and name it as 'module:name', or use isolation='none'"
        ) from error


def _unpicklable_part(agent: object) -> str | None:
    """Name the first variable that an agent captured and that cannot be pickled."""
    import cloudpickle

    for name, value in _captured(agent):
        try:
            cloudpickle.dumps(value)
        except Exception:
            return name
    return None


def _captured(agent: object) -> Iterator[tuple[str, object]]:
    function: Any = getattr(agent, "__func__", agent)
    if inspect.isfunction(function):
        variables = inspect.getclosurevars(function)
        yield from variables.nonlocals.items()
        yield from variables.globals.items()
    yield from getattr(agent, "__dict__", {}).items()
