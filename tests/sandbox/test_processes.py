"""What is known about processes, where the kernel says less, too."""

from __future__ import annotations

import os
import subprocess
import threading

import pytest

from evalkit.sandbox import processes


@pytest.mark.parametrize("kernel_lists", [True, False])
def test_children_are_found_without_the_kernels_list(monkeypatch, kernel_lists):
    """A child is found through the list of children, and by scanning all processes."""
    if not kernel_lists:
        monkeypatch.setattr(processes, "_content", _read_no_list)
    with subprocess.Popen(["sleep", "100"]) as child:
        assert child.pid in processes.children()
        child.kill()
        child.wait()
    assert child.pid not in processes.children()


def _read_no_list(path: str) -> bytes:
    """Read the list of children on a kernel that has none."""
    raise FileNotFoundError(path)


def test_other_threads_are_named():
    """A thread of Python's is reported by name, and gone once joined."""
    go = threading.Event()
    thread = threading.Thread(target=go.wait, name="price-map")
    thread.start()
    try:
        assert "price-map" in processes.other_threads(grace_s=0)
    finally:
        go.set()
        thread.join()
    assert "price-map" not in processes.other_threads()


@pytest.mark.skipif(os.getuid() != 0, reason="needs a process that is not ours to kill")
def test_process_of_another_user_is_not_ours_to_kill():
    """A kill that is not permitted is reported, so that nobody waits for it."""
    pid = os.fork()
    if pid == 0:
        os.setuid(65534)
        os._exit(1 if processes.kill(os.getppid()) else 0)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_killing_what_is_gone_is_no_error():
    """A process or group that has just ended counts as killed."""
    child = subprocess.Popen(["true"], start_new_session=True)
    child.wait()
    processes.kill_group(child.pid)
    assert processes.kill(child.pid)
