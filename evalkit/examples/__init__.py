"""Agents to try evalkit on."""
