"""Write the resumes and postings of the career suite: small files, the same in each run.

Usage: ``python tests/examples/career/make_fixtures.py FOLDER``. The PDFs are written by
hand, object by object, because what matters about them is what no PDF writer makes:
streams that unpack to a hundred megabytes, a lock without a key.
"""

from __future__ import annotations

import sys
import zlib
from collections.abc import Sequence
from pathlib import Path

ADDRESS = "ada.canary7q2m@example.test"
PHONE = "+44 20 7946 0018"
PAGE_1 = (
    "Ada Lovelace, data engineer", f"Contact: {ADDRESS}, {PHONE}",
    "2019 - 2024: Analytical Engines Ltd, London", "Python, SQL, Airflow, punched cards",
)  # fmt: skip
PAGE_2 = ("Languages: English, French", "Hobby: poetical science")
N_BOMB_BYTES = 100_000_000


def text_stream(lines: Sequence[str]) -> bytes:
    """Write the content of a page that shows some lines."""
    shown = b"".join(b"(%s) Tj T*\n" % line.encode("ascii") for line in lines)
    return b"BT /F1 12 Tf 14 TL 72 720 Td\n" + shown + b"ET"


def plain(lines: Sequence[str]) -> bytes:
    """Write a page's content as an object."""
    return stream(text_stream(lines))


def bomb() -> bytes:
    """Write a content that unpacks, twice, to far more than anybody wants."""
    packer = zlib.compressobj(9)
    once = b"".join(packer.compress(b" " * 1_000_000) for _ in range(N_BOMB_BYTES // 1_000_000))
    return stream(zlib.compress(once + packer.flush(), 9), b"/Filter [/FlateDecode /FlateDecode]")


def stream(data: bytes, keys: bytes = b"") -> bytes:
    """Write a stream object."""
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), keys, data)


def pdf(contents: Sequence[bytes], *, padding: int = 0, trailer: bytes = b"") -> bytes:
    """Write a PDF with a page for each content."""
    n = len(contents)
    kids = b" ".join(b"%d 0 R" % (4 + 2 * index) for index in range(n))
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [%s] /Count %d >>" % (kids, n),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for index, content in enumerate(contents):
        page = (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] "
            b"/Resources << /Font << /F1 3 0 R >> >> /Contents %d 0 R >>"
        )
        objects += [page % (5 + 2 * index), content]
    return assembled(objects, padding=padding, trailer=trailer)


def assembled(objects: Sequence[bytes], *, padding: int, trailer: bytes) -> bytes:
    """Put objects together, with the table that says where each one is."""
    data = bytearray(b"%PDF-1.4\n" + b"%" * padding + b"\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % place for place in places)
    data += b"trailer\n<< /Size %d /Root 1 0 R %s >>\n" % (len(objects) + 1, trailer)
    return bytes(data + b"startxref\n%d\n%%%%EOF\n" % start)


def locked() -> bytes:
    """Write the trailer of a file whose password nobody knows, not even we."""
    key = b"00" * 32
    return (b"/ID [<%s> <%s>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >>") % (
        key[:32],
        key[:32],
        key,
        key,
    )


def files() -> dict[str, bytes]:
    """Write all files."""
    nine = [plain((f"Page {number} of a long life",)) for number in range(2, 11)]
    return {
        "resume.pdf": pdf([plain(PAGE_1), plain(PAGE_2)]),
        # Ten pages are read; whoever looks at what comes behind them comes to harm.
        "resume_long.pdf": pdf([plain(PAGE_1), *nine, bomb(), bomb()]),
        "resume_bomb.pdf": pdf([plain(PAGE_1), bomb()]),
        "resume_locked.pdf": pdf([plain(PAGE_1)], trailer=locked()),
        "resume_heavy.pdf": pdf([plain(PAGE_1)], padding=60_000),
        "posting_long.html": b"<title>Tester</title>" + b"<p>We test.\n" * 5_000,
    }


if __name__ == "__main__":
    for name, data in files().items():
        Path(sys.argv[1], name).write_bytes(data)
