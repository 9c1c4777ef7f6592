"""The dialogue that both sides record: three model calls, two tool calls, one answer.

Standard library only, because either side imports it in an environment of its own.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple


class Call(NamedTuple):
    """One tool call, and what the tool gives back."""

    name: str
    args: dict[str, Any]
    result: dict[str, Any]


CALLS: Final = (
    Call(
        "search_flights",
        {"origin": "BER", "destination": "LIS", "date": "2026-03-01"},
        {"flights": [{"id": f"TP53{n}", "price": 120 + 17 * n, "seats": 9 - n} for n in range(4)]},
    ),
    Call(
        "book_flight",
        {"flight_id": "TP531", "passenger": "Ada Lovelace", "seat": "12A"},
        {"booking": "QX7K2M", "status": "confirmed", "price": 137},
    ),
)
ANSWER: Final = "I booked flight TP531 to Lisbon for Ada Lovelace; the booking is QX7K2M."
NEEDLE: Final = "booking is QX7K2M"
"""What the answer must contain."""
MODEL: Final = "mock"
N_INPUT_TOKENS, N_OUTPUT_TOKENS = 210, 40


def question(number: int) -> str:
    """Give the user's words in one sample; no two samples are the same."""
    return f"Order {number}: book the second-cheapest flight from Berlin to Lisbon on 1 March 2026."


def result_text(call: Call) -> str:
    """Give a tool's result as the text that a model gets."""
    return json.dumps(call.result)
