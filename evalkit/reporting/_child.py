"""Execute and convert one notebook: what the child process of a render does.

The only module that imports papermill and nbconvert. It reads ``job.json`` in
the folder that it is given and writes ``report.html`` and ``outcome.json``.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from evalkit.markup import visible

TEMPLATES: Final = Path(__file__).resolve().parent.parent / "_templates"
TEMPLATE: Final = "evalkit_report"

_SOURCE_LINES: Final = 12
_EVALUE: Final = 2_000


def main(folder: Path) -> int:
    """Do the job in ``folder`` and say how it ended."""
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    try:
        _install_kernel(folder)
        _write(folder / "report.html", _convert(_execute(job, folder), Path(job["notebook"])))
        outcome: dict[str, Any] = {"ok": True}
    except Exception as error:
        outcome = {"ok": False, "problem": _problem(error, folder)}
    _write(folder / "outcome.json", json.dumps(outcome))
    return 0 if outcome["ok"] else 1


def _write(path: Path, text: str) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _install_kernel(folder: Path) -> None:
    """Describe a kernel of this interpreter; JUPYTER_PATH makes it the first found."""
    spec = folder / "jupyter" / "kernels" / "python3"
    spec.mkdir(parents=True)
    words = [sys.executable, "-m", "evalkit.reporting._kernel", "-f", "{connection_file}"]
    content = {"argv": words, "display_name": "Python 3", "language": "python"}
    (spec / "kernel.json").write_text(json.dumps(content), encoding="utf-8")


def _execute(job: dict[str, Any], folder: Path) -> Any:
    """Run every cell; return the executed notebook."""
    import nbformat
    import papermill

    notebook = nbformat.read(job["notebook"], as_version=4)  # type: ignore[no-untyped-call]
    executed = papermill.execute_notebook(
        notebook,
        # papermill formats its paths, so braces must be doubled
        str(folder / "executed.ipynb").replace("{", "{{").replace("}", "}}"),
        parameters=job["parameters"],
        kernel_name="python3",
        cwd=job["cwd"],
        progress_bar=False,
        log_output=False,
        start_timeout=120,
        extra_arguments=["--log-level=ERROR"],
    )
    _refuse_unfinished(executed)
    return executed


def _refuse_unfinished(executed: Any) -> None:
    """Refuse a notebook that ended early, as one that calls ``exit`` does."""
    for number, cell in enumerate(executed.cells, start=1):
        if cell.cell_type == "code" and cell.source.strip() and not cell.execution_count:
            raise RuntimeError(f"the kernel stopped before cell {number - 1} of the notebook")


def _convert(executed: Any, path: Path) -> str:
    """Convert an executed notebook with evalkit's own template."""
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(  # type: ignore[no-untyped-call]
        template_name=TEMPLATE,
        extra_template_basedirs=[str(TEMPLATES)],
        exclude_anchor_links=True,
        language_code="en",
    )
    css = "\n".join(sheet.read_text(encoding="utf-8") for sheet in _style_sheets())
    resources = {"evalkit": {"title": _title(executed, path), "css": css}}
    html, _ = exporter.from_notebook_node(executed, resources=resources)
    return str(html)


def _style_sheets() -> list[Path]:
    """List the template's style sheets."""
    return [TEMPLATES / TEMPLATE / name for name in ("views.css", "page.css")]


def _title(executed: Any, path: Path) -> str:
    """Return the notebook's first heading and what it is about."""
    first = next((c.source for c in executed.cells if c.cell_type == "markdown"), "")
    heading = first.strip().partition("\n")[0].lstrip("# ") or path.stem
    run = Path(str(executed.metadata.papermill.parameters.get("run") or "")).name
    return visible(f"{heading}: {run}" if run else heading)


def _problem(error: Exception, folder: Path) -> str:
    """Say what went wrong, in which cell, with the cell's first lines."""
    from papermill.exceptions import PapermillExecutionError

    if isinstance(error, PapermillExecutionError):
        message = f"{error.ename}: {error.evalue}"
    else:
        message = f"{type(error).__name__}: {error}"
    return message[:_EVALUE].rstrip() + running_cell(folder)


def running_cell(folder: Path) -> str:
    """Name the cell that ran last and quote it; nothing if none has run."""
    try:
        saved = json.loads((folder / "executed.ipynb").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    cells = [cell for cell in saved["cells"] if "papermill-error-cell-tag" not in _tags(cell)]
    started = [i for i, cell in enumerate(cells) if _started(cell)]
    if not started:
        return ""
    injected = sum("injected-parameters" in _tags(cell) for cell in cells[: started[-1] + 1])
    source = _trimmed("".join(cells[started[-1]]["source"]))
    return f"\nin cell {started[-1] + 1 - injected} of the notebook:\n{source}"


def _tags(cell: dict[str, Any]) -> list[str]:
    """Return a cell's tags."""
    return list(cell["metadata"].get("tags", []))


def _started(cell: dict[str, Any]) -> bool:
    """Tell whether a code cell was started; the saved status does not say."""
    times = cell["metadata"].get("papermill", {})
    return cell["cell_type"] == "code" and bool(times.get("start_time"))


def _trimmed(source: str) -> str:
    """Indent the first lines of a cell."""
    lines = source.splitlines()
    more = [f"... {len(lines) - _SOURCE_LINES} more lines"] if len(lines) > _SOURCE_LINES else []
    return "\n".join(f"    {line}" for line in [*lines[:_SOURCE_LINES], *more])


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
