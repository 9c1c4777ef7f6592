"""Finding planted values in what came out, however they are written.

:class:`Scanner` knows values by name and searches texts for all of their spellings
(:mod:`~evalkit.scanning.spellings`), after taking away what only disguises
(:mod:`~evalkit.scanning.squashing`) and layer by layer through what wraps text
(:mod:`~evalkit.scanning.layers`). :class:`Hiding` puts names in place of values.
Nothing here says a value again: not a hit, not a message.
"""

from evalkit.scanning.hiding import Hiding, hiding_for
from evalkit.scanning.scanner import Hit, Scan, Scanner, scanner_for
from evalkit.scanning.spellings import MIN_CHARS
from evalkit.scanning.squashing import squash

__all__ = [
    "MIN_CHARS",
    "Hiding",
    "Hit",
    "Scan",
    "Scanner",
    "hiding_for",
    "scanner_for",
    "squash",
]
