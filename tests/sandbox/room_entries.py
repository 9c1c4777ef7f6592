"""What the tests do inside a room: each function is one visit, and returns plain values."""

# ruff: noqa: D103 - an action is documented by its name and its test
from __future__ import annotations

import ctypes
import datetime
import errno
import importlib
import json
import os
import pickle
import random
import secrets
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

from evalkit.sandbox import connections, kernel, namespaces, room, warming
from evalkit.sandbox.room import Entered, Prepared

ENTERED: list[Entered] = []
CHANNEL: list[socket.socket] = []


def prepare(payload: bytes) -> Prepared:
    options = pickle.loads(payload)
    names = options.pop("modules", ())
    return room.prepare(lambda: [importlib.import_module(name) for name in names], **options)


def enter(payload: bytes) -> None:
    ENTERED.append(room.enter(pickle.loads(payload)[0]))


def act(prepared: Prepared, payload: bytes, channel: socket.socket) -> None:
    _, action, args = pickle.loads(payload)
    CHANNEL.append(channel)
    channel.sendall(json.dumps(globals()[action](*args)).encode())


def show_agent(prepared: Prepared, payload: bytes, channel: socket.socket) -> None:
    channel.sendall(json.dumps(prepared.agent).encode())


def act_with_notes(prepared: Prepared, payload: bytes, channel: socket.socket) -> None:
    channel.sendall(json.dumps(prepared.notes).encode())


def show_refused(prepared: Prepared, payload: bytes, channel: socket.socket) -> None:
    channel.sendall(json.dumps(prepared.refused._asdict()).encode())


# Entering with a part taken out: the preflight must notice.


def enter_without_isolation(payload: bytes) -> None:
    namespaces.isolate = _nothing  # type: ignore[assignment]
    enter(payload)


def enter_without_unshare(payload: bytes) -> None:
    kernel.unshare = _nothing
    kernel.mount = _nothing
    namespaces._map_ids = _nothing
    enter(payload)


def enter_with_mounts_alone(payload: bytes) -> None:
    isolate = namespaces.isolate
    namespaces.isolate = lambda **_: isolate(network=False, mounts=True)  # type: ignore[assignment]
    enter(payload)


def enter_where_unshare_is_forbidden(payload: bytes) -> None:
    kernel.unshare = _forbidden
    enter(payload)


def enter_where_mounts_are_forbidden(payload: bytes) -> None:
    unshare = kernel.unshare
    kernel.unshare = lambda flags: unshare(flags & ~kernel.NEW_MOUNTS)
    kernel.mount = _forbidden
    enter(payload)


def _nothing(*_: object, **__: object) -> None:
    pass


def _forbidden(*_: object, **__: object) -> None:
    raise PermissionError(errno.EPERM, os.strerror(errno.EPERM), "unshare")


# The network.


def reach_out(kind: str, host: str) -> dict[str, Any]:
    """Try to leave, only where the preflight says that nothing can."""
    assert ENTERED[0].barrier == "namespace"
    assert namespaces.find_leak(1) == ""
    before = ENTERED[0].refused()
    said = _REACH[kind](host)
    after = ENTERED[0].refused()
    named = [place for place in after.destinations if place not in before.destinations]
    return {"said": said, "n": after.n - before.n, "destinations": named}


def _by_socket(host: str) -> str:
    try:
        socket.create_connection((host, 80), timeout=5).close()
    except OSError as error:
        return f"{type(error).__name__} {error.errno}"
    return "connected"


def _by_datagram(host: str) -> str:
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.sendto(b"x", (host, 53))
        except OSError as error:
            return f"{type(error).__name__} {error.errno}"
    return "sent"


def _by_c_library(host: str) -> str:
    found = ctypes.c_void_p()
    status = ctypes.CDLL(None).getaddrinfo(host.encode(), b"80", None, ctypes.byref(found))
    return "found" if status == 0 else "not found"


def _by_curl(host: str) -> str:
    return _run(["curl", "-sS", "-m", "5", f"http://{host}/latest/meta-data/"])


def _by_program(host: str) -> str:
    code = f"import socket; socket.create_connection(({host!r}, 80), 5)"
    return _run([sys.executable, "-c", code])


def _by_daemon(host: str) -> str:
    """Leave by a process of a session of its own, that its parent does not wait for."""
    code = f"import socket; socket.create_connection(({host!r}, 80), 5)"
    with subprocess.Popen(
        [sys.executable, "-c", code], start_new_session=True, stderr=subprocess.DEVNULL
    ) as process:
        return str(process.wait())


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"{done.returncode} {done.stderr.strip()[-200:]}"


_REACH = {
    "socket": _by_socket,
    "datagram": _by_datagram,
    "c library": _by_c_library,
    "curl": _by_curl,
    "program": _by_program,
    "daemon": _by_daemon,
}


