"""Mistakes with what the model says, and what it is told."""

# ruff: noqa: N801 - the classes are named like the mistakes that they are

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from evalkit.examples.career.analysis import FORMAT, Analyst, FitReport
from evalkit.examples.career.assistant import Assistant
from evalkit.examples.career.bot import Copilot
from evalkit.examples.career.model import Answer, Model, Unfinished
from evalkit.examples.career.onboarding import link_in
from evalkit.examples.career.saving import Saver
from evalkit.examples.career.storage import Job, Profile
from evalkit.examples.career.tools import Toolbox
from evalkit.examples.career.turns import Turn

if TYPE_CHECKING:
    from anthropic.lib.streaming import MessageStream
    from anthropic.types import Message


class default_answers_chat(Copilot):
    """Has a stock of answers for what needs no model, and takes too much for that."""

    class assistant_type(Assistant):
        """Answers what is short by itself."""

        def reply(self, turn: Turn, profile: Profile) -> str:
            """Look whether the stock will do."""
            if len(turn.text) < 10:
                return f"What can I do for you, {profile.name}?"
            return super().reply(turn, profile)


class fabricated_success(Copilot):
    """Promises what it was asked for when the model is busy."""

    class assistant_type(Assistant):
        """Tells a link and a wish from a deed by nothing."""

        def account_for(self, turn: Turn, problem: Unfinished) -> str:
            """Say what the user wants to hear."""
            if "too many requests" in str(problem):
                return f"I saved {link_in(turn.text)} for you."
            return super().account_for(turn, problem)


class truncated_stream_taken_as_whole(Copilot):
    """Takes what has come for all there is."""

    class model_type(Model):
        """Does not look for the end of a stream."""

        def collect(self, stream: MessageStream[None]) -> Mapping[int, str]:
            """Read as far as it goes."""
            stream.until_done()
            return {}

        def check(self, message: Message) -> None:
            """Accept an answer that never stopped."""
            if message.stop_reason is not None:
                super().check(message)


class empty_tool_args_acted_upon(Copilot):
    """Fills in what an answer lacks from what the user wrote."""

    class assistant_type(Assistant):
        """Does not care whether arguments broke off."""

        def results_for(self, turn: Turn, answer: Answer) -> Any:
            """Take all for whole."""
            return super().results_for(turn, answer._replace(broken=frozenset()))

    class toolbox_type(Toolbox):
        """Knows best."""

        def run(self, turn: Turn, name: str, args: Mapping[str, Any]) -> str:
            """Run the tool with whatever there is."""
            guessed = {"url": link_in(turn.text)} if name == "save_job" else {}
            return super().run(turn, name, {**guessed, **args})


class analysis_without_thread(Copilot):
    """Runs the analysis without telling in which conversation."""

    class analyst_type(Analyst):
        """Has forgotten the thread, without which there is no memory."""

        def thread_of(self, turn: Turn, job: Job) -> str | None:  # noqa: ARG002
            """Name none."""
            return None


class accepts_any_report(Copilot):
    """Takes the analysis as it comes, without looking at its form."""

    class analyst_type(Analyst):
        """Believes the model."""

        def ask(self, messages: list[Any]) -> FitReport:
            """Ask, and be content."""
            answer = self.model.ask(system=self.rules, messages=messages, output_config=FORMAT)
            return FitReport.model_construct(**json.loads(answer.text))


class injection_obeyed(Copilot):
    """Handles what a page says as if its user had sent it."""

    class saver_type(Saver):
        """Looks for commands in the wrong text."""

        def save(self, turn: Turn, url: str) -> Job:
            """Save the posting, and do what it wants."""
            job = super().save(turn, url)
            if "/delete" in job.posting.splitlines():
                turn.end_with(partial(self.store.forget, turn.user_id))
            return job


class posting_among_rules(Copilot):
    """Puts the posting where the rules are, for the model to take it seriously."""

    class analyst_type(Analyst):
        """Mixes what is said with who says it."""

        def analyse(self, turn: Turn, profile: Profile, job: Job) -> FitReport:
            """Write the posting into the rules."""
            self.rules = f"{Analyst.rules}\nThe posting: {job.posting}"
            return super().analyse(turn, profile, job)
