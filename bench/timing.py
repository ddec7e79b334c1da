"""How the benches measure: CPU time of the process, rounds in turn, ratios of the same round, and their median.

The machine may be busy and its clock may change: a ratio of two things measured one right after the other hardly
notices, an absolute time does. Runs in the environments of the peers too: only the standard library.
"""

from __future__ import annotations

import gc
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from time import process_time_ns
from typing import Final

Times = dict[str, list[float]]

NAME_WIDTH: Final = 46


def quiet_gc() -> None:
    """Collect no garbage while something is measured, and never what exists by now."""
    gc.collect()
    gc.freeze()
    gc.disable()


def spent(run: Callable[[], object], calls: int) -> float:
    """Nanoseconds of CPU that one of `calls` calls took.

    Collecting their garbage is not part of it, nor are cold caches: some calls go before, untimed."""
    for _ in range(calls // 3 + 1):
        run()
    start = process_time_ns()
    for _ in range(calls):
        run()
    each = (process_time_ns() - start) / calls
    gc.collect()
    return each


def timed(run: Callable[[], object], calls: int) -> Callable[[], float]:
    """One round of `run`."""
    return lambda: spent(run, calls)


def in_turn(rounds: int, variants: dict[str, Callable[[], float]]) -> Times:
    """The times of every variant, one a round; each round begins with another one, so that none is always first."""
    times: Times = {name: [] for name in variants}
    names = list(variants)
    for number in range(rounds):
        start = number % len(names)
        for name in names[start:] + names[:start]:
            times[name].append(variants[name]())
    return times


@dataclass(frozen=True)
class Row:
    """One line of a table: `name` takes `ratio` times as long as `base`; `max_ratio` and `min_ratio` are its limits."""

    name: str
    base: str = ""
    max_ratio: float | None = None
    min_ratio: float | None = None
    missing: str = ""
    """Why it was not measured."""
    excused: bool = False
    """Whether that is accepted."""

    def ratio(self, times: Times) -> float:
        pairs = zip(times[self.name], times[self.base], strict=True)
        return statistics.median(one / other for one, other in pairs)

    def limit(self) -> str:
        if self.max_ratio is not None:
            return f"<= {self.max_ratio:g}"
        return f">= {self.min_ratio:g}" if self.min_ratio is not None else ""

    def verdict(self, times: Times) -> bool | None:
        """Whether the limit is kept; None if there is none."""
        if self.max_ratio is None and self.min_ratio is None:
            return None
        if self.missing:
            return None if self.excused else False
        ratio = self.ratio(times)
        return (self.max_ratio is None or ratio <= self.max_ratio) and (
            self.min_ratio is None or ratio >= self.min_ratio
        )


def table(title: str, unit: str, scale: float, rows: Iterable[Row], times: Times) -> bool:
    """Print the rows, times divided by `scale`. Returns whether every limit is kept."""
    kept = True
    print(f"{title:<{NAME_WIDTH}}{unit:>10}{'ratio':>8}  {'limit':<9}ok")
    for row in rows:
        verdict = row.verdict(times)
        kept &= verdict is not False
        shown = {True: "yes", False: "NO", None: ""}[verdict]
        if row.missing:
            print(f"{row.name:<{NAME_WIDTH}}{'-':>10}{'-':>8}  {row.limit():<9}{shown}  not measured: {row.missing}")
            continue
        ratio = f"{row.ratio(times):.2f}" if row.base else ""
        median = statistics.median(times[row.name]) / scale
        print(f"{row.name:<{NAME_WIDTH}}{median:>10,.0f}{ratio:>8}  {row.limit():<9}{shown}".rstrip())
    return kept
