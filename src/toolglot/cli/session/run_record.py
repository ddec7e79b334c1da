"""What happened in a run, for other programs: one document in the end, or a line for each event.

{"answer": "…", "stop": "stop", "model": "…", "session": "…", "usage": {…}, "cost_usd": 0.01, "calls": […], …}
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import msgspec

from toolglot.cli.screen.transcript_view import text_of
from toolglot.conversation import Text, ToolCall, ToolResult, Usage
from toolglot.conversation.report import Entry
from toolglot.runtime.scheduler.call_states import FINAL, CallChange
from toolglot.runtime.session.events import (
    Answer,
    Asking,
    CallChanged,
    CallSeen,
    Compressed,
    Dropped,
    Event,
    Said,
    Switched,
    Thought,
    Told,
    TurnKept,
)


class RunRecord:
    """Takes in events; `document` has what came of them."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._calls: dict[str, dict[str, Any]] = {}
        self._starts: dict[str, float] = {}
        self._dropped: list[dict[str, Any]] = []
        self._switched: list[dict[str, Any]] = []
        self._told: list[Entry] = []

    def take(self, event: Event) -> None:
        match event:
            case CallChanged():
                self._change(event.change)
            case Dropped():
                self._dropped.append(_told_event(event))
            case Switched():
                self._switched.append(_told_event(event))
            case Told():
                self._told.append(event.entry)
            case _:
                pass

    def _change(self, change: CallChange) -> None:
        call = change.call
        kept = self._calls.setdefault(call.id, {"id": call.id, "name": call.name, "arguments": call.arguments})
        kept["state"] = change.state
        kept.setdefault("attempts", 0)
        if change.state == "executing":
            kept["attempts"] = change.attempt
            self._starts.setdefault(call.id, self._clock())
        if change.state in FINAL and change.result is not None:
            start = self._starts.get(call.id)
            kept["seconds"] = round(self._clock() - start, 3) if start is not None else None
            kept |= _told_result(change.result)

    def document(self, answer: Answer, *, session: str | None, simulated: bool, reason: str = "") -> dict[str, Any]:
        """All of it."""
        failure = answer.failure
        return {
            "answer": answer.text,
            "stop": answer.stop,
            "reason": reason,
            "model": answer.model,
            "simulated": simulated,
            "session": session,
            "usage": _usage(answer.usage),
            "cost_usd": None if simulated or answer.cost is None else float(answer.cost),
            "seconds": round(self._clock() - self._began, 3),
            "calls": list(self._calls.values()),
            "failure": None if failure is None else _failure(failure),
            "dropped": self._dropped,
            "switched": self._switched,
            "report": [msgspec.to_builtins(entry) for entry in self._told],
        }


def event_line(event: Event) -> dict[str, Any] | None:
    """An event for another program; None: one that says nothing more."""
    match event:
        case Said():
            return {"event": "said", "text": event.text}
        case Thought():
            return {"event": "thought", "text": event.text}
        case CallSeen():
            # Ids are given when a turn is whole: until then there is only the provider's.
            return {"event": "call_seen", "provider_id": event.call.id, "name": event.call.name}
        case CallChanged():
            return {"event": "call", **_told_change(event.change)}
        case TurnKept():
            kept = {"event": "kept", "role": event.turn.role, "key": event.turn.key}
            why = event.turn.metadata.interrupted
            return {**kept, "interrupted": why} if why else kept
        case Told():
            return {"event": "told", "entry": msgspec.to_builtins(event.entry)}
        case Asking() | Dropped() | Switched() | Compressed():
            return {"event": type(event).__name__.lower(), **_told_event(event)}
        case _:
            return None


def encoded(value: Any, *, pretty: bool = False) -> bytes:
    data = msgspec.json.encode(value)
    return (msgspec.json.format(data, indent=2) if pretty else data) + b"\n"


def _told_event(event: Asking | Dropped | Switched | Compressed) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(event)
    return told


def _told_change(change: CallChange) -> dict[str, Any]:
    told: dict[str, Any] = {
        "id": change.call.id,
        "provider_id": provider_id(change.call),
        "name": change.call.name,
        "state": change.state,
    }
    if change.state == "validating":
        told["arguments"] = change.call.arguments
    if change.attempt > 1:
        told["attempt"] = change.attempt
    if change.progress:
        told["progress"] = change.progress
    return {**told, **(_told_result(change.result) if change.result is not None else {})}


def provider_id(call: ToolCall) -> str | None:
    """The id of a call as its provider gave it; None: it gave none."""
    return call.metadata.raw_id if call.metadata is not None else None


def _told_result(result: ToolResult) -> dict[str, Any]:
    told: dict[str, Any] = {"result": text_of(result), "is_error": result.is_error}
    others = [] if isinstance(result.content, str) else [b for b in result.content or () if not isinstance(b, Text)]
    if others:
        told["media"] = msgspec.to_builtins(others)
    if result.executed_arguments is not None:
        told["executed_arguments"] = result.executed_arguments
    return told


def _usage(usage: Usage) -> dict[str, int | None]:
    return {name: getattr(usage, name) for name in Usage.__struct_fields__ if name.endswith("_tokens")}


def _failure(failure: Any) -> dict[str, Any]:
    return {name: getattr(failure, name) for name in ("kind", "message", "status", "code")}
