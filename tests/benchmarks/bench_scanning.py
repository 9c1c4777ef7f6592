"""What searching for canaries costs: CPU for 100 KB, and 20 MB of random text with ``--full``.

Run: ``python tests/benchmarks/bench_scanning.py [--full]``.
"""

from __future__ import annotations

import base64
import json
import random
import resource
import string
import sys
import uuid
from collections.abc import Callable, Mapping

from measuring import median_cpu_s, spent_cpu_s

from evalkit.scanning import Scan, Scanner

MILLION = 1_000_000
_LETTERS = string.ascii_letters + string.digits
_WORDS = ("The", "agent", "booked", "flight", "AA123", "to", "Denver,", "on", "Friday.")


def _json(chance: random.Random, size: int) -> str:
    parts = [
        {"id": str(uuid.UUID(bytes=chance.randbytes(16))), "content": json.dumps({"n": 'a "b"\n'})}
        for _ in range(size // 80)
    ]
    return json.dumps(parts)[:size]


KINDS: Mapping[str, Callable[[random.Random, int], str]] = {
    "words": lambda chance, size: " ".join(chance.choices(_WORDS, k=size // 5))[:size],
    "JSON": _json,
    "base64": lambda chance, size: base64.b64encode(chance.randbytes(size * 3 // 4)).decode(),
    "hex": lambda chance, size: chance.randbytes(size // 2).hex(),
    "characters": lambda chance, size: "".join(chance.choices(string.printable, k=size)),
    "Chinese": lambda chance, size: "".join(
        map(chr, chance.choices(range(0x4E00, 0x9FFF), k=size // 3))
    ),
}


def make_scanner(n: int) -> Scanner:
    """Make a scanner of random values of 21 characters."""
    chance = random.Random(7)
    return Scanner((f"c{i}", "".join(chance.choices(_LETTERS, k=21))) for i in range(n))


def cost_ms(name: str, n_canaries: int) -> float:
    """Return the median CPU of searching 100 KB."""
    scanner, text = make_scanner(n_canaries), KINDS[name](random.Random(1), 100_000)
    return 1000 * median_cpu_s(lambda: scanner.scan(text), repeats=5)


def search_much(name: str) -> str:
    """Search 20 MB of random text, and say what that found and took."""
    scanner, text = make_scanner(50), KINDS[name](random.Random(1), 20 * MILLION)
    found: list[Scan] = []
    seconds = spent_cpu_s(lambda: found.append(scanner.scan(text)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return f"20 MB of {name}: {len(found[0].hits)} hits, {seconds:.1f} s CPU, peak {peak} MB"


def main() -> None:
    """Print what searching costs."""
    print(f"{'100 KB of':<12}{'5 canaries':>12}{'50 canaries':>13}  ms CPU")
    for name in KINDS:
        print(f"{name:<12}{cost_ms(name, 5):>12.2f}{cost_ms(name, 50):>13.2f}")
    for name in ("base64", "hex", "characters") if "--full" in sys.argv else ():
        print(search_much(name))


if __name__ == "__main__":
    main()
