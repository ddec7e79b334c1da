"""What a translated request costs, next to reading and writing the same JSON, and next to other translators.

The body is a coding agent's. The floor is an untyped read and write of it, which is the least possible. Peers that
cannot be measured break their limits; BENCH_PEERS=0 leaves them out. Exits with 1 when a limit is broken.

That the work grows with the messages and no faster is shown against the JSON of the same 400 messages: reading and
writing a megabyte takes more than ten times what a tenth of it takes (12 to 14 times), for everybody, because such
buffers come fresh from the system.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec

import peers
from agent_body import agent_body
from timing import Row, in_turn, quiet_gc, table, timed
from toolglot import Conversation
from toolglot.protocols.anthropic import request as anthropic
from toolglot.protocols.bedrock import request as bedrock
from toolglot.protocols.gemini import request as gemini
from toolglot.protocols.openai_chat import request as openai_chat
from toolglot.protocols.openai_responses import request as openai_responses

ROUNDS: Final = 41
CALLS: Final = 10
LONG_CALLS: Final = 2
WARM_UP: Final = 5

FLOOR_LIMIT: Final = 2.0
LONG_LIMIT: Final = 1.7
LITELLM_LIMIT: Final = 1.5

FLOOR: Final = "json only: read + write"
OURS: Final = "toolglot: anthropic -> openai_chat"
FLOOR_LONG: Final = "json only, 400 messages"
OURS_LONG: Final = "toolglot, 400 messages"

Decode = Callable[[dict[str, Any]], Conversation]
Encode = Callable[[Conversation], dict[str, Any]]

read = msgspec.json.decode
write = msgspec.json.Encoder().encode


def floor(body: bytes) -> bytes:
    return write(read(body))


def pair(decode: Decode, encode: Encode) -> Callable[[bytes], bytes]:
    return lambda body: write(encode(decode(read(body))))


to_chat = pair(anthropic.decode, openai_chat.encode)


def work(body: bytes, long: bytes) -> dict[str, tuple[Callable[[bytes], bytes], bytes, int]]:
    """What is measured in this process: the function, its body, and how often it is called in a round."""
    return {
        FLOOR: (floor, body, CALLS),
        OURS: (to_chat, body, CALLS),
        FLOOR_LONG: (floor, long, LONG_CALLS),
        OURS_LONG: (to_chat, long, LONG_CALLS),
        "toolglot: openai_chat -> anthropic": (pair(openai_chat.decode, anthropic.encode), to_chat(body), CALLS),
        "toolglot: anthropic -> openai_responses": (pair(anthropic.decode, openai_responses.encode), body, CALLS),
        "toolglot: anthropic -> gemini": (pair(anthropic.decode, gemini.encode), body, CALLS),
        "toolglot: anthropic -> bedrock": (pair(anthropic.decode, bedrock.encode), body, CALLS),
    }


def variants(body: bytes, long: bytes) -> dict[str, Callable[[], float]]:
    made: dict[str, Callable[[], float]] = {}
    for name, (run, data, calls) in work(body, long).items():
        for _ in range(WARM_UP):
            run(data)
        made[name] = timed(lambda run=run, data=data: run(data), calls)  # type: ignore[misc]
    return made


def own_rows(names: list[str]) -> list[Row]:
    limits = {
        OURS: Row(OURS, FLOOR, max_ratio=FLOOR_LIMIT),
        FLOOR_LONG: Row(FLOOR_LONG, FLOOR),
        OURS_LONG: Row(OURS_LONG, FLOOR_LONG, max_ratio=LONG_LIMIT),
    }
    return [limits.get(name) or Row(name, FLOOR) for name in names]


def main() -> int:
    body, long = agent_body(40), agent_body(400)
    running, missing = peers.start_peers(body, peers.census(to_chat(body)))
    measured = variants(body, long)
    rows = own_rows(list(measured)) + peers.rows(running, missing, OURS, {"litellm": LITELLM_LIMIT})
    measured |= {peer.name: lambda peer=peer: peer.measure(CALLS) for peer in running.values()}  # type: ignore[misc]
    quiet_gc()
    times = in_turn(ROUNDS, measured)
    for peer in running.values():
        peer.stop()
    print(f"A coding agent's request: {len(body):,} bytes with 40 messages, {len(long):,} with 400; {ROUNDS} rounds.")
    print(f"Ratio: own rows to '{FLOOR}' ({OURS_LONG} to '{FLOOR_LONG}'), other translators to '{OURS}'.\n")
    return 0 if table("wire", "µs", 1000, rows, times) else 1


if __name__ == "__main__":
    sys.exit(main())
