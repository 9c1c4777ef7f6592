"""The memory of a server that is forked for every trial: laid out so that forks are cheap.

A fork copies the table of pages, and then each page that the child writes to. Two
things make that less. In *large pages* the table is a five-hundredth as long, and so is
what is taken down when the child ends; they need memory in one piece, which is taken
before the imports scatter it. And where no *gaps* are left between objects in
use, a child puts what it makes on pages of its own, side by side, and not into the gaps
of pages that it would have to copy first. Nothing depends on either: without them
each trial takes a few milliseconds more.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from evalkit.sandbox import kernel

_LARGE: Final = 2 << 20
_AREA: Final = re.compile(
    r"^([0-9a-f]+)-([0-9a-f]+) rw-p \S+ 00:00 0 +(?:\[heap\])?\n(?:.*\n)*?Rss: +(\d+) kB",
    re.MULTILINE,
)
_HEAP: Final = re.compile(r"^[0-9a-f]+-([0-9a-f]+) rw-p .*\[heap\]$", re.MULTILINE)

# CPython's allocator (Objects/obmalloc.c): blocks of 16 to 512 bytes lie in pools, each
# pool has blocks of one size; what is larger is the C library's business.
_POOL: Final = 16 << 10
_POOL_HEAD: Final = 48
_POOLS: Final = 63  # of an arena of 1 MB
_BLOCKS: Final = range(48, 513, 16)
_LARGEST_GAP: Final = 64 << 10
_MAX_SMALL: Final = 40_000
_MAX_LARGER: Final = 2_000
"""Fillers after which it gives up: another allocator may never give blocks in a row."""

_RESERVED: Final = 48
"""Arenas, so as many megabytes: what an SDK and its types take."""

_fillers: list[bytes] = []


def reserve_memory() -> None:
    """Take arenas in one piece, for what is imported from now on."""
    size = _BLOCKS[-1]
    n_blocks = _POOLS * ((_POOL - _POOL_HEAD) // size)
    held = [b""] * (_RESERVED * n_blocks)  # a list that grew would lie between the arenas
    for number in range(len(held)):
        held[number] = bytes(size - sys.getsizeof(b""))
    _fillers.extend(held[::n_blocks])  # one keeps an arena from being given back


def settle_memory() -> None:
    """Fill the gaps, then use large pages; call it when everything is imported."""
    if sys.platform == "linux":
        _fill_pools()
        _fill_heap()
        _use_large_pages()


def _fill_pools() -> None:
    """Take small blocks until a fresh pool is used, in which they come in a row."""
    attempts = iter(range(_MAX_SMALL))
    for size in _BLOCKS:
        n_wanted, n_in_row, last = (_POOL - _POOL_HEAD) // size - 2, 0, 0
        for _ in attempts:
            place = _take(size)
            n_in_row = n_in_row + 1 if place == last + size else 0
            last = place
            if n_in_row >= n_wanted:
                break


def _fill_heap() -> None:
    """Take larger blocks until they come from the end of the heap, the largest first."""
    top, size = _end_of_heap(), _LARGEST_GAP
    for _ in range(_MAX_LARGER):
        if top - _take(size) < 2 * _LARGEST_GAP:
            size = size * 7 // 8
        if size <= _BLOCKS[-1]:
            break


def _take(size: int) -> int:
    """Take a block for good; return its address."""
    filler = bytes(size - sys.getsizeof(b""))
    _fillers.append(filler)
    return id(filler)


def _end_of_heap() -> int:
    with suppress(OSError):
        return max((int(end, 16) for end in _HEAP.findall(_read("maps"))), default=0)
    return 0


def _use_large_pages() -> None:
    """Move what lies in areas that are mostly in use."""
    with suppress(OSError):
        for start in list(_stretches(_read("smaps"))):
            with suppress(OSError):  # one may fail, for lack of memory in one piece
                kernel.collapse(start, _LARGE)


def _stretches(areas: str) -> Iterator[int]:
    """Yield the address of each stretch that a large page can hold."""
    for first, last, used in _AREA.findall(areas):
        start, stop = int(first, 16), int(last, 16)
        if int(used) << 10 >= (stop - start) // 2:
            yield from range(-(-start // _LARGE) * _LARGE, stop - _LARGE + 1, _LARGE)


def _read(table: str) -> str:
    return Path(f"/proc/self/{table}").read_text()
