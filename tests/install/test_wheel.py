"""What is built holds what it should and nothing else, and works away from a checkout."""

from __future__ import annotations

import re
import tarfile
import tomllib
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

# A fresh environment is filled from the package index while the other worker is busy.
pytestmark = [pytest.mark.install, pytest.mark.timeout(600)]

CHECKOUT = Path(__file__).resolve().parents[2]
RULES = "evalkit.examples.travel_rules"
SHIPPED = {"notebooks": "notebooks", "data/suites": "suites", "data/traces": "traces"}


def tracked(folder: str) -> set[str]:
    """List the files of a folder of the checkout that are nobody's litter."""
    found = (path for path in (CHECKOUT / folder).rglob("*") if path.is_file())
    names = {path.relative_to(CHECKOUT).as_posix() for path in found}
    return {name for name in names if not re.search(r"(^|/)(\.|__pycache__)", name)}


def wheel_names(wheel: Path) -> set[str]:
    """List what a wheel holds."""
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


@pytest.fixture(scope="session")
def wheel(built: Path) -> Path:
    """Give the wheel that was built from the sdist."""
    (path,) = built.glob("*.whl")
    return path


@pytest.fixture(scope="session")
def metadata(wheel: Path) -> Message:
    """Read the wheel's metadata."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return message_from_string(archive.read(name).decode())


# --- what is built ------------------------------------------------------------------------


def test_wheel_holds_the_package_and_its_data_only(wheel: Path) -> None:
    """Every file of the package, the shipped folders under _shipped, the metadata: no more."""
    moved = {
        f"evalkit/_shipped/{inside}/{PurePosixPath(name).relative_to(folder)}"
        for folder, inside in SHIPPED.items()
        for name in tracked(folder)
    }
    names = {name for name in wheel_names(wheel) if ".dist-info/" not in name}
    assert names == tracked("evalkit") | moved
    assert "evalkit/py.typed" in names
    assert "evalkit/_shipped/notebooks/pass_rates.ipynb" in names
    assert any(name.startswith("evalkit/_templates/") for name in names)


def test_wheel_of_the_checkout_is_the_wheel_of_the_sdist(built: Path, wheel: Path) -> None:
    """Whoever builds from a working copy ships no litter either."""
    (direct,) = (built / "direct").glob("*.whl")
    assert wheel_names(direct) == wheel_names(wheel)


def test_sdist_holds_what_its_tests_need(built: Path) -> None:
    """The sdist has the sources, the tests and what they read; nothing hidden, no runs."""
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tops = {name.split("/")[0] for name in names}
    assert tops == {
        "evalkit", "notebooks", "data", "tests", "conftest.py", "pyproject.toml", "PKG-INFO",
        "README.md", "GUIDE.md", "CHANGELOG.md", "LICENSE", "Makefile", "constraints.txt",
        ".gitignore",
    }  # fmt: skip
    assert tracked("tests") <= names
    assert not [name for name in names if re.search(r"/\.|\.pyc$|^data/runs", name)]


def test_metadata_is_what_people_see_before_they_install(metadata: Message) -> None:
    """Name, version, license, README and supported Pythons are told."""
    told = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert (metadata["Name"], metadata["Version"]) == ("evalkit-lab", told["version"])
    assert metadata["License-Expression"] == "MIT"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload() == (CHECKOUT / "README.md").read_text()
    assert "Typing :: Typed" in (metadata.get_all("Classifier") or [])


def test_report_packages_are_an_extra(metadata: Message) -> None:
    """What reports need is asked for by the extra alone, and by all that includes it."""
    needs = metadata.get_all("Requires-Dist") or []
    for package in ("matplotlib", "papermill", "nbconvert", "ipykernel"):
        extras = {
            found[1]
            for need in needs
            if need.startswith(package)
            for found in [re.search(r"extra == '(\w+)'", need)]
            if found
        }
        assert extras == {"report", "lab", "all", "dev"}
        assert not [need for need in needs if need.startswith(package) and "extra" not in need]


# --- before any extra is installed -------------------------------------------------


def test_every_module_imports_without_extras(installed: Any) -> None:
    """The core's own requirements are enough to import all of the package, without a warning."""
    assert installed.before["modules"] == (0, "", "")


@pytest.mark.parametrize(("command", "extra"), [("report", "report"), ("demo", "examples")])
def test_missing_extra_is_named(installed: Any, command: str, extra: str) -> None:
    """Without the extra, its command says in one line what to install, and exits with 3."""
    done = installed.before[command]
    assert done.code == 3
    assert f'pip install "evalkit-lab[{extra}]"' in done.err
    assert "Traceback" not in done.err


# --- installed, in an empty folder ----------------------------------------------------------


def test_command_is_installed(installed: Any, tmp_path: Path) -> None:
    """`evalkit` lists its commands and tells its version."""
    told = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    code, out, err = installed.evalkit("--help", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert re.search(r"^  run +Run an agent", out, re.MULTILINE)
    assert installed.evalkit("--version", cwd=tmp_path) == (
        0,
        f"evalkit, version {told['version']}\n",
        "",
    )
    assert list(tmp_path.iterdir()) == []


def test_readme_without_a_checkout(installed: Any, tmp_path: Path) -> None:
    """The README's line copies the shipped data; from there its suite runs and is reported."""
    (copy,) = re.findall(r"^\$ (cp -r .*)$", (CHECKOUT / "README.md").read_text(), re.MULTILINE)
    assert installed.shell(copy, cwd=tmp_path) == (0, "", "")
    assert (tmp_path / "data/traces/travel_good.jsonl").is_file()
    words = ("run", "data/suites/travel.yaml", "--lane", "live", "--agent", f"{RULES}:agent")
    code, out, err = installed.evalkit(*words, cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "PASSED: 5 passed, 0 failed, 0 incomplete of 5 trials" in out
    code, out, err = installed.evalkit("report", "pass_rates", "--run", "data/runs", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "Passed: all 5 trials passed" in (tmp_path / out.strip()).read_text()


def test_shipped_files_are_those_of_the_wheel(installed: Any, tmp_path: Path) -> None:
    """Away from a checkout, what is shipped lies inside the package."""
    find = "from evalkit import shipped; print(shipped.notebook('pass_rates'), end='')"
    code, notebook, err = installed.python("-c", find, cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "/site-packages/evalkit/_shipped/notebooks/" in notebook


def test_demo_renders_its_report(installed: Any, tmp_path: Path) -> None:
    """The demonstration needs the wheel and an empty folder, and leaves data/runs and reports."""
    code, out, err = installed.python("-m", "evalkit.examples.demo", cwd=tmp_path)
    assert (code, err) == (0, "")
    reports = list((tmp_path / "reports").iterdir())
    assert len(reports) == 2
    for report in reports:
        assert f"reports/{report.name}" in out
        assert "<title>Pass rates: " in report.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data", "reports"]
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["runs"]
