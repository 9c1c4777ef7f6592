"""Reading a resume: PDF in, text without contact data out, and bounds all along.

A small file may hold a huge one, so the bounds are looked at while it is read: bytes
that a stream unpacks to, pages, characters of each piece of text, and time.
"""

from __future__ import annotations

import io
import logging
import time
from typing import Final, Literal, NamedTuple

import pypdf
from pypdf.errors import LimitReachedError

from .privacy import redacted

MAX_PAGES: Final = 10
MAX_CHARS: Final = 20_000
MAX_STREAM_BYTES: Final = 512 * 1024
"""What one stream of the file may unpack to."""
MAX_SECONDS: Final = 5.0

Category = Literal["not_a_pdf", "too_large", "encrypted", "unpacks_too_large", "no_text",
                   "too_slow", "unreadable", "not_received"]  # fmt: skip
TOLD: Final[dict[Category, str]] = {
    "not_a_pdf": "it is no PDF",
    "too_large": "it is larger than what I read",
    "encrypted": "it is locked with a password",
    "unpacks_too_large": "it unpacks to more than what I read",
    "no_text": "there is no text in it, perhaps only pictures",
    "too_slow": "it takes too long to read",
    "unreadable": "it is damaged",
    "not_received": "Telegram did not hand it over",
}
"""What the user is told."""

_logger: Final = logging.getLogger(__name__)


class ResumeProblem(Exception):
    """A resume could not be read."""

    def __init__(self, category: Category) -> None:
        super().__init__(category)
        self.category: Category = category

    def __str__(self) -> str:
        return f"{self.category}: {TOLD[self.category]}"


class Resume(NamedTuple):
    """What a resume says."""

    text: str
    """Without contact data."""
    n_pages: int
    """That were read."""
    is_cut: bool
    """Whether there was more."""


class ResumeReader:
    """Reads resumes, within bounds."""

    def read(self, data: bytes) -> Resume:
        """Read a resume.

        Raises
        ------
        ResumeProblem
            If it cannot be read.
        """
        if b"%PDF-" not in data[:1024]:
            raise ResumeProblem("not_a_pdf")
        try:
            with pypdf.apply_configuration(_LIMITS):
                resume = self.extract(_opened(data))
        except LimitReachedError as error:
            raise ResumeProblem("unpacks_too_large") from error
        except ResumeProblem:
            raise
        except Exception as error:  # pypdf: "broken files might cause other exceptions"
            raise ResumeProblem("unreadable") from error
        _logger.info("resume: %d page(s), %d characters", resume.n_pages, len(resume.text))
        if not resume.text.strip():
            raise ResumeProblem("too_slow" if resume.is_cut else "no_text")
        return resume

    def extract(self, reader: pypdf.PdfReader) -> Resume:
        """Take the text of the first pages, and stop where a bound is reached."""
        text, n_pages = _Text(), 0
        for n_pages, page in enumerate(reader.pages, start=1):
            if n_pages > MAX_PAGES:
                return text.resume(MAX_PAGES, is_cut=True)
            try:
                page.extract_text(visitor_text=text.add)
            except _Full:
                return text.resume(n_pages, is_cut=True)
        return text.resume(n_pages, is_cut=False)


class _Full(Exception):
    """As much was read as is wanted."""


class _Text:
    """Collects pieces of text until there are enough."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._n_left = MAX_CHARS
        self._due = time.monotonic() + MAX_SECONDS

    def add(self, piece: str, *_: object) -> None:
        """Take in one piece, as pypdf finds it."""
        self._pieces.append(piece[: self._n_left])
        self._n_left -= len(piece)
        if self._n_left <= 0 or time.monotonic() > self._due:
            raise _Full

    def resume(self, n_pages: int, *, is_cut: bool) -> Resume:
        """Give what was collected."""
        return Resume(redacted("".join(self._pieces)), n_pages, is_cut)


def _opened(data: bytes) -> pypdf.PdfReader:
    """Open a file; one whose password is empty is open to all."""
    reader = pypdf.PdfReader(io.BytesIO(data))
    if reader.is_encrypted and not reader.decrypt(""):
        raise ResumeProblem("encrypted")
    return reader


_LIMITS: Final = pypdf.Configuration(
    zlib_maximum_output_length=MAX_STREAM_BYTES,
    lzw_maximum_output_length=MAX_STREAM_BYTES,
    run_length_maximum_output_length=MAX_STREAM_BYTES,
    array_based_stream_maximum_output_length=MAX_STREAM_BYTES,
    maximum_declared_stream_length=MAX_STREAM_BYTES,
)
