"""How the memory of a server is laid out, each time in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the layout is Linux's")

HOLES = """
    import re, sys
    from pathlib import Path
    from evalkit.sandbox import kernel, memory

    def pages(size, n=40):
        made = [bytes(size - sys.getsizeof(b"")) for _ in range(n)]
        return len({id(one) >> 12 for one in made})

    def large_kb():
        shown = Path("/proc/self/smaps").read_text()
        return sum(map(int, re.findall(r"AnonHugePages: +(\\d+) kB", shown)))

    many = [bytes(64 - sys.getsizeof(b"")) for _ in range(40_000)]
    del many[::97]
"""


def _said(code: str) -> str:
    """Run code below the one that makes holes; return what it prints."""
    program = textwrap.dedent(HOLES) + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stderr == ""
    return done.stdout.strip()


def test_what_is_made_after_settling_lies_side_by_side() -> None:
    """Forty small objects fill gaps all over the place before, and three pages after."""
    before, after = map(
        int, _said("print(pages(64)); memory.settle_memory(); print(pages(64))").split()
    )
    assert before > 10
    assert after <= 3


def test_gaps_of_every_size_are_filled() -> None:
    """Of no size that Python's own allocator serves is there a pool in use with room in it."""
    code = """
        memory.settle_memory()
        sizes = [size for size in range(48, 513, 16) if pages(size) > size * 40 // 4096 + 3]
        print(sizes)
    """
    assert _said(code) == "[]"


def test_memory_in_use_lies_in_large_pages() -> None:
    """Most of what was reserved does, where the kernel gives large pages at all."""
    code = """
        memory.reserve_memory()
        before = large_kb()
        memory.settle_memory()
        print(before, large_kb())
    """
    before, after = map(int, _said(code).split())
    if after == before:
        pytest.skip("this kernel gives no large pages")
    assert after - before >= 24 << 10


def test_a_kernel_that_refuses_is_no_error() -> None:
    """Without large pages, and without tables of its memory, a server goes on."""
    code = """
        def refuse(*_):
            raise OSError(22, "Invalid argument")
        kernel.collapse = refuse
        memory.settle_memory()
        memory._read = refuse
        memory.settle_memory()
        print("fine")
    """
    assert _said(code) == "fine"


def test_another_allocator_is_given_up_on() -> None:
    """Where blocks never come in a row, as with the C library's, filling comes to an end."""
    assert int(_said("memory._take = lambda size: 1; memory.settle_memory(); print(1)")) == 1
