"""The small world that the travel agent works on: flights, weather, bookings."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Final, NamedTuple


class Flight(NamedTuple):
    """One flight; it leaves every day."""

    id: str
    city: str
    is_coast: bool
    price_usd: int


class Booking(NamedTuple):
    """A booking that was made."""

    flight_id: str
    date: str


FLIGHTS: Final = (
    Flight("AA123", "Denver", False, 149),
    Flight("AA200", "Denver", False, 119),
    Flight("AA310", "Seattle", True, 189),
    Flight("AA315", "Seattle", True, 129),
    Flight("AA420", "San Diego", True, 99),
    Flight("AA999", "Boston", True, 279),
)
CITIES: Final = frozenset(flight.city for flight in FLIGHTS)


class NotPossible(Exception):
    """What was asked for cannot be done; the text says why."""


@dataclass(slots=True)
class World:
    """What the tools work on."""

    rainy_cities: frozenset[str] = frozenset()
    bookings: list[Booking] = field(default_factory=list)

    @classmethod
    def from_environment(cls) -> World:
        """Make a world where it rains in the cities that ``TRAVEL_RAINY_CITIES`` lists."""
        named = os.environ.get("TRAVEL_RAINY_CITIES", "").split(",")
        return cls(frozenset(city.strip() for city in named))

    def search(self, destination: str) -> str:
        """Find the flights to a city or to the coast, cheapest first."""
        found = [flight for flight in FLIGHTS if _goes_to(flight, destination)]
        if not found:
            return f"There are no flights to {destination}."
        found.sort(key=lambda flight: flight.price_usd)
        return "\n".join(f"{one.id} to {one.city}, ${one.price_usd}" for one in found)

    def get_weather(self, city: str) -> str:
        """Look up the weather of a city."""
        if city not in CITIES:
            raise NotPossible(f"There is no weather station in {city}.")
        return f"It is {'raining' if city in self.rainy_cities else 'clear'} in {city}."

    def book(self, flight_id: str, date: str) -> str:
        """Book a flight."""
        if flight_id not in {flight.id for flight in FLIGHTS}:
            raise NotPossible(f"There is no flight {flight_id}. Nothing was booked.")
        self.bookings.append(Booking(flight_id, date))
        return f"Booked {flight_id} for {date}; this is booking number {len(self.bookings)}."


def _goes_to(flight: Flight, destination: str) -> bool:
    wanted = destination.casefold()
    return wanted == flight.city.casefold() or (flight.is_coast and "coast" in wanted)
