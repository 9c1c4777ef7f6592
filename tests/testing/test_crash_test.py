"""Crashes at each moment: an honest agent passes, and each planted fault is found."""

from __future__ import annotations

import importlib.util
import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from evalkit.errors import UsageError
from evalkit.ledger import Event
from evalkit.suite import Scenario
from evalkit.testing import crash_test
from evalkit.testing.crash_rows import COLUMNS, n_replies, what
from evalkit.testing.crashing import moments_of

pytestmark = [pytest.mark.sdk, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")]

HAS_WORLD = importlib.util.find_spec("evalkit.outside") is not None

CLERK = """
import sqlite3
import anthropic

class Clerk:
    "Notes what the model asks for, with what was said, so that it can say it again."

    def __init__(self):
        self.client = anthropic.Anthropic(max_retries=0)
        self.db = sqlite3.connect("clerk.db", isolation_level=None)
        self.db.execute("CREATE TABLE IF NOT EXISTS notes(text)")
        self.db.execute("CREATE TABLE IF NOT EXISTS said(text PRIMARY KEY, reply)")

    def reply(self, text):
        known = self.db.execute("SELECT reply FROM said WHERE text = ?", (text,)).fetchone()
        return known[0] if known else self.do(text)

    def do(self, text):
        note = self.ask(text)
        with self.db:
            self.db.execute("BEGIN")
            self.db.execute("INSERT INTO notes VALUES (?)", (note,))
            self.db.execute("INSERT INTO said VALUES (?, ?)", (text, f"noted {note}"))
        return f"noted {note}"

    def ask(self, text):
        said = [{"role": "user", "content": text}]
        answer = self.client.messages.create(model="m", max_tokens=9, messages=said)
        return answer.content[0].text

class Hasty(Clerk):
    "Marks what was said before it is done: a crash in between loses it."

    def do(self, text):
        self.db.execute("INSERT INTO said VALUES (?, ?)", (text, "done already"))
        note = self.ask(text)
        self.db.execute("INSERT INTO notes VALUES (?)", (note,))
        return f"noted {note}"

class Lazy(Clerk):
    "Writes only every second note."

    waiting = []

    def do(self, text):
        self.waiting.append(self.ask(text))
        if len(self.waiting) == 2:
            self.db.executemany("INSERT INTO notes VALUES (?)", [(note,) for note in self.waiting])
        return "noted"

class Stubborn(Clerk):
    "Cannot begin where it has been before."

    def __init__(self):
        super().__init__()
        self.db.execute("CREATE TABLE mine(a)")
"""

BOT = """
import json
import sqlite3
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.request import Request, urlopen

class Bot(BaseHTTPRequestHandler):
    "Notes each update once, and answers by a request of its own."

    marks_first = True

    def do_POST(self):
        update = json.loads(self.rfile.read(int(self.headers["content-length"])))
        db = sqlite3.connect("bot.db", isolation_level=None)
        db.execute("CREATE TABLE IF NOT EXISTS notes(id PRIMARY KEY, text)")
        db.execute("CREATE TABLE IF NOT EXISTS sent(id PRIMARY KEY)")
        ident, text = update["update_id"], update["message"]["text"]
        db.execute("INSERT OR IGNORE INTO notes VALUES (?, ?)", (ident, text))
        if not db.execute("SELECT 1 FROM sent WHERE id = ?", (ident,)).fetchone():
            self.answer_once(db, ident, text)
        db.close()
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def answer_once(self, db, ident, text):
        if self.marks_first:
            db.execute("INSERT INTO sent VALUES (?)", (ident,))
        body = json.dumps({"text": f"noted {text}"}).encode()
        told = {"content-type": "application/json"}
        urlopen(Request("https://chat.example.test/send", body, told)).read()
        if not self.marks_first:
            db.execute("INSERT INTO sent VALUES (?)", (ident,))

    def log_message(self, *_):
        pass

class Twice(Bot):
    marks_first = False

def honest():
    HTTPServer(("127.0.0.1", 8080), Bot).serve_forever()

def twice():
    HTTPServer(("127.0.0.1", 8080), Twice).serve_forever()
"""

Crash = Callable[..., pd.DataFrame]


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a suite with agents beside it."""

    def write(scenario: dict[str, Any], agent: Any = "clerks:Clerk") -> Path:
        (tmp_path / "clerks.py").write_text(textwrap.dedent(CLERK))
        (tmp_path / "bots.py").write_text(textwrap.dedent(BOT))
        path = tmp_path / "suite.yaml"
        suite = {"suite": "crashes", "agent": agent, "scenarios": [{"id": "a", **scenario}]}
        path.write_text(json.dumps(suite))
        return path

    return write


def say(*texts: str) -> list[dict[str, Any]]:
    """Have the user say something; the model repeats it."""
    return [{"user": text, "model": [{"text": text}]} for text in texts]


def rows(name: str, *found: str) -> dict[str, Any]:
    """Expect notes in a database."""
    query = "SELECT text FROM notes ORDER BY text"
    return {"database": [{"database": name, "query": query, "rows": [[one] for one in found]}]}


NOTES: dict[str, Any] = {
    "turns": say("milk", "bread"),
    "expect": {**rows("clerk.db", "bread", "milk"), "reply": {"contains": "noted"}},
}


def test_honest_agent_passes_at_each_moment(write: Callable[..., Path]) -> None:
    """Wherever it is killed, what was said is noted once in the end."""
    found = crash_test(write(NOTES), "a")
    assert list(found.columns) == list(COLUMNS)
    assert set(found["status"]) == {"passed"}, found[found["status"] != "passed"].to_string()
    assert not found["answered_twice"].any()
    assert not found["unanswered"].any()
    assert set(found["kind"]) >= {"turn", "model_call", "model_reply", "database", "reply"}
    assert found["event"].is_monotonic_increasing
    assert len(found) > 20
    assert (found["n_replies"].dropna() == 1).all()
    again = crash_test(write(NOTES), "a", n_parallel=1)
    pd.testing.assert_frame_equal(found, again)


@pytest.mark.parametrize(
    ("agent", "kinds"),
    [("Hasty", {"model_call", "model_reply"}), ("Lazy", {"reply", "turn", "model_call"})],
)
def test_lost_note_is_found(write: Callable[..., Path], agent: str, kinds: set[str]) -> None:
    """Where the crash falls between two writes that belong together, the row says what is lost."""
    found = crash_test(write(NOTES), "a", agent=f"clerks:{agent}")
    failed = found[found["status"] == "failed"]
    assert kinds <= set(failed["kind"])
    assert (found["status"] == "passed").any()
    assert failed["lost"].str.contains("SELECT text FROM notes").all()
    assert (failed["reason"] == "database: " + failed["lost"]).all()


def test_agent_that_cannot_begin_again_fails_everywhere(write: Callable[..., Path]) -> None:
    """What it raises at its start is the reason."""
    found = crash_test(write({**NOTES, "turns": say("milk"), "expect": rows("clerk.db", "milk")}),
                       "a", agent="clerks:Stubborn")  # fmt: skip
    failed = found[found["status"] == "failed"]
    assert failed["reason"].str.contains("table mine already exists").all()
    assert set(found[found["status"] == "passed"]["event"]) < set(range(1, 8))


@pytest.mark.skipif(not HAS_WORLD, reason="no world around the agent")
@pytest.mark.parametrize("kind", ["honest", "twice"])
def test_answer_that_is_sent_twice_is_found(write: Callable[..., Path], kind: str) -> None:
    """An update comes again with its number; who marks it after the answer says it twice."""
    update = {"update_id": "{update_id}", "message": {"text": "{text}"}}
    turns = [{"user": "milk", "model": []}, {"advance": "1h"}, {"user": "bread", "model": []}]
    scenario = {
        "deliver": {"http": "POST /hook", "json": update},
        "reply_from": {"http": "POST */send", "field": "text"},
        "fixtures": {"http": [{"POST https://chat.example.test/send": {"json": {"ok": True}}}]},
        "turns": turns,
        "expect": {**rows("bot.db", "bread", "milk"), "replies": 2},
    }
    agent = {"http": {"serve": f"bots:{kind}", "port": 8080}}
    found = crash_test(write(scenario, agent), "a")
    twice = found[found["answered_twice"]]
    assert not found["unanswered"].any()
    assert set(found["status"]) == ({"passed"} if kind == "honest" else {"passed", "failed"})
    assert (twice["status"] == "failed").all()
    assert twice["reason"].str.match(r"turn [13] was answered 2 times instead of 1").all()
    assert twice.empty == (kind == "honest")
    assert (twice["n_replies"] == 2).all()
    assert (twice["n_replies_undisturbed"] == 1).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"expect": {"reply": {"contains": "noted"}}}, "expects nothing of `database`"),
        ({"expect": rows("clerk.db", "cheese")}, "does not pass without a crash"),
        ({"faults": [{"fault": "overloaded"}]}, "cannot run `faults`"),
    ],
    ids=["nothing to lose", "fails anyway", "cannot be run"],
)
def test_unfit_scenario_is_refused(
    write: Callable[..., Path], change: dict[str, Any], message: str
) -> None:
    """Where nothing could be told, no row is given."""
    with pytest.raises(UsageError, match=message):
        crash_test(write({**NOTES, **change}), "a")


def test_unknown_scenario_is_refused(write: Callable[..., Path]) -> None:
    """A scenario that is not there is named."""
    with pytest.raises(UsageError, match="b"):
        crash_test(write(NOTES), "b")


@pytest.mark.parametrize(
    ("source", "counted"), [(None, [2, 1]), ({"http": "POST */send", "field": "text"}, [1, 0])]
)
def test_replies_are_counted_where_they_come_out(source: Any, counted: list[int]) -> None:
    """What the agent returned, or what it sent, also where nobody took it in as a reply."""
    sent = {"to": "fixture", "method": "POST", "url": "https://a.test/send"}
    events = [
        Event(1, "http", sent),
        Event(2, "turn", {"turn": 0, "user": "x"}),
        Event(3, "reply", {"turn": 0, "text": "y"}),
        Event(4, "http", sent),
        Event(5, "turn", {"turn": 0, "user": "x", "again": True}),
        Event(6, "reply", {"turn": 0, "text": "y"}),
        Event(7, "turn", {"turn": 1, "user": "z"}),
        Event(8, "http", {**sent, "url": "https://a.test/other"}),
        Event(9, "reply", {"turn": 1, "text": "y"}),
    ]
    turns = [{"user": "x"}, {"user": "z"}]
    given = {"id": "a", "turns": turns, "reply_from": source, "expect": {"errors": 0}}
    assert n_replies(events, Scenario.model_validate(given)) == counted


def test_end_of_a_trial_is_no_moment() -> None:
    """Once evalkit looks what is left, there is nobody to be killed."""
    events = [
        Event(1, "turn", {"turn": 0, "user": "x"}),
        Event(2, "reply", {"turn": 0, "text": "y"}),
        Event(3, "database", {"database": "a.db", "turn": 0, "changes": {}}),
        Event(4, "database", {"database": "a.db", "turn": None, "query": "q", "rows": []}),
        Event(5, "file", {"path": "a.db"}),
        Event(6, "log", {"text": "z"}),
    ]
    assert [event.seq for event in moments_of(events)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        ("turn", {"turn": 0, "user": "Hello."}, "Hello."),
        ("turn", {"turn": 1, "user": "", "advance_s": 60.0}, "the clock moves"),
        ("turn", {"turn": 1, "user": "", "restart": "kill"}, "restart (kill)"),
        ("http", {"method": "POST", "url": "https://a.test/"}, "POST https://a.test/"),
        ("database", {"database": "a.db", "sql": "SELECT 1"}, "a.db: SELECT 1"),
        ("database", {"database": "a.db", "changes": {}}, "a.db: changes"),
        ("model_call", {"model": "m"}, "m"),
        ("state", {"state": {}, "turn": 1}, "state"),
        ("trial_start", {"scenario": "a"}, ""),
    ],
)
def test_moment_is_told(kind: Any, data: dict[str, Any], told: str) -> None:
    """A row says in a few words where the crash fell."""
    assert what(Event(1, kind, data)) == told
