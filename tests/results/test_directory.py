"""The run directory: crash-safe, resumable, written by one process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.errors import LedgerError
from evalkit.grade import Ending, Grade
from evalkit.results import (
    Manifest,
    PlannedScenario,
    Run,
    RunWriter,
    TrialRecord,
    ledger_name,
    new_run_id,
    read_manifest,
    read_records,
)
from evalkit.results.directory import TRIALS

ManifestOf = Callable[..., Manifest]
AddTrial = Callable[..., TrialRecord]


def test_create_then_add_then_finish(
    tmp_path: Path, manifest_of: ManifestOf, add_trial: AddTrial
) -> None:
    """A run that has all its trials is sealed with a digest; before that it has none."""
    writer = RunWriter.create(tmp_path / "r1", manifest_of({"a": 2, "b": 1}))
    assert read_manifest(writer.folder).digest is None
    assert writer.missing == [("a", 0), ("a", 1), ("b", 0)]
    for key in writer.missing:
        add_trial(writer, *key)
    assert writer.missing == []
    manifest = writer.finish()
    assert manifest == read_manifest(writer.folder)
    assert manifest.digest is not None
    assert manifest.finished_at is not None
    assert sorted(path.name for path in (writer.folder / "ledgers").iterdir()) == [
        "a.0.jsonl", "a.1.jsonl", "b.0.jsonl",
    ]  # fmt: skip


def test_create_refuses_a_folder_that_is_there(tmp_path: Path, manifest_of: ManifestOf) -> None:
    """An older run is never written over."""
    RunWriter.create(tmp_path / "r1", manifest_of({"a": 1})).finish()
    with pytest.raises(LedgerError, match="there is a run already; choose another --out"):
        RunWriter.create(tmp_path / "r1", manifest_of({"a": 1}))


def test_create_says_why_it_cannot(tmp_path: Path, manifest_of: ManifestOf) -> None:
    """A file in the way of a folder is named, with what the system said."""
    (tmp_path / "file").write_text("")
    with pytest.raises(LedgerError, match=r"file/r1: cannot write the run \(Not a directory\)"):
        RunWriter.create(tmp_path / "file" / "r1", manifest_of({"a": 1}))


def test_digest_of_a_run_ignores_the_order_in_which_trials_finish(
    tmp_path: Path, manifest_of: ManifestOf, add_trial: AddTrial
) -> None:
    """Trials run side by side; what a run measured does not depend on who came first."""
    digests = set()
    for name, order in (("r1", [("a", 0), ("b", 0)]), ("r2", [("b", 0), ("a", 0)])):
        writer = RunWriter.create(tmp_path / name, manifest_of({"a": 1, "b": 1}))
        for key in order:
            add_trial(writer, *key)
        digests.add(writer.finish().digest)
    assert len(digests) == 1


def test_resume_equals_an_uninterrupted_run(
    tmp_path: Path, manifest_of: ManifestOf, add_trial: AddTrial
) -> None:
    """What is written stays, what is missing is told, and the digest is the same."""
    whole = RunWriter.create(tmp_path / "r1", manifest_of({"a": 3}))
    for trial in range(3):
        add_trial(whole, "a", trial)
    first = RunWriter.create(tmp_path / "r2", manifest_of({"a": 3}))
    add_trial(first, "a", 1)
    assert first.finish().digest is None
    second = RunWriter.resume(tmp_path / "r2")
    assert second.done == {("a", 1)}
    assert second.missing == [("a", 0), ("a", 2)]
    for key in second.missing:
        add_trial(second, *key)
    assert second.finish().digest == whole.finish().digest


def test_a_torn_last_line_is_cut_off(
    tmp_path: Path, manifest_of: ManifestOf, add_trial: AddTrial
) -> None:
    """A line that a dying process left is no trial, and the next line starts afresh."""
    writer = RunWriter.create(tmp_path / "r1", manifest_of({"a": 2}))
    add_trial(writer, "a", 0)
    writer.finish()
    path = writer.folder / TRIALS
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    assert read_records(writer.folder).keys() == {("a", 0)}
    resumed = RunWriter.resume(writer.folder)
    assert path.read_bytes() == whole
    add_trial(resumed, "a", 1)
    resumed.finish()
    assert read_records(writer.folder).keys() == {("a", 0), ("a", 1)}


def test_a_run_is_written_by_one_process_at_a_time(tmp_path: Path, manifest_of: ManifestOf) -> None:
    """Two people who resume the same run cannot both write it."""
    writer = RunWriter.create(tmp_path / "r1", manifest_of({"a": 2}))
    with pytest.raises(LedgerError, match="another process is writing this run"):
        RunWriter.resume(writer.folder)
    writer.finish()
    RunWriter.resume(writer.folder).finish()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "broken line"),
        (b"[]", "broken line"),
        (b"{}", "broken line: 'status'"),
        (b'{"scenario":"a","trial":0,"status":"fine"}', "'fine' is none of passed"),
        (b'{"scenario":"a","trial":0,"status":"passed","extra":1}', "broken line"),
        (b'{"scenario":"a","trial":0,"status":"passed","grades":[{"grader":"g","value":7}]}',
         "lies outside"),
        (b'{"scenario":"a","trial":0,"status":"passed","grades":[{"grader":"g"}]}', "broken line"),
        (b" " + b"[" * 9999, "broken line: nested too deeply"),
    ],
)  # fmt: skip
def test_a_broken_line_is_named(
    tmp_path: Path, manifest_of: ManifestOf, add_trial: AddTrial, line: bytes, message: str
) -> None:
    """A broken record in the middle is an error with file and line, never a missing trial."""
    writer = RunWriter.create(tmp_path / "r1", manifest_of({"a": 2}))
    add_trial(writer, "a", 1)
    writer.finish()
    path = writer.folder / TRIALS
    path.write_bytes(path.read_bytes() + line + b"\n")
    with pytest.raises(LedgerError, match=rf"trials\.jsonl:2: .*{message}"):
        read_records(writer.folder)


def test_a_trial_that_stands_there_twice_is_an_error(
    tmp_path: Path, manifest_of: ManifestOf, add_trial: AddTrial
) -> None:
    """Nobody chooses silently between two results of one trial."""
    writer = RunWriter.create(tmp_path / "r1", manifest_of({"a": 1}))
    record = add_trial(writer, "a", 0)
    with pytest.raises(LedgerError, match="trial 0 of 'a' is written already"):
        writer.add(record)
    writer.finish()
    path = writer.folder / TRIALS
    path.write_bytes(path.read_bytes() * 2)
    for read in (read_records, Run, RunWriter.resume):
        with pytest.raises(LedgerError, match=r"trials\.jsonl:2: trial 0 of 'a' stands here twice"):
            read(writer.folder)


def test_a_trial_outside_the_plan_is_refused(
    tmp_path: Path, manifest_of: ManifestOf, add_trial: AddTrial
) -> None:
    """The plan is every rate's denominator: nothing slips in, nor is it passed over."""
    writer = RunWriter.create(tmp_path / "r1", manifest_of({"a": 1}))
    for scenario, trial in (("b", 0), ("a", 1)):
        with pytest.raises(LedgerError, match=f"trial {trial} of '{scenario}' is not in the plan"):
            add_trial(writer, scenario, trial)
    writer.finish()
    line = b'{"scenario":"b","trial":0,"status":"passed"}\n'
    (writer.folder / TRIALS).write_bytes(line)
    with pytest.raises(LedgerError, match="trial 0 of 'b' is not in the plan"):
        Run(writer.folder)


