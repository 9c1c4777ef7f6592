"""Addresses of requests: written in one way, and the places that they lead to."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Final, NamedTuple
from urllib.parse import quote, urlsplit, urlunsplit

PORTS: Final = {"http": 80, "https": 443}
"""Ports that go without saying."""

_ESCAPE: Final = re.compile(r"%([0-9A-Fa-f]{2})")
_MEANING: Final = frozenset("/?#%*&=+;")
"""Characters that are not the same when they are escaped."""
_PRINTABLE: Final = "".join(map(chr, range(0x21, 0x7F)))
_ADDRESS: Final = re.compile(r"(?P<scheme>https?|\*)://(?P<place>[^/?]*)")
_PLACE: Final = re.compile(r"(?P<host>\[[^\]]*\]|[^:]*)(?::(?P<port>\d+))?")


def plain_url(url: str) -> str:
    """Write an address in one way: as it is compared, and recorded.

    Examples
    --------
    >>> plain_url("HTTPS://API.example.test:443")
    'https://api.example.test/'
    >>> plain_url("https://a.test/bot1%3aX/%7Eada?q=%c3%a9")
    'https://a.test/bot1:X/~ada?q=%C3%A9'
    """
    try:
        parts = urlsplit(url)
        netloc = _plain_place(parts.scheme, parts.netloc)
    except ValueError:
        return url
    if not (parts.scheme and netloc):
        return _plain_escapes(url)
    path = parts.path or ("" if netloc.endswith("*") else "/")
    text = urlunsplit((parts.scheme, netloc, _plain_escapes(path), "", ""))
    query = url.partition("#")[0].partition("?")
    return f"{text}?{_plain_escapes(query[2])}" if query[1] else text


def _plain_place(scheme: str, netloc: str) -> str:
    """Write host and port in one way.

    Raises
    ------
    ValueError
        If it is none.
    """
    if "*" in netloc:
        place = netloc.rpartition("@")[2].lower()
        return place.removesuffix(f":{PORTS.get(scheme, '')}")
    parts = urlsplit(f"//{netloc}")
    host = (parts.hostname or "").rstrip(".")
    if not host.isascii():
        host = _ascii_name(host)
    at = f"[{host}]" if ":" in host else host
    usual = parts.port is None or parts.port == PORTS.get(scheme)
    return at if usual else f"{at}:{parts.port}"


def _ascii_name(host: str) -> str:
    """Write a name as it is looked up; what is no name stays."""
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        return host


def _plain_escapes(text: str) -> str:
    """Escape what must be, and nothing else."""
    if not text.isascii() or " " in text:
        text = quote(text, safe=_PRINTABLE)
    return _ESCAPE.sub(_plain_escape, text) if "%" in text else text


def _plain_escape(found: re.Match[str]) -> str:
    character = chr(int(found[1], 16))
    is_plain = character in _PRINTABLE and character not in _MEANING
    return character if is_plain else found[0].upper()


class Place(NamedTuple):
    """Host and port that a pattern or a request names."""

    scheme: str
    """``http``, ``https`` or ``*``."""
    host: str
    """In small letters; may hold stars."""
    port: int | None
    """``None`` if none is named."""

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this machine."""
        if not is_address(self.host):
            return self.host == "localhost"
        return ip_address(self.host).is_loopback

    @property
    def ports(self) -> tuple[int, ...]:
        """Ports that are meant."""
        if self.port is not None:
            return (self.port,)
        return (PORTS[self.scheme],) if self.scheme in PORTS else tuple(PORTS.values())


def place_of(address: str) -> Place | None:
    """Say which host and port an address names; ``None`` where it begins with neither.

    Examples
    --------
    >>> place_of("https://API.example.test:8443/x")
    Place(scheme='https', host='api.example.test', port=8443)
    >>> place_of("*/send") is None
    True
    """
    found = _ADDRESS.match(plain_url(address))
    return None if found is None else _place(found["scheme"], found["place"])


def allowed_place(text: str) -> Place | None:
    """Read ``host`` or ``host:port``; ``None`` if it is neither."""
    return _place("*", text.lower())


def _place(scheme: str, text: str) -> Place | None:
    bare = f"[{text}]" if text.count(":") > 1 and not text.startswith("[") else text
    found = _PLACE.fullmatch(bare)
    if found is None:
        return None
    port = None if found["port"] is None else int(found["port"])
    return Place(scheme, found["host"].strip("[]").rstrip("."), port)


def is_address(host: str) -> bool:
    """Say whether a host is an address, and no name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
