"""What the whole way of a request costs: read, decode, pair, render for the target, encode, write.

The body is a coding agent's; the floor is an untyped read and write of it. Broken bodies, whose repair takes the slow
way, are shown for comparison. Exits with 1 when a limit is broken.

That work grows with the messages and no faster is shown by one conversation of 10,000 messages against ten of 1,000,
of which the mean counts; what came of all ten is kept until the last is done. So both ways as many messages are read
and written, from and to as much memory: a single short one, rendered again and again, would stay in the caches of the
processor, which the long one does not fit into, and the ratio would tell the size of these caches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

import toolglot
from agent_body import agent_body
from timing import Row, in_turn, quiet_gc, spent, table, timed
from toolglot.protocols.anthropic import request as anthropic
from toolglot.render import render

ROUNDS: Final = 41
CALLS: Final = 10
WARM_UP: Final = 5

FULL_LIMIT: Final = 3.0
HOME_LIMIT: Final = 1.3
LONG_LIMIT: Final = 11.0

FLOOR: Final = "json only: read + write"
FULL: Final = "convert: anthropic -> openai"
HOME: Final = "convert: anthropic -> anthropic, in order"
SHORT: Final = "render: 1,000 messages, one call unanswered"
LONG: Final = "render: 10,000 messages, one call unanswered"


def to(target: str, model: str) -> Callable[[bytes], bytes]:
    return lambda body: toolglot.convert(body, source="anthropic", target=target, model=model).data


def home(body: bytes) -> bytes:
    return toolglot.repair(body, target="anthropic").data


def broken(messages: int) -> bytes:
    """A body whose first call lost its result, so that nothing in it can be taken as it is."""
    body: dict[str, Any] = msgspec.json.decode(agent_body(messages))
    for message in body["messages"]:
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        if results:
            message["content"].remove(results[0])
            message["content"].append({"type": "text", "text": "stopped"})
            break
    return msgspec.json.encode(body)


def rendering(messages: int, conversations: int) -> Callable[[], float]:
    """The render alone, without JSON, of bodies that have to be repaired: what one of so many conversations takes."""
    body = broken(messages)
    given = [anthropic.decode(msgspec.json.decode(body)) for _ in range(conversations)]
    target, source = toolglot.profiles.get("openai", "gpt-4.1"), toolglot.profiles.get("anthropic")
    return lambda: spent(lambda: [render(one, target, source=source) for one in given], 1) / conversations


def main() -> int:
    body = agent_body(40)
    chat = to("openai", "gpt-4.1")
    work: dict[str, tuple[Callable[[bytes], bytes], bytes, int]] = {
        FLOOR: (lambda given: msgspec.json.encode(msgspec.json.decode(given)), body, CALLS),
        FULL: (chat, body, CALLS),
        HOME: (home, body, CALLS),
        "convert: anthropic -> gemini": (to("gemini", "gemini-3-pro"), body, CALLS),
        "convert: anthropic -> mistral": (to("mistral", "mistral-large-latest"), body, CALLS),
        "repair: one call unanswered": (home, broken(40), CALLS),
    }
    limits = {
        FULL: Row(FULL, FLOOR, most=FULL_LIMIT),
        HOME: Row(HOME, FLOOR, most=HOME_LIMIT),
        LONG: Row(LONG, SHORT, most=LONG_LIMIT),
    }
    measured: dict[str, Callable[[], float]] = {
        SHORT: rendering(1_000, 10),
        LONG: rendering(10_000, 1),
    }
    for name, (run, given, calls) in work.items():
        for _ in range(WARM_UP if calls > 1 else 1):
            run(given)
        measured[name] = timed(lambda run=run, given=given: run(given), calls)  # type: ignore[misc]
    quiet_gc()
    times = in_turn(ROUNDS if len(sys.argv) < 2 else int(sys.argv[1]), measured)
    print(f"The whole way of a coding agent's request of {len(body):,} bytes, 40 messages and 15 tools.\n")
    return (
        0
        if table("render", "µs", 1000, [limits.get(name) or Row(name, FLOOR) for name in (*work, SHORT, LONG)], times)
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
