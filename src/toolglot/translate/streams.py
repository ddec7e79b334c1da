"""A provider's stream as the stream of a client's protocol.

    translator = toolglot.StreamTranslator(source="openai_chat", target="anthropic", request=out)
    for piece in response: client.send(translator.feed(piece))
    client.send(translator.finish())

Bytes in, bytes out: nothing here reads a socket or a clock. Events come from `stream_reader.py`; the encoder of the
client's protocol writes them. Law 13: bytes are forwarded while they are legal, and written anew from the first that is
not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final

from msgspec.structs import replace

from toolglot import profiles
from toolglot.conversation import Block, Failure, Reply, ToolCall
from toolglot.conversation.events import (
    Event,
)
from toolglot.conversation.report import Report
from toolglot.errors import InputError
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.policy import DEFAULT_POLICY, Policy
from toolglot.profiles import Overrides, Profile
from toolglot.protocols.base import EVENTS, ArrayWriter, StreamOptions, codec, get
from toolglot.protocols.errors.failures import ProviderError
from toolglot.protocols.framing.event_builder import FILLED, NO_LAST_EVENT
from toolglot.protocols.framing.text_frames import Frame
from toolglot.render.context import RenderContext
from toolglot.translate.native_stream_reader import NativeStreamReader
from toolglot.translate.replies import needs_usage
from toolglot.translate.reply_report import report_losses
from toolglot.translate.requests import ConvertedRequest
from toolglot.translate.stream_reader import DROPPED, StreamReader, TextReader, failure_of_stream

MAX_WAITING_BYTES: Final = 4 * 1024 * 1024
"""The maximal number of bytes that wait until it is known whether they can be forwarded."""

_DONE: Final = b"[DONE]"
"""May follow the end of a reply."""

_EMPTY_DATA: Final = re.compile(rb"(?:^|[\r\n])data\b")
"""Data that is empty, in an event that has no other."""
_NO_FIELD: Final = re.compile(rb"(?:^|[\r\n])(?![\r\n:]|\Z|\xef\xbb\xbf|(?:event|id|retry)\b)")
"""A line that is neither a comment nor a field: a broken server or a proxy wrote it into the stream."""


class StreamTranslator:
    """A provider's stream (`source`) as a client (`target`) of another protocol, or of the same one, reads it.

    The client gets complete and legal sequences whatever the provider does, and always exactly one end. If both speak
    the same protocol and the stream is in order, its bytes are forwarded unchanged.
    created: when the reply began, in seconds since 1970, for protocols that have this.
    source: the provider that replies.
    target: the protocol of the client.
    request: what `convert` returned for the request. With it, tools get their own names back.
    policy: what to do where there is a choice (`toolglot.Policy`).
    overrides: changes to profiles, and your own profiles (`toolglot.profiles.read_overrides`).
    limits: how large and how deep the JSON may be (`toolglot.Limits`).
    reader: reads tool calls that the model writes as text; without it, the one that the profile names.

    reply_id: the id of the reply, instead of the provider's.
    reply_model: the model that the reply names, instead of the one that the provider names.
    as_events: write server-sent events also if a Gemini provider sends a Gemini client a JSON array. Without
        it, the client gets the array; `content_type` says so from the first bytes on.
    clock: returns the time when the reply ends, for protocols that have this; without it, `created` stands for it.
    settings: the body of the client's request, for protocols whose replies repeat its settings.
    """

    def __init__(
        self,
        *,
        source: str,
        target: str,
        request: ConvertedRequest | None = None,
        policy: Policy = DEFAULT_POLICY,
        overrides: Overrides | None = None,
        limits: Limits = DEFAULT_LIMITS,
        reader: TextReader | None = None,
        created: int = 0,
        reply_id: str = "",
        reply_model: str = "",
        as_events: bool = False,
        clock: Callable[[], int] | None = None,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        from_ = profiles.get(source, overrides=overrides, kind="source")
        to = profiles.get(target, overrides=overrides, kind="target")
        # A client that reads each call from one event cannot get the bytes of a provider that writes pieces.
        reads_own = (to.stream.calls != "whole" or from_.stream.calls == "whole") and (
            to.stream.thinking != "parts" or from_.stream.thinking == "parts"
        )
        is_native = from_.protocol == to.protocol and reads_own
        is_native = is_native and (request is None or request.head is None)
        make = NativeStreamReader if is_native else StreamReader
        self._input = make(
            source=source,
            target=target,
            request=request,
            policy=policy,
            overrides=overrides,
            limits=limits,
            reader=reader,
            reply_id=reply_id,
            reply_model=reply_model,
        )
        self._input.fills_usage = needs_usage(from_, to, request)
        self._native = self._input if isinstance(self._input, NativeStreamReader) else None
        """The reader whose frames are forwarded; None after the first frame that cannot be forwarded."""
        stream = codec(to.protocol).stream
        self.content_type: str = get(to.protocol).stream_type
        self._array: ArrayWriter | None = None
        """Writes our events as pieces of an array, if the provider's reply is one."""
        native_framer = stream.native_framer if self._native is not None and not as_events else None
        self._new_array: Callable[[], ArrayWriter] | None = stream.array_writer if native_framer is not None else None
        if self._native is not None and native_framer is not None:
            self._native.use_framer(native_framer())
        options = replace(stream_options(request, created, to), clock=clock, settings=settings)
        self._encoder = stream.Encoder(options)
        fills = stream.frame_filler is not None and self._native is not None and settings is not None
        self._filler = stream.frame_filler(options) if fills and stream.frame_filler is not None else None
        """Fills what the frames that are forwarded leave out."""
        self._closing: Collection[str] = stream.closing_events
        """Events that wait for the end of their block. If it does not come, we write both ourselves."""
        self._final: bytes = stream.last_event
        """The event at the end of every stream, after the one that ends the reply."""
        self._raw: list[bytes] = []
        self._written: list[bytes] = []
        """Bytes of the provider, and ours for the same events, until it is known which ones the client gets."""
        self._waiting = 0
        self._has_done = False
        self._is_array_ended = False

    def feed(self, data: bytes) -> bytes:
        """Take bytes of the provider, and return those for the client."""
        if self._native is not None:
            if self._native.is_stream(data):
                return self._forward(self._native, data)
            self._native = None
        return self._framed(self._encoder.write(self._input.feed(data)))

    def finish(self) -> bytes:
        """End the stream: the provider closed it in order. Returns the end for the client."""
        before = self._forward(self._native, None) if self._native is not None else b""
        return before + self._write_end(self._input.finish())

    def fail(self, why: Failure | ProviderError | InputError = DROPPED) -> bytes:
        """End a reply that broke off. Returns an error in the client's protocol."""
        return self._write_end(self._input.fail(why))

    def close(self) -> None:
        """Stop, because the client disconnected. `reply`, `calls` and `cut` are what was complete by then."""
        self._input.close()
        self._drop_waiting()

    def ping(self) -> bytes:
        """Bytes that keep the client's connection alive while the provider is silent. The client ignores them."""
        return b"" if self._input.is_over else self._encoder.ping()

    # --- the same protocol on both sides ------------------------------------------------------------

    def _forward(self, native: NativeStreamReader, data: bytes | None) -> bytes:
        """Forward frames, as long as nothing in them or before them had to be fixed. None: the last ones."""
        output: list[bytes] = []
        try:
            frames = native.frames(data)
            if self._new_array is not None and native.is_array:
                self._array, self._new_array = self._new_array(), None
                self.content_type = self._array.CONTENT_TYPE
            for frame in frames:
                self._forward_frame(native, frame, output)
        except InputError as error:
            output.append(self.fail(failure_of_stream(error)))
        return b"".join(output)

    def _forward_frame(self, native: NativeStreamReader, frame: Frame, output: list[bytes]) -> None:
        if self._native is None:
            output.append(self._framed(self._encoder.write(native.read(frame))))
        elif not frame.data:
            self._forward_empty(native, frame, output)
        elif native.is_over:
            if frame.data == _DONE and native.failure is None and not self._has_done:
                output.append(frame.raw)
            else:
                native.remark("the stream continued after its end; what followed was dropped")
        else:
            self._forward_or_write(native, frame, output)
        self._has_done = self._has_done or frame.data == _DONE

    def _forward_empty(self, native: NativeStreamReader, frame: Frame, output: list[bytes]) -> None:
        """Forward a frame without data. Comments keep the connection alive: they go at once, unless the end is near."""
        if _EMPTY_DATA.search(frame.raw) is not None:
            native.remark("an event without data was dropped, since clients try to read it")
        elif self.content_type == EVENTS and _NO_FIELD.search(frame.raw) is not None:
            native.remark("a line that is not part of an event was dropped")
        elif self._array is not None or (self._raw and (native.is_end_announced or not frame.raw.strip())):
            self._raw.append(frame.raw)
        else:
            output.append(frame.raw)

    def _forward_or_write(self, native: NativeStreamReader, frame: Frame, output: list[bytes]) -> None:
        """Forward a frame, or write from now on, or wait until it is known which."""
        self._written.append(self._encoder.write(native.read(frame)))
        filled = self._filler.fill(frame) if self._filler is not None else None
        if filled is not None:
            native.note(FILLED)
        self._raw.append(frame.raw if filled is None else filled)
        self._waiting += len(frame.raw)
        if native.was_changed or self._waiting > MAX_WAITING_BYTES:
            output.append(self._switch_to_own())
        elif (native.is_settled or native.is_over) and frame.name not in self._closing:
            output += self._raw
            self._drop_waiting()
            if self._array is not None:
                self._array.begin()

    def _framed(self, written: bytes) -> bytes:
        """Our events, as pieces of an array if the stream is one."""
        return written if self._array is None else self._array.add(written)

    def _switch_to_own(self) -> bytes:
        """Forward nothing from now on. Returns our bytes for what waited."""
        self._native = None
        written = self._framed(b"".join(self._written))
        self._drop_waiting()
        return written

    def _drop_waiting(self) -> None:
        self._raw.clear()
        self._written.clear()
        self._waiting = 0

    def _write_end(self, events: list[Event]) -> bytes:
        """The end of the client's stream. Empty if all bytes of the provider were forwarded."""
        written = self._encoder.write(events)
        native, before = self._native, b""
        if native is not None and events and (native.was_changed or native.failure is not None):
            native, before = None, self._switch_to_own()
        if native is None:
            return before + self._framed(written) + self._end_array()
        raw = b"".join(self._raw)
        self._drop_waiting()
        is_whole = native.is_over and native.failure is None
        if self._final and is_whole and not self._has_done:
            self._has_done = True
            native.note(NO_LAST_EVENT)
            return raw + self._final
        return raw

    def _end_array(self) -> bytes:
        if self._array is None or self._is_array_ended:
            return b""
        self._is_array_ended = True
        return self._array.end()

    # --- what is known ------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        return self._input.is_over

    @property
    def reply(self) -> Reply:
        """The reply that the client got so far. Its stop reason is None until the end."""
        return self._input.reply

    @property
    def provider_reply(self) -> Reply:
        """The reply with the provider's own names and ids, signatures included."""
        return self._input.provider_reply

    @property
    def final_body(self) -> dict[str, Any] | None:
        """The whole reply in the last event of the client's stream, if its protocol repeats it there."""
        return getattr(self._encoder, "final_body", None)

    @property
    def failure(self) -> Failure | None:
        """Why the reply broke off, if it did."""
        return self._input.failure

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that are complete and can be run. A reply that broke off has none."""
        return self._input.calls

    @property
    def cut(self) -> tuple[Block, ...]:
        """The blocks that ended before they were complete."""
        return self._input.cut

    @property
    def report(self) -> Report:
        """What was fixed, assumed or lost so far."""
        source, target = self._input.source, self._input.target
        if source.protocol == target.protocol:
            return self._input.report
        ctx = RenderContext(target, DEFAULT_POLICY, source)
        if self._input.is_over and self._input.failure is None:
            report_losses(self._input.reported_reply, None, ctx)
        return Report((*self._input.report.entries, *ctx.entries))


def stream_options(request: ConvertedRequest | None, created: int, client: Profile) -> StreamOptions:
    options = StreamOptions(
        created=created,
        whole_calls=client.stream.calls == "whole",
        thinking_parts=client.stream.thinking == "parts",
        refusals=client.turns.refusals,
    )
    if request is None:
        return options
    return replace(options, model=request.model, usage=request.wants_usage)
