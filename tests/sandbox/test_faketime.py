"""Programs are given a time where that can be done, and it is said where it cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evalkit.sandbox import faketime

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")


@pytest.fixture
def library() -> str:
    """Find libfaketime; without it these tests say nothing."""
    found, problem, advice = faketime.plan_faking()
    if not found and os.environ.get("EVALKIT_REQUIRE_ALL") == "1":
        pytest.fail(f"EVALKIT_REQUIRE_ALL=1, but {problem}: {advice}")
    if not found:
        pytest.skip(problem)
    return found


def test_program_sees_what_is_shown_while_it_runs(library: str, tmp_path: Path) -> None:
    """A program that runs already sees each new time, with fractions of a second."""
    time = faketime.ProgramTime(library, str(tmp_path))
    time.show(1_000_000_000.25)
    code = "import time\nwhile input():\n  print(time.time(), flush=True)"
    program = [sys.executable, "-I", "-S", "-c", code]
    pipe = subprocess.PIPE
    with subprocess.Popen(program, env=time.variables, stdin=pipe, stdout=pipe, text=True) as asked:
        assert asked.stdin is not None
        assert asked.stdout is not None
        for moment in (1_000_000_000.25, 1_000_000_001.25, 4_000_000_000.0):
            time.show(moment)
            print("x", file=asked.stdin, flush=True)
            assert float(asked.stdout.readline()) == moment
        print(file=asked.stdin, flush=True)


def test_library_is_found_by_its_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It is used where it is installed; what is no such library does not work, and is named."""
    monkeypatch.setattr(faketime, "LIBRARIES", (str(tmp_path / "*" / "lib.so"),))
    monkeypatch.setattr(faketime, "find_spec", lambda _: None)
    assert faketime.find_faketime() == ""
    missing = faketime.plan_faking()
    assert (missing.library, missing.problem) == ("", "libfaketime is not installed")
    assert "apt install libfaketime" in missing.advice
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "lib.so").write_bytes(b"no library")
    assert faketime.find_faketime() == str(tmp_path / "x" / "lib.so")
    broken = faketime.plan_faking()
    assert broken.library == ""
    assert "does not work here" in broken.problem


def test_package_is_found(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The package of that name is as good as the system's, wherever its file lies in it."""
    monkeypatch.setattr(faketime, "LIBRARIES", ())
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "libfaketime" / "vendor" / "src" / "libfaketime.so.1"
    file.parent.mkdir(parents=True)
    file.touch()
    (tmp_path / "libfaketime" / "__init__.py").touch()
    assert faketime.find_faketime() == str(file)


def test_script_is_as_good_as_what_runs_it(tmp_path: Path) -> None:
    """The first line of a script leads to a program, also by way of ``env``."""
    for name, line in {"direct": sys.executable, "env": "/usr/bin/env -S python3 -u"}.items():
        script = tmp_path / name
        script.write_text(f"#!{line}\nprint()\n")
        assert faketime.find_obstacle(str(script), sys.executable) == ""


def elf(*, loader: bytes, more: bytes = b"") -> bytes:
    """Write the head of a program for this machine's kind of processor, and its loader's name."""
    head = bytearray(Path(sys.executable).resolve().read_bytes()[:64])
    size = len(loader)
    head[32:40] = (64).to_bytes(8, "little")
    head[54:58] = (56).to_bytes(2, "little") + (1 if loader else 0).to_bytes(2, "little")
    entry = (3).to_bytes(4, "little") + bytes(4) + (120).to_bytes(8, "little")
    entry += bytes(16) + size.to_bytes(8, "little") + bytes(16)
    return bytes(head) + entry + loader + more


@pytest.mark.skipif(sys.byteorder != "little" or sys.maxsize < 2**32, reason="other programs here")
@pytest.mark.parametrize(
    ("content", "what"),
    [
        (elf(loader=b"/lib64/ld-linux-x86-64.so.2\0"), ""),
        (elf(loader=b""), "is linked statically"),
        (elf(loader=b"/lib/ld-musl-x86_64.so.1\0"), "another C library"),
        (elf(loader=b"/lib64/ld.so\0", more=b"\xff Go buildinf:"), "is written in Go"),
        (b"\x7fELF\x01\x01" + bytes(100), "for another processor"),
    ],
    ids=["dynamic", "static", "musl", "go", "processor"],
)
def test_program_that_cannot_be_reached_is_named(content: bytes, what: str, tmp_path: Path) -> None:
    """What a file shows of how it finds the time is looked at, before anything runs."""
    program = tmp_path / "program"
    program.write_bytes(content)
    found = faketime.find_obstacle(str(program), str(Path(sys.executable).resolve()))
    assert (what in found) if what else (found == "")


def test_program_of_another_user_is_named(tmp_path: Path) -> None:
    """The loader preloads nothing into a program that changes the user."""
    program = tmp_path / "program"
    shutil.copy(Path(sys.executable).resolve(), program)
    program.chmod(0o4755)
    assert "runs as another user" in faketime.find_obstacle(str(program), sys.executable)


def test_file_that_cannot_be_read_is_no_pass(tmp_path: Path) -> None:
    """Who knows nothing of a program does not say that it sees the scenario's clock."""
    assert "cannot be read" in faketime.find_obstacle(str(tmp_path / "gone"), sys.executable)
