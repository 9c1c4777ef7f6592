"""Agents that are commands: real processes that speak JSON lines, well and badly."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from evalkit.agents import AgentRef, Conversation
from evalkit.agents.command import CommandAgent
from evalkit.agents.protocol import AgentFault
from evalkit.errors import AgentError
from evalkit.run import run_suite
from evalkit.suite import suite_from_data

pytestmark = pytest.mark.usefixtures("nothing_left")

ECHOES = {
    "python": ((sys.executable, "echo.py"), "HI THERE"),
    "node": (("node", "echo.mjs"), "node heard: hi there"),
    "shell": (("./echo.sh",), "sh heard: hi there"),
}


@pytest.fixture
def says(folder):
    """Make an agent that answers each line with the lines given."""
    return lambda *lines: CommandAgent((sys.executable, "-S", "say.py", *lines), folder)


@pytest.fixture
def misbehaves(folder):
    """Make an agent that does what it should not."""
    return lambda how: CommandAgent((sys.executable, "-S", "misbehave.py", how), folder)


def fault_of(agent: CommandAgent, *, text: str = "hi", n_turns: int = 1) -> AgentFault:
    """Talk to an agent until it is at fault."""
    with pytest.raises(AgentFault) as caught:
        talk(agent, text, n_turns=n_turns)
    return caught.value


def talk(agent: CommandAgent, text: str, *, n_turns: int) -> None:
    """Say the same thing some times."""
    with agent() as conversation:
        for _ in range(n_turns):
            conversation.reply(text)


@pytest.mark.parametrize("language", ECHOES)
def test_agent_in_any_language_replies_turn_by_turn(folder, language):
    """A small script in Python, Node or shell is an agent, for as many turns as it is asked."""
    command, reply = ECHOES[language]
    with CommandAgent(command, folder)() as conversation:
        for _ in range(3):
            assert conversation.reply("hi there").reply == reply


@pytest.mark.parametrize(
    ("language", "command"),
    [
        ("python", (sys.executable, "agent.py")),
        ("javascript", ("node", "agent.mjs")),
        ("sh", ("sh", "agent.sh")),
    ],
)
def test_agent_of_the_guide_works(tmp_path, language, command):
    """The shortest agents that the guide shows are agents."""
    guide = (Path(__file__).parents[2] / "GUIDE.md").read_text()
    code = guide.partition(f"```{language}\n")[2].partition("```")[0]
    (tmp_path / command[1]).write_text(code)
    with CommandAgent(command, str(tmp_path))() as conversation:
        assert [conversation.reply(text).reply for text in ("a", "b")] == [
            "You said: a",
            "You said: b",
        ]


def test_command_is_an_agent_for_a_conversation(folder):
    """A worker needs to know nothing of commands: it is a factory like any other."""
    with Conversation(CommandAgent(*[ECHOES["python"][0], folder])) as conversation:
        assert conversation.reply("abc").reply == "ABC"


def test_agent_sees_the_protocol(folder):
    """Each turn says version, type, number and text, and one id for the whole trial."""
    script = "import sys, json\nfor line in sys.stdin: print(json.dumps({'text': line}))"
    with CommandAgent((sys.executable, "-c", script), folder).open("weather.0") as conversation:
        sent = [json.loads(conversation.reply(text).reply) for text in ("one", "two")]
    assert sent == [
        {"protocol": 1, "type": "turn", "text": text, "turn": n, "conversation_id": "weather.0"}
        for n, text in enumerate(("one", "two"), start=1)
    ]


@pytest.mark.parametrize(
    "text", ["", "Köln 東京 😀", "a\u2028b\x85c\nd\te\x00f", "lone \ud800 half", "x" * 3_000_000]
)
def test_any_text_survives_both_ways(folder, text):
    """Text arrives as it was sent, whatever its characters, lines and length."""
    script = (
        "import sys, json\n"
        "for line in sys.stdin: print(json.dumps({'text': json.loads(line)['text']}))"
    )
    with CommandAgent((sys.executable, "-c", script), folder)() as conversation:
        assert conversation.reply(text).reply == text


def test_raw_unicode_crlf_and_a_byte_order_mark_are_read(says):
    """Lines may end as on Windows, be blank, begin with a mark, and hold plain UTF-8."""
    agent = says("\ufeff" + '{"text": "Grüße 😀"}\r', "  ", "")
    with agent() as conversation:
        assert conversation.reply("hi").reply == "Grüße 😀"


def test_tool_calls_are_those_that_the_agent_reports(folder):
    """A reported call is observed with its result; saying hello makes silence mean none."""
    with CommandAgent(("node", "echo.mjs"), folder)() as conversation:
        first = conversation.reply("weather?")
        second = conversation.reply("thanks")
    (call,) = first.tool_calls
    assert (call.name, call.args, call.status) == ("get_weather", {"city": "Denver"}, "ok")
    assert (call.result, call.duration_s) == ({"city": "Denver", "rain": False}, 0.25)
    assert first.tools_observed
    assert second.tools_observed
    assert second.tool_calls == ()


def test_tool_calls_of_a_silent_agent_are_not_observed(says):
    """An agent that only replies leaves its tool calls unknown, which is not none."""
    with says('{"text": "ok"}')() as conversation:
        assert not conversation.reply("hi").tools_observed


@pytest.mark.parametrize(
    ("written", "args", "raw_args", "status"),
    [
        ('{"a": 1}', {"a": 1}, None, "ok"),
        ('"{\\"a\\": 1}"', {"a": 1}, None, "ok"),
        ('"{\\"a\\": "', None, '{"a": ', "error"),
        ("null", {}, None, "ok"),
    ],
)
def test_arguments_may_be_what_the_model_wrote(says, written, args, raw_args, status):
    """Arguments as text are parsed; malformed ones are a failed call with the text kept."""
    call = f'{{"type": "tool_call", "name": "book", "args": {written}}}'
    with says(call, '{"reply": "ok"}')() as conversation:
        (made,) = conversation.reply("hi").tool_calls
    assert (made.args, made.raw_args, made.status) == (args, raw_args, status)


@pytest.mark.parametrize(
    "lines",
    [
        ('{"replies": ["one", "two"]}',),
        ('{"type": "reply", "text": "one", "more": true}', '{"type": "reply", "text": "two"}'),
    ],
)
def test_turn_may_have_several_replies(says, lines):
    """Replies come in one line, or in lines that say that more follow."""
    with says(*lines)() as conversation:
        assert [conversation.reply("hi").replies for _ in range(2)] == [("one", "two")] * 2


def test_log_lines_are_the_turns_log(says):
    """A log line before the reply stands in the trace."""
    log = '{"type": "log", "level": "warning", "text": "slow"}'
    with says(log, '{"text": "ok"}')() as conversation:
        assert conversation.reply("hi").logs == ("warning: slow",)


def test_stderr_is_the_log_of_the_trial(folder, capfd):
    """What an agent writes to standard error is passed on, whole."""
    with CommandAgent(("./echo.sh",), folder)() as conversation:
        conversation.reply("you")
    assert capfd.readouterr().err == "the shell heard you\n"


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        ("Loading model...", "bad_reply", "line 1 of the agent's standard output is no JSON"),
        ("Loading model...", "bad_reply", "'Loading model...'; write JSON lines there, and all"),
        ('["text"]', "bad_reply", "no JSON object"),
        ("[" * 100_000, "bad_reply", "(100,000 bytes)"),
        ('{"type": "reply", "text": null}', "no_reply", "`text` must be text, not 'null'"),
        ('{"type": "reply", "text": 5}', "bad_reply", "`text` must be text, not '5'"),
        ('{"type": "reply"}', "no_reply", "has no reply"),
        ('{"text": "a", "reply": "b"}', "bad_reply", "has `text` and `reply`"),
        ('{"replies": "one"}', "bad_reply", "must be a list of texts"),
        ('{"replies": []}', "no_reply", "an empty list of replies"),
        ('{"answer": "one"}', "bad_reply", 'write {"type": "reply", "text": "..."}'),
        ('{"type": "replay", "text": "a"}', "bad_reply", "did you mean `reply`?"),
        ('{"type": ["x"], "text": "a"}', "bad_reply", "unknown type"),
        ('{"type": "tool_call", "args": {}}', "bad_reply", "needs a `name`"),
        ('{"type": "tool_call", "name": "a", "arg": {}}', "bad_reply", "did you mean `args`?"),
        ('{"type": "tool_call", "name": "a", "args": [1]}', "bad_reply", "`args` must map"),
        ('{"type": "tool_call", "name": "a", "status": "fine"}', "bad_reply", "none of ok, error"),
        ('{"type": "tool_call", "name": "a", "duration_s": "1 s"}', "bad_reply", "duration_s"),
        ('{"text": "a", "tool_calls": {}}', "bad_reply", "`tool_calls` must be a list"),
        ('{"text": "a", "tool_calls": ["search"]}', "bad_reply", "tool call 1 of line 1"),
        ('{"type": "error", "message": "no credit"}', "agent_raised", "reported an error: no cre"),
        ('{"error": {"code": 7}}', "agent_raised", '{"error": {"code": 7}}'),
        ('{"type": "hello", "protocol": 2}', "bad_reply", "the agent speaks protocol 2"),
        ('{"type": "hello", "tool": true}', "bad_reply", "did you mean `tools`?"),
        ('{"type": "state", "state": {}}', "bad_reply", "a state that nobody asked for"),
    ],
)
def test_line_that_breaks_the_protocol_is_quoted(says, line, code, message):
    """Whatever is no answer fails the trial, with a sentence that names and quotes the line."""
    fault = fault_of(says(line))
    assert fault.code == code
    assert message in fault.message
    assert len(fault.message) < 800


def test_line_that_is_no_utf8_is_quoted(folder):
    """Bytes that are no text are a fault, not a crash."""
    fault = fault_of(CommandAgent(("sh", "-c", r"read x; printf '{\"text\": \"\377\"}\n'"), folder))
    assert (fault.code, "\\xff" in fault.message) == ("bad_reply", True)


@pytest.mark.parametrize(
    ("how", "code", "message"),
    [
        ("exits_at_once", "agent_exited", "ended with status 3 before it had replied to turn 1"),
        ("exits_at_once", "agent_exited", "its log ends:\nno API key in the environment"),
        ("exits_when_asked", "agent_exited", "ended with status 0 before it had replied"),
        ("is_killed", "agent_killed", "was ended by SIGSEGV"),
        ("closes_stdout", "no_reply", "closed its standard output before it had replied"),
        ("writes_half_a_line", "bad_reply", "no JSON object"),
        ("writes_a_huge_line", "reply_too_large", "a line of more than 16,777,216 bytes"),
        ("writes_without_end", "reply_too_large", "more than 67,108,864 bytes in one turn"),
        ("leaves_a_child", "agent_exited", "ended with status 0"),
        ("greets_unasked", "bad_reply", "more replies than it was asked for"),
    ],
)
def test_agent_that_misbehaves_is_at_fault(misbehaves, how, code, message):
    """Each misbehaviour ends the trial soon, as the agent's fault, with what is known of it."""
    began = time.monotonic()
    fault = fault_of(misbehaves(how))
    assert fault.code == code
    assert message in fault.message
    assert time.monotonic() - began < 10


