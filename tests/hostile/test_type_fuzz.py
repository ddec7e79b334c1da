"""Every field of every protocol with a value of every other type: only our own errors, over the library and over HTTP.

`make soak` runs the same for longer (`scripts/fuzz_types.py`).
"""

from __future__ import annotations

from pathlib import Path

from support.hostile.fuzz_library import Area, finding
from support.hostile.type_fuzz import fuzz_gateway, fuzz_library

SEED = 20


def test_the_library_answers_values_of_any_type_with_its_own_errors_only() -> None:
    run = fuzz_library(SEED, count=1000)
    assert run.findings == {}


def test_the_gateway_answers_values_of_any_type_from_both_sides_without_failing(tmp_path: Path) -> None:
    run = fuzz_gateway(tmp_path, SEED, count=300)
    assert run.findings == {}


def _breaks(document: object, _: int) -> object:
    return document["a"] + 1  # type: ignore[index]


def test_the_fuzz_sees_an_error_that_is_not_ours() -> None:
    area = Area("planted", [{"a": 1}], _breaks)
    assert finding(area, {"a": 1}, 0) is None
    assert isinstance(finding(area, {"a": "x"}, 0), TypeError)
    assert isinstance(finding(area, {}, 0), KeyError)
