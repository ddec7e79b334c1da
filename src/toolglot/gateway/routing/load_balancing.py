"""Which of several upstreams gets a conversation, and which stand in for it.

A conversation stays where it began, without anybody having to remember it: its key decides (rendezvous hashing), so
that two gateways choose alike, and one upstream more or less moves only the conversations that it gets or had. What a
provider signed can be read there only, so a conversation that moves loses it.

Every request for itself goes round: the next one gets it, each as often as its weight says (`Rotation`).

Law: the same key and route give the same order, in every process.
"""

from __future__ import annotations

import hashlib
import math

from msgspec.structs import replace

from toolglot.conversation import Conversation
from toolglot.gateway.routing.router import Route


def conversation_key(client: str, conversation: Conversation) -> str:
    """What stays the same while a conversation goes on: who speaks, and how it began."""
    first = next((turn for turn in conversation.turns if turn.role == "user" and turn.text.strip()), None)
    said = first.text.strip() if first is not None else ""
    return hashlib.blake2b(f"{client}\0{said}".encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def ordered(route: Route, key: str) -> list[Route]:
    """Who is asked, the first first."""
    alone = replace(route, others=(), weights=())
    if not route.others:
        return [alone]
    routes = [alone, *route.others]
    if not route.weights:
        return routes
    scored = [
        (_score(f"{key}|{each.upstream_name}/{each.model}", weight), -place)
        for place, (each, weight) in enumerate(zip(routes, route.weights, strict=True))
    ]
    return [routes[-place] for _, place in sorted(scored, reverse=True)]


class Rotation:
    """Who is next, of several by weight: spread as evenly as can be, not in runs."""

    def __init__(self) -> None:
        self._due: dict[str, list[float]] = {}

    def ordered(self, route: Route) -> list[Route]:
        """Who is asked, the first first; the others stand in, in their order."""
        routes = [replace(route, others=(), weights=()), *route.others]
        due = self._due.setdefault(route.alias_of, [0.0] * len(routes))
        if len(due) != len(routes):
            due[:] = [0.0] * len(routes)
        for place, weight in enumerate(route.weights):
            due[place] += weight
        chosen = max(range(len(routes)), key=due.__getitem__)
        due[chosen] -= sum(route.weights)
        return [routes[chosen], *routes[:chosen], *routes[chosen + 1 :]]


def _score(key: str, weight: float) -> float:
    """The higher, the sooner; among many keys, the highest as often as the weight says."""
    drawn = (int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "big") + 1) / (2**64 + 1)
    return -weight / math.log(drawn)
