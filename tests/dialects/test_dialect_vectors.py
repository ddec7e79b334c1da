"""What every dialect reads: written examples, each read whole and in every way that it can be cut."""

from __future__ import annotations

from typing import Any

import pytest

from support.dialects.vectors import check_vector, vectors
from toolglot.dialects import registry

FEWEST = 15


CASES = [pytest.param(dialect, vector, tools, id=f"{dialect}-{vector['name']}") for dialect, vector, tools in vectors()]


@pytest.mark.parametrize(("dialect", "vector", "tools"), CASES)
def test_a_dialect_is_read_as_it_is_meant_however_it_is_cut(
    dialect: str, vector: dict[str, Any], tools: list[Any]
) -> None:
    check_vector(dialect, vector, tools)


def test_every_dialect_has_its_examples() -> None:
    counts = dict.fromkeys(
        (name for name in registry.names() if not name.startswith("own_")), 0
    )  # others are of other tests
    for dialect, _, _ in vectors():
        counts[dialect] += 1
    assert {name: count for name, count in counts.items() if count < FEWEST} == {}
