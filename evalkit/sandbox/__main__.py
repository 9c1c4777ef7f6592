"""The program that ``ForkServer`` starts, by file name.

Nothing of evalkit can be imported before the caller's ``sys.path`` is known: it
may run from a checkout, and the server in any directory with any environment.
Usage: ``python -P -u __main__.py fork|spawn|worker|once DESCRIPTOR ...``
"""

from __future__ import annotations

import json
import os
import sys


def _adopt_path(request_fd: int) -> None:
    """Put the caller's ``sys.path``, the first line of the request, in front."""
    line = os.pread(request_fd, 1 << 22, 0).split(b"\n", 1)[0]
    path = json.loads(line)
    sys.path[:] = [*path, *(entry for entry in sys.path if entry not in path)]


if __name__ == "__main__":
    _, kind, *numbers = sys.argv
    fds = [int(number) for number in numbers]
    del sys.argv[1:]  # an agent that parses arguments must not see ours
    _adopt_path(fds[0])
    from evalkit.sandbox import server

    server.main(kind, fds)
