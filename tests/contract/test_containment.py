"""What agents do that they should not is contained, named in the reason, and never a pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

pytest.importorskip("anthropic", reason="needs the extra `examples`")

import evalkit as ek
from evalkit.errors import EvalkitError

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")

CHECKOUT = Path(__file__).parents[2]

SECRET = "real-secret-51c9"
KEY = "real-key-77ad"

RUNNER = """\
import sys
import evalkit as ek
ek.run_suite(sys.argv[1], out=sys.argv[2] + "/contract", n_parallel=3)
ek.run_suite(sys.argv[1], out=sys.argv[2] + "/live", lane="live", scenarios=["steals"])
"""


class Fate(NamedTuple):
    """What becomes of a trial."""

    status: str
    reason_code: str
    reason: str
    """Part of it."""


DEADLINE = Fate("failed", "deadline", "the agent was not done after 3 s")
FATES: Mapping[str, Fate] = {
    "hard_wired_url": Fate("failed", "agent_raised", "(api.anthropic.com:443)"),
    "hard_wired_url_swallowed": Fate("failed", "left_over_steps", "(api.anthropic.com:443)"),
    "daemonises": Fate("failed", "agent_exited", "ended with status 0 in the trial's middle"),
    "fills_disk": Fate("failed", "agent_raised", "No space left on device"),
    "fills_shared_memory": Fate("failed", "agent_raised", "No space left on device"),
    "ignores_sigterm": DEADLINE,
    "hangs_in_thread_and_child": DEADLINE,
    "connects_and_hangs": Fate("failed", "deadline", "1 connection to the outside was refused"),
    "writes_to_descriptors": Fate("incomplete", "ledger_broken", "the worker's report"),
    "closes_descriptors": Fate("failed", "agent_exited", "in the trial's middle"),
    "connects_from_python": Fate("failed", "outside_connection", "(169.254.169.254:80)"),
    "looks_up_from_python": Fate("failed", "outside_connection", "(metadata.example.test:80)"),
    "sends_datagram": Fate("failed", "outside_connection", "(192.0.2.1:53)"),
    "connects_by_ipv6": Fate("failed", "outside_connection", "([2001:db8::1]:80)"),
    "connects_from_c": Fate("failed", "outside_connection", "where to is not known"),
    "looks_up_from_c": Fate("failed", "outside_connection", "where to is not known"),
    "connects_from_subprocess": Fate("failed", "outside_connection", "where to is not known"),
    "leaves_daemon": Fate("failed", "left_process", "1 process was left behind"),
    "holds_pipe": Fate("failed", "left_process", "(a fork of the agent's process)"),
    "calls_unscripted": Fate("failed", "unscripted_call", "no model call was expected"),
    "calls_once_too_often": Fate("failed", "unscripted_call", "before this request"),
    "calls_not_at_all": Fate("failed", "left_over_steps", "were never asked for"),
}
LEFT_BEHIND = ("leaves_daemon", "holds_pipe")
"""Deeds after which something goes on."""

SCRIPTED = ("hard_wired_url_swallowed", "calls_once_too_often", "calls_not_at_all")
OUTSIDE = (
    "hard_wired_url",
    "hard_wired_url_swallowed",
    "connects_and_hangs",
    *(deed for deed, fate in FATES.items() if fate.reason_code == "outside_connection"),
)


def scenario(deed: str, home: Path) -> dict[str, Any]:
    """Write a scenario that passes if the agent only answers."""
    return {
        "id": deed,
        "input": deed,
        "deadline": "3s" if deed in FATES and FATES[deed].reason_code == "deadline" else "60s",
        "env": {"STOLEN_HOME": str(home)},
        "model": [{"text": "hello"}] if deed in SCRIPTED else [],
        "expect": {"reply": {"equals": "done"}},
    }


class Aftermath(NamedTuple):
    """A run of hostile agents, and what stands around it."""

    run: ek.Run
    unprotected: ek.Run
    """The thief in the live lane, where nothing stops it."""
    duration_s: float
    mark: Any


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """Make a user's home, with a key in it, where nothing but its being a home hides it."""
    (CHECKOUT / ".peer").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="home-", dir=CHECKOUT / ".peer") as folder:
        Path(folder, ".ssh").mkdir()
        Path(folder, ".ssh", "id_ed25519").write_text(KEY)
        yield Path(folder)


