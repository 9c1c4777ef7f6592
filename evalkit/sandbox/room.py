"""The room that a trial is run in: what it can reach, see, and call now.

:func:`enter` builds it around the calling process, which must be fresh, have one
thread, and has run nothing of the agent. It is told by a :class:`Room`, plain values
that travel in the trial's payload; :func:`prepare` does beforehand, in the server,
what all trials share. Gateway and agent are the caller's.

It contains mistakes and mischief; it is no jail. What it does not hold: files outside
homes and shared places, which a trial may read and write as the user may (run trials
as an ordinary user, then device files are out of reach, too); signals to the user's
processes before Linux 6.12, unless the server is secluded; the clock of other programs,
unless libfaketime gives it to them; and everything that a weaker barrier than
``namespace`` lets through.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from evalkit.sandbox import barrier as barriers
from evalkit.sandbox import folders, identifiers, kernel, namespaces
from evalkit.sandbox.barrier import Barrier
from evalkit.sandbox.clock import DEFAULT_TIME, Clock
from evalkit.sandbox.clock import load as load_clock
from evalkit.sandbox.connections import NOBODY, Connections, Refused
from evalkit.sandbox.environment import adopt, assign, place_variables
from evalkit.sandbox.folders import DISK_LIMIT, ROOM, Places, View, plan_view

if TYPE_CHECKING:
    from evalkit.sandbox.capture import Captured

if sys.platform != "win32":
    import resource


@dataclass(frozen=True, slots=True)
class Room:
    """What a trial's process shall be like."""

    barrier: Barrier = "namespace"
    env: Mapping[str, str] | None = field(default_factory=dict)
    """All variables but those of the folders; see
    :func:`~evalkit.sandbox.environment.server_environment`. ``None`` for those that the
    process has, where its server was started with no others."""
    more_env: Mapping[str, str] = field(default_factory=dict)
    """Variables besides those."""
    clock: datetime | None = DEFAULT_TIME
    """Where the clock starts; ``None`` for the real time."""
    frozen: bool = False
    """Whether the clock stands still when the model replies."""
    seed: tuple[int | str, ...] = (0,)
    """What ids and random numbers depend on: run's seed, scenario, trial, process number.
    Empty for real randomness."""
    files: Mapping[str, bytes | str] = field(default_factory=dict)
    """Path in the working directory -> content, or a file to copy."""
    certificate: bytes = b""
    """The one certificate to trust, as PEM text; where empty, what :func:`prepare` was given."""
    keep: tuple[str, ...] = ()
    """Files and folders that must be seen wherever they lie, where :func:`prepare` has not
    said so for all trials."""
    spare: str = ""
    """Path for the folders on a machine without mounts of one's own. The caller removes it
    when the trial has ended, by :func:`~evalkit.sandbox.folders.remove_folder`."""
    faketime: str = ""
    """Path of libfaketime, for a process that starts other programs; they see the clock then."""
    disk_limit: int = DISK_LIMIT
    """Bytes that its folders, and any one file that it writes, may hold."""
    captures: tuple[tuple[str, int], ...] = ()
    """Addresses and ports of the outside that somebody in the room answers at; see
    :mod:`evalkit.sandbox.capture`. Behind a weaker barrier than ``namespace`` only those
    of loopback can be had."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Every trial unpacks one: by themselves dataclasses take several times as long.
        return Room, tuple(getattr(self, one.name) for one in fields(self))


class Entered:
    """What became of a :class:`Room`: handles on it, for the trial's own process."""

    def __init__(
        self,
        room: Room,
        place: _Place,
        *,
        clock: Clock | None,
        n_before: int,
        captured: Captured | None,
    ) -> None:
        self.barrier: Barrier = room.barrier
        """What stands between the trial and the network."""
        self.places = place.places
        """Its folders; the working directory is ``places.work``."""
        self.is_private = place.is_private
        """Whether it has mounts of its own: folders at the constant path, homes hidden."""
        self.notes = place.notes
        """What is weaker than it should be, a sentence each."""
        self.clock = clock
        """The clock, to be moved by replies and ``advance``; ``None`` for real time."""
        self.captured = captured
        """What arrives from inside, for whoever answers it; ``None`` if nothing is captured."""
        self._n_before = n_before
        self._connections = _watched_connections(room.barrier)
        if captured is not None:
            self._connections.spare(captured.holds)

    def refused(self) -> Refused:
        """Return the attempts to reach the outside so far, of everything in the room."""
        n_refused = self._connections.n_refused
        if self.barrier == "namespace":
            n_refused = namespaces.refused_so_far() - self._n_before
        return Refused(n_refused, self._connections.destinations)

    def settle_paths(self, text: bytes) -> bytes:
        """Put the constant path for the real one, so that ledgers of two runs are the same."""
        if self.is_private:
            return text
        return text.replace(self.places.root.encode(), ROOM.encode())


