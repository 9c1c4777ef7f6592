"""Mistakes with what is private."""

# ruff: noqa: N801 - the classes are named like the mistakes that they are

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from typing import Any, Final

import httpx2
import pypdf

from evalkit.examples.career.analysis import Analyst
from evalkit.examples.career.bot import Copilot, Incoming
from evalkit.examples.career.privacy import redacted
from evalkit.examples.career.resumes import Resume, ResumeReader
from evalkit.examples.career.settings import Settings
from evalkit.examples.career.storage import Job, Profile, Store

_logger: Final = logging.getLogger(__name__)


class resume_unredacted(ResumeReader):
    """Reads resumes as they are."""

    def extract(self, reader: pypdf.PdfReader) -> Resume:
        """Leave nothing out."""
        resume = super().extract(reader)
        return resume._replace(text=self.whole(reader))

    def whole(self, reader: pypdf.PdfReader) -> str:
        """Give the text of all pages, contact data included."""
        return "\n".join(page.extract_text() for page in reader.pages)


class bounds_after_extraction(Copilot):
    """Extracts a resume whole, and looks at pages and characters then."""

    class resumes_type(resume_unredacted):
        """Cuts what it has."""

        def extract(self, reader: pypdf.PdfReader) -> Resume:
            """Read everything first."""
            self.whole(reader)
            return ResumeReader.extract(self, reader)


class canary_in_log(Copilot):
    """Logs what it has read, to see whether that went well."""

    class resumes_type(resume_unredacted):
        """Logs before it redacts."""

        def extract(self, reader: pypdf.PdfReader) -> Resume:
            """Show the beginning."""
            _logger.info("resume begins: %.200s", self.whole(reader))
            return ResumeReader.extract(self, reader)


class canary_in_database(Copilot):
    """Keeps resumes as they are, and redacts on the way to the model only."""

    resumes_type = resume_unredacted

    class analyst_type(Analyst):
        """Leaves contact data out here."""

        def question(self, profile: Profile, job: Job) -> str:
            """Redact the prompt."""
            return redacted(super().question(profile, job))


class canary_in_exported_span(Copilot):
    """Traces its work, and puts what it works on into the spans."""

    class resumes_type(resume_unredacted):
        """Exports a span for each resume."""

        def extract(self, reader: pypdf.PdfReader) -> Resume:
            """Tell the collector what was read."""
            export_span("read_resume", {"input.value": self.whole(reader)})
            return ResumeReader.extract(self, reader)


class chat_unredacted(Copilot):
    """Redacts resumes, and forgets that users write about themselves, too."""

    def work(self, incoming: Incoming) -> str:
        """Take the text as it came."""
        return super().work(incoming._replace(text=self._raw))

    def handle(self, update: Mapping[str, Any]) -> None:
        """Keep the text as it came."""
        self._raw = str((update.get("message") or {}).get("text", ""))
        super().handle(update)


class token_in_log(Copilot):
    """Lets its HTTP client log, which tells every address, the bot's token included."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        logging.getLogger("httpx2").setLevel(logging.INFO)


class forgets_half(Copilot):
    """Deletes a profile and its jobs, and leaves the conversation."""

    class store_type(Store):
        """Does not know all of its tables."""

        def forget(self, user_id: int) -> None:
            """Delete what comes to mind."""
            for table in ("profiles", "jobs", "pending_saves", "analyses"):
                self.db.execute(f"DELETE FROM {table} WHERE user_id = ?", (user_id,))


def export_span(name: str, attributes: Mapping[str, str]) -> None:
    """Send one span to the collector that the environment names, as OpenTelemetry's JSON."""
    collector = os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    if not collector:
        return
    told = [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()]
    span = {
        "traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1", "name": name, "kind": 1,
        "startTimeUnixNano": "1", "endTimeUnixNano": "2", "attributes": told,
    }  # fmt: skip
    body = {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]}
    httpx2.post(
        f"{collector}/v1/traces",
        content=json.dumps(body),
        headers={"Content-Type": "application/json"},
    ).raise_for_status()
