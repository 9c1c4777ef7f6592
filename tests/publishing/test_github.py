"""The step summary, rendered by GitHub's own Markdown parser."""

from __future__ import annotations

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import cmarkgfm
import pytest
from cmarkgfm.cmark import Options
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from evalkit.publishing import github_summary
from evalkit.results import Run, TrialRecord

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
ALLOWED = {
    *("h2", "h3", "p", "ul", "li", "table", "tr", "th", "td"),
    *("code", "br", "sub", "details", "summary", "pre"),
}


class Read(HTMLParser):
    """What a reader of the rendered page meets."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.outside_code = ""
        self._depth = 0
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert not attrs, (tag, attrs)
        self.tags.append(tag)
        self._depth += tag == "code"

    def handle_endtag(self, tag: str) -> None:
        self._depth -= tag == "code"

    def handle_data(self, data: str) -> None:
        self.text += data
        if not self._depth:
            self.outside_code += data


def rendered(markdown: str) -> Read:
    """Render as GitHub does, with HTML let through: its filters come later."""
    markdown = markdown.encode("utf-8", "backslashreplace").decode()
    return Read(
        cmarkgfm.github_flavored_markdown_to_html(markdown, options=Options.CMARK_OPT_UNSAFE)
    )


def test_verdict_is_first_failures_next(some_run: Run, decided: Any) -> None:
    """A reader sees the decision, why, what failed, and the rates, in this order."""
    verdict = decided("FAIL", ("the rate is too low",), 1)
    text = rendered(github_summary(some_run, verdict=verdict)).text
    order = ["gate: FAIL", "the rate is too low", "bad", "lost", "pass rate", "my:agent"]
    assert [text.index(word) for word in order] == sorted(text.index(word) for word in order)


def test_rates_come_with_intervals_and_what_is_missing(some_run: Run) -> None:
    """A bare percentage says too little."""
    text = rendered(github_summary(some_run)).text
    assert "44.4% (95% " in text
    assert "with the incomplete as failed or passed" in text
    assert "2 of 4 scenarios failed, 1 could not be measured" in text


def test_passed_run_says_so(run_of: Callable[..., Run], record: Callable[..., TrialRecord]) -> None:
    """There is no table of failures."""
    read = rendered(github_summary(run_of(record("a", status="passed"))))
    assert "evalkit: PASSED" in read.text
    assert "not passed" not in read.text


HOSTILE = {
    "html": '<img src=x onerror="alert(1)"><script>alert(1)</script>',
    "link": "[click](https://evil.test) https://evil.test www.evil.test a@evil.test",
    "picture": "![x](https://evil.test/x.png)",
    "mention": "@octocat and @org/team, #1, GH-1",
    "table": "a | b\n|---|---|\n| c | d |",
    "blank-lines": "a\n\n# Title\n\n[x](https://evil.test)\n\n</td></tr></table>",
    "ends": "</code></pre></details></td></tr></table>\n\n<b>x",
    "fences": "```\n\n~~~\n\n    code\n\n> quote",
    "comment": "<!-- \n\n --> <![CDATA[ \n\n ]]> <? \n\n ?>",
    "entities": "&lt;img&gt; &#64;octocat",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("n_trials", [1, 2])
def test_agents_text_is_text(
    run_of: Callable[..., Run], record: Callable[..., TrialRecord], name: str, n_trials: int
) -> None:
    """No markup, link, picture or mention comes of it, and the table keeps its shape."""
    plain = run_of(*(record("a", i, reason="x\ny") for i in range(n_trials)))
    hostile = run_of(*(record("a", i, reason=f"x\n{HOSTILE[name]}") for i in range(n_trials)))
    read = rendered(github_summary(hostile))
    assert read.tags == rendered(github_summary(plain)).tags
    assert HOSTILE[name].split("\n")[0] in read.text
    assert "evil" not in read.outside_code
    assert "@" not in read.outside_code


@given(reason=ANY_TEXT, scenario=ANY_TEXT, suite=ANY_TEXT)
@example(reason="a\n\n<b>", scenario="@me", suite="\n\n# x")
@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_any_text_gives_only_our_own_markup(
    run_of: Callable[..., Run],
    record: Callable[..., TrialRecord],
    reason: str,
    scenario: str,
    suite: str,
) -> None:
    """Whatever names and reasons hold."""
    read = rendered(github_summary(run_of(record(scenario, reason=reason), suite=suite)))
    assert set(read.tags) <= ALLOWED
    assert "@" not in read.outside_code


@pytest.mark.parametrize("n_scenarios", [90, 400])
def test_summary_stays_within_githubs_limit(
    run_of: Callable[..., Run], record: Callable[..., TrialRecord], n_scenarios: int
) -> None:
    """Of more than 1 MiB GitHub shows nothing: fewer scenarios are shown, the rest counted."""
    reason = "x\n" + "🛫'" * 5_000
    run = run_of(*(record(f"s{i}", reason=reason) for i in range(n_scenarios)))
    text = github_summary(run)
    assert len(text.encode()) < 1024 * 1024
    assert "more scenarios that are not passed" in text
    assert f"{n_scenarios} of {n_scenarios} scenarios failed" in text


def test_no_room_leaves_the_verdict(some_run: Run) -> None:
    """The headline is what must not be lost."""
    assert github_summary(some_run, max_bytes=300) == "<h2>❌ evalkit: FAILED</h2>\n"


def test_no_run_is_an_error() -> None:
    """A summary of nothing looks like a pass."""
    with pytest.raises(ValueError, match="at least one"):
        github_summary([])