def _watched_connections(barrier: Barrier) -> Connections:
    """Watch connections from now on; the server's hook is in its forks already."""
    connections = _Shared.connections
    if connections is not None:
        connections.forget()
        return connections
    _Shared.connections = connections = Connections(refuse=barrier == "python")
    if barrier != "none":
        connections.watch()
    return connections


class _Place(NamedTuple):
    """Where a trial is."""

    places: Places
    is_private: bool
    notes: tuple[str, ...]


def enter(room: Room) -> Entered:
    """Build a room around this process.

    Parameters
    ----------
    room
        What it shall be like.

    Raises
    ------
    SandboxError
        When the barrier cannot be made; the message says how to allow it. Never the
        agent's fault: the trial is incomplete.
    """
    view = _Shared.view or plan_view(room.keep)
    held = folders.hold_files(room.files)
    n_before, has_mounts = _separate(room)
    place = _find_place(room, view, has_mounts=has_mounts)
    _move_in(room, place.places)
    folders.put_files(held, place.places.work)
    captured = _capture(room) if room.captures else None
    clock = _set_clock_and_ids(room, place.places)
    _bind_hands(room)
    _Shared.is_entered = True
    return Entered(room, place, clock=clock, n_before=n_before, captured=captured)


def _capture(room: Room) -> Captured:
    """Take in what is sent to the outside, as far as the barrier lets that be."""
    from evalkit.sandbox import capture

    if room.barrier == "namespace":
        return capture.capture(room.captures)
    return capture.on_loopback(room.captures)


def _separate(room: Room) -> tuple[int, bool]:
    """Leave the machine's namespaces; return refusals until now, and whether mounts are ours."""
    if room.barrier == "namespace":
        return barriers.raise_barrier(mounts=True), True
    try:
        namespaces.isolate(network=False, mounts=True)
    except OSError:
        return 0, False
    return 0, True


def _find_place(room: Room, view: View, *, has_mounts: bool) -> _Place:
    """Make the folders, at the constant path if this process has mounts of its own."""
    is_offline = room.barrier == "namespace"
    if not is_offline:  # name service goes over a socket there
        view = View(tuple(p for p in view.hidden if p not in _NAME_SERVICE), view.kept)
    problem = "this machine lets users make no namespaces"
    if has_mounts:
        try:
            places, notes = folders.mount_room(view, limit=room.disk_limit, resolver=is_offline)
            return _Place(places, True, notes)
        except OSError as error:  # a security module may forbid mounts alone
            problem = str(error)
    places = folders.make_folder(room.spare or tempfile.mkdtemp(prefix="evalkit-"))
    return _Place(places, False, (f"the user's files are not hidden: {problem}",))


_NAME_SERVICE: Final = frozenset({"/run", "/var/run"})


def _move_in(room: Room, places: Places) -> None:
    """Make the folders this process's own: variables, working directory, temporary files."""
    certificate = room.certificate or _Shared.certificate
    if certificate:
        folders.write_certificate(places, certificate)
    _set_variables(room, place_variables(places, has_certificate=bool(certificate)))
    os.chdir(places.work)
    os.umask(0o022)
    tempfile.tempdir = places.tmp


def _set_variables(room: Room, of_places: Mapping[str, str]) -> None:
    """Make the environment the room's; most of it is the server's, and dear to look at again."""
    if room.env is not None:
        adopt({**room.env, **room.more_env, **of_places})
    elif room.more_env or of_places != _Shared.variables:
        assign({**room.more_env, **of_places})


