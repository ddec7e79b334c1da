"""What `lint`, `repair` and `convert` of a transcript of 50 MB take, next to reading and writing its JSON.

The floor is an untyped read and write of the same bytes by msgspec. The transcript is a coding agent's, in one request.
The same through the command line, in a process of its own: its CPU time, without that of a start, and its memory. The
floor of that is a process too, which reads the file, parses it, and writes it.
A tenth of the transcript shows that the work grows with its length. Exits with 1 when a limit is broken.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

import toolglot
from agent_body import agent_body
from timing import NAME_WIDTH, Row, in_turn, quiet_gc, table, timed

MESSAGES: Final = 17_600
ROUNDS: Final = 5
COMMAND_ROUNDS: Final = 2
FLOOR_LIMIT: Final = 4.0
GROWTH_LIMIT: Final = 1.3
"""A character of the whole to one of a tenth. More cannot be the work: only memory fresh from the system is."""
MEMORY_LIMIT: Final = 12.0
"""Times the size of the file."""

FLOOR: Final = "json only: read + write"
READ_AND_WRITE: Final = (
    "import msgspec, sys\n"
    "with open(sys.argv[1], 'rb') as file: value = msgspec.json.decode(file.read())\n"
    "sys.stdout.buffer.write(msgspec.json.encode(value))"
)
TOOLGLOT: Final = ("-m", "toolglot")
COMMANDS: Final[dict[str, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "a process: read + write": (("-c", READ_AND_WRITE), ()),
    "toolglot lint": ((*TOOLGLOT, "lint"), ("--for", "anthropic", "--quiet")),
    "toolglot repair": ((*TOOLGLOT, "repair"), ("--for", "anthropic", "--quiet")),
    "toolglot convert": ((*TOOLGLOT, "convert"), ("--to", "openai@gpt-4.1", "--quiet")),
}
"""What comes before the file, and behind it."""


def work(body: bytes) -> dict[str, Callable[[], object]]:
    return {
        FLOOR: lambda: msgspec.json.encode(msgspec.json.decode(body)),
        "lint": lambda: toolglot.lint(body, target="anthropic"),
        "repair": lambda: toolglot.repair(body, target="anthropic").data,
        "convert": lambda: toolglot.convert(body, source="anthropic", target="openai", model="gpt-4.1").data,
        "convert to gemini": lambda: (
            toolglot.convert(body, source="anthropic", target="gemini", model="gemini-2.5-pro").data
        ),
    }


def command(file: Path, words: tuple[tuple[str, ...], tuple[str, ...]]) -> tuple[float, int]:
    """CPU nanoseconds of a command, and the most memory that it had at once, in bytes."""
    with Path(os.devnull).open("w") as nowhere:
        process = subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, *words[0], str(file), *words[1]], stdout=nowhere, stderr=nowhere
        )
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise SystemExit(f"{' '.join(words[0])} ended with {process.returncode}")
    return (used.ru_utime + used.ru_stime) * 1e9, used.ru_maxrss * 1024


def measure_commands(body: bytes) -> bool:
    """The same as commands, on a file. Returns whether every limit is kept."""
    memory = dict.fromkeys(COMMANDS, 0.0)
    with tempfile.TemporaryDirectory() as name:
        small, large = Path(name) / "small.json", Path(name) / "large.json"
        small.write_bytes(agent_body(4))
        large.write_bytes(body)

        def run(kind: str) -> float:
            start, _ = command(small, COMMANDS[kind])
            spent, most = command(large, COMMANDS[kind])
            memory[kind] = max(memory[kind], most / len(body))
            return spent - start

        times = in_turn(COMMAND_ROUNDS, {kind: (lambda kind=kind: run(kind)) for kind in COMMANDS})  # type: ignore[misc]
    floor, *kinds = COMMANDS
    kept = table("a command, without its start", "ms", 1e6, [Row(floor), *_limited(kinds, floor)], times)
    print(f"\n{'memory of the command':<{NAME_WIDTH}}{'x file':>10}{'':8}  limit    ok")
    for kind, ratio in memory.items():
        is_kept = ratio <= MEMORY_LIMIT
        kept &= is_kept
        print(f"{kind:<{NAME_WIDTH}}{ratio:>10.1f}{'':8}  <= {MEMORY_LIMIT:<6g}{'yes' if is_kept else 'NO'}")
    return kept


def _limited(names: list[str], floor: str) -> list[Row]:
    return [Row(name, floor, max_ratio=FLOOR_LIMIT) for name in names]


def main() -> int:
    body, tenth = agent_body(MESSAGES), agent_body(MESSAGES // 10)
    whole, part = work(body), work(tenth)
    for run in part.values():
        run()
    quiet_gc()
    times = in_turn(ROUNDS, {name: timed(run, 1) for name, run in whole.items()})
    shorter = {f"{name}, {len(tenth) / 1e6:.0f} MB": timed(run, 10) for name, run in part.items()}
    times |= in_turn(ROUNDS, shorter)
    print(f"A transcript of {len(body) / 1e6:.1f} MB in one request; {ROUNDS} rounds.\n")
    rows = [Row(FLOOR), *_limited([name for name in whole if name != FLOOR], FLOOR)]
    kept = table("transcript", "ms", 1e6, rows, times)
    print()
    scaled = {name: [each * len(body) / len(tenth) for each in times[name]] for name in shorter}
    growth = [
        Row(name, short, max_ratio=GROWTH_LIMIT) for name, short in zip(whole, shorter, strict=True) if name != FLOOR
    ]
    kept &= table("to ten times a tenth", "ms", 1e6, growth, times | scaled)
    print()
    return 0 if measure_commands(body) & kept else 1


if __name__ == "__main__":
    sys.exit(main())
