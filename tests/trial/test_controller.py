"""Trials in real processes: whose fault an end is, what the ledger says, what is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import AgentError, LedgerError, SandboxError
from evalkit.ledger import digest, parse_events, read_events
from evalkit.reading import trace_of
from evalkit.trial import FinishedTrial, ProcessTrials, TrialOrder

FINE = """
    import random
    def agent(text):
        return f"{text} {random.random()}"
"""


def verdict(finished: FinishedTrial) -> tuple[str, str]:
    """Give status and code, after a look at the ledger, which must be whole whatever happened."""
    kinds = [event.kind for event in finished.events]
    assert [event.seq for event in finished.events] == list(range(1, len(kinds) + 1))
    assert (kinds[0], kinds[-1]) == ("trial_start", "trial_end")
    end = finished.events[-1].data
    assert end["status"] == finished.ending.status
    assert end["reason_code"] == finished.ending.reason_code
    assert end["reason"] == finished.ending.reason
    return finished.ending.status, finished.ending.reason_code


def test_a_healthy_trial_passes(bench: Any) -> None:
    """Its ledger is whole, in its place, and says everything in order."""
    finished = bench.one(FINE, turns=("one", "two"))
    assert verdict(finished) == ("passed", "")
    assert [event.kind for event in finished.events] == [
        "trial_start", "turn", "state", "reply", "turn", "state", "reply", "trial_end",
    ]  # fmt: skip
    path = bench.ledger_path(finished.order)
    assert read_events(path) == finished.events
    assert [file.name for file in bench.folder.iterdir()] == [path.name]
    assert finished.ending.duration_s is not None
    assert 0 < finished.ending.duration_s < 10
    trace = trace_of(finished.events)
    assert [turn.user for turn in trace.turns] == ["one", "two"]
    assert not trace.tools_observed
    assert not bench.left_over()


FAULTS = {
    "raises": (
        "def agent(text): raise ValueError('no seat left')",
        "agent_raised",
        "the agent raised ValueError: no seat left\n",
    ),
    "raises-in-the-middle": (
        "n = 0\ndef agent(text):\n  global n\n  n += 1\n  return 1 / (2 - n) and 'ok'",
        "agent_raised",
        "ZeroDivisionError",
    ),
    "raises-async": (
        "async def agent(text): raise LookupError('x')",
        "agent_raised",
        "LookupError: x",
    ),
    "raises-in-factory": ("def agent(): raise ValueError('no key')", "agent_raised", "no key"),
    "raises-in-close": (
        "class agent:\n  def reply(self, text): return 'x'\n  def close(self): 1 / 0",
        "agent_raised",
        "ZeroDivisionError",
    ),
    "raises-base": (
        "class Odd(BaseException): ...\ndef agent(text): raise Odd('x')",
        "agent_raised",
        "Odd: x",
    ),
    "raises-interrupt": (
        "def agent(text): raise KeyboardInterrupt",
        "agent_raised",
        "KeyboardInterrupt",
    ),
    "raises-generator-exit": (
        "def agent(text): raise GeneratorExit",
        "agent_raised",
        "GeneratorExit",
    ),
    "raises-group": (
        "def agent(text): raise ExceptionGroup('g', [ValueError('x')])",
        "agent_raised",
        "ExceptionGroup: g",
    ),
    "raises-what-cannot-be-shown": (
        "class Odd(Exception):\n  def __str__(self): raise RuntimeError\n"
        "def agent(text): raise Odd",
        "agent_raised",
        "Odd: (its message cannot be shown)",
    ),
    "raises-odd-text": (
        "def agent(text): raise ValueError('\\ud800\\x00')",
        "agent_raised",
        "ValueError: \ud800\x00",
    ),
    "sys-exit": ("import sys\ndef agent(text): sys.exit(3)", "agent_exited", "called sys.exit(3)"),
    "sys-exit-0": (
        "import sys\ndef agent(text): sys.exit()",
        "agent_exited",
        "called sys.exit(None)",
    ),
    "os-exit": (
        "import os\ndef agent(text): os._exit(0)",
        "agent_exited",
        "the agent's process ended with status 0 in the trial's middle",
    ),
    "kills-itself": (
        "import os, signal\ndef agent(text): os.kill(os.getpid(), signal.SIGKILL)",
        "agent_killed",
        "was ended by SIGKILL",
    ),
    "segfaults": (
        "import os, signal\ndef agent(text): os.kill(os.getpid(), signal.SIGSEGV)",
        "agent_killed",
        "SIGSEGV",
    ),
    "closes-everything": (
        "import os\ndef agent(text):\n  os.closerange(3, 64)\n  return 'x'",
        "agent_exited",
        "ended with status 70",
    ),
    "none": ("def agent(text): return None", "no_reply", "returned None"),
    "empty-trace": (
        "from evalkit import Trace\ndef agent(text): return Trace()",
        "no_reply",
        "empty trace",
    ),
    "bytes": ("def agent(text): return b'x'", "bad_reply", "returned bytes"),
    "50-mb": (
        "def agent(text): return 'x' * 50_000_000",
        "reply_too_large",
        "50,000,000 characters",
    ),
    "50-mb-result": (
        "from evalkit import ToolCall, Trace\n"
        "def agent(text): return Trace.from_calls([ToolCall('a', result='x' * 50_000_000)])",
        "reply_too_large",
        "a tool_result of 50,0",
    ),
    "circle": (
        "from evalkit import Trace\nc = {}\nc['c'] = c\n"
        "def agent(text): return Trace.from_calls([('a', c)], reply='x')",
        "bad_reply",
        "what the agent returned cannot be written as JSON: nested",
    ),
    "bad-record": (
        "from evalkit import Trace\ndef agent(_): return Trace(tool_calls=[('a', {})])",
        "agent_raised",
        "use Trace.from_calls",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_the_agent_fails_the_trial(bench: Any, name: str) -> None:
    """Whatever the agent does wrong ends its trial as failed, with a code and a sentence."""
    code, reason_code, reason = FAULTS[name]
    finished = bench.one(code, turns=("one", "two"))
    assert verdict(finished) == ("failed", reason_code)
    assert reason in finished.ending.reason
    assert not bench.left_over()


def test_a_factory_that_makes_no_agent_is_not_measured(bench: Any) -> None:
    """Nothing was there to measure: incomplete, not the agent's failure."""
    finished = bench.one("def agent(): return 3")
    assert verdict(finished) == ("incomplete", "agent_unavailable")
    assert "3 is no agent" in finished.ending.reason


