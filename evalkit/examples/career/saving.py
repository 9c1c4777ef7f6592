"""Saving a posting: what was asked for is noted first, so that no crash can lose it."""

from __future__ import annotations

from functools import partial
from typing import Final

from .fetching import Fetcher, FetchProblem
from .postings import read_posting
from .storage import Job, Store
from .turns import Turn

MAX_URL_CHARS: Final = 500


class Saver:
    """Saves postings.

    Parameters
    ----------
    store
        Where they are saved.
    fetcher
        Gets their pages.
    """

    def __init__(self, store: Store, fetcher: Fetcher) -> None:
        self.store = store
        self.fetcher = fetcher

    def intend(self, turn: Turn, url: str) -> None:
        """Note that a posting is to be saved later."""
        self.store.add_pending(turn.user_id, url)

    def save(self, turn: Turn, url: str) -> Job:
        """Save a posting; one that is saved already stays as it is.

        Raises
        ------
        FetchProblem
            If its page cannot be had. Where that may pass, it stays noted.
        """
        if len(url) > MAX_URL_CHARS:
            raise FetchProblem("bad_address")
        settle = partial(self.store.drop_pending, turn.user_id, url)
        job = self.store.job_at(turn.user_id, url)
        if job is None:
            self.intend(turn, url)
            try:
                page = self.fetcher.fetch(url)
            except FetchProblem as problem:
                if not problem.is_passing:
                    turn.later(settle)
                raise
            title, posting = read_posting(page.text)
            job = self.store.save_job(turn.user_id, url, title=title, posting=posting)
            turn.saved.append(job)
        turn.later(settle)
        return job

    def save_pending(self, turn: Turn) -> list[str]:
        """Save all that is noted; say of each what became of it."""
        return [self._account(turn, url) for url in self.store.pending(turn.user_id)]

    def _account(self, turn: Turn, url: str) -> str:
        try:
            job = self.save(turn, url)
        except FetchProblem as problem:
            kept = " I keep it, to try again." if problem.is_passing else ""
            return f"I could not save {url}: {problem}.{kept}"
        return f"I saved {job.title} as job {job.id}."
