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
from collections.abc import Callable, Collection
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
from toolglot.protocols.base import EVENTS, ArrayWriter, StreamWish, codec, get
from toolglot.protocols.errors.failures import ProviderError
from toolglot.protocols.framing.sequence import (
    NO_LAST_EVENT,
)
from toolglot.protocols.framing.text_frames import Frame
from toolglot.render.context import RenderContext
from toolglot.translate.native_stream_reader import NativeStreamReader
from toolglot.translate.reply_report import report_losses
from toolglot.translate.requests import ConvertedRequest
from toolglot.translate.stream_reader import DROPPED, StreamReader, TextReader, failure_of_stream

MAX_WAITING_BYTES: Final = 4 * 1024 * 1024
"""Bytes of a provider that wait until it is known whether they can be forwarded."""

_DONE: Final = b"[DONE]"
"""What may follow the end of a reply."""

_EMPTY_DATA: Final = re.compile(rb"(?:^|[\r\n])data\b")
"""Data that is empty, in an event that has no other."""
_NO_FIELD: Final = re.compile(rb"(?:^|[\r\n])(?![\r\n:]|\Z|\xef\xbb\xbf|(?:event|id|retry)\b)")
"""A line of a stream of events that is neither a comment nor a field: what a broken server or a proxy wrote into it."""