def test_a_long_reason_is_cut(bench: Any) -> None:
    """An exception with a book in it keeps its beginning and its end."""
    finished = bench.one("def agent(text): raise ValueError('start' + 'x' * 30_000_000 + 'end')")
    assert verdict(finished) == ("failed", "agent_raised")
    assert len(finished.ending.reason) < 30_000
    assert "start" in finished.ending.reason
    assert finished.ending.reason.rstrip().endswith("end")


HANGING = """
    import subprocess, time
    def agent(text):
        subprocess.Popen(["sleep", "60"])
        time.sleep(60)
"""


def test_an_agent_that_hangs_fails_at_its_deadline(bench: Any) -> None:
    """It is killed with everything that it started, soon after the deadline."""
    began = time.monotonic()
    finished = bench.one(HANGING, deadline_s=0.5)
    assert verdict(finished) == ("failed", "deadline")
    assert "not done after 0.5 s" in finished.ending.reason
    assert finished.ending.duration_s == pytest.approx(0.5, abs=0.45)
    assert time.monotonic() - began < 15
    assert not bench.left_over()


def test_several_hanging_agents_do_not_hold_up_a_healthy_one(bench: Any) -> None:
    """One bad trial ends no other, and no run."""
    code = """
        import time
        n = 0
        def agent(text):
            if text == "hang":
                time.sleep(60)
            return text
    """
    orders = [replace(order, deadline_s=0.5) for order in bench.orders(4)]
    orders = [replace(order, turns=("hang" if order.trial < 3 else "go",)) for order in orders]
    finished = {one.order.trial: verdict(one) for one in bench.start(code, orders, n_parallel=4)}
    assert finished == {0: ("failed", "deadline"), 1: ("failed", "deadline"),
                        2: ("failed", "deadline"), 3: ("passed", "")}  # fmt: skip


