"""Where the world listens: which addresses and ports a trial must have for its fixtures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from evalkit.matching.addresses import PORTS, Place, allowed_place, is_address, place_of

ADDRESS: Final = "198.18.0.1"
"""What every name is looked up as; of a range for tests of networks (RFC 2544)."""

_LOOPBACK: Final = ("127.0.0.1", "::1")


def listening_at(requests: Iterable[str], allow: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Give every address and port at which somebody must listen.

    Parameters
    ----------
    requests
        ``METHOD address`` of fixtures and polls.
    allow
        Hosts that may be asked, ``host`` or ``host:port``.

    Examples
    --------
    >>> listening_at(["GET https://a.test:8443/", "GET http://192.0.2.7/"], [])
    (('192.0.2.7', 80), ('198.18.0.1', 80), ('198.18.0.1', 443), ('198.18.0.1', 8443))
    """
    named = [*(place_of(request.partition(" ")[2]) for request in requests)]
    named += map(allowed_place, allow)
    found = {(ADDRESS, port) for port in PORTS.values()}
    for place in filter(None, named):
        found |= {(address, port) for address in _addresses(place) for port in place.ports}
    return tuple(sorted(found))


def secure_hosts(requests: Iterable[str]) -> Iterator[str]:
    """Give the hosts that are named in whole, and may be asked over https."""
    for request in requests:
        place = place_of(request.partition(" ")[2])
        if place is not None and place.scheme != "http" and "*" not in place.host:
            yield place.host


def _addresses(place: Place) -> tuple[str, ...]:
    """Give the addresses that a place means: its own, this machine's, or the one of all names."""
    if place.host == "localhost":
        return _LOOPBACK
    return (place.host,) if is_address(place.host) else (ADDRESS,)
