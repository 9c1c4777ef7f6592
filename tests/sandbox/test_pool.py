"""What a caller of fresh processes can rely on; every process here is real."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import resource
import signal
import socket
import tempfile
import threading
import time
from pathlib import Path

import pytest

from evalkit.errors import SandboxError
from evalkit.sandbox.child import Ended, Readable, Received
from evalkit.sandbox.pool import ForkServer

MUCH = bytes(range(256)) * 204_800  # 52 MB


def test_trial_output_survives_its_death(make_server, finish, mode, capfd):
    """What a trial and its children print outlives it, and reaches no terminal."""
    with make_server("entries:obey", mode=mode) as server:
        child = server.start(b"print_everywhere")
        _, end = finish(server, child)
    assert end == Ended(child, 3, "")
    assert child.read_output().text == "one two three four \\ud800"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("action", "status", "printed"),
    [
        ("return_normally", 0, ""),
        ("exit_3", 3, ""),
        ("sys_exit_5", 5, ""),
        ("sys_exit_text", 1, "cannot go on\n"),
        ("raise_error", 70, "ArithmeticError: 12 is not 13\n"),
        ("raise_without_stderr", 70, "ArithmeticError: 12 is not 13\n"),
        ("kill_self", -signal.SIGKILL, ""),
        ("interrupt_self", 6, ""),
        ("no_such_function", 70, "KeyError: 'no_such_function'\n"),
    ],
)
def test_exit_status_says_how_the_trial_ended(make_server, finish, mode, action, status, printed):
    """Every way to end has its status, and an exception its traceback in the output."""
    with make_server("entries:obey", mode=mode) as server:
        child = server.start(action.encode())
        _, end = finish(server, child)
    assert (end.exit_status, end.reason) == (status, "")
    assert (child.ended, child.exit_status) == (True, status)
    assert child.read_output().text.endswith(printed)
    assert bool(printed) == bool(child.output_size)


@pytest.mark.parametrize("action", ["hang", "stop_self"])
def test_kill_ends_a_stuck_trial_at_once(make_server, finish, hear, mode, action):
    """A trial that hangs, or has stopped itself, is dead well within a second of the kill."""
    with make_server("entries:obey", mode=mode) as server:
        child = server.start(action.encode())
        hear(server, child)
        started = time.monotonic()
        child.kill()
        _, end = finish(server, child)
        assert time.monotonic() - started < 1
        child.kill()
    assert end.exit_status == -signal.SIGKILL


def test_kill_right_after_the_start_is_not_lost(make_server, finish):
    """A kill that comes before the process has set itself up still kills it."""
    with make_server("entries:obey") as server:
        for _ in range(20):
            child = server.start(b"hang")
            child.kill()
            assert finish(server, child)[1].exit_status == -signal.SIGKILL


@pytest.mark.parametrize("action", ["child_that_ignores_sigterm", "daemon"])
def test_kill_reaches_everything_the_trial_started(make_server, finish, hear, mark, mode, action):
    """Children that ignore SIGTERM and daemons in their own session are dead when the end comes."""
    with make_server("entries:obey", mode=mode) as server:
        child = server.start(action.encode())
        hear(server, child)
        assert len(mark.pids()) == 3
        child.kill()
        finish(server, child)
        assert len(mark.pids()) == 1


@pytest.mark.parametrize("action", ["group_left_behind", "daemon_left_behind"])
def test_end_of_a_trial_ends_what_it_left_behind(make_server, finish, mark, mode, action):
    """What a trial that ended by itself leaves behind is dead when the end comes."""
    with make_server("entries:obey", mode=mode) as server:
        for _ in range(5):
            _, end = finish(server, server.start(action.encode()))
            assert end.exit_status == 0
            assert len(mark.pids()) == 1


def test_end_of_one_trial_spares_the_daemons_of_another(make_server, finish, hear):
    """Trials that end do not take a daemon of a running trial with them."""
    with make_server("entries:obey") as server:
        patient = server.start(b"daemon_then_ask")
        assert hear(server, patient) == b"forked"
        for action in (b"daemon_left_behind", b"return_normally", b"kill_self"):
            finish(server, server.start(action))
        patient.send(b"?")
        sent, end = finish(server, patient)
    assert (sent, end.exit_status) == (b"alive", 0)


def test_helpers_of_the_preparation_live_as_long_as_the_server(make_server, finish, mark):
    """A process that the imports started serves all trials, and ends with the server."""
    with make_server("entries:say_prepared", prepare="entries:prepare_helper") as server:
        for _ in range(3):
            sent, _ = finish(server, server.start(b""))
            assert int(sent) in mark.pids()
    assert not mark.pids()


@pytest.mark.parametrize("action", ["fork_that_returns", "fork_with_duplicate"])
def test_fork_of_an_agent_cannot_speak_for_the_trial(make_server, finish, mode, action):
    """Only the trial's own process reaches the channel, also when its fork returns into it."""
    with make_server("entries:obey", mode=mode) as server:
        sent, end = finish(server, server.start(action.encode()))
    assert sent in (b"once", b"from the trial")
    assert end.exit_status == 0