def talk_on_loopback(port: int) -> list[str]:
    """Listen on a port of both families, and connect to it from here and from a program."""
    answers = []
    for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.create_server((host, port), family=family) as listener:
            with socket.create_connection((host, port), timeout=5) as client:
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(b"in-process")
                answers.append(client.recv(20).decode())
            code = f"import socket; print(socket.create_connection(({host!r}, {port}), 5).recv(20))"
            with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
                connection, _ = listener.accept()
                with connection:
                    connection.sendall(b"program")
                answers.append(process.communicate()[0].decode().strip())
    return [*answers, str(ENTERED[0].refused().n)]


def python_barrier() -> dict[str, Any]:
    """Refuse by audit hook, on top of a kernel that would refuse, too."""
    assert namespaces.find_leak(1) == ""
    hook = connections.Connections(refuse=True)
    hook.watch()
    before = namespaces.refused_so_far()
    said = [_by_socket("192.0.2.1"), _by_datagram("192.0.2.1"), _by_socket("a.example.test")]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        socket.create_connection(("localhost", listener.getsockname()[1]), timeout=5).close()
        said.append("connected")
    n_kernel = namespaces.refused_so_far() - before
    return {"said": said, "n": hook.n_refused, "n_kernel": n_kernel, "to": hook.destinations}


# Files and variables.


def look_around(*paths: str) -> dict[str, Any]:
    return {
        "cwd": str(Path.cwd()),
        "host": socket.gethostbyname(socket.gethostname()),
        "home": str(Path.home()),
        "tmp": tempfile.gettempdir(),
        "environment": dict(os.environ),
        "block": Path("/proc/self/environ").read_bytes().decode().split("\0"),
        "seen": {path: _listing(path) for path in paths},
        "private": ENTERED[0].is_private,
        "notes": ENTERED[0].notes,
        "room": _listing(ENTERED[0].places.root),
        "limits": _run(["sh", "-c", "grep -E 'Cap(Prm|Eff)|NoNewPrivs' /proc/self/status >&2"]),
    }


def _listing(path: str) -> list[str] | str | None:
    try:
        if Path(path).is_dir():
            return sorted(entry.name for entry in Path(path).iterdir())
        return Path(path).read_text()
    except OSError as error:
        return type(error).__name__


def peek(pid: int) -> list[str]:
    """Look at a process outside, and try to end it."""
    answers = [_listing(f"/proc/{pid}/environ")]
    for number in (0, signal.SIGTERM):
        try:
            os.kill(pid, number)
            answers.append("signalled")
        except OSError as error:
            answers.append(type(error).__name__)
    return [str(answer) for answer in answers]


def signal_own_child() -> int:
    with subprocess.Popen(["sleep", "1000"]) as process:
        process.kill()
        return process.wait()


def unmount(path: str) -> list[str]:
    """Try to look behind what hides a folder: from here, from a program, from new namespaces."""
    said = [_run(["umount", "-l", path])]
    if shutil.which("unshare"):
        said.append(_run(["unshare", "-rm", "umount", "-l", path]))
    status = ctypes.CDLL(None).umount2(path.encode(), 2)
    return [*said, str(status), str(_listing(path))]


def fill_disk(path: str) -> list[str]:
    """Write until somebody objects; say what, and how far it went."""
    chunk, n_written = bytes(1 << 20), 0
    try:
        with Path(path).open("wb", buffering=0) as file:
            while n_written < 1 << 30:
                n_written += file.write(chunk)
    except OSError as error:
        return [errno.errorcode[error.errno or 0], str(n_written)]
    return ["no limit", str(n_written)]


def descriptors() -> dict[str, str]:
    """Return what is open, but for the directory that is being read."""
    found = {}
    for entry in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found[entry.name] = str(entry.readlink())
    return found


def leave_everything() -> list[str]:
    """Leave behind what an agent can leave behind."""
    for folder in ("/tmp", "/var/tmp", "/dev/shm", str(Path.home()), "."):
        (Path(folder) / "left-by-a-trial").write_text("x")
    listener = socket.create_server(("127.0.0.1", 8377))
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            time.sleep(1000)
        os._exit(0)
    subprocess.Popen(["sleep", "1000"], start_new_session=True)
    listener.close()
    return [tempfile.mkdtemp(), str(Path.cwd())]


# Clock and ids.


def look_at_clock() -> dict[str, Any]:
    clock = ENTERED[0].clock
    assert clock is not None
    times = [clock.now.isoformat()]
    started = time.monotonic()
    time.sleep(0.01)
    slept = time.monotonic() - started
    times.append(datetime.datetime.now(datetime.UTC).isoformat())
    clock.tick()
    times.append(datetime.datetime.now(datetime.UTC).isoformat())
    clock.advance(2 * 86400.5)
    times.append(datetime.datetime.now(datetime.UTC).isoformat())
    return {"times": times, "slept": slept, "local": time.localtime().tm_hour}


