"""Reads the streams of the OpenAI Responses protocol.

Items begin and end (`output_item.added`, `.done`), and so do parts and texts inside them. The last event repeats the
whole response. A server may send less than that: deltas count first, then the item that ended, then the last response.

Law: the blocks, the stop reason and the forms are those that `reply.decode` reads from the last response.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import ClassVar, Final

import msgspec

from toolglot import jsontext
from toolglot.conversation import Block, Failure, Reply, StopReason, ToolCall, Turn
from toolglot.conversation.events import Event
from toolglot.errors import InputError, LimitError, quote
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.event_builder import CORRUPT_EVENT, EventBuilder
from toolglot.protocols.framing.text_frames import Frame, SseFramer
from toolglot.protocols.openai_responses import errors, reply
from toolglot.protocols.openai_responses.form import PLAIN_REPLY, PROTOCOL, ResponsesReply
from toolglot.protocols.openai_responses.stream_items import DELTAS, Assembly, DeltaEvent

framer: Final = SseFramer
_SILENT: Final = (
    *("response.web_search_call.", "response.file_search_call.", "response.code_interpreter_call"),
    *("response.mcp_", "response.image_generation_call.", "response.shell_call", "response.apply_patch_call"),
    *("response.audio.", "response.compaction.", "response.steer", "response.custom_tool_call_output"),
    *("response.tool_search", "response.computer_call", "response.reasoning_summary_part.done"),
    *("response.reasoning_part.done",),
    *("keepalive", "ping", "codex."),
)
"""How the types of events begin that only show progress: the item that ends holds what they say."""

_KNOWN_LATE: Final = frozenset({"usage", "status", "model", "id", "output"})
"""Fields of a response that are null at first, and say something in the end."""

_DEMANDED: Final = frozenset({"id", "created_at", "model", "output"})

_KEPT: Final = frozenset(
    {
        *("response.output_item.added", "response.output_item.done", "response.output_text.annotation.added"),
        *("response.output_text_annotation.added",),
        *("response.content_part.added", "response.content_part.done"),
    }
)
"""Events that hold what is kept until the end."""

_read_piece: Final = msgspec.json.Decoder(DeltaEvent).decode


class Decoder:
    """Reads the frames of one stream."""

    builder: EventBuilder

    def __init__(self, *, tools: Collection[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:
        del tools  # names come whole here
        self._assembly = Assembly(limits)
        self.builder = self._assembly.builder
        self._limits = limits
        self._last: DeltaEvent | None = None
        """The piece before this one, if nothing came between them."""
        self._last_key: Hashable = None
        self._id = ""
        self._form: ResponsesReply | None = None
        """The form of the response, from its first event on."""

    def read(self, frame: Frame) -> list[Event]:
        data = frame.data
        builder = self.builder
        if not data or builder.is_over:
            return []
        try:
            piece = _read_piece(data)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            self._read_with_care(frame)
            return builder.take()
        text, last = piece.delta, self._last
        if text is None:
            self._read_with_care(frame)
        elif (
            last is not None
            and piece.type == last.type
            and piece.item_id == last.item_id
            and piece.output_index == last.output_index
            and piece.content_index == last.content_index
            and piece.summary_index == last.summary_index
        ):
            builder.add(self._last_key, text)
        elif piece.type in DELTAS:
            self._add_piece(piece)
        else:
            self._read_with_care(frame)
        return builder.take()

    def finish(self) -> list[Event]:
        self._finish_unsaid(is_ended=False)
        return self.builder.take()

    def _finish_unsaid(self, *, is_ended: bool) -> None:
        self._assembly.close_whole()
        if self._assembly.has_lost:
            self.builder.fail(Failure("server", "the stream ended inside a call", in_band=True))
        form = None if self._form is None else ResponsesReply("completed")
        self.builder.finish_without_reason(is_ended=is_ended, closes_blocks=True, form=form)

    def _add_piece(self, piece: DeltaEvent) -> None:
        """A piece that does not continue the one before it."""
        self._last_key = self._assembly.add(piece)
        self._last = piece if self._last_key is not None else None
        self.builder.holds_back = self._assembly.is_between

    def _add_odd_piece(self, fields: Fields) -> None:
        """A piece, fields of which are not of their types."""
        text = fields.get("delta")
        if type(text) is not str:
            self.builder.report("a piece has no text; it is left out")
            return
        self.builder.report("a piece of text is not well-formed")
        id, *positions = (fields.get(key) for key in ("item_id", "output_index", "content_index", "summary_index"))
        indexes = [position if type(position) is int else None for position in positions]
        self._assembly.add(DeltaEvent(fields["type"], text, id if type(id) is str else None, *indexes))

    def _read_with_care(self, frame: Frame) -> None:
        """Any event, whatever it holds."""
        if frame.data.strip() == b"[DONE]":
            self._finish_unsaid(is_ended=True)
            return
        try:
            fields = jsontext.parse(frame.data, limits=self._limits).value
        except LimitError:
            raise
        except InputError:
            if self.builder.loses_content(frame.data):
                self.builder.fail(CORRUPT_EVENT)
            else:
                self.builder.report("an event is no JSON; it is left out")
            return
        if type(fields) is not dict:
            self.builder.report("an event is no object; it is left out")
            return
        self._last = None
        kind = self._kind(fields, frame.name)
        handler = self._HANDLERS.get(kind)
        if kind in _KEPT:
            self._assembly.keep(len(frame.data))
        if handler is not None:
            handler(self, {**fields, "type": kind})
            self.builder.holds_back = self._assembly.is_between and not self.builder.is_over
        elif kind.startswith(_SILENT):
            return
        elif fields.get("error"):
            self._fail(fields)
        else:
            self.builder.report(f"an event of an unknown type is left out: {quote(kind)}")

    def _kind(self, fields: Fields, name: str) -> str:
        kind = fields.get("type")
        if type(kind) is str and kind:
            return kind
        if name:
            self.builder.report("an event does not say its type; the name of the event counts")
        return name

    # --- the response as a whole --------------------------------------------------------------------

    def _begin(self, fields: Fields) -> None:
        held = fields.get("response")
        response: Fields = held if type(held) is dict else {}
        if self.builder.is_started:
            return
        if not _DEMANDED.issubset(response):
            # Clients of the provider's own SDK stop at such events; numbers they do not need, and OpenAI itself wrote
            # none until May 2025.
            self.builder.report("the stream leaves out what its protocol demands of each event")
        self._start(response)

    def _start(self, response: Fields) -> None:
        known = self._envelope(response)
        # What is null now and set at the end must not stay null.
        early = {
            key: value
            for key, value in (known.extra or {}).get(PROTOCOL, {}).items()
            if value is not None or key not in _KNOWN_LATE
        }
        self._id, self._form = known.id, PLAIN_REPLY
        self.builder.start(known.id, known.model, {PROTOCOL: early} if early else None, PLAIN_REPLY)

    def _envelope(self, response: Fields) -> Reply:
        """What a response says of itself, its items left out."""
        named = {key: value if type(value := response.get(key)) is str else "" for key in ("id", "model")}
        plain = {**response, **named, "output": []}
        try:
            return reply.decode(plain)
        except InputError as error:
            self.builder.report(f"the response is not well-formed, part of it is left out: {error}")
            odd = ("usage", "status", "incomplete_details")
            return reply.decode({key: value for key, value in plain.items() if key not in odd})

    def _end(self, fields: Fields) -> None:
        held = fields.get("response")
        response: Fields = held if type(held) is dict else {}
        if response.get("status") == "failed":
            self._fail({"type": "response.failed", "response": response})
            return
        if not self.builder.is_started:
            self.builder.report("the stream did not begin with response.created")
            self._start(response)
        known = self._envelope(response)
        if known.id != self._id:
            self.builder.report("the id of the response changed on the way; the first counts")
        self._assembly.take_over(response.get("output"))
        status = self._status(fields["type"], known.form.status if type(known.form) is ResponsesReply else None)
        self._assembly.end_held()
        if status == "completed":
            self._assembly.close_open()
        if known.usage is not None:
            self.builder.add_usage(known.usage)
        self.builder.finish(self._stop(status, response), known.extra, ResponsesReply(status))

    def _status(self, kind: str, status: str | None) -> str:
        """The status in which a response ended; if it does not say it, the event does."""
        if status is not None and status not in ("in_progress", "queued"):
            return status
        self.builder.report("the last event does not say the status of the response")
        ended = kind.removeprefix("response.")
        return ended if ended in ("incomplete", "cancelled") else "completed"

    def _stop(self, status: str, response: Fields) -> StopReason | None:
        details = response.get("incomplete_details")
        reason = details.get("reason") if type(details) is dict else None
        blocks: tuple[Block, ...] = tuple(self._assembly.spoken.values())
        if self.builder.has_calls or self.builder.has_cut_calls:
            blocks = (*blocks, ToolCall("", ""))
        return reply.stop_of(status, reason if type(reason) is str else None, Turn("assistant", blocks))

    def _fail(self, fields: Fields) -> None:
        held = fields.get("response")
        if type(held) is dict:
            if not self.builder.is_started:
                self._start(held)
            usage = self._envelope(held).usage
            if usage is not None:
                self.builder.add_usage(usage)
        failure = errors.decode(200, fields) or errors.decode(200, {**fields, "type": "error"})
        self.builder.fail(failure or Failure("server", "the response failed", in_band=True))

    # --- the items ----------------------------------------------------------------------------------

    def _begin_item(self, fields: Fields) -> None:
        self._assembly.begin(fields)

    def _end_item(self, fields: Fields) -> None:
        self._assembly.end(fields)

    def _begin_part(self, fields: Fields) -> None:
        self._assembly.begin_part(fields)

    def _end_part(self, fields: Fields) -> None:
        self._assembly.end_part(fields)

    def _end_text(self, fields: Fields) -> None:
        self._assembly.end_text(fields, fields.get("text"))

    def _end_refusal(self, fields: Fields) -> None:
        self._assembly.end_text(fields, fields.get("refusal"))

    def _annotate(self, fields: Fields) -> None:
        self._assembly.annotate(fields)

    def _end_arguments(self, fields: Fields) -> None:
        self._assembly.end_input(fields, "function_call")

    def _end_free_text(self, fields: Fields) -> None:
        self._assembly.end_input(fields, "custom_tool_call")

    def _begin_summary(self, fields: Fields) -> None:
        self._assembly.begin_thought(fields, "summary")

    def _end_summary(self, fields: Fields) -> None:
        self._assembly.end_thought(fields, "summary")

    def _begin_thought(self, fields: Fields) -> None:
        self._assembly.begin_thought(fields, "content")

    def _end_thought(self, fields: Fields) -> None:
        self._assembly.end_thought(fields, "content")

    _HANDLERS: ClassVar[dict[str, Callable[[Decoder, Fields], None]]] = {
        "response.created": _begin,
        "response.in_progress": _begin,
        "response.queued": _begin,
        "response.output_item.added": _begin_item,
        "response.output_item.done": _end_item,
        "response.content_part.added": _begin_part,
        "response.content_part.done": _end_part,
        "response.output_text.done": _end_text,
        "response.refusal.done": _end_refusal,
        "response.output_text.annotation.added": _annotate,
        "response.output_text_annotation.added": _annotate,  # until May 2025
        "response.function_call_arguments.done": _end_arguments,
        "response.custom_tool_call_input.done": _end_free_text,
        "response.reasoning_summary_part.added": _begin_summary,
        "response.reasoning_summary_text.done": _end_summary,
        "response.reasoning_part.added": _begin_thought,
        "response.reasoning_text.done": _end_thought,
        "response.completed": _end,
        "response.incomplete": _end,
        "response.cancelled": _end,
        "response.done": _end,
        "response.failed": _fail,
        "error": _fail,
        **dict.fromkeys(DELTAS, _add_odd_piece),
    }
    """Functions, not bound methods: a decoder that held those would refer to itself."""
