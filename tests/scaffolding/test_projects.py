"""A project is planned before it is made, and nothing of the user's is overwritten."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evalkit as ek
from evalkit import shipped
from evalkit.errors import UsageError
from evalkit.scaffolding import KINDS, make_project, plan_project


def files_in(folder: Path) -> dict[str, bytes]:
    """Read every file of a folder."""
    found = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@pytest.mark.parametrize("kind", KINDS)
def test_project_holds_what_it_planned(kind: str, tmp_path: Path) -> None:
    """Planning writes nothing; making writes the planned files, whole, and no others."""
    folder = tmp_path / "deep" / "shop-bot"
    plan = plan_project(folder, agent=kind)
    assert not folder.exists()
    assert make_project(plan) == tuple(file.path for file in plan.files)
    assert files_in(folder) == {file.path: file.content for file in plan.files}
    assert {
        "README.md", "support_agent.py", "data/suites/shop-bot.yaml", "data/baselines/README.md",
        ".gitignore", "notebooks/pass_rates.ipynb", ".github/workflows/agent-evals.yml",
    } <= set(files_in(folder))  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_no_placeholder_is_left(kind: str) -> None:
    """Every name is filled in, and Python files can be read by Python."""
    for file in plan_project("shop-bot", agent=kind).files:
        text = file.content.decode()
        assert text.endswith("\n"), file.path
        if file.path.endswith(".py"):
            ast.parse(text)
        if file.path.endswith((".md", ".txt")):
            assert "$name" not in text
            assert "$$" not in text


@pytest.mark.parametrize("kind", KINDS)
def test_suite_has_what_a_suite_needs(kind: str, tmp_path: Path) -> None:
    """Four scenarios with tags and replies; among them a ban and a fault."""
    make_project(plan_project(tmp_path / "bot", agent=kind))
    suite = ek.load_suite(tmp_path / "bot/data/suites/bot.yaml")
    assert len(suite) == 4
    assert all(scenario.tags and scenario.expect.reply for scenario in suite)
    assert any(scenario.forbid and scenario.forbid.tools for scenario in suite)
    assert any("fault" in scenario.tags for scenario in suite)


def test_notebooks_are_copies_of_the_shipped_ones(tmp_path: Path) -> None:
    """All of them, byte for byte."""
    make_project(plan_project(tmp_path / "bot"))
    copied = {path.stem: path.read_bytes() for path in (tmp_path / "bot/notebooks").iterdir()}
    assert copied == {
        name: shipped.notebook(name).read_bytes() for name in shipped.names("notebook")
    }


def test_making_it_twice_changes_nothing(tmp_path: Path) -> None:
    """What is there as planned is no conflict."""
    make_project(plan_project(tmp_path / "bot"))
    before = files_in(tmp_path)
    again = plan_project(tmp_path / "bot")
    assert again.paths("there") == tuple(file.path for file in again.files)
    assert make_project(again) == ()
    assert files_in(tmp_path) == before


def test_conflicts_are_all_listed_and_nothing_is_made(tmp_path: Path) -> None:
    """Two files in the way stop everything, and the message names both."""
    (tmp_path / "support_agent.py").write_text("mine\n")
    (tmp_path / "data").write_text("a file where a folder should be\n")
    before = files_in(tmp_path)
    plan = plan_project(tmp_path, name="bot")
    with pytest.raises(UsageError) as error:
        make_project(plan)
    for path in ("support_agent.py", "data/suites/bot.yaml", "data/.gitignore"):
        assert str(tmp_path / path) in str(error.value)
    assert "support_shop.py" not in str(error.value)
    assert "--keep-existing" in str(error.value)
    assert files_in(tmp_path) == before


def test_what_is_missing_is_added_on_request(tmp_path: Path) -> None:
    """With keep_existing, a conflict stays as it is and the rest is made."""
    (tmp_path / "support_agent.py").write_text("mine\n")
    plan = plan_project(tmp_path, name="bot")
    written = make_project(plan, keep_existing=True)
    assert "support_agent.py" not in written
    assert "data/suites/bot.yaml" in written
    assert (tmp_path / "support_agent.py").read_text() == "mine\n"


def test_existing_project_keeps_its_readme_and_gitignore(tmp_path: Path) -> None:
    """The guide takes another name, and what must not be in git is ignored all the same."""
    mine = {"README.md": b"mine\n", ".gitignore": b"*.log\n", "app/main.py": b"pass\n"}
    for path, content in mine.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(content)
    plan = plan_project(tmp_path, name="bot")
    assert plan.guide == "EVALS.md"
    assert plan.paths("yours") == (".gitignore",)
    make_project(plan)
    after = files_in(tmp_path)
    assert mine.items() <= after.items()
    assert b"# bot" in after["EVALS.md"]
    assert b"runs/" in after["data/.gitignore"]


@pytest.mark.parametrize("where", ["nowhere", "elsewhere.py"])
def test_links_are_not_written_through(where: str, tmp_path: Path) -> None:
    """A link in the place of a file is in the way, wherever it leads."""
    outside = tmp_path / "elsewhere.py"
    outside.write_text("mine\n")
    folder = tmp_path / "bot"
    folder.mkdir()
    (folder / "support_agent.py").symlink_to(tmp_path / where)
    plan = plan_project(folder)
    assert plan.paths("conflict") == ("support_agent.py",)
    make_project(plan, keep_existing=True)
    assert outside.read_text() == "mine\n"
    assert not (tmp_path / "nowhere").exists()


def test_file_that_appears_after_planning_is_safe(tmp_path: Path) -> None:
    """It is not overwritten, and what was made before it is taken back."""
    plan = plan_project(tmp_path, name="bot")
    (tmp_path / "requirements-evals.txt").write_text("mine\n")
    with pytest.raises(UsageError, match=r"requirements-evals\.txt.*nothing was made"):
        make_project(plan)
    assert files_in(tmp_path) == {"requirements-evals.txt": b"mine\n"}


def test_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    """A folder below a file is none, and the message names the place."""
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write .*file"):
        make_project(plan_project(tmp_path / "file" / "bot"))


@pytest.mark.parametrize(
    "name",
    ["Shop", "shop bot", "-shop", "shop-", "a--b", "1st", "", "../x", "a/b", "x" * 51, "true",
     "null", "söp", "a\nb", "$name", "x.yaml"],
)  # fmt: skip
def test_odd_names_are_refused(name: str) -> None:
    """Only what is safe in a file name, in YAML and in a shell is a name."""
    with pytest.raises(UsageError, match="is no name for a project"):
        plan_project("bot", name=name)


@pytest.mark.parametrize(
    ("folder", "name"),
    [("Shop Bot", "shop-bot"), ("2nd_bot.v3", "nd-bot-v3"), ("a--b", "a-b"), ("x" * 60, "x" * 50)],
)
def test_name_is_made_of_the_folder(folder: str, name: str) -> None:
    """A folder may be called anything."""
    assert plan_project(folder).name == name


@pytest.mark.parametrize("folder", ["日本", "123", "null", "..."])
def test_folder_that_makes_no_name_asks_for_one(folder: str) -> None:
    """The message says how to give one."""
    with pytest.raises(UsageError, match="--name my-agent"):
        plan_project(folder)
    assert plan_project(folder, name="bot").name == "bot"


@settings(deadline=None, max_examples=50)
@given(st.text(min_size=1, max_size=80))
def test_suggested_names_are_names(text: str) -> None:
    """What the message suggests is accepted, whatever was typed."""
    try:
        plan_project("bot", name=text)
    except UsageError as error:
        suggested = str(error).rpartition("; ")[2]
        if suggested.endswith(" would do"):
            plan_project("bot", name=suggested.removesuffix(" would do").strip("'"))


def test_unknown_kind_is_suggested() -> None:
    """A misspelt kind gets the right one."""
    with pytest.raises(UsageError, match="Did you mean 'langgraph'"):
        plan_project("bot", agent="langgraf")


def test_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    """The message says what is wrong with it."""
    (tmp_path / "bot").write_text("")
    with pytest.raises(UsageError, match="this is a file"):
        plan_project(tmp_path / "bot")
