"""From file to suite: what is refused, where and in which words."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import pytest

from evalkit.errors import SuiteError
from evalkit.suite import Suite, parse_suite, suite_from_data

CHECKED = "expect: {reply: {contains: x}}"


def load(folder: Path, text: str) -> Suite:
    """Write and load a suite."""
    path = folder / "s.yaml"
    path.write_text(text)
    return parse_suite(path)


def problems(folder: Path, text: str) -> list[str]:
    """Load a suite that is wrong and give what is said about it."""
    with pytest.raises(SuiteError) as caught:
        load(folder, text)
    return [str(one).removeprefix(f"{folder}/") for one in caught.value.problems]


def scenario(body: str) -> str:
    """Write a suite of one scenario whose keys begin on line 4."""
    lines = body.strip("\n").splitlines()
    return "suite: s\nscenarios:\n  - id: a\n" + "".join(f"    {line}\n" for line in lines)


SCENARIO_CASES = [
    ("input: hi\nexpect: {errors: none}", "errors: must be a whole number, or a mapping such as"),
    ("input: hi\nexpect: {path: off}", "path: must be a mapping of limits, or false, not"),
    ("input: hi\nmodel: hello\n" + CHECKED, "model: must be a list of steps, or scripts by name"),
    (
        "input: hi\nforbid: {tools: [{b: {x: {$ref: w.result.id}}}]}",
        "5: scenarios[0].forbid.tools[0].b.x.$ref: a ban cannot refer to a result",
    ),
    ("inputt: hi\n" + CHECKED, "4: scenarios[0].inputt: unknown key. Did you mean `input`?"),
    (CHECKED, "3: scenarios[0]: nothing happens: write `input`"),
    ("input: hi\nturns: [{user: x}]\n" + CHECKED, "4: scenarios[0].input: `input` and `turns`"),
    (
        f"turns: [{{user: x}}]\nmodel: [{{text: y}}]\n{CHECKED}",
        "5: scenarios[0].model: with `turns`",
    ),
    ("input: hi", "3: scenarios[0]: nothing is checked"),
    ("input: hi\nexpect: {}", "5: scenarios[0].expect: is empty, so it checks nothing"),
    ("input: hi\nforbid: {}", "5: scenarios[0].forbid: is empty"),
    ("input: hi\nexpect: null", "5: scenarios[0].expect: null means nothing here"),
    ("input: hi\nexpect: {path: null}", "5: scenarios[0].expect.path: null means nothing"),
    ("input: hi\nexpect: {http: [{POST /x: {json: null}}]}", "5: scenarios[0].expect.http[0]"),
    ("input: hi\nexpect: {reply: {}}", "5: scenarios[0].expect.reply: is empty"),
    ("input: hi\nexpect: {reply: {contains: []}}", "5: scenarios[0].expect.reply.contains: is an"),
    ('input: hi\nexpect: {reply: {contains: ""}}', "5: scenarios[0].expect.reply.contains: holds"),
    ("input: hi\nexpect: {reply: booked}", "5: scenarios[0].expect.reply: must be a mapping"),
    ("input: hi\nexpect: {reply: {contians: x}}", "Did you mean `contains`?"),
    (
        'input: hi\nexpect: {reply: {regex: "["}}',
        "5: scenarios[0].expect.reply.regex: is no regular",
    ),
    ("input: 5\n" + CHECKED, '4: scenarios[0].input: must be text, not 5: quote it, "5"'),
    (
        "input: hi\nexpect:\n  tools:\n    - book: {d: {$regx: 1}}",
        "7: scenarios[0].expect.tools[0].book.d.$regx: unknown matcher",
    ),
    (
        "input: hi\nexpect: {tools: [{tool: b, after: [w]}]}",
        "tools[0].after[0]: no expected call has the id `w`",
    ),
    (
        "input: hi\nexpect: {tools: [{tool: b, id: weather}, {tool: c, after: wether}]}",
        "tools[1].after: no expected call has the id `wether`. Did you mean `weather`?",
    ),
    (
        "input: hi\nexpect: {tools: [{tool: b, id: b, after: c}, {tool: c, id: c, after: b}]}",
        "runs in a circle",
    ),
    ("input: hi\nexpect: {tools: [{tool: b, id: b, after: b}]}", "runs in a circle: b after b"),
    (
        "input: hi\nexpect: {tools: [{tool: b, id: w}, {tool: c, id: w}]}",
        "`w` is the id of 2 calls",
    ),
    (
        "input: hi\nexpect: {tools: [{b: {x: {$ref: w.result.id}}}]}",
        "b.x.$ref: no expected call has the id `w`",
    ),
    (
        "input: hi\nexpect: {tools: [{b: {x: {$ref: {call: w}}}}]}",
        "no expected call has the id `w`",
    ),
    (
        "input: hi\nexpect: {tools: [{tool: b, times: {min: 3, max: 1}}]}",
        "tools[0].times.max: max (1) must be at least min (3)",
    ),
    ("input: hi\nexpect: {tools: [{tool: b, times: 0}]}", "write it under `forbid`"),
    (
        "input: hi\nexpect: {tools: [{tool: b, status: okay}]}",
        'must be ok, error, denied, timeout or any, not "okay"',
    ),
    ("input: hi\nexpect: {tools: [{book: {}, times: 2}]}", "write the long form, {tool: book"),
    (
        "input: hi\nexpect: {tools: {calls: [b], extra_calls: none}}",
        "must be free, forbid or {allow: [tools]}",
    ),
    ("input: hi\nexpect: {tools: {order: sorted, calls: [b]}}", "must be any, in_order or exact"),
    (
        "input: hi\nexpect: {tools: {order: any}}",
        "5: scenarios[0].expect.tools: `calls` is missing",
    ),
    ("input: hi\nexpect: {tools: [{tool: b, turn: 2}]}", "tools[0].turn: there is no turn 2"),
    ("turns: [{user: x, expect: {tools: [{tool: b, turn: 1}]}}]", "remove `turn`"),
    (
        "input: hi\nexpect: {tools: [book]}\nforbid: {tools: [book]}",
        "5: scenarios[0].expect.tools[0]: `book` is expected here and forbidden",
    ),
    (
        "input: hi\nexpect: {tools: [{book: {a: 1, b: 2}}]}\nforbid: {tools: {book: {a: 1}}}",
        "`book` is expected here and forbidden",
    ),
    (
        "turns: [{user: x, expect: {tools: [book]}}]\nforbid: {tools: [book]}",
        "4: scenarios[0].turns[0].expect.tools[0]: `book` is expected",
    ),
    (
        "input: hi\nforbid: {tools: book}\n"
        "expect: {tools: {calls: [a], extra_calls: {allow: [book]}}}",
        "extra_calls.allow[0]: `book` is allowed here and forbidden",
    ),
    (
        "input: hi\nexpect: {reply: {contains: A, not_contains: a}}",
        "'A' is expected in the reply and forbidden",
    ),
    (
        "input: hi\nexpect: {reply: {contains: a}}\nforbid: {reply: A}",
        "'a' is expected in the reply and forbidden",
    ),
    ("input: hi\nexpect: {replies: 0, reply: {contains: a}}", "no reply is expected"),
    (
        "input: hi\nmin_pass_rate: 1.5\n" + CHECKED,
        "5: scenarios[0].min_pass_rate: must be at most 1, not 1.5",
    ),
    (
        "input: hi\nmust_pass: yes\n" + CHECKED,
        '5: scenarios[0].must_pass: must be true or false, not "yes"',
    ),
    (
        "input: hi\ndeadline: soon\n" + CHECKED,
        "5: scenarios[0].deadline: must be a duration such as 20s",
    ),
    ("input: hi\ndeadline: 0\n" + CHECKED, "must be longer than 0"),
    ("input: hi\ndeadline: true\n" + CHECKED, "must be a duration"),
    ("input: hi\nclock: 2026-01-05\n" + CHECKED, "must be a date and time such as"),
    (
        "input: hi\nclock: 2026-01-05T09:00:00\n" + CHECKED,
        "needs a time zone: write 2026-01-05T09:00:00Z",
    ),
    (
        "input: hi\nenv: {PORT: 8080}\n" + CHECKED,
        '5: scenarios[0].env.PORT: must be text, not 8080: quote it, "8080"',
    ),
    ("input: hi\nenv: {A-B: x}\n" + CHECKED, "letters, digits and `_` only"),
    ("input: hi\nhash: abc\n" + CHECKED, "5: scenarios[0].hash: unknown key"),
    (
        "input: hi\ncanaries: [{name: c, value: short_secret}]",
        "5: scenarios[0].canaries[0].value: is too short to search for: it has 11",
    ),
    (
        "input: hi\ncanaries: [{name: c, value: responsibilities}]",
        "5: scenarios[0].canaries[0].value: reads like common words",
    ),
    (
        "input: hi\ncanaries: [{name: address-canary-7q2m, value: ADDRESS_CANARY_7Q2M}]",
        "5: scenarios[0].canaries[0]: its name says its value",
    ),
    (
        "input: hi\ncanaries: [{name: c, value: '0000-0000-0000-0001'}]",
        "5: scenarios[0].canaries[0].value: repeats the same few characters",
    ),
    (
        "input: hi\ncanaries: [{name: c, value: canary@example.test, allow: [logs]}]",
        "Did you mean `log`?",
    ),
    (
        "input: hi\ncanaries:\n"
        "  - {name: c, value: canary@example.test}\n  - {name: c, value: CANARY_CANARY_2BCD}",
        "'c' is given twice",
    ),
    (
        "input: hi\nfixtures: {database: {a.db: no.sql}}\n" + CHECKED,
        "5: scenarios[0].fixtures.database.a.db: no such file in the suite's folder: 'no.sql'",
    ),
    ("input: hi\nfixtures: {files: {a: ../s.yaml}}\n" + CHECKED, "must be a relative path"),
    ("input: hi\nfixtures: {files: {a: /etc/passwd}}\n" + CHECKED, "must be a relative path"),
    ("input: hi\nfixtures: {files: {../a: s.yaml}}\n" + CHECKED, "must be a relative path"),
    ("input: hi\nfixtures: {files: {a: link}}\n" + CHECKED, "leads out of the suite's folder"),
    (
        "input: hi\nfixtures: {files: {a: linked/passwd}}\n" + CHECKED,
        "leads out of the suite's folder",
    ),
    ("input: hi\nfixtures: {files: {a: here.tx}}\n" + CHECKED, "Did you mean `here.txt`?"),
    ("input: hi\nfixtures: {http: [{get x: {}}]}\n" + CHECKED, "must be a method and an address"),
    (
        "input: hi\nfixtures: {http: [{GET /x: {json: 1, text: y}}]}\n" + CHECKED,
        "only one of json, text, body_file and fault",
    ),
    (
        "input: hi\nfixtures: {http: [{GET /x: {status: 99}}]}\n" + CHECKED,
        "http[0].GET /x.status: must be at least 100",
    ),
    (
        "input: hi\nfixtures: {files: {a: s.yaml}, database: {a: s.yaml}}\n" + CHECKED,
        "is also the name of a database",
    ),
    ("input: hi\nexpect: {database: [{query: select 1}]}", "has a query but expects nothing"),
    ("input: hi\nexpect: {database: [{query: select 1, rows: [[1]]}]}", "add `database`"),
    ("input: hi\nexpect: {files: {a: {exists: false, contains: x}}}", "a file that must not exist"),
    ("input: hi\nquality: {rubrics: [a], skip: b}", "write either `rubrics`"),
    ("input: hi\nquality: {rubrics: []}", "write either `rubrics`"),
    ("input: hi\nbudget: {usd: -1}\n" + CHECKED, "must be at least 0"),
    ("turns: []\n" + CHECKED, "4: scenarios[0].turns: is empty"),
    ("turns: [{advance: 2d}]\n" + CHECKED, "nothing reaches the agent"),
    (
        "turns: [{usr: x}]\n" + CHECKED,
        "4: scenarios[0].turns[0]: a turn is a mapping with one of the keys user",
    ),
    ("turns: [{user: x}, {restart: now}]\n" + CHECKED, "must be kill or graceful"),
    (
        "turns: [{user: x}, {redeliver: 2}]\n" + CHECKED,
        "turns[1].redeliver: turn 2 is no earlier `user` or `deliver` turn: write 1",
    ),
    (
        "input: hi\nmodel: [{txt: a}]\n" + CHECKED,
        "5: scenarios[0].model[0]: a step is a mapping with one of",
    ),
    (
        "input: hi\nmodel: [{fault: overload}]\n" + CHECKED,
        "5: scenarios[0].model[0].fault: must be rate_limited",
    ),
    (
        "input: hi\nmodel: [{text: a, args: {}}]\n" + CHECKED,
        "5: scenarios[0].model[0].args: unknown key",
    ),
    (
        "input: hi\nmodel: {a: [{text: x}], b: [{text: y}]}\n" + CHECKED,
        "the scripts `a` and `b` have no `when`",
    ),
    (
        "input: hi\nmodel: {when: {x: 1}, steps: []}\n" + CHECKED,
        "a script with `when` needs a name",
    ),
    ("input: hi\nmodel: {}\n" + CHECKED, "write [] if the agent calls no model"),
    ("input: hi\ngraders: [{x: {a: 1}, y: 2}]", "write the long form, {name: x"),
    ("input: hi\nvars: {n: 3}\n" + CHECKED, "5: scenarios[0].vars.n: must be text, not 3"),
    (
        "input: hi\nvars: {text: a}\ndeliver: {http: POST /x}\n" + CHECKED,
        "{text} is filled in by `deliver`",
    ),
]


@pytest.mark.parametrize(("body", "words"), SCENARIO_CASES)
def test_scenario_is_refused_with_place_and_reason(tmp_path: Path, body: str, words: str) -> None:
    """What is wrong with a scenario is one problem at its line and key, in a plain sentence."""
    (tmp_path / "here.txt").write_text("x")
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "linked").symlink_to("/etc")
    found = problems(tmp_path, scenario(body))
    assert any(words in one for one in found), found
    assert all(re.match(r"s\.yaml:\d+: ", one) for one in found)
    assert not any(
        "Input should" in one or "Extra inputs" in one or "pydantic" in one for one in found
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a", "s.yaml:1: a suite is a mapping"),
        ("suite: s", "s.yaml:1: `scenarios` is missing"),
        ("scenarios: []", "s.yaml:1: `suite` is missing"),
        ("suite: s\nscenarios: []", "s.yaml:2: scenarios: is empty: a suite needs at least one"),
        ("suite: s\nscenarios: {a: 1}", "s.yaml:2: scenarios: must be a list of scenarios"),
        ("suite: s\nscenarios: [5]", "s.yaml:2: scenarios[0]: a scenario is a mapping"),
        ("suite: a b\nscenarios: []", "s.yaml:1: suite: is also a file name"),
        (
            "suite: s\nagnet: a:b\nscenarios: []",
            "s.yaml:2: agnet: unknown key. Did you mean `agent`?",
        ),
        ("suite: s\nagent: nocolon\nscenarios: []", "s.yaml:2: agent: must be module:name"),
        (
            "suite: s\nagent: {command: [a], http: 'http://x'}\nscenarios: []",
            "s.yaml:2: agent: write",
        ),
        (
            "suite: s\nagent: {http: {port: 80}}\nscenarios: []",
            "write `command` or `serve`, each with `port`",
        ),
        (
            "suite: s\nprices: {m: {input: 1}}\nscenarios: []",
            "s.yaml:2: prices.m: `output` is missing",
        ),
        ("suite: s\nhash: x\nscenarios: []", "s.yaml:2: hash: unknown key"),
        ("suite: s\ndefaults: [1]\nscenarios: []", "s.yaml:2: defaults: must be a mapping"),
        (
            "suite: s\ndefaults:\n  deadlin: 3\nscenarios: []",
            "s.yaml:3: defaults.deadlin: unknown key",
        ),
        ("suite: s\ndefaults: {id: x}\nscenarios: []", "defaults.id: each scenario has its own id"),
        (
            "suite: s\ndefaults: {strict: maybe}\nscenarios: []",
            "defaults.strict: must be true or false",
        ),
    ],
)
def test_suite_is_refused_with_place_and_reason(tmp_path: Path, text: str, words: str) -> None:
    """What is wrong above the scenarios is told in the same way."""
    assert any(one.startswith(words) or words in one for one in problems(tmp_path, text))


@pytest.mark.parametrize(
    "name", ["a/b", "../a", ".hidden", "a b", "", "a\\b", "a.", "é", "x" * 101, "-rf", "a:b"]
)
def test_id_must_be_safe_as_file_name(name: str) -> None:
    """An id becomes part of a file name, so what could be a path or an option is refused."""
    with pytest.raises(SuiteError, match="is also a file name"):
        suite_from_data(one_scenario(id=name))


@pytest.mark.parametrize(("second", "words"), [("a", "earlier scenario"), ("A", "in case only")])
def test_repeated_id_is_refused(tmp_path: Path, second: str, words: str) -> None:
    """Equal ids are refused at the second, also where only a file system finds them equal."""
    one = f"  - {{id: %s, input: x, {CHECKED}}}\n"
    found = problems(tmp_path, f"suite: s\nscenarios:\n{one % 'a'}{one % second}")
    assert len(found) == 1
    assert found[0].startswith("s.yaml:4: scenarios[1].id: ")
    assert words in found[0]


def one_scenario(**keys: Any) -> dict[str, Any]:
    """Give the data of a suite of one scenario."""
    base = {"id": "a", "input": "x", "expect": {"reply": {"contains": "x"}}}
    return {"suite": "s", "scenarios": [base | keys]}


def test_all_problems_come_at_once_in_order_of_lines(tmp_path: Path) -> None:
    """A suite with many faults is told all of them in one go, from top to bottom."""
    body = 'input: 5\ndeadline: soon\nmust_pass: 1\nexpect: {reply: {regex: "("}, toools: []}'
    lines = [int(one.split(":")[1]) for one in problems(tmp_path, scenario(body))]
    assert lines == [4, 5, 6, 7, 7]


def test_problem_in_defaults_is_told_once(tmp_path: Path) -> None:
    """A fault in the defaults is reported where it stands, not once a scenario."""
    one = "  - {id: a%d, input: x, expect: {replies: 1}}\n"
    text = (
        f"suite: s\ndefaults:\n  min_pass_rate: 2\nscenarios:\n{''.join(one % i for i in range(9))}"
    )
    found = problems(tmp_path, text)
    assert len(found) == 1
    assert found[0].startswith("s.yaml:3: defaults.min_pass_rate: ")


def test_contradiction_with_a_default_names_the_place(tmp_path: Path) -> None:
    """A default that contradicts a scenario is a problem of that scenario."""
    text = (
        "suite: s\ndefaults: {forbid: {tools: [book]}}\n"
        "scenarios:\n  - {id: a, input: x, expect: {tools: [book]}}\n"
    )
    assert problems(tmp_path, text) == [
        "s.yaml:4: scenarios[0].expect.tools[0]: "
        "`book` is expected here and forbidden: keep one of the two"
    ]


@pytest.mark.parametrize("value", ["canary@example.test", "PAGE_INJECTION_CANARY_7Q2M"])
def test_shipped_canaries_are_long_enough(value: str) -> None:
    """The canaries of the documentation are accepted."""
    suite_from_data(one_scenario(canaries=[{"name": "c", "value": value}]))


def test_thousand_scenarios_load_in_about_a_second(tmp_path: Path) -> None:
    """Loading stays cheap for large suites."""
    one = (
        "  - id: s{}\n    input: Book it.\n    model:\n      - tool: book\n"
        "        args: {{flight: AA1, date: Friday}}\n      - text: Booked.\n    expect:\n"
        "      tools:\n        - book: {{flight: AA1}}\n      reply: {{contains: booked}}\n"
    )
    text = "suite: s\nscenarios:\n" + "".join(one.format(i) for i in range(1000))
    (tmp_path / "s.yaml").write_text(text)
    start = time.process_time()
    assert len(parse_suite(tmp_path / "s.yaml")) == 1000
    assert time.process_time() - start < 1.3
