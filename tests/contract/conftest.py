"""Agents lie beside these tests, in files that are imported in trials only."""

from __future__ import annotations

collect_ignore = ["agents"]
