"""An answer as a stream: in the provider's own form, in events of a settable size, cut and spoiled as ordered.

The protocol's encoder writes it. Where a provider's streams differ from what the encoder of its protocol writes (one
chunk for a whole call, usage beside the reason for the end), `SimulatedProvider` says so and the frames are laid out
anew here.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Struct

from toolglot.jsontext import parse
from toolglot.protocols.base import StreamWish, codec
from toolglot.protocols.fields.reading import Fields
from toolglot.simulator.ask import AcceptedRequest
from toolglot.simulator.providers import SimulatedProvider
from toolglot.simulator.replies.faults import Fault
from toolglot.simulator.replies.json_bytes import encoded
from toolglot.simulator.replies.spoiling import events_of, spoil_chunks, spoil_partial_json
from toolglot.simulator.scripts.plan import ReplyPlan

_DONE: Final = b"data: [DONE]\n\n"


class StreamSettings(Struct, frozen=True, kw_only=True):
    """How an answer is given."""

    chunk: int
    pace: float
    bytes: int
    calls: int | None = None


def frames_of(
    provider: SimulatedProvider,
    ask: AcceptedRequest,
    plan: ReplyPlan,
    body: Fields,
    *,
    fault: Fault | None,
    chunk: int,
    now: int,
) -> list[bytes]:
    """The answer as the events of a stream, each in bytes."""
    is_malformed = fault is not None and fault.name == "malformed_arguments" and bool(plan.calls)
    if ask.protocol == "gemini" and is_malformed:
        return [_sse(body)]
    protocol = codec(ask.protocol)
    wish = StreamWish(
        usage=_wants_usage(provider, ask.body),
        created=now,
        model=ask.model,
        whole_calls=provider.whole_calls,
        thinking_parts=provider.thinking_parts,
    )
    encoder = protocol.stream.Encoder(wish)
    framer = protocol.stream.framer()
    # As it would be sent whole: what cannot be written as it is becomes the same in both.
    reply = protocol.reply.decode(parse(encoded(body)).value)
    events = list(events_of(reply, plan, fault, chunk))
    frames = [*framer.feed(encoder.write(events)), *framer.finish()]
    raw = [frame.raw for frame in frames]
    if ask.protocol == "openai_chat":
        raw = _laid_out(provider, [frame.data for frame in frames], fault)
    elif ask.protocol == "anthropic" and is_malformed:
        said = spoil_partial_json([msgspec.json.decode(frame.data) for frame in frames])
        raw = [b"event: %b\n%b" % (event["type"].encode(), _sse(event)) for event in said]
    return _with_bad_event(raw, fault)


def _wants_usage(provider: SimulatedProvider, body: Fields) -> bool:
    """OpenAI tells what a stream cost only to those who ask."""
    options = body.get("stream_options")
    return provider.usage_at_end or (isinstance(options, dict) and options.get("include_usage") is True)


def _sse(fields: Fields) -> bytes:
    return b"data: %b\n\n" % encoded(fields)


def _laid_out(provider: SimulatedProvider, datas: list[bytes], fault: Fault | None) -> list[bytes]:
    """Chunks of Chat Completions as this provider has them."""
    chunks: list[Fields] = [msgspec.json.decode(data) for data in datas if data != b"[DONE]" and data]
    if provider.usage_at_end:
        chunks = _with_usage_at_end(chunks)
    if provider.whole_calls:
        chunks = _with_whole_calls(chunks)
    done = [_DONE] if b"[DONE]" in datas else []
    return [*map(_sse, spoil_chunks(chunks, fault)), *done]


def _with_usage_at_end(chunks: list[Fields]) -> list[Fields]:
    last = chunks[-1] if chunks else {}
    if len(chunks) < 2 or last.get("choices") or not last.get("usage"):
        return chunks
    return [*chunks[:-2], {**chunks[-2], "usage": last["usage"]}]


def _with_whole_calls(chunks: list[Fields]) -> list[Fields]:
    """All calls in the chunk that says why the answer ended."""
    whole: dict[int, Fields] = {}
    kept: list[Fields] = []
    for chunk in chunks:
        pieces = _delta(chunk).pop("tool_calls", None) or ()
        for piece in pieces:
            _add(whole.setdefault(piece["index"], {}), piece)
        if not pieces or _delta(chunk).get("content") or _reason(chunk):
            kept.append(chunk)
    if whole and kept:
        _delta(kept[-1])["tool_calls"] = list(whole.values())
    return kept


def _delta(chunk: Fields) -> Fields:
    choices = chunk.get("choices")
    found: Fields = choices[0]["delta"] if choices else {}
    return found


def _reason(chunk: Fields) -> Any:
    choices = chunk.get("choices")
    return choices[0].get("finish_reason") if choices else None


def _add(call: Fields, piece: Fields) -> None:
    function = call.get("function", {})
    text = function.get("arguments", "") + (piece.get("function", {}).get("arguments") or "")
    call.update({key: value for key, value in piece.items() if key != "function" and value is not None})
    call["function"] = {**function, **(piece.get("function") or {}), "arguments": text}


def _with_bad_event(raw: list[bytes], fault: Fault | None) -> list[bytes]:
    """The events with one whose JSON ends in the middle."""
    if fault is None or fault.name != "malformed_event" or not raw:
        return raw
    place = min(fault.after, len(raw) - 1)
    cut = raw[place].rstrip(b"\n")
    return [*raw[:place], cut[: len(cut) * 2 // 3] + raw[place][len(cut) :], *raw[place + 1 :]]


def pieces_of(frames: list[bytes], size: int) -> list[bytes]:
    """The bytes of a stream in pieces: an event each, or of so many bytes."""
    if not size:
        return frames
    whole = b"".join(frames)
    return [whole[start : start + size] for start in range(0, len(whole), size)]
