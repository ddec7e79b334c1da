"""Load balancing: which of several upstreams gets a conversation, and in which order the others take over.

A conversation stays with the upstream where it began, although nothing is stored: its key decides (rendezvous
hashing). Two gateways choose alike, and adding or removing an upstream only moves the conversations that it gets or
had. Signed thinking can only be read by the provider that signed it, and a prompt cache is only where the conversation
was, so a conversation that moves loses both.

If every request is balanced for itself, they take turns, each upstream as often as its weight says (`Rotation`).

Law: the same key and route give the same order, in every process.
"""

from __future__ import annotations

import hashlib
import math

from msgspec.structs import replace

from toolglot.conversation import Conversation
from toolglot.upstream.routing.routes import Route


def first_message(conversation: Conversation) -> str:
    """The first words of the user."""
    first = next((turn for turn in conversation.turns if turn.role == "user" and turn.text.strip()), None)
    return first.text.strip() if first is not None else ""


def conversation_key(client: str, conversation: Conversation, session: str = "") -> str:
    """What stays the same during a conversation: the client, and the name of the session, else the first message."""
    text = f"session {session}" if session else first_message(conversation)
    return hashlib.blake2b(f"{client}\0{text}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def order_by_key(route: Route, key: str) -> list[Route]:
    """The routes in the order in which they are tried."""
    alone = replace(route, others=(), weights=())
    if not route.others:
        return [alone]
    routes = [alone, *route.others]
    if not route.weights:
        return routes
    scored = [
        (_score(f"{key}|{each.upstream_name}/{each.model}", weight), -index)
        for index, (each, weight) in enumerate(zip(routes, route.weights, strict=True))
    ]
    return [routes[-index] for _, index in sorted(scored, reverse=True)]


class Rotation:
    """Weighted round robin, spread as evenly as can be and not in runs."""

    def __init__(self) -> None:
        self._due: dict[str, list[float]] = {}

    def order(self, route: Route) -> list[Route]:
        """The routes in the order in which they are tried: the one whose turn it is, then the others as configured."""
        routes = [replace(route, others=(), weights=()), *route.others]
        due = self._due.setdefault(route.alias_of, [0.0] * len(routes))
        if len(due) != len(routes):
            due[:] = [0.0] * len(routes)
        for index, weight in enumerate(route.weights):
            due[index] += weight
        chosen = max(range(len(routes)), key=due.__getitem__)
        due[chosen] -= sum(route.weights)
        return [routes[chosen], *routes[:chosen], *routes[chosen + 1 :]]


def _score(key: str, weight: float) -> float:
    """The highest score comes first. Among many keys, each route has it as often as its weight says."""
    number = (int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") + 1) / (2**64 + 1)
    return -weight / math.log(number)
