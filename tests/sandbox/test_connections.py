"""What the audit hook takes for the outside."""

from __future__ import annotations

import socket

import pytest

from evalkit.sandbox import connections
from evalkit.sandbox.connections import Connections


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("192.0.2.1", "192.0.2.1:80"),
        ("169.254.169.254", "169.254.169.254:80"),
        ("2001:db8::1", "[2001:db8::1]:80"),
        ("::ffff:192.0.2.1", "[::ffff:192.0.2.1]:80"),
        ("a.example.test", "a.example.test:80"),
        (b"a.example.test", "a.example.test:80"),
        ("127.0.0.1.example.test", "127.0.0.1.example.test:80"),
        ("localhost.example.test", "localhost.example.test:80"),
        ("127.0.0.1", ""),
        ("127.9.9.9", ""),
        ("::1", ""),
        ("::ffff:127.0.0.1", ""),
        ("0.0.0.0", ""),
        ("localhost", ""),
        ("LOCALHOST.", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_outside_is_what_is_not_loopback(host, shown):
    """Names that merely look like loopback are outside."""
    assert connections._outside(host, 80) == shown


@pytest.mark.parametrize(
    ("event", "args"),
    [
        ("open", ("/etc/passwd", "r", 0)),
        ("socket.getaddrinfo", ("192.0.2.1", 80, 0, 0, 0)),
        ("socket.getaddrinfo", (None, 80, 0, 0, 0)),
        ("socket.gethostbyname", ("localhost",)),
        ("socket.getnameinfo", (("127.0.0.1", 80),)),
    ],
)
def test_hook_lets_local_things_through(event, args):
    """Other events, look-ups of addresses, and this machine are nobody's business."""
    hook = Connections(refuse=True)
    hook._hear(event, args)
    assert (hook.n_refused, hook.destinations) == (0, ())


@pytest.mark.parametrize(
    ("event", "args", "shown"),
    [
        ("socket.getaddrinfo", ("a.example.test", 443, 0, 0, 0), "a.example.test:443"),
        ("socket.gethostbyname", ("a.example.test",), "a.example.test"),
        ("socket.gethostbyaddr", ("192.0.2.1",), "192.0.2.1"),
        ("socket.getnameinfo", (("192.0.2.1", 80),), "192.0.2.1:80"),
    ],
)
def test_hook_refuses_look_ups(event, args, shown):
    """A name that would leave the machine is refused as a failed look-up."""
    hook = Connections(refuse=True)
    with pytest.raises(socket.gaierror, match="evalkit refused"):
        hook._hear(event, args)
    assert (hook.n_refused, hook.destinations) == (1, (shown,))


def test_hook_leaves_unix_sockets_alone():
    """They have no address of a network."""
    hook = Connections(refuse=True)
    with socket.socket(socket.AF_UNIX) as sock:
        hook._hear("socket.connect", (sock, "/run/x.sock"))
    assert hook.n_refused == 0


def test_destinations_are_bounded():
    """A scan of ports cannot make a ledger grow without end; it is counted all the same."""
    hook = Connections(refuse=True)
    with socket.socket(socket.AF_INET) as sock:
        for port in range(1000):
            with pytest.raises(OSError, match="evalkit refused"):
                hook._hear("socket.connect", (sock, ("192.0.2.1", port + 1)))
    assert hook.n_refused == 1000
    assert len(hook.destinations) == 100
