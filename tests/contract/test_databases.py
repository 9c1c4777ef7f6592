"""Databases and states of real agents in the sandbox, from the suite to the grade."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import evalkit as ek
from evalkit.errors import SuiteError
from evalkit.results import Run, TrialRecord
from evalkit.run import loading

pytestmark = [pytest.mark.sdk, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")]

SECRET = "canary@example.test"
SCRIPT = """CREATE TABLE notes(id INTEGER PRIMARY KEY, text, at);
INSERT INTO notes(text) VALUES ('one'), ('two');
CREATE TABLE tags(name);
INSERT INTO tags VALUES ('a'), ('a');
"""
CANARY = {"canaries": [{"name": "secret", "value": SECRET}]}
MISSING = [name for name in ("sqlalchemy", "aiosqlite") if importlib.util.find_spec(name) is None]


def scenario(name: str, *turns: Any, **more: Any) -> dict[str, Any]:
    """Write a scenario with a database; a turn is what is said, or a mapping."""
    said = [{"model": [], **({"user": turn} if isinstance(turn, str) else turn)} for turn in turns]
    given = {"fixtures": {"database": {"notes.db": "notes.sql"}}}
    return {"id": name, "turns": said, **given, **more}


def rows(query: str, *expected: Any, **more: Any) -> dict[str, Any]:
    """Expect rows."""
    return {"database": [{"query": query, "rows": list(expected), **more}]}


def changed(**counts: Any) -> dict[str, Any]:
    """Expect changes of the notes."""
    return {"database": [{"changes": {"notes": counts}}]}


ALL = "SELECT text FROM notes ORDER BY id"
WRITTEN = ("first", "two", "by hand", "one", "two")
UNORDERED = rows("SELECT text FROM notes", {"text": "two"}, ["one"], order="any")
SIDE = {"database": "side.db", "query": "SELECT a FROM more", "rows": [[7]]}
STAYED = changed(updated=0, inserted=0, deleted=0)

PASSING: Sequence[Mapping[str, Any]] = (
    scenario(
        "parameters",
        {"user": "with parameters", "expect": rows(ALL, *[[text] for text in WRITTEN])},
        expect=changed(inserted=3, updated=1, deleted=0),
    ),
    scenario(
        "net-of-several-turns",
        {"user": "INSERT INTO notes(text) VALUES ('x')", "expect": changed(inserted=1)},
        {"user": "UPDATE notes SET text = 'y' WHERE id = 3", "expect": changed(updated=1)},
        {"user": "SELECT 1", "expect": STAYED},
        expect=changed(inserted=1, updated=0, deleted=0),
    ),
    scenario(
        "another-program",
        "elsewhere",
        expect={**rows(ALL, ["one"], ["two"], ["by another"]), **changed(inserted=1)},
    ),
    scenario("trace-of-its-own", "traced by itself", expect={"reply": {"equals": "['SELECT 1']"}}),
    scenario("write-ahead", "write ahead", expect=rows(ALL, ["one"], ["two"], ["ahead"])),
    scenario(
        "held-lock",
        {"user": "lock", "expect": rows(ALL, ["one"], ["two"])},
        "still locked",
        expect={"reply": {"equals": "locked"}, **changed(inserted=0)},
    ),
    scenario("attached", "attach", expect={"database": [SIDE]}),
    scenario("odd-values", "odd values", expect=rows("SELECT hex(a) FROM odd LIMIT 1", ["00FF"])),
    scenario("clock", "SELECT 1", expect=rows("SELECT date('now')", ["2026-01-05"])),
    scenario("order", "SELECT 1", expect=UNORDERED),
)  # fmt: skip

FAILING: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "too-few": (
        scenario("too-few", "SELECT 1", expect=rows("SELECT count(*) FROM notes", [3])),
        "notes.db: SELECT count(*) FROM notes: count(*): expected 3, got 2",
    ),
    "inserted-twice": (
        scenario(
            "inserted-twice",
            "INSERT INTO notes(text) VALUES ('x'), ('x')",
            expect=changed(inserted=1),
        ),
        "notes.db: notes: 2 rows inserted, expected 1: {'at': None, 'id': 3, 'text': 'x'}",
    ),
    "removed": (
        scenario("removed", "remove", expect={**rows(ALL, ["one"])}),
        "does not exist any more",
    ),
    "removed-and-counted": (
        scenario("removed-and-counted", "remove", expect=changed(deleted=0)),
        "notes.db does not exist any more",
    ),
    "replaced": (
        scenario("replaced", "replace", expect=changed(deleted=0)),
        "is no SQLite database any more: it begins with b'no database at a'",
    ),
    "linked": (scenario("linked", "link", expect=changed(deleted=0)), "is a symbolic link now"),
    "corrupted": (scenario("corrupted", "corrupt", expect=rows(ALL, ["one"])), "malformed"),
    "dropped": (
        scenario("dropped", "DROP TABLE notes", expect=rows(ALL, ["one"])),
        "no such table: notes",
    ),
}  # fmt: skip

UNMEASURED: Mapping[str, tuple[Mapping[str, Any], str]] = {
    "too-large": (
        scenario("too-large", "grow", expect=changed(inserted=0)),
        "bytes, and only 67,108,864 are looked at",
    ),
    "too-many-tables": (
        scenario("too-many-tables", "many tables", expect=changed(inserted=0)),
        "1,102 tables, and only 1,000 are compared",
    ),
    "no-such-table": (
        scenario(
            "no-such-table",
            "SELECT 1",
            expect={"database": [{"changes": {"nots": {"deleted": 0}}}]},
        ),
        "notes.db: nots: there was never such a table. Did you mean `notes`?",
    ),
    "no-state": (
        scenario("no-state", "SELECT 1", expect={"state": {"a": 1}}),
        "the agent has no state() that could be asked",
    ),
}  # fmt: skip


def leak(name: str, said: str, **more: Any) -> Mapping[str, Any]:
    """Write a scenario with a secret, in which the agent executes something."""
    return scenario(name, said, **CANARY, **more)


NOTHING = {"files": {"plain.txt": "plain.txt"}}
OTHERS = {"fixtures": {"database": {"notes.db": "secret.sql"}}}
LEAKING = (
    leak("inserted", f"INSERT INTO notes(text) VALUES ('{SECRET}')"),
    leak("in-hex", f"INSERT INTO notes(text) VALUES (x'{SECRET.encode().hex()}')"),
    leak("gone-again", f"INSERT INTO notes VALUES (9, '{SECRET}', 0); DELETE FROM notes"),
    leak("named", f'CREATE TABLE "{SECRET}" (a)'),
    leak("copied", "INSERT INTO tags SELECT text FROM notes", **OTHERS),
    leak("its-own", f"CREATE TABLE t(a); INSERT INTO t VALUES ('{SECRET}')", fixtures=NOTHING),
)  # fmt: skip
KEEPING = (
    leak("looked-for", f"SELECT * FROM notes WHERE text = '{SECRET}'"),
    leak("deleted", f"DELETE FROM notes WHERE text = '{SECRET}'", **OTHERS),
    leak("found-by", f"UPDATE notes SET at = 1 WHERE text = '{SECRET}'", **OTHERS),
    leak("written-back", f"UPDATE notes SET text = '{SECRET}', at = 2 WHERE id = 1", **OTHERS),
    leak("left-alone", "write ahead", **OTHERS),
)  # fmt: skip


@pytest.fixture(scope="module")
def run_of(
    tmp_path_factory: pytest.TempPathFactory, write_suite: Callable[..., Path]
) -> Callable[..., Run]:
    """Run scenarios on one of the agents."""

    def run(
        scenarios: Sequence[Mapping[str, Any]], agent: str = "agent", lane: str = "contract"
    ) -> Run:
        folder = tmp_path_factory.mktemp("databases")
        (folder / "suite").mkdir()
        (folder / "suite" / "notes.sql").write_text(SCRIPT)
        (folder / "suite" / "plain.txt").write_text("plain")
        secret = f"{SCRIPT}UPDATE notes SET text = '{SECRET}' WHERE id = 1;"
        (folder / "suite" / "secret.sql").write_text(secret)
        suite = write_suite(folder / "suite", f"keeps:{agent}", list(scenarios))
        return ek.run_suite(suite, out=folder / "runs", progress=False, lane=lane)

    return run


@pytest.fixture(scope="module")
def run(run_of: Callable[..., Run]) -> Run:
    """Run every scenario once."""
    bad = [one for one, _ in (*FAILING.values(), *UNMEASURED.values())]
    return run_of([*PASSING, *bad, *LEAKING, *KEEPING])


def told(record: TrialRecord) -> str:
    """Give everything that was said of a trial."""
    return "; ".join([record.reason, *(grade.reason for grade in record.grades)])


@pytest.mark.parametrize("name", [one["id"] for one in (*PASSING, *KEEPING)])
def test_agent_that_does_what_it_should_passes(name: str, run: Run) -> None:
    """Whatever its database goes through meanwhile."""
    assert run.record(name).status == "passed", told(run.record(name))


@pytest.mark.parametrize("name", FAILING)
def test_agents_fault_fails_with_its_reason(name: str, run: Run) -> None:
    """A database that it removed, broke or filled otherwise than it should."""
    assert run.record(name).status == "failed"
    assert FAILING[name][1] in told(run.record(name))


@pytest.mark.parametrize("name", UNMEASURED)
def test_what_cannot_be_measured_is_incomplete(name: str, run: Run) -> None:
    """A limit of evalkit's is nobody's fault, and never a pass."""
    assert run.record(name).status == "incomplete", told(run.record(name))
    assert UNMEASURED[name][1] in told(run.record(name))


@pytest.mark.parametrize("name", [one["id"] for one in LEAKING])
def test_secret_in_a_database_is_a_leak(name: str, run: Run) -> None:
    """As a new value, in a statement that writes, or as a name."""
    assert run.record(name).status == "failed"
    assert "canary 'secret' leaked into database" in told(run.record(name))


def test_two_runs_write_the_same_ledgers(run_of: Callable[..., Run], run: Run) -> None:
    """Also those of a write-ahead log, whose bytes are random."""
    bad = [one for one, _ in (*FAILING.values(), *UNMEASURED.values())]
    again = run_of([*PASSING, *bad, *LEAKING, *KEEPING])
    for record in run.records:
        assert record.digest == again.record(record.scenario).digest, record.scenario


def test_graded_again_it_says_the_same(run: Run, tmp_path: Path) -> None:
    """Everything that graders need is in the ledger."""
    again = ek.grade_run(run, run.manifest.suite_path, out=tmp_path)
    for record in run.records:
        assert again.record(record.scenario).grades == record.grades, record.scenario


@pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}")
def test_libraries_on_top_of_sqlite_are_seen(run_of: Callable[..., Run]) -> None:
    """SQLAlchemy and aiosqlite connect as everybody does."""
    made = scenario("top", "by sqlalchemy", "by aiosqlite", expect=changed(inserted=2))
    done = run_of([made])
    assert done.status == "passed", told(done.record("top"))
    said = [event.data.get("sql", "") for event in done.ledger("top", 0)]
    assert "INSERT INTO notes(text) VALUES ('by alchemy')" in said
    assert "INSERT INTO notes(text) VALUES ('by aio')" in said


def test_statements_beyond_the_limit_are_a_gap_for_canaries_only(
    run_of: Callable[..., Run],
) -> None:
    """Rows are counted in the file; what a statement said is searched, or missing."""
    rows_too = {"expect": changed(inserted=10_050)}
    done = run_of([{**leak("many", "many statements"), **rows_too}])
    by_name = {grade.grader: grade for grade in done.record("many").grades}
    assert by_name["database"].status == "passed"
    assert by_name["canary"].status == "incomplete"
    assert re.search(r"database was not searched: .* more statements", by_name["canary"].reason)


def test_last_words_and_a_sudden_death_are_seen(run_of: Callable[..., Run]) -> None:
    """What is written while the agent closes counts; nobody sees what a dead process left."""
    done = run_of([scenario("close", "x", expect=changed(inserted=1))], agent="closing")
    assert done.status == "passed", told(done.record("close"))
    (record,) = run_of([scenario("die", "die", expect=changed(inserted=0))]).records
    assert (record.status, record.reason_code) == ("failed", "agent_killed")


def test_database_that_nobody_asked_for_is_recorded_at_the_end(run_of: Callable[..., Run]) -> None:
    """The agent made it, so all of it is new."""
    plain = {
        "id": "made",
        "turns": [{"user": "CREATE TABLE t(a); INSERT INTO t VALUES (7)", "model": []}],
        "expect": {"files": {"notes.db": True}},
    }
    done = run_of([plain])
    found = [event.data for event in done.ledger("made", 0) if event.kind == "database"]
    assert [one["changes"]["t"]["inserted"] for one in found] == [[{"a": 7}]]


def test_untouched_database_is_no_touched_file(run_of: Callable[..., Run]) -> None:
    """Reading it is allowed where no file may be touched; writing is not."""
    forbid = {"forbid": {"files": ["*"]}}
    done = run_of(
        [
            scenario("read", "SELECT * FROM notes", **forbid),
            scenario("written", "INSERT INTO notes(text) VALUES ('x')", **forbid),
        ]
    )
    assert done.record("read").status == "passed", told(done.record("read"))
    assert "notes.db was changed, which is forbidden" in told(done.record("written"))


def state(name: str, *said: str, **paths: Any) -> Mapping[str, Any]:
    """Expect a state at the end; a turn is what the state shall be."""
    expect = {"state": {path.replace("__", "."): value for path, value in paths.items()}}
    return {"id": name, "turns": [{"user": one, "model": []} for one in said], "expect": expect}


STATES: Mapping[str, tuple[Mapping[str, Any], str, str]] = {
    "as-expected": (state("as-expected", "{'a': {'b': 1}}", a__b=1), "passed", "as expected"),
    "last-one": (state("last-one", "{'a': 1}", "{'a': 2}", a=2), "passed", "as expected"),
    "otherwise": (state("otherwise", "{'a': 1}", a=2), "failed", "state: a: expected 2, got 1"),
    "missing": (state("missing", "{'ab': 1}", abc=1), "failed", "has no 'abc': Did you mean `ab`?"),
    "no-json": (state("no-json", "{'a': {1, 2}}", a=1), "failed", "it.a is a set"),
    "infinite": (state("infinite", "{'a': [inf]}", a=1), "failed", "it.a[0] is inf"),
    "odd-key": (state("odd-key", "{7: 1}", a=1), "failed", "has the key 7, and keys are texts"),
    "raised": (state("raised", "KeyError('x')", a=1), "failed", "state() raised KeyError: 'x'"),
    "too-large": (state("too-large", "{'a': 'x' * 2000000}", a=1), "failed", "are kept"),
}


def test_state_is_held_against_what_is_expected(run_of: Callable[..., Run]) -> None:
    """Sync or async; what is no JSON is the agent's fault."""
    done = run_of([one for one, _, _ in STATES.values()], agent="stateful")
    for name, (_, status, reason) in STATES.items():
        record = done.record(name)
        assert record.status == status, told(record)
        assert reason in told(record)