def _set_clock_and_ids(room: Room, places: Places) -> Clock | None:
    """Seed ids, then set the clock, and let SQLite follow both."""
    stream = identifiers.seed_identifiers(room.seed) if room.seed else None
    if room.clock is None:
        return None
    from evalkit.sandbox import sqlite

    clock = Clock(room.clock, frozen=room.frozen)
    sqlite.follow(stream)
    if room.faketime:
        from evalkit.sandbox.faketime import ProgramTime

        programs = ProgramTime(room.faketime, places.root)
        clock.lead(programs)
        os.environ.update(programs.variables)
    return clock


def _bind_hands(room: Room) -> None:
    """Limit what the process may write, and give up what could undo the room."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = room.disk_limit if hard == resource.RLIM_INFINITY else min(room.disk_limit, hard)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere there was nothing to undo
        kernel.renounce_privileges()
    if _Shared.can_scope_signals:
        kernel.scope_signals()


class _Shared:
    """What the server has found out for all trials."""

    view: View | None = None
    certificate: bytes = b""
    variables: Mapping[str, str] | None = None
    """Those of the folders, which the server has set."""
    connections: Connections | None = None
    is_entered: bool = False
    can_scope_signals: bool = kernel.can_scope_signals()


@dataclass(frozen=True, slots=True)
class Prepared:
    """A server that is ready for trials."""

    agent: Any
    """What the import returned."""
    notes: tuple[str, ...]
    """What each trial will have to do itself; a sentence each."""
    refused: Refused = NOBODY
    """What the import tried to reach, if this was not in a trial's own process."""


def prepare(
    load: Callable[[], object] = lambda: None,
    *,
    barrier: Barrier = "namespace",
    keep: Iterable[str] = (),
    certificate: bytes = b"",
) -> Prepared:
    """Do in the server what all trials share: before, around and after the agent's import.

    Parameters
    ----------
    load
        Imports the agent.
    barrier
        What the trials will have. With ``namespace`` the server enters a room as well: the
        import reaches nothing and sees none of the user's files, home and temporary
        folder have the path that they have in trials, and a machine without a barrier
        says so before the first trial.
    keep
        Files and folders that import and trials must see; the suite's, say.
    certificate
        The one certificate to trust, as PEM text; for the trials as well.

    Raises
    ------
    SandboxError
        When the barrier cannot be made.
    """
    from evalkit.sandbox import (
        sqlite,
        warming,
    )  # dear, and whoever only describes rooms needs neither

    env = dict(os.environ)
    room = Room(barrier=barrier, env=env, keep=tuple(keep), certificate=certificate)
    is_server = not _Shared.is_entered  # a spawned trial has entered
    notes = _settle_server(room) if is_server and barrier == "namespace" else ()
    load_clock()
    sqlite.install()  # before a module takes `connect` for itself
    given = dict(os.environ)
    agent, refused = _load_watched(load, barrier) if is_server else (load(), NOBODY)
    if is_server:
        assign(given)  # what the import has added stays
    notes += warming.warm_sdks()
    _Shared.view = plan_view(room.keep)
    _Shared.certificate = certificate
    return Prepared(agent, notes, refused)


def _load_watched(load: Callable[[], object], barrier: Barrier) -> tuple[object, Refused]:
    """Import the agent; return it, and what it tried to reach."""
    connections = _watched_connections(barrier)
    n_before = namespaces.refused_so_far() if barrier == "namespace" else 0
    agent = load()
    n_refused = connections.n_refused
    if barrier == "namespace":
        n_refused = namespaces.refused_so_far() - n_before
    return agent, Refused(n_refused, connections.destinations)


def _settle_server(room: Room) -> tuple[str, ...]:
    """Put a server where its trials will be; return what is weaker than it should be."""
    view, here = plan_view(room.keep), Path.cwd()
    barriers.raise_barrier(mounts=True)
    try:
        places, notes = folders.mount_room(view, limit=room.disk_limit, resolver=True)
    except OSError as error:
        return (f"the user's files are not hidden: {error}",)
    _move_in(room, places)
    _Shared.variables = place_variables(places, has_certificate=bool(room.certificate))
    with suppress(OSError):  # the working directory may be among what is hidden
        os.chdir(here)
    return notes
