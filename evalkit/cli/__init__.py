"""The command line: thin, one function a command; see ``evalkit --help``."""

from evalkit.cli.app import main

__all__ = ["main"]