@pytest.fixture(scope="module")
def aftermath(
    tmp_path_factory: pytest.TempPathFactory,
    home: Path,
    write_suite: Callable[..., Path],
    make_mark: Callable[[Path], Any],
) -> Aftermath:
    """Run every hostile agent, in a runner that has something to lose."""
    folder = tmp_path_factory.mktemp("hostile")
    deeds = (*FATES, "steals")
    suite = write_suite(folder / "suite", "hostile:agent", [scenario(d, home) for d in deeds])
    mark = make_mark(folder)
    started = time.monotonic()
    subprocess.run(
        [sys.executable, "-c", RUNNER, str(suite), str(folder)],
        env={**mark.env, "HOME": str(home), "REAL_SECRET": SECRET},
        cwd=folder,
        check=True,
        timeout=120,
    )
    duration_s = time.monotonic() - started
    runs = [ek.load_run(next((folder / lane).iterdir())) for lane in ("contract", "live")]
    return Aftermath(runs[0], runs[1], duration_s, mark)


@pytest.mark.parametrize("deed", FATES)
def test_deed_is_contained_and_named(deed: str, aftermath: Aftermath) -> None:
    """Each deed has its status, code and reason; none is a pass, and the run goes on."""
    record, fate = aftermath.run.record(deed), FATES[deed]
    assert (record.status, record.reason_code) == (fate.status, fate.reason_code), record.reason
    assert fate.reason in record.reason.splitlines()[0]


@pytest.mark.parametrize("deed", OUTSIDE)
def test_connection_to_the_outside_is_counted(deed: str, aftermath: Aftermath) -> None:
    """Whatever tried it, the kernel refused and counted it; its destination is named if known."""
    events = [event.data for event in aftermath.run.ledger(deed) if event.kind == "http"]
    (told,) = events
    assert told["to"] == "outside"
    assert told["n_refused"] >= max(1, len(told["destinations"]))
    unknown = deed == "connects_and_hangs" or "where to is not known" in FATES[deed].reason
    assert bool(told["destinations"]) != unknown


@pytest.mark.parametrize("deed", ["connects_and_hangs", "ignores_sigterm"])
def test_trial_that_was_killed_says_what_nobody_saw(deed: str, aftermath: Aftermath) -> None:
    """The kernel still counts connections for it; its files were not looked at."""
    reason = aftermath.run.record(deed).reason
    assert reason.endswith("; what it did to its files was not seen")
    assert "whether it tried" not in reason


@pytest.mark.parametrize("deed", ["daemonises", "closes_descriptors"])
def test_trial_that_ended_itself_says_what_nobody_saw(deed: str, aftermath: Aftermath) -> None:
    """Its network went with it, so neither is known."""
    assert "; whether it tried to reach the outside, and what" in aftermath.run.record(deed).reason


def test_connection_that_was_not_tried_is_not_counted(aftermath: Aftermath) -> None:
    """The other deeds have no such event."""
    innocent = [deed for deed in FATES if deed not in OUTSIDE]
    kinds = {deed: {event.kind for event in aftermath.run.ledger(deed)} for deed in innocent}
    assert [deed for deed in innocent if "http" in kinds[deed]] == []


@pytest.mark.parametrize("deed", LEFT_BEHIND)
def test_trial_does_not_wait_for_what_it_left_behind(deed: str, aftermath: Aftermath) -> None:
    """A daemon, or a grandchild that holds the pipes, lingers for a minute; the trial does not."""
    record = aftermath.run.record(deed)
    assert record.duration_s is not None
    assert record.duration_s < 30
    assert aftermath.duration_s < 60


def test_nothing_is_left_of_hostile_trials(aftermath: Aftermath) -> None:
    """No process lives on, and no file lies in the machine's folders."""
    assert aftermath.mark.living() == []
    assert list(aftermath.mark.tmp.iterdir()) == []
    assert list(Path("/dev/shm").glob("big-*")) == []


def test_thief_finds_everything_where_nothing_stops_it(aftermath: Aftermath, home: Path) -> None:
    """The thief of the next test can steal: without a sandbox it finds all that it looks for."""
    loot = json.loads(aftermath.unprotected.trace("steals", 0).reply)
    assert loot["variables"]["REAL_SECRET"] == SECRET
    assert loot["keys"][str(home)] == KEY
    assert any(SECRET in text for name, text in loot["processes"].items() if "environ" in name)


