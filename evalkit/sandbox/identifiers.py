"""Random numbers and ids that are the same in every run of the same trial.

Everything draws from one stream, seeded from the run's seed, the scenario, the trial
and the number of the process: a restarted process does not repeat ids.

Covered: ``random`` (also ``Random()`` and ``seed()`` without a seed), ``secrets``,
``os.urandom``, ``uuid.uuid1/4/6/7/8``, names of temporary files, numpy's global and
default generators, SQLite's ``random()``. Not covered: ``from os import urandom`` in a
module that was imported before, OpenSSL's own generator, generators written in C or
Rust (``fastuuid``), other programs, and the addresses in ``<object at 0x...>``. The order
of sets is ``PYTHONHASHSEED``'s, which the server is started with. Threads that draw at
the same time share the stream in the order in which they run.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Final

NODE: Final = 0x0242_EE00_0001
"""The network card that version-1 UUIDs name; the bit for local addresses is set."""

_seed_explicitly = random.Random.seed


def seed_identifiers(parts: Sequence[int | str]) -> random.Random:
    """Seed all randomness of this process.

    Parameters
    ----------
    parts
        What tells this process from others, such as (seed, scenario, trial, number).

    Returns
    -------
    random.Random
        The stream that stands for the operating system's randomness.
    """
    # Random hashes text itself, by SHA-512 without OpenSSL, which is slow in a fresh fork.
    source = random.Random("\n".join(map(repr, parts)))
    stream, names = (random.Random(source.getrandbits(256)) for _ in range(2))
    _replace_entropy(stream)
    random.seed(source.getrandbits(256))
    _name_temporary_files(names)
    uuid._node = NODE  # type: ignore[attr-defined]
    uuid._generate_time_safe = None  # type: ignore[attr-defined]
    uuid._last_timestamp = None  # type: ignore[attr-defined]
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed(source.getrandbits(32))
    return stream


def _replace_entropy(stream: random.Random) -> None:
    """Put the stream where Python asks the operating system."""
    draw = _drawing(stream)
    os.urandom = draw
    random._urandom = draw  # type: ignore[attr-defined]
    if hasattr(os, "getrandom"):
        os.getrandom = lambda size, flags=0: draw(size)  # noqa: ARG005
    random.Random.seed = _seeding(stream)  # type: ignore[method-assign]
    random.seed = random._inst.seed


def _drawing(stream: random.Random) -> Callable[[int], bytes]:
    """Return a function of ``os.urandom``'s shape; every fork goes its own, repeatable way."""
    fork_seed = 0

    def draw_fork_seed() -> None:
        nonlocal fork_seed
        fork_seed = stream.getrandbits(256)

    os.register_at_fork(before=draw_fork_seed, after_in_child=lambda: stream.seed(fork_seed))

    def urandom(size: int, /) -> bytes:
        return stream.randbytes(size)

    return urandom


def _seeding(stream: random.Random) -> Callable[..., None]:
    """Return a ``Random.seed`` that takes its seed from the stream where none is given."""

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        _seed_explicitly(self, stream.getrandbits(256) if a is None else a, version)

    return seed


def _name_temporary_files(generator: random.Random) -> None:
    """Have :mod:`tempfile` draw names from a generator."""
    names = tempfile._RandomNameSequence()  # type: ignore[attr-defined]
    names._rng = generator
    names._rng_pid = os.getpid()
    tempfile._name_sequence = names  # type: ignore[attr-defined]
