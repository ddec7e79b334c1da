"""Stores that fail and tools that count their runs, for sessions."""

from __future__ import annotations

from typing import Any

from toolglot import ToolResult
from toolglot.history.history import History as Kept

OPENAI = "openai/gpt-4.1"
PAYING: dict[str, Any] = {
    "rules": [
        {"when": {"results": 0}, "reply": {"calls": [{"name": "pay", "arguments": {"to": "bob"}}]}},
        {"reply": {"text": "ok"}},
    ]
}


def results_of(history: Kept) -> dict[str, list[ToolResult]]:
    found: dict[str, list[ToolResult]] = {call.id: [] for turn in history.turns for call in turn.calls}
    for turn in history.turns:
        for result in turn.results:
            found[result.call_id].append(result)
    return found


def assert_in_order(history: Kept) -> None:
    """Every call has its one result, and no turn is in flight."""
    assert [len(tool_result) for tool_result in results_of(history).values()] == [1] * len(results_of(history))
    assert history.in_flight is None
    assert history.ledger.pending == ()