def test_a_plan_names_each_scenario_once(manifest_of: ManifestOf) -> None:
    """Two scenarios of one id would share their ledgers."""
    with pytest.raises(LedgerError, match="planned twice: 'a'"):
        Manifest("r", "s", "live", (PlannedScenario("a", 1), PlannedScenario("a", 2)))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, r"not a run directory \(no manifest.json\)"),
        (b"{", "cannot read the manifest"),
        (b"[]", "not a manifest of a run"),
        (b"{}", "not a manifest of a run: it names no format"),
        (b'{"format":"1"}', "it names no format"),
        (b'{"format":1}', "not a manifest of a run"),
        (b'{"format":1,"plan":[3]}', "not a manifest of a run"),
        (b'{"format":2,"plan":[]}', "written by a newer evalkit .*pip install -U evalkit-lab"),
        (b'{"format":1,"plan":[],"run_id":"r","suite":"s","lane":"live","odd":1}', "'odd'"),
    ],
)
def test_a_folder_that_is_no_run_is_refused(
    tmp_path: Path, content: bytes | None, message: str
) -> None:
    """What is missing, foreign or newer is named, with what to do."""
    if content is not None:
        (tmp_path / "manifest.json").write_bytes(content)
    for read in (read_manifest, Run, RunWriter.resume):
        with pytest.raises(LedgerError, match=message):
            read(tmp_path)


def test_manifest_round_trip(tmp_path: Path, manifest_of: ManifestOf) -> None:
    """Every field comes back with its type."""
    manifest = manifest_of(
        {"a": 1, "\ud800": 2},
        source={"file": "x.json", "n": 2**70},
        models=("m",),
        graders={"truth": "1"},
        more_graders=("own",),
        git={"commit": "c", "dirty": None},
        seed=2**63,
    )
    RunWriter.create(tmp_path / "r", manifest)
    assert read_manifest(tmp_path / "r") == manifest


