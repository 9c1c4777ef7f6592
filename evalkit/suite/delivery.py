"""How turns reach an agent that is not called, and where its replies come out.

A delivery is a template: ``{text}`` stands for what the user says, ``{update_id}`` for
the number of the turn, ``{{text}}`` for the literal ``{text}``. Who sends it is no
business of this module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Literal, NamedTuple
from urllib.parse import quote, quote_plus

from pydantic import Field, model_validator

from evalkit.suite.fields import Body, FixturePath, Json, KeyPath, Name, Request, SuiteModel

FILLED_IN: Final = ("text", "update_id")
"""Names that a delivery replaces."""

_PLACE: Final = re.compile(r"\{\{(text|update_id)\}\}|\{(text|update_id)\}")
_NUMBER: Final = "{update_id}"
_FORM: Final = "application/x-www-form-urlencoded"
_JSON: Final = "application/json"
_TEXT: Final = "text/plain; charset=utf-8"
_FILE: Final = "application/octet-stream"
_SCHEMES: Final = ("http://", "https://")


class Delivery(SuiteModel):
    """How a turn reaches an agent that is not called.

    An address that is a path is the agent's own: the request is sent to its port. An
    absolute one is polled by the agent, and this is what it is answered.
    """

    request: Request = Field(alias="http")
    json_body: Body = Field(None, alias="json")
    text: str | None = None
    body_file: FixturePath | None = None
    headers: Mapping[str, str] = {}
    until: Literal["answer", "reply"] = "answer"
    """``answer``: the turn ends when the agent has answered, or polls again; ``reply``: not
    before it replied as well, as often as the turn expects."""
    idle: Json = Field({"ok": True, "result": []})
    """JSON that an agent which polls is answered while nothing is there for it."""

    @model_validator(mode="after")
    def _one_body(self) -> Delivery:
        if len(self.model_fields_set & {"json_body", "text", "body_file"}) > 1:
            raise ValueError("can have only one of json, text and body_file")
        return self

    @property
    def method(self) -> str:
        """The request's method."""
        return self.request.partition(" ")[0]

    @property
    def address(self) -> str:
        """The request's address: a path of the agent's own, or an absolute one."""
        return self.request.partition(" ")[2]

    @property
    def is_polled(self) -> bool:
        """Whether the agent asks for it."""
        return self.address.startswith(_SCHEMES)

    def uses(self, name: str) -> bool:
        """Say whether a name is filled in anywhere."""
        return any(
            found[2] == name for text in self._texts() for found in _PLACE.finditer(text)
        )  # fmt: skip

    def _texts(self) -> Iterator[str]:
        yield from (self.address, self.text or "", *self.headers.values())
        yield from _texts_in(self.json_body)


class ReplySource(SuiteModel):
    """Where replies come out, when they are not what the agent returns."""

    request: Request = Field(alias="http")
    field: Name
    """Dotted path to the text in the request's JSON, or a field of its form or query."""


class Filled(NamedTuple):
    """A delivery as it is sent."""

    method: str
    address: str
    headers: Mapping[str, str]
    body: bytes


def filled(
    delivery: Delivery, *, text: str, update_id: int, read: Callable[[str], bytes]
) -> Filled:
    """Fill a delivery in for one turn.

    Parameters
    ----------
    delivery
        The template.
    text
        What the user says.
    update_id
        The number of the turn.
    read
        Gives the bytes of a fixture file.

    Examples
    --------
    >>> given = {"http": "POST /in", "json": {"id": "{update_id}", "text": "<{text}>"}}
    >>> delivery = Delivery.model_validate(given)
    >>> filled(delivery, text="Hi.", update_id=3, read=bytes).body
    b'{"id": 3, "text": "<Hi.>"}'
    """
    number = str(update_id)
    headers = {name: _put(value, {"update_id": number}) for name, value in delivery.headers.items()}
    own = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    body, kind = _body(delivery, {"text": text, "update_id": number}, form=_FORM in own, read=read)
    address = delivery.address
    if not delivery.is_polled:  # that is a pattern, and no request of ours
        address = _put(address, {"text": quote(text, safe=""), "update_id": number})
    given = {} if own or not kind else {"Content-Type": kind}
    return Filled(delivery.method, address, {**given, **headers}, body)


def _body(
    delivery: Delivery, values: Mapping[str, str], *, form: bool, read: Callable[[str], bytes]
) -> tuple[bytes, str]:
    """Give the body, and of which type it is."""
    if "json_body" in delivery.model_fields_set:
        return json.dumps(_filled_json(delivery.json_body, values)).encode("ascii"), _JSON
    if delivery.body_file is not None:
        return read(delivery.body_file), _FILE
    if delivery.text is None:
        return b"", ""
    texts = {**values, "text": quote_plus(values["text"])} if form else values
    return _put(delivery.text, texts).encode("utf-8", "surrogatepass"), _TEXT


def _filled_json(value: Json, values: Mapping[str, str]) -> Json:
    """Fill in texts; one that is nothing but the number becomes a number."""
    if value == _NUMBER:
        return int(values["update_id"])
    if isinstance(value, str):
        return _put(value, values)
    if isinstance(value, Mapping):
        return {key: _filled_json(item, values) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_filled_json(item, values) for item in value]
    return value


def _put(text: str, values: Mapping[str, str]) -> str:
    """Put values into a text, all at once: what a user says is filled in as it is."""

    def put(found: re.Match[str]) -> str:
        literal, name = found[1], found[2]
        return f"{{{literal}}}" if literal else values.get(name, found[0])

    return _PLACE.sub(put, text)


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _texts_in(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts_in(item)


def template_problems(delivery: Delivery, *, says_text: bool) -> Iterator[tuple[KeyPath, str]]:
    """Find what is wrong with a template.

    Parameters
    ----------
    delivery
        The template.
    says_text
        Whether it carries what a user says, or is sent as it stands.
    """
    yield from _address_problems(delivery)
    if says_text and not delivery.uses("text"):
        yield (), "what the user says would not arrive: write `{text}` where it belongs"
    if not says_text and delivery.uses("text"):
        yield (), "nobody says anything in a `deliver` turn: write the text out for `{text}`"
    if any("{text}" in value for value in delivery.headers.values()):
        yield ("headers",), "`{text}` may be any text, which no header can hold: put it in the body"


def _address_problems(delivery: Delivery) -> Iterator[tuple[KeyPath, str]]:
    if delivery.is_polled:
        if delivery.body_file is not None:
            yield ("body_file",), "an agent that polls is answered with `json` or `text`"
        return
    if not delivery.address.startswith("/"):
        yield (
            ("http",),
            "must be a path of the agent's own, such as POST /webhook, or the whole address that "
            "the agent polls, such as GET https://api.example.test/updates",
        )
    elif "*" in delivery.request:
        yield ("http",), "is sent, so its method and path have no `*`"
    if "idle" in delivery.model_fields_set:
        yield ("idle",), "answers an agent that polls, and this one is sent its turns: remove it"
