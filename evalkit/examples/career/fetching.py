"""Fetching the page of a posting: from known sites only, bounded, and honest about failure.

Whatever goes wrong has one of few categories, which are safe to tell: none holds
anything that the site has said.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Collection
from typing import Final, Literal, NamedTuple
from urllib.parse import urljoin, urlsplit

import httpx2

from .downloads import AS_IT_IS, Packed, TooLarge, TooSlow, read_bounded

Category = Literal[
    "bad_address",
    "unsupported_host",
    "redirected_away",
    "not_found",
    "not_allowed",
    "site_error",
    "too_large",
    "not_a_page",
    "timeout",
    "unreachable",
]
TOLD: Final[dict[Category, str]] = {
    "bad_address": "this is no address of a page; it should begin with https://",
    "unsupported_host": "I cannot read postings of this site",
    "redirected_away": "the page leads to another site, which I do not follow",
    "not_found": "there is no such posting, or no longer",
    "not_allowed": "the site does not let me read it",
    "site_error": "the site has an error at the moment",
    "too_large": "the page is larger than what I read",
    "not_a_page": "what is there is no page of text",
    "timeout": "the site did not answer in time",
    "unreachable": "the site could not be reached",
}
"""What the user is told."""
PASSING: Final = frozenset({"site_error", "timeout", "unreachable"})
"""Categories of what may be over when one tries again."""

MAX_REDIRECTS: Final = 3
_PAGES: Final = ("text/html", "text/plain", "application/xhtml+xml")

_logger: Final = logging.getLogger(__name__)


class FetchProblem(Exception):
    """A page could not be fetched."""

    def __init__(self, category: Category, status: int | None = None) -> None:
        super().__init__(category)
        self.category: Category = category
        self.status = status

    @property
    def is_passing(self) -> bool:
        """Whether it may go well later."""
        return self.category in PASSING

    def __str__(self) -> str:
        answered = f" (status {self.status})" if self.status else ""
        return f"{self.category}: {TOLD[self.category]}{answered}"


class Page(NamedTuple):
    """What was found."""

    url: str
    """Where, after redirects."""
    text: str


class Fetcher:
    """Fetches pages.

    Parameters
    ----------
    client
        Makes the requests; it must not follow redirects by itself.
    hosts
        The only ones that are asked.
    max_bytes
        Of one page.
    timeout_s
        For one page, redirects included.
    """

    def __init__(
        self, client: httpx2.Client, hosts: Collection[str], *, max_bytes: int, timeout_s: float
    ) -> None:
        self.client = client
        self.hosts = frozenset(hosts)
        self.max_bytes = max_bytes
        self.timeout_s = timeout_s

    def fetch(self, url: str) -> Page:
        """Fetch a page.

        Raises
        ------
        FetchProblem
            If that does not go well.
        """
        try:
            page = self.follow(url)
        except FetchProblem as problem:
            _logger.warning("fetch: %s: %s", _host(url), problem)
            raise
        _logger.info("fetch: %s: %d characters", _host(url), len(page.text))
        return page

    def follow(self, url: str) -> Page:
        """Fetch a page, wherever on the known sites it has moved."""
        due = time.monotonic() + self.timeout_s
        for n_redirects in range(MAX_REDIRECTS + 1):
            self.check(url, is_redirect=n_redirects > 0)
            found = self.get(url, due=due)
            if isinstance(found, Page):
                return found
            url = urljoin(url, found)
        raise FetchProblem("redirected_away")

    def check(self, url: str, *, is_redirect: bool) -> None:
        """Refuse addresses that are none of ours."""
        try:
            parts = urlsplit(url)
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise FetchProblem("bad_address") from error
        if parts.scheme != "https" or not host or parts.username or port not in (None, 443):
            raise FetchProblem("redirected_away" if is_redirect else "bad_address")
        if host not in self.hosts:
            raise FetchProblem("redirected_away" if is_redirect else "unsupported_host")

    def get(self, url: str, *, due: float) -> Page | str:
        """Make one request; give the page, or the address that it has moved to."""
        timeout = max(0.1, due - time.monotonic())
        try:
            with self.client.stream("GET", url, headers=AS_IT_IS, timeout=timeout) as response:
                if response.has_redirect_location:
                    return response.headers["location"]
                _check_answer(response)
                return Page(url, self.read(response, due=due))
        except (httpx2.TimeoutException, TooSlow) as error:
            raise FetchProblem("timeout") from error
        except httpx2.TransportError as error:
            raise FetchProblem("unreachable") from error
        except httpx2.InvalidURL as error:
            raise FetchProblem("bad_address") from error

    def read(self, response: httpx2.Response, *, due: float) -> str:
        """Read the body of an answer, within bounds."""
        try:
            body = read_bounded(response, most=self.max_bytes, due=due)
        except TooLarge as problem:
            _logger.warning("fetch: %s", problem)
            raise FetchProblem("too_large") from problem
        except Packed as problem:
            raise FetchProblem("not_a_page") from problem
        return body.decode(_charset(response), errors="replace")


def _check_answer(response: httpx2.Response) -> None:
    """Say what a status means, and look whether there is a page at all."""
    match response.status_code:
        case 200:
            pass
        case 404 | 410 as status:
            raise FetchProblem("not_found", status)
        case status if status >= 500:
            raise FetchProblem("site_error", status)
        case status:
            raise FetchProblem("not_allowed", status)
    if response.headers.get("content-type", "").partition(";")[0].strip() not in _PAGES:
        raise FetchProblem("not_a_page")


def _charset(response: httpx2.Response) -> str:
    named = response.charset_encoding or "utf-8"
    try:
        "".encode(named)
    except LookupError:
        return "utf-8"
    return named


def _host(url: str) -> str:
    try:
        return urlsplit(url).hostname or "?"
    except ValueError:
        return "?"