@pytest.mark.parametrize(("action", "status"), [("send_much", 0), ("send_much_and_die", -9)])
def test_much_data_from_a_trial_is_whole_before_its_end(make_server, finish, mode, action, status):
    """50 MB arrive in order and complete, even when the sender is killed right after."""
    with make_server("entries:obey", mode=mode) as server:
        sent, end = finish(server, server.start(action.encode()))
    assert sent == MUCH
    assert end.exit_status == status


def test_end_is_last_though_the_caller_looks_late(make_server, mark):
    """Of trials that are long over when the caller looks, the bytes still come before the end."""
    with make_server("entries:obey") as server:
        (pid,) = mark.pids()
        for action in (b"print_everywhere", b"print_and_send"):
            child = server.start(action)
            while not child.output_size or children_of(pid):
                time.sleep(0.01)
        events = server.wait(30)
    assert [type(event) for event in events] == [Ended, Received, Ended]


def test_much_data_reaches_a_trial_as_payload(make_server, finish, mode):
    """A payload of 50 MB arrives whole."""
    with make_server("entries:digest_payload", mode=mode) as server:
        sent, _ = finish(server, server.start(MUCH))
    assert sent == hashlib.sha256(MUCH).digest()


def test_much_data_reaches_a_trial_through_the_channel(make_server, finish, mode):
    """50 MB sent at once arrive whole."""
    with make_server("entries:obey", mode=mode) as server:
        child = server.start(b"digest_what_comes")
        child.send(MUCH)
        sent, _ = finish(server, child)
    assert sent == hashlib.sha256(MUCH).digest()


def test_sending_to_a_trial_that_never_reads_does_not_block(make_server, finish):
    """A stuck receiver costs its caller neither time nor the other trials."""
    with make_server("entries:obey") as server:
        stuck = server.start(b"never_read")
        started = time.monotonic()
        stuck.send(MUCH)
        assert server.wait(0.1) == []
        assert finish(server, server.start(b"return_normally"))[1].exit_status == 0
        stuck.kill()
        finish(server, stuck)
        stuck.send(b"too late")
        assert time.monotonic() - started < 5


def test_channel_closed_early_is_neither_the_end_nor_a_busy_loop(make_server, finish):
    """After a trial closes its channel the caller sleeps until the real end."""
    with make_server("entries:obey") as server:
        child = server.start(b"close_early")
        cpu = time.process_time()
        sent, end = finish(server, child)
        child.send(b"nobody reads this")
        assert time.process_time() - cpu < 0.05
    assert (sent, end.exit_status) == (b"", 7)


def test_wait_returns_after_its_timeout(make_server):
    """A bounded wait ends in time with nothing, and an idle server has nothing to wait for."""
    with make_server("entries:obey") as server:
        assert server.wait() == []
        server.start(b"never_read")
        started = time.monotonic()
        assert server.wait(0.05) == []
        assert 0.04 < time.monotonic() - started < 1


def test_module_state_does_not_pass_from_trial_to_trial(make_server, finish, mode):
    """Globals and environment variables that a trial changes are new in the next one."""
    with make_server("entries:obey", mode=mode) as server:
        sent = [finish(server, server.start(b"count"))[0] for _ in range(3)]
    assert sent == [b"1 x"] * 3


def test_prepared_value_reaches_every_trial(make_server, finish, mode):
    """What the preparation returned is handed to each entry with its payload."""
    with make_server(
        "entries:say_prepared", prepare="entries:prepare", prepare_payload=b"ok\n", mode=mode
    ) as server:
        assert finish(server, server.start(b"now"))[0] == b"OK\n now"


def test_trial_process_is_plain_and_cut_off(make_server, finish, mark, mode, tmp_path):
    """A trial leads its own session, has no input, no inherited handlers and no file of ours."""
    with make_server("entries:obey", mode=mode, cwd=tmp_path) as server:
        facts = json.loads(finish(server, server.start(b"describe"))[0])
        again = json.loads(finish(server, server.start(b"describe"))[0])
    assert facts.pop("channel") in facts["fds"]
    assert len(facts.pop("fds")) == 4
    assert facts.pop("hash") == again["hash"]
    assert facts == {
        "stdin": "",
        "leads": True,
        "argv": [],
        "mark": mark.value,
        "cwd": str(tmp_path),
        "default": [True] * 3,
        "wakeup": -1,
        "threads": 1,
    }


