"""A provider's stream as canonical events, for an agent or for a writer of another protocol.

    reader = toolglot.StreamReader(source="openai_chat", request=out)
    for piece in response: events = reader.feed(piece)
    events = reader.finish()

Bytes in, events out: nothing here reads a socket or a clock. Law 8 (split-proof): however the bytes are cut, the events
are the same, and they add up to what `convert_reply` makes of the same reply as a whole.
"""

from __future__ import annotations

from typing import Final, Protocol

from toolglot import profiles
from toolglot.conversation import Block, Conversation, Failure, Reply, ToolCall
from toolglot.conversation.events import (
    UNREPORTED_CUT,
    Accumulator,
    Event,
    Finished,
    Used,
)
from toolglot.conversation.reply_events import of_reply
from toolglot.conversation.report import Entry, Report
from toolglot.errors import InputError, LimitError, quote
from toolglot.jsontext import refuse_deep_text, refuse_many_values
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.policy import DEFAULT_POLICY, Policy
from toolglot.profiles import Overrides, Profile
from toolglot.protocols.base import EVENTS, StreamDecoder, codec, get
from toolglot.protocols.errors.failures import ProviderError, from_input_error, from_reply_limit
from toolglot.protocols.framing.event_builder import (
    BEGAN_WITH_INPUT,
    NO_ARGUMENTS,
    NO_LAST_ITEMS,
    NO_TYPE,
    PARTS_IN_CONTENT,
    STOP_WITH_CALLS,
)
from toolglot.protocols.framing.text_frames import Frame
from toolglot.render.context import RenderContext
from toolglot.render.reply.stream_projection import StreamProjection
from toolglot.translate.replies import (
    NOT_OVER,
    THOUGHTS_WERE_TEXT,
    calls_in_text_reason,
    decode_reply,
    dialect_in_text,
    empty_marks_reason,
    text_reader,
    usage_for,
)
from toolglot.translate.reply_report import report_arguments, report_reading, report_signatures
from toolglot.translate.requests import ConvertedRequest
from toolglot.translate.web_search import SearchProjection

DROPPED: Final = Failure("server", "the connection to the model's provider was lost", in_band=True)


class TextReader(Protocol):
    """Finds calls that a model writes as text, between the provider's stream and the client's.

    It takes the events of the provider and returns those for the client. Deltas of text may be held back as long as
    they may be the beginning of a call. A whole reply passes through it as events too.
    """

    def feed(self, events: list[Event]) -> list[Event]: ...

    @property
    def is_settled(self) -> bool:
        """Whether nothing is held back."""
        ...