def test_an_agent_that_ignores_sigterm_is_killed_too(bench: Any) -> None:
    """A deadline cannot be argued with."""
    code = """
        import signal, time
        def agent(text):
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN)
            while True:
                try:
                    time.sleep(60)
                except BaseException:
                    pass
    """
    assert verdict(bench.one(code, deadline_s=0.3)) == ("failed", "deadline")
    assert not bench.left_over()


def test_what_came_before_a_deadline_is_kept(bench: Any) -> None:
    """The turns that an agent finished are in its ledger, and the one that it did not, too."""
    code = """
        import time
        def agent(text):
            print("printed", text)
            return time.sleep(60) if text == "hang" else "fine"
    """
    finished = bench.one(code, turns=("go", "hang"), deadline_s=0.5)
    assert verdict(finished) == ("failed", "deadline")
    trace = trace_of(finished.events)
    assert [(turn.user, turn.replies) for turn in trace.turns] == [("go", ("fine",)), ("hang", ())]
    assert trace.logs == ("printed go\nprinted hang\n",)


@pytest.mark.parametrize("factor", [0.6, 0.98, 1.0, 1.02, 2.0])
def test_a_deadline_is_the_agents_own_time(bench: Any, factor: float) -> None:
    """Around the deadline, the time that the agent took decides, and nothing is in between."""
    code = f"""
        import time
        def agent(text):
            time.sleep({0.4 * factor})
            return "done"
    """
    finished = bench.one(code, deadline_s=0.4)
    code_ = verdict(finished)
    assert code_ in {("passed", ""), ("failed", "deadline")}
    assert finished.ending.duration_s is not None
    if code_[0] == "passed":
        assert finished.ending.duration_s <= 0.4
    if factor >= 1.0:
        assert code_ == ("failed", "deadline")


LARGE = """
    from evalkit import ToolCall, Trace
    def agent(text):
        calls = [ToolCall("look", {"n": n}, result="x" * 100_000) for n in range(30)]
        return Trace.from_calls(calls, reply="done")
"""


def test_a_slow_grader_makes_no_trial_miss_its_deadline(bench: Any) -> None:
    """While the caller sleeps, trials wait to be heard; that time is not the agents'."""
    endings = []
    for finished in bench.start(LARGE, bench.orders(4, deadline_s=0.6), n_parallel=4):
        endings.append(verdict(finished))
        time.sleep(1.0)
    assert endings == [("passed", "")] * 4


def test_the_next_trial_runs_while_the_caller_grades(bench: Any, tmp_path: Path) -> None:
    """A trial that has ended makes room at once, before anybody has looked at it."""
    code = f"""
        from pathlib import Path
        def agent(text):
            Path({str(tmp_path)!r}, f"said-{{text}}").touch()
            return "fine"
    """
    orders = [replace(order, turns=(str(order.trial),)) for order in bench.orders(3)]
    trials = bench.start(code, orders, n_parallel=1)
    assert next(trials).order.trial == 0
    deadline = time.monotonic() + 10
    while not (tmp_path / "said-1").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (tmp_path / "said-1").exists()
    assert [finished.order.trial for finished in trials] == [1, 2]


def test_a_slow_grader_excuses_no_trial_that_hangs(bench: Any) -> None:
    """An agent that is really late is found out all the same."""
    code = """
        import time
        def agent(text):
            return time.sleep(60) if text == "hang" else "fine"
    """
    orders = bench.orders(3, deadline_s=0.5)
    orders = [replace(orders[0], turns=("hang",)), *orders[1:]]
    endings = {}
    for finished in bench.start(code, orders, n_parallel=3):
        endings[finished.order.trial] = verdict(finished)
        time.sleep(0.7)
    assert endings == {0: ("failed", "deadline"), 1: ("passed", ""), 2: ("passed", "")}


