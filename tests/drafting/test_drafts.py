"""Drafts of real and imported trials: they load at once, and replay what was recorded."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalkit.drafting import Draft, DraftedSuite, Undraftable, draft_scenario, draft_suite
from evalkit.errors import UsageError
from evalkit.graders import Trial, grade_truth
from evalkit.importers import import_run
from evalkit.ledger import encode
from evalkit.results import Run, load_run
from evalkit.run import run_suite
from evalkit.suite import Suite, suite_from_data
from evalkit.suite.loading import parse_suite
from evalkit.suite.yaml_reader import parse_yaml
from evalkit.terminal import printable

DATA = Path(__file__).parents[2] / "data"
TWIN = DATA / "traces" / "tau_bench_twin.json"
RULES = "evalkit.examples.travel_rules"
WEATHER = ("get_weather", '{"city": "Denver"}')
BOOK = ("book", '{"flight_id": "AA123"}')


def _loaded(drafted: DraftedSuite) -> Suite:
    """Load what was drafted as a user would, from its text alone."""
    document = parse_yaml(drafted.text.encode(), where="drafts")
    assert encode(document.data["scenarios"]) == encode([draft.data for draft in drafted.drafts])
    return suite_from_data(document.data)


def _answers(messages: Sequence[dict[str, Any]]) -> list[tuple[str, list[Any]]]:
    """Give the text and the calls of each of the model's messages, as the file has them."""
    return [
        (
            message.get("content") or "",
            [
                (call["function"]["name"], json.loads(call["function"]["arguments"]))
                for call in message.get("tool_calls") or ()
            ],
        )
        for message in messages
        if message["role"] == "assistant"
    ]


def _scripted(draft: Draft) -> list[tuple[str, list[Any]]]:
    """Give the same of each step of a draft, as a suite reads it."""
    scenario: Any = suite_from_data({"suite": "s", "scenarios": [draft.data]}).scenarios[0]
    steps = [
        step.model_dump()
        for turn in scenario.turns
        for script in turn.model.scripts.values()
        for step in script.steps
    ]
    return [
        (step.get("text", ""), [(use["tool"], use["args"]) for use in step.get("tools", ())])
        for step in steps
    ]


def _check_replay(drafted: DraftedSuite, conversations: dict[tuple[str, int], Any]) -> None:
    for draft in drafted.drafts:
        messages = conversations[draft.scenario, draft.trial]
        assert _scripted(draft) == _answers(messages), draft.id


def _tau_bench(path: Path, out: Path) -> tuple[Run, dict[tuple[str, int], Any]]:
    rows = json.loads(path.read_text(encoding="utf-8"))
    run = import_run("tau-bench", path, out=out, write_tools=["rent_bike", "return_bike"])
    return run, {(f"task-{row['task_id']}", row["trial"]): row["traj"] for row in rows}


def test_every_trial_of_the_twin_is_drafted_and_replays(tmp_path: Path) -> None:
    """Each draft loads, and its script is what the file says that the model answered."""
    run, conversations = _tau_bench(TWIN, tmp_path)
    for scenario, trial in conversations:
        draft = draft_scenario(run, scenario, trial)
        assert _scripted(draft) == _answers(conversations[scenario, trial])
    drafted = draft_suite(run, status="any")
    assert len(_loaded(drafted)) + len(drafted.same) == 12
    assert not drafted.undrafted


@pytest.mark.public
def test_every_trial_of_tau_bench_is_drafted_and_replays(public_data: Path, tmp_path: Path) -> None:
    """Two hundred real trials: all are drafted, loaded at once, and replay their file."""
    path = public_data / "tau_bench_airline_gpt4o" / "gpt-4o-airline.json"
    rows = json.loads(path.read_text(encoding="utf-8"))
    run = import_run("tau-bench", path, out=tmp_path)
    drafted = draft_suite(run, status="any")
    assert (len(drafted.drafts) + len(drafted.same), drafted.undrafted) == (200, ())
    assert len(_loaded(drafted)) == len(drafted.drafts)
    trials = {(f"task-{row['task_id']}", row["trial"]): row["traj"] for row in rows}
    _check_replay(drafted, trials)
    # Gold calls are known, so only what the recording leaves open is for review.
    assert all("tool call" in text for draft in drafted.drafts for text in draft.review)