class StreamReader:
    """A provider's stream as canonical events, under the client's names and ids.

    source: the provider that replies: any name of the profiles, a provider (`mistral`) or a protocol (`openai_chat`).
    request: what `convert` returned for the request. With it, tools get their own names back.
    target: the client; ids are legal for it. Without it, the request's source, or the source itself.
    reader: finds calls in text. Without it, all dialects are tried, if the policy or the source's profile says that
        there may be calls in text.
    reply_id: the id of the reply for a client of another protocol, instead of the provider's.
    overrides: changes to profiles, and your own profiles (`toolglot.profiles.read_overrides`).
    limits: how large and how deep the JSON may be (`toolglot.Limits`).
    reply_model: the model that the reply names, instead of the one that the provider names.
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
        client = target or (request.source.name if request is not None else source)
        self.target: Profile = profiles.get(client, overrides=overrides, kind="target")
        self._limits = limits
        self._small_frame = 2 * min(limits.max_depth, limits.max_nodes)
        """The size of a frame that breaks no limit, whatever it holds: a level and a value take at least two bytes."""
        stream = codec(self.source.protocol).stream
        rendered = request.rendered if request is not None else None
        self._head = request.head if request is not None else None
        self._framer = stream.framer()
        self._decoder: StreamDecoder = stream.Decoder(tools=_tool_names(request), limits=limits)
        dialect = dialect_in_text(self.source, request, policy)
        if reader is None and dialect:
            requested = rendered.conversation if rendered is not None else Conversation()
            reader = text_reader(dialect, requested, policy)
        self._reader = reader
        self._ctx = RenderContext(self.target, policy, self.source)
        self._projection = StreamProjection(
            self.source,
            self.target,
            rendered,
            self._ctx,
            whole_calls=policy.stream_calls == "whole",
            reply_id=reply_id,
            reply_model=reply_model,
        )
        sent = rendered.conversation if rendered is not None else None
        self._search = SearchProjection.between(self.source, self.target, sent)
        self._whole: list[bytes] | None = [] if get(self.source.protocol).stream_type == EVENTS else None
        """The bytes so far, while they may be a whole reply instead of a stream."""
        self._size = 0
        self._provider_accumulated = Accumulator()
        self._accumulated = Accumulator()
        self._expected_deviations: frozenset[str] = _expected_deviations(self.source, self.target, request)
        self._rendered = rendered
        self.fills_usage: bool = False
        """Whether token counts that the provider does not report are estimated at the end."""
        self._keeps_thoughts: bool = False
        """Whether marks of thinking in the text reach the client as they are, as long as the text holds no calls."""
        self.is_over: bool = False
        """Whether the reply has finished or failed, or was closed. What follows is ignored."""

    # --- what comes in ------------------------------------------------------------------------------

    def feed(self, data: bytes) -> list[Event]:
        """The events that these bytes complete."""
        if self.is_over:
            return []
        if self._whole is not None:
            return self._gather(self._whole, data)
        checked = data if type(data) is bytes else check_bytes(data)
        events: list[Event] = []
        try:
            frames = self._framer.feed(checked)
            if len(frames) == 1 and len(frames[0].data) < self._small_frame:
                events = self._decoder.read(frames[0])
            else:
                for frame in frames:
                    events += self._read(frame)
        except InputError as error:
            return self._pass(events) + self.fail(failure_of_stream(error))
        return self._pass(events) if events else events

    def _read(self, frame: Frame) -> list[Event]:
        """The events of a frame, which may hold millions of values, or nest them deeply."""
        if len(frame.data) >= self._small_frame:
            refuse_many_values(frame.data, self._limits, "$")
            refuse_deep_text(frame.data, self._limits, "$")
        return self._decoder.read(frame)

    def finish(self) -> list[Event]:
        """End the stream: the provider closed it in order."""
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
            return self._pass(events) + self.fail(failure_of_stream(error))
        return self._pass(events)

    def _gather(self, pieces: list[bytes], data: bytes) -> list[Event]:
        """Read the first bytes: of a stream, or of a whole reply although a stream was requested, which begins like
        JSON."""
        data = check_bytes(data)
        if not pieces:
            data = data.lstrip()
            if data[:1] not in (b"{", b""):
                self._whole = None
                return self.feed(data)
        if data:
            pieces.append(data)
        self._size += len(data)
        if self._size > self._limits.max_bytes:
            return self.fail(failure_of_stream(LimitError("the answer is longer than the limit (max_bytes)")))
        return []

    def _read_whole(self, data: bytes) -> list[Event]:
        """A whole reply, as the events of a stream."""
        self._decoder.builder.remark("the provider sent a whole reply although a stream was requested")
        try:
            _, reply, fixes = decode_reply(data, self.source, self._limits)
        except ProviderError as error:
            return self.fail(error)
        except LimitError as error:
            return self.fail(failure_of_stream(error))
        report_reading(fixes, self._ctx)
        return self._pass([*of_reply(reply)])

    def fail(self, why: Failure | ProviderError | InputError = DROPPED) -> list[Event]:
        """End a reply that broke off: the connection was lost, or it took too long. Open blocks end as cut."""
        if self.is_over:
            return []
        if isinstance(why, ProviderError):
            why = why.failure
        failure = from_input_error(why) if isinstance(why, InputError) else why
        if not isinstance(failure, Failure):
            raise InputError(f"expected a Failure or an error of toolglot, got {quote(why)}", path="why")
        self._decoder.builder.fail(failure)
        return self._pass(self._decoder.builder.take())

    def close(self) -> None:
        """Stop reading. `reply`, `calls` and `cut` are what was complete by then."""
        if not self.is_over:
            self._decoder.builder.abandon()
            self._pass(self._decoder.builder.take())
            self.is_over = True

    def _pass(self, events: list[Event]) -> list[Event]:
        """The events as the client gets them. Deltas, which are most of all events, change nothing here."""
        if self._reader is not None:
            events = self._reader.feed(events)
        if self._projection.are_plain_deltas(events):
            return events
        self._provider_accumulated.add(events)
        passed = self._projection.pass_on(events)
        if self._search is not None:
            passed = self._search.pass_on(passed)
        if self._head is not None:
            passed = self._head.add_to_events(passed, self.target.protocol)
        if self.fills_usage and passed and type(passed[-1]) is Finished and passed[-1].stop not in NOT_OVER:
            return self._finish_with_usage(passed, passed[-1])
        self._accumulated.add(passed)
        self.is_over = self._accumulated.is_over
        return passed

    def _finish_with_usage(self, passed: list[Event], finished: Finished) -> list[Event]:
        """The last events, with token counts."""
        self._accumulated.add(passed[:-1])
        reply = self._accumulated.reply
        usage = usage_for(reply, self._rendered, self._ctx)
        last: list[Event] = [finished] if usage is None or usage is reply.usage else [Used(usage), finished]
        self._accumulated.add(last)
        self.is_over = True
        return passed if len(last) == 1 else [*passed[:-1], *last]

    # --- what is known ------------------------------------------------------------------------------

    @property
    def reply(self) -> Reply:
        """The reply so far, with the client's names and ids. Its stop reason is None until the end."""
        return self._accumulated.reply

    @property
    def reported_reply(self) -> Reply:
        """The reply with what of the provider's fields could not be carried."""
        return self.reply if self._search is None else self._search.reported(self.reply)

    @property
    def provider_reply(self) -> Reply:
        """The reply with the provider's own names and ids, signatures included."""
        return self._provider_accumulated.reply

    @property
    def failure(self) -> Failure | None:
        """Why the reply broke off, if it did."""
        return self._accumulated.failure

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that are complete and can be run. A reply that broke off has none."""
        return self._accumulated.calls if self._accumulated.failure is None else ()

    @property
    def cut(self) -> tuple[Block, ...]:
        """The blocks that ended before they were complete."""
        return self._accumulated.cut

    @property
    def report(self) -> Report:
        """What was fixed, assumed or lost so far."""
        ctx = RenderContext(self.target, self._ctx.policy, self.source)
        if self.source.protocol != self.target.protocol:
            report_signatures(self._projection.signatures, ctx)
            report_arguments(self._provider_accumulated.reply, ctx)
        builder = self._decoder.builder
        changes = [
            ("converted" if reason in builder.fixes else "assumed", reason)
            for reason in builder.problems
            if reason not in self._expected_deviations
        ]
        changes += [("dropped", reason) for reason in builder.remarks]
        found = getattr(self._reader, "found", ())  # a reader of the caller need not have it
        changes += [("converted", calls_in_text_reason(found))] if found else []
        if self._keeps_thoughts and not found:
            dropped, has_thoughts = (), False
        else:
            dropped = getattr(self._reader, "dropped", ())
            has_thoughts = not self._keeps_thoughts and getattr(self._reader, "has_thoughts", False)
        changes += [("dropped", empty_marks_reason(dropped))] if dropped else []
        changes += [("converted", THOUGHTS_WERE_TEXT)] if has_thoughts else []
        entries = [
            Entry(action=action, reason=reason, fault="canonical", target=self.target.name)  # type: ignore[arg-type]
            for action, reason in changes
        ]
        return Report((*entries, *self._ctx.entries, *ctx.entries))


def _expected_deviations(source: Profile, target: Profile, request: ConvertedRequest | None) -> frozenset[str]:
    """Deviations from the protocol that this client expects of this provider, or for this request."""
    if source.protocol != target.protocol:
        return frozenset({NO_ARGUMENTS})
    own = {BEGAN_WITH_INPUT, UNREPORTED_CUT}
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


def _tool_names(request: ConvertedRequest | None) -> tuple[str, ...]:
    """The names of the tools as the model knows them."""
    return tuple(tool.name for tool in request.rendered.conversation.tools) if request is not None else ()


def check_bytes(data: object) -> bytes:
    if not isinstance(data, bytes | bytearray | memoryview):
        raise InputError(f"expected bytes, got {quote(data)}", path="data", hint="the bytes of the provider's answer")
    return bytes(data)


def failure_of_stream(error: InputError) -> Failure:
    if isinstance(error, LimitError):
        return from_reply_limit(error)
    return Failure("server", f"the provider's stream cannot be read: {error.message}", in_band=True)
