"""A plugin of pytest for `make soak`: counts examples of property tests and kills for the table.

It does something where `SOAK_PART` names the part of the soak that the run is (see scripts/soak_report.py).
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

sys.path.append(str(Path(__file__).parents[3] / "scripts"))

from soak_report import Part, write_part

EXAMPLES = "hypothesis examples"
KILLS = "kills"
"""Properties that tests record: what they did."""
TRIED = re.compile(r"(\d+) (?:passing|failing|invalid)")


def examples_in(statistics: str) -> int:
    """How many examples hypothesis says that it has tried, valid ones and others."""
    return sum(int(count) for count in TRIED.findall(statistics))


class Counting:
    """Of a whole run, in the process that has the workers."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._begun = time.monotonic()
        self._examples = 0
        self._kills = 0
        self._failed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._failed += report.failed
        counted = [(name, int(str(value))) for name, value in report.user_properties if name in (EXAMPLES, KILLS)]
        self._examples += sum(value for name, value in counted if name == EXAMPLES)
        if report.when == "teardown":  # a test's own properties are in the report of each of its phases
            self._kills += sum(value for name, value in counted if name == KILLS)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        seed = self._config.getoption("--hypothesis-seed", None) or ""
        wanted = os.environ.get("SOAK_EXAMPLES", "")
        prefix = f"SOAK_EXAMPLES={wanted} " if wanted else ""
        laws = f"{prefix}pytest -n auto -m law --hypothesis-profile=soak --hypothesis-seed={seed or 'random'}"
        command = os.environ.get("SOAK_COMMAND", laws)
        wrong = max(self._failed, int(exitstatus != 0))
        seconds = time.monotonic() - self._begun
        seed = seed or os.environ.get("HOSTILE_SEED", "")
        name, examples, kills = os.environ["SOAK_PART"], self._examples, self._kills
        write_part(Part(name, command, seconds, wrong, examples=examples, kills=kills, seed=str(seed)))


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.Item, None]:
    outcome = yield
    report: pytest.TestReport = outcome.get_result()  # type: ignore[attr-defined]
    statistics = getattr(item, "hypothesis_statistics", "")
    if report.when == "teardown" and statistics:
        own = [] if EXAMPLES in dict(report.user_properties) else [(EXAMPLES, examples_in(statistics))]
        report.user_properties = [*report.user_properties, *own]


def pytest_configure(config: pytest.Config) -> None:
    if os.environ.get("SOAK_PART") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Counting(config), "soak counting")
