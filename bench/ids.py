"""What a canonical id and a projected id cost, next to the bare hash of the same bytes.

Ratios are measured in one run, in interleaved rounds, and the median counts: the machine may be busy.
Exits with 1 when a ratio is over its limit.
"""

from __future__ import annotations

import base64
import gc
import hashlib
import statistics
import sys
from collections.abc import Callable
from time import process_time_ns

from toolglot import ToolCall, ids, profiles

ROUNDS = 31
CALLS = 5_000

FIELDS = [("openai", f"call_{n:024}", "read_file", f"turn_{n}", n % 4) for n in range(CALLS)]
KEYS = ["|".join(map(str, fields)).encode() for fields in FIELDS]
MADE = [ToolCall(ids.canonical(*fields), "read_file") for fields in FIELDS]


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
    "bare sha256 + base64": (bare_hash, None),
    "ids.canonical": (canonical, 3.0),
    "projection to openai": (project("openai"), None),
    "projection to mistral": (project("mistral"), None),
    "projection to kimi k2": (project("kimi", "kimi-k2"), None),
}


def measure() -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in VARIANTS}
    gc.disable()
    for _ in range(ROUNDS):
        for name, (run, _) in VARIANTS.items():
            start = process_time_ns()
            run()
            times[name].append((process_time_ns() - start) / CALLS)
    gc.enable()
    return times


def main() -> int:
    times = measure()
    base = times["bare sha256 + base64"]
    failed = False
    print(f"{'ids':<24}{'ns each':>10}{'ratio':>8}{'limit':>8}")
    for name, (_, limit) in VARIANTS.items():
        ratio = statistics.median(one / other for one, other in zip(times[name], base, strict=True))
        over = limit is not None and ratio > limit
        failed |= over
        shown = f"{limit:.1f}" if limit is not None else ""
        print(f"{name:<24}{statistics.median(times[name]):>10.0f}{ratio:>8.2f}{shown:>8}{'  OVER' if over else ''}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
