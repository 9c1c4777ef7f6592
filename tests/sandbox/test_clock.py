"""The clock of a trial, and what follows it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from evalkit.sandbox.room import Room

DEFAULT = "2026-01-05T09:00:00+00:00"


def test_clock_moves_by_steps(visit):
    """It starts at a constant time, stands between replies, and moves a second with each."""
    answer = visit("look_at_clock")
    expected = [DEFAULT, DEFAULT, "2026-01-05T09:00:01+00:00", "2026-01-07T09:00:02+00:00"]
    assert answer["times"] == expected
    assert answer["local"] == 9


def test_monotonic_runs_on(visit):
    """Sleeps and timeouts take the time that they take."""
    assert visit("look_at_clock")["slept"] >= 0.01


def test_frozen_clock_moves_only_when_told(visit):
    """Replies leave it where it is; `advance` does not."""
    times = visit("look_at_clock", room=Room(frozen=True))["times"]
    assert times == [DEFAULT, DEFAULT, DEFAULT, "2026-01-07T09:00:01+00:00"]


@pytest.mark.parametrize(
    "at",
    [
        datetime(2031, 5, 6, 7, 8, 9, tzinfo=UTC),
        datetime(2031, 5, 6, 7, 8, 9),
        datetime(2031, 5, 6, 9, 8, 9, tzinfo=timezone(timedelta(hours=2))),
    ],
)
def test_clock_starts_where_the_scenario_says(visit, at):
    """A time without a zone is UTC, another zone is converted."""
    times = visit("look_at_clock", room=Room(clock=at))["times"]
    assert times[0] == "2031-05-06T07:08:09+00:00"


def test_local_time_is_that_of_the_scenarios_zone(visit):
    """Who says `TZ` in a scenario's `env` means it; the moment stays the same."""
    answer = visit("look_at_clock", room=Room(env={"TZ": "JST-9"}))
    assert (answer["times"][0], answer["local"]) == (DEFAULT, 18)


def test_clock_starts_at_a_fraction_of_a_second(visit):
    """What a scenario says is kept to the microsecond."""
    at = datetime(2031, 5, 6, 7, 8, 9, 250_001, tzinfo=UTC)
    times = visit("look_at_clock", room=Room(clock=at))["times"]
    assert times[0] == "2031-05-06T07:08:09.250001+00:00"


QUERIES = {
    "select current_timestamp": ("2026-01-05 09:00:00", "2026-01-05 10:00:00"),
    "select current_date": ("2026-01-05", "2026-01-05"),
    "select current_time": ("09:00:00", "10:00:00"),
    "select datetime('now')": ("2026-01-05 09:00:00", "2026-01-05 10:00:00"),
    "select datetime()": ("2026-01-05 09:00:00", "2026-01-05 10:00:00"),
    "select date('NOW', '+1 month')": ("2026-02-05", "2026-02-05"),
    "select strftime('%s', 'now')": ("1767603600", "1767607200"),
    "select strftime('%Y')": ("2026", "2026"),
    "select unixepoch()": (1767603600, 1767607200),
    "select datetime('2020-01-31', 'start of month', '-1 day')": ("2019-12-31 00:00:00",) * 2,
    "select datetime(null)": (None, None),
    "select date('never')": (None, None),
    "select strftime()": (None, None),
    "select julianday('now') between 2461045 and 2461046": (1, 1),
}


def test_sqlite_follows_the_clock(open_rooms):
    """SQL's own time is the trial's, on connections of a `connect` taken at import, too."""
    with open_rooms(prepare="room_entries:remember_connect") as visit:
        early, late, made = visit("ask_sqlite", ":memory:", list(QUERIES))
    assert dict(zip(QUERIES, zip(early, late, strict=True), strict=True)) == QUERIES
    assert made == ["2026-01-05 09:00:00", "2026-01-05 10:00:00"]