@pytest.mark.parametrize("path", sorted((DATA / "traces").glob("*.jsonl")), ids=lambda p: p.stem)
def test_every_shipped_trace_is_drafted_and_replays(path: Path, tmp_path: Path) -> None:
    """Each draft loads, and expects the calls that were made, for review."""
    run = import_run("openai", path, out=tmp_path)
    drafted = draft_suite(run, status="any")
    assert not drafted.undrafted
    assert all(draft.review for draft in drafted.drafts)
    records = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    _check_replay(drafted, {(one["scenario"], one["trial"]): one["messages"] for one in records})
    suite = _loaded(drafted)
    for draft in drafted.drafts:
        trace = run.trace(draft.scenario, draft.trial)
        assert grade_truth(Trial(suite.scenario(draft.id), trace)).passed


def _formats(folder: Path) -> Iterator[tuple[str, Path]]:
    for name in ("openai", "anthropic"):
        short = {"openai": "oai", "anthropic": "anth"}[name]
        for path in (folder / "openai_anthropic").glob(f"{short}_*"):
            yield name, path
    for name, pattern in (("langchain", "*.json"), ("otel", "*spans.json"), ("otel", "*.otlp.*")):
        for path in (folder / name).glob(pattern):
            yield name, path


@pytest.mark.public
def test_real_files_of_other_tools_are_drafted(public_data: Path, tmp_path: Path) -> None:
    """What they recorded loads at once; what has no user says so."""
    n = 0
    for name, path in _formats(public_data / "formats"):
        drafted = draft_suite(import_run(name, path, out=tmp_path), status="any")
        assert all("no user turn" in one.reason for one in drafted.undrafted)
        n += len(_loaded(drafted)) if drafted.drafts else 0
    assert n >= 13


def test_gold_calls_are_proposed_and_nothing_is_left_to_review(tmp_path: Path) -> None:
    """A run whose suite says what should happen gets exactly that, and grades alike."""
    run, _ = _tau_bench(TWIN, tmp_path)
    drafted = draft_suite(run)
    assert [draft.id for draft in drafted.drafts if draft.review] == ["task-3-trial-2"]
    gold, suite = parse_suite(run.folder / "suite.yaml"), _loaded(drafted)
    for draft in drafted.drafts:
        assert suite.scenario(draft.id).expect == gold.scenario(draft.scenario).expect
        trace = run.trace(draft.scenario, draft.trial)
        grades = [grade_truth(Trial(one, trace)).passed for one in (
            suite.scenario(draft.id), gold.scenario(draft.scenario))]  # fmt: skip
        assert grades[0] == grades[1]


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Two trials of a bad agent that calls no model."""
    out = tmp_path_factory.mktemp("live")
    suite = parse_suite(DATA / "suites" / "travel.yaml")
    return run_suite(
        suite, agent=f"{RULES}:wrong_id", lane="live", n_trials=2, isolation="none", out=out
    )


def test_failed_trials_of_a_live_run_become_one_scenario_each_situation(live: Run) -> None:
    """Both trials went the same way, so there is one draft, with the suite's expectations."""
    drafted = draft_suite(live)
    assert [draft.id for draft in drafted.drafts] == ["weather-gate-book-trial-0"]
    assert [(one.trial, one.reason) for one in drafted.same] == [
        (1, "same input and calls as weather-gate-book-trial-0")
    ]
    scenario: Any = _loaded(drafted).scenarios[0]
    assert drafted.agent == f"{RULES}:wrong_id"
    assert scenario.turns[0].model.is_silent
    assert [call.tool for call in scenario.expect.tools.calls] == ["get_weather", "book"]
    assert scenario.expect.reply.contains == ("booked",)
    assert scenario.tags == ("booking", "condition")


def test_circumstances_and_bans_of_the_suite_are_kept(live: Run) -> None:
    """What makes the agent meet the same situation, and what it must not do, is copied."""
    draft = draft_scenario(live, "no-book-when-raining")
    gold = parse_suite(DATA / "suites" / "travel.yaml").scenario("no-book-when-raining")
    [scenario] = suite_from_data({"suite": "s", "scenarios": [draft.data]}).scenarios
    assert (scenario.env, scenario.forbid) == (gold.env, gold.forbid)


def test_a_given_suite_beats_the_run_s_own(live: Run) -> None:
    """--suite says what should have happened."""
    given = suite_from_data(
        {"suite": "s", "scenarios": [{"id": "weather-only", "input": "x", "expect": {"tools": []}}]}
    )
    draft = draft_scenario(live, "weather-only", suite=given)
    assert draft.data["expect"] == {"tools": []}
    assert not draft.review


def _made(imported: Callable[..., Run], *messages: Any, **options: Any) -> Draft:
    return draft_scenario(imported(messages), "talk-0", **options)


