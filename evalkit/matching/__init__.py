"""JSON-typed comparison, matchers, and the assignment of calls to expectations.

==============  ==========================================================
``values``      comparing and showing JSON values
``nodes``       compiled patterns and differences
``scalars``     matchers of texts, numbers, types, dates (``dates``)
``containers``  choices, negation, contents of lists and objects
``lookups``     ``$schema`` and ``$ref``
``compiling``   patterns as written -> compiled; every problem at once
``bipartite``   maximum matching;  ``alignment``: matching that keeps order
``calls``       one expected call;  ``problem``, ``search``: all of them
``assignment``  the report: pairs, misses with the nearest call, F1
``requests``    which HTTP requests ``METHOD address`` means
==============  ==========================================================
"""

from __future__ import annotations

from evalkit.matching.assignment import CallMatch, ExtraCalls, LeftOver, Miss, match_calls
from evalkit.matching.calls import FAILED, ExpectedCall, MadeCall
from evalkit.matching.compiling import (
    MATCHERS,
    KeyPath,
    Pattern,
    check_arguments,
    check_pattern,
    compile_arguments,
    compile_pattern,
    explain,
    match,
    references,
    write_pattern,
)
from evalkit.matching.nodes import Difference, Refs
from evalkit.matching.problem import Order
from evalkit.matching.values import equal, json_type, show

__all__ = [
    "FAILED",
    "MATCHERS",
    "CallMatch",
    "Difference",
    "ExpectedCall",
    "ExtraCalls",
    "KeyPath",
    "LeftOver",
    "MadeCall",
    "Miss",
    "Order",
    "Pattern",
    "Refs",
    "check_arguments",
    "check_pattern",
    "compile_arguments",
    "compile_pattern",
    "equal",
    "explain",
    "json_type",
    "match",
    "match_calls",
    "references",
    "show",
    "write_pattern",
]
