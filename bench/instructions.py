"""How many instructions typical work takes, which does not depend on the neighbours: against the counts of before.

valgrind counts what one process executes (Debian: `apt-get install valgrind`). The counts of the same tree differ by
less than a hundredth: strings hash the same, no garbage is collected, and every path has run before it is counted.
A path that takes a tenth more than in `instructions.json` breaks its limit. Whoever wants that, or made it faster,
writes the counts anew:

    python bench/instructions.py --renew

Counts of another Python, msgspec or processor architecture cannot be compared, and are only shown. Exits with 1 when a
limit is broken, or nothing could be counted.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import toolglot
from agent_body import agent_body
from gateway_traffic import MODEL, events, reply, request
from timing import NAME_WIDTH

REFERENCE: Final = Path(__file__).with_suffix(".json")
LIMIT: Final = 1.10
WARM_UP: Final = 3
TOLERANCE: Final = 0.01
"""Two runs of one tree differ by less than this."""

_PROSE: Final = "The settlement is rounded down {here}; `ledger.py` has it twice.\n" * 60
_CALL: Final = '<tool_call>{"name": "read_file", "arguments": {"path": "src/ledger/settlement.py"}}</tool_call>'
_TOTALS: Final = re.compile(r"^(?:totals|summary): (\d+)", re.MULTILINE)


def paths() -> dict[str, Callable[[], object]]:
    """What is counted."""
    short, long = request(stream=False), agent_body(36)
    answer, pieces = reply(), events()
    chat = toolglot.convert(short, source="anthropic", target="openai", model="gpt-4.1")

    def stream() -> None:
        translator = toolglot.StreamTranslator(source="openai", target="anthropic", request=chat)
        for piece in pieces:
            translator.feed(piece)
        translator.finish()

    def convert(body: bytes) -> Callable[[], object]:
        return lambda: toolglot.convert(body, source="anthropic", target="openai", model="gpt-4.1").data

    return {
        f"convert a request, {len(short) // 1000} kB": convert(short),
        f"convert a request, {len(long) // 1000} kB": convert(long),
        "convert a reply": lambda: (
            toolglot.convert_reply(answer, source="openai", target="anthropic", request=chat).data
        ),
        f"translate a stream, {len(pieces)} events": stream,
        f"parse_text, {(len(_PROSE) + len(_CALL)) // 1000} kB, auto": lambda: toolglot.parse_text(
            _PROSE + _CALL, tools=["read_file"], model=MODEL
        ),
        f"lint a request, {len(long) // 1000} kB": lambda: toolglot.lint(long, target="anthropic"),
    }


# --- the process that is counted --------------------------------------------------------------------


def run_paths() -> None:
    """Each path in turn, between two marks. `getppid` is the mark: valgrind writes a count whenever it is called."""
    made = paths()
    for run in made.values():
        for _ in range(WARM_UP):
            run()
    gc.collect()
    gc.freeze()
    gc.disable()
    for run in made.values():
        os.getppid()
        run()
    os.getppid()


# --- counting ---------------------------------------------------------------------------------------


def count() -> dict[str, int]:
    """The instructions of each path."""
    program = shutil.which("valgrind")
    if program is None:
        raise SystemExit("valgrind is not installed (Debian: apt-get install valgrind)")
    with tempfile.TemporaryDirectory() as name:
        out = Path(name) / "counts"
        options = ("--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={out}", "--quiet")
        environ = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "LC_ALL")}
        done = subprocess.run(  # noqa: S603 - this very file
            [program, *options, sys.executable, __file__, "--run"],
            env={**environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"},
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        dumps = sorted(Path(name).glob("counts.*"), key=lambda file: int(file.suffix[1:]))
        counts = [sum(map(int, _TOTALS.findall(file.read_text())[:1])) for file in dumps]
    names = list(paths())
    if done.returncode or len(counts) < len(names) + 1:
        raise SystemExit(f"valgrind counted nothing: {done.stderr.strip()[-300:]}")
    return dict(zip(names, counts[1:], strict=False))  # before the first mark: the start, and warming up


def machine() -> dict[str, str]:
    """What the counts depend on, besides the tree."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return {"python": python, "msgspec": version("msgspec"), "machine": platform.machine()}


def compare(counts: dict[str, int], reference: dict[str, Any]) -> bool:
    """Print the counts next to those of before. Returns whether every limit is kept."""
    own, before = machine(), reference["counts"]
    is_same = own == reference["machine"]
    kept = True
    print(f"{'instructions':<{NAME_WIDTH}}{'count':>14}{'ratio':>8}  {'limit':<9}ok")
    for name, value in counts.items():
        known = before.get(name) if is_same else None
        if known is None:
            print(f"{name:<{NAME_WIDTH}}{value:>14,}")
            kept &= not is_same
            continue
        is_kept = value <= LIMIT * known
        kept &= is_kept
        print(
            f"{name:<{NAME_WIDTH}}{value:>14,}{value / known:>8.3f}  {f'<= {LIMIT:g}':<9}{'yes' if is_kept else 'NO'}"
        )
    if not is_same:
        print(
            f"\nnot compared: the counts of before are of {reference['machine']}, these of {own}; --renew writes them"
        )
    elif not kept:
        print("\na path takes more, or is new: python bench/instructions.py --renew, if that is wanted")
    return kept


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--renew", action="store_true", help=f"write the counts to {REFERENCE.name}")
    options.add_argument("--run", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.run:
        run_paths()
        return 0
    counts = count()
    if chosen.renew:
        made = {"machine": machine(), "counts": counts}
        REFERENCE.write_text(json.dumps(made, indent=2) + "\n", encoding="utf-8")
    return 0 if compare(counts, json.loads(REFERENCE.read_text(encoding="utf-8"))) else 1


if __name__ == "__main__":
    sys.exit(main())
