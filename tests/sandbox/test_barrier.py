"""The network is shut off, provably, for everything that a trial starts.

What these tests send to the outside is sent only by processes whose own preflight has
passed, to addresses that nobody has or that only a cloud has.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalkit.errors import SandboxError
from evalkit.sandbox import barrier, namespaces

METADATA = "169.254.169.254"


@pytest.mark.parametrize(
    ("kind", "host", "said", "named"),
    [
        ("socket", "192.0.2.1", "OSError 101", "192.0.2.1:80"),
        ("socket", METADATA, "OSError 101", f"{METADATA}:80"),
        ("socket", "2001:db8::1", "OSError 101", "[2001:db8::1]:80"),
        ("socket", "a.example.test", "gaierror -3", "a.example.test:80"),
        ("datagram", "192.0.2.1", "OSError 101", "192.0.2.1:53"),
        ("datagram", "2001:db8::1", "OSError 101", "[2001:db8::1]:53"),
        ("c library", "c.example.test", "not found", ""),
        ("program", "192.0.2.1", "unreachable", ""),
        ("daemon", METADATA, "1", ""),
    ],
)
def test_connection_is_refused_and_counted(visit, kind, host, said, named):
    """Whoever tries to leave is refused by the kernel and counted; Python's own is named."""
    answer = visit("reach_out", kind, host)
    assert said in answer["said"]
    assert answer["n"] >= 1
    assert answer["destinations"] == ([named] if named else [])


@pytest.mark.parametrize("host", ["192.0.2.1", METADATA, "curl.example.test"])
def test_curl_is_refused_and_counted(visit, host):
    """A program that uses a C library of its own does not get out either."""
    if not shutil.which("curl"):
        pytest.skip("curl is not installed")
    answer = visit("reach_out", "curl", host)
    assert answer["said"].split()[0] in {"6", "7"}
    assert answer["n"] >= 1


def test_loopback_works_and_is_not_counted(visit):
    """Listener and client meet on 127.0.0.1 and ::1, also over processes."""
    answers = visit("talk_on_loopback", 8377)
    assert answers == ["in-process", "b'program'", "in-process", "b'program'", "0"]


@pytest.mark.parametrize(
    ("enter", "problem"),
    [
        ("enter_without_isolation", "still in the network"),
        ("enter_without_unshare", "still in the network"),
        ("enter_with_mounts_alone", "still in the network"),
        ("enter_where_unshare_is_forbidden", "Operation not permitted"),
    ],
)
def test_barrier_that_is_not_there_is_noticed(open_rooms, enter, problem):
    """When the call that makes it does nothing, or is forbidden, no trial begins."""
    with open_rooms(enter=f"room_entries:{enter}", barrier="none") as visit:
        text = visit.refuse()
    assert problem in text
    assert "--network-barrier python" in text
    assert f"Allow it ({barrier.advice()})" in text


def test_preflight_notices_a_missing_namespace_behind_a_barrier(open_rooms):
    """A machine that is offline anyway has no barrier for that."""
    with open_rooms(enter="room_entries:enter_without_isolation") as visit:
        assert "still in the network" in visit.refuse()


@pytest.mark.parametrize(
    ("table", "content"),
    [
        ("/proc/net/route", b"Iface Destination\neth0\t00000000\t0102000A\n"),
        ("/proc/net/ipv6_route", b"00 00 00 00 00000001 00000000 00200200     wlan0\n"),
    ],
)
def test_route_over_a_device_is_a_leak(monkeypatch, table, content):
    """A network of one's own that has a way out is no barrier."""
    monkeypatch.setattr(namespaces, "_table", lambda path: content if path == table else b"")
    assert namespaces.find_leak(1).startswith("there is a route over ")


def test_answer_of_the_kernel_decides(monkeypatch):
    """An address that can be reached is a leak, whatever the tables say."""
    monkeypatch.setattr(namespaces, "_table", lambda _: b"")
    monkeypatch.setattr(namespaces, "_OUTSIDE", ((2, "127.0.0.1", {101}),))
    assert namespaces.find_leak(1) == "the kernel has a route to 127.0.0.1"


def test_unexpected_refusal_is_a_leak(monkeypatch):
    """Forbidden is not unreachable: a firewall may be lifted."""
    monkeypatch.setattr(namespaces, "_table", lambda _: b"")
    monkeypatch.setattr(namespaces, "_OUTSIDE", ((2, "127.0.0.1", {101}),))

    class Forbidden:
        def __init__(self, *_):
            pass

        def __enter__(self):
            raise PermissionError(1, "Operation not permitted")

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(namespaces.socket, "socket", Forbidden)
    assert "Operation not permitted" in namespaces.find_leak(1)


def test_unknown_network_is_a_leak():
    """Without a file that names the network nothing is proven."""
    assert "still in the network" in namespaces.find_leak(0)


def test_import_of_the_agent_is_behind_the_barrier(open_rooms):
    """What a module tries when it is imported is refused, too, counted and named."""
    with open_rooms(
        prepare="room_entries:connect_at_import", entry="room_entries:show_refused"
    ) as visit:
        # Our own preflight tries two of them.
        assert visit("") == {
            "n": 3,
            "destinations": ["192.0.2.1:9", "[2001:db8::1]:9", "192.0.2.1:80"],
        }


def test_server_says_what_is_missing_in_its_own_words(open_rooms, monkeypatch):
    """A machine without namespaces is told in one sentence, before the first trial."""
    sentence = barrier.no_barrier("unshare: Operation not permitted")
    with pytest.raises(SandboxError) as caught:
        _refused({"problem": sentence, "traceback": "Traceback ...", "kind": "SandboxError"})
    assert str(caught.value) == sentence


def _refused(message):
    from evalkit.sandbox import starting

    starting._raise_refused(message)


def test_advice_names_the_switch_that_is_off(monkeypatch, tmp_path):
    """What forbids namespaces here is named, and nothing else."""
    switch = tmp_path / "restrict"
    switch.write_text("1\n")
    monkeypatch.setattr(
        barrier, "_SWITCHES", ((str(switch), "1", "turn it"), (str(switch), "0", "no"))
    )
    monkeypatch.setattr(barrier, "_CONTAINER_MARKS", (str(Path("/no/such/mark")),))
    assert barrier.advice() == "turn it"
    switch.unlink()
    assert "apparmor" in barrier.advice()


def test_switch_is_read_before_the_process_has_others(monkeypatch, tmp_path):
    """In a namespace of its own a process sees switches that say nothing of the machine's."""
    switch = tmp_path / "limit"
    switch.write_text("0\n")
    monkeypatch.setattr(barrier, "_SWITCHES", ((str(switch), "0", "raise it"),))
    monkeypatch.setattr(barrier, "_CONTAINER_MARKS", ())
    monkeypatch.setattr(barrier._Seen, "advice", None)
    barrier.look_at_switches()
    switch.write_text("15000\n")
    assert barrier.advice() == "raise it"


def test_python_barrier_refuses_before_the_kernel_is_asked(visit):
    """The audit hook refuses what is not loopback, names it, and lets loopback through."""
    answer = visit("python_barrier")
    assert answer["said"] == ["OSError 101", "OSError 101", "gaierror -3", "connected"]
    assert answer["n"] == 3
    assert answer["n_kernel"] == 0
    assert answer["to"] == ["192.0.2.1:80", "192.0.2.1:53", "a.example.test:80"]
