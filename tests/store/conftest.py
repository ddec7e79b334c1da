"""Fixtures of tests of stores: each test runs on every kind of store, or on every kind that lasts."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.store.opened_stores import LASTING, STORES, Use


@pytest.fixture(params=STORES)
def use(request: pytest.FixtureRequest, tmp_path: Path) -> Use:
    return Use(STORES[request.param], tmp_path)


@pytest.fixture(params=LASTING)
def use_lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Use:
    return Use(STORES[request.param], tmp_path)
