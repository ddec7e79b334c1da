"""The results of `make soak` as one table: each part writes a file, and this reads them all.

    python scripts/soak_report.py                 the table; exit code 1 if anything was wrong
    python scripts/soak_report.py --docs          also writes it into docs/reliability.md
    python scripts/soak_report.py --clear         removes the files of an earlier soak

A part calls `write_part` at its end. Law: a figure is counted by the part that did the work, none is estimated here; a
part that ended without its file is missing from the table, and `--parts` makes that an error.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PARTS: Final = ROOT / "build" / "soak" / "parts"
PAGE: Final = ROOT / "docs" / "reliability.md"
BEGIN: Final = "<!-- soak: written by scripts/soak_report.py -->"
END: Final = "<!-- end of soak -->"
MAX_GROWTH: Final = 0.05
"""How much the memory of a gateway may grow between the end of its warm-up and its end."""
MIN_WARM_SECONDS: Final = 300.0
"""Memory is judged after this warm-up: caches are bounded, and take minutes to be full."""


@dataclass(frozen=True)
class Part:
    """What one part of a soak did."""

    name: str
    command: str
    """The command that repeats it, seeds included."""
    seconds: float
    wrong: int
    examples: int = 0
    """Of property tests."""
    inputs: int = 0
    bytes: int = 0
    """Fuzzed: inputs, and how long they were together."""
    requests: int = 0
    kills: int = 0
    """Processes that were ended by SIGKILL."""
    ended: int = 0
    """Processes that were ended by SIGTERM, and other faults of servers."""
    warm_mb: float = 0.0
    end_mb: float = 0.0
    """Resident memory of the gateway after warm-up and at the end; 0: not measured."""
    warm_seconds: float = 0.0
    """How long it warmed up."""
    seed: str = ""
    machine: str = ""
    at: float = field(default=0.0)
    """When it ended, in seconds since 1970."""

    @property
    def growth(self) -> float:
        return self.end_mb / self.warm_mb - 1 if self.warm_mb else 0.0

    @property
    def is_wrong(self) -> bool:
        return bool(self.wrong) or self.grew

    @property
    def grew(self) -> bool:
        """Whether its memory grew by more than `MAX_GROWTH`, if it was warm for long enough."""
        return self.warm_seconds >= MIN_WARM_SECONDS and self.growth > MAX_GROWTH


def write_part(part: Part, folder: Path | None = None) -> None:
    """Write the results of a part for the table; `SOAK_PARTS` names another folder."""
    folder = folder or Path(os.environ.get("SOAK_PARTS", str(PARTS)))
    folder.mkdir(parents=True, exist_ok=True)
    fields = asdict(part) | {"machine": part.machine or machine(), "at": part.at or time.time()}
    (folder / f"{part.name.replace(' ', '-')}.json").write_text(json.dumps(fields, indent=1) + "\n")


def machine() -> str:
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, CPython {platform.python_version()}"


def read_parts(folder: Path) -> list[Part]:
    """In the order in which they ended."""
    found = [Part(**json.loads(path.read_text())) for path in folder.glob("*.json")]
    return sorted(found, key=lambda part: (part.at, part.name))


# --- the table --------------------------------------------------------------------------------------

HEAD: Final = (
    "part",
    "time",
    "examples",
    "inputs",
    "bytes fuzzed",
    "requests",
    "kills",
    "ended",
    "wrong",
    "memory",
    "seed",
)


def rows(parts: Sequence[Part]) -> list[tuple[str, ...]]:
    """The table without its head; the last row is the sum."""
    sums = {name: sum(getattr(part, name) for part in parts) for name in ("examples", "inputs", "bytes", "requests")}
    total = Part(
        "together",
        "",
        sum(part.seconds for part in parts),
        sum(part.wrong for part in parts),
        **sums,
        kills=sum(part.kills for part in parts),
        ended=sum(part.ended for part in parts),
    )
    return [_row(part) for part in (*parts, total)]


def _row(part: Part) -> tuple[str, ...]:
    counts = (part.examples, part.inputs, part.bytes, part.requests, part.kills, part.ended)
    memory = f"{part.warm_mb:.1f} → {part.end_mb:.1f} MB ({part.growth:+.1%})" if part.warm_mb else ""
    if part.warm_mb and part.warm_seconds < MIN_WARM_SECONDS:
        memory = f"{memory}, not judged: warm for {part.warm_seconds:.0f} s"
    return (
        part.name,
        _time(part.seconds),
        *(f"{count:,}" if count else "" for count in counts),
        str(part.wrong),
        memory,
        part.seed,
    )


def _time(seconds: float) -> str:
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"


def plain_table(parts: Sequence[Part]) -> str:
    """For a terminal."""
    table = [HEAD, *rows(parts)]
    widths = [max(len(row[column]) for row in table) for column in range(len(HEAD))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    )


def page_text(parts: Sequence[Part]) -> str:
    """For docs/reliability.md: the table, when and where it was made, and how to repeat each part."""
    lines = ["| " + " | ".join(HEAD) + " |", "|" + "---|" * len(HEAD)]
    lines += ["| " + " | ".join(row) + " |" for row in rows(parts)]
    ended = time.strftime("%Y-%m-%d", time.gmtime(max(part.at for part in parts)))
    where = ", ".join(dict.fromkeys(part.machine for part in parts))
    minutes = sum(part.seconds for part in parts) / 60
    summary = f"{minutes:.0f} minutes, ended on {ended}; {where}."
    again = [f"{part.command}" for part in parts if part.command]
    return "\n".join(
        [summary, "", *lines, "", f"<!-- not run: it takes {minutes:.0f} minutes -->", "```sh", *again, "```"]
    )


def write_page(parts: Sequence[Part], page: Path = PAGE) -> None:
    text = page.read_text()
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    page.write_text(f"{head}{BEGIN}\n\n{page_text(parts)}\n\n{END}{tail}")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(os.environ.get("SOAK_PARTS", str(PARTS))))
    parser.add_argument("--docs", action="store_true", help="write the table into docs/reliability.md")
    parser.add_argument("--clear", action="store_true", help="remove the files of an earlier soak")
    parser.add_argument("--parts", type=int, default=1, help="how many parts there must be")
    options = parser.parse_args(arguments)
    if options.clear:
        for path in options.folder.glob("*.json"):
            path.unlink()
        return 0
    parts = read_parts(options.folder)
    if len(parts) < options.parts:
        print(f"{options.folder} has {len(parts)} parts of a soak, not {options.parts}: one failed or was not run")
        return 1
    print(plain_table(parts))
    for part in parts:
        if part.grew:
            print(f"WRONG: {part.name}: memory grew by {part.growth:.1%} after warm-up, more than {MAX_GROWTH:.0%}")
        if part.wrong:
            print(f"WRONG: {part.name}: {part.wrong} times; again: {part.command}")
    if options.docs:
        write_page(parts)
    return int(any(part.is_wrong for part in parts))


if __name__ == "__main__":
    sys.exit(main())
