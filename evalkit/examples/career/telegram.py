"""Telegram's Bot API, as far as the copilot needs it: messages out, files and updates in."""

from __future__ import annotations

import logging
import time
from typing import Any, Final, Literal
from urllib.parse import quote

import httpx2

from .downloads import AS_IT_IS, Packed, TooLarge, TooSlow, read_bounded
from .resumes import ResumeProblem

MAX_MESSAGE_CHARS: Final = 4096
ATTEMPTS: Final = 3
_MAX_WAIT_S: Final = 2.0
_NEVER_LEFT: Final = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout)
_POLL_S: Final = 30

_logger: Final = logging.getLogger(__name__)

Sent = Literal["answered", "refused", "unsure"]


class NotSent(Exception):
    """A message certainly did not get through, and may do so later."""

    def __init__(self, wait_s: float) -> None:
        super().__init__(f"not sent; try again in {wait_s:g} s")
        self.wait_s = wait_s


class Telegram:
    """One bot's way to Telegram.

    Parameters
    ----------
    client
        Makes the requests.
    token
        The bot's.
    api_url
        Where Telegram is.
    timeout_s
        For one request.
    """

    def __init__(
        self, client: httpx2.Client, token: str, *, api_url: str, timeout_s: float = 10.0
    ) -> None:
        self._client = client
        self._methods = f"{api_url}/bot{token}"
        self._files = f"{api_url}/file/bot{token}"
        self._timeout_s = timeout_s

    def send_message(self, chat_id: int, text: str) -> Sent:
        """Send a message; say what became of it.

        It is sent again only if it certainly did not get through.

        Returns
        -------
        str
            ``answered``; ``refused``, for good; or ``unsure``, if nobody knows.

        Raises
        ------
        NotSent
            If it did not get through, several times.
        """
        for _ in range(ATTEMPTS - 1):
            try:
                return self._send(chat_id, text)
            except NotSent as problem:
                time.sleep(min(problem.wait_s, _MAX_WAIT_S))
        return self._send(chat_id, text)

    def _send(self, chat_id: int, text: str) -> Sent:
        body = {"chat_id": chat_id, "text": text[:MAX_MESSAGE_CHARS]}
        try:
            response = self._call("sendMessage", body)
        except _NEVER_LEFT as error:
            raise NotSent(0.5) from error
        except httpx2.TransportError as error:
            _logger.error("telegram: %s; a message may be lost", type(error).__name__)
            return "unsure"
        if response.status_code == 429:
            raise NotSent(_retry_after(response))
        if response.is_success:
            return "answered"
        _logger.error("telegram: status %d; a message is lost", response.status_code)
        return "refused" if response.is_client_error else "unsure"

    def download(self, file_id: str, *, max_bytes: int) -> bytes:
        """Get a file that a user sent.

        Raises
        ------
        ResumeProblem
            If it is too large, or not handed over.
        """
        due = time.monotonic() + self._timeout_s
        try:
            path = self._result("getFile", {"file_id": file_id})["file_path"]
            return self._stream(f"{self._files}/{quote(path)}", max_bytes=max_bytes, due=due)
        except TooLarge as problem:
            _logger.warning("telegram: file: %s", problem)
            raise ResumeProblem("too_large") from problem
        except (httpx2.HTTPError, TooSlow, Packed, ValueError, LookupError, TypeError) as error:
            _logger.error("telegram: file: %s", type(error).__name__)
            raise ResumeProblem("not_received") from error

    def _stream(self, url: str, *, max_bytes: int, due: float) -> bytes:
        with self._client.stream("GET", url, headers=AS_IT_IS, timeout=self._timeout_s) as response:
            response.raise_for_status()
            return read_bounded(response, most=max_bytes, due=due)

    def get_updates(self, offset: int) -> list[dict[str, Any]]:
        """Ask for updates, and wait for some while there are none.

        Raises
        ------
        httpx2.HTTPError, ValueError, LookupError
            If Telegram cannot be asked.
        """
        params = {"offset": offset, "timeout": _POLL_S}
        response = self._client.get(
            f"{self._methods}/getUpdates", params=params, timeout=_POLL_S + self._timeout_s
        )
        updates: list[dict[str, Any]] = response.raise_for_status().json()["result"]
        return updates

    def _result(self, method: str, body: dict[str, Any]) -> Any:
        return self._call(method, body).raise_for_status().json()["result"]

    def _call(self, method: str, body: dict[str, Any]) -> httpx2.Response:
        return self._client.post(f"{self._methods}/{method}", json=body, timeout=self._timeout_s)


def _retry_after(response: httpx2.Response) -> float:
    try:
        return float(response.json()["parameters"]["retry_after"])
    except (ValueError, LookupError, TypeError):
        return 1.0
