"""Fuzzes the library and a gateway process with values of every type: only our own errors, no 500, no traceback.

    python scripts/fuzz_types.py --minutes 10              half of the time each
    python scripts/fuzz_types.py --minutes 2 --seed 7      the same documents again
    python scripts/fuzz_types.py --only 'gemini stream'    a part of the library alone

Each field of each protocol's requests, replies, streams and errors is replaced by a value of every other type, taken
out, repeated and wrapped; over HTTP for every address of the gateway and every target, and as an upstream's replies.
It ends when the time is over, and prints how many of the changes of single values it has tried; further ones are taken
at random. What is found is shown with the seed; the exit code is then 1. The documents are made by
`tests/support/hostile/type_fuzz.py`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Final

from soak_report import Part, write_part

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from support.hostile.type_fuzz import Run, fuzz_gateway, fuzz_library  # noqa: E402 - it is beside the tests

CLIENTS: Final = 2
"""Clients of the gateway at once."""


def show(name: str, run: Run) -> None:
    """Print what was tried and found, and how many of the changes of single values were tried in the time."""
    covered, total = run.covered
    print(
        f"{name:<26}{run.tried:>10,} inputs  {run.bytes:>14,} bytes  {covered:,} of {total:,} single changes "
        f"({covered / total:.0%})  {len(run.findings)} found  seed {run.seed}",
        flush=True,
    )
    for key, how in run.findings.items():
        print(f"  FOUND {key}\n    {how}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", help="only areas of the library whose names contain this, and no gateway")
    options = parser.parse_args()
    seconds, start = options.minutes * 60, time.monotonic()
    runs = {"library": fuzz_library(options.seed, seconds=seconds if options.only else seconds / 2, only=options.only)}
    show("types, library", runs["library"])
    if not options.only:
        with tempfile.TemporaryDirectory() as folder:
            runs["gateway"] = fuzz_gateway(Path(folder), options.seed, seconds=seconds / 2, clients=CLIENTS)
        show("types, gateway", runs["gateway"])
    again = f"python scripts/fuzz_types.py --minutes {options.minutes:g} --seed {options.seed}"
    write_part(
        Part(
            "types fuzzed",
            again,
            time.monotonic() - start,
            sum(len(run.findings) for run in runs.values()),
            inputs=sum(run.tried for run in runs.values()),
            bytes=sum(run.bytes for run in runs.values()),
            seed=str(options.seed),
        )
    )
    return 1 if any(run.findings for run in runs.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