@pytest.mark.parametrize(
    "how", ["leaves_out_the_newline", "writes_in_pieces", "reads_one_byte", "closes_stdin"]
)
def test_agent_that_is_only_odd_is_understood(misbehaves, how):
    """Torn writes, a missing last newline and unread input do not keep a reply from arriving."""
    with misbehaves(how)() as conversation:
        assert conversation.reply("x" * 1_000_000).reply == "ok"


def test_agent_that_writes_before_it_reads_does_not_hang(misbehaves):
    """Both pipes full at once is no deadlock."""
    with misbehaves("writes_before_it_reads")() as conversation:
        assert conversation.reply("x" * 1_000_000).reply == "1000000"


def test_agent_that_leaves_after_a_turn_is_missed_in_the_next(misbehaves):
    """A program that answers one turn only fails a conversation of two."""
    fault = fault_of(misbehaves("exits_after_first_reply"), n_turns=2)
    assert fault.code == "agent_exited"
    assert "status 0 before it had replied to turn 2" in fault.message


@pytest.mark.parametrize("n_turns", [1, 3])
@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (('{"text": "a"}', '{"text": "b"}'), 'write `"more": true` into a reply'),
        (('{"text": "a"}', "--at-end", "bye"), "no JSON object: 'bye'"),
        (('{"text": "a"}', "--at-end", '{"text": "bye"}'), "after the last turn"),
        (
            ('{"text": "a"}', "--at-end", '{"type": "tool_call", "name": "late"}'),
            "a tool call after the last reply",
        ),
    ],
)
def test_what_no_turn_has_room_for_is_a_fault(says, lines, message, n_turns):
    """Replies are never taken for those of another turn, and late calls never lost."""
    fault = fault_of(says(*lines), n_turns=n_turns)
    assert (fault.code, message in fault.message) == ("bad_reply", True)


