"""A travel agent made of simple rules: no model, no key, no network.

It reads one message, uses its tools ``search``, ``get_weather`` and ``book`` on a
small world in memory, and hands back the whole trace of what it did. Beside the
good :func:`agent` stand some that go wrong in one way each, for demonstrations:
:func:`wrong_id`, :func:`looping`, :func:`blind_booking`, and :func:`flaky`, which
is good most of the time.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple, TypeAlias

from evalkit.trace import ToolCall, Trace

JSON: TypeAlias = Any


class Flight(NamedTuple):
    """One flight of the world; it leaves every day."""

    id: str
    city: str
    coast: bool
    price_usd: int


FLIGHTS: Final = (
    Flight("AA123", "Denver", False, 149),
    Flight("AA200", "Denver", False, 119),
    Flight("AA310", "Seattle", True, 189),
    Flight("AA315", "Seattle", True, 129),
    Flight("AA420", "San Diego", True, 99),
    Flight("AA999", "Boston", True, 279),
)

DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(slots=True)
class World:
    """What the tools work on; each message meets a fresh one."""

    rainy_cities: frozenset[str] = frozenset()
    bookings: list[dict[str, JSON]] = field(default_factory=list)

    @classmethod
    def described_by(cls, message: str) -> World:
        """Make the world that a message describes: fine, unless it says "it is raining"."""
        is_raining = re.search(r"\bit is raining\b", message, re.IGNORECASE)
        return cls(frozenset(_cities_in(message)) if is_raining else frozenset())


def search(world: World, destination: str) -> list[dict[str, JSON]]:  # noqa: ARG001 - as all tools
    """Find the flights to a city, or to ``coast``, cheapest first."""
    found = (
        flight
        for flight in FLIGHTS
        if flight.city == destination or (destination == "coast" and flight.coast)
    )
    return [flight._asdict() for flight in sorted(found, key=lambda flight: flight.price_usd)]


def get_weather(world: World, city: str) -> dict[str, JSON]:
    """Look up the weather of a city."""
    if city not in _cities():
        raise LookupError(f"no weather station in {city}")
    return {"city": city, "weather": "raining" if city in world.rainy_cities else "clear"}


def book(world: World, flight_id: str, date: str) -> dict[str, JSON]:
    """Book a flight."""
    if flight_id not in {flight.id for flight in FLIGHTS}:
        raise LookupError(f"no flight {flight_id}")
    booking = {"number": len(world.bookings) + 1, "flight_id": flight_id, "date": date}
    world.bookings.append(booking)
    return booking


TOOLS: Final[Mapping[str, Callable[..., JSON]]] = {
    "search": search,
    "get_weather": get_weather,
    "book": book,
}


class Wish(NamedTuple):
    """What a message asks for."""

    books: bool
    flight_id: str | None
    city: str | None
    day: str
    only_if_dry: bool


def read_wish(message: str) -> Wish:
    """Read what a message asks for, by simple rules.

    Examples
    --------
    >>> read_wish("Book AA200 Friday only if Denver is clear.")
    Wish(books=True, flight_id='AA200', city='Denver', day='Friday', only_if_dry=True)
    """
    flight = re.search(r"\b[A-Z]{2}\d{3}\b", message)
    return Wish(
        books=re.search(r"\bbook\b", message, re.IGNORECASE) is not None,
        flight_id=flight.group() if flight else None,
        city=next(iter(_cities_in(message)), None),
        day=next((day for day in DAYS if day in message), "tomorrow"),
        only_if_dry="only if" in message,
    )


def _cities() -> tuple[str, ...]:
    return tuple(dict.fromkeys(flight.city for flight in FLIGHTS))


def _cities_in(message: str) -> list[str]:
    return [city for city in _cities() if city in message]


class Clerk:
    """Handles one message and notes every tool call that it makes."""

    def __init__(self, message: str) -> None:
        self.message = message
        self.wish = read_wish(message)
        self.world = World.described_by(message)
        self.calls: list[ToolCall] = []

    def handle(self) -> Trace:
        """Answer the message, and tell how."""
        reply = self.answer()
        trace = Trace.from_calls(self.calls, reply=reply, user=self.message)
        # There is no model, so its calls - none - are all known.
        return replace(trace, models_observed=True)

    def use(self, tool: str, **args: JSON) -> JSON:
        """Use a tool and note the call; a tool that raises gives nothing."""
        started = time.perf_counter()
        status: Any = "ok"
        try:
            result = TOOLS[tool](self.world, **args)
        except LookupError as error:
            status, result = "error", str(error)
        duration_s = time.perf_counter() - started
        self.calls.append(ToolCall(tool, args, status, result, duration_s=duration_s))
        return result if status == "ok" else None

    def answer(self) -> str:
        """Do what the message asks for, and say what was done."""
        if not self.wish.books:
            return self.tell_weather()
        if self.wish.flight_id is not None:
            return self.book_flight(self.wish.flight_id)
        if self.wish.city is not None:
            return self.book_cheapest(self.wish.city)
        return self.offer_options()

    def tell_weather(self) -> str:
        """Answer a question about the weather."""
        if self.wish.city is None:
            return "Which city do you mean?"
        return f"In {self.wish.city} it is {self.weather_in(self.wish.city)}."

    def weather_in(self, city: str) -> str:
        """Look the weather up, in one word."""
        found = self.use("get_weather", city=city)
        return found["weather"] if found else "unknown"

    def book_flight(self, flight_id: str) -> str:
        """Book the flight that was named, if what the user asked for holds."""
        city = self.wish.city
        if self.wish.only_if_dry:
            if city is None:
                return f"I cannot check the weather that you mean, so I did not book {flight_id}."
            weather = self.weather_in(city)
            if not self.is_acceptable(weather):
                return f"In {city} it is {weather}, so I did not book {flight_id}."
        return self.booked(flight_id, self.wish.day)

    def is_acceptable(self, weather: str) -> bool:
        """Say whether the weather allows a booking; what is unknown does not."""
        return weather == "clear"

    def book_cheapest(self, city: str) -> str:
        """Search, and book the cheapest flight found."""
        found = self.use("search", destination=city)
        if not found:
            return f"I found no flight to {city}, so I did not book anything."
        return self.booked(found[0]["id"], self.wish.day)

    def booked(self, flight_id: str, day: str) -> str:
        """Book, and confirm only what was booked."""
        booking = self.use("book", flight_id=flight_id, date=day)
        if booking is None:
            return f"There is no flight {flight_id}, so I did not book it."
        return f"Booked {booking['flight_id']} for {booking['date']}."

    def offer_options(self) -> str:
        """Search widely and ask; nobody said what to book."""
        found = self.use("search", destination="coast") or []
        listed = ", ".join(f"{one['city']} ({one['id']}, ${one['price_usd']})" for one in found)
        return f"Here are your options: {listed}. Which one shall I book?"


class WrongIdClerk(Clerk):
    """Books another flight than the user named or the search found."""

    def booked(self, flight_id: str, day: str) -> str:  # noqa: ARG002, D102 - ignoring it is the fault
        return super().booked("AA999", day)


class LoopingClerk(Clerk):
    """Uses each tool that only looks something up twice."""

    def use(self, tool: str, **args: JSON) -> JSON:  # noqa: D102
        if tool != "book":
            super().use(tool, **args)
        return super().use(tool, **args)


class BlindClerk(Clerk):
    """Books whatever the weather is, and where it should have asked."""

    def is_acceptable(self, weather: str) -> bool:  # noqa: ARG002, D102 - ignoring it is the fault
        return True

    def offer_options(self) -> str:  # noqa: D102
        return self.book_cheapest("coast")


def agent(message: str) -> Trace:
    """Answer one message as the user would want.

    Examples
    --------
    >>> agent("What's the weather in Denver?").reply
    'In Denver it is clear.'
    """
    return Clerk(message).handle()


def wrong_id(message: str) -> Trace:
    """Answer, but book flight AA999 whatever was asked for."""
    return WrongIdClerk(message).handle()


def looping(message: str) -> Trace:
    """Answer, but look everything up twice."""
    return LoopingClerk(message).handle()


def blind_booking(message: str) -> Trace:
    """Answer, but book without heeding the weather or asking back."""
    return BlindClerk(message).handle()


def flaky(message: str) -> Trace:
    """Answer well in seven of ten messages, and in one of the three wrong ways else.

    Draws from :mod:`random`, which evalkit seeds for each trial.
    """
    answers = (agent, wrong_id, looping, blind_booking)
    return random.choices(answers, weights=(7, 1, 1, 1))[0](message)
