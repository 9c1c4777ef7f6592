"""Reports: a notebook in, one self-contained HTML file out.

``parameters`` reads and checks what a notebook declares, ``rendering`` runs it
in a child process and moves the whole file into place, ``views`` holds what the
notebooks show of one run, ``comparing`` what they show of two sides, which
``sides`` finds. The numbers come from :mod:`evalkit.stats`, verdicts from
:mod:`evalkit.gating`.
"""

from evalkit.reporting.rendering import find_notebook, parse_parameters, render_report

__all__ = ["find_notebook", "parse_parameters", "render_report"]
