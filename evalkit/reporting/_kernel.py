"""Start the notebook's kernel, after noting its process id.

A kernel leads a session of its own, so ending the process group that renders
does not end it. The note lets :mod:`evalkit.reporting.rendering` end it too.
"""

from __future__ import annotations

import os
import runpy
from pathlib import Path
from typing import Final

PID_FILE: Final = "EVALKIT_RENDER_KERNEL_PID"


def main() -> None:
    """Note the process id and become the kernel."""
    Path(os.environ[PID_FILE]).write_text(str(os.getpid()), encoding="ascii")
    runpy.run_module("ipykernel_launcher", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
