"""``METHOD address``: which requests are meant, with ``*`` for anything.

One meaning for fixtures, expectations, replies and polls. Addresses are compared as they
are meant, not as they are spelt: a host in small letters, no port that goes without
saying, no escapes that need not be. Without a ``?`` a pattern means every query; with one
it means those parameters, in any order, and ``&*`` lets others be there as well.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple
from urllib.parse import parse_qsl

from evalkit.matching.addresses import plain_url
from evalkit.matching.bipartite import Graph, cover_rows

_ABSOLUTE: Final = re.compile(r"(?P<scheme>[a-z][a-z0-9+.-]*|\*)://(?P<host>[^/?]*)(?P<path>.*)")
_OTHERS: Final = ("*", "")
"""The parameter of a pattern that stands for all others."""
_ANYTHING: Final = "\ue000"
"""Stands for what a star means where a pattern is taken for a request."""

Pairs = Sequence[tuple[str, str]]


class Address(NamedTuple):
    """An address, as it is compared."""

    base: str
    """All before the query."""
    query: tuple[tuple[str, str], ...] | None
    """Parameters; ``None``: no query."""
    whole: str
    """As text."""

    @classmethod
    def of(cls, url: str) -> Address:
        """Take an address apart."""
        whole = plain_url(url)
        base, mark, query = whole.partition("?")
        pairs = tuple(parse_qsl(query, keep_blank_values=True)) if mark else None
        return cls(base, pairs, whole)


class RequestPattern:
    """One pattern.

    Parameters
    ----------
    text
        ``METHOD address``; ``*`` stands for any method, and for anything in an address.

    Examples
    --------
    >>> pattern = RequestPattern("GET https://a.example.test/search?q=*&page=1")
    >>> pattern.matches("GET", "https://a.example.test/search?page=1&q=jobs")
    True
    >>> list(pattern.differences("GET", "https://a.example.test/search?page=2&q=jobs"))
    ["`page` is '2', not '1'"]
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self._method, _, address = text.partition(" ")
        self._address = Address.of(address)
        query = self._address.query
        self._others_allowed = query is None or _OTHERS in query
        self._pairs = [pair for pair in query or () if pair != _OTHERS]

    @property
    def is_literal(self) -> bool:
        """Whether it has no star."""
        return "*" not in self.text

    def matches(self, method: str, url: str) -> bool:
        """Say whether a request is one of those that are meant."""
        return self.fits(method, Address.of(url))

    def fits(self, method: str, address: Address) -> bool:
        """Do as :meth:`matches`, with an address that was taken apart before."""
        if self._method not in ("*", method.upper()):
            return False
        if self._address.query is None and star_fits(self._address.base, address.whole):
            return True
        return star_fits(self._address.base, address.base) and self._fits_query(address.query or ())

    def _fits_query(self, pairs: Pairs) -> bool:
        """Give each parameter one of its own; others only where they are allowed."""
        if self._address.query is None:
            return True
        if len(self._pairs) > len(pairs) or (
            len(self._pairs) < len(pairs) and not self._others_allowed
        ):
            return False
        rows = [
            sum(1 << n for n, found in enumerate(pairs) if _pair_fits(wanted, found))
            for wanted in self._pairs
        ]
        return len(cover_rows(Graph(rows, len(pairs)))) == len(rows)

    def covers(self, other: RequestPattern) -> bool:
        """Say whether it means every request that another pattern means.

        Examples
        --------
        >>> anything = RequestPattern("GET https://a.example.test/*")
        >>> anything.covers(RequestPattern("GET https://a.example.test/x/*"))
        True
        """
        if self._method not in ("*", other._method):
            return False
        if not star_fits(self._address.base, other._address.base.replace("*", _ANYTHING)):
            return False
        if self._address.query is None:
            return True
        if other._others_allowed and not self._others_allowed:
            return False
        pairs = [
            (key.replace("*", _ANYTHING), value.replace("*", _ANYTHING))
            for key, value in other._pairs
        ]
        return self._fits_query(pairs)

    def differences(self, method: str, url: str) -> Iterator[str]:
        """Say what of a request is not as it is meant, each as a part of a sentence."""
        if self._method not in ("*", method.upper()):
            yield f"the method is {method.upper()}, not {self._method}"
        found = Address.of(url)
        if not star_fits(self._address.base, found.base):
            yield _base_difference(self._address.base, found.base)
        elif not self._fits_query(found.query or ()):
            yield from self._query_differences(found.query or ())

    def _query_differences(self, pairs: Pairs) -> Iterator[str]:
        given, wanted = dict(pairs), dict(self._pairs)
        for key, value in self._pairs:
            if key in given and not star_fits(value, given[key]):
                yield f"`{key}` is {given[key]!r}, not {value!r}"
            elif key not in given and "*" not in key:
                yield f"there is no `{key}` in the query"
        more = [key for key, _ in pairs if not any(star_fits(one, key) for one in wanted)]
        if more and not self._others_allowed:
            yield f"there is `{more[0]}` in the query as well"
        counted = Counter(pairs) - Counter(self._pairs)
        if not more and len(pairs) != len(self._pairs) and counted:
            yield f"`{next(iter(counted))[0]}` is there more often"


def request_matches(pattern: str, method: str, url: str) -> bool:
    """Say whether a request is one of those that a pattern means.

    Parameters
    ----------
    pattern
        As for :class:`RequestPattern`.
    method, url
        Of the request; the address is absolute.

    Examples
    --------
    >>> request_matches("POST */send", "POST", "https://api.example.test:443/send?silent=1")
    True
    >>> request_matches("GET https://a.example.test/x", "GET", "https://a.example.test/x/y")
    False
    """
    return _compiled(pattern).matches(method, url)


@lru_cache(maxsize=1000)
def _compiled(pattern: str) -> RequestPattern:
    return RequestPattern(pattern)


def _pair_fits(wanted: tuple[str, str], found: tuple[str, str]) -> bool:
    return star_fits(wanted[0], found[0]) and star_fits(wanted[1], found[1])


def star_fits(pattern: str, text: str) -> bool:
    """Match a text, in which a star is any text.

    Examples
    --------
    >>> star_fits("*.example.test", "api.example.test")
    True
    """
    # A star takes as little as it can, so nothing is tried twice.
    first, *middle = pattern.split("*")
    if not middle:
        return text == pattern
    last = middle.pop()
    if not (text.startswith(first) and text.endswith(last)):
        return False
    place, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, place, end)
        if found < 0:
            return False
        place = found + len(part)
    return place <= end


def _base_difference(wanted: str, found: str) -> str:
    """Name the part of an address that is another."""
    meant, got = _ABSOLUTE.fullmatch(wanted), _ABSOLUTE.fullmatch(found)
    if meant is not None and got is not None:
        for part, name in (("scheme", "scheme"), ("host", "host"), ("path", "path")):
            if not star_fits(meant[part], got[part]):
                return f"the {name} is {got[part]}, not {meant[part]}"
    return f"the address is {found}, not {wanted}"
