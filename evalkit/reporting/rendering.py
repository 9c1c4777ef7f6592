"""Turn a notebook into one HTML file, or into an error that says why not.

The parameters are checked first. Then a child process executes and converts
the notebook inside a temporary folder beside the target, under one deadline,
with a kernel of this interpreter. Only a whole report is moved into place, so
a reader never sees half of one. That the child said so is the only sign of
success: what papermill saves about a killed kernel says "completed".
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from evalkit import shipped
from evalkit.errors import MissingDependency, ReportError, UsageError
from evalkit.markup import visible
from evalkit.reporting._kernel import PID_FILE
from evalkit.reporting.guarding import guard_report
from evalkit.reporting.parameters import (
    Parameter,
    check_parameters,
    declared_parameters,
    parse_assignments,
)
from evalkit.results import load_run

__all__ = ["find_notebook", "parse_parameters", "render_report"]

COMMAND: Final = "EVALKIT_RENDER_COMMAND"
"""Environment variable with the command that makes the same report again."""

_PACKAGES: Final = ("papermill", "nbconvert", "ipykernel", "matplotlib")


def render_report(
    name: str | os.PathLike[str],
    *,
    run: Any = None,
    out: str | os.PathLike[str] = "reports",
    parameters: Mapping[str, Any] | None = None,
    timeout_s: float = 600,
) -> Path:
    """Render a notebook as one self-contained HTML file.

    Parameters
    ----------
    name
        A shipped notebook, such as ``pass_rates``, or the path of an
        ``.ipynb`` file with a cell of typed parameters.
    run
        A run, its directory, or a folder of runs (then the latest in it);
        becomes the notebook's parameter ``run``.
    out
        Folder of the report, or its path if that ends in ``.html``. A folder
        gets the file ``<notebook>-<run>.html``; it replaces an older one.
    parameters
        Values of the notebook's other parameters.
    timeout_s
        Seconds that executing and converting may take together.

    Returns
    -------
    Path
        The finished report.

    Raises
    ------
    UsageError
        There is no such notebook, it has no such parameter, or there is no
        such baseline.
    LedgerError, BaselineError
        The run or the baseline cannot be read.
    ReportError
        A cell failed, the kernel died, the time was up, or nobody can tell whether the
        report holds a canary. No file was written.
    MissingDependency
        The extra ``report`` is not installed.
    """
    notebook = find_notebook(name)
    values = _values(notebook, run, parameters or {})
    _require_packages()
    target = _target(Path(out), notebook, values.get("run"))
    with _workspace(target) as folder:
        job = {"notebook": str(notebook), "parameters": values, "cwd": str(Path.cwd())}
        (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")
        command = _command(str(name), values, declared_parameters(notebook), out=Path(out))
        _run_child(folder, command=command, notebook=notebook, timeout_s=timeout_s)
        guard_report(folder / "report.html", _sources(values))
        (folder / "report.html").replace(target)
    return target


def _sources(values: Mapping[str, Any]) -> list[str]:
    """Give the parameters that may be directories of runs."""
    flat = (
        one for value in values.values() for one in (value if isinstance(value, list) else [value])
    )
    return [one for one in flat if isinstance(one, str) and one]


def find_notebook(name: str | os.PathLike[str]) -> Path:
    """Return the path of a notebook that is shipped or named by its path.

    Raises
    ------
    UsageError
        There is none.
    """
    path = Path(name)
    if path.suffix == ".ipynb" and path.is_file():
        return path.resolve()
    if path.name != os.fspath(name):
        raise UsageError(f"{path}: there is no such notebook; a path must end in .ipynb")
    return shipped.notebook(path.name)


def parse_parameters(name: str | os.PathLike[str], assignments: Sequence[str]) -> dict[str, Any]:
    """Parse ``name=value`` texts by the types that a notebook declares.

    Parameters
    ----------
    name
        As for :func:`render_report`.
    assignments
        Such as ``["confidence=0.9"]``.

    Returns
    -------
    dict[str, Any]
        For the argument ``parameters`` of :func:`render_report`.

    Raises
    ------
    UsageError
        A name is unknown, or a value does not parse as its type.

    Examples
    --------
    >>> parse_parameters("pass_rates", ["confidence=0.9", "max_failures=10"])
    {'confidence': 0.9, 'max_failures': 10}
    """
    notebook = find_notebook(name)
    return parse_assignments(declared_parameters(notebook), assignments, notebook=notebook.stem)


def _values(notebook: Path, run: Any, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Check the parameters and put the run among them."""
    declared = declared_parameters(notebook)
    given = dict(parameters)
    if run is not None:
        if "run" in given:
            raise UsageError("the run is given twice: as run= and as a parameter")
        given["run"] = getattr(run, "folder", run)
    values = check_parameters(declared, given, notebook=notebook.stem)
    if "run" in declared and isinstance(values["run"], str):
        values["run"] = _run_folder(values["run"], notebook.stem)
    if {"baseline", "baselines"} <= declared.keys() and values["baseline"] is not None:
        _require_side(values["baseline"], values["baselines"])
    return values