def test_what_an_agent_prints_is_a_log_and_not_on_our_terminal(
    bench: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    """stdout, stderr, of C and of children: all of it is in the ledger, before the end."""
    code = """
        import os, subprocess, sys
        def agent(text):
            print("to stdout")
            print("to stderr", file=sys.stderr)
            os.write(1, b"raw \\xff\\n")
            subprocess.run(["echo", "from a child"])
            return "said"
    """
    finished = bench.one(code)
    assert verdict(finished) == ("passed", "")
    assert [event.kind for event in finished.events[-3:]] == ["reply", "log", "trial_end"]
    assert finished.events[-2].data == {
        "text": "to stdout\nto stderr\nraw \\xff\nfrom a child\n",
        "truncated": False,
    }
    assert capfd.readouterr() == ("", "")


def test_an_agent_that_prints_without_end_is_cut(bench: Any) -> None:
    """The ledger keeps the first and the last of 5 MB."""
    code = "def agent(text):\n  print('first' + 'x' * 5_000_000 + 'last')\n  return 'x'"
    log = bench.one(code).events[-2]
    assert log.data["truncated"]
    assert len(log.data["text"]) <= 100_000
    assert log.data["text"].startswith("first")
    assert log.data["text"].rstrip().endswith("last")


def test_an_agent_that_forks_speaks_once(bench: Any) -> None:
    """Both processes return, but only the trial's own is heard; the other is gone."""
    code = """
        import os
        def agent(text):
            child = os.fork()
            return "child" if child == 0 else "parent"
    """
    finished = bench.one(code, turns=("one", "two"))
    assert verdict(finished) == ("passed", "")
    assert trace_of(finished.events).replies == ("parent", "parent")
    assert not bench.left_over()


def test_odd_text_survives_the_trip(bench: Any) -> None:
    """Lone surrogates, NUL and huge integers arrive as the agent made them."""
    code = r"""
        from evalkit import Trace
        def agent(text):
            return Trace.from_calls([("a\ud800", {"n": 2**70, "\x00": float("inf")})], reply=text)
    """
    finished = bench.one(code, turns=("\ud800\x00\n",))
    assert verdict(finished) == ("passed", "")
    trace = trace_of(finished.events)
    assert trace.reply == trace.turns[0].user == "\ud800\x00\n"
    assert trace.tool_calls[0].name == "a\ud800"
    assert trace.tool_calls[0].args == {"n": 2**70, "\x00": float("inf")}


def test_same_seed_same_digest_and_each_trial_its_own_chance(bench: Any) -> None:
    """Randomness is seeded by run, scenario and trial: repeatable, and not the same everywhere."""

    def digests(seed: int) -> list[str]:
        return [digest(one.events) for one in bench.run(FINE, 3, seed=seed)]

    first = digests(7)
    assert digests(7) == first
    assert len(set(first)) == 3
    assert set(digests(8)).isdisjoint(first)


def test_every_trial_has_a_process_and_an_environment_of_its_own(bench: Any) -> None:
    """What one trial leaves in memory or environment no other one finds."""
    code = """
        import os
        seen = []
        def agent(text):
            seen.append(text)
            os.environ["LEFT"] = "x"
            return f"{len(seen)} {os.environ['GIVEN']}"
    """
    os.environ.pop("LEFT", None)
    for finished in bench.run(code, 3, turns=("a", "b"), env={"GIVEN": "g"}, n_parallel=1):
        assert trace_of(finished.events).replies == ("1 g", "2 g")
    assert "GIVEN" not in os.environ


def test_more_trials_than_places_all_run(bench: Any) -> None:
    """No more than n_parallel are alive at a time, and none is left out."""
    assert len(bench.run(FINE, 12, n_parallel=3)) == 12


def test_nothing_to_run_is_nothing(bench: Any) -> None:
    """Without orders no trial is invented."""
    assert list(bench.start(FINE, [])) == []


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("import nowhere_at_all", "No module named 'nowhere_at_all'"),
        ("1 / 0", "ZeroDivisionError"),
        ("agent_ = 3", "no 'agent' there; did you mean 'agent_'"),
        ("raise SystemExit(3)", r"SystemExit\(3\)"),
    ],
)
def test_an_agent_that_cannot_be_imported_stops_before_any_trial(
    bench: Any, code: str, message: str
) -> None:
    """No trial is run, none is failed, and the sentence says what is wrong with which agent."""
    with pytest.raises(AgentError, match=rf"agent 'agent_.*{message}"):
        next(bench.start(code, bench.orders(2)))
    assert list(bench.folder.iterdir()) == []
    assert not bench.left_over()