def test_log_and_failure_at_the_end_are_not_judged(says, capfd):
    """A log line after the last reply is kept, and a status at the end does not matter."""
    log = '{"type": "log", "text": "saved"}'
    with says('{"text": "a"}', "--at-end", log)() as conversation:
        conversation.reply("hi")
    assert "saved" in capfd.readouterr().err
    with CommandAgent((sys.executable, "-c", 'input(); print(\'{"text": "a"}\'); input()'), "/")():
        pass


def test_tool_that_ran_before_a_failure_is_kept(misbehaves):
    """What an agent did before it failed is told with the fault: it did happen."""
    fault = fault_of(misbehaves("fails_after_a_tool"), text="delete it")
    assert (fault.code, fault.trace.tools_observed) == ("agent_raised", True)
    assert fault.trace.tool_calls[0].args == {"id": 7}
    assert fault.trace.turns[0].user == "delete it"


def test_agent_that_ignores_its_end_is_killed(misbehaves, capfd):
    """An agent that hears neither the end of its input nor SIGTERM is gone, and that is said."""
    began = time.monotonic()
    with misbehaves("does_not_end")() as conversation:
        conversation.reply("hi")
    assert time.monotonic() - began < 8
    assert "the agent was still running 2 s after" in capfd.readouterr().err


