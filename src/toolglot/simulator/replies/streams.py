"""A reply as a stream: in the provider's own form, in events of a chosen size, with injected faults.

The protocol's encoder writes the events. Where a provider's streams differ, its protocol's file in
`simulator/protocols/` changes them.
"""

from __future__ import annotations

from msgspec import Struct

from toolglot.jsontext import parse
from toolglot.protocols.base import StreamOptions, codec
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.text_frames import Frame
from toolglot.simulator.accepted_request import AcceptedRequest
from toolglot.simulator.replies.fault_effects import reply_events
from toolglot.simulator.replies.faults import Fault
from toolglot.simulator.replies.json_bytes import encode_json
from toolglot.simulator.scripts.plan import ReplyPlan


class StreamSettings(Struct, frozen=True, kw_only=True):
    """How a reply is sent."""

    chunk: int
    pace: float
    bytes: int
    calls: int | None = None


class StreamStyle(Struct, frozen=True, kw_only=True):
    """How the streams of a provider differ from those of its protocol."""

    whole_calls: bool = False
    """Each call is in one chunk."""
    thinking_parts: bool = False
    """Thinking is in parts of the content."""
    usage_at_end: bool = False
    """The usage is in the chunk with the finish reason."""


class StreamJob(Struct, frozen=True, kw_only=True):
    """A reply that is to be sent as a stream."""

    request: AcceptedRequest
    plan: ReplyPlan
    body: Fields
    style: StreamStyle
    fault: Fault | None
    chunk: int
    """Characters of a delta."""
    now: int

    @property
    def has_malformed_arguments(self) -> bool:
        return self.fault is not None and self.fault.name == "malformed_arguments" and bool(self.plan.calls)


def encoder_frames(job: StreamJob) -> list[Frame]:
    """The reply as the protocol's encoder writes it."""
    protocol = codec(job.request.protocol)
    options = StreamOptions(
        usage=_wants_usage(job),
        created=job.now,
        model=job.request.model,
        whole_calls=job.style.whole_calls,
        thinking_parts=job.style.thinking_parts,
    )
    encoder = protocol.stream.Encoder(options)
    framer = protocol.stream.framer()
    # Decoded from the bytes of a whole reply: what cannot be written as it is becomes the same in both.
    reply = protocol.reply.decode(parse(encode_json(job.body)).value)
    events = list(reply_events(reply, job.plan, job.fault, job.chunk))
    return [*framer.feed(encoder.write(events)), *framer.finish()]


def _wants_usage(job: StreamJob) -> bool:
    """OpenAI sends the usage of a stream only on request."""
    options = job.request.body.get("stream_options")
    return job.style.usage_at_end or (isinstance(options, dict) and options.get("include_usage") is True)


def sse_event(fields: Fields) -> bytes:
    """A server-sent event."""
    return b"data: %b\n\n" % encode_json(fields)


def cut_event(frames: list[bytes], fault: Fault | None) -> list[bytes]:
    """The events, with the JSON of one cut in the middle if the fault is that."""
    if fault is None or fault.name != "malformed_event" or not frames:
        return frames
    index = min(fault.after, len(frames) - 1)
    event = frames[index].rstrip(b"\n")
    return [*frames[:index], event[: len(event) * 2 // 3] + frames[index][len(event) :], *frames[index + 1 :]]


def pieces_of(frames: list[bytes], size: int) -> list[bytes]:
    """The bytes of a stream in pieces: one for each event, or of `size` bytes."""
    if not size:
        return frames
    whole = b"".join(frames)
    return [whole[start : start + size] for start in range(0, len(whole), size)]
