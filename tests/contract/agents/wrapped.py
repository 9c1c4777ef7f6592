"""The tools, wrapped so that they tell evalkit when they run."""

from __future__ import annotations

import tools

import evalkit as ek

TOOLS = {name: ek.tool(function) for name, function in tools.TOOLS.items()}
