"""What is set from outside: addresses, limits and patience, from the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

JOB_HOSTS: Final = ("boards.greenhouse.io", "jobs.ashbyhq.com", "jobs.lever.co")
"""Sites whose postings can be read, unless ``COPILOT_JOB_HOSTS`` names others."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How one copilot runs."""

    token: str
    """Of the bot, from Telegram; it stands in the address of each request."""
    api_url: str = "https://api.telegram.org"
    database: str = "copilot.db"
    host: str = "127.0.0.1"
    port: int = 8080
    secret: str = ""
    """What Telegram sends with each update so that nobody else can; empty: not checked."""
    job_hosts: tuple[str, ...] = JOB_HOSTS
    model_timeout_s: float = 30.0
    model_retries: int = 2
    fetch_timeout_s: float = 10.0
    """For one page or file, all in all."""
    max_page_bytes: int = 256 * 1024
    max_resume_bytes: int = 512 * 1024

    @classmethod
    def from_environment(cls, env: Mapping[str, str] | None = None) -> Settings:
        """Read the settings; what is not set has its default.

        Raises
        ------
        KeyError
            If there is no ``TELEGRAM_BOT_TOKEN``.
        ValueError
            If a number is none.
        """
        env = os.environ if env is None else env
        given = {key: read(env[name]) for key, (name, read) in _VARIABLES.items() if name in env}
        return cls(token=env["TELEGRAM_BOT_TOKEN"], **given)


def _hosts(text: str) -> tuple[str, ...]:
    return tuple(host.strip().lower() for host in text.split(",") if host.strip())


_VARIABLES: Final[Mapping[str, tuple[str, Callable[[str], Any]]]] = {
    "api_url": ("TELEGRAM_API_URL", str),
    "database": ("COPILOT_DB", str),
    "host": ("COPILOT_HOST", str),
    "port": ("COPILOT_PORT", int),
    "secret": ("TELEGRAM_WEBHOOK_SECRET", str),
    "job_hosts": ("COPILOT_JOB_HOSTS", _hosts),
    "model_timeout_s": ("COPILOT_MODEL_TIMEOUT_S", float),
    "model_retries": ("COPILOT_MODEL_RETRIES", int),
    "fetch_timeout_s": ("COPILOT_FETCH_TIMEOUT_S", float),
    "max_page_bytes": ("COPILOT_MAX_PAGE_BYTES", int),
    "max_resume_bytes": ("COPILOT_MAX_RESUME_BYTES", int),
}