def test_many_trials_in_flight_keep_their_bytes_apart(make_server):
    """Eight interleaved conversations each get their own answers, in order."""
    answers: dict[object, bytes] = {}
    ends = []
    with make_server("entries:loop") as server:
        children = [server.start(b"%d" % number) for number in range(8)]
        for child in children:
            child.send(b"???.")
        while len(ends) < 8:
            for event in server.wait(30):
                if isinstance(event, Received):
                    answers[event.child] = answers.get(event.child, b"") + event.data
                else:
                    ends.append(event)
    expected = [b"%d%d%d.%d" % (n, n, n, n) for n in range(8)]
    assert [answers[child] for child in children] == expected
    assert {end.exit_status for end in ends} == {0}


def test_output_beyond_the_limit_keeps_both_ends(make_server, finish):
    """Of too much output the start and the end remain, and the reader is told."""
    with make_server("entries:obey", output_limit=1000) as server:
        child = server.start(b"print_much")
        finish(server, child)
    text, truncated = child.read_output()
    assert truncated
    assert len(text) == 1000
    assert text.startswith("first\nxxx")
    assert text.endswith("xxxlast\n")
    assert child.read_output(limit=8) == ("firsast\n"[:4] + "ast\n", True)
    assert child.output_size == 3_000_011


def test_output_can_be_read_while_the_trial_runs(make_server, hear):
    """What was printed so far is there before the end."""
    with make_server("entries:obey") as server:
        child = server.start(b"hang")
        hear(server, child)
        assert child.read_output() == ("hanging\n", False)
        assert not child.ended
        assert "running" in repr(child)


def test_watched_file_wakes_the_wait(make_server):
    """A caller's own socket is reported beside the trials, until it is unwatched."""
    ours, theirs = socket.socketpair()
    with ours, theirs, make_server("entries:obey") as server:
        server.watch(ours)
        theirs.send(b"x")
        assert server.wait(30) == [Readable(ours)]
        ours.recv(1)
        server.unwatch(ours)
        theirs.send(b"x")
        assert server.wait() == []


def test_threads_of_the_imports_make_trials_spawn(make_server, finish):
    """A server that cannot fork safely says so, and trials work all the same."""
    with make_server(
        "entries:say_prepared", prepare="entries:prepare_thread", prepare_payload=b"ok"
    ) as server:
        assert (server.mode, server.threads) == ("spawn", ("price-map",))
        assert finish(server, server.start(b"1"))[0] == b"OK 1"


def test_thread_that_has_ended_does_not_count(make_server):
    """Imports that start a thread and join it can still be forked."""
    with make_server("entries:obey", prepare="entries:prepare_short_thread") as server:
        assert (server.mode, server.threads) == ("fork", ())


def test_numpy_does_not_prevent_forking(make_server):
    """A numerical library in the agent's imports starts no threads here."""
    with make_server(
        "entries:obey", prepare="numpy:frombuffer", prepare_payload=bytes(8)
    ) as server:
        assert server.mode == "fork"


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        (
            {"prepare": "entries:prepare_raise"},
            ["LookupError: no table named", "entries.py"],
        ),
        ({"prepare": "entries:prepare_exit"}, ["status 4", "licence check failed"]),
        ({"prepare": "entries:prepare_nil"}, ["AttributeError", "prepare_nil"]),
        ({"prepare": "no_such_module:f"}, ["ModuleNotFoundError", "no_such_module"]),
        ({"prepare": "entries:prepare_hang", "startup_timeout_s": 0.5}, ["0.5 s", "waits"]),
        ({"cwd": "/no/such/folder"}, ["could not be started", "/no/such/folder"]),
    ],
)
def test_failed_imports_are_named(make_server, mark, mode, kwargs, words):
    """Entering raises what went wrong and leaves no process behind."""
    started = time.monotonic()
    with pytest.raises(SandboxError) as caught, make_server("entries:obey", mode=mode, **kwargs):
        pass
    assert all(word in str(caught.value) for word in words)
    assert time.monotonic() - started < 4
    assert not mark.wait_until_gone(1)


@pytest.mark.parametrize(
    ("kwargs", "words"),
    [
        ({"entry": "evalkit.trial"}, "'evalkit.trial' is not of the form 'module:function'"),
        ({"entry": "m:f", "prepare": ":f"}, "':f' is not of the form"),
        ({"entry": "m:f", "mode": "frok"}, "Did you mean 'fork'"),
    ],
)
def test_wrong_arguments_are_refused(kwargs, words):
    """A call that cannot work raises before any process starts."""
    with pytest.raises(SandboxError, match=words):
        ForkServer(**kwargs)


