"""Replies turned into their opposite."""

from __future__ import annotations

import pytest

from evalkit.mutation.contradiction import contradicted

TABLE = {
    "claim": ("Booked AA123 for Friday.", "Did not book AA123 for Friday."),
    "claim inside": ("I have news: I booked it.", "I have news: I did not book it."),
    "saved": ("I saved it.", "I did not save it."),
    "sent": ("We sent the mail.", "We did not send the mail."),
    "cancelled": ("I cancelled it.", "I did not cancel it."),
    "canceled": ("I canceled it.", "I did not cancel it."),
    "denial": ("It rains, so I did not book AA200.", "It rains, so I booked AA200."),
    "short denial": ("I didn't send it.", "I sent it."),
    "did not yet": ("I did not yet pay.", "I paid."),
    "at the start": ("Did not copy it.", "Copied it."),
    "cannot": ("I cannot cancel it.", "I can cancel it."),
    "can't": ("Can't be done.", "Can be done."),
    "will not": ("It will not rain.", "It will rain."),
    "isn't": ("It isn't raining.", "It is raining."),
    "is no": ("There is no station.", "There is a station."),
    "two denials": ("I could not finish. I did not book.", "I could finish. I booked."),
    "state": ("It is clear in Denver.", "It is not clear in Denver."),
    "passive": ("AA123 is booked.", "AA123 is not booked."),
    "still": ("AA123 is still booked.", "AA123 is not still booked."),
}


@pytest.mark.parametrize(("text", "opposite"), TABLE.values(), ids=TABLE)
def test_reply_is_turned_round(text: str, opposite: str) -> None:
    """Denials become claims; where there is none, the first claim becomes a denial."""
    assert contradicted(text) == opposite


@pytest.mark.parametrize("text", ["", "Hello!", "Guten Tag", "Which one?", "42"])
def test_what_no_rule_fits_has_no_opposite(text: str) -> None:
    """Nothing is made up where English has no rule here."""
    assert contradicted(text) is None
