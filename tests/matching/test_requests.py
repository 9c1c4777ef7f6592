"""Which requests a pattern means."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalkit.matching.addresses import plain_url
from evalkit.matching.requests import request_matches

X = "https://a.example.test/x"


@pytest.mark.parametrize(
    ("pattern", "method", "url", "fits"),
    [
        (f"GET {X}", "GET", X, True),
        (f"GET {X}", "POST", X, False),
        (f"* {X}", "DELETE", X, True),
        (f"GET {X}", "get", X, True),
        (f"GET {X}", "GET", f"{X}?a=1", True),
        (f"GET {X}?a=1", "GET", f"{X}?a=1", True),
        (f"GET {X}?a=1", "GET", f"{X}?a=2", False),
        (f"GET {X}?a=1", "GET", X, False),
        (f"GET {X}*", "GET", f"{X}/y?z=/", True),
        (f"GET {X}", "GET", f"{X}/y", False),
        ("POST */send", "POST", "http://b.test:8080/bot1/send", True),
        ("POST */send", "POST", "http://b.test/bot1/sendMessage", False),
        ("POST */send*", "POST", "http://b.test/bot1/sendMessage", True),
        ("GET https://api.test/*/getUpdates", "GET", "https://api.test/botX/getUpdates?o=1", True),
        ("GET https://*.example.test/", "GET", "https://a.example.test", True),
        (f"GET {X.replace('https', 'http')}", "GET", X, False),
        ("GET HTTPS://A.Example.test:443/x", "GET", X, True),
        ("GET https://a.example.test", "GET", "https://a.example.test/", True),
        ("GET https://a.example.test:8443/x", "GET", X, False),
        ("GET https://a.test/(x)+", "GET", "https://a.test/(x)+", True),
        ("GET https://a.test/(x)+", "GET", "https://a.test/xx", False),
    ],
)
def test_pattern_means_some_requests(pattern: str, method: str, url: str, fits: bool) -> None:
    """A star stands for anything, everything else for itself; a query is free unless written."""
    assert request_matches(pattern, method, url) is fits


def test_address_is_written_in_one_way() -> None:
    """Ports that go without saying and a fragment say nothing; what is no address stays."""
    assert plain_url("http://A.test:80?q#f") == "http://a.test/?q"
    assert plain_url("http://[::1]:80/") == "http://[::1]/"
    assert plain_url("http://[::1/") == "http://[::1/"
    assert plain_url("*/send") == "*/send"


@settings(deadline=None, max_examples=100)
@given(st.text("ab*", max_size=8), st.text("ab", max_size=10))
def test_star_is_any_text(pattern: str, text: str) -> None:
    """It agrees with the regular expression that says the same."""
    meant = re.compile(".*".join(map(re.escape, pattern.split("*"))))
    assert request_matches(f"GET x/{pattern}", "GET", f"x/{text}") is bool(meant.fullmatch(text))


def test_many_stars_take_no_time() -> None:
    """An agent chooses its addresses, and cannot make one wait for them."""
    began = time.perf_counter()
    assert not request_matches(f"GET {'*a' * 30}!", "GET", "a" * 10_000)
    assert time.perf_counter() - began < 2
