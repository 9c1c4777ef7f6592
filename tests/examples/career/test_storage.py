"""What the copilot keeps: all or nothing, once, and for good."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from evalkit.examples.career.memory import Memory, NoThread
from evalkit.examples.career.storage import Profile, Store
from evalkit.examples.career.updates import Entry, Ledger

ADA = Profile(7, "done", "Ada", "data engineer", "London", "SQL")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Open a new database."""
    with closing(Store(str(tmp_path / "a.db"))) as opened:
        yield opened


def test_store_keeps_what_it_was_told(store: Store, tmp_path: Path) -> None:
    """Whoever opens the file next finds the same."""
    store.put_profile(ADA)
    job = store.save_job(7, "https://a.test/1", title="Cook", posting="We cook.")
    store.add_pending(7, "https://a.test/2")
    store.remember(7, "food", "likes soup")
    with closing(Store(str(tmp_path / "a.db"))) as again:
        assert again.profile(7) == ADA
        assert again.jobs(7) == [job]
        assert again.pending(7) == ["https://a.test/2"]
        assert again.facts(7) == {"food": "likes soup"}


def test_job_is_saved_once(store: Store) -> None:
    """The same address again is the same job; another user's is another one."""
    first = store.save_job(7, "https://a.test/1", title="Cook", posting="We cook.")
    again = store.save_job(7, "https://a.test/1", title="Changed", posting="")
    other = store.save_job(8, "https://a.test/1", title="Cook", posting="We cook.")
    assert (first, store.jobs(7)) == (again, [first])
    assert other.id != first.id
    assert store.job(7, other.id) is None


def test_transaction_is_all_or_nothing(store: Store) -> None:
    """What fails half way leaves nothing behind."""

    def half() -> None:
        with store.transaction():
            store.put_profile(ADA)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        half()
    assert store.profile(7) is None


def test_forgetting_leaves_no_byte_and_reuses_no_number(store: Store, tmp_path: Path) -> None:
    """Texts are gone from the file itself, and numbers of jobs are never given twice."""
    store.put_profile(ADA)
    job = store.save_job(7, "https://a.test/1", title="Cook", posting="VERY-PRIVATE-POSTING")
    Memory(store, 7, "chat:7").keep("user", "VERY-PRIVATE-WORDS")
    store.forget(7)
    assert store.profile(7) is None
    assert store.jobs(7) == []
    assert store.messages("chat:7", most=9) == []
    assert b"VERY-PRIVATE" not in (tmp_path / "a.db").read_bytes()
    assert store.save_job(7, "https://a.test/1", title="Cook", posting="").id > job.id


def test_memory_is_of_one_thread_and_bounded(store: Store) -> None:
    """The last messages of the thread come back, the first of them from the user."""
    memory = Memory(store, 7, "chat:7")
    Memory(store, 8, "chat:8").keep("user", "Another one's words.")
    for number in range(13):
        memory.keep("user", f"question {number}")
        memory.keep("assistant", f"answer {number}")
    memory.keep("user", "the last")
    said = memory.recall()
    assert said[0] == ("user", "question 4")
    assert said[-1] == ("user", "the last")


@pytest.mark.parametrize("thread", [None, ""])
def test_memory_needs_a_thread(store: Store, thread: str | None) -> None:
    """What is said must not end up in a thread that everybody shares."""
    with pytest.raises(NoThread):
        Memory(store, 7, thread)


def test_ledger_knows_how_far_an_update_is(store: Store) -> None:
    """It is taken once, keeps its reply until that is sent, and not any longer."""
    ledger = Ledger(store)
    assert ledger.take(1, 7) == ledger.take(1, 7) == Entry("seen", None)
    ledger.record(1, "Hello!")
    assert ledger.take(1, 7) == Entry("ready", "Hello!")
    ledger.move(1, "sending")
    assert ledger.take(1, 7) == Entry("sending", "Hello!")
    ledger.move(1, "answered")
    assert ledger.take(1, 7) == Entry("answered", None)
    assert ledger.take(2, 7) == Entry("seen", None)
