"""What a translated stream costs: Chat chunks into Messages events, an event at a time, as they come from a model.

The floor is an untyped read of the same events. Peers that cannot be measured break their limits; BENCH_PEERS=0 leaves
them out. Also measured: whether long arguments cost more a character than short ones, and what an open stream holds.
Exits with 1 when a limit is broken.
"""

from __future__ import annotations

import gc
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

import msgspec

import peers
from timing import Row, in_turn, quiet_gc, table, timed
from toolglot import StreamTranslator

ROUNDS: Final = 31
CALLS: Final = 5
EVENTS: Final = 200
"""Of text, and again of arguments."""

FLOOR_LIMIT: Final = 10.0
LITELLM_LIMIT: Final = 25.0
ROSETTA_LIMIT: Final = 5.0
"""Its stream processor costs about 5 µs an event, without reading and writing JSON; an untyped read alone costs 0.9."""
LONG_LIMIT: Final = 1.3
MEMORY_LIMIT: Final = 16 * 1024

FLOOR: Final = "json only: read every event"
OURS: Final = "toolglot: openai_chat -> anthropic"
BURST: Final = "toolglot: the same in one piece"
SAME: Final = "toolglot: openai_chat -> openai_chat"
SHORT: Final = "arguments of 1 kB, a character"
LONG: Final = "arguments of 1 MB, a character"

WORDS: Final = ("The", " quick", " brown", " fox", " jumps", " over", " the", ' "lazy"', " dog", ".\n")


def chunk(**delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
    body = {
        "id": "chatcmpl-Bx1Fq0aZ",
        "object": "chat.completion.chunk",
        "created": 1763000000,
        "model": "gpt-4.1-2025-04-14",
        "service_tier": "default",
        "system_fingerprint": "fp_b3f1",
        "choices": [choice],
    }
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


def call_piece(text: str, **first: Any) -> bytes:
    function = {**first.pop("function", {}), "arguments": text}
    return chunk(tool_calls=[{"index": 0, **first, "function": function}])


def agent_stream() -> list[bytes]:
    """A reply with text and a call that writes a file."""
    text = [chunk(content=WORDS[number % len(WORDS)]) for number in range(EVENTS)]
    pieces = ['{"path":"a.py","text":"', *("x = 1" for _ in range(EVENTS)), '"}']
    start = call_piece("", id="call_Yq1", type="function", function={"name": "write_file"})
    called = [start, *map(call_piece, pieces)]
    end = chunk().replace(b'"finish_reason":null', b'"finish_reason":"tool_calls"')
    return [chunk(role="assistant", content=""), *text, *called, end, b"data: [DONE]\n\n"]


def arguments_stream(characters: int) -> list[bytes]:
    """One call whose arguments come four characters at a time."""
    start = call_piece("", id="call_Yq1", type="function", function={"name": "write_file"})
    body = [call_piece('{"text":"'), *[call_piece("abcd")] * (characters // 4), call_piece('"}')]
    end = chunk().replace(b'"finish_reason":null', b'"finish_reason":"tool_calls"')
    return [start, *body, end, b"data: [DONE]\n\n"]


def translate(events: list[bytes], target: str = "anthropic") -> bytes:
    translator = StreamTranslator(source="openai_chat", target=target)
    written = [translator.feed(event) for event in events]
    written.append(translator.finish())
    return b"".join(written)


def only_read(events: list[bytes]) -> None:
    for event in events[:-1]:
        msgspec.json.decode(event[6:-2])


def each(run: Callable[[], object], calls: int, parts: int) -> Callable[[], float]:
    """A round of `run`, divided by the number of its parts."""
    measure = timed(run, calls)
    return lambda: measure() / parts


def bytes_per_stream(count: int = 200) -> int:
    """Bytes that an open translator holds, in the middle of a reply's text and of its arguments."""
    events = agent_stream()
    openings = [events[:50], events[: EVENTS + 50]]
    translate(events)
    gc.collect()
    tracemalloc.start()
    held = []
    for number in range(count):
        translator = StreamTranslator(source="openai_chat", target="anthropic")
        for event in openings[number % 2]:
            translator.feed(event)
        held.append(translator)
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return size // len(held)


def main() -> int:
    events = agent_stream()
    body = b"".join(events)
    memory = bytes_per_stream()
    running, missing = peers.start_peers(body, peers.stream_census(translate(events)), "_stream")
    short, long = arguments_stream(1_000), arguments_stream(1_000_000)
    count = len(events)
    measured: dict[str, Callable[[], float]] = {
        FLOOR: each(lambda: only_read(events), CALLS, count),
        OURS: each(lambda: translate(events), CALLS, count),
        BURST: each(lambda: translate([body]), CALLS, count),
        SAME: each(lambda: translate(events, "openai_chat"), CALLS, count),
        SHORT: each(lambda: translate(short), 20, 1_000),
    }
    rows = [
        Row(FLOOR),
        Row(OURS, FLOOR, max_ratio=FLOOR_LIMIT),
        Row(BURST, FLOOR),
        Row(SAME, FLOOR),
        *peers.rows(running, missing, OURS, {"litellm": LITELLM_LIMIT, "llm-rosetta": ROSETTA_LIMIT}),
    ]
    measured |= {
        peer.name: lambda peer=peer: peer.measure(1) / count  # type: ignore[misc]
        for peer in running.values()
    }
    quiet_gc()
    times = in_turn(ROUNDS, measured)
    for peer in running.values():
        peer.stop()
    lengths = in_turn(5, {SHORT: measured[SHORT], LONG: each(lambda: translate(long), 1, 1_000_000)})
    print(f"An agent's reply: {count} events, {len(body):,} bytes; {ROUNDS} rounds.")
    print(f"Ratio: own rows to '{FLOOR}', other translators to '{OURS}'.\n")
    kept = table("streams, one event", "ns", 1, rows, times)
    print()
    kept &= table("long arguments", "ns", 1, [Row(SHORT), Row(LONG, SHORT, max_ratio=LONG_LIMIT)], lengths)
    is_small = memory <= MEMORY_LIMIT
    print(f"\nAn open stream holds {memory:,} bytes (at most {MEMORY_LIMIT:,}): {'yes' if is_small else 'NO'}")
    return 0 if kept and is_small else 1


if __name__ == "__main__":
    sys.exit(main())