def _run_folder(run: str, notebook: str) -> str:
    """Return the absolute path of a run, which the kernel must find too."""
    if not run:
        raise UsageError(f"{notebook} needs a run: run=... or, on the command line, --run RUN")
    folder = Path(run).resolve()
    if not folder.is_dir():
        raise UsageError(f"{run}: there is no such run directory")
    if not (folder / "manifest.json").exists():  # a folder of runs: the latest of them
        folder = load_run(folder).folder.resolve()
    return str(folder)


def _require_side(baseline: str, folder: str) -> None:
    """Refuse a baseline that is not there, before a kernel starts."""
    from evalkit.reporting.sides import find_side

    find_side(baseline, folder=folder)


def _require_packages() -> None:
    """Refuse to start without the packages of the extra ``report``."""
    for package in _PACKAGES:
        if importlib.util.find_spec(package) is None:
            raise MissingDependency(package, "report")


def _target(out: Path, notebook: Path, run: str | None) -> Path:
    """Return where the report goes."""
    if out.suffix == ".html":
        return out
    return out / ("-".join(filter(None, (notebook.stem, run and Path(run).name))) + ".html")


def _command(
    name: str, values: Mapping[str, Any], declared: Mapping[str, Parameter], *, out: Path
) -> str:
    """Return the command line that makes the same report again."""
    words = ["evalkit", "report", name]
    for key, value in values.items():
        if key == "run":
            words += ["--run", _shorter(Path(value))]
        elif value != declared[key].default:
            words += ["-p", f"{key}={value if isinstance(value, str) else json.dumps(value)}"]
    if out != Path("reports"):
        words += ["--out", str(out)]
    return shlex.join(words)


def _shorter(path: Path) -> str:
    """Write a path relative to the current folder where it lies below it."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


@contextlib.contextmanager
def _workspace(target: Path) -> Iterator[Path]:
    """Make a temporary folder on the target's disk, so that moving is atomic."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            prefix=f".{target.stem[:40]}-", dir=target.parent, ignore_cleanup_errors=True
        ) as folder:
            yield Path(folder).resolve()
    except OSError as error:
        raise ReportError(f"{target}: cannot write the report: {error}") from error


def _run_child(folder: Path, *, command: str, notebook: Path, timeout_s: float) -> None:
    """Execute and convert in a child process, and end it whatever happens."""
    words = [sys.executable, "-m", "evalkit.reporting._child", str(folder)]
    with (folder / "stderr.txt").open("wb") as stderr:
        child = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            env=_environment(folder, command),
            start_new_session=True,
        )
        try:
            child.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            raise ReportError(_late(notebook.stem, folder, timeout_s)) from None
        finally:
            _end(child, folder)
    _raise_for_outcome(folder, notebook.stem, child.returncode)


def _environment(folder: Path, command: str) -> dict[str, str]:
    """Return the child's environment: own Jupyter folders, no progress bars."""
    package_parent = str(Path(shipped.__file__).resolve().parent.parent)
    own = {
        "IPYTHONDIR": str(folder / "ipython"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"),
        "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_PATH": _joined(str(folder / "jupyter"), os.environ.get("JUPYTER_PATH")),
        "PYTHONPATH": _joined(package_parent, os.environ.get("PYTHONPATH")),
        "PYTHONHASHSEED": "0",
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",
        "TQDM_DISABLE": "1",
        PID_FILE: str(folder / "kernel.pid"),
        COMMAND: visible(command),
    }
    return {k: v for k, v in os.environ.items() if k != "MPLBACKEND"} | own


def _joined(first: str, rest: str | None) -> str:
    """Put a folder in front of a search path."""
    return first if not rest else f"{first}{os.pathsep}{rest}"


def _end(child: subprocess.Popen[bytes], folder: Path) -> None:
    """End the child, its kernel and what they started; all may be gone already."""
    if child.poll() is None:
        _kill_group(child.pid)
    with contextlib.suppress(OSError, ValueError):
        _kill_group(int((folder / "kernel.pid").read_text(encoding="ascii")))
    child.wait()


def _kill_group(group: int) -> None:
    """Kill every process of a group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(group, signal.SIGKILL)
        else:
            os.kill(group, signal.SIGTERM)


def _late(notebook: str, folder: Path, timeout_s: float) -> str:
    """Say that the time was up, and in which cell."""
    from evalkit.reporting._child import running_cell

    return f"{notebook}: not finished after {timeout_s:g} s, stopped{running_cell(folder)}"


def _raise_for_outcome(folder: Path, notebook: str, code: int) -> None:
    """Raise what the child says went wrong, or that it died without a word."""
    try:
        outcome = json.loads((folder / "outcome.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        tail = (folder / "stderr.txt").read_text(encoding="utf-8", errors="replace")[-2000:]
        raise ReportError(
            f"{notebook}: rendering ended without a report (exit code {code})\n{visible(tail)}"
        ) from None
    if code != 0 or outcome.get("ok") is not True:
        raise ReportError(f"{notebook}: {visible(str(outcome.get('problem')))}")
