"""Waiting for what another thread or process does: it ends when that happens, and fails only if it never does."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

HANG_SECONDS: Final = 120.0
"""After which a test that waits is taken to hang. Nothing takes so long, on the busiest machine."""


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + HANG_SECONDS
    while not is_so():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
