"""Dry calls make trials cheaper, and never make a run fail."""

from __future__ import annotations

import importlib.util
import sys
import threading
from types import SimpleNamespace

import pytest

from evalkit.sandbox import warming

SDKS = [
    name
    for name in ("anthropic", "openai", "google.genai")
    if importlib.util.find_spec(name.partition(".")[0]) and importlib.util.find_spec(name)
]


def _broken(*_, **__):
    raise TypeError("unexpected keyword")


@pytest.fixture
def loaded(monkeypatch):
    """Let exactly the given modules be loaded."""

    def load(**modules):
        for name in warming._CALLS:
            monkeypatch.delitem(sys.modules, name, raising=False)
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, name, module)

    return load


def test_nothing_is_called_that_is_not_loaded(loaded):
    """An agent without an SDK costs nothing, and no SDK is imported for it."""
    loaded()
    assert warming.warm_sdks() == ()
    assert "anthropic" not in sys.modules


def test_broken_sdk_is_noted(loaded):
    """An SDK of another version, or a stand-in, is named and passed over."""
    loaded(anthropic=SimpleNamespace(Anthropic=_broken), openai=SimpleNamespace())
    first, second = warming.warm_sdks()
    assert first == "anthropic made no dry call: TypeError: unexpected keyword"
    assert second.startswith("openai made no dry call: AttributeError")


def test_no_socket_is_noted(loaded, monkeypatch):
    """A machine without loopback warms nothing."""
    loaded(openai=SimpleNamespace())

    def refuse(*_, **__):
        raise OSError("no loopback")

    monkeypatch.setattr(warming.socket, "create_server", refuse)
    assert warming.warm_sdks() == ("openai made no dry call: no loopback",)


def test_no_thread_stays(loaded):
    """A server that has threads cannot fork."""
    loaded(openai=SimpleNamespace())
    before = threading.active_count()
    warming.warm_sdks()
    assert threading.active_count() == before


@pytest.mark.skipif(not SDKS, reason="no SDK is installed")
def test_real_sdks_are_warmed_in_a_server_that_still_forks(open_rooms):
    """The calls succeed on the installed versions, behind the barrier, and leave no thread."""
    with open_rooms(modules=SDKS, entry="room_entries:act_with_notes") as visit:
        assert visit("") == []
        assert visit.server.mode == "fork"
        assert visit.server.threads == ()
