"""The travel agent with one planted mistake each: what a suite must notice.

Each is a thin change of the agent that streams, and is named like its mistake. In
the suites ``travel`` and ``travel_faults`` the scenarios named here fail with it,
and no others. Under *caught by* stands a grader, or, where no grader is needed to
fail the trial, the code of its reason: the agent raised, asked the model for more
than was scripted, or left steps over.

========================== ======================== =============== ============================
mistake                    scenario                 caught by       in the reason
========================== ======================== =============== ============================
wrong_id                   server-error             answer          'booked AA123 for Friday'
wrong_id                   the-cheaper-one          prompt          Booked AA315 for Monday
wrong_id                   the-second-booking       prompt          this is booking number 2
no_weather_check           rain-reaches-the-model   prompt          It is raining in Denver
no_weather_check           half-of-two-fails        truth           'city': 'Atlantis'
blind_booking              rain-reaches-the-model   prompt          book only if it holds
default_answer             weather-only             truth           missing/incorrect: get_weather
looping                    ambiguous-needs-search   unscripted_call were used before this request
forgets_conversation       the-cheaper-one          prompt          What flies to Seattle
forgets_conversation       the-second-booking       unscripted_call does not match
forgets_answers            the-cheaper-one          prompt          and AA310 for $189
forgets_answers            the-second-booking       unscripted_call does not match
loses_rules                the-cheaper-one          prompt          never guess flights
loses_rules                the-model-that-was-tried unscripted_call does not match
searches_everywhere        the-cheaper-one          prompt          to San Diego
books_twice                the-second-booking       prompt          this is booking number 2
adds_words                 wrong-tool               answer          cannot cancel bookings
other_model                the-model-that-was-tried unscripted_call claude-haiku
caps_answers               ambiguous-needs-search   unscripted_call allows 16 token(s)
prints_settings            the-model-that-was-tried log             API_KEY
leaves_notes               the-model-that-was-tried files           notes.txt was written
swapped_results            half-of-two-fails        truth           'city': 'Atlantis'
drops_tool_error           half-of-two-fails        truth           'city': 'Atlantis'
drops_tool_error           wrong-tool               truth           cancel_booking
runs_tool_with_empty_args  truncated-tool-json      prompt          missing flight_id, date
fabricated_success         overloaded               answer          contains 'booked'
retries_forever            overloaded               path            4 model call(s)
denies_booking             server-error             answer          'booked AA123 for Friday'
swallowed_error            truncated-stream         answer          'did not book'
ignores_stop_reason        clean-early-end          answer          'broke off'
hides_refusal              refusal                  answer          'declined'
uncaught_error             malformed-json           agent_raised    JSONDecodeError
guesses_on_timeout         timeout                  answer          contains 'sunny'
gives_up_early             rate-limited             answer          'booked AA123 for Friday'
gives_up_early             disconnect               answer          contains 'could not finish'
gives_up_early             overloaded               left_over_steps never asked for
gives_up_early             server-error             left_over_steps never asked for
gives_up_early             timeout                  left_over_steps never asked for
========================== ======================== =============== ============================
"""

# ruff: noqa: N801 - the classes are named like the agents that they are

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import anthropic
import httpx2

from .assistant import StreamingTravelAgent, Unfinished
from .world import FLIGHTS

if TYPE_CHECKING:
    from anthropic.types import Message, ToolResultBlockParam, ToolUseBlock


class wrong_id(StreamingTravelAgent):
    """Books the flight that stands behind the right one in its list."""

    def run(self, name: str, args: Mapping[str, object]) -> str:
        """Look the flight up, one too far."""
        ids = [flight.id for flight in FLIGHTS]
        if name == "book" and args.get("flight_id") in ids:
            position = ids.index(str(args["flight_id"])) + 1
            args = {**args, "flight_id": ids[position % len(ids)]}
        return super().run(name, args)


class no_weather_check(StreamingTravelAgent):
    """Never looks at the weather: it says that it is clear, wherever."""

    def run(self, name: str, args: Mapping[str, object]) -> str:
        """Make the weather up."""
        if name == "get_weather":
            return f"It is clear in {args['city']}."
        return super().run(name, args)


