"""What a whole conversion of a request costs: read, decode, pair, render for the target, encode, write.

The body is a coding agent's; the floor is an untyped read and write of it. Broken bodies, which need repair, are shown
for comparison. Placing cache markers is set against the same conversion without. Exits with 1 when a limit is broken.

One conversation of 10,000 messages against ten of 1,000 shows that the work is linear in the number of messages. The
mean of the ten counts, and their results are kept until the last is done, so that both sides use as much memory. A
single short conversation, rendered again and again, would stay in the caches of the processor, which the long one does
not fit into, and the ratio would show the size of these caches.
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
SAME_LIMIT: Final = 1.3
LONG_LIMIT: Final = 11.0
PLACED_LIMIT: Final = 1.15

FLOOR: Final = "json only: read + write"
FULL: Final = "convert: anthropic -> openai"
SAME: Final = "convert: anthropic -> anthropic, in order"
PLACED: Final = "convert: openai -> anthropic, cache markers placed"
CARRIED: Final = "convert: openai -> anthropic, not placed"
SHORT: Final = "render: 1,000 messages, one call unanswered"
LONG: Final = "render: 10,000 messages, one call unanswered"


def to(target: str, model: str) -> Callable[[bytes], bytes]:
    return lambda body: toolglot.convert(body, source="anthropic", target=target, model=model).data


def from_chat(policy: toolglot.Policy) -> Callable[[bytes], bytes]:
    """To Claude from a client whose protocol has no cache markers."""
    return lambda body: (
        toolglot.convert(body, source="openai", target="anthropic", model="claude-opus-5", policy=policy).data
    )


def to_same(body: bytes) -> bytes:
    return toolglot.repair(body, target="anthropic").data


def broken(messages: int) -> bytes:
    """A body whose first call has no result, so that it needs repair."""
    body: dict[str, Any] = msgspec.json.decode(agent_body(messages))
    for message in body["messages"]:
        results = [block for block in message["content"] if block["type"] == "tool_result"]
        if results:
            message["content"].remove(results[0])
            message["content"].append({"type": "text", "text": "stopped"})
            break
    return msgspec.json.encode(body)


def render_round(messages: int, conversations: int) -> Callable[[], float]:
    """The render alone, without JSON, of bodies that need repair: the time of one of so many conversations."""
    body = broken(messages)
    decoded = [anthropic.decode(msgspec.json.decode(body)) for _ in range(conversations)]
    target, source = toolglot.profiles.get("openai", "gpt-4.1"), toolglot.profiles.get("anthropic")
    return lambda: spent(lambda: [render(one, target, source=source) for one in decoded], 1) / conversations


def main() -> int:
    body = agent_body(40)
    chat = to("openai", "gpt-4.1")
    work: dict[str, tuple[Callable[[bytes], bytes], bytes, int]] = {
        FLOOR: (lambda data: msgspec.json.encode(msgspec.json.decode(data)), body, CALLS),
        FULL: (chat, body, CALLS),
        SAME: (to_same, body, CALLS),
        CARRIED: (from_chat(toolglot.Policy(cache_markers="carry")), chat(body), CALLS),
        PLACED: (from_chat(toolglot.Policy()), chat(body), CALLS),
        "convert: anthropic -> gemini": (to("gemini", "gemini-3-pro"), body, CALLS),
        "convert: anthropic -> mistral": (to("mistral", "mistral-large-latest"), body, CALLS),
        "repair: one call unanswered": (to_same, broken(40), CALLS),
    }
    limits = {
        FULL: Row(FULL, FLOOR, max_ratio=FULL_LIMIT),
        SAME: Row(SAME, FLOOR, max_ratio=SAME_LIMIT),
        PLACED: Row(PLACED, CARRIED, max_ratio=PLACED_LIMIT),
        LONG: Row(LONG, SHORT, max_ratio=LONG_LIMIT),
    }
    measured: dict[str, Callable[[], float]] = {
        SHORT: render_round(1_000, 10),
        LONG: render_round(10_000, 1),
    }
    for name, (run, data, calls) in work.items():
        for _ in range(WARM_UP if calls > 1 else 1):
            run(data)
        measured[name] = timed(lambda run=run, data=data: run(data), calls)  # type: ignore[misc]
    quiet_gc()
    times = in_turn(ROUNDS if len(sys.argv) < 2 else int(sys.argv[1]), measured)
    print(f"A whole conversion of a coding agent's request of {len(body):,} bytes, 40 messages and 15 tools.\n")
    return (
        0
        if table("render", "µs", 1000, [limits.get(name) or Row(name, FLOOR) for name in (*work, SHORT, LONG)], times)
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
