"""Fetching pages over real sockets: bounds hold while the page comes, and failures have names."""

from __future__ import annotations

import gzip
import time
from typing import Any

import httpx2
import pytest

from evalkit.examples.career.fetching import Fetcher, FetchProblem
from evalkit.examples.career.postings import read_posting

HOST = "https://jobs.example.test"
MOST = 50_000


@pytest.fixture
def fetcher(to_site: httpx2.Client) -> Fetcher:
    """Make a fetcher of small pages, without much patience."""
    return Fetcher(to_site, ["jobs.example.test"], max_bytes=MOST, timeout_s=0.5)


def answer(
    status: int = 200, body: bytes = b"<p>Hi.", *, kind: str = "text/html", **headers: str
) -> Any:
    """Prepare an answer with these headers."""

    def give(handler: Any) -> None:
        handler.send_response(status)
        handler.send_header("content-type", kind)
        for name, value in {"content_length": str(len(body)), **headers}.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(body)

    return give


def hang_up(handler: Any) -> None:
    """Close without an answer."""
    handler.close_connection = True


def stay_silent(handler: Any) -> None:
    """Answer when nobody waits any more."""
    time.sleep(0.8)
    handler.close_connection = True


def drip(handler: Any) -> None:
    """Send a little at a time, so that no single wait is long."""
    handler.send_response(200)
    handler.send_header("content-type", "text/html")
    handler.send_header("transfer-encoding", "chunked")
    handler.end_headers()
    for _ in range(10):
        handler.wfile.write(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
        time.sleep(0.3)


def test_page_is_fetched(fetcher: Fetcher, around: Any) -> None:
    """In its own encoding."""
    around.pages["/x"] = answer(body="<p>Büro".encode("latin-1"), kind="text/html; charset=latin-1")
    assert fetcher.fetch(f"{HOST}/x").text == "<p>Büro"


def test_redirect_is_followed_on_the_site(fetcher: Fetcher, around: Any) -> None:
    """Wherever the page is found, there it is."""
    around.pages["/old"] = answer(302, location="/posting/17")
    assert fetcher.fetch(f"{HOST}/old").url == f"{HOST}/posting/17"


@pytest.mark.parametrize(
    ("page", "category"),
    [
        (404, "not_found"),
        (410, "not_found"),
        (403, "not_allowed"),
        (429, "not_allowed"),
        (500, "site_error"),
        (503, "site_error"),
        (answer(kind="application/pdf"), "not_a_page"),
        (answer(content_encoding="gzip", body=gzip.compress(b"x" * 10**7)), "not_a_page"),
        (answer(302, location="https://evil.example.test/"), "redirected_away"),
        (answer(302, location="http://jobs.example.test/"), "redirected_away"),
        (answer(302, location="/x"), "redirected_away"),
        (answer(body=b"x" * (MOST + 1)), "too_large"),
        (answer(content_length="1000000000"), "too_large"),
        (hang_up, "unreachable"),
        (stay_silent, "timeout"),
        (drip, "timeout"),
    ],
    ids=["404", "410", "403", "429", "500", "503", "pdf", "packed", "away", "to http", "circle",
         "large", "declared", "hang up", "silent", "drip"],
)  # fmt: skip
def test_failure_has_a_category(fetcher: Fetcher, around: Any, page: Any, category: str) -> None:
    """It is one of few words, and tells nothing that the site has said."""
    around.pages["/x"] = page
    with pytest.raises(FetchProblem) as caught:
        fetcher.fetch(f"{HOST}/x")
    assert caught.value.category == category
    assert "no" not in str(caught.value).split("(status")[-1] or category != "not_found"


@pytest.mark.parametrize(
    ("url", "category"),
    [
        ("https://evil.example.test/x", "unsupported_host"),
        ("https://jobs.example.test.evil.example.test/x", "unsupported_host"),
        ("https://jobs.example.test@evil.example.test/x", "bad_address"),
        ("http://jobs.example.test/x", "bad_address"),
        ("https://jobs.example.test:8443/x", "bad_address"),
        ("https://jobs.example.test:x/", "bad_address"),
        ("https://[::1/x", "bad_address"),
        ("file:///etc/passwd", "bad_address"),
        ("jobs.example.test/x", "bad_address"),
        ("", "bad_address"),
    ],
)
def test_address_is_checked_before_anything_is_asked(
    fetcher: Fetcher, around: Any, url: str, category: str
) -> None:
    """Only pages of known sites are fetched, by https."""
    with pytest.raises(FetchProblem) as caught:
        fetcher.fetch(url)
    assert (caught.value.category, around.n_fetched) == (category, 0)


def test_download_stops_on_the_way(fetcher: Fetcher, around: Any) -> None:
    """A body without an end is not read to its end."""
    n_sent = [0]

    def endless(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/html")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for _ in range(2_000):
            handler.wfile.write(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
            n_sent[0] += 0x10000

    around.pages["/x"] = endless
    with pytest.raises(FetchProblem, match="too_large"):
        fetcher.fetch(f"{HOST}/x")
    assert n_sent[0] < 50_000_000  # what the sockets hold, and not 130 MB


@pytest.mark.parametrize(
    ("page", "title", "text"),
    [
        ("<title> A \n B </title><h1>C</h1><p>D<br>E", "A B", "C\nD\nE"),
        ("<p>Only text", "Only text", "Only text"),
        ("<script>x</script><style>y</style>", "Untitled", ""),
        ("&lt;b&gt; &amp; <b>so</b>", "<b> & so", "<b> & so"),
        ("<p></script>still seen", "still seen", "still seen"),
    ],
)
def test_posting_is_what_a_reader_sees(page: str, title: str, text: str) -> None:
    """Title and text, without what is no text."""
    assert read_posting(page) == (title, text)


def test_posting_is_bounded() -> None:
    """Neither a title nor a text may fill a prompt."""
    title, text = read_posting("<title>" + "t" * 1000 + "</title>" + "x" * 100_000)
    assert (len(title), len(text)) == (120, 8_000)