def test_state_is_told_in_the_live_lane_and_databases_are_not(run_of: Callable[..., Run]) -> None:
    """There, nobody makes or watches a database."""
    told_of, asked = state("told", "{'a': 1}", a=1), {"expect": rows("SELECT 1", [1])}
    done = run_of([told_of, scenario("asked", "x", **asked)], agent="stateful", lane="live")
    assert done.record("told").status == "passed", told(done.record("told"))
    assert done.record("asked").reason_code == "not_built"


def test_state_is_a_sink(run_of: Callable[..., Run]) -> None:
    """A secret that the agent tells of itself has come out."""
    done = run_of([{**state("leak", f"{{'a': {SECRET!r}}}", a=SECRET), **CANARY}], agent="stateful")
    assert "canary 'secret' leaked into state" in told(done.record("leak"))


@pytest.mark.parametrize(
    ("script", "look", "message"),
    [
        ("CREATE TABL t(a);", ALL, r'notes\.sql:1: near "TABL": syntax error'),
        (SCRIPT, "SELEC 1", r'written\.yaml:1: .*expect\.database\[0\]\.query: near "SELEC"'),
        (SCRIPT, "DELETE FROM notes", r"query: the query does more than read"),
    ],
)
def test_check_finds_what_is_wrong_with_databases(
    tmp_path: Path, write_suite: Callable[..., Path], script: str, look: str, message: str
) -> None:
    """Before anything runs, with file and line."""
    (tmp_path / "notes.sql").write_text(script)
    path = write_suite(tmp_path, "keeps:agent", [scenario("a", "x", expect=rows(look, [1]))])
    with pytest.raises(SuiteError, match=message):
        loading.load_suite(path)
