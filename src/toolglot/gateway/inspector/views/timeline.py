"""What happened in a request, in the order of time: calls of upstreams, pieces of the stream and what was in them.

    timeline_of(captured)["events"]        # [{"at": 0.0, "kind": "request", …}, {"at": 0.31, "kind": "first_byte", …}]

The pieces of a capture have times and sizes; what is in them is read from the provider's stream, piece by piece, by the
decoder of its protocol.

Laws: pure and linear; at most `MAX_EVENTS` events, and what is more is joined.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from toolglot.conversation import ToolCall
from toolglot.conversation.events import (
    BlockEnded,
    BlockStarted,
    Event,
    Failed,
    Finished,
    InputDelta,
    TextDelta,
    ThinkingDelta,
    Used,
)
from toolglot.errors import ToolglotError
from toolglot.gateway.inspector.views.reading import LIMITS, text_of
from toolglot.profiles import Overrides
from toolglot.protocols.base import StreamDecoder, codec
from toolglot.protocols.errors.failures import ProviderError
from toolglot.protocols.framing.text_frames import Framer
from toolglot.translate.converted import profile_named

MAX_EVENTS: Final = 2_000
GAP_SECONDS: Final = 1.0
"""A pause of the provider that is shown."""
_MAX_LABEL: Final = 200

Fields = dict[str, Any]


def timeline_of(captured: Mapping[str, Any], overrides: Overrides | None = None) -> Fields:
    """The events of a request."""
    seconds = _number(captured.get("seconds"))
    events = [_event(0.0, "request", label=_request_label(captured), size=_size(text_of(captured, "request")))]
    events += _attempts(captured)
    events += _pieces(captured, overrides)
    if usage := captured.get("usage"):
        label = ", ".join(f"{name} {count}" for name, count in usage.items()) if isinstance(usage, dict) else ""
        events.append(_event(seconds or 0.0, "usage", label=label))
    if error := text_of(captured, "error"):
        events.append(_event(seconds or 0.0, "error", label=error))
    if seconds is not None:
        events.append(_event(seconds, "end", label=f"status {captured.get('status')}"))
    events.sort(key=lambda event: event["at"])  # it is stable: what came at once stays in its order
    return {"seconds": seconds, "events": _joined(events)}


def _event(at: float, kind: str, *, direction: str = "", size: int = 0, label: str = "") -> Fields:
    return {"at": round(at, 6), "kind": kind, "direction": direction or None, "size": size, "label": label[:_MAX_LABEL]}


def _request_label(captured: Mapping[str, Any]) -> str:
    return f"{text_of(captured, 'method')} {text_of(captured, 'path')}".strip()


def _attempts(captured: Mapping[str, Any]) -> Iterator[Fields]:
    attempts = captured.get("attempts")
    for attempt in attempts if isinstance(attempts, list) else ():
        if not isinstance(attempt, dict):
            continue
        name, at, failed = text_of(attempt, "upstream"), _number(attempt.get("at")), _number(attempt.get("failed_at"))
        yield _event(at or 0.0, "upstream", label=name)
        if failed is not None:
            yield _event(failed, "failed", label=f"{name}: {text_of(attempt, 'failure')}")
        if retried := text_of(attempt, "retried"):
            yield _event(failed or at or 0.0, "retried", label=retried)


# --- pieces -----------------------------------------------------------------------------------------


def _pieces(captured: Mapping[str, Any], overrides: Overrides | None) -> Iterator[Fields]:
    """The pieces of both replies, and what was in them."""
    found = captured.get("pieces")
    pieces = [piece for piece in found if _is_piece(piece)] if isinstance(found, list) else []
    received = _split(text_of(captured, "reply"), [size for _, way, size in pieces if way == "received"])
    sent = _split(text_of(captured, "response"), [size for _, way, size in pieces if way == "sent"])
    reader = _Reader(captured, overrides)
    last: float | None = None
    for at, direction, size in pieces:
        if direction == "sent":
            piece = next(sent, b"")
            if piece.startswith(b":") or b"event: ping" in piece[:200]:
                yield _event(at, "keep_alive", direction="sent", size=size)
            continue
        if last is None:
            yield _event(at, "first_byte", direction="received", size=size)
        elif at - last >= GAP_SECONDS:
            yield {**_event(last, "gap", label=f"nothing for {at - last:.1f} s"), "until": round(at, 6)}
        last = at
        yield from reader.read(at, next(received, b""), size)


def _is_piece(piece: Any) -> bool:
    return (
        isinstance(piece, list | tuple)
        and len(piece) == 3
        and _number(piece[0]) is not None
        and type(piece[2]) is int
        and piece[2] >= 0
    )


def _split(text: str, sizes: list[int]) -> Iterator[bytes]:
    """A reply in its pieces. If something was masked in it, the pieces are shifted, and their content is only about
    right."""
    data, position = text.encode("utf-8", "replace"), 0
    for size in sizes:
        yield data[position : position + size]
        position += size


class _Reader:
    """Reads what is in the pieces of a provider's stream."""

    def __init__(self, captured: Mapping[str, Any], overrides: Overrides | None) -> None:
        self._framer: Framer | None = None
        self._decoder: StreamDecoder | None = None
        if captured.get("stream") is True and text_of(captured, "target"):
            with contextlib.suppress(ToolglotError):
                profile = profile_named(text_of(captured, "target"), "", overrides, "source")
                stream = codec(profile.protocol).stream
                self._framer, self._decoder = stream.framer(), stream.Decoder(limits=LIMITS)

    def read(self, at: float, piece: bytes, size: int) -> Iterator[Fields]:
        """What is in a piece."""
        if self._framer is None or self._decoder is None or not piece:
            yield _event(at, "text", direction="received", size=size)
            return
        try:
            events = [event for frame in self._framer.feed(piece) for event in self._decoder.read(frame)]
        except (ToolglotError, ProviderError, RecursionError):
            self._framer = None
            events = []
        for event in events:
            found = _described(event)
            if found is not None:
                kind, length, label = found
                yield _event(at, kind, direction="received", size=length, label=label)