def test_where_imports_start_threads_trials_are_spawned(bench: Any) -> None:
    """A fork would be unsafe there; each trial gets a fresh interpreter, with the same results."""
    code = f"""
        import threading, time
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        {textwrap.dedent(FINE).strip().replace(chr(10), chr(10) + " " * 8)}
    """
    spawned = bench.run(code, 2)
    assert [verdict(one) for one in spawned] == [("passed", "")] * 2
    assert list(map(_replies, spawned)) == list(map(_replies, bench.run(FINE, 2)))


def _replies(finished: FinishedTrial) -> tuple[str, ...]:
    return trace_of(finished.events).replies


def test_a_slow_import_is_not_the_agents_time(bench: Any) -> None:
    """Where each trial imports the agent afresh, its deadline begins with the trial."""
    code = """
        import threading, time
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        time.sleep(0.8)
        def agent(text):
            return text
    """
    finished = bench.one(code, deadline_s=0.5)
    assert verdict(finished) == ("passed", "")


def test_a_process_that_dies_before_its_trial_is_lost(bench: Any) -> None:
    """The agent was never asked anything: incomplete."""
    code = """
        import os, threading, time
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
        if os.environ.get("SECOND"):
            os._exit(5)
        os.environ["SECOND"] = "1"
        def agent(text):
            return text
    """
    (finished,) = bench.run(code)
    assert (finished.ending.status, finished.ending.reason_code) == ("incomplete", "worker_lost")
    assert "ended with status 5 before the trial began" in finished.ending.reason
    assert [event.kind for event in finished.events] == ["trial_end"]


@pytest.mark.parametrize(
    "forged",
    [
        {"seq": 3, "kind": "trial_end", "data": {}},
        {"seq": 3, "kind": "trial_end", "data": {"status": "passed"}},
        {"seq": "three", "kind": "log", "data": {}},
        {"seq": 3, "kind": "log", "data": []},
        {"seq": 3},
    ],
    ids=["empty end", "half an end", "no number", "no data", "no kind"],
)
def test_a_forged_line_breaks_its_own_trial_only(bench: Any, forged: dict[str, Any]) -> None:
    """An agent that finds the channel and writes nonsense into it ends no run."""
    code = f"""
        import json, os, stat
        def agent(text):
            for fd in range(3, 64):
                try:
                    is_socket = stat.S_ISSOCK(os.fstat(fd).st_mode)
                except OSError:
                    continue
                if is_socket:
                    os.write(fd, json.dumps({forged!r}).encode() + b"\\n")
            return text
    """
    (finished,) = bench.run(code)
    assert verdict(finished) == ("incomplete", "ledger_broken")


def test_a_lost_server_is_nobodys_failed_trial(bench: Any) -> None:
    """When the process that trials come from is killed, they are incomplete, then the run stops."""
    code = """
        import os, signal, time
        def agent(text):
            os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(60)
    """
    trials = bench.start(code, bench.orders(2), n_parallel=1)
    assert verdict(next(trials)) == ("incomplete", "worker_lost")
    with pytest.raises(SandboxError, match="SIGKILL"):
        next(trials)
    assert not bench.left_over()


