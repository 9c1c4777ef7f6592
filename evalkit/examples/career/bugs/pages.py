"""Mistakes with pages and postings."""

# ruff: noqa: N801 - the classes are named like the mistakes that they are

from __future__ import annotations

import logging
from collections import defaultdict
from datetime import UTC, datetime
from typing import Final

import httpx2

from evalkit.examples.career.bot import Copilot
from evalkit.examples.career.fetching import Fetcher, FetchProblem, Page
from evalkit.examples.career.saving import Saver
from evalkit.examples.career.storage import Job, Store
from evalkit.examples.career.tools import NotPossible, Toolbox
from evalkit.examples.career.turns import Turn

_logger: Final = logging.getLogger(__name__)
_STARTED_AT: Final = datetime.now(UTC).isoformat(timespec="seconds")


class http_error_as_generic(Copilot):
    """Has one sentence for every page that a site refuses, whatever its status says."""

    class toolbox_type(Toolbox):
        """Tells no category where there is a status."""

        def save_job(self, turn: Turn, url: str) -> str:
            """Forget what the status means."""
            try:
                return super().save_job(turn, url)
            except NotPossible as problem:
                if getattr(problem.__cause__, "status", None):
                    raise NotPossible("Not saved. Something went wrong.") from problem
                raise


class unsupported_host_as_generic(Copilot):
    """Reports a site that it does not know as if that site were down."""

    class fetcher_type(Fetcher):
        """Knows one category less."""

        def check(self, url: str, *, is_redirect: bool) -> None:
            """Take one problem for another."""
            try:
                super().check(url, is_redirect=is_redirect)
            except FetchProblem as problem:
                if problem.category == "unsupported_host":
                    raise FetchProblem("unreachable") from problem
                raise


class swallowed_error(Copilot):
    """Goes on when the line drops, as if the posting had been saved."""

    class toolbox_type(Toolbox):
        """Says nothing of what went wrong."""

        def save_job(self, turn: Turn, url: str) -> str:
            """Say that all is well."""
            try:
                return super().save_job(turn, url)
            except NotPossible:
                return "Done."


class download_buffered_whole(Copilot):
    """Reads a page to its end, and looks then whether that was too much."""

    class fetcher_type(Fetcher):
        """Measures afterwards."""

        def read(self, response: httpx2.Response, *, due: float) -> str:  # noqa: ARG002
            """Read everything."""
            body = response.read()
            if len(body) > self.max_bytes:
                _logger.warning("fetch: stopped after %d bytes", len(body))
                raise FetchProblem("too_large")
            return body.decode(errors="replace")


class follows_redirects(Copilot):
    """Lets its HTTP client follow redirects, wherever they lead."""

    class fetcher_type(Fetcher):
        """Checks the first address only."""

        def get(self, url: str, *, due: float) -> Page | str:
            """Fetch the page from where it is now."""
            self.client.follow_redirects = True
            return super().get(url, due=due)


class saves_half(Copilot):
    """Saves the job first, and fetches its page then."""

    class saver_type(Saver):
        """Leaves an empty job behind when there is no page."""

        def save(self, turn: Turn, url: str) -> Job:
            """Make the row before anything is known."""
            self.store.save_job(turn.user_id, url, title="", posting="")
            page = self.fetcher.fetch(url)
            self.store.db.execute("UPDATE jobs SET posting = ? WHERE url = ?", (page.text, url))
            job = self.store.job_at(turn.user_id, url)
            assert job is not None
            return job


class save_lost_at_restart(Copilot):
    """Keeps in memory which postings are to be saved."""

    class store_type(Store):
        """Writes none of them down."""

        def __init__(self, path: str) -> None:
            super().__init__(path)
            self._pending: dict[int, list[str]] = defaultdict(list)

        def add_pending(self, user_id: int, url: str) -> None:
            """Note it here."""
            self._pending[user_id].append(url)

        def pending(self, user_id: int) -> list[str]:
            """Give what was noted since the start."""
            return self._pending[user_id]

        def drop_pending(self, user_id: int, url: str) -> None:
            """Forget one."""
            self._pending[user_id] = [one for one in self._pending[user_id] if one != url]


class ids_reused(Copilot):
    """Counts its jobs itself, and begins at 1 whenever it is started."""

    class store_type(Store):
        """Does not look which numbers there are."""

        _n_jobs = 0

        def save_job(self, user_id: int, url: str, *, title: str, posting: str) -> Job:
            """Take the next number."""
            self._n_jobs += 1
            row = (self._n_jobs, user_id, url, title, posting, self.now())
            self.db.execute("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?, ?)", row)
            job = self.job_at(user_id, url)
            assert job is not None
            return job


class clock_read_at_import(Copilot):
    """Looked at the clock once, when it was imported."""

    class store_type(Store):
        """Has the time that it was then."""

        def now(self) -> str:
            """Say what time it was."""
            return _STARTED_AT
