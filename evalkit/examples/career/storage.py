"""What the copilot knows, in one SQLite file: profiles, facts, jobs, what was said.

Everything that must happen together happens in one transaction, and whatever can be
asked for twice (an update that arrives again after a crash) has the same effect twice.
Which updates were answered is the business of :mod:`~evalkit.examples.career.updates`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

SCHEMA: Final = """\
CREATE TABLE IF NOT EXISTS profiles (
    user_id INTEGER PRIMARY KEY,
    stage TEXT NOT NULL,
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    location TEXT NOT NULL,
    skills TEXT NOT NULL,
    resume TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS facts (
    user_id INTEGER NOT NULL,
    topic TEXT NOT NULL,
    fact TEXT NOT NULL,
    noted_at TEXT NOT NULL,
    PRIMARY KEY (user_id, topic)
);
CREATE TABLE IF NOT EXISTS jobs (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id INTEGER NOT NULL,
    url TEXT NOT NULL,
    title TEXT NOT NULL,
    posting TEXT NOT NULL,
    saved_at TEXT NOT NULL,
    UNIQUE (user_id, url)
);
CREATE TABLE IF NOT EXISTS pending_saves (
    user_id INTEGER NOT NULL,
    url TEXT NOT NULL,
    asked_at TEXT NOT NULL,
    PRIMARY KEY (user_id, url)
);
CREATE TABLE IF NOT EXISTS analyses (
    job_id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL,
    report TEXT NOT NULL,
    made_at TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY,
    user_id INTEGER NOT NULL,
    thread_id TEXT NOT NULL,
    role TEXT NOT NULL,
    content TEXT NOT NULL,
    said_at TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS messages_of_thread ON messages (thread_id, id);
CREATE TABLE IF NOT EXISTS updates (
    update_id INTEGER PRIMARY KEY,
    chat_id INTEGER NOT NULL,
    state TEXT NOT NULL,
    reply TEXT,
    seen_at TEXT NOT NULL
);
"""

_ABOUT_USERS: Final = ("profiles", "facts", "jobs", "pending_saves", "analyses", "messages")


@dataclass(frozen=True, slots=True)
class Profile:
    """Who a user is."""

    user_id: int
    stage: str
    name: str = ""
    role: str = ""
    location: str = ""
    skills: str = ""
    resume: str = ""
    """Its text, without contact data; empty until there is one."""


class Job(NamedTuple):
    """A posting that was saved."""

    id: int
    url: str
    title: str
    posting: str
    saved_at: datetime


class Store:
    """The database of one copilot.

    Parameters
    ----------
    path
        The SQLite file; it is made if there is none.
    """

    def __init__(self, path: str) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA secure_delete = ON")  # "delete my data" means the bytes, too
        self.db.executescript(SCHEMA)

    def close(self) -> None:
        """Close the file."""
        self.db.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Let everything inside happen, or nothing of it."""
        self.db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self.db.execute("ROLLBACK")
            raise
        self.db.execute("COMMIT")

    def now(self) -> str:
        """Say what time it is, as it is stored."""
        return datetime.now(UTC).isoformat(timespec="seconds")

    # --- profiles and facts -----------------------------------------------------------------

    def profile(self, user_id: int) -> Profile | None:
        """Look a user up."""
        query = "SELECT * FROM profiles WHERE user_id = ?"
        row = self.db.execute(query, (user_id,)).fetchone()
        return row and Profile(*row)

    def put_profile(self, profile: Profile) -> None:
        """Keep what a user's profile is now."""
        statement = "INSERT OR REPLACE INTO profiles VALUES (?, ?, ?, ?, ?, ?, ?)"
        self.db.execute(statement, astuple(profile))

    def remember(self, user_id: int, topic: str, fact: str) -> None:
        """Keep a fact; what was known of the topic is replaced."""
        statement = "INSERT OR REPLACE INTO facts VALUES (?, ?, ?, ?)"
        self.db.execute(statement, (user_id, topic, fact, self.now()))

    def facts(self, user_id: int) -> dict[str, str]:
        """Give what is to be remembered, by topic."""
        query = "SELECT topic, fact FROM facts WHERE user_id = ? ORDER BY topic"
        return dict(self.db.execute(query, (user_id,)).fetchall())

    # --- jobs -------------------------------------------------------------------------------

    def save_job(self, user_id: int, url: str, *, title: str, posting: str) -> Job:
        """Save a posting, once: the same address again changes nothing."""
        statement = (
            "INSERT INTO jobs (user_id, url, title, posting, saved_at) VALUES (?, ?, ?, ?, ?) "
            "ON CONFLICT (user_id, url) DO NOTHING"
        )
        self.db.execute(statement, (user_id, url, title, posting, self.now()))
        job = self.job_at(user_id, url)
        assert job is not None
        return job

    def job_at(self, user_id: int, url: str) -> Job | None:
        """Look up a posting of a user's by its address."""
        return self._job("url", user_id, url)

    def job(self, user_id: int, job_id: int) -> Job | None:
        """Look up a posting of a user's by its number."""
        return self._job("id", user_id, job_id)

    def jobs(self, user_id: int) -> list[Job]:
        """Give all postings of a user's, in the order in which they were saved."""
        query = "SELECT id, url, title, posting, saved_at FROM jobs WHERE user_id = ? ORDER BY id"
        return [_job_of(row) for row in self.db.execute(query, (user_id,))]

    def _job(self, column: str, user_id: int, value: int | str) -> Job | None:
        query = (
            f"SELECT id, url, title, posting, saved_at FROM jobs WHERE user_id = ? AND {column} = ?"
        )
        row = self.db.execute(query, (user_id, value)).fetchone()
        return row and _job_of(row)

    def put_analysis(self, user_id: int, job_id: int, report: str) -> None:
        """Keep the newest analysis of a job."""
        statement = "INSERT OR REPLACE INTO analyses VALUES (?, ?, ?, ?)"
        self.db.execute(statement, (job_id, user_id, report, self.now()))

    # --- saves that are to be made ----------------------------------------------------------

    def add_pending(self, user_id: int, url: str) -> None:
        """Note that a posting is to be saved."""
        statement = "INSERT OR IGNORE INTO pending_saves VALUES (?, ?, ?)"
        self.db.execute(statement, (user_id, url, self.now()))

    def pending(self, user_id: int) -> list[str]:
        """Give the addresses that are to be saved, the oldest first."""
        query = "SELECT url FROM pending_saves WHERE user_id = ? ORDER BY asked_at, url"
        return [url for (url,) in self.db.execute(query, (user_id,))]

    def drop_pending(self, user_id: int, url: str) -> None:
        """Note that nothing is to be done about a posting any more."""
        statement = "DELETE FROM pending_saves WHERE user_id = ? AND url = ?"
        self.db.execute(statement, (user_id, url))

    # --- what was said ----------------------------------------------------------------------

    def add_message(self, user_id: int, thread_id: str, *, role: str, content: str) -> None:
        """Keep what was said in a thread."""
        statement = (
            "INSERT INTO messages (user_id, thread_id, role, content, said_at) "
            "VALUES (?, ?, ?, ?, ?)"
        )
        self.db.execute(statement, (user_id, thread_id, role, content, self.now()))

    def messages(self, thread_id: str, *, most: int) -> list[tuple[str, str]]:
        """Give role and content of what was last said in a thread, in its order."""
        query = "SELECT role, content FROM messages WHERE thread_id = ? ORDER BY id DESC LIMIT ?"
        return self.db.execute(query, (thread_id, most)).fetchall()[::-1]

    # --- an end -----------------------------------------------------------------------------

    def forget(self, user_id: int) -> None:
        """Delete everything about a user."""
        for table in _ABOUT_USERS:
            self.db.execute(f"DELETE FROM {table} WHERE user_id = ?", (user_id,))


def _job_of(row: tuple[Any, ...]) -> Job:
    job_id, url, title, posting, saved_at = row
    return Job(job_id, url, title, posting, datetime.fromisoformat(saved_at))
