"""``python -m evalkit.cli`` is ``evalkit``."""

from evalkit.cli.app import main

main()