class blind_booking(StreamingTravelAgent):
    """Lost the rule about conditions when its prompt was tidied up."""

    def __init__(self) -> None:
        super().__init__()
        self.rules = tuple(rule for rule in self.rules if "condition" not in rule)


class default_answer(StreamingTravelAgent):
    """Answers what it takes for small talk by itself, without the model."""

    def reply(self, text: str) -> str:
        """Recognise small talk."""
        if text.startswith("What's the weather"):
            return "It is usually sunny in Denver."
        return super().reply(text)


class looping(StreamingTravelAgent):
    """Takes a question back for work that is not done, and asks the model once more."""

    def converse(self) -> str:
        """Go on until the answer is no question."""
        answer = super().converse()
        while answer.endswith("?"):
            answer = super().converse()
        return answer


class forgets_conversation(StreamingTravelAgent):
    """Begins each message of the user with an empty history."""

    def reply(self, text: str) -> str:
        """Forget what was said."""
        self.messages.clear()
        return super().reply(text)


class forgets_answers(StreamingTravelAgent):
    """Keeps what the user said, and not what it said itself."""

    def reply(self, text: str) -> str:
        """Forget the answer as soon as it is given."""
        answer = super().reply(text)
        del self.messages[-1]
        return answer


class loses_rules(StreamingTravelAgent):
    """Sends its rules once, as if a model remembered them."""

    def request(self) -> dict[str, Any]:
        """Leave the rules out of all requests but the first."""
        is_first = len(self.messages) == 1
        return {**super().request(), "system": " ".join(self.rules) if is_first else ""}


class searches_everywhere(StreamingTravelAgent):
    """Searches the whole coast, whatever place was asked for."""

    def run(self, name: str, args: Mapping[str, object]) -> str:
        """Run the tool with another destination."""
        if name == "search":
            args = {**args, "destination": f"coast near {args.get('destination')}"}
        return super().run(name, args)


class books_twice(StreamingTravelAgent):
    """Runs a tool once more to be sure, and tells of the first time."""

    def run(self, name: str, args: Mapping[str, object]) -> str:
        """Run the tool twice."""
        result = super().run(name, args)
        super().run(name, args)
        return result


class adds_words(StreamingTravelAgent):
    """Says more than its model did."""

    def reply(self, text: str) -> str:
        """Promise something at the end."""
        return f"{super().reply(text)} Call us any time!"


class other_model(StreamingTravelAgent):
    """Was moved to a cheaper model, which nobody tried."""

    def request(self) -> dict[str, Any]:
        """Name the other model."""
        return {**super().request(), "model": "claude-haiku-5-5"}


class caps_answers(StreamingTravelAgent):
    """Saves on tokens until the longer answers no longer fit."""

    def request(self) -> dict[str, Any]:
        """Allow a few tokens."""
        return {**super().request(), "max_tokens": 16}


class prints_settings(StreamingTravelAgent):
    """Prints its whole environment, as it did while it was debugged."""

    def __init__(self) -> None:
        super().__init__()
        print(dict(os.environ))  # noqa: T201 - the mistake itself


class leaves_notes(StreamingTravelAgent):
    """Writes down what its users say, where nobody looks for it."""

    def reply(self, text: str) -> str:
        """Keep a note."""
        with Path("notes.txt").open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
        return super().reply(text)


class swapped_results(StreamingTravelAgent):
    """Gives the results of tools that were asked for together to each other's calls."""

    def results_for(self, message: Message) -> list[ToolResultBlockParam]:
        """Mix the ids up."""
        results = super().results_for(message)
        ids = [result["tool_use_id"] for result in reversed(results)]
        for result, use_id in zip(results, ids, strict=True):
            result["tool_use_id"] = use_id
        return results


class drops_tool_error(StreamingTravelAgent):
    """Passes the text of a tool's error on, but not that it is one."""

    def result_of(self, use: ToolUseBlock) -> ToolResultBlockParam:
        """Forget that it is an error."""
        return {**super().result_of(use), "is_error": False}


