"""The agent's own state, told after each turn by an agent that has ``state()``."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from evalkit.agents import BadReplyError, Conversation
from evalkit.errors import LedgerError
from evalkit.ledger import JSON, MAX_DEPTH, encode
from evalkit.matching.values import json_type, show

MAX_STATE_BYTES: Final = 1_000_000
_MAX_VALUES: Final = 500_000


def state_told(conversation: Conversation) -> dict[str, JSON]:
    """Ask an agent for its state.

    Returns
    -------
    dict
        ``state``, or ``problem`` where it raised, or gave what is no JSON.

    Raises
    ------
    BadReplyError
        If the agent broke off the conversation over it.
    """
    try:
        state = conversation.state()
    except BadReplyError:
        raise
    except Exception as error:
        return {"problem": f"state() raised {type(error).__name__}: {_message(error)}"}
    flaw = _flaw(state)
    if flaw:
        return {"problem": f"state() gave no JSON: {flaw}"}
    try:
        n_bytes = len(encode(state))
    except LedgerError as error:
        return {"problem": f"state() gave what {error}"}
    if n_bytes > MAX_STATE_BYTES:
        return {"problem": f"state() gave {n_bytes:,} bytes, at most {MAX_STATE_BYTES:,} are kept"}
    return {"state": state}


def _message(error: Exception) -> str:
    try:
        return str(error)[:1000]
    except Exception:  # an exception whose __str__ raises is the agent's as well
        return "(its message cannot be shown)"


def _flaw(state: Any) -> str:
    """Say what of a value is no JSON, and where; empty if all of it is."""
    waiting = [("it", state, 0)]
    n_seen = 0
    while waiting:
        path, value, depth = waiting.pop()
        n_seen += 1
        if n_seen > _MAX_VALUES:  # what stands in it twice counts twice, and so on
            return f"it has more than {_MAX_VALUES:,} values"
        if depth > MAX_DEPTH:
            return f"it is nested more than {MAX_DEPTH} levels deep, or contains itself"
        if isinstance(value, Mapping):
            odd = next((key for key in value if not isinstance(key, str)), None)
            if odd is not None:
                return f"{path} has the key {show(odd)}, and keys are texts"
            waiting += [(f"{path}.{key}", one, depth + 1) for key, one in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [(f"{path}[{n}]", one, depth + 1) for n, one in enumerate(value)]
        elif isinstance(value, float) and not math.isfinite(value):
            return f"{path} is {value}"
        elif not isinstance(value, str | int | float | None):
            return f"{path} is a {json_type(value)}"
    return ""
