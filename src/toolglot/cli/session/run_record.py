"""The JSON output of `toolglot run`: one document at the end, or a line for each event.

{"answer": "…", "stop": "stop", "model": "…", "session": "…", "usage": {…}, "cost_usd": 0.01, "calls": […], …}
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from toolglot.cli.screen.transcript_view import text_of
from toolglot.conversation import Text, ToolCall, ToolResult, Usage
from toolglot.conversation.report import Entry
from toolglot.runtime.scheduler.call_states import FINAL, CallChange
from toolglot.runtime.session.events import (
    AttemptDiscarded,
    CallChanged,
    CallReceived,
    ChangeReported,
    HistoryCompressed,
    ModelSwitched,
    RequestStarted,
    RunResult,
    SessionEvent,
    TextReceived,
    ThinkingReceived,
    TurnCommitted,
)


class RunRecord:
    """Collects events; `document` returns the result."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._calls: dict[str, dict[str, Any]] = {}
        self._starts: dict[str, float] = {}
        self._dropped: list[dict[str, Any]] = []
        self._switched: list[dict[str, Any]] = []
        self._entries: list[Entry] = []

    def add(self, event: SessionEvent) -> None:
        match event:
            case CallChanged():
                self._change(event.change)
            case AttemptDiscarded():
                self._dropped.append(_event_json(event))
            case ModelSwitched():
                self._switched.append(_event_json(event))
            case ChangeReported():
                self._entries.append(event.entry)
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
            kept |= _result_json(change.result)

    def document(self, answer: RunResult, *, session: str | None, simulated: bool, reason: str = "") -> dict[str, Any]:
        """The JSON document of the run."""
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
            "report": [msgspec.to_builtins(entry) for entry in self._entries],
        }


_EVENT_NAMES: Final[dict[type, str]] = {
    RequestStarted: "asking",
    AttemptDiscarded: "dropped",
    ModelSwitched: "switched",
    HistoryCompressed: "compressed",
}
"""The names in the output of `toolglot run --stream-json`, which stay."""


def event_line(event: SessionEvent) -> dict[str, Any] | None:
    """An event as JSON; None: it is not printed."""
    match event:
        case TextReceived():
            return {"event": "said", "text": event.text}
        case ThinkingReceived():
            return {"event": "thought", "text": event.text}
        case CallReceived():
            # Canonical ids are assigned when a turn is complete. Until then there is only the provider's.
            return {"event": "call_seen", "provider_id": event.call.id, "name": event.call.name}
        case CallChanged():
            return {"event": "call", **_change_json(event.change)}
        case TurnCommitted():
            kept = {"event": "kept", "role": event.turn.role, "key": event.turn.key}
            why = event.turn.metadata.interrupted
            return {**kept, "interrupted": why} if why else kept
        case ChangeReported():
            return {"event": "told", "entry": msgspec.to_builtins(event.entry)}
        case RequestStarted() | AttemptDiscarded() | ModelSwitched() | HistoryCompressed():
            return {"event": _EVENT_NAMES[type(event)], **_event_json(event)}
        case _:
            return None


def encode_json(value: Any, *, pretty: bool = False) -> bytes:
    data = msgspec.json.encode(value)
    return (msgspec.json.format(data, indent=2) if pretty else data) + b"\n"


def _event_json(event: RequestStarted | AttemptDiscarded | ModelSwitched | HistoryCompressed) -> dict[str, Any]:
    fields: dict[str, Any] = msgspec.to_builtins(event)
    return fields


def _change_json(change: CallChange) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": change.call.id,
        "provider_id": provider_id(change.call),
        "name": change.call.name,
        "state": change.state,
    }
    if change.state == "validating":
        fields["arguments"] = change.call.arguments
    if change.attempt > 1:
        fields["attempt"] = change.attempt
    if change.progress:
        fields["progress"] = change.progress
    return {**fields, **(_result_json(change.result) if change.result is not None else {})}


def provider_id(call: ToolCall) -> str | None:
    """The provider's id of a call, if it has one."""
    return call.metadata.raw_id if call.metadata is not None else None


def _result_json(result: ToolResult) -> dict[str, Any]:
    fields: dict[str, Any] = {"result": text_of(result), "is_error": result.is_error}
    others = [] if isinstance(result.content, str) else [b for b in result.content or () if not isinstance(b, Text)]
    if others:
        fields["media"] = msgspec.to_builtins(others)
    if result.executed_arguments is not None:
        fields["executed_arguments"] = result.executed_arguments
    return fields


def _usage(usage: Usage) -> dict[str, int | None]:
    return {name: getattr(usage, name) for name in Usage.__struct_fields__ if name.endswith("_tokens")}


def _failure(failure: Any) -> dict[str, Any]:
    return {name: getattr(failure, name) for name in ("kind", "message", "status", "code")}
