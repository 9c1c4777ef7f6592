"""How an agent is named, found, hashed and sent to another process."""

from __future__ import annotations

import functools
import pickle
import socket
import sys
import textwrap
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from evalkit.agents import AgentRef, import_agent, refer_to
from evalkit.agents.reference import code_hash
from evalkit.errors import AgentError

Write = Callable[..., Path]


@pytest.fixture(autouse=True)
def own_imports() -> Iterator[None]:
    """Give path and modules back as they were."""
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a Python file below a folder; give the folder."""

    def write(folder: str, name: str, code: str) -> Path:
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(code))
        return tmp_path / folder

    return write


def test_an_agent_is_found_in_the_suites_folder_first(write: Write) -> None:
    """The suite's own agent.py wins over one in the working directory."""
    suite = write("suite", "my_agent.py", "def agent(text): return 'suite'")
    cwd = write("cwd", "my_agent.py", "def agent(text): return 'cwd'")
    path = (str(suite), str(cwd))
    assert refer_to("my_agent:agent", path=path).load()("x") == "suite"


def test_an_agent_is_found_in_the_working_directory_next(write: Write) -> None:
    """Without one in the suite's folder, the working directory's is taken."""
    suite = write("suite", "other.py", "")
    cwd = write("cwd", "my_agent.py", "def agent(text): return 'cwd'")
    assert refer_to("my_agent:agent", path=(str(suite), str(cwd))).load()("x") == "cwd"


def test_two_suites_may_each_have_an_agent_of_one_name(write: Write) -> None:
    """Runs after each other in one process get their own agent, in whichever order."""
    folders = [str(write(n, "agent.py", f"def agent(text): return {n!r}")) for n in ("a", "b")]
    said, hashes = [], set()
    for folder in (*folders, *folders):
        reference = refer_to("agent:agent", path=(folder,))
        said.append(reference.load()("x"))
        hashes.add(reference.hash)
    assert said == ["a", "b", "a", "b"]
    assert len(hashes) == 2


def test_an_attribute_of_an_object_can_be_named(write: Write) -> None:
    """A method of an object in a module is an agent like any other."""
    folder = write(
        "s", "shop.py", "class Desk:\n  def answer(self, text): return 'hi'\ndesk = Desk()\n"
    )
    assert refer_to("shop:desk.answer", path=(str(folder),)).load()("x") == "hi"


@pytest.mark.parametrize("reference", ["", "module", "module:", ":name", ":"])
def test_a_reference_has_two_parts(reference: str) -> None:
    """The error says how to write it."""
    with pytest.raises(AgentError, match="write it as 'module:name'"):
        refer_to(reference)


@pytest.mark.parametrize(
    ("code", "name", "message"),
    [
        (
            "def book_agent(text): ...",
            "bad:boook_agent",
            "no 'boook_agent' there; did you mean 'book_agent'",
        ),
        ("def alpha(text): ...", "bad:zzz", "no 'zzz' there; it has: alpha"),
        ("agent = 3", "bad:agent", "3 is no agent"),
        (
            "import nothing_like_it",
            "bad:agent",
            "importing it failed: No module named 'nothing_like_it'",
        ),
        ("1 / 0", "bad:agent", r"importing it raised ZeroDivisionError"),
        ("raise SystemExit(3)", "bad:agent", r"importing it raised SystemExit\(3\)"),
        ("def x(:", "bad:agent", "importing it raised SyntaxError"),
        ("", "bad.inner:agent", "no module 'bad.inner'"),
    ],
    ids=["near", "far", "no-agent", "missing-import", "raises", "exits", "syntax", "no-package"],
)
def test_an_agent_that_cannot_be_imported_says_why(
    write: Write, code: str, name: str, message: str
) -> None:
    """Each way to fail has a sentence of its own, with the reference in it."""
    folder = write("s", "bad.py", code)
    with pytest.raises(AgentError, match=message) as caught:
        refer_to(name, path=(str(folder),)).load()
    assert name in str(caught.value) or "is no agent" in str(caught.value)


def test_a_missing_module_says_where_it_was_looked_for() -> None:
    """Not found is told apart from found and broken."""
    with pytest.raises(AgentError, match="no module 'nowhere'; it is looked for in the suite's"):
        import_agent("nowhere.deep:agent")


def load_elsewhere(reference: AgentRef) -> Any:
    """Travel as a worker's agent does."""
    return pickle.loads(pickle.dumps(reference)).load()


def test_a_closure_travels() -> None:
    """An agent made in a notebook cell comes along with what it captured."""
    prefix = "hi "

    def agent(text: str) -> str:
        return prefix + text

    reference = refer_to(agent)
    assert reference.description.endswith("agent")
    assert load_elsewhere(reference)("you") == "hi you"


