"""A trial's room: nothing of the user's in it, the same every time, gone afterwards."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import pwd
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from evalkit.sandbox import folders, kernel
from evalkit.sandbox.certificates import make_authority
from evalkit.sandbox.child import Ended, Received
from evalkit.sandbox.environment import server_environment
from evalkit.sandbox.folders import ROOM
from evalkit.sandbox.room import Room

HOME = pwd.getpwuid(os.getuid()).pw_dir
SECRETS = {
    "SSH_AUTH_SOCK": "/run/agent.sock",
    "DOCKER_HOST": "unix:///var/run/docker.sock",
    "PGHOST": "/var/run/postgresql",
    "AWS_SECRET_ACCESS_KEY": "real-secret",
    "HTTPS_PROXY": "http://proxy.example.test:3128",
    "OPENAI_ORG_ID": "org-real",
    "ANTHROPIC_AUTH_TOKEN": "real-secret",
}


def test_home_and_shared_places_are_hidden(visit):
    """Keys, sockets and other people's temporary files are not there."""
    places = (f"{HOME}/.ssh", f"{HOME}/.ssh/id_rsa", "/run/dbus", "/dev/shm", "/var/tmp", "/run")
    seen = visit("look_around", *places)["seen"]
    assert seen[f"{HOME}/.ssh"] == seen[f"{HOME}/.ssh/id_rsa"] == "FileNotFoundError"
    assert seen["/run"] == seen["/dev/shm"] == seen["/var/tmp"] == []


def test_key_in_a_home_is_hidden(open_rooms, tmp_path):
    """The home that the environment names is hidden, too, but for what was asked for."""
    for name in (".ssh", "project"):
        (tmp_path / name).mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text("real-secret")
    (tmp_path / "project" / "data.csv").write_text("a,b")
    env = server_environment(home=str(tmp_path))
    with open_rooms(env=env, keep=[str(tmp_path / "project")]) as visit:
        seen = visit("look_around", str(tmp_path), f"{tmp_path}/project/data.csv")["seen"]
    assert list(seen.values()) == [["project"], "a,b"]


def test_folder_of_modules_that_a_variable_names_is_there(open_rooms, tmp_path):
    """A program finds its modules also where they lie in a place that is hidden."""
    (tmp_path / "modules" / "left-pad").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    env = server_environment() | {"NODE_PATH": str(tmp_path / "modules")}
    with open_rooms(env=env) as visit:
        around = visit("look_around", str(tmp_path), str(tmp_path / "modules"))
    assert list(around["seen"].values()) == [["modules"], ["left-pad"]]


def test_folders_are_at_a_constant_path(visit):
    """Home, temporary files and working directory are fresh, and the same in every trial."""
    around = visit("look_around", "/tmp", room=Room(files={"data/a.txt": b"hello"}))
    assert around["private"]
    assert around["notes"] == []
    assert around["host"] == "127.0.0.1"
    assert around["cwd"] == f"{ROOM}/work"
    assert around["home"] == around["environment"]["HOME"] == f"{ROOM}/home"
    assert around["tmp"] == around["environment"]["TMPDIR"] == f"{ROOM}/tmp"
    assert around["room"] == ["home", "tmp", "work"]


def test_files_of_the_scenario_are_there(open_rooms, tmp_path):
    """Content, and copies of files that the suite has."""
    source = tmp_path / "resume.pdf"
    source.write_bytes(b"%PDF" * 1000)
    room = Room(files={"data/a.txt": b"hello", "resume.pdf": str(source)})
    with open_rooms(keep=[str(tmp_path)]) as visit:
        seen = visit("look_around", "data/a.txt", "resume.pdf", room=room)["seen"]
    assert seen == {"data/a.txt": "hello", "resume.pdf": "%PDF" * 1000}


