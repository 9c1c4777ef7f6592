"""The world of one trial, from the sockets of its room to the ways of its turns."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING

from evalkit.outside import World, WorldPlan, WorldServer
from evalkit.outside.secure import Secure
from evalkit.outside.server import Sockets

if TYPE_CHECKING:
    from evalkit.outside.world import Record
    from evalkit.sandbox.room import Entered
    from evalkit.trial.delivering import Ways
    from evalkit.trial.lives import Past

_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
_reserved: list[socket.socket] = []


def reserve_proxy() -> None:
    """Lead clients that ask their variables to a proxy; before the agent is imported.

    Where trials share the machine's network there is no other way to the world.
    """
    holder = socket.create_server(("127.0.0.1", 0))
    _reserved.append(holder)
    url = f"http://127.0.0.1:{holder.getsockname()[1]}"
    os.environ.update(dict.fromkeys(_VARIABLES, url))


def open_world(
    plan: WorldPlan,
    entered: Entered,
    *,
    record: Record,
    settle: Callable[[], None],
    ways: Ways | None,
    past: Past | None,
) -> World:
    """Open the world of a trial: from now on somebody answers.

    Parameters
    ----------
    plan
        What is answered.
    entered
        The room, with what arrives there.
    record, settle
        As for :class:`~evalkit.outside.World`.
    ways
        The ways to and from the agent that lead through its own requests.
    past
        What other processes of the trial did before.
    """
    world = World(
        plan,
        record=record,
        settle=settle,
        listeners=() if ways is None else ways.listeners,
        answerers={} if ways is None else ways.answerers,
    )
    if past is not None:
        world.restore(past.events, n_settled=past.life.n_settled)
        world.begin_turn(max(past.life.n_begun - 1, 0))
    WorldServer(world, Secure(plan), _sockets(entered)).start()
    return world


def _sockets(entered: Entered) -> Sockets:
    proxy = _reserved.pop() if _reserved else None
    captured = entered.captured
    if captured is None:
        return Sockets(proxy=proxy)
    return Sockets(captured.listeners, captured.names, captured.long_names, proxy)
