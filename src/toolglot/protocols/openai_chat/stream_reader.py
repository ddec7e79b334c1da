"""Reads the streams of the Chat Completions protocol, from OpenAI and from the many servers that imitate it.

    chunk*  a chunk with `finish_reason`  (a chunk with `usage` and no choices)  [DONE]

Law: a stream adds up to the same reply as one that is not streamed (`reply.decode`). Nothing that a server sends raises
anything but `LimitError`; what the protocol does not allow is reported.

Calls and usage may follow the finish reason, so the reply ends with `[DONE]`, with usage after the reason, or with the
bytes. Bytes that end without a reason and `[DONE]` were cut: that is a failure. Only the first choice is the reply.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import msgspec
from msgspec import MsgspecError
from msgspec.structs import replace

from toolglot.conversation import Block, Failure, Media, Text, Thinking, Turn
from toolglot.conversation.events import Event
from toolglot.errors import InputError, LimitError
from toolglot.jsontext import parse
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.event_builder import (
    CORRUPT_EVENT,
    NO_ARGUMENTS,
    NO_LAST_EVENT,
    PARTS_IN_CONTENT,
    STOP_WITH_CALLS,
    TEXT_KEY,
    THINKING_KEY,
    EventBuilder,
)
from toolglot.protocols.framing.text_frames import Frame, SseFramer
from toolglot.protocols.openai_chat import errors, reply
from toolglot.protocols.openai_chat.blocks import read_assistant_content
from toolglot.protocols.openai_chat.form import REFUSAL_FIELD, ChatThinking
from toolglot.protocols.openai_chat.streaming.calls import CallAssembler
from toolglot.protocols.openai_chat.streaming.chunk_templates import TEXT, ChunkTemplate, TemplateMaker, decode_text
from toolglot.protocols.openai_chat.streaming.chunks import (
    CallEntry,
    CallPiece,
    Delta,
    decode_chunk,
    make_piece,
    read_piece,
)
from toolglot.protocols.openai_chat.streaming.reply_fields import ReplyFields
from toolglot.protocols.openai_chat.streaming.snapshots import Snapshots

framer: Final = SseFramer
COUNTS_BLOCKS: Final = False
"""Blocks have no numbers on the wire."""
_DONE: Final = b"[DONE]"
_REFUSAL_KEY: Final = "refusal"
_CHUNK: Final = "chunk"
"""In place of a field: the thinking was a part of the content (Mistral)."""
_DELTA: Final = frozenset(
    {"role", "content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call"}
)
_SNAPSHOTS: Final = "the deltas of the text hold all of it so far"
_CONTENT: Final = _DELTA - {"role"}
"""Fields of a delta that hold content."""
_REFUSAL_TURN: Final = Turn("assistant", (Text("No", form=REFUSAL_FIELD, is_refusal=True),))
_ANY_TURN: Final = Turn("assistant")


class Decoder:
    """Reads the frames of one stream."""

    def __init__(self, *, tools: Collection[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:
        self._calls = CallAssembler(tools, limits)
        self.builder: EventBuilder = self._calls.builder
        self._fields = ReplyFields(limits)
        self._limits = limits
        self._is_started = False
        self._is_over = False
        self._is_flowing = False
        """Whether the reply has started, with a role and no finish reason yet: most chunks then only add to it."""
        self._finish_reason: str | None = None
        """As the provider wrote it."""
        self._has_role = False
        """Whether a delta named the role, or the lack of it was reported."""
        self._has_legacy = False
        """Whether there is a legacy `function_call`."""
        self._has_others = False
        """Whether there are choices besides the first."""
        self._is_done = False
        """Whether `[DONE]` came."""
        self._counts: Fields = {}
        """The last usage that came."""
        self._thinking_field = ""
        """The field that the open block of thinking came in."""
        self._in_text = False
        """Whether text was the last content, apart from arguments of open calls."""
        self._has_text = False
        self._has_refused = False
        self._has_tool_calls = False
        self._snapshot = ""
        """The content of a message in place of a delta: the next one repeats it and adds to it."""
        self._watch: Snapshots | None = Snapshots()
        """Finds out whether deltas of text hold all of it so far; None if they do not."""
        self._add_arguments = self._calls.add
        self._by_index = self._calls.by_index
        self._add_implicit = self.builder.add_implicit
        self._templates = TemplateMaker()
        self._template: ChunkTemplate | None = None
        """Of the last chunk."""

    def read(self, frame: Frame) -> list[Event]:
        data = frame.data
        if not self._is_flowing or frame.name:
            if self._is_over:
                self._is_done = self._is_done or data.strip() == _DONE
                return []
            return self._read_carefully(frame) if data else []
        template = self._template
        if template is not None and data.startswith(template.before) and data.endswith(template.after):
            try:
                text = decode_text(data[template.left : len(data) - template.right])
            except (MsgspecError, UnicodeDecodeError):
                text = ""
            if text and self._read_template(template, text):
                return self.builder.take()
        try:
            delta = decode_chunk(data).choices[0].delta
        except (MsgspecError, UnicodeDecodeError, RecursionError):
            return self._read_carefully(frame) if data else []
        self._template = self._templates.make(data, delta)
        if delta.reasoning_details is not None:
            self._fields.keep(len(data))
            self._fields.read_message("reasoning_details", delta.reasoning_details)
        entries = delta.tool_calls
        if entries is None or not self._adds_arguments(delta, entries):
            self._read_delta(delta)
        return self.builder.take()

    def _read_template(self, template: ChunkTemplate, text: str) -> bool:
        """Add the string of a chunk that is otherwise equal to the one before it. False if its call is gone."""
        if template.index == TEXT:
            if not self._in_text:
                self._begin_text()
            self._add_implicit(TEXT_KEY, text if self._watch is None else self._new_text(self._watch, text))
        else:
            call = self._by_index.get(template.index)
            if call is None:
                return False
            self._add_arguments(call, text)
        self._templates.note_match()
        return True

    def _adds_arguments(self, delta: Delta, entries: list[CallEntry]) -> bool:
        """Add a delta that holds only arguments of an open call. False if it is not one."""
        if len(entries) != 1 or delta.content or delta.reasoning_content or delta.reasoning or delta.refusal:
            return False
        entry = entries[0]
        called, call = entry.function, self._by_index.get(entry.index)
        if call is None or called is None or called.name is not None or entry.id is not None:
            return False
        if called.arguments:
            self._add_arguments(call, called.arguments)
        return True

    def finish(self) -> list[Event]:
        if not self._is_over:
            self._end()
        if not self._is_done and not self.builder.has_failed:
            self.builder.report(NO_LAST_EVENT)
        return self.builder.take()

    # --- chunks -------------------------------------------------------------------------------------

    def _read_delta(self, delta: Delta) -> None:
        """Read a delta, in the order of a whole message."""
        thought, reasoning = delta.reasoning_content, delta.reasoning
        if thought:
            self._add_thinking("reasoning_content", thought)
        if reasoning and reasoning != thought:
            self._add_thinking("reasoning", reasoning)
        content = delta.content
        if content:
            if not self._in_text:
                self._begin_text()
            self._add_implicit(TEXT_KEY, content if self._watch is None else self._new_text(self._watch, content))
        if delta.refusal:
            self._add_refusal(delta.refusal)
        if delta.tool_calls:
            self._has_tool_calls = True
            self._read_pieces([make_piece(entry) for entry in delta.tool_calls])

    def _new_text(self, watch: Snapshots, text: str) -> str:
        """The new text of a delta, if deltas hold all of the text so far, or while that is not clear."""
        new, goes_on = watch.take(text)
        self._watch = watch if goes_on else None
        self.builder.holds_back = watch.is_waiting or self._finish_reason is not None
        if watch.are_found:
            self.builder.report(_SNAPSHOTS)
        return new

    def _release(self) -> None:
        """Add the text that waited, before something else or at the end."""
        watch = self._watch
        if watch is None or not watch.is_waiting:
            return
        text = watch.release()
        self._watch = watch if watch.are_found else None
        self.builder.holds_back = self._finish_reason is not None
        if watch.are_found:
            self.builder.report(_SNAPSHOTS)
        self._add_implicit(TEXT_KEY, text)

    def _read_pieces(self, pieces: list[CallPiece], *, are_whole: bool = False) -> None:
        self._release()
        self._end_refusal()
        self._in_text = False
        self._calls.read(pieces, are_whole=are_whole)

    def _read_carefully(self, frame: Frame) -> list[Event]:
        """Read any chunk, whatever it holds."""
        data = frame.data.strip()
        if data == _DONE:
            self._is_done = True
            self._end()
            return self.builder.take()
        try:
            fields = parse(data, limits=self._limits).value
        except LimitError:
            raise
        except InputError:
            if self.builder.loses_content(data):
                self._fail(CORRUPT_EVENT)
            else:
                self.builder.report("an event is not JSON; it was left out")
            return self.builder.take()
        if type(fields) is not dict:
            self.builder.report("an event is not an object; it was left out")
            return self.builder.take()
        failure = errors.decode(200, fields)
        if failure is None and frame.name == "error":
            failure = _named_error(fields)
        if failure is not None:
            self._fail(failure)
        else:
            self._read_fields(fields, len(data))
        return self.builder.take()

    def _read_fields(self, fields: Fields, size: int) -> None:
        self._fields.keep(size)
        self._fields.read_chunk(fields)
        choices = fields.get("choices")
        if type(choices) is not list:
            self.builder.report("an event has no choices")
        choice: Fields | None = None
        for one in choices if type(choices) is list else ():
            if type(one) is not dict:
                self.builder.report("a choice is not an object; it was left out")
            elif one.get("index") in (0, None) and choice is None:
                choice = one
            else:
                self._has_others = True
                self.builder.remark("there are several choices; the first is the reply, the others are left out")
        if choice is not None:
            if fields.get("object") != "chat.completion.chunk":
                self.builder.report("the object of a chunk is not chat.completion.chunk")
            self._read_choice(choice)
        self._read_usage(fields, choice or {})
        if self._finish_reason is not None and not choices and self._counts and not self._has_others:
            self._end()

    def _read_choice(self, choice: Fields) -> None:
        self._fields.read_choice(choice)
        delta, message, reason = choice.get("delta"), choice.get("message"), choice.get("finish_reason")
        if choice.get("index") is None:
            self.builder.report("a choice has no index")
        if type(delta) is dict:
            self._check_delta(delta, has_reason=bool(reason))
        has_delta = type(delta) is dict and bool(delta.keys() - {"role"})
        if type(delta) is dict and has_delta:
            self._start()
            self._read_message(delta)
        elif self._fields.id and self._fields.model:
            self._start()
        if type(delta) is not dict and type(message) is not dict:
            self.builder.report("a choice has no delta")
        if type(message) is dict and has_delta:  # Perplexity does so; OpenAI's SDK for JavaScript then reads both
            self.builder.report("a chunk repeats the reply so far besides its delta")
        elif type(message) is dict:
            self._read_whole(message)
        if type(reason) is str and reason:
            self._start()
            self._read_reason(reason)
        self._is_flowing = self._is_started and self._has_role and self._finish_reason is None

    def _check_delta(self, delta: Fields, *, has_reason: bool) -> None:
        """Report what a client cannot put together: a message without a role, content after the reason."""
        has_content = any(delta.get(key) for key in _CONTENT)
        if type(delta.get("role")) is str and delta["role"] not in ("", "assistant"):
            self.builder.report("the role of a delta is not assistant")
        self._has_role = self._has_role or delta.get("role") == "assistant"
        if not self._has_role and (has_content or has_reason):
            self._has_role = True
            self.builder.report("no delta names the role")
        if has_content and self._finish_reason is not None:
            self.builder.report("something follows the finish reason")

    def _read_reason(self, reason: str) -> None:
        """Read the finish reason. It is checked against the calls that came."""
        meant = reply.meaning_of(reason)
        has_calls = self._calls.has_begun
        if meant is None:
            self.builder.report("the finish reason is unknown to the protocol")
        elif meant == "stop" and has_calls:
            self.builder.report(STOP_WITH_CALLS)
        elif meant == "tool_calls" and not has_calls:
            self.builder.report("the finish reason names calls although there are none")
        elif reason == "function_call" and not self._has_legacy:
            self.builder.report("the finish reason is that of legacy functions")
        if self._finish_reason not in (None, reason):
            self.builder.report("there are two finish reasons; the last one counts")
        self._finish_reason = reason
        self.builder.is_end_announced = self.builder.holds_back = True

    def _read_whole(self, message: Fields) -> None:
        """Read a message in place of a delta: the whole reply if it is the first content, or all of it so far."""
        self.builder.report("a chunk holds a whole message")
        content = message.get("content")
        if not self.builder.has_blocks and not self.builder.holds_back:
            self._start()
            self._has_role = True
            self._read_message(message, is_whole=True)
            self._snapshot = content if type(content) is str else ""
        elif self._snapshot and type(content) is str and content.startswith(self._snapshot):
            more, self._snapshot = content[len(self._snapshot) :], content
            rest = {} if self._has_tool_calls else {"tool_calls": message.get("tool_calls")}
            self._read_message({"content": more, **rest}, is_whole=True)

    def _read_message(self, fields: Fields, *, is_whole: bool = False) -> None:
        """Read a delta or a message, field by field."""
        texts = {key: fields[key] for key in ("reasoning_content", "reasoning") if type(fields.get(key)) is str}
        content, refusal, calls = fields.get("content"), fields.get("refusal"), fields.get("tool_calls")
        if type(calls) is dict:
            self.builder.report("the calls of a chunk are not in a list")
            calls = [calls]
        self._read_delta(Delta(content if type(content) is str else None, **texts))
        if type(content) is list:
            self.builder.report(PARTS_IN_CONTENT)
            for part in content:
                self._read_part(part)
        elif content is not None and type(content) is not str:
            self.builder.report("the content of a chunk is neither a string nor a list; it was left out")
        if type(refusal) is str:
            self._add_refusal(refusal)
        pieces = [read_piece(entry) for entry in calls if type(entry) is dict] if type(calls) is list else []
        if pieces:
            self._has_tool_calls = True
            self._read_pieces(pieces, are_whole=is_whole)
        elif not self._has_tool_calls:  # some hosts send a call in both forms
            self._read_function(fields.get("function_call"))
        for key, value in fields.items():
            if key not in _DELTA and value is not None:
                self._fields.read_message(key, value)

    def _read_usage(self, fields: Fields, choice: Fields) -> None:
        """Keep the usage. It may be in the choice (Kimi) or in a field of its own (Groq). The last one counts."""
        groq = fields.get("x_groq")
        for holder in (fields, choice, groq if type(groq) is dict else {}):
            counts = holder.get("usage")
            if type(counts) is dict and counts:
                self._counts = counts
                return

    def _add_usage(self) -> None:
        if not self._counts:
            return
        try:
            read = reply.decode({"choices": [{"message": {"role": "assistant"}}], "usage": self._counts})
        except InputError:
            self.builder.report("the usage cannot be read; it was left out")
        else:
            if read.usage is not None:
                self.builder.add_usage(read.usage)

    # --- blocks -------------------------------------------------------------------------------------

    def _add_thinking(self, field: str, piece: str) -> None:
        builder = self.builder
        if not builder.is_open(THINKING_KEY):
            self._begin_thinking(field)
        elif field != self._thinking_field:
            builder.close(THINKING_KEY)
            if not builder.is_open(THINKING_KEY):  # one that waits for its turn continues
                self._begin_thinking(field)
        self._add_implicit(THINKING_KEY, piece)

    def _begin_thinking(self, field: str) -> None:
        self._release()
        self._end_refusal()
        self._calls.pause()
        self._thinking_field = field
        form = ChatThinking(chunk=[]) if field == _CHUNK else ChatThinking(field)
        self.builder.open(THINKING_KEY, Thinking(form=form))

    def _begin_text(self) -> None:
        self._end_refusal()
        self._calls.pause()
        self._in_text = self._has_text = True

    def _add_refusal(self, piece: str) -> None:
        if not self.builder.is_open(_REFUSAL_KEY):
            if not piece:
                return
            self._release()
            self._calls.pause()
            self._has_refused, self._in_text = True, False
            self.builder.open(_REFUSAL_KEY, Text("", form=REFUSAL_FIELD, is_refusal=True))
        self.builder.add(_REFUSAL_KEY, piece)

    def _end_refusal(self) -> None:
        if self._has_refused:
            self.builder.close(_REFUSAL_KEY)

    def _read_part(self, part: object) -> None:
        """Read a part of content that is a list, as Mistral sends it."""
        try:
            (block,), _ = read_assistant_content({"content": [part]})
        except InputError:
            self.builder.report("a part of the content cannot be read; it was left out")
            return
        if isinstance(block, Text) and block.extra is None and block.form is None:
            self._read_delta(Delta(block.text))
        elif isinstance(block, Thinking) and _is_plain_thinking(block):
            self._add_thinking(_CHUNK, block.text)
            if block.signature is not None:
                known = self.builder.block(THINKING_KEY)
                if isinstance(known, Thinking):
                    self.builder.update(THINKING_KEY, Thinking(signature=block.signature, form=known.form))
        else:
            self._add_block(block)

    def _add_block(self, block: Block) -> None:
        self._release()
        self._begin_text()
        key = object()
        if isinstance(block, Text | Thinking):
            self.builder.open(key, replace(block, text=""))
            self.builder.add(key, block.text)
        elif isinstance(block, Media) and block.data:
            self.builder.open(key, replace(block, data=""))
            self.builder.add(key, block.data)
        else:
            self.builder.open(key, block)
        self.builder.close(key)

    def _read_function(self, called: object) -> None:
        """Read a piece of a legacy `function_call`."""
        if type(called) is dict:
            piece = read_piece({"index": 0, "function": called})
            if piece.name or piece.text:
                self._has_legacy = True
                self._read_pieces([msgspec.structs.replace(piece, is_legacy=True)])

    # --- beginning and end --------------------------------------------------------------------------

    def _start(self) -> None:
        if not self._is_started:
            self._is_started = True
            self.builder.start(self._fields.id, self._fields.model, *self._fields.at_start())

    def _settle(self) -> None:
        """Add everything that waits."""
        self._start()
        self._is_over, self._is_flowing = True, False
        self._release()
        self._end_refusal()
        self._calls.finish()
        self._add_usage()

    def _end(self) -> None:
        if self._calls.failure is not None:
            self._fail(self._calls.failure)
            return
        self._settle()
        extra, form, message = self._fields.at_end(), self._fields.form(self._finish_reason), self._fields.message()
        if self._finish_reason is None:
            self.builder.finish_without_reason(is_ended=self._is_done, extra=extra, form=form, turn_extra=message)
        else:
            only_refused = self._has_refused and not self._has_text
            stop = reply.stop_of(self._finish_reason, _REFUSAL_TURN if only_refused else _ANY_TURN)
            self.builder.finish(stop, extra, form, message)
        if self._calls.has_blank and not self.builder.has_cut_calls:
            self.builder.report(NO_ARGUMENTS)

    def _fail(self, failure: Failure) -> None:
        self._settle()
        self.builder.fail(failure)


def _is_plain_thinking(block: Thinking) -> bool:
    """Thinking that is text and nothing else."""
    if type(block.form) is not ChatThinking:
        return False
    return all(type(part) is dict and part.keys() == {"type", "text"} for part in block.form.chunk or ())


def _named_error(fields: Fields) -> Failure | None:
    """The failure of an event named `error`, whatever it holds."""
    failure = errors.decode(500, fields)
    return Failure(failure.kind, failure.message, code=failure.code, in_band=True) if failure is not None else None