def test_thief_finds_nothing_of_the_users(aftermath: Aftermath) -> None:
    """Neither the home's keys nor the real environment, nor the runner's, is there in a trial."""
    reply = aftermath.run.trace("steals", 0).reply
    loot = json.loads(reply)
    assert loot["variables"]["ANTHROPIC_API_KEY"] == "evalkit-dummy-key"
    assert [what for what in (SECRET, KEY, RUNNER[:20]) if what in reply] == []
    assert "ek.run_suite" not in reply


def test_module_that_starts_threads_gets_fresh_interpreters(
    tmp_path: Path, write_suite: Callable[..., Path]
) -> None:
    """A process with threads cannot be forked: its trials are spawned, and have the thread."""
    answer = {"reply": {"equals": "here: True"}}
    told = {"id": "a", "input": "here", "model": [], "expect": answer}
    suite = write_suite(tmp_path / "suite", "threads_at_import:agent", [told])
    run = ek.run_suite(suite, out=tmp_path / "runs")
    assert {record.reason for record in run.records} == {""}
    assert run.status == "passed"


def test_module_that_connects_at_import_cannot(
    tmp_path: Path, write_suite: Callable[..., Path]
) -> None:
    """The agent is imported behind the barrier as well; the error names what it raised."""
    told = {"id": "a", "input": "hi", "model": [], "expect": {"reply": {"contains": "hi"}}}
    suite = write_suite(tmp_path / "suite", "connects_at_import:agent", [told])
    with pytest.raises(EvalkitError, match="Network is unreachable"):
        ek.run_suite(suite, out=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_module_that_tries_to_connect_at_import_fails_its_trials(
    tmp_path: Path, write_suite: Callable[..., Path]
) -> None:
    """Swallowing the error does not help; each trial names the destination."""
    answer = {"reply": {"equals": "hi"}}
    told = [{"id": name, "input": "hi", "model": [], "expect": answer} for name in ("a", "b")]
    suite = write_suite(tmp_path / "suite", "tries_at_import:agent", told)
    run = ek.run_suite(suite, out=tmp_path / "runs")
    assert {(record.status, record.reason_code, record.reason) for record in run.records} == {
        (
            "failed",
            "outside_connection",
            "1 connection to the outside was refused (169.254.169.254:80) while the agent was "
            "imported",
        )
    }
    (event,) = (event.data for event in run.ledger("a") if event.kind == "http")
    assert event == {
        "to": "outside",
        "at": "import",
        "n_refused": 1,
        "destinations": ["169.254.169.254:80"],
    }


LEAVES: Mapping[str, str] = {
    "child": "1 process was left behind and ended (sleep 61)",
    "child_of_thread": "1 process was left behind and ended (sleep 61)",
    "two": "2 processes were left behind and ended (sleep 61; sleep 61)",
    "fork": "1 process was left behind and ended (a fork of the agent's process)",
}
LEAVES_NOTHING = ("ends_soon", "waits", "zombie", "spawns", "daemonic", "executor")


@pytest.fixture(scope="module")
def leaving(tmp_path_factory: pytest.TempPathFactory, write_suite: Callable[..., Path]) -> ek.Run:
    """Run what leaves something behind, and what only seems to."""
    folder = tmp_path_factory.mktemp("leaving")
    told = [
        {"id": deed, "input": deed, "model": [], "expect": {"reply": {"equals": "done"}}}
        for deed in (*LEAVES, *LEAVES_NOTHING)
    ]
    suite = write_suite(folder / "suite", "leaves_behind:agent", told)
    return ek.run_suite(suite, out=folder / "runs")


@pytest.mark.parametrize("deed", LEAVES)
def test_process_that_is_left_behind_fails_the_trial(deed: str, leaving: ek.Run) -> None:
    """It is ended and named, although the agent answered well."""
    record = leaving.record(deed)
    assert (record.status, record.reason_code) == ("failed", "left_process")
    assert record.reason.startswith(LEAVES[deed])
    assert {grade.grader: grade.passed for grade in record.grades}["answer"]
    assert leaving.trace(deed, 0).reply == "done"


@pytest.mark.parametrize("deed", LEAVES_NOTHING)
def test_process_that_python_ends_is_not_left_behind(deed: str, leaving: ek.Run) -> None:
    """Nor is one that has ended, or does within a moment."""
    record = leaving.record(deed)
    assert (record.status, record.reason) == ("passed", "")


WITHOUT_NAMESPACES = """\
for kind in $0; do echo 0 > /proc/sys/user/max_${kind}_namespaces || exit 99; done
exec "$@"
"""


def without_namespaces(
    *command: str, tmp: Path, kinds: str = "user net mnt"
) -> subprocess.CompletedProcess[str]:
    """Run a command as on a machine that lets nobody make namespaces."""
    wrapped = ["unshare", "-Ur", "sh", "-c", WITHOUT_NAMESPACES, kinds, *command]
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT), "TMPDIR": str(tmp)}
    try:
        done = subprocess.run(wrapped, env=env, cwd=tmp, capture_output=True, text=True, timeout=60)
    except FileNotFoundError:
        done = subprocess.CompletedProcess(wrapped, 99)
    if done.returncode == 99 or "unshare" in (done.stderr or "")[:8]:
        if os.environ.get("EVALKIT_REQUIRE_ALL") == "1":
            pytest.fail("EVALKIT_REQUIRE_ALL=1, but no user namespace can be made here")
        pytest.skip("no user namespace can be made here, so none can be without others")
    return done