def draw() -> dict[str, Any]:
    """Draw from everything that is covered."""
    import numpy as np

    with closing(sqlite3.connect(":memory:")) as database:
        (from_sqlite,) = database.execute("select random() || hex(randomblob(4))").fetchone()
    fork = os.pipe()
    for _ in range(2):
        if os.fork() == 0:
            os.write(fork[1], uuid.uuid4().bytes)
            os._exit(0)
        os.wait()
    return {
        "uuid4": str(uuid.uuid4()),
        "uuid1": str(uuid.uuid1()),
        "uuid1 again": str(uuid.uuid1()),
        "secrets": secrets.token_hex(),
        "system": random.SystemRandom().random(),
        "urandom": os.urandom(8).hex(),
        "getrandom": os.getrandom(8).hex(),
        "random": random.random(),
        "Random": random.Random().random(),
        "reseeded": (random.seed(), random.random())[1],
        "explicit": random.Random(1).random() == 0.13436424411240122,
        "file": tempfile.mkdtemp(),
        "numpy": np.random.random(),  # noqa: NPY002 - agents still use it
        "numpy new": np.random.default_rng().random(),
        "sqlite": from_sqlite,
        "forks": [os.read(fork[0], 16).hex() for _ in range(2)],
        "set": list({"Denver", "Oslo", "Seattle", "Lima"}),
        "now": time.time(),
        "cwd": str(Path.cwd()),
    }


def ask_sqlite(path: str, queries: list[str]) -> list[Any]:
    """Ask each query before and after an hour, on a connection made by an old `connect`."""
    assert ENTERED[0].clock is not None
    with closing(CONNECT(path)) as database:
        database.execute("create table t (a, made text default current_timestamp)")
        answers = []
        for _ in range(2):
            database.execute("insert into t (a) values (1)")
            answers.append([database.execute(query).fetchone()[0] for query in queries])
            ENTERED[0].clock.advance(3600)
        return [*answers, [row[0] for row in database.execute("select made from t")]]


CONNECT: Any = None


def remember_connect(payload: bytes) -> Prepared:
    """Take `connect` when the server imports, as `from sqlite3 import connect` does."""

    def load() -> None:
        global CONNECT
        CONNECT = sqlite3.connect

    return room.prepare(load)


def thread_at_import(payload: bytes) -> Prepared:
    return room.prepare(
        lambda: threading.Thread(target=threading.Event().wait, name="pool", daemon=True).start()
    )


def look_at_import(payload: bytes) -> Prepared:
    """Look around while the agent is imported; return that in the trials."""

    def load() -> dict[str, Any]:
        seen = {path: _listing(path) for path in paths}
        here = {"home": str(Path.home()), "tmp": tempfile.gettempdir(), "cwd": str(Path.cwd())}
        return here | {"seen": seen}

    options = pickle.loads(payload)
    paths = options.pop("paths")
    return room.prepare(load, **options)


def connect_at_import(payload: bytes) -> Prepared:
    def load() -> None:
        assert namespaces.find_leak(1) == ""
        _by_socket("192.0.2.1")

    return room.prepare(load)


def set_at_import(payload: bytes) -> Prepared:
    return room.prepare(lambda: os.environ.update(AGENT_MODE="set at import", USER="agent"))


def settle(text: str) -> str:
    return ENTERED[0].settle_paths(text.replace("ROOT", ENTERED[0].places.root).encode()).decode()


def hang() -> None:
    time.sleep(1000)


CLIENT: Any = None


def client_at_import(payload: bytes) -> Prepared:
    """Build a client when the agent is imported, as agents do."""

    def load() -> None:
        global CLIENT
        CLIENT = importlib.import_module("anthropic").Anthropic()

    return room.prepare(load, **pickle.loads(payload))


def call_model() -> str:
    """Call a model by that client; something listens on the constant port."""
    with socket.create_server(("127.0.0.1", 8377)) as listener:
        threading.Thread(target=warming._serve, args=(listener,), daemon=True).start()
        message = CLIENT.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "Is it raining?"}]
        )
    return str(message.content[0].text)


def ps() -> list[str]:
    """Return the processes that can be seen."""
    seen = [p.name for p in Path("/proc").iterdir() if p.name.isdigit()]
    return sorted(seen, key=int)


def signal_everybody() -> str:
    """Try to end everything that can be reached, from a process of this trial's."""
    pid = os.fork()
    if pid == 0:
        with suppress(OSError):
            os.kill(-1, signal.SIGTERM)
        os._exit(0)
    os.waitpid(pid, 0)
    return "alive"


def daemonise_and_hang() -> None:
    """Leave a daemon, say so, and hang."""
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.write(write_end, b"x")
            time.sleep(1000)
        os._exit(0)
    os.wait()
    os.read(read_end, 1)
    CHANNEL[0].sendall(b"ready")
    time.sleep(1000)
