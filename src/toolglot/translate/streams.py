"""A provider's answer while it comes: as events for an agent, or as another protocol's stream for a client.

    reader = toolglot.StreamReader(source="openai_chat", request=out)
    for piece in response: events = reader.feed(piece)
    events = reader.finish()

    translator = toolglot.StreamTranslator(source="openai_chat", target="anthropic", request=out)
    for piece in response: client.send(translator.feed(piece))
    client.send(translator.finish())

Bytes in, events or bytes out: nothing here reads a socket or a clock. Law 8 (split-proof): however the bytes are cut,
the events are the same, and what they add up to is what `convert_reply` makes of the same answer given whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Any, Final, Protocol

from msgspec.structs import replace

from toolglot import dialects, profiles
from toolglot.conversation import Block, Conversation, Failure, Reply, Text, Thinking, ToolCall
from toolglot.conversation.events import (
    CUT_UNSAID,
    Accumulator,
    BlockEnded,
    BlockStarted,
    Event,
    TextDelta,
    ThinkingDelta,
    Used,
)
from toolglot.conversation.reply_events import of_reply
from toolglot.conversation.report import Entry, Report
from toolglot.errors import InputError, LimitError, quote
from toolglot.jsontext import refuse_deep_text, refuse_many_values
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.policy import DEFAULT_POLICY, Policy
from toolglot.profiles import Overrides, Profile
from toolglot.protocols.base import EVENTS, ArrayWriter, StreamDecoder, StreamWish, codec, get
from toolglot.protocols.errors.failures import ProviderError, from_answer_limit, from_input_error
from toolglot.protocols.framing.sequence import (
    BEGAN_WITH_INPUT,
    BESIDE_EVENTS,
    BYTE_ORDER_MARK,
    NO_ARGUMENTS,
    NO_LAST_EVENT,
    NO_LAST_ITEMS,
    NO_LAST_LINE,
    NO_TYPE,
    PARTS_IN_CONTENT,
    STOP_WITH_CALLS,
)
from toolglot.protocols.framing.text_frames import Frame, Framer
from toolglot.render.context import RenderContext
from toolglot.render.reply.stream_projection import StreamProjection
from toolglot.translate.replies import (
    THOUGHTS_WERE_TEXT,
    calls_were_text,
    decode_reply,
    dialect_in_text,
    marks_said_nothing,
    text_reader,
)
from toolglot.translate.reply_report import report_arguments, report_losses, report_reading, report_signatures
from toolglot.translate.requests import ConvertedRequest

MOST_WAITING: Final = 4 * 1024 * 1024
"""Bytes of a provider that wait until it is known whether they can be forwarded."""

_LAST: Final = b"[DONE]"
"""What may follow the end of a reply."""

_EMPTY_DATA: Final = re.compile(rb"(?:^|[\r\n])data\b")
"""Data that is empty, in an event that has no other."""
_NO_FIELD: Final = re.compile(rb"(?:^|[\r\n])(?![\r\n:]|\Z|\xef\xbb\xbf|(?:event|id|retry)\b)")
"""A line of a stream of events that is neither a comment nor a field: what a broken server or a proxy wrote into it."""


DROPPED: Final = Failure("server", "the connection to the model's provider was lost", in_band=True)


class TextReader(Protocol):
    """What finds calls that a model writes as text, between the provider's stream and the client's.

    It is given the events of the provider and gives back those that the client gets: deltas of text may be kept back
    as long as they may be the beginning of a call. A whole reply goes through one as events too.
    """

    def feed(self, events: list[Event]) -> list[Event]: ...

    @property
    def is_settled(self) -> bool:
        """Whether nothing is kept back."""
        ...


class StreamReader:
    """A provider's stream as canonical events, under the client's names and ids.

    source: who answers: any name of the profiles, a provider (`mistral`) or a protocol (`openai_chat`).
    request: what `convert` returned for the request that is answered; with it tools get their own names back.
    target: who asked; ids are made legal for it. Without it, the request's source, or the source itself.
    reader: finds calls in text. Without it, one that knows all dialects does, where the policy or the source's profile
        says that there may be some.
    reply_id: the id that the answer gets for a client of another protocol, where the provider's is not to be used.
    overrides: changes to profiles, and profiles of one's own (`toolglot.profiles.read_overrides`).
    limits: how large and how deep the JSON may be (`toolglot.Limits`).
    reply_model: the model that the answer names, where it is not the one that the provider names.
    """

    def __init__(
        self,
        *,
        source: str,
        target: str = "",
        request: ConvertedRequest | None = None,
        policy: Policy = DEFAULT_POLICY,
        overrides: Overrides | None = None,
        limits: Limits = DEFAULT_LIMITS,
        reader: TextReader | None = None,
        reply_id: str = "",
        reply_model: str = "",
    ) -> None:
        if request is not None and not isinstance(request, ConvertedRequest):
            raise InputError(f"expected what convert returned, got {quote(request)}", path="request")
        if not isinstance(policy, Policy):
            raise InputError(f"expected a Policy, got {quote(policy)}", path="policy", hint="Policy()")
        self.source: Profile = profiles.get(source, overrides=overrides, kind="source")
        asked_by = target or (request.source.name if request is not None else source)
        self.target: Profile = profiles.get(asked_by, overrides=overrides, kind="target")
        self._limits = limits
        self._small_frame = 2 * min(limits.max_depth, limits.max_nodes)
        """Bytes of a frame that breaks no limit, whatever it holds: a level and a value are two bytes at least."""
        stream = codec(self.source.protocol).stream
        rendered = request.rendered if request is not None else None
        self._framer = stream.framer()
        self._decoder: StreamDecoder = stream.Decoder(tools=_offered(request), limits=limits)
        dialect = dialect_in_text(self.source, request, policy)
        if reader is None and dialect:
            asked = rendered.conversation if rendered is not None else Conversation()
            reader = text_reader(dialect, asked, policy)
        self._reader = reader
        self._ctx = RenderContext(self.target, policy, self.source)
        self._answer = StreamProjection(
            self.source,
            self.target,
            rendered,
            self._ctx,
            whole_calls=policy.stream_calls == "whole",
            reply_id=reply_id,
            reply_model=reply_model,
        )
        self._whole: list[bytes] | None = [] if get(self.source.protocol).stream_type == EVENTS else None
        """The bytes so far, while they may be an answer that is no stream."""
        self._size = 0
        self._own = Accumulator()
        self._sum = Accumulator()
        self._own_ways: frozenset[str] = _own_ways(self.source, self.target, request)
        self._keeps_thoughts: bool = False
        """Whether the client gets marks of thinking in the text as they came, as long as there are no calls in it."""
        self.is_over: bool = False
        """The answer is finished or failed, or nobody listens any more. What comes then is ignored."""

    # --- what comes in ------------------------------------------------------------------------------

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        if self.is_over:
            return []
        if self._whole is not None:
            return self._gather(self._whole, data)
        given = data if type(data) is bytes else _checked(data)
        events: list[Event] = []
        try:
            frames = self._framer.feed(given)
            if len(frames) == 1 and len(frames[0].data) < self._small_frame:
                events = self._decoder.read(frames[0])
            else:
                for frame in frames:
                    events += self._read(frame)
        except InputError as error:
            return self._pass(events) + self.fail(_unreadable(error))
        return self._pass(events) if events else events

    def _read(self, frame: Frame) -> list[Event]:
        """The events of a frame, which may be one of millions of values, or of millions inside each other."""
        if len(frame.data) >= self._small_frame:
            refuse_many_values(frame.data, self._limits, "$")
            refuse_deep_text(frame.data, self._limits, "$")
        return self._decoder.read(frame)

    def finish(self) -> list[Event]:
        """The bytes ended as they should: the connection was closed in order."""
        if self.is_over:
            return []
        if self._whole:
            return self._read_whole(b"".join(self._whole))
        events: list[Event] = []
        try:
            for frame in self._framer.finish():
                events += self._read(frame)
            events += self._decoder.finish()
        except InputError as error:
            return self._pass(events) + self.fail(_unreadable(error))
        return self._pass(events)

    def _gather(self, pieces: list[bytes], data: bytes) -> list[Event]:
        """The first bytes: of a stream, or of a whole answer although a stream was asked for, which begins as JSON
        does."""
        data = _checked(data)
        if not pieces:
            data = data.lstrip()
            if data[:1] not in (b"{", b""):
                self._whole = None
                return self.feed(data)
        if data:
            pieces.append(data)
        self._size += len(data)
        if self._size > self._limits.max_bytes:
            return self.fail(_unreadable(LimitError("the answer is longer than the limit (max_bytes)")))
        return []

    def _read_whole(self, data: bytes) -> list[Event]:
        """A whole answer, told as the events of a stream."""
        self._decoder.sequence.remark("the provider answered at once although a stream was asked for")
        try:
            _, reply, mended = decode_reply(data, self.source, self._limits)
        except ProviderError as error:
            return self.fail(error)
        except LimitError as error:
            return self.fail(_unreadable(error))
        report_reading(mended, self._ctx)
        return self._pass([*of_reply(reply)])

    def fail(self, why: Failure | ProviderError | InputError = DROPPED) -> list[Event]:
        """The answer broke off: the connection was lost, or it took too long. What was open is told as cut."""
        if self.is_over:
            return []
        if isinstance(why, ProviderError):
            why = why.failure
        failure = from_input_error(why) if isinstance(why, InputError) else why
        if not isinstance(failure, Failure):
            raise InputError(f"expected a Failure or an error of toolglot, got {quote(why)}", path="why")
        self._decoder.sequence.fail(failure)
        return self._pass(self._decoder.sequence.take())

    def close(self) -> None:
        """Nobody listens any more. `reply`, `calls` and `cut` say what was whole by then."""
        if not self.is_over:
            self._decoder.sequence.abandon()
            self._pass(self._decoder.sequence.take())
            self.is_over = True

    def _pass(self, events: list[Event]) -> list[Event]:
        """The events as the client gets them. Deltas, which are most of all events, change nothing here."""
        if self._reader is not None:
            events = self._reader.feed(events)
        if self._answer.goes_through(events):
            return events
        self._own.add(events)
        passed = self._answer.pass_on(events)
        self._sum.add(passed)
        self.is_over = self._sum.is_over
        return passed

    # --- what is known ------------------------------------------------------------------------------

    @property
    def reply(self) -> Reply:
        """What the model said so far, under the client's names and ids. Its stop reason is None until it is done."""
        return self._sum.reply

    @property
    def said(self) -> Reply:
        """The same in the provider's own names and ids, with what only the provider can read."""
        return self._own.reply

    @property
    def failure(self) -> Failure | None:
        """Why the answer broke off, if it did."""
        return self._sum.failure

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that are whole and can be run. An answer that broke off has none: its turn is not whole."""
        return self._sum.calls if self._sum.failure is None else ()

    @property
    def cut(self) -> tuple[Block, ...]:
        """What ended before it was whole."""
        return self._sum.cut

    @property
    def report(self) -> Report:
        """What was mended, guessed or lost so far."""
        ctx = RenderContext(self.target, self._ctx.policy, self.source)
        if self.source.protocol != self.target.protocol:
            report_signatures(self._answer.signatures, ctx)
            report_arguments(self._own.reply, ctx)
        sequence = self._decoder.sequence
        told = [
            ("converted" if reason in sequence.mended else "assumed", reason)
            for reason in sequence.told
            if reason not in self._own_ways
        ]
        told += [("dropped", reason) for reason in sequence.remarks]
        found = getattr(self._reader, "found", ())  # a reader of somebody's own need not say it
        told += [("converted", calls_were_text(found))] if found else []
        if self._keeps_thoughts and not found:
            dropped, has_thoughts = (), False
        else:
            dropped = getattr(self._reader, "dropped", ())
            has_thoughts = not self._keeps_thoughts and getattr(self._reader, "has_thoughts", False)
        told += [("dropped", marks_said_nothing(dropped))] if dropped else []
        told += [("converted", THOUGHTS_WERE_TEXT)] if has_thoughts else []
        entries = [
            Entry(action=action, reason=reason, fault="canonical", target=self.target.name)  # type: ignore[arg-type]
            for action, reason in told
        ]
        return Report((*entries, *self._ctx.entries, *ctx.entries))


def _own_ways(source: Profile, target: Profile, request: ConvertedRequest | None) -> frozenset[str]:
    """What the protocol does not allow in general and this client expects of this provider, or of this request."""
    if source.protocol != target.protocol:
        return frozenset({NO_ARGUMENTS})
    own = {BEGAN_WITH_INPUT, CUT_UNSAID}
    if target.stream.calls == "whole":
        own.add(NO_TYPE)
    if target.stream.thinking == "parts":
        own.add(PARTS_IN_CONTENT)
    choice = request.rendered.conversation.options.tool_choice if request is not None else None
    is_forced = choice is not None and choice.mode in ("required", "named")
    if is_forced or (request is None and source.stream.forced_stop):
        own.add(STOP_WITH_CALLS)
    if not source.stream.last_items:
        own.add(NO_LAST_ITEMS)
    return frozenset(own)


def _offered(request: ConvertedRequest | None) -> tuple[str, ...]:
    """The names of the tools as the model knows them."""
    return tuple(tool.name for tool in request.rendered.conversation.tools) if request is not None else ()


def _checked(data: object) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InputError(f"expected bytes, got {quote(data)}", path="data", hint="the bytes of the provider's answer")
    return bytes(data)


def _unreadable(error: InputError) -> Failure:
    if isinstance(error, LimitError):
        return from_answer_limit(error)
    return Failure("server", f"the provider's stream cannot be read: {error.message}", in_band=True)


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
        is_home = from_.protocol == to.protocol and (not wants_whole or from_.stream.calls == "whole")
        make = _HomeReader if is_home else StreamReader
        self._in = make(
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
        self._home = self._in if isinstance(self._in, _HomeReader) else None
        """What can be forwarded as it is: None from the first thing on that cannot."""
        stream = codec(to.protocol).stream
        self.content_type: str = get(to.protocol).stream_type
        self._array: ArrayWriter | None = None
        """What our own events become where the provider's answer is an array, and stays one."""
        own_framer = getattr(stream, "own_framer", None) if self._home is not None and not as_events else None
        self._new_array: Callable[[], ArrayWriter] | None = stream.Array if own_framer is not None else None  # type: ignore[attr-defined]
        if self._home is not None and own_framer is not None:
            self._home.use_framer(own_framer())
        self._encoder = stream.Encoder(_wish(request, created, to))
        self._closing: Collection[str] = getattr(stream, "CLOSING", ())
        """Events that wait for the end of their block: where that does not come, we write them with it ourselves."""
        self._final: bytes = getattr(stream, "LAST", b"")
        """The event that stands at the end of every stream, beside the one that ends the reply."""
        self._raw: list[bytes] = []
        self._written: list[bytes] = []
        """What waits until it is known whether the provider's own bytes can be forwarded: these, and ours."""
        self._waiting = 0
        self._has_last = False
        self._is_array_ended = False

    def feed(self, data: bytes) -> bytes:
        """What the client gets for these bytes of the provider."""
        if self._home is not None:
            if self._home.is_stream(data):
                return self._forward(self._home, data)
            self._home = None
        return self._in_form(self._encoder.write(self._in.feed(data)))

    def finish(self) -> bytes:
        """The provider's bytes ended in order; what the client gets at the end."""
        before = self._forward(self._home, None) if self._home is not None else b""
        return before + self._last(self._in.finish())

    def fail(self, why: Failure | ProviderError | InputError = DROPPED) -> bytes:
        """The provider's answer broke off; the client is told so in its own protocol's way."""
        return self._last(self._in.fail(why))

    def close(self) -> None:
        """The client went away. `reply`, `calls` and `cut` say what was whole by then."""
        self._in.close()
        self._drop_waiting()

    def ping(self) -> bytes:
        """Something that keeps the client's connection alive through a long silence, and that it leaves out."""
        return b"" if self._in.is_over else self._encoder.ping()

    # --- the same protocol on both sides ------------------------------------------------------------

    def _forward(self, home: _HomeReader, data: bytes | None) -> bytes:
        """The frames as they are, unless something before them or in them had to be mended; without data, the last."""
        output: list[bytes] = []
        try:
            frames = home.frames(data)
            if self._new_array is not None and home.is_array:
                self._array, self._new_array = self._new_array(), None
                self.content_type = self._array.CONTENT_TYPE
            for frame in frames:
                self._forward_frame(home, frame, output)
        except InputError as error:
            output.append(self.fail(_unreadable(error)))
        return b"".join(output)

    def _forward_frame(self, home: _HomeReader, frame: Frame, output: list[bytes]) -> None:
        if self._home is None:
            output.append(self._in_form(self._encoder.write(home.read(frame))))
        elif not frame.data:
            self._forward_blank(home, frame, output)
        elif home.is_over:
            if frame.data == _LAST and home.failure is None and not self._has_last:
                output.append(frame.raw)
            else:
                home.remark("the stream went on after its end; what followed is left out")
        else:
            self._weigh(home, frame, output)
        self._has_last = self._has_last or frame.data == _LAST

    def _forward_blank(self, home: _HomeReader, frame: Frame, output: list[bytes]) -> None:
        """What says nothing: a comment keeps the connection alive and goes at once, unless the end is near."""
        if _EMPTY_DATA.search(frame.raw) is not None:
            home.remark("an event has no data; it is left out, since clients try to read it")
        elif self.content_type == EVENTS and _NO_FIELD.search(frame.raw) is not None:
            home.remark("a line is no part of an event; it is left out")
        elif self._array is not None or (self._raw and (home.is_end_said or not frame.raw.strip())):
            self._raw.append(frame.raw)
        else:
            output.append(frame.raw)

    def _weigh(self, home: _HomeReader, frame: Frame, output: list[bytes]) -> None:
        """Forward a frame, or write from now on; or wait until that can be told."""
        self._written.append(self._encoder.write(home.read(frame)))
        self._raw.append(frame.raw)
        self._waiting += len(frame.raw)
        if home.was_changed or self._waiting > MOST_WAITING:
            output.append(self._own_bytes())
        elif (home.is_settled or home.is_over) and frame.name not in self._closing:
            output += self._raw
            self._drop_waiting()
            if self._array is not None:
                self._array.begin()

    def _in_form(self, written: bytes) -> bytes:
        """Events of ours in the form that the stream has."""
        return written if self._array is None else self._array.add(written)

    def _own_bytes(self) -> bytes:
        """From now on, what we write ourselves."""
        self._home = None
        written = self._in_form(b"".join(self._written))
        self._drop_waiting()
        return written

    def _drop_waiting(self) -> None:
        self._raw.clear()
        self._written.clear()
        self._waiting = 0

    def _last(self, events: list[Event]) -> bytes:
        """What the end of the provider's bytes says: nothing more, where all of them were forwarded."""
        written = self._encoder.write(events)
        home, before = self._home, b""
        if home is not None and events and (home.was_changed or home.failure is not None):
            home, before = None, self._own_bytes()
        if home is None:
            return before + self._in_form(written) + self._array_end()
        raw = b"".join(self._raw)
        self._drop_waiting()
        is_whole = home.is_over and home.failure is None
        if self._final and is_whole and not self._has_last:
            self._has_last = True
            home.tell(NO_LAST_EVENT)
            return raw + self._final
        return raw

    def _array_end(self) -> bytes:
        if self._array is None or self._is_array_ended:
            return b""
        self._is_array_ended = True
        return self._array.end()

    # --- what is known ------------------------------------------------------------------------------

    @property
    def is_over(self) -> bool:
        return self._in.is_over

    @property
    def reply(self) -> Reply:
        """What the client has been told so far. Its stop reason is None until the answer is done."""
        return self._in.reply

    @property
    def said(self) -> Reply:
        """The same in the provider's own names and ids, with what only the provider can read."""
        return self._in.said

    @property
    def final_body(self) -> dict[str, Any] | None:
        """The whole answer as the last event of the client's stream has it, where its protocol repeats it there."""
        return getattr(self._encoder, "final_body", None)

    @property
    def failure(self) -> Failure | None:
        """Why the answer broke off, if it did."""
        return self._in.failure

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that are whole and can be run. An answer that broke off has none: its turn is not whole."""
        return self._in.calls

    @property
    def cut(self) -> tuple[Block, ...]:
        """What ended before it was whole."""
        return self._in.cut

    @property
    def report(self) -> Report:
        """What was mended, guessed or lost so far."""
        source, target = self._in.source, self._in.target
        if source.protocol == target.protocol:
            return self._in.report
        ctx = RenderContext(target, DEFAULT_POLICY, source)
        if self._in.is_over and self._in.failure is None:
            report_losses(self._in.reply, None, ctx)
        return Report((*self._in.report.entries, *ctx.entries))


def _wish(request: ConvertedRequest | None, created: int, client: Profile) -> StreamWish:
    wish = StreamWish(
        created=created,
        whole_calls=client.stream.calls == "whole",
        thinking_parts=client.stream.thinking == "parts",
        refusals=client.turns.refusals,
    )
    if request is None:
        return wish
    asked = (request.rendered.conversation.extra or {}).get("openai_chat", {}).get("stream_options")
    usage = asked.get("include_usage") if isinstance(asked, dict) else None
    return replace(wish, model=request.model, usage=bool(usage))


class _HomeReader(StreamReader):
    """A reader whose frames and changes a translator can see."""

    was_changed = False
    """Whether anything was said to the client that is not what the provider said."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        # Where blocks are counted, thinking that is taken for text would leave a gap behind it.
        counts_blocks = getattr(codec(self.source.protocol).stream, "COUNTS_BLOCKS", True)
        reads_calls = self._reader is not None and isinstance(self._reader, dialects.CallsInText)
        self._keeps_thoughts = reads_calls and not counts_blocks
        self._said: list[Event] = []
        self._passed: list[Event] = []
        """What the provider said, and what the client was told, since the last time that nothing waited."""

    def is_stream(self, data: bytes) -> bool:
        """Whether the first bytes are those of a stream, and not of a whole answer."""
        if self._whole is None:
            return True
        begun = _checked(data).lstrip()
        if begun[:1] == b"{":
            return False
        if begun:
            self._whole = None
        return True

    def frames(self, data: bytes | None) -> list[Frame]:
        """The frames of these bytes; the last one, where there are no more."""
        if data is not None:
            return self._framer.feed(_checked(data))
        frames = self._framer.finish()
        if any(frame.data for frame in frames):
            self.tell(NO_LAST_LINE)
        if getattr(self._framer, "had_mark", False):
            self.tell(BYTE_ORDER_MARK)
        return frames

    def finish(self) -> list[Event]:
        events = super().finish()
        if self._has_told:
            self.was_changed = True  # an end that the provider did not say
        return events

    @property
    def _has_told(self) -> bool:
        """Whether any of the events is not as the protocol demands."""
        told = self._decoder.sequence.told
        return bool(told) and any(reason not in BESIDE_EVENTS and reason not in self._own_ways for reason in told)

    def use_framer(self, framer: Framer) -> None:
        """Take the frames from this framer."""
        self._framer = framer

    @property
    def is_array(self) -> bool:
        """Whether the frames are pieces of an array."""
        return bool(getattr(self._framer, "is_array", False))

    @property
    def is_end_said(self) -> bool:
        """Whether the provider has said why the reply ended."""
        return self._decoder.sequence.is_end_said

    def tell(self, reason: str) -> None:
        """Note what is wrong with the stream beside its events, once."""
        self._decoder.sequence.tell(reason)

    def remark(self, reason: str) -> None:
        """Note what the client does not get, once."""
        self._decoder.sequence.remark(reason)

    def read(self, frame: Frame) -> list[Event]:
        events = self._read(frame)
        passed = self._pass(events) if events else events
        if self._has_told or (self.failure is not None and not _is_own_reason(self.failure)):
            self.was_changed = True  # also an error: its words may hold a secret
        return passed

    def _pass(self, events: list[Event]) -> list[Event]:
        passed = super()._pass(events)
        if passed is not events or self._said:
            self._said += events
            self._passed += passed
            if self.is_settled or self.is_over:
                self.was_changed = self.was_changed or not self._are_same(self._said, self._passed)
                self._said, self._passed = [], []
        return passed

    def _are_same(self, said: list[Event], passed: list[Event]) -> bool:
        if _say_the_same(said, passed):
            return True
        has_calls = bool(getattr(self._reader, "found", ()))
        return self._keeps_thoughts and not has_calls and _beside_words(said) == _beside_words(passed)

    @property
    def is_settled(self) -> bool:
        is_read = self._reader is None or self._reader.is_settled
        return is_read and self._decoder.sequence.is_settled and self._answer.is_settled


def _is_own_reason(failure: Failure) -> bool:
    """Whether the provider itself says that its model wrote what nobody can use: its own clients know its words."""
    return failure.kind == "bad_output" and bool(failure.extra)


def _say_the_same(one: list[Event], other: list[Event]) -> bool:
    """Whether events are the same but for where their text is cut, and for when the costs are told."""
    return one == other or _joined(one) == _joined(other)


def _beside_words(events: list[Event]) -> list[Event]:
    """The events that are neither of text nor of thinking."""
    return [
        event for event in events if not isinstance(event, Used | TextDelta | ThinkingDelta) and not _is_word(event)
    ]


def _is_word(event: Event) -> bool:
    return isinstance(event, BlockStarted | BlockEnded) and isinstance(event.block, Text | Thinking)


def _joined(events: list[Event]) -> list[Event]:
    joined: list[Event] = []
    for event in events:
        last = joined[-1] if joined else None
        if isinstance(event, Used):
            continue
        if isinstance(event, TextDelta) and isinstance(last, TextDelta):
            joined[-1] = TextDelta(last.text + event.text)
        else:
            joined.append(event)
    return joined
