"""Entries that the tests run in fresh processes: agents that behave, and that do not."""

# ruff: noqa: D103, T201 - an entry is documented by its name, and agents print
from __future__ import annotations

import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

COUNTER = [0]


def prepare(payload: bytes) -> str:
    return payload.decode().upper()


def prepare_thread(payload: bytes) -> str:
    threading.Thread(target=threading.Event().wait, name="price-map", daemon=True).start()
    return payload.decode().upper()


def prepare_short_thread(payload: bytes) -> None:
    thread = threading.Thread(target=time.sleep, args=(0.01,))
    thread.start()
    thread.join()


def prepare_raise(payload: bytes) -> None:
    raise LookupError("no table named bookings")


def prepare_exit(payload: bytes) -> None:
    print("licence check failed")
    sys.stdout.flush()
    os._exit(4)


def prepare_hang(payload: bytes) -> None:
    time.sleep(1000)


def prepare_announced_hang(payload: bytes) -> None:
    Path(os.environ["ANNOUNCE"]).touch()
    time.sleep(1000)


def prepare_helper(payload: bytes) -> int:
    return subprocess.Popen(["sleep", "1000"]).pid


def say_prepared(prepared: object, payload: bytes, channel: socket.socket) -> None:
    channel.sendall(f"{prepared} {payload.decode()}".encode())


def obey(prepared: object, payload: bytes, channel: socket.socket) -> None:
    """Do what the payload names."""
    globals()[payload.decode()](channel)


def print_everywhere(channel: socket.socket) -> None:
    print("one", end=" ")
    os.write(1, b"two ")
    subprocess.run(["sh", "-c", "printf three; printf ' four' >&2"], check=True)
    print(" \ud800", file=sys.stderr, end="")
    os._exit(3)


def print_and_send(channel: socket.socket) -> None:
    print("sent")
    channel.sendall(b"sent")


def exit_3(channel: socket.socket) -> None:
    os._exit(3)


def sys_exit_5(channel: socket.socket) -> None:
    sys.exit(5)


def sys_exit_text(channel: socket.socket) -> None:
    sys.exit("cannot go on")


def return_normally(channel: socket.socket) -> None:
    pass


def raise_error(channel: socket.socket) -> None:
    raise ArithmeticError("12 is not 13")


def raise_without_stderr(channel: socket.socket) -> None:
    sys.stdout = sys.stderr = None  # type: ignore[assignment]
    raise ArithmeticError("12 is not 13")


def kill_self(channel: socket.socket) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def interrupt_self(channel: socket.socket) -> None:
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        os._exit(6)


def hang(channel: socket.socket) -> None:
    print("hanging")
    channel.sendall(b"hanging")
    time.sleep(1000)


def stop_self(channel: socket.socket) -> None:
    channel.sendall(b"stopping")
    os.kill(os.getpid(), signal.SIGSTOP)


def child_that_ignores_sigterm(channel: socket.socket) -> None:
    _fork_sleeper(channel)
    time.sleep(1000)


def group_left_behind(channel: socket.socket) -> None:
    _fork_sleeper(channel)


def _fork_sleeper(channel: socket.socket) -> None:
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.write(write_end, b"x")
        time.sleep(1000)
    os.read(read_end, 1)
    channel.sendall(b"forked")


def daemon(channel: socket.socket) -> None:
    _fork_daemon()
    channel.sendall(b"forked")
    time.sleep(1000)


def daemon_left_behind(channel: socket.socket) -> None:
    _fork_daemon()


def daemon_then_ask(channel: socket.socket) -> None:
    """Report whether the daemon is still alive when asked."""
    pid = _fork_daemon()
    channel.sendall(b"forked")
    channel.recv(1)
    os.kill(pid, 0)
    channel.sendall(b"alive")


def _fork_daemon() -> int:
    """Double-fork a daemon in a session of its own that holds nothing of ours."""
    read_end, write_end = os.pipe()
    middle = os.fork()
    if middle == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            os.write(write_end, str(os.getpid()).encode())
            os.closerange(0, 100)
            time.sleep(1000)
        os._exit(0)
    os.waitpid(middle, 0)
    return int(os.read(read_end, 20))


def fork_that_returns(channel: socket.socket) -> None:
    """Come back in both processes, as an agent may that forks; the fork must stay mute."""
    pid = os.fork()
    if pid:
        os.waitpid(pid, 0)
    channel.sendall(b"once")


def fork_with_duplicate(channel: socket.socket) -> None:
    stream = channel.makefile("wb")
    if os.fork() == 0:
        with suppress(OSError):
            stream.write(b"from the fork")
            stream.flush()
        os._exit(0)
    os.wait()
    channel.sendall(b"from the trial")


def send_much(channel: socket.socket) -> None:
    channel.sendall(bytes(range(256)) * 204_800)


def send_much_and_die(channel: socket.socket) -> None:
    channel.sendall(bytes(range(256)) * 204_800)
    os.kill(os.getpid(), signal.SIGKILL)


def digest_what_comes(channel: socket.socket) -> None:
    digest, size = hashlib.sha256(), 0
    while size < 256 * 204_800:
        chunk = channel.recv(1 << 20)
        digest.update(chunk)
        size += len(chunk)
    channel.sendall(digest.digest())


def digest_payload(prepared: object, payload: bytes, channel: socket.socket) -> None:
    channel.sendall(hashlib.sha256(payload).digest())


def never_read(channel: socket.socket) -> None:
    time.sleep(1000)


def close_early(channel: socket.socket) -> None:
    channel.close()
    time.sleep(0.1)
    os._exit(7)


def count(channel: socket.socket) -> None:
    COUNTER[0] += 1
    os.environ["COUNTED"] = os.environ.get("COUNTED", "") + "x"
    channel.sendall(f"{COUNTER[0]} {os.environ['COUNTED']}".encode())


def describe(channel: socket.socket) -> None:
    """Say what the process is like."""
    facts = {
        "stdin": os.read(0, 10).decode(),
        "leads": os.getsid(0) == os.getpid() == os.getpgrp(),
        "argv": sys.argv[1:],
        "hash": hash("evalkit"),
        "mark": os.environ.get("EVALKIT_TEST_MARK"),
        "cwd": str(Path.cwd()),
        "fds": [fd.name for fd in Path("/proc/self/fd").iterdir() if _is_open(int(fd.name))],
        "channel": str(channel.fileno()),
        "default": [
            signal.getsignal(number) is signal.SIG_DFL
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
        ],
        "wakeup": signal.set_wakeup_fd(-1),
        "threads": threading.active_count(),
    }
    channel.sendall(json.dumps(facts).encode())


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def server_pid(channel: socket.socket) -> None:
    channel.sendall(str(os.getppid()).encode())
    time.sleep(1000)


def server_pid_and_group(channel: socket.socket) -> None:
    if os.fork() == 0:
        time.sleep(1000)
    server_pid(channel)


def print_much(channel: socket.socket) -> None:
    print("first")
    sys.stdout.write("x" * 3_000_000)
    print("last")


def loop(prepared: object, payload: bytes, channel: socket.socket) -> None:
    """Answer each byte that comes with the payload, until told to stop."""
    while (data := channel.recv(1)) == b"?":
        channel.sendall(payload)
    channel.sendall(data + payload)
