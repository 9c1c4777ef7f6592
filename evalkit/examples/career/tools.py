"""The tools that the model may ask for, and running one of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any, Final

from .analysis import Analyst, NoReport
from .fetching import FetchProblem
from .model import Unfinished
from .privacy import redacted
from .saving import Saver
from .storage import Job, Store
from .turns import Turn


class NotPossible(Exception):
    """A tool cannot do what it should; the text says why."""


def _tool(name: str, description: str, **properties: Any) -> dict[str, Any]:
    """Describe a tool; all of its arguments are required."""
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "input_schema": schema}


def _text(what: str) -> dict[str, str]:
    return {"type": "string", "description": what}


TOOLS: Final = (
    _tool("save_job", "Save a job posting.", url=_text("Its address, as the user gave it.")),
    _tool("retry_saves", "Try again to save what could not be saved before."),
    _tool("list_jobs", "List the saved postings with their numbers."),
    _tool(
        "analyse_fit",
        "Analyse how well a saved job fits the user.",
        job_id={"type": "integer", "description": "Number of the saved posting."},
    ),
    _tool(
        "remember",
        "Remember something about the user for later conversations.",
        topic=_text("What it is about, in a word or two."),
        fact=_text("What to remember."),
    ),
    _tool("delete_my_data", "Delete all that is stored about the user, if the user asks for it."),
)
_TYPES: Final = {"string": str, "integer": int}


class Toolbox:
    """The tools at work.

    Parameters
    ----------
    store
        What the copilot knows.
    saver, analyst
        What does the larger things.
    """

    def __init__(self, store: Store, *, saver: Saver, analyst: Analyst) -> None:
        self.store = store
        self.saver = saver
        self.analyst = analyst

    def run(self, turn: Turn, name: str, args: Mapping[str, Any]) -> str:
        """Run a tool that the model asks for.

        Raises
        ------
        NotPossible
            If there is no such tool, arguments are missing (what is left of an answer
            that was cut off), or it cannot do what it should.
        """
        check_arguments(name, args)
        if turn.is_forgotten:
            raise NotPossible("The user's data was deleted just now; nothing more is stored.")
        match name:
            case "save_job":
                return self.save_job(turn, args["url"])
            case "retry_saves":
                return "\n".join(self.saver.save_pending(turn)) or "There is nothing to try again."
            case "list_jobs":
                return self.list_jobs(turn)
            case "analyse_fit":
                return self.analyse_fit(turn, args["job_id"])
            case "remember":
                return self.remember(turn, args["topic"], args["fact"])
            case _:
                return self.delete_my_data(turn)

    def save_job(self, turn: Turn, url: str) -> str:
        """Save a posting."""
        try:
            job = self.saver.save(turn, url)
        except FetchProblem as problem:
            kept = " It is noted, to be tried again." if problem.is_passing else ""
            raise NotPossible(f"Not saved. {problem}.{kept}") from problem
        return f"Saved as job {job.id}: {job.title}"

    def list_jobs(self, turn: Turn) -> str:
        """List what is saved."""
        lines = [f"{job.id}: {job.title}, saved {_ago(job)}, {job.url}"
                 for job in self.store.jobs(turn.user_id)]  # fmt: skip
        lines += [f"not saved yet: {url}" for url in self.store.pending(turn.user_id)]
        return "\n".join(lines) or "Nothing is saved."

    def analyse_fit(self, turn: Turn, job_id: int) -> str:
        """Analyse a saved posting."""
        job = self.store.job(turn.user_id, job_id)
        profile = self.store.profile(turn.user_id)
        if job is None or profile is None:
            raise NotPossible(f"There is no job {job_id}. Nothing was analysed.")
        try:
            return self.analyst.analyse(turn, profile, job).model_dump_json()
        except Unfinished as problem:
            raise NotPossible(f"There is no analysis: {problem}.") from problem
        except NoReport as problem:
            raise NotPossible("There is no analysis: the answer had no usable form.") from problem

    def remember(self, turn: Turn, topic: str, fact: str) -> str:
        """Remember a fact."""
        self.store.remember(turn.user_id, redacted(topic), redacted(fact))
        return f"Remembered: {topic}."

    def delete_my_data(self, turn: Turn) -> str:
        """Delete everything about the user, in one stroke with the reply."""
        turn.end_with(partial(self.store.forget, turn.user_id))
        return "Everything about the user was deleted."


def check_arguments(name: str, args: Mapping[str, Any]) -> None:
    """Refuse arguments that a tool cannot run with.

    Raises
    ------
    NotPossible
        With what is missing.
    """
    tool = next((tool for tool in TOOLS if tool["name"] == name), None)
    if tool is None:
        known = ", ".join(tool["name"] for tool in TOOLS)
        raise NotPossible(f"There is no tool {name}; there are {known}. Nothing was done.")
    properties = tool["input_schema"]["properties"]
    missing = [key for key, told in properties.items() if not _is_given(args.get(key), told)]
    if missing:
        raise NotPossible(f"The tool {name} was not run: missing {', '.join(missing)}.")


def _is_given(value: object, told: Mapping[str, Any]) -> bool:
    return type(value) is _TYPES[told["type"]] and value != ""


def _ago(job: Job) -> str:
    """Say in days how long a job has been saved."""
    n_days = (datetime.now(UTC) - job.saved_at).days
    return {0: "today", 1: "yesterday"}.get(n_days, f"{n_days} days ago")
