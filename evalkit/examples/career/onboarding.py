"""Getting to know a user: four questions, one after the other, without a model.

Nothing here reads or writes: a profile and a text go in, a profile and a reply come out.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, NamedTuple

from .storage import Profile

DONE: Final = "done"

QUESTIONS: Final = {
    "name": "What is your name, and what do you do? For example: Ada, data engineer",
    "location": "Where do you want to work? A place, or: remote",
    "skills": "Which are your main skills? Write them with commas between.",
}
_WELCOME: Final = "Hello! I am your career copilot. Four short questions first."
_READY: Final = "Your profile is ready. Send me the address of a job posting, and I will save it."
_MAX_CHARS: Final = 80
_MAX_SKILLS: Final = 20
_LINK: Final = re.compile(r"https?://\S+")


class Step(NamedTuple):
    """What one message of the user leads to."""

    profile: Profile
    reply: str


def begin(user_id: int) -> Step:
    """Welcome a new user."""
    return Step(Profile(user_id, "name"), f"{_WELCOME} {QUESTIONS['name']}")


def advance(profile: Profile, text: str) -> Step:
    """Take in the answer to the question that is open.

    Parameters
    ----------
    profile
        Of a user who is not done.
    text
        What the user says.
    """
    answer = " ".join(text.split())
    match profile.stage:
        case "name":
            return _named(profile, answer)
        case "location":
            return _located(profile, answer)
        case "skills":
            return _skilled(profile, answer)
        case _:
            return _confirmed(profile, answer)


def ask_again(profile: Profile, why: str) -> Step:
    """Repeat the question that is open."""
    question = QUESTIONS.get(profile.stage) or summary(profile)
    return Step(profile, f"{why} {question}")


def link_in(text: str) -> str | None:
    """Find an address in what a user says."""
    found = _LINK.search(text)
    return found[0].rstrip(".,;!?)>\"'") if found else None


def summary(profile: Profile) -> str:
    """Say what is known, and ask whether it is right."""
    return (
        f"So: {profile.name}, {profile.role}. Place: {profile.location}. "
        f"Skills: {profile.skills}. Is that right? (yes or no)"
    )


def _named(profile: Profile, answer: str) -> Step:
    name, _, role = (part.strip() for part in answer.partition(","))
    if not name or not role or len(answer) > _MAX_CHARS:
        return ask_again(profile, "I need both, with a comma between, and short.")
    told = replace(profile, stage="location", name=name, role=role)
    return Step(told, f"Nice to meet you, {name}. {QUESTIONS['location']}")


def _located(profile: Profile, answer: str) -> Step:
    if not answer or len(answer) > _MAX_CHARS:
        return ask_again(profile, "I did not get that.")
    return Step(replace(profile, stage="skills", location=answer), QUESTIONS["skills"])


def _skilled(profile: Profile, answer: str) -> Step:
    skills = [skill.strip() for skill in answer.split(",") if skill.strip()]
    if not 0 < len(skills) <= _MAX_SKILLS or max(map(len, skills)) > _MAX_CHARS:
        return ask_again(profile, f"Between one and {_MAX_SKILLS} skills, please.")
    told = replace(profile, stage="confirm", skills=", ".join(skills))
    return Step(told, summary(told))


def _confirmed(profile: Profile, answer: str) -> Step:
    match answer.lower().rstrip(".!"):
        case "yes" | "y":
            return Step(replace(profile, stage=DONE), _READY)
        case "no" | "n":
            return ask_again(Profile(profile.user_id, "name"), "Then once more.")
    return ask_again(profile, "Please say yes or no.")