def test_child_of_the_agent_ends_with_it(folder, runs):
    """What an agent started in its process group does not outlive the conversation."""
    script = 'sleep 60 & while read -r line; do echo "{\\"text\\": \\"$!\\"}"; done'
    with CommandAgent(("sh", "-c", script), folder)() as conversation:
        pid = int(conversation.reply("hi").reply)
        os.kill(pid, 0)
    assert not runs(pid)


def test_child_that_escapes_keeps_nobody_waiting(misbehaves):
    """A pipe that a stranger holds open does not hide that the agent has ended."""
    fault = fault_of(misbehaves("leaves_a_child_that_escapes"))
    pid = int(fault.trace.logs[0])
    os.kill(pid, signal.SIGKILL)  # still there: the sandbox's to end, not the conversation's
    assert fault.code == "agent_exited"


def test_state_is_asked_of_an_agent_that_tells_it(misbehaves, says):
    """State is asked for after any turn, and only where the agent said that it has one."""
    with misbehaves("tells_its_state")() as conversation:
        states = [(conversation.reply("hi"), conversation.state())[1] for _ in range(2)]
    assert states == [{"n_turns": 1}, {"n_turns": 2}]
    with says('{"text": "ok"}')() as conversation:
        conversation.reply("hi")
        assert conversation.state() is None


@pytest.mark.parametrize("answer", ['{"text": "ok"}', '{"type": "state", "state": 5}'])
def test_answer_that_is_no_state_is_a_fault(folder, answer):
    """An agent that promised a state and tells none is at fault."""
    hello = '{"type": "hello", "state": true}'
    script = f"read x; echo '{hello}'; echo '{{\"text\": \"ok\"}}'; read x; echo '{answer}'"
    with CommandAgent(("sh", "-c", script), folder)() as conversation:
        conversation.reply("hi")
        with pytest.raises(AgentFault, match="does not answer for the state"):
            conversation.state()