def _described(event: Event) -> tuple[str, int, str] | None:
    """The kind, size and label of an event; None: it is not shown."""
    if isinstance(event, TextDelta):
        return "text", _size(event.text), event.text[:80]
    if isinstance(event, ThinkingDelta):
        return "thinking", _size(event.text), event.text[:80]
    if isinstance(event, InputDelta):
        return "arguments", _size(event.text), ""
    if isinstance(event, BlockStarted) and isinstance(event.block, ToolCall):
        return "call_open", 0, event.block.name
    if isinstance(event, BlockEnded) and isinstance(event.block, ToolCall):
        return "call_close", 0, f"{event.block.name}{' (cut off)' if event.cut else ''}"
    if isinstance(event, Finished):
        return "stop", 0, event.stop or ""
    if isinstance(event, Failed):
        return "error", 0, event.failure.message
    return ("usage", 0, "") if isinstance(event, Used) else None


def _joined(events: list[Fields]) -> list[Fields]:
    """At most so many events: runs of the same kind are joined, and then what is behind the last one."""
    if len(events) <= MAX_EVENTS:
        return events
    found: list[Fields] = []
    for event in events:
        last = found[-1] if found else None
        if last is not None and last["kind"] == event["kind"] and event["kind"] in ("text", "thinking", "arguments"):
            found[-1] = _sum(last, event)
        else:
            found.append(event)
    if len(found) <= MAX_EVENTS:
        return found
    rest = found[MAX_EVENTS - 2 : -1]
    more = {**rest[0], "kind": "more", "size": sum(event["size"] for event in rest), "until": rest[-1]["at"]}
    return [*found[: MAX_EVENTS - 2], {**more, "label": f"{len(rest)} more events"}, found[-1]]


def _sum(one: Fields, other: Fields) -> Fields:
    return {**one, "size": one["size"] + other["size"], "until": other["at"], "count": one.get("count", 1) + 1}


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) else None