class runs_tool_with_empty_args(StreamingTravelAgent):
    """Fills in arguments that are missing, and so acts on half an answer."""

    def run(self, name: str, args: Mapping[str, object]) -> str:
        """Run the tool with whatever there is."""
        defaults = {"destination": "coast", "city": "Denver", "flight_id": "AA123", "date": "today"}
        return super().run(name, {**defaults, **args})


class fabricated_success(StreamingTravelAgent):
    """Takes an overloaded model for a booking that went through."""

    def account_for(self, problem: Unfinished, n_before: int) -> str:
        """Promise what was not done."""
        if isinstance(problem.__cause__, anthropic.OverloadedError):
            return "Booked! You will get a confirmation by mail."
        return super().account_for(problem, n_before)


class retries_forever(StreamingTravelAgent):
    """Wraps a loop of its own around the retries of the SDK."""

    def ask(self) -> Message:
        """Ask until the model is no longer overloaded."""
        while True:
            try:
                return super().ask()
            except Unfinished as problem:
                if not isinstance(problem.__cause__, anthropic.OverloadedError):
                    raise


class denies_booking(StreamingTravelAgent):
    """Forgets after an error what it had booked before."""

    def account_for(self, problem: Unfinished, n_before: int) -> str:  # noqa: ARG002
        """Count from now on."""
        return super().account_for(problem, len(self.world.bookings))


class swallowed_error(StreamingTravelAgent):
    """Says something friendly where the stream broke."""

    def account_for(self, problem: Unfinished, n_before: int) -> str:
        """Say nothing of the error."""
        if isinstance(problem.__cause__, httpx2.TransportError):
            return "All right! Is there anything else that I can do for you?"
        return super().account_for(problem, n_before)


class ignores_stop_reason(StreamingTravelAgent):
    """Takes a stream that ended early for a whole answer."""

    def check(self, message: Message) -> None:
        """Accept an answer that never stopped."""
        if message.stop_reason is not None:
            super().check(message)


class hides_refusal(StreamingTravelAgent):
    """Takes a refusal for an answer like any other."""

    def check(self, message: Message) -> None:
        """Accept what the model declined to do."""
        if message.stop_reason != "refusal":
            super().check(message)


class uncaught_error(StreamingTravelAgent):
    """Expects nothing but the SDK's own errors and broken connections."""

    expected_errors = (anthropic.APIError, httpx2.TransportError)


class guesses_on_timeout(StreamingTravelAgent):
    """Guesses where the model took too long."""

    def account_for(self, problem: Unfinished, n_before: int) -> str:
        """Answer from experience."""
        if isinstance(problem.__cause__, anthropic.APITimeoutError):
            return "It is most likely sunny."
        return super().account_for(problem, n_before)


class gives_up_early(StreamingTravelAgent):
    """Switched the retries of the SDK off."""

    def __init__(self) -> None:
        super().__init__()
        self.client = self.client.with_options(max_retries=0)


PLANTED: Final = (
    wrong_id,
    no_weather_check,
    blind_booking,
    default_answer,
    looping,
    forgets_conversation,
    forgets_answers,
    loses_rules,
    searches_everywhere,
    books_twice,
    adds_words,
    other_model,
    caps_answers,
    prints_settings,
    leaves_notes,
    swapped_results,
    drops_tool_error,
    runs_tool_with_empty_args,
    fabricated_success,
    retries_forever,
    denies_booking,
    swallowed_error,
    ignores_stop_reason,
    hides_refusal,
    uncaught_error,
    guesses_on_timeout,
    gives_up_early,
)
"""All of them."""


def planted() -> StreamingTravelAgent:
    """Make the agent with the mistake that the variable ``TRAVEL_MISTAKE`` names.

    So that one suite can meet every mistake: each scenario names its own under ``env``.
    """
    named = {mistake.__name__: mistake for mistake in PLANTED}
    return named[os.environ["TRAVEL_MISTAKE"]]()
