"""How a process of a trial ends so that another one can go on with what it leaves.

What it leaves must be what a crash leaves: nothing that its threads, or programs that it
started, do in the meantime. So a fork of it stops it where it stands, ends what it
started, packs its folders, hands them over, and kills it. What the agent had not yet
written is lost with its memory.
"""

from __future__ import annotations

import os
import signal
import socket
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from evalkit.sandbox import archives
from evalkit.sandbox.processes import kill
from evalkit.trial.lives import Estate, handover_line, over_all, problem_line
from evalkit.trial.outbox import LEAVING, Outbox

if TYPE_CHECKING:
    from evalkit.agents import Conversation
    from evalkit.grade import Ending
    from evalkit.sandbox.room import Entered
    from evalkit.trial.lives import Past
    from evalkit.trial.stage import Stage

_PATIENCE_S: Final = 5.0
_LOOK_S: Final = 0.001
_SHARED: Final = ("/tmp", "/var/tmp", "/dev/shm")
_OURS: Final = ("certificate.pem", "libfaketime.so", "now", "resolv.conf")
"""What a room has in its own folder that the next room has as well."""


class Leaver:
    """Ends this process of a trial.

    Parameters
    ----------
    outbox
        The way to the controller.
    entered
        The room.
    past
        What was before this life.
    die_after
        Event after which it is killed, by its number.
    """

    def __init__(
        self, outbox: Outbox, entered: Entered, *, past: Past | None, die_after: int | None
    ) -> None:
        self._outbox = outbox
        self._entered = entered
        self._past = past
        self._die_after = die_after
        self._n_sent = 0 if past is None else len(past.events)
        self.clock: Callable[[], float] = float
        """Gives the agent's seconds; like what follows, set as soon as there is one."""
        self.stage: Stage | None = None
        self.conversation: Conversation | None = None

    def put(self, lines: bytes) -> None:
        """Send lines of the ledger; nothing after the one where the process is to die."""
        if self._die_after is None:
            self._outbox.put(lines)
            return
        for line in lines.splitlines(keepends=True):
            self._outbox.put(line)
            self._n_sent += 1
            if self._n_sent == self._die_after:
                self.leave()

    def leave(self, ending: Ending | None = None) -> NoReturn:
        """Hand over and die; nobody gets another word in.

        Parameters
        ----------
        ending
            What is wrong with this life; by default what is known without looking.
        """
        from evalkit.grade import Ending

        if ending is None:
            ending = Ending() if self.stage is None else self.stage.so_far()
        if self._past is not None:
            ending = over_all(self._past.estate.ending, ending)
        agent_s = self.clock()
        way = self._outbox.farewell()
        pid = _fork()
        if pid == 0:
            self._end_parent(way, ending, agent_s)
        with suppress(OSError):  # the fork ends this process before
            os.waitpid(pid, 0)
        os._exit(os.EX_SOFTWARE)

    def _end_parent(self, way: int, ending: Ending, agent_s: float) -> NoReturn:
        """Do, as its fork, what the process itself cannot."""
        dying = os.getppid()
        try:
            _stop(dying)
            _end_descendants(dying)
            line = self._last_line(ending, agent_s)
            with socket.socket(fileno=way) as channel:
                channel.sendall(LEAVING + line + b"\n")
        except BaseException:  # the controller sees that the last word is missing
            os.write(2, traceback.format_exc().encode())
        finally:
            os.kill(dying, signal.SIGKILL)
            os._exit(0)

    def _last_line(self, ending: Ending, agent_s: float) -> bytes:
        try:
            files = self._packed()
        except (archives.TooLargeError, OSError) as error:
            return problem_line(agent_s, f"its files cannot be kept over a restart: {error}")
        known_as = "" if self.conversation is None else self.conversation.id
        databases = None if self.stage is None else self.stage.seen_databases
        return handover_line(Estate(files, databases, known_as, agent_s, ending))

    def _packed(self) -> bytes:
        """Pack all that a restart leaves alone: the room's folders, and what all may write to."""
        places = self._entered.places
        folders = (places.work, places.home, places.tmp)
        if not self._entered.is_private:
            return archives.pack(folders)
        skip = {os.path.join(places.root, name) for name in _OURS}  # noqa: PTH118 - text paths
        return archives.pack((*_SHARED, *folders), skip=skip)


def _fork() -> int:
    """Fork, although there are threads: the fork only packs, and does not come back."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return os.fork()


def _stop(pid: int) -> None:
    """Stop all threads of a process."""
    os.kill(pid, signal.SIGSTOP)
    tasks = Path(f"/proc/{pid}/task")
    due = time.monotonic() + _PATIENCE_S
    while any(_state(task) not in b"TtZX" for task in _entries(tasks)) and time.monotonic() < due:
        time.sleep(_LOOK_S)


def _end_descendants(pid: int) -> None:
    """Kill what a stopped process has started, and what that has, and wait until it is dead."""
    me = os.getpid()
    due = time.monotonic() + _PATIENCE_S
    while time.monotonic() < due:
        living = [child for child in _descendants(pid) if child != me and _is_alive(child)]
        if not living:
            return
        for child in living:
            kill(child)
        time.sleep(_LOOK_S)


def _descendants(pid: int) -> Iterator[int]:
    for task in _entries(Path(f"/proc/{pid}/task")):
        with suppress(OSError):
            for child in map(int, (task / "children").read_text().split()):
                yield child
                yield from _descendants(child)


def _entries(folder: Path) -> list[Path]:
    """List a folder that may have gone, or that this machine does not have."""
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _is_alive(pid: int) -> bool:
    return _state(Path(f"/proc/{pid}")) not in b"ZX"


def _state(process: Path) -> bytes:
    """Give the letter that the kernel has for the state of a process or thread."""
    try:
        return (process / "stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return b"X"
