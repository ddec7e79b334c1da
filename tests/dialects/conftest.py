"""Fixtures of the tests of dialects."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from toolglot.dialects import registry


@pytest.fixture
def clean_registry() -> Iterator[None]:
    """Forget the dialects that the test registers, so that no other test reads texts with them."""
    before = dict(registry._OWN)
    yield
    registry._OWN.clear()
    registry._OWN.update(before)
