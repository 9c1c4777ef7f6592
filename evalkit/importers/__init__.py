"""Other tools' traces and results, as trials and as runs.

``read`` gives the trials of a file or folder; ``import_run`` writes them as a run
directory. ``FORMATS`` lists what can be read. Every importer refuses a file of
another format with a sentence, and gives a record that it cannot read as a trial
with a ``problem``: nothing leaves the plan silently.
"""

from evalkit.importers.records import Imported, ImportedTrial
from evalkit.importers.registry import FORMATS, Format, find_format, read
from evalkit.importers.writing import SUITE_FILE, import_run

__all__ = [
    "FORMATS",
    "SUITE_FILE",
    "Format",
    "Imported",
    "ImportedTrial",
    "find_format",
    "import_run",
    "read",
]
