"""How the suite runs: hypothesis profiles, and markers that the strict configuration knows."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell starts what it puts into the background
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["llama.fixture", "run_folder"]

settings.register_profile(
    "default",
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],  # it looks at a clock
    print_blob=True,
)
settings.register_profile(
    "soak",
    deadline=None,
    max_examples=int(os.environ.get("SOAK_EXAMPLES", "5000")),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    print_blob=True,
)
settings.load_profile("default")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "law: a law of the design as a property; `make soak` runs it longer")