@pytest.fixture
def greeting(tmp_path: Path, write_suite: Callable[..., Path]) -> Path:
    """Write a suite with an agent that connects to the outside in its second scenario."""
    deeds = ("connects_from_python", "connects_from_c", "leaves_daemon")
    return write_suite(tmp_path / "suite", "hostile:agent", [scenario(d, tmp_path) for d in deeds])


def evalkit_run(suite: Path, *options: str, tmp: Path) -> subprocess.CompletedProcess[str]:
    """Use the command line on a machine without namespaces."""
    out = ("--out", str(tmp / "runs"))
    command = (sys.executable, "-m", "evalkit.cli", "run", str(suite), *out, *options)
    (tmp / "tmp").mkdir(exist_ok=True)
    return without_namespaces(*command, tmp=tmp / "tmp")


def test_machine_without_namespaces_refuses_and_says_how_to_allow_them(
    greeting: Path, tmp_path: Path
) -> None:
    """Without a barrier nothing runs: exit code 2, nothing written, and the way out is named."""
    done = evalkit_run(greeting, tmp=tmp_path)
    assert done.returncode == 2
    assert "sudo sysctl -w user.max_user_namespaces" in done.stderr
    assert "--network-barrier python" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_switch_that_forbids_is_named(greeting: Path, tmp_path: Path) -> None:
    """What to turn is said of the very switch, although the server has others of its own."""
    command = (sys.executable, "-m", "evalkit.cli", "run", str(greeting))
    (tmp_path / "tmp").mkdir()
    done = without_namespaces(*command, tmp=tmp_path / "tmp", kinds="net")
    assert done.returncode == 2
    assert "Allow it (sudo sysctl -w user.max_net_namespaces=15000" in done.stderr


@pytest.mark.parametrize("barrier", ["python", "none"])
def test_weaker_barrier_is_asked_for_and_stamped(
    barrier: str, greeting: Path, tmp_path: Path
) -> None:
    """With a weaker barrier the machine runs trials; the manifest says so, and no folder stays."""
    done = evalkit_run(greeting, "--network-barrier", barrier, "-s", "leaves_daemon", tmp=tmp_path)
    assert done.returncode == 1, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    run = ek.load_run(folder)
    assert run.manifest.barrier == barrier
    assert run.record("leaves_daemon").reason_code == "left_process"
    assert list((tmp_path / "tmp").iterdir()) == []


def test_python_barrier_refuses_and_names_what_python_connects_to(
    greeting: Path, tmp_path: Path
) -> None:
    """Behind the weaker barrier Python's own connections are refused, and fail the trial."""
    options = ("--network-barrier", "python", "-s", "connects_from_python")
    done = evalkit_run(greeting, *options, tmp=tmp_path)
    assert done.returncode == 1, done.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    record = ek.load_run(folder).record("connects_from_python")
    assert record.reason_code == "outside_connection"
    assert "169.254.169.254:80" in record.reason