def test_server_is_used_inside_its_with_statement_only(make_server):
    """Before and after, use raises and says why."""
    server = make_server("entries:obey")
    with pytest.raises(SandboxError, match="outside its with statement"):
        server.start(b"")
    with server:
        child = server.start(b"never_read")
    assert child.ended
    with pytest.raises(SandboxError, match="closed"):
        server.wait()


@pytest.mark.parametrize(("mode", "n_trials"), [("fork", 200), ("spawn", 20)])
def test_trials_leave_nothing_behind(make_server, mark, monkeypatch, tmp_path, mode, n_trials):
    """After many trials, descriptors, files and processes are what they were before."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    gc.collect()  # what other tests have dropped
    before = descriptors("self")
    with make_server("entries:obey", mode=mode) as server:
        (pid,) = mark.pids()
        ends = run_four(server)
        idle = descriptors("self"), descriptors(pid)
        ends += [end for _ in range(n_trials // 4 - 1) for end in run_four(server)]
        assert (descriptors("self"), descriptors(pid)) == idle
        assert children_of(pid) == ""
    assert [end.exit_status for end in ends] == [0] * n_trials
    assert not mark.pids()
    assert descriptors("self") == before
    assert not list(tmp_path.iterdir())


def descriptors(pid: int | str) -> set[str]:
    """Return the numbers of a process's open files."""
    return {fd.name for fd in Path(f"/proc/{pid}/fd").iterdir()}


def children_of(pid: int) -> str:
    """Return the children of a process, as the kernel lists them."""
    return Path(f"/proc/{pid}/task/{pid}/children").read_text()


def run_four(server: ForkServer) -> list[Ended]:
    """Run four trials side by side and return their ends."""
    ends: list[Ended] = []
    for _ in range(4):
        server.start(b"count")
    while len(ends) < 4:
        ends += [event for event in server.wait(30) if isinstance(event, Ended)]
    return ends


def test_server_works_from_another_thread_that_then_ends(make_server, finish):
    """A server entered in a thread that has ended goes on, and can be used by another."""
    server = make_server("entries:obey")
    thread = threading.Thread(target=server.__enter__)
    thread.start()
    thread.join()
    try:
        time.sleep(0.05)
        assert finish(server, server.start(b"exit_3"))[1].exit_status == 3
    finally:
        server.__exit__(None, None, None)


def test_interrupt_of_the_server_is_ignored(make_server, finish, hear):
    """Ctrl-C is the caller's to handle: it ends neither server nor trials."""
    with make_server("entries:obey") as server:
        child = server.start(b"server_pid")
        pid = int(hear(server, child))
        os.kill(pid, signal.SIGINT)
        assert finish(server, server.start(b"exit_3"))[1].exit_status == 3
        assert not child.ended


@pytest.mark.parametrize("action", ["server_pid", "server_pid_and_group"])
def test_loss_of_the_server_loses_its_trials_loudly(make_server, hear, mark, mode, action):
    """Unfinished trials end without a status and with a reason; the next use raises it."""
    with make_server("entries:obey", mode=mode) as server:
        children = [server.start(b"never_read"), server.start(action.encode())]
        os.kill(int(hear(server, children[1])), signal.SIGKILL)
        ends = []
        while len(ends) < 2:
            ends += server.wait(30)
        assert {end.child for end in ends} == set(children)
        assert {end.exit_status for end in ends} == {None}
        assert all("SIGKILL" in end.reason and "memory" in end.reason for end in ends)
        with pytest.raises(SandboxError, match="ended with SIGKILL"):
            server.start(b"exit_3")
        with pytest.raises(SandboxError, match="ended with SIGKILL"):
            server.wait()
        assert not mark.wait_until_gone()


def test_termination_of_the_server_takes_its_trials_along(make_server, hear, mark):
    """A server that is told to end kills what it started first."""
    with make_server("entries:obey") as server:
        daemon = server.start(b"daemon")
        hear(server, daemon)
        child = server.start(b"server_pid")
        os.kill(int(hear(server, child)), signal.SIGTERM)
        assert server.wait(30)
        assert not mark.wait_until_gone()


def test_shortage_of_files_is_a_sandbox_error(make_server, finish):
    """A caller that can open no more files is told so, and can go on afterwards."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with make_server("entries:obey") as server:
        resource.setrlimit(resource.RLIMIT_NOFILE, (len(descriptors("self")) + 1, hard))
        try:
            with pytest.raises(SandboxError, match="ulimit -n"):
                server.start(b"exit_3")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert finish(server, server.start(b"exit_3"))[1].exit_status == 3
