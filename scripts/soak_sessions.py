"""Kills sessions, a thousand times: no committed turn is lost, no call runs twice, whichever store they are on.

    python scripts/soak_sessions.py --kills 1000              on SQLite, Postgres and Redis, as far as installed
    python scripts/soak_sessions.py --kills 50 --seed 7       the same draws again (not the same moments)

Each session is killed (SIGKILL) at drawn moments until its work is done, taken over by the next process each time, and
checked by it: `tests/support/hostile/kill_target.py` says what is checked. The servers are the tests' own, and end with
this script.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

import pytest  # noqa: E402 - the servers say by it that they are not installed

from soak_report import Part, write_part  # noqa: E402
from support.hostile.killed_sessions import MOST_RUNS, Forks  # noqa: E402
from support.store.servers import postgres, postgres_url, redis, redis_url  # noqa: E402

URLS: Final[dict[str, Callable[[Path], str]]] = {
    "sqlite": lambda _: "",
    "postgres": postgres_url,
    "redis": redis_url,
}
MEASURED: Final = 3
"""Sessions that run without a kill first: how long they take bounds the moments that are drawn."""


def installed_stores(names: Sequence[str]) -> list[str]:
    """The stores that can be used here."""
    found = []
    servers = {"postgres": postgres, "redis": redis}
    for name in names:
        try:
            if name in servers:
                servers[name]()
            found.append(name)
        except pytest.skip.Exception as skipped:
            print(f"{name}: left out, {skipped.msg}")
    return found


def kill_sessions(forks: Forks, folder: Path, store: str, kills: int, draw: random.Random) -> Counter[str]:
    """Sessions on one store, one after the other, until there were so many kills."""
    counts = Counter[str]()
    begun, number, length = forks.kills, 0, 60.0
    while forks.kills - begun < kills:
        session_folder = folder / f"{store}-{number}"
        session_folder.mkdir()
        address = URLS[store](session_folder)
        if number < MEASURED:
            length = min(length, forks.run(session_folder, store=address).seconds)
        else:
            for _ in range(MOST_RUNS):
                counts["processes"] += 1
                if not forks.run(session_folder, store=address, kill_after=draw.uniform(0, length)).was_killed:
                    break
            if forks.run(session_folder, store=address).was_killed:
                raise AssertionError(f"{session_folder}: a process was killed, and not by this script")
        counts["sessions"] += 1
        number += 1
    counts["kills"] = forks.kills - begun
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=1000, help="in all, shared between the stores")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--store", action="append", choices=[*URLS], help="only this one; can be repeated")
    options = parser.parse_args(arguments)
    begun, wrong, kills = time.monotonic(), 0, 0
    stores = installed_stores(options.store or [*URLS])
    print(f"==> killing sessions {options.kills} times on {', '.join(stores)}, seed {options.seed}", flush=True)
    try:
        with tempfile.TemporaryDirectory(prefix="toolglot-kills-") as name:
            forks = Forks()
            try:
                for store in stores:
                    draw = random.Random(f"{options.seed}/{store}")  # noqa: S311 - not for a secret
                    try:
                        counts = kill_sessions(forks, Path(name), store, -(-options.kills // len(stores)), draw)
                    except AssertionError as error:
                        wrong += 1
                        print(f"{store}: WRONG: {error}", flush=True)
                        continue
                    kills += counts["kills"]
                    print(f"{store:<10}{counts['kills']:>6} kills of {counts['sessions']} sessions", flush=True)
            finally:
                forks.end()
    finally:
        for server in (postgres, redis):
            if server.cache_info().currsize:
                server().remove()
    spent = time.monotonic() - begun
    again = f"python scripts/soak_sessions.py --kills {options.kills} --seed {options.seed}"
    write_part(Part("sessions killed", again, spent, wrong, kills=kills, seed=str(options.seed)))
    print(f"{kills} kills in {spent:.0f} s, {kills / spent:.1f} a second, {wrong} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