def test_agent_runs_in_the_trials_surroundings(folder, tmp_path, monkeypatch):
    """Working directory and environment are the trial's; a file named is the suite's."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNIT", "celsius")
    command = (sys.executable, "misbehave.py", "tells_its_surroundings", "data.txt")
    with CommandAgent(command, folder)() as conversation:
        found = json.loads(conversation.reply("hi").reply)
    assert found["cwd"] == str(tmp_path)
    assert found["unit"] == "celsius"
    script = str(Path(folder, "misbehave.py"))
    assert found["argv"] == [script, "tells_its_surroundings", "data.txt"]


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("nodee", "echo.mjs"), "no program 'nodee' on the PATH"),
        (("echo.sh",), "for the file in the suite's folder write ./echo.sh"),
        (("./echo.py",), "name what runs it ([python3, ./echo.py]), or chmod"),
        (("./missing.sh",), "a path is looked for from the suite's folder"),
        ((), "its command is empty"),
    ],
)
def test_program_that_is_not_there_is_named(folder, command, message):
    """A command that cannot be started is found before the run, with the way out."""
    agent = CommandAgent(command, folder)
    for start in (agent.refer, agent):
        with pytest.raises(AgentError) as caught:
            start()
        assert message in str(caught.value)


def test_file_that_is_no_program_is_named(tmp_path):
    """A script without its first line is found when it is started."""
    script = tmp_path / "agent"
    script.write_text("echo hello\n")
    script.chmod(0o755)
    with pytest.raises(AgentError, match="begin it with `#!/bin/sh`"):
        CommandAgent(("./agent",), str(tmp_path))()


def test_command_travels_and_its_code_is_hashed(folder, tmp_path):
    """The reference rebuilds the agent; a change of the code beside it changes the hash."""
    shutil.copy(Path(folder, "echo.py"), tmp_path)
    agent = CommandAgent(("python3", "echo.py"), str(tmp_path))
    reference = pickle.loads(pickle.dumps(agent.refer()))
    assert isinstance(reference, AgentRef)
    assert (reference.load(), reference.description) == (agent, "command: python3 echo.py")
    (tmp_path / "notes.txt").write_text("no code")
    (tmp_path / "node_modules").mkdir()
    (tmp_path / "node_modules" / "other.py").write_text("installed")
    assert agent.refer().hash == reference.hash
    (tmp_path / "tools.py").write_text("def search(): ...")
    changed = agent.refer().hash
    assert changed != reference.hash
    assert CommandAgent(("python3", "-u", "echo.py"), str(tmp_path)).refer().hash != changed


def test_trials_of_a_command_run_in_their_own_processes(tmp_path, misbehaves, folder, runs):
    """A suite runs a command as it runs a function: replies, deadline, exits, statuses."""
    scenarios = [
        {"id": "echo", "turns": [{"user": "hi"}], "expect": {"reply": {"contains": "HI"}}},
        {"id": "tools", "input": "hi", "expect": {"tools": []}},
    ]
    suite = suite_from_data({"suite": "shouting", "scenarios": scenarios}, folder=tmp_path)
    agent = CommandAgent((sys.executable, "echo.py"), folder)
    run = run_suite(suite, agent=agent, lane="live", out=tmp_path)
    assert list(run.trials.sort_values("scenario")["status"]) == ["passed", "incomplete"]
    silent = {"id": "silent", "input": "hi", "deadline": "1s", "expect": {"replies": 1}}
    suite = suite_from_data({"suite": "silence", "scenarios": [silent]}, folder=tmp_path)
    run = run_suite(suite, agent=misbehaves("never_replies"), lane="live", out=tmp_path)
    assert list(run.trials["reason_code"]) == ["deadline"]
    (log,) = run.trace("silent", 0).logs
    assert not runs(int(log.removeprefix("thinking, as ")))