def test_without_gold_the_calls_made_are_expected_for_review(
    imported: Callable[..., Run], chat: Any
) -> None:
    """Every call as it was made, a failed one with its status; nothing of the reply."""
    draft = _made(
        imported,
        chat.user("go"),
        chat.model(None, WEATHER, ("tool", '{"$ref": 1}')),
        chat.tool(0),
        chat.tool(1),
        chat.model(None, BOOK),
        chat.tool(status="error"),
        chat.model("Booked it, I swear."),
    )
    assert draft.data["expect"] == {
        "tools": [
            {"get_weather": {"city": "Denver"}},
            {"tool": "tool", "args": {"$$ref": 1}},
            {"tool": "book", "args": {"flight_id": "AA123"}, "status": "error"},
        ]
    }
    assert any("calls that were made" in text for text in draft.review)
    assert any("nothing is expected of the reply" in text for text in draft.review)
    assert any("calls that failed stand here" in text for text in draft.review)


def test_repeated_calls_are_named(imported: Callable[..., Run], chat: Any) -> None:
    """A loop must not become an expectation unseen."""
    twice = [chat.model(None, WEATHER), chat.tool()] * 2
    draft = _made(imported, chat.user("go"), *twice, chat.model("Done."))
    assert "get_weather was called more than once with the same arguments" in draft.review


def test_no_call_at_all_expects_none(imported: Callable[..., Run], chat: Any) -> None:
    """Tools were observed and none was called: `tools: []`, for review."""
    draft = _made(imported, chat.user("Hi"), chat.model("Hello."))
    assert draft.data["expect"] == {"tools": []}
    assert "no tool was called; name the calls that should have been made" in draft.review


def test_where_nobody_saw_the_calls_only_a_reply_is_expected(tmp_path: Path) -> None:
    """Text alone tells nothing of tools; that there is a reply is all that can be said."""
    suite = suite_from_data(
        {"suite": "s", "scenarios": [{"id": "a", "input": "Hi", "expect": {"replies": 2}}]}
    )
    run = run_suite(suite, agent=_shout, lane="live", isolation="none", out=tmp_path)
    draft = draft_scenario(run, "a", suite=suite)
    assert draft.data["expect"] == {"replies": {"min": 2, "max": 2}}
    other = suite_from_data(
        {"suite": "s", "scenarios": [{"id": "b", "input": "Hi", "expect": {"replies": 2}}]}
    )
    draft = draft_scenario(run, "a", suite=other)
    assert draft.data["expect"] == {"replies": {"min": 1}}
    assert any("nobody saw the tool calls" in text for text in draft.review)


def _shout(text: str) -> str:
    return text.upper()


def test_expectations_of_turns_are_kept_where_the_turns_are_the_same(
    imported: Callable[..., Run], chat: Any
) -> None:
    """A suite whose user said the same keeps its turns; else they are named as lost."""
    turns = [
        {"user": "one", "expect": {"tools": []}},
        {"user": "two", "expect": {"tools": ["get_weather"]}, "forbid": {"tools": ["book"]}},
    ]
    gold = suite_from_data({"suite": "s", "scenarios": [{"id": "talk-0", "turns": turns}]})
    messages = [
        chat.user("one"), chat.model("1"), chat.user("two"), chat.model(None, WEATHER), chat.tool(),
        chat.model("2"),
    ]  # fmt: skip
    draft = _made(imported, *messages, suite=gold)
    assert [sorted(turn) for turn in draft.data["turns"]] == [
        ["expect", "model", "user"],
        ["expect", "forbid", "model", "user"],
    ]
    assert "expect" not in draft.data
    others = _made(imported, chat.user("else"), *messages[1:], suite=gold)
    assert any("what it expects of single turns" in text for text in others.review)


def test_forbidden_calls_are_not_expected(imported: Callable[..., Run], chat: Any) -> None:
    """A suite that only forbids: what was called besides is expected, for review."""
    written = {"id": "talk-0", "input": "go", "forbid": {"tools": ["book"]}}
    gold = suite_from_data({"suite": "s", "scenarios": [written]})
    messages = [chat.user("go"), chat.model(None, WEATHER, BOOK), chat.tool(0), chat.tool(1)]
    draft = _made(imported, *messages, suite=gold)
    assert draft.data["expect"] == {"tools": [{"get_weather": {"city": "Denver"}}]}
    assert draft.data["forbid"] == {"tools": ["book"]}


