"""``evalkit demo``."""

from __future__ import annotations

import click


@click.command(epilog="Example: evalkit demo")
@click.option("--out", default="data/runs", show_default=True, help="Folder for the runs.")
@click.option("--reports", default="reports", show_default=True, help="Folder for the reports.")
def demo(*, out: str, reports: str) -> int:
    """Run, grade and report on a travel agent; needs no model, no key and no network.

    Shows what can be shown here, and says what has to be installed for the rest.
    Exits with 0 if everything was shown, whatever the agents do; 3 if a package is
    missing for a part, and 2 if a part could not be run.
    """
    from evalkit.examples.demo import show

    return show(out=out, reports=reports)
