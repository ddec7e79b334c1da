"""What a canonical id and a projected id cost, next to the bare hash of the same bytes.

Exits with 1 when a ratio is over its limit.
"""

from __future__ import annotations

import base64
import hashlib
import sys
from collections.abc import Callable

from timing import Row, in_turn, quiet_gc, table, timed
from toolglot import ToolCall, profiles
from toolglot.conversation import ids

ROUNDS = 31
CALLS = 5_000

FIELDS = [("openai", f"call_{n:024}", "read_file", f"turn_{n}", n % 4) for n in range(CALLS)]
KEYS = ["|".join(map(str, fields)).encode() for fields in FIELDS]
MADE = [ToolCall(ids.canonical(*fields), "read_file") for fields in FIELDS]
BASE = "bare sha256 + base64"


def bare_hash() -> None:
    for key in KEYS:
        base64.urlsafe_b64encode(hashlib.sha256(key).digest())


def canonical() -> None:
    for fields in FIELDS:
        ids.canonical(*fields)


def project(target: str, model: str = "") -> Callable[[], None]:
    profile = profiles.get(target, model)

    def run() -> None:
        projection = ids.Projection(profile)
        for call in MADE:
            projection.add(call)

    return run


VARIANTS: dict[str, tuple[Callable[[], None], float | None]] = {
    BASE: (bare_hash, None),
    "ids.canonical": (canonical, 3.0),
    "projection to openai": (project("openai"), None),
    "projection to mistral": (project("mistral"), None),
    "projection to kimi k2": (project("kimi", "kimi-k2"), None),
}


def main() -> int:
    quiet_gc()
    times = in_turn(ROUNDS, {name: timed(run, 1) for name, (run, _) in VARIANTS.items()})
    rows = [Row(name, BASE, max_ratio=limit) for name, (_, limit) in VARIANTS.items()]
    return 0 if table("ids", "ns each", CALLS, rows, times) else 1


if __name__ == "__main__":
    sys.exit(main())