def test_what_needs_fixtures_is_named_not_copied(imported: Callable[..., Run], chat: Any) -> None:
    """Expectations of a database mean nothing without it."""
    written = {
        "id": "talk-0",
        "input": "go",
        "fixtures": {"database": {"a.db": "a.sql"}},
        "expect": {"tools": [], "database": [{"query": "select 1", "n_rows": 1}]},
    }
    gold = suite_from_data({"suite": "s", "scenarios": [written]})
    draft = _made(imported, chat.user("go"), chat.model("Ok."), suite=gold)
    assert draft.data["expect"] == {"tools": []}
    assert draft.review == (
        "not copied from the suite's scenario talk-0: expect.database, fixtures",
    )


def test_ids_are_file_names_and_never_alike(imported: Callable[..., Run], chat: Any) -> None:
    """Whatever a scenario is called elsewhere, its drafts get ids that a suite takes."""
    names = ["a b", "a/b", "A-B", "..", "é" * 200]
    talks = [[chat.user(f"hi {n}"), chat.model("Ok.")] for n in range(len(names))]
    run = imported(*talks)
    path = run.folder.parents[1] / "named.jsonl"
    lines = [
        json.dumps({"scenario": name, "messages": messages})
        for name, messages in zip(names, talks, strict=True)
    ]
    path.write_text("\n".join(lines), encoding="utf-8")
    drafted = draft_suite(import_run("openai", path, out=path.parent), status="any")
    assert [draft.id for draft in drafted.drafts] == [
        "a-b-trial-0", "a-b-trial-0-2", "A-B-trial-0-3", "scenario-trial-0", "scenario-trial-0-2",
    ]  # fmt: skip
    assert len(_loaded(drafted)) == 5


HOSTILE = [
    "no",
    "1e5",
    "0123",
    "12:30",
    "null",
    "- x: {",
    "# no comment\n  - id: injected\n",
    "a\u2028- id: b",
    "\x1b[2J\x07",
    "\u202egnp",
    "{a}: {{b}} *x &y !z",
    "tab\there ",
    "\n\n  lead",
    "emoji 🛫",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(imported: Callable[..., Run], chat: Any, text: str) -> None:
    """Text of users, models, tags and reasons neither leaves its place nor steers a terminal."""
    messages = [
        chat.user(text),
        chat.model(text, ("x", json.dumps({text: [text, {"k": text}]}))),
        chat.tool(),
        chat.model(text),
    ]
    run = imported(messages, tags=[text])
    drafted = draft_suite(run, status="any")
    [scenario] = _loaded(drafted)
    assert scenario.input == text
    assert printable(drafted.text) == drafted.text
    assert drafted.text.count("- id: ") <= 1 + sum("- id: " in part for part in HOSTILE) * 6


def test_what_no_suite_can_hold_is_named(imported: Callable[..., Run], chat: Any) -> None:
    """Half a character is refused with its reason, and the other trials are drafted."""
    run = imported(
        [chat.user("half \ud800"), chat.model("Ok.")], [chat.user("whole"), chat.model("Ok.")]
    )
    drafted = draft_suite(run, status="any")
    assert [draft.scenario for draft in drafted.drafts] == ["talk-1"]
    [left_out] = drafted.undrafted
    assert left_out.scenario == "talk-0"
    assert "no suite can hold it" in left_out.reason


def test_a_file_without_a_draft_is_refused(imported: Callable[..., Run], chat: Any) -> None:
    """No trial of that status: there is nothing to write."""
    run = imported([chat.user("Hi"), chat.model("Hello.")])
    drafted = draft_suite(run, status="failed")
    assert drafted.drafts == ()
    with pytest.raises(UsageError, match="no trial was drafted"):
        _ = drafted.text


def test_wrong_questions_are_refused(live: Run) -> None:
    """An unknown status, scenario or trial is misuse, with what there is."""
    with pytest.raises(UsageError, match="none of passed, failed, incomplete, any"):
        draft_suite(live, status="broken")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="did you mean 'weather-only'"):
        draft_scenario(live, "weather-onli")
    with pytest.raises(UsageError, match="has trials 0 to 1, not 7"):
        draft_suite(live, status="any", scenario="weather-only", trial=7)


def test_a_trial_that_never_ran_is_named(tmp_path: Path, imported: Any, chat: Any) -> None:
    """A trial without a ledger cannot be drafted; the others are."""
    run = imported([chat.user("a"), chat.model("Ok.")], [chat.user("b"), chat.model("Ok.")])
    run.ledger_path("talk-1").unlink()
    drafted = draft_suite(load_run(run.folder), status="any")
    assert [draft.scenario for draft in drafted.drafts] == ["talk-0"]
    assert [one.scenario for one in drafted.undrafted] == ["talk-1"]


def test_undraftable_is_misuse() -> None:
    """A trial that gives no scenario is the caller's to know, as any wrong name."""
    assert issubclass(Undraftable, UsageError)
