"""What a page of a posting says: its title and its text. Both are data, whatever they ask for."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Final, NamedTuple

MAX_CHARS: Final = 8_000
MAX_TITLE_CHARS: Final = 120
_UNSEEN: Final = frozenset({"script", "style", "template", "noscript", "svg"})
_BREAKS: Final = frozenset({"p", "div", "li", "br", "tr", "h1", "h2", "h3", "h4", "section"})


class Posting(NamedTuple):
    """A posting, as text."""

    title: str
    text: str


def read_posting(page: str) -> Posting:
    """Read a page.

    Examples
    --------
    >>> read_posting("<title>Cook</title><p>We cook.<script>x()</script>")
    Posting(title='Cook', text='We cook.')
    """
    reader = _Reader()
    reader.feed(page)
    reader.close()
    lines = (" ".join(line.split()) for line in "".join(reader.text).splitlines())
    text = "\n".join(line for line in lines if line)[:MAX_CHARS]
    title = " ".join("".join(reader.title).split())[:MAX_TITLE_CHARS]
    return Posting(title or text.partition("\n")[0][:MAX_TITLE_CHARS] or "Untitled", text)


class _Reader(HTMLParser):
    """Collects what a reader of the page would see."""

    def __init__(self) -> None:
        super().__init__()
        self.title: list[str] = []
        self.text: list[str] = []
        self._n_unseen = 0
        self._is_title = False

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002
        self._n_unseen += tag in _UNSEEN
        self._is_title = self._is_title or tag == "title"
        if tag in _BREAKS:
            self.text.append("\n")

    def handle_endtag(self, tag: str) -> None:
        self._n_unseen = max(0, self._n_unseen - (tag in _UNSEEN))
        self._is_title = self._is_title and tag != "title"

    def handle_data(self, data: str) -> None:
        if self._is_title:
            self.title.append(data)
        elif not self._n_unseen:
            self.text.append(data)