class Holder:
    """An agent that keeps what cannot be sent."""

    def __init__(self) -> None:
        self.name = "fine"
        self.guard = threading.Lock()

    def reply(self, text: str) -> str:
        return text


def test_what_cannot_be_pickled_is_named() -> None:
    """The error names the variable, and the ways out."""
    lock = threading.Lock()
    fine = 3

    def agent(text: str) -> str:
        with lock:
            return text * fine

    with socket.socket() as line:

        def talks(text: str) -> str:
            return f"{line} {fine}"

        for captured, name in ((agent, "lock"), (talks, "line"), (Holder(), "guard")):
            with pytest.raises(
                AgentError, match=f"its variable '{name}' cannot be pickled"
            ) as caught:
                refer_to(captured)
            for way_out in ("zero-argument factory", "'module:name'", "isolation='none'"):
                assert way_out in str(caught.value)


def test_an_agent_that_cannot_be_rebuilt_is_an_agent_error() -> None:
    """Bytes that unpickle nowhere say what to do instead."""
    with pytest.raises(AgentError, match=r"cannot be rebuilt .* move it into a module"):
        AgentRef("agent", (), b"not a pickle").load()


def test_what_is_no_agent_is_refused_at_once() -> None:
    """A mistake in the call is told before any process starts."""
    with pytest.raises(AgentError, match="3 is no agent"):
        refer_to(3)


def test_hash_follows_the_package_and_nothing_else(write: Write) -> None:
    """Any Python file of the agent's package counts, also below and above; no other file does."""
    files = ("__init__.py", "tools.py", "agents/__init__.py", "agents/deep/__init__.py")
    for name in files:
        folder = write("s", f"pack/{name}", "")
    write("s", "pack/agents/deep/main.py", "def agent(text): return text")
    write("s", "beside.py", "")
    write("s", "pack/notes.txt", "")

    def now() -> str:
        return refer_to("pack.agents.deep.main:agent", path=(str(folder),)).hash

    before = now()
    write("s", "beside.py", "changed = 1")
    write("s", "pack/notes.txt", "changed")
    assert now() == before
    for name in files:
        write("s", f"pack/{name}", "changed = 1")
        assert now() != before
        write("s", f"pack/{name}", "")
        assert now() == before
    write("s", "pack/new.py", "")
    assert now() != before


def test_hash_of_a_lone_module_is_its_own(write: Write) -> None:
    """An agent.py without a package is one file."""
    folder = write("s", "lone.py", "def agent(text): return text")
    before = refer_to("lone:agent", path=(str(folder),)).hash
    write("s", "other.py", "x = 1")
    assert refer_to("lone:agent", path=(str(folder),)).hash == before
    write("s", "lone.py", "def agent(text): return text + '!'")
    assert refer_to("lone:agent", path=(str(folder),)).hash != before


def test_hash_of_a_reference_covers_the_module_that_it_names(write: Write) -> None:
    """An object of a library's class is not hashed as that library."""
    code = "import functools\ndef talk(x, text): return x\nagent = functools.partial(talk, 1)\n"
    folder = write("s", "lone2.py", code)
    before = refer_to("lone2:agent", path=(str(folder),)).hash
    write("s", "lone2.py", code.replace("return x", "return text"))
    assert refer_to("lone2:agent", path=(str(folder),)).hash != before


def from_cell(code: str) -> Any:
    """Define something as a notebook does: without a file."""
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(textwrap.dedent(code), scope)  # noqa: S102 - stands for a cell
    return scope["agent"]


@pytest.mark.parametrize(
    "code",
    [
        "def agent(text): return 'one'",
        "agent = lambda text: 'one'",
        "class agent:\n  def reply(self, text): return 'one'",
        "class Agent:\n  def reply(self, text): return 'one'\nagent = Agent()",
        "class Agent:\n  def __call__(self, text): return 'one'\nagent = Agent()",
        "import functools\ndef f(x, text): return 'one'\nagent = functools.partial(f, 1)",
    ],
    ids=["function", "lambda", "class", "object", "callable", "partial"],
)
def test_hash_of_a_cell_follows_its_code(code: str) -> None:
    """Running a cell again unchanged keeps the hash; changing a text in it does not."""
    assert code_hash(from_cell(code)) == code_hash(from_cell(code))
    assert code_hash(from_cell(code)) != code_hash(from_cell(code.replace("one", "two")))


def test_hash_looks_through_partial() -> None:
    """What is wrapped decides, not functools."""
    assert code_hash(functools.partial(test_hash_looks_through_partial)) == code_hash(
        test_hash_looks_through_partial
    )