def test_import_of_the_agent_sees_what_trials_see(open_rooms, tmp_path):
    """No key can be kept from the import, and a path that is computed there is right later."""
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "id_rsa").write_text("real-secret")
    key = str(tmp_path / ".ssh" / "id_rsa")
    with open_rooms(
        env=server_environment(home=str(tmp_path)),
        prepare="room_entries:look_at_import",
        entry="room_entries:show_agent",
        paths=[key, f"{HOME}/.ssh", "/run"],
    ) as visit:
        found = visit("")
    absent = {key: "FileNotFoundError", f"{HOME}/.ssh": "FileNotFoundError", "/run": []}
    assert found["seen"] == absent
    assert (found["home"], found["tmp"]) == (f"{ROOM}/home", f"{ROOM}/tmp")
    assert found["cwd"] == str(Path.cwd())


def test_nothing_of_the_environment_enters(open_rooms, monkeypatch):
    """Variables come from an allow-list; neither Python nor the kernel shows another."""
    for name, value in SECRETS.items():
        monkeypatch.setenv(name, value)
    with open_rooms() as visit:
        around = visit("look_around")
    shown = json.dumps([around["environment"], around["block"]])
    assert not [name for name in SECRETS if name in shown]
    assert "real-secret" not in shown
    assert around["environment"]["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:8377"


def test_environment_of_a_careless_server_goes(open_rooms):
    """What a server was started with is dropped, unless the room names it; imports may set more."""
    env = dict(os.environ) | SECRETS
    with open_rooms(env=env, prepare="room_entries:set_at_import") as visit:
        around = visit("look_around", room=Room(env={"COPILOT_DB": "copilot.db"}))
    assert not SECRETS.keys() & around["environment"].keys()
    assert around["environment"]["AGENT_MODE"] == "set at import"
    assert around["environment"]["COPILOT_DB"] == "copilot.db"


def test_environment_of_a_careful_server_is_kept(open_rooms):
    """A room that names no variables has the server's, with what the import added and not more."""
    with open_rooms(prepare="room_entries:set_at_import") as visit:
        room = Room(env=None, more_env={"COPILOT_DB": "copilot.db"})
        kept = visit("look_around", room=room)["environment"]
        named = visit("look_around", room=Room(env={"COPILOT_DB": "copilot.db"}))["environment"]
    numerical = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"}
    assert {name: kept[name] for name in kept.keys() - numerical} == named
    assert kept["HOME"] == f"{ROOM}/home"
    assert kept["USER"] == "evalkit"  # the import had changed it


def test_processes_outside_cannot_be_read_or_ended(visit):
    """Neither the environment of the caller nor a signal to it or to the server gets through."""
    expected = ["PermissionError", "PermissionError", "PermissionError"]
    if not kernel.can_scope_signals():
        pytest.skip("signals are confined from Linux 6.12 on")
    assert visit("peek", os.getpid()) == expected
    assert visit("peek", visit.server._process._process.pid) == expected
    assert visit("signal_own_child") == -9


def test_what_is_hidden_stays_hidden(visit):
    """Capabilities are gone, for programs of root's too, so that no mount can be taken away."""
    limits = visit("look_around")["limits"]
    assert "CapPrm:\t0000000000000000" in limits
    assert "CapEff:\t0000000000000000" in limits
    assert "NoNewPrivs:\t1" in limits
    *said, status, seen = visit("unmount", "/var/tmp")
    assert (status, seen) == ("-1", "[]")
    assert not [text for text in said if text.startswith("0")]


@pytest.mark.parametrize("path", ["big", f"{ROOM}/tmp/big", "/dev/shm/big", "/var/tmp/big"])
def test_disk_cannot_be_filled(visit, path):
    """What a trial writes is bounded, in its folders and elsewhere."""
    said, n_written = visit("fill_disk", path, room=Room(disk_limit=8 << 20))
    assert said in {"ENOSPC", "EFBIG"}
    assert int(n_written) <= 8 << 20


def test_file_outside_the_room_is_bounded(visit, tmp_path, open_rooms):
    """Also where it keeps something of the machine's, one file cannot grow without end."""
    with open_rooms(keep=[str(tmp_path)]) as keeping:
        said, _ = keeping("fill_disk", str(tmp_path / "big"), room=Room(disk_limit=4 << 20))
    assert said == "EFBIG"
    assert (tmp_path / "big").stat().st_size == 4 << 20


def test_descriptors_of_the_caller_do_not_come_along(open_rooms, tmp_path):
    """A trial has its output and its channel, and nothing that its caller has open."""
    with (tmp_path / "precious").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        with open_rooms() as visit:
            found = visit("descriptors")
    assert "precious" not in json.dumps(found)
    kinds = [place.split(":")[0] for name, place in found.items() if int(name) > 2]
    assert kinds == ["socket"]


def test_two_trials_are_the_same(visit):
    """Paths, times, ids and random numbers do not differ between two runs of a trial."""
    assert visit("draw") == visit("draw")


def test_two_servers_are_the_same(open_rooms):
    """Nor between two servers: nothing hangs on the process, its memory or its age."""
    answers = []
    for _ in range(2):
        with open_rooms(modules=["numpy"]) as visit:
            answers.append(visit("draw"))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("seed", [(8, "s", 0, 0), (7, "t", 0, 0), (7, "s", 1, 0), (7, "s", 0, 1)])
def test_other_trials_draw_other_ids(visit, seed):
    """Seed, scenario, trial and process number each matter: a restart repeats no id."""
    one, other = visit("draw"), visit("draw", room=Room(seed=seed))
    the_same = {name for name in one if one[name] == other[name]}
    assert the_same == {"explicit", "set", "now", "cwd"}


def test_ids_within_a_trial_differ(visit):
    """A stream does not repeat itself, and two forks get streams of their own."""
    answer = visit("draw")
    assert len(set(answer["forks"]) | {answer["uuid4"].replace("-", "")}) == 3
    assert answer["uuid1"] != answer["uuid1 again"]
    assert answer["explicit"]


@pytest.mark.skipif(not importlib.util.find_spec("anthropic"), reason="anthropic is not installed")
def test_client_built_at_import_reaches_the_gateway(open_rooms):
    """Its URL, key and certificate are those of every trial, two at the same port at a time."""
    certificate = make_authority().certificate
    with open_rooms(prepare="room_entries:client_at_import", certificate=certificate) as visit:
        assert [visit("call_model") for _ in range(2)] == ["It is dry."] * 2
        around = visit("look_around", f"{ROOM}/certificate.pem")
    assert around["environment"]["SSL_CERT_FILE"] == f"{ROOM}/certificate.pem"
    assert list(around["seen"].values()) == [certificate.decode()]


def test_trial_dies_with_its_server(open_rooms, mark):
    """Entering a room does not take away the signal that ends a trial whose server is killed."""
    env = server_environment() | {"EVALKIT_TEST_MARK": mark.value}
    with open_rooms(env=env) as visit:
        child = visit.start("hang", room=Room(env=env))
        while child.pid is None:
            visit.server.wait(1)
        os.kill(visit.server._process._process.pid, signal.SIGKILL)
        ended = visit.server.wait(10)
    assert [event.exit_status for event in ended] == [None]
    assert mark.wait_until_gone() == set()


def test_spawned_trial_enters_before_the_imports(open_rooms):
    """Where the imports start threads the room is entered first, and holds all the same."""
    with open_rooms(prepare="room_entries:thread_at_import") as visit:
        assert visit.server.mode == "spawn"
        assert visit.server.threads == ("pool",)
        around = visit("look_around", f"{HOME}/.ssh")
        assert around["private"]
        assert around["cwd"] == f"{ROOM}/work"
        assert around["seen"] == {f"{HOME}/.ssh": "FileNotFoundError"}
        answer = visit("reach_out", "socket", "192.0.2.1")
        assert (answer["said"], answer["n"]) == ("OSError 101", 1)


def test_room_without_mounts_uses_a_spare_folder(open_rooms, tmp_path):
    """It works where users have no namespaces; its real path is replaced by the constant one."""
    spare = tmp_path / "spare"
    room = Room(barrier="none", spare=str(spare), seed=(1,))
    forbidden = "room_entries:enter_where_unshare_is_forbidden"
    with open_rooms(enter=forbidden, barrier="none") as visit:
        around = visit("look_around", room=room)
        assert around["cwd"] == f"{spare}/work"
        assert not around["private"]
        assert "not hidden" in around["notes"][0]
        assert visit("settle", 'saved "ROOT/work/a"', room=room) == f'saved "{ROOM}/work/a"'
    assert sorted(path.name for path in spare.iterdir()) == ["home", "tmp", "work"]
    folders.remove_folder(str(spare))
    assert not spare.exists()


def test_barrier_holds_where_mounts_are_forbidden(open_rooms, tmp_path):
    """A container may allow a network of one's own, but no mounts."""
    room = Room(spare=str(tmp_path / "spare"))
    with open_rooms(enter="room_entries:enter_where_mounts_are_forbidden") as visit:
        around = visit("look_around", room=room)
    assert not around["private"]
    assert around["cwd"] == f"{tmp_path}/spare/work"


def test_open_network_keeps_name_service(open_rooms):
    """Without a barrier names are looked up as usual: the sockets for that stay visible."""
    with open_rooms(barrier="none") as visit:
        seen = visit("look_around", "/run", "/var/tmp", room=Room(barrier="none"))["seen"]
    assert seen["/run"] == sorted(entry.name for entry in Path("/run").iterdir())
    assert seen["/var/tmp"] == []


def test_unreadable_folder_is_removed(tmp_path):
    """What an agent locks is removed all the same."""
    places = folders.make_folder(str(tmp_path / "room"))
    locked = Path(places.work) / "locked" / "deep"
    locked.mkdir(parents=True)
    (locked / "file").write_text("x")
    locked.chmod(0)
    locked.parent.chmod(0)
    folders.remove_folder(places.root)
    assert not Path(places.root).exists()


SHARED = ("/tmp", "/var/tmp", "/dev/shm", HOME)


def _state() -> dict[str, object]:
    """Return what trials could have changed on this machine."""
    return {
        "mounts": Path("/proc/self/mounts").read_text(),
        "left": [str(p) for place in SHARED for p in Path(place).glob("*left-by-a-trial*")],
        "room": Path(ROOM).exists(),
    }


def test_200_trials_leave_nothing(open_rooms, mark):
    """No process, mount, port or file of them is left, whatever they started and wrote."""
    before = _state()
    env = server_environment() | {"EVALKIT_TEST_MARK": mark.value}
    with open_rooms(env=env) as visit:
        payload = pickle.dumps((Room(env=env), "leave_everything", ()))
        n_started, sent, ends = 0, [], []
        while len(ends) < 200:
            while n_started < 200 and n_started - len(ends) < 12:
                visit.server.start(payload)
                n_started += 1
            for event in visit.server.wait(60):
                if isinstance(event, Received):
                    sent.append(event.data)
                elif isinstance(event, Ended):
                    ends.append(event.exit_status)
        assert mark.pids() <= {visit.server._process._process.pid}
    assert ends == [0] * 200
    assert len(set(sent)) == 1
    assert mark.wait_until_gone() == set()
    assert _state() == before
    with socket.create_server(("127.0.0.1", 8377)):
        pass


SCRIPT = """
import json, os, socket, sys
sys.path.insert(0, sys.argv[1])
from evalkit.sandbox import namespaces, room
entered = room.enter(room.Room())
assert namespaces.find_leak(1) == ""
before = entered.refused().n
try:
    socket.create_connection(("192.0.2.1", 80), 5)
except OSError as error:
    said = error.errno
refused = entered.refused().n - before
home = os.path.exists(sys.argv[2] + "/.ssh")
print(json.dumps([os.getuid(), entered.is_private, os.getcwd(), said, refused, home]))
"""


@pytest.mark.parametrize("as_user", ["the one who tests", "an ordinary one"])
def test_room_needs_no_root(visit, as_user):
    """Any user can enter a room, from the command line as well."""
    root = str(Path(folders.__file__).parents[2])
    command = [sys.executable, "-P", "-c", SCRIPT, root, HOME]
    uid = os.getuid()
    if as_user == "an ordinary one":
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            pytest.skip("only root can become somebody else, by setpriv")
        uid = 65534
        command = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *command]
        start = [*command[:6], sys.executable, "-P", "-c", "import json, ctypes"]
        if subprocess.run(start, capture_output=True, check=False, cwd="/").returncode:
            pytest.skip("an ordinary user cannot start this interpreter")
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=server_environment(), cwd="/"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == [uid, True, f"{ROOM}/work", 101, 1, False]
