"""How the suite runs: hypothesis profiles, markers, tests in an event loop, and what `make quick` chooses."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import signal
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants

from support.runs.quick_tests import is_left_out

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what it puts into the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = [
    "support.runs.run_folder",
    "support.runs.soak_counts",
    "support.javascript_clients",
    "support.hostile.killed_sessions",
    "llama.fixture",
]

settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],  # it looks at a clock
    print_blob=True,
)
settings.register_profile("quick", settings.get_profile("default"), max_examples=10)
settings.register_profile(
    "soak",
    deadline=None,
    max_examples=int(os.environ.get("SOAK_EXAMPLES", "5000")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.load_profile("default")

_NO_CONSTANTS = providers._local_constants
_constants_of_modules = providers._get_local_constants


def _constants() -> Constants:
    """Hypothesis also tries constants of the project's modules, of those that happen to be imported by then: with them
    the examples of a test would differ with the tests before it. Only the soak, which is random anyway, has them."""
    return _constants_of_modules() if settings.get_current_profile_name() == "soak" else _NO_CONSTANTS


providers._get_local_constants = _constants


QUICK_CASES = 20
"""How many cases of one test `make quick` runs, evenly chosen: some tests have a thousand."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--quick", action="store_true", help="the fast tests only, with a sample of the cases of each: make quick"
    )


def pytest_configure(config: pytest.Config) -> None:
    for line in (
        "law: a law of the design as a property; `make soak` runs it longer",
        "agents: runs a third-party coding agent; `make test-agents` runs it",
    ):
        config.addinivalue_line("markers", line)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """An `async def` test runs in an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    fixtures = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}
    asyncio.run(pyfuncitem.obj(**fixtures))
    return True


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    return True if config.getoption("quick") and is_left_out(collection_path) else None


def pytest_collection_finish() -> None:
    """What was collected, a gigabyte, stays: otherwise each full collection of garbage walks through it."""
    gc.collect()
    gc.freeze()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("quick"):
        return
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("law") is None:
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    chosen = {item for group in cases.values() for item in group[:: -(-len(group) // QUICK_CASES)]}
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = [item for item in items if item in chosen]
