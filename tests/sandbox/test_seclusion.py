"""A server with a table of processes of its own: nothing outlives it, nothing is seen outside."""

from __future__ import annotations

import os
import signal

import pytest

from evalkit.errors import SandboxError
from evalkit.sandbox import kernel, seclusion
from evalkit.sandbox.environment import server_environment
from evalkit.sandbox.room import Room


@pytest.fixture
def secluded(open_rooms, mark, mode):
    """Visit rooms of a secluded server; skip where the machine does not allow it."""
    env = server_environment() | {"EVALKIT_TEST_MARK": mark.value}
    with open_rooms(env=env, secluded=True, mode=mode) as visit:
        if not visit.server.secluded:
            pytest.skip("this machine allows no table of processes of one's own")
        assert visit.server.mode == mode
        yield visit


def test_only_the_server_and_the_trial_are_seen(secluded):
    """The processes of the machine have no number there."""
    first, *others = secluded("ps")
    assert first == "1"
    assert len(others) == 1


def test_signal_to_everybody_reaches_nobody_outside(secluded, finish):
    """`kill -1` in a trial ends the trial, and neither the server nor whoever runs it."""
    child = secluded.start("signal_everybody")
    _, end = finish(secluded.server, child)
    assert end.exit_status == -signal.SIGTERM
    assert secluded("ps")[0] == "1"


def test_daemon_dies_with_a_killed_server(secluded, mark):
    """The kernel ends everything below the first process, also what left session and parent."""
    child = secluded.start("daemonise_and_hang", room=Room(env={"EVALKIT_TEST_MARK": mark.value}))
    while not secluded.server.wait(10):
        pass
    assert len(mark.pids()) >= 4  # two of the server's, the trial, its daemon
    os.kill(secluded.server._process._process.pid, signal.SIGKILL)
    assert mark.wait_until_gone() == set()
    assert [event.exit_status for event in secluded.server.wait(10)] == [None]
    assert child.ended


def test_barrier_and_folders_are_the_same(secluded):
    """A room in a secluded server has all that another has."""
    assert secluded("look_around")["private"]
    answer = secluded("reach_out", "socket", "192.0.2.1")
    assert (answer["said"], answer["n"]) == ("OSError 101", 1)


@pytest.mark.parametrize(
    ("prepare", "said"),
    [("prepare_exit", "status 4"), ("prepare_raise", "no table named bookings")],
)
def test_failure_of_an_import_is_reported(make_server, prepare, said):
    """What stands between caller and server passes its end on."""
    server = make_server("entries:obey", prepare=f"entries:{prepare}", secluded=True)
    with pytest.raises(SandboxError, match=said), server:
        pass


def test_trials_leave_nothing(make_server, mark):
    """Leaving the `with` block ends both processes of the server."""
    with make_server("entries:obey", secluded=True) as server:
        server.start(b"hang")
        server.wait(10)
        assert mark.pids()
    assert mark.wait_until_gone() == set()


def test_machine_that_forbids_it_goes_on_without(monkeypatch):
    """A container may mask `/proc`: the server then works as it always did."""

    def refuse(*_, **__):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(kernel, "mount", refuse)
    pid = os.getpid()
    assert seclusion.seclude([]) is False
    assert os.getpid() == pid
