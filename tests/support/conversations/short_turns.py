"""Turns in one line each, and what became of their calls."""

from __future__ import annotations

from toolglot import History, Text, ToolCall, ToolResult, Turn


def assistant(*raw_ids: str, name: str = "read") -> Turn:
    return Turn("assistant", tuple(ToolCall(raw, name, {"n": n}) for n, raw in enumerate(raw_ids)))


def results(*pairs: tuple[str, str], name: str = "") -> Turn:
    return Turn("tool", tuple(ToolResult(raw, output, name=name) for raw, output in pairs))


def user(text: str = "go on") -> Turn:
    return Turn("user", (Text(text),))


def history_of(*turns: Turn, provider: str = "openai") -> History:
    history = History(provider=provider)
    history.extend(turns)
    return history


def answers(history: History) -> list[tuple[str | None, str | None]]:
    """Raw id and result text of every call, in order."""
    return [
        (
            found.call.metadata.raw_id if found.call.metadata else None,
            found.result.text if found.result else None,
        )
        for found in history.ledger
    ]