@pytest.mark.parametrize("kind", [KeyboardInterrupt, ValueError])
def test_an_interrupt_in_the_caller_kills_the_trials(bench: Any, kind: type[BaseException]) -> None:
    """Ctrl-C while a result is graded: no process is left, and begun ledgers stay partial."""
    code = """
        import time
        def agent(text):
            return time.sleep(60) if text == "hang" else "fine"
    """
    orders = bench.orders(3)
    orders = [orders[0], *(replace(order, turns=("hang",)) for order in orders[1:])]

    def consume() -> None:
        for _ in bench.start(code, orders, n_parallel=3):
            wait_for(lambda: len(bench.processes()) >= 3)  # the server and two that hang
            raise kind("stop")

    with pytest.raises(kind):
        consume()
    assert not bench.left_over()
    names = sorted(path.name for path in bench.folder.iterdir())
    assert names == ["a.0.jsonl", "a.1.jsonl.partial", "a.2.jsonl.partial"]
    parse_events((bench.folder / names[1]).read_bytes())


def test_a_disk_that_takes_no_ledger_stops_the_run(bench: Any) -> None:
    """The error says which file and how to go on, and no process is left."""

    def nowhere(order: TrialOrder) -> Path:
        return Path(bench.folder / "gone" / "a.jsonl")

    agent = bench.make_agent(FINE)
    with (
        ProcessTrials(agent, n_parallel=2) as trials,
        pytest.raises(LedgerError, match=r"cannot write the ledger \(No such file.*--resume"),
    ):
        next(trials.run(bench.orders(2), ledger_path=nowhere))
    assert not bench.left_over()


FULL = """
    import resource, signal, sys
    from pathlib import Path
    from evalkit.agents import AgentRef
    from evalkit.errors import LedgerError
    from evalkit.trial import ProcessTrials, TrialOrder
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    folder = Path(sys.argv[1])
    orders = [TrialOrder("a", n, ("small",) if n < 2 else ("large",)) for n in range(3)]
    agent = AgentRef(sys.argv[2], (sys.argv[3],))
    path = lambda order: folder / f"{order.trial}.jsonl"
    with ProcessTrials(agent, n_parallel=1) as processes:
        trials = processes.run(orders, ledger_path=path)
        done = [next(trials), next(trials)]
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        try:
            next(trials)
        except LedgerError as error:
            print(error)
"""


def test_a_full_disk_keeps_the_trials_before(bench: Any, tmp_path: Path) -> None:
    """Trials that were given are whole on disk when the next one finds no room."""
    reference = bench.make_agent(
        "def agent(text):\n  return 'x' * (500_000 if text == 'large' else 5)"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            textwrap.dedent(FULL),
            bench.folder,
            reference.description,
            tmp_path,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert (
        "2.jsonl: cannot write the ledger (File too large); finished trials are safe" in done.stdout
    )
    assert sorted(path.name for path in bench.folder.iterdir()) == [
        "0.jsonl", "1.jsonl", "2.jsonl.partial",
    ]  # fmt: skip
    assert not bench.left_over()


def test_a_killed_controller_leaves_no_process(bench: Any, tmp_path: Path) -> None:
    """A kill -9 of evalkit ends its trials too; what was begun can be read."""
    reference = bench.make_agent("import time\ndef agent(text): time.sleep(60)")
    script = f"""
        from pathlib import Path
        from evalkit.agents import AgentRef
        from evalkit.trial import ProcessTrials, TrialOrder
        agent = AgentRef({reference.description!r}, ({str(tmp_path)!r},))
        path = lambda order: Path({str(bench.folder)!r}) / "a.jsonl"
        with ProcessTrials(agent, n_parallel=1) as trials:
            list(trials.run([TrialOrder("a", 0, ("x",))], ledger_path=path))
    """
    partial = bench.folder / "a.jsonl.partial"
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)]) as process:
        wait_for(lambda: partial.exists() and b'"turn"' in partial.read_bytes())
        process.send_signal(signal.SIGKILL)
    assert not bench.left_over()
    assert [event.kind for event in read_events(partial)] == ["trial_start", "turn"]


def wait_for(condition: Callable[[], bool], timeout_s: float = 20.0) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)
