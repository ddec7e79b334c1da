"""What `make quick` leaves out is there: a test file that was renamed is not forgotten in its lists."""

from __future__ import annotations

from support.runs.quick_tests import SERVERS, SLOW, TESTS, is_left_out


def test_each_pattern_matches_a_test_file() -> None:
    assert [pattern for pattern in (*SERVERS, *SLOW) if not any(TESTS.glob(pattern))] == []


def test_files_are_left_out_by_their_path() -> None:
    assert is_left_out(TESTS / "hostile" / "test_garbage.py")
    assert is_left_out(TESTS / "runtime" / "mcp" / "test_runtime_mcp.py")
    assert not is_left_out(TESTS / "test_names.py")
