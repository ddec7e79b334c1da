"""What it costs to find calls in text while it comes, four characters at a time, in every dialect.

The floor is to collect the pieces and to parse the whole text once, at the end, as inference servers do at best. Also
measured: whether a character of long arguments costs more than one of short ones, and what text without calls costs.
The floor of that is the least that any reader does with a piece: look for one mark, keep the text, return an event.

At last, texts that are made to take long (`tests/support/dialects/hostile_texts.py`): none may take more than a
microsecond a character, in any dialect.

Exits with 1 when a limit is broken.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from time import process_time_ns
from typing import Any, Final

import msgspec

# Where hostile texts are made.
sys.path.append(str(Path(__file__).parents[1] / "tests"))

from support.dialects.hostile_texts import hostile_texts
from timing import NAME_WIDTH, Row, Times, in_turn, quiet_gc, table, timed
from toolglot.conversation.events import TextDelta
from toolglot.dialects import registry
from toolglot.dialects.text_stream import TextToolStream, parse_text

VECTORS: Final = Path(__file__).parents[1] / "tests" / "dialect_vectors"
ROUNDS: Final = 3
LENGTH_ROUNDS: Final = 2
PIECE: Final = 4
SHORT, MIDDLE, LONG = 10_000, 100_000, 1_000_000
PIECES_LIMIT: Final = 25.0
LONG_LIMIT: Final = 1.3
PLAIN_LIMIT: Final = 2.0
HOSTILE: Final = 30_000
"""Characters of a hostile text."""
HOSTILE_LIMIT: Final = 1_000.0
"""Nanoseconds of each."""
HOSTILE_SHOWN: Final = 5
MARKER: Final = "QQQQ"
"""Marks the position of the long argument in an example."""

Examples = dict[str, tuple[str, list[Any]]]


def examples() -> Examples:
    """A call of each dialect with one argument, which is a string."""
    found: Examples = {}
    for name in registry.names():
        body = msgspec.json.decode((VECTORS / f"{name}.json").read_bytes())
        for vector in body["vectors"]:
            calls = vector["expected"].get("calls", [])
            tools = vector.get("tools", body.get("tools", []))
            text = _with_marker(vector["text"], calls)
            if text is not None and _is_read(text, name, tools):
                found[name] = (text, tools)
                break
    return found


def _with_marker(text: str, calls: list[Any]) -> str | None:
    """The text with the marker as its only argument; None if there is more than one, or if it occurs twice."""
    if len(calls) != 1 or len(calls[0]["arguments"]) != 1:
        return None
    value = next(iter(calls[0]["arguments"].values()))
    if not isinstance(value, str) or len(value) < 2 or text.count(value) != 1:
        return text.replace("/", MARKER, 1) if value == "/" and text.count('"/"') == 1 else None
    return text.replace(value, MARKER)


def _is_read(text: str, dialect: str, tools: list[Any]) -> bool:
    calls = parse_text(text.replace(MARKER, "abcd" * 20), dialect=dialect, tools=tools).calls
    return len(calls) == 1 and list((calls[0].arguments or {}).values()) == ["abcd" * 20]


def long_text(text: str, characters: int) -> str:
    return text.replace(MARKER, "abcd" * (characters // 4))


def cut(text: str) -> list[str]:
    return [text[at : at + PIECE] for at in range(0, len(text), PIECE)]


def read_stream(pieces: list[str], dialect: str, tools: list[Any]) -> None:
    stream = TextToolStream(dialect=dialect, tools=tools)
    for piece in pieces:
        stream.feed(piece)
    stream.finish()


def collect_and_parse(pieces: list[str], dialect: str, tools: list[Any]) -> None:
    kept: list[str] = []
    for piece in pieces:
        kept.append(piece)  # noqa: PERF402 - one at a time, as they come
    parse_text("".join(kept), dialect=dialect, tools=tools)


class LeastReader:
    """Looks for one mark in each piece, and returns an event."""

    def __init__(self) -> None:
        self._has_no_mark = re.compile("[^<]+").fullmatch
        self._text = StringIO()

    def feed(self, piece: str) -> list[TextDelta]:
        if not self._has_no_mark(piece):
            raise ValueError("expected text without calls")
        self._text.write(piece)
        return [TextDelta(piece)]


def read_least(pieces: list[str]) -> None:
    reader = LeastReader()
    for piece in pieces:
        reader.feed(piece)


def each(run: Callable[[], object], parts: int, calls: int = 1) -> Callable[[], float]:
    """A round of `run`, divided by the number of its parts."""
    measure = timed(run, calls)
    return lambda: measure() / parts


def measure(name: str, text: str, tools: list[Any]) -> tuple[list[Row], Times]:
    """The cost of a dialect, per character."""
    short, middle, long = (cut(long_text(text, size)) for size in (SHORT, MIDDLE, LONG))
    floor, ours = f"{name}: collected, parsed once", f"{name}: {MIDDLE // 1000} kB in pieces"
    small, large = f"{name}: {SHORT // 1000} kB in pieces", f"{name}: {LONG // 1000} kB in pieces"
    times = in_turn(
        ROUNDS,
        {
            floor: each(lambda: collect_and_parse(middle, name, tools), MIDDLE, 3),
            ours: each(lambda: read_stream(middle, name, tools), MIDDLE),
        },
    )
    times |= in_turn(
        LENGTH_ROUNDS,
        {
            small: each(lambda: read_stream(short, name, tools), SHORT, 10),
            large: each(lambda: read_stream(long, name, tools), LONG),
        },
    )
    return [Row(ours, floor, max_ratio=PIECES_LIMIT), Row(large, small, max_ratio=LONG_LIMIT)], times


def plain_text() -> tuple[list[Row], Times]:
    pieces = cut("The quick brown fox jumps over the lazy dog. " * 4_000)
    base, named, auto = "text: the least that a reader does", "text: through hermes", "text: through auto"
    parts = len(pieces) * PIECE
    times = in_turn(
        5,
        {
            base: each(lambda: read_least(pieces), parts),
            named: each(lambda: read_stream(pieces, "hermes", ["ls"]), parts),
            auto: each(lambda: read_stream(pieces, "auto", ["ls"]), parts),
        },
    )
    return [Row(base), Row(named, base, max_ratio=PLAIN_LIMIT), Row(auto, base, max_ratio=PLAIN_LIMIT)], times


def hostile() -> bool:
    """The hostile texts that take longest. Returns whether all keep the limit."""
    found = []
    for name in ("auto", *registry.names()):
        for repeated, text in hostile_texts(name, HOSTILE):
            cost = _cost_of(text, name)
            if cost > HOSTILE_LIMIT / 2:  # the rest of the machine only ever makes it longer
                cost = min(cost, *(_cost_of(text, name) for _ in range(4)))
            found.append((cost, name, repeated))
    found.sort(reverse=True)
    slow = sum(cost > HOSTILE_LIMIT for cost, _, _ in found)
    print(f"{f'{len(found):,} hostile texts, one character':<{NAME_WIDTH}}{'ns':>10}{'':8}  {'limit':<9}ok")
    for cost, name, repeated in found[:HOSTILE_SHOWN]:
        shown = f"{name}: {repeated!r}"
        label = shown if len(shown) < NAME_WIDTH else f"{shown[: NAME_WIDTH - 2]}…"
        verdict = "yes" if cost <= HOSTILE_LIMIT else "NO"
        print(f"{label:<{NAME_WIDTH}}{cost:>10,.0f}{'':8}  <= {HOSTILE_LIMIT:<6g}{verdict}")
    if slow:
        print(f"{slow} texts take longer than that")
    return not slow


def _cost_of(text: str, dialect: str) -> float:
    """Nanoseconds of a character."""
    begun = process_time_ns()
    parse_text(text, dialect=dialect, tools=["ls"])
    return (process_time_ns() - begun) / len(text)


def main() -> int:
    known = examples()
    missing = [name for name in registry.names() if name not in known]
    quiet_gc()
    rows: list[Row] = []
    times: Times = {}
    for name, (text, tools) in known.items():
        more, measured_times = measure(name, text, tools)
        rows += more
        times |= measured_times
    print(f"One argument in pieces of {PIECE} characters; {len(known)} dialects, {ROUNDS} rounds.")
    print("Ratio: 100 kB to collecting and parsing once; 1 MB to 10 kB, each a character.\n")
    kept = table("dialects, one character", "ns", 1, rows, times)
    print()
    kept &= table("text without calls, one character", "ns", 1, *plain_text())
    print()
    kept &= hostile()
    if missing:
        print(f"\nnot measured: {', '.join(missing)}")
    return 0 if kept and not missing else 1


if __name__ == "__main__":
    sys.exit(main())
