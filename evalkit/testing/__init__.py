"""For tests of your own: assertions that say why, and what a crash at any moment does.

The fixture that runs suites inside of tests is :mod:`evalkit.pytest_plugin`'s.
"""

from __future__ import annotations

from evalkit.testing.crashing import crash_test
from evalkit.testing.passing import assert_passed

__all__ = ["assert_passed", "crash_test"]
