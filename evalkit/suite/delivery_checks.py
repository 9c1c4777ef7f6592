"""Whether turns can reach the agent as a scenario says, and whether its replies are seen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from evalkit.suite.bans import Forbid
from evalkit.suite.delivery import FILLED_IN, Delivery, template_problems
from evalkit.suite.expectations import Expect
from evalkit.suite.fields import KeyPath
from evalkit.suite.journey import DeliverTurn, RedeliverTurn, Turn, UserTurn
from evalkit.suite.models import AgentEntry, Scenario

Found = Iterator[tuple[KeyPath, str]]


def delivery_problems(scenario: Scenario) -> Found:
    """Find what is wrong with the ways to and from the agent of one scenario."""
    for path, delivery in _deliveries(scenario):
        for place, message in _of_delivery(scenario, delivery, is_shared=path == ("deliver",)):
            yield (*path, *place), message
    for name in FILLED_IN if scenario.deliveries else ():
        if name in scenario.vars:
            yield ("vars", name), f"{{{name}}} is filled in by `deliver`: rename the variable"
    if scenario.reply_from is not None:
        yield from _source_problems(scenario.reply_from.request)
    else:
        yield from _unseen_replies(scenario)


def _deliveries(scenario: Scenario) -> Iterator[tuple[KeyPath, Delivery]]:
    if scenario.deliver is not None:
        yield ("deliver",), scenario.deliver
    for index, turn in enumerate(scenario.turns):
        if isinstance(turn, DeliverTurn):
            yield ("turns", index, "deliver"), turn.deliver


def _of_delivery(scenario: Scenario, delivery: Delivery, *, is_shared: bool) -> Found:
    says_text = is_shared and any(isinstance(turn, UserTurn) for turn in scenario.turns)
    if says_text or not is_shared:
        yield from template_problems(delivery, says_text=says_text)
    if delivery.until == "reply" and scenario.reply_from is None:
        yield ("until",), "needs `reply_from`, which says what a reply is"


def _source_problems(request: str) -> Found:
    address = request.partition(" ")[2]
    if not address.startswith(("*", "http://", "https://")):
        yield (
            ("reply_from", "http"),
            "must be what the agent sends to others: POST https://api.example.test/send, or "
            "POST */send",
        )


def _unseen_replies(scenario: Scenario) -> Found:
    """Find what is said of replies that nobody would see: none is what the agent returns."""
    message = "the agent is not called, so it returns no reply: add `reply_from`"
    delivered = [_is_delivered(scenario, turn) for turn in scenario.turns]
    if scenario.deliver is not None or (delivered and all(delivered)):
        yield from _on_replies((), scenario.expect, scenario.forbid, message=message)
    for index, turn in enumerate(scenario.turns):
        if delivered[index]:
            yield from _on_replies(("turns", index), turn.expect, turn.forbid, message=message)


def _is_delivered(scenario: Scenario, turn: Turn) -> bool:
    if isinstance(turn, RedeliverTurn) and turn.redeliver <= len(scenario.turns):
        turn = scenario.turns[turn.redeliver - 1]
    return isinstance(turn, DeliverTurn) or (
        isinstance(turn, UserTurn) and scenario.deliver is not None
    )


def _on_replies(
    path: KeyPath, expect: Expect | None, forbid: Forbid | None, *, message: str
) -> Found:
    if expect is not None and expect.reply is not None:
        yield (*path, "expect", "reply"), message
    if expect is not None and expect.replies is not None:
        yield (*path, "expect", "replies"), message
    if forbid is not None and forbid.reply is not None:
        yield (*path, "forbid", "reply"), message


def agent_problems(agent: AgentEntry | None, scenarios: Iterable[Scenario]) -> Found:
    """Find scenarios whose turns cannot reach the suite's agent.

    Parameters
    ----------
    agent
        What the suite names; ``None``: nothing, so nothing is known.
    scenarios
        The suite's.
    """
    if agent is None:
        return
    for index, scenario in enumerate(scenarios):
        for path, delivery in _deliveries(scenario):
            problem = _unreachable(agent, delivery)
            if problem:
                yield ("scenarios", index, *path, "http"), problem
        if _is_called(scenario) and agent.http is not None and not _listens(agent):
            yield (
                ("agent", "http"),
                f"has no `port`, so it cannot be called, as {scenario.id!r} does: add `port`, or a "
                "`deliver` with the address that it polls",
            )
            return


def _is_called(scenario: Scenario) -> bool:
    return scenario.deliver is None and any(isinstance(turn, UserTurn) for turn in scenario.turns)


def _listens(agent: AgentEntry) -> bool:
    return agent.http is not None and (agent.http.port is not None or agent.http.url is not None)


def _unreachable(agent: AgentEntry, delivery: Delivery) -> str:
    if agent.http is None:
        way = "polls" if delivery.is_polled else "listens"
        return (
            f"needs an agent that {way}: write the suite's `agent` as "
            "{http: {command: [...], port: 8080}} or {http: {serve: module:function, port: 8080}}"
        )
    if not delivery.is_polled and not _listens(agent):
        return "is sent to the agent's port: add `port` to the suite's `agent`"
    return ""
