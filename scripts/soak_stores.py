"""Soaks gateways that share a store on a server, while that is killed, slow, read-only or cut off, and they are killed.

    python scripts/soak_stores.py --minutes 10              on Postgres, then on Redis, the time split evenly
    python scripts/soak_stores.py --minutes 2 --seed 7      the same faults again (not the same moments)

Clients hold conversations that continue at another gateway than the one that stored their state.
`tests/support/hostile/store_checker.py` checks what they, the upstream and the store saw: nothing is lost, nothing
belongs to another client, no usage is counted twice, nothing is left open. What is wrong is printed, and the exit code
is then 1; the seed repeats the faults.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import pytest  # noqa: E402 - the servers say by it that they are not installed

from soak_report import Part, write_part  # noqa: E402
from support.hostile.store_checker import violations  # noqa: E402
from support.hostile.store_faults import SERVERS, Faults, url_of  # noqa: E402
from support.hostile.store_proxy import StoreProxy  # noqa: E402
from support.hostile.store_stage import stage  # noqa: E402
from support.store.servers import Server  # noqa: E402

STEPS: Final = 3
"""Of each client, between two faults and under each."""
FAULTS: Final = ("killed", "killed", "slow", "read_only", "held_then_released", "held_cut_and_refused")
GATEWAY: Final = "a gateway is killed"
ROUND_SECONDS: Final = 300.0
"""After which a stage is judged, and a new one begins: what is judged must fit into memory."""


def soak(
    kind: str, server: Server, folder: Path, seconds: float, draw: random.Random
) -> tuple[Counter[str], list[str]]:
    """Faults, one after the other, for so long; what was done, and what was wrong."""
    counts = Counter[str]()
    end = time.monotonic() + seconds
    url = url_of(kind, folder, server.port)
    with (
        StoreProxy(server.port) as proxy,
        stage(url_of(kind, folder, proxy.port), folder, direct=url, seed=f"soak{kind}") as held,
    ):
        faults = Faults(kind, server, proxy, held)
        while not counts or time.monotonic() < end:
            held.pass_by(STEPS)
            fault = draw.choice((*FAULTS, *[GATEWAY] * len(FAULTS)))
            counts[fault] += 1
            if fault == GATEWAY:
                held.kill(draw.choice(held.gateways))
            else:
                getattr(faults, fault)(STEPS)
        held.pass_by(STEPS)
        found = violations(held.end())
        counts["requests"] = sum(step.status != 0 for step in held.steps)
        counts["right"] = sum(step.status == 200 for step in held.steps)
    return counts, found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", action="append", choices=[*SERVERS], help="only this one; can be repeated")
    options = parser.parse_args(arguments)
    kinds = options.store or [*SERVERS]
    wrong = 0
    for kind in kinds:
        begun, counts, found = time.monotonic(), Counter[str](), list[str]()
        try:
            server = SERVERS[kind]()
        except pytest.skip.Exception as skipped:
            print(f"{kind}: left out, {skipped.msg}")
            continue
        seconds = options.minutes * 60 / len(kinds)
        print(f"==> soaking gateways on {kind} for {seconds / 60:.1f} minutes, seed {options.seed}", flush=True)
        draw = random.Random(f"{options.seed}/{kind}")  # noqa: S311 - not for a secret
        with contextlib.ExitStack() as ending:
            ending.callback(server.remove)
            while not counts or time.monotonic() - begun < seconds:
                folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="toolglot-stores-")))
                left = max(0.0, seconds - (time.monotonic() - begun))
                done, more = soak(kind, server, folder, min(left, ROUND_SECONDS), draw)
                counts += done
                found += more
        kills = counts[GATEWAY] + counts["killed"]
        ended = sum(counts[name] for name in set(FAULTS) - {"killed"})
        print(f"{kind:<10}" + ", ".join(f"{name} {count}" for name, count in sorted(counts.items())), flush=True)
        print("".join(f"  WRONG: {one}\n" for one in found[:20]), end="", flush=True)
        wrong += len(found)
        write_part(
            Part(
                f"gateways on {kind}",
                f"python scripts/soak_stores.py --minutes {options.minutes:g} --seed {options.seed}",
                time.monotonic() - begun,
                len(found),
                requests=counts["requests"],
                kills=kills,
                ended=ended,
                seed=str(options.seed),
            )
        )
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
