"""The formats by name, and reading by name."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

from evalkit.errors import UsageError
from evalkit.importers.anthropic import read_anthropic
from evalkit.importers.langchain import read_langchain
from evalkit.importers.openai import read_openai
from evalkit.importers.otel import read_otel
from evalkit.importers.records import Imported
from evalkit.importers.tau_bench import read_tau_bench


@dataclass(frozen=True, slots=True)
class Format:
    """A format that can be imported."""

    name: str
    description: str
    """One line, for lists of formats."""
    read: Callable[..., Imported]


FORMATS: Final[Mapping[str, Format]] = {
    known.name: known
    for known in (
        Format("tau-bench", "tau-bench results: trajectories and rewards", read_tau_bench),
        Format("openai", "OpenAI chat messages or request/response pairs", read_openai),
        Format("anthropic", "Anthropic messages or request/response pairs", read_anthropic),
        Format("langchain", "LangChain messages or LangGraph states", read_langchain),
        Format("otel", "OpenTelemetry spans: gen_ai, OpenInference, Vercel AI SDK", read_otel),
    )
}
"""Every format by its name."""


def find_format(name: str) -> Format:
    """Find a format by name.

    Raises
    ------
    UsageError
        If there is none, with the nearest name.

    Examples
    --------
    >>> find_format("tau_bench")
    Traceback (most recent call last):
    evalkit.errors.UsageError: unknown format 'tau_bench'; did you mean 'tau-bench'?
    """
    if name in FORMATS:
        return FORMATS[name]
    near = difflib.get_close_matches(name, FORMATS, n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(FORMATS)}"
    raise UsageError(f"unknown format {name!r}; {hint}")


def read(format: str, path: str | PathLike[str], **options: Any) -> Imported:  # noqa: A002
    """Read what another tool recorded.

    Parameters
    ----------
    format
        Name of the format, one of :data:`FORMATS`.
    path
        A file or a folder.
    **options
        As the format takes: ``write_tools`` of ``tau-bench``, ``scenario_key``
        and ``trial_key`` of the chat formats, ``scenario_key`` of ``otel``.

    Returns
    -------
    Imported
        Its trials, read anew each time they are iterated.

    Raises
    ------
    UsageError
        If the format or an option is unknown.
    TraceError
        If the path cannot be read, or is of another format.
    """
    found = find_format(format)
    try:
        return found.read(Path(path), **options)
    except TypeError as error:
        if "unexpected keyword argument" in str(error) and found.read.__name__ in str(error):
            problem = str(error).partition(") ")[2]
            raise UsageError(f"format {format!r}: {problem}") from None
        raise