def test_record_round_trip(tmp_path: Path, manifest_of: ManifestOf) -> None:
    """A record comes back as it was, odd characters, numbers and grades included."""
    record = TrialRecord(
        scenario="a",
        trial=0,
        status="failed",
        reason_code="grader_failed",
        reason="\x00\ud800 — looping",
        n_turns=2,
        input_tokens=2**60,
        cost_usd=0.1,
        tags=("x", "y"),
        seed=2**62,
        grades=(
            Grade("truth", 0.25, reason="r", evidence={"n": 2**70, "t": [1, None]}, turn=1),
            Grade.incomplete("answer", "unseen", reason_code="tools_not_observed"),
        ),
    )
    writer = RunWriter.create(tmp_path / "r", manifest_of({"a": 1}))
    writer.add(record)
    assert read_records(tmp_path / "r") == {("a", 0): record}


def test_evidence_that_cannot_be_written_costs_no_result(
    tmp_path: Path, manifest_of: ManifestOf
) -> None:
    """A grader whose evidence contains itself keeps its verdict and loses its evidence."""
    circle: dict[str, Any] = {}
    circle["self"] = circle
    record = TrialRecord("a", 0, "failed", grades=(Grade("own", 0.0, evidence=circle, reason="r"),))
    writer = RunWriter.create(tmp_path / "r", manifest_of({"a": 1}))
    writer.add(record)
    (grade,) = read_records(tmp_path / "r")["a", 0].grades
    assert (grade.passed, grade.reason) == (False, "r")
    assert "levels deep" in grade.evidence["not_written"]


ODD = [
    "a/b", "../../etc/passwd", "..", ".", "", ".hidden", "a b", "Ärger", "\ud800", "a\x00b", "a:b",
    "con", "x" * 300, "x" * 300 + "y", "ä" * 300, "Book", "book", "BOOK", "~", "book~5d4e", "a%2Fb",
    "a.0", "a.0.jsonl", "-rf", "*", "a\nb", "%",
]  # fmt: skip


@pytest.mark.parametrize("scenario", ODD, ids=ascii)
def test_ledger_name_is_a_file_name_whatever_the_id(tmp_path: Path, scenario: str) -> None:
    """Slashes, dots, control characters and 300 letters stay inside one folder."""
    name = ledger_name(scenario, 10_000)
    path = tmp_path / f"{name}.partial"
    path.write_text("x")
    assert path.parent == tmp_path
    assert list(tmp_path.iterdir()) == [path]
    assert not name.startswith(".")
    assert name.isascii()


def test_ledger_names_never_collide_even_where_case_does_not_count() -> None:
    """Ids that differ after the clip, or only in case, have ledgers of their own."""
    names = [ledger_name(scenario, trial).lower() for scenario in ODD for trial in (0, 1)]
    assert len(set(names)) == len(names) == 2 * len(ODD)


@given(st.lists(st.text(st.characters(), max_size=6), min_size=2, max_size=6, unique=True))
def test_ledger_names_are_as_many_as_ids(ids: list[str]) -> None:
    """No two ids share a ledger."""
    assert len({ledger_name(scenario, 0) for scenario in ids}) == len(ids)


@pytest.mark.parametrize("scenario", ["weather-only", "s04_save.posting", "a b", "task-17"])
def test_ledger_name_of_an_ordinary_id_is_that_id(scenario: str) -> None:
    """People find a ledger by the scenario's name."""
    assert ledger_name(scenario, 3) == f"{scenario}.3.jsonl"


def test_run_ids_sort_by_time_and_name_the_suite() -> None:
    """Of two runs in one second, the later has the greater id."""
    early = new_run_id("z", now=datetime(2026, 1, 5, 9, 0, 0, 1000, tzinfo=UTC))
    late = new_run_id("a", now=datetime(2026, 1, 5, 9, 0, 0, 2000, tzinfo=UTC))
    assert early < late
    assert "-a-" in late
    odd = new_run_id("../\x00 ä" + "x" * 99)
    assert "/" not in odd
    assert len(odd) < 100