class StreamTranslator:
    """A provider's stream (`source`) as a client (`target`) of another protocol, or of the same one, reads it.

    The client gets full and legal sequences whatever the provider does, and one end always. Where both speak the same
    protocol and the stream is in order, its bytes are forwarded as they are.
    created: when the answer was begun, in seconds since 1970, for protocols that say so.
    source: who answers.
    target: the protocol of the client.
    request: what `convert` returned for the request that is answered; tools get their own names back by it.
    policy: what to do where there is a choice (`toolglot.Policy`).
    overrides: changes to profiles, and profiles of one's own (`toolglot.profiles.read_overrides`).
    limits: how large and how deep the JSON may be (`toolglot.Limits`).
    reader: reads tool calls that the model writes as text; without it, the one that the profile names.
    created: the time that the client is told, in seconds since 1970.
    reply_id: the id that the reply gets, where the provider's own is not to be used.
    reply_model: the model that the answer names, where it is not the one that the provider names.
    as_events: write server-sent events also where a Gemini provider answers a Gemini client with a JSON array. Without
        it, the client gets the array; `content_type` says so from the first bytes on.
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
    ) -> None:
        from_ = profiles.get(source, overrides=overrides, kind="source")
        to = profiles.get(target, overrides=overrides, kind="target")
        # A client that reads each call from one event cannot be handed the bytes of a provider that writes pieces.
        wants_whole = to.stream.calls == "whole"
        is_native = from_.protocol == to.protocol and (not wants_whole or from_.stream.calls == "whole")
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
        self._native = self._input if isinstance(self._input, NativeStreamReader) else None
        """What can be forwarded as it is: None from the first thing on that cannot."""
        stream = codec(to.protocol).stream
        self.content_type: str = get(to.protocol).stream_type
        self._array: ArrayWriter | None = None
        """What our own events become where the provider's answer is an array, and stays one."""
        own_framer = getattr(stream, "own_framer", None) if self._native is not None and not as_events else None
        self._new_array: Callable[[], ArrayWriter] | None = stream.Array if own_framer is not None else None  # type: ignore[attr-defined]
        if self._native is not None and own_framer is not None:
            self._native.use_framer(own_framer())
        self._encoder = stream.Encoder(_stream_wish(request, created, to))
        self._closing: Collection[str] = getattr(stream, "CLOSING", ())
        """Events that wait for the end of their block: where that does not come, we write them with it ourselves."""
        self._final: bytes = getattr(stream, "LAST", b"")
        """The event that stands at the end of every stream, beside the one that ends the reply."""
        self._raw: list[bytes] = []
        self._written: list[bytes] = []
        """What waits until it is known whether the provider's own bytes can be forwarded: these, and ours."""
        self._waiting = 0
        self._has_done = False
        self._is_array_ended = False

    def feed(self, data: bytes) -> bytes:
        """What the client gets for these bytes of the provider."""
        if self._native is not None:
            if self._native.is_stream(data):
                return self._forward(self._native, data)
            self._native = None
        return self._framed(self._encoder.write(self._input.feed(data)))

    def finish(self) -> bytes:
        """The provider's bytes ended in order; what the client gets at the end."""
        before = self._forward(self._native, None) if self._native is not None else b""
        return before + self._write_end(self._input.finish())

    def fail(self, why: Failure | ProviderError | InputError = DROPPED) -> bytes:
        """The provider's answer broke off; the client is told so in its own protocol's way."""
        return self._write_end(self._input.fail(why))

    def close(self) -> None:
        """The client went away. `reply`, `calls` and `cut` say what was whole by then."""
        self._input.close()
        self._drop_waiting()

    def ping(self) -> bytes:
        """Something that keeps the client's connection alive through a long silence, and that it leaves out."""
        return b"" if self._input.is_over else self._encoder.ping()

    # --- the same protocol on both sides ------------------------------------------------------------

    def _forward(self, native: NativeStreamReader, data: bytes | None) -> bytes:
        """The frames as they are, unless something before them or in them had to be mended; without data, the last."""
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
                native.remark("the stream went on after its end; what followed is left out")
        else:
            self._forward_or_write(native, frame, output)
        self._has_done = self._has_done or frame.data == _DONE

    def _forward_empty(self, native: NativeStreamReader, frame: Frame, output: list[bytes]) -> None:
        """What says nothing: a comment keeps the connection alive and goes at once, unless the end is near."""
        if _EMPTY_DATA.search(frame.raw) is not None:
            native.remark("an event has no data; it is left out, since clients try to read it")
        elif self.content_type == EVENTS and _NO_FIELD.search(frame.raw) is not None:
            native.remark("a line is no part of an event; it is left out")
        elif self._array is not None or (self._raw and (native.is_end_said or not frame.raw.strip())):
            self._raw.append(frame.raw)
        else:
            output.append(frame.raw)

    def _forward_or_write(self, native: NativeStreamReader, frame: Frame, output: list[bytes]) -> None:
        """Forward a frame, or write from now on; or wait until that can be told."""
        self._written.append(self._encoder.write(native.read(frame)))
        self._raw.append(frame.raw)
        self._waiting += len(frame.raw)
        if native.was_changed or self._waiting > MAX_WAITING_BYTES:
            output.append(self._switch_to_own())
        elif (native.is_settled or native.is_over) and frame.name not in self._closing:
            output += self._raw
            self._drop_waiting()
            if self._array is not None:
                self._array.begin()

    def _framed(self, written: bytes) -> bytes:
        """Events of ours in the form that the stream has."""
        return written if self._array is None else self._array.add(written)

    def _switch_to_own(self) -> bytes:
        """From now on, what we write ourselves."""
        self._native = None
        written = self._framed(b"".join(self._written))
        self._drop_waiting()
        return written

    def _drop_waiting(self) -> None:
        self._raw.clear()
        self._written.clear()
        self._waiting = 0

    def _write_end(self, events: list[Event]) -> bytes:
        """What the end of the provider's bytes says: nothing more, where all of them were forwarded."""
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
            native.tell(NO_LAST_EVENT)
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
        """What the client has been told so far. Its stop reason is None until the answer is done."""
        return self._input.reply

    @property
    def provider_reply(self) -> Reply:
        """The same in the provider's own names and ids, with what only the provider can read."""
        return self._input.provider_reply

    @property
    def final_body(self) -> dict[str, Any] | None:
        """The whole answer as the last event of the client's stream has it, where its protocol repeats it there."""
        return getattr(self._encoder, "final_body", None)

    @property
    def failure(self) -> Failure | None:
        """Why the answer broke off, if it did."""
        return self._input.failure

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that are whole and can be run. An answer that broke off has none: its turn is not whole."""
        return self._input.calls

    @property
    def cut(self) -> tuple[Block, ...]:
        """What ended before it was whole."""
        return self._input.cut

    @property
    def report(self) -> Report:
        """What was mended, guessed or lost so far."""
        source, target = self._input.source, self._input.target
        if source.protocol == target.protocol:
            return self._input.report
        ctx = RenderContext(target, DEFAULT_POLICY, source)
        if self._input.is_over and self._input.failure is None:
            report_losses(self._input.reply, None, ctx)
        return Report((*self._input.report.entries, *ctx.entries))


def _stream_wish(request: ConvertedRequest | None, created: int, client: Profile) -> StreamWish:
    wish = StreamWish(
        created=created,
        whole_calls=client.stream.calls == "whole",
        thinking_parts=client.stream.thinking == "parts",
        refusals=client.turns.refusals,
    )
    if request is None:
        return wish
    requested = (request.rendered.conversation.extra or {}).get("openai_chat", {}).get("stream_options")
    usage = requested.get("include_usage") if isinstance(requested, dict) else None
    return replace(wish, model=request.model, usage=bool(usage))
