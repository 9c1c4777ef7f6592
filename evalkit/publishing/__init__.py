"""Runs as other programs want them: JUnit XML, GitHub, JSON.

Whatever agents and users wrote is untrusted here too: it cannot break a file, inject
markup, or give orders to what reads it. HTML reports are :mod:`evalkit.reporting`'s;
what is said of a scenario stands in :mod:`evalkit.outcomes`.
"""

from evalkit.publishing.annotations import for_log, github_annotations, inert, is_on_runner
from evalkit.publishing.figures import runs_json
from evalkit.publishing.github import github_summary
from evalkit.publishing.junit import junit_xml
from evalkit.publishing.verdicts import GateVerdict
from evalkit.publishing.writing import append_summary, clear_target, write_file

__all__ = [
    "GateVerdict",
    "append_summary",
    "clear_target",
    "for_log",
    "github_annotations",
    "github_summary",
    "inert",
    "is_on_runner",
    "junit_xml",
    "runs_json",
    "write_file",
]
