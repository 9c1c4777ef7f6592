"""Agents that leave something behind, or only seem to."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor

LINGER = ["sleep", "61"]
held: list[object] = []


def child() -> None:
    """Start a program, and forget it."""
    subprocess.Popen(LINGER)


def child_of_thread() -> None:
    """Start a program in a thread that lives on: it is in another list of children."""
    started = threading.Event()

    def work() -> None:
        subprocess.Popen(LINGER)
        started.set()
        time.sleep(60)

    threading.Thread(target=work, daemon=True).start()
    started.wait()


def two() -> None:
    """Start two programs in sessions of their own."""
    for _ in range(2):
        subprocess.Popen(LINGER, start_new_session=True)


def fork() -> None:
    """Go on in a fork whose parent ends."""
    if os.fork() == 0:
        if os.fork() == 0:
            time.sleep(61)
        os._exit(0)
    os.wait()


def ends_soon() -> None:
    """Start what ends a moment later."""
    subprocess.Popen(["sleep", "0.1"])


def waits() -> None:
    """Start a program, and wait for it."""
    subprocess.run(["true"], check=True)


def zombie() -> None:
    """Start a program that ends, and never ask how."""
    held.append(subprocess.Popen(["true"]))


def spawns() -> None:
    """Leave a tracker of resources, as everybody does who spawns once."""
    process = multiprocessing.get_context("spawn").Process(target=print)
    process.start()
    process.join()


def daemonic() -> None:
    """Have a child that Python ends when the program does."""
    process = multiprocessing.get_context("fork").Process(
        target=time.sleep, args=(61,), daemon=True
    )
    process.start()
    held.append(process)


def executor() -> None:
    """Keep an executor for the life of the program."""
    pool = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork"))
    assert pool.submit(abs, -1).result() == 1
    held.append(pool)


def agent(text: str) -> str:
    """Do as the user says, by the name of a function."""
    getattr(sys.modules[__name__], text)()
    return "done"