def test_a_full_disk_takes_a_line_whole_or_not_at_all(tmp_path: Path) -> None:
    """The error says that finished trials are safe and how to go on, and so it is."""
    script = """
        import resource, signal, sys
        from pathlib import Path
        from evalkit.errors import LedgerError
        from evalkit.results import Manifest, PlannedScenario, RunWriter, TrialRecord
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        plan = (PlannedScenario("a", 99),)
        writer = RunWriter.create(Path(sys.argv[1]), Manifest("r", "s", "live", plan))
        resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
        for trial in range(99):
            try:
                writer.add(TrialRecord("a", trial, "passed", reason="x" * 100))
            except LedgerError as error:
                print(len(writer.done))
                print(error)
                break
    """
    folder = tmp_path / "r"
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(folder)],
        capture_output=True,
        text=True,
        check=True,
    )
    n_done, message = done.stdout.splitlines()
    assert "cannot write the run (File too large); finished trials are safe" in message
    content = (folder / TRIALS).read_bytes()
    assert content.endswith(b"\n")
    assert len(read_records(folder)) == int(n_done) > 1
    resumed = RunWriter.resume(folder)
    assert len(resumed.missing) == 99 - int(n_done)
    resumed.finish()


def test_no_space_left_says_how_to_go_on(tmp_path: Path, manifest_of: ManifestOf) -> None:
    """On a disk that is full, the advice is to free space and to resume."""
    writer = RunWriter.create(tmp_path / "r", manifest_of({"a": 1}))
    os.close(writer._descriptor)
    writer._descriptor = os.open("/dev/full", os.O_WRONLY)
    with pytest.raises(LedgerError, match=r"No space left .*free some space.*--resume"):
        writer.add(TrialRecord("a", 0, "passed"))
    assert writer.missing == [("a", 0)]
    os.close(writer._descriptor)


@pytest.mark.parametrize("moment", ["write", "fdatasync"])
def test_ctrl_c_keeps_a_whole_line_and_no_part_of_one(
    tmp_path: Path, manifest_of: ManifestOf, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    """An interrupt in the middle of a write leaves no half a line, one after it no trial behind."""
    writer = RunWriter.create(tmp_path / "r", manifest_of({"a": 1}))
    write = os.write

    def interrupted(descriptor: int, data: Any = b"") -> int:
        if moment == "write":
            write(descriptor, data[:10])
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, moment, interrupted)
        with pytest.raises(KeyboardInterrupt):
            writer.add(TrialRecord("a", 0, "passed"))
    writer.finish()
    n_kept = 1 if moment == "fdatasync" else 0
    assert (writer.folder / TRIALS).read_bytes().count(b"\n") == n_kept
    assert len(read_records(writer.folder)) == n_kept


def test_kill_9_loses_no_trial_that_was_written(tmp_path: Path) -> None:
    """Each trial that add() returned for is read back after a SIGKILL, and the run goes on."""
    script = """
        import os, sys
        from pathlib import Path
        from evalkit.results import Manifest, PlannedScenario, RunWriter, TrialRecord
        plan = (PlannedScenario("a", 100_000),)
        writer = RunWriter.create(Path(sys.argv[1]), Manifest("r", "s", "live", plan))
        for trial in range(100_000):
            writer.add(TrialRecord("a", trial, "passed", reason="x" * (trial % 999)), b"{}\\n")
            os.write(1, b"%d\\n" % trial)
    """
    folder = tmp_path / "r"
    command = [sys.executable, "-c", textwrap.dedent(script), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        acknowledged = 0
        while acknowledged < 100:
            acknowledged = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        for line in process.stdout:
            acknowledged = int(line)
    resumed = RunWriter.resume(folder)
    assert {("a", trial) for trial in range(acknowledged + 1)} <= resumed.done
    resumed.finish()


def test_the_manifest_is_replaced_as_a_whole(tmp_path: Path, manifest_of: ManifestOf) -> None:
    """No temporary file is left, and the content is one JSON object."""
    writer = RunWriter.create(tmp_path / "r", manifest_of({"a": 1}))
    writer.add(TrialRecord("a", 0, "passed"))
    writer.finish()
    assert json.loads((tmp_path / "r" / "manifest.json").read_bytes())["digest"]
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == [
        "ledgers", "manifest.json", "trials.jsonl",
    ]  # fmt: skip


def test_an_ending_beats_better_grades_only_by_gravity(
    tmp_path: Path, manifest_of: ManifestOf, add_trial: AddTrial
) -> None:
    """Failed beats incomplete beats passed, for what a trial's line says."""
    writer = RunWriter.create(tmp_path / "r", manifest_of({"a": 3}))
    failed = (Grade("truth", 0.0, reason="called forbidden tool: book"),)
    cut = Ending("incomplete", "worker_lost", "lost")
    assert add_trial(writer, "a", 0, ending=cut, grades=failed).status == "failed"
    assert add_trial(writer, "a", 1, ending=cut).reason_code == "worker_lost"
    record = add_trial(writer, "a", 2, grades=())
    assert (record.status, record.reason_code) == ("incomplete", "not_graded")
    assert replace(record, status="passed") != record
