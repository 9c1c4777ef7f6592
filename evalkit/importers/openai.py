"""Files of OpenAI chat messages, Responses items, or request/response pairs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from evalkit.importers.conversations import Keys, Vendor, read_conversations
from evalkit.importers.records import Imported
from evalkit.messages import openai

_VENDOR: Final = Vendor("openai", openai.trace_of_messages, openai.trace_of_exchange)


def read_openai(
    path: Path, *, scenario_key: str = "scenario", trial_key: str = "trial"
) -> Imported:
    """Read conversations in OpenAI's words.

    Parameters
    ----------
    path
        JSON lines (one conversation a line), JSON, or a folder of such files; the
        shapes are listed in :mod:`evalkit.importers.conversations`.
    scenario_key, trial_key
        Keys under which a record names its scenario and its trial.

    Raises
    ------
    TraceError
        If the file cannot be read or is of another format.
    """
    return read_conversations(_VENDOR, path, Keys(scenario_key, trial_key))
