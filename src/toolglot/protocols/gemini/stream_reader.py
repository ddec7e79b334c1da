"""Reads a Gemini stream: partial replies, each in the form of a whole one.

Blocks are the same as in a reply that is not streamed: the parts of one chunk are separate blocks, and plain text
continues over chunks as long as its kind (text or thinking) is the same. A part with a signature, or with other fields
of its own, is never joined with another one, even if its text is empty. Only the words of a signed text continue the
text before them, since one text is one block for a client; the signature follows in a part with an empty text, as
Gemini itself often sends it. Everything except the parts is merged into one body, which `reply.decode` reads at the
end.

The stream ends with its bytes: servers may send a finish reason in every chunk, and usage after the reason.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from toolglot.conversation import Failure, Reply, Thinking, ToolCall, Turn
from toolglot.conversation.events import Event
from toolglot.errors import InputError
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.fields.argument_text import read_arguments
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.event_builder import TEXT_KEY, THINKING_KEY, EventBuilder, keep_call
from toolglot.protocols.framing.json_objects import ObjectReader
from toolglot.protocols.framing.text_frames import Frame
from toolglot.protocols.gemini import errors, reply
from toolglot.protocols.gemini.blocks import in_camel, read_part
from toolglot.protocols.gemini.form import PROTOCOL, THOUGHT
from toolglot.protocols.gemini.streaming.candidates import MergedFields, OtherCandidate, plain_text
from toolglot.protocols.gemini.streaming.framing import GeminiFramer
from toolglot.protocols.gemini.streaming.partial_arguments import PartialArguments, has_partial_arguments

framer: Final = GeminiFramer
native_framer: Final = partial(GeminiFramer, keeps_array=True)
"""For a client of the same protocol: the frames of an array are pieces of an array."""

_NONE: Final = Raw(b"")
_SIGNED_TEXT: Final = frozenset({"text", "thought", "thoughtSignature", "thought_signature"})


class _Part(Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    text: str
    thought: bool = False


class _Content(Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    parts: list[_Part]
    role: str = ""


class _Candidate(Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    content: _Content
    index: int = 0
    safety_ratings: Raw = _NONE


class _Chunk(Struct, gc=False, forbid_unknown_fields=True, rename="camel"):
    """More text and nothing else: nearly all chunks. Any other is read with care."""

    candidates: list[_Candidate]
    usage_metadata: Raw = _NONE
    model_version: str = ""
    response_id: str = ""
    create_time: str = ""


_decode_chunk: Final = msgspec.json.Decoder(_Chunk).decode


class Decoder:
    """The events of one stream."""

    def __init__(self, *, tools: Collection[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:
        del tools  # names come whole here
        self.builder: EventBuilder = EventBuilder(build_call=keep_call, limits=limits)
        self._objects = ObjectReader(self.builder, limits)
        self._body = MergedFields()
        """The fields of the chunks besides their candidates. A later value counts."""
        self._candidate = MergedFields()
        self._index: int | None = None
        """The index of the candidate that is the reply: the first that came."""
        self._others: dict[int, OtherCandidate] = {}
        self._has_content = False
        self._reason: str | None = None
        self._counts = _NONE
        self._has_counts = False
        self._arguments: PartialArguments | None = None

    def read(self, frame: Frame) -> list[Event]:
        builder = self.builder
        if not frame.data or builder.is_over:
            return []
        if self._has_content:
            try:
                chunk = _decode_chunk(frame.data)
            except (ValueError, RecursionError):
                self._read_carefully(frame.data)
                return builder.take()
            if self._is_plain(chunk):
                part = chunk.candidates[0].content.parts[0]
                if chunk.usage_metadata:
                    self._counts = chunk.usage_metadata
                if part.thought:
                    self._think(part.text)
                else:
                    builder.add_implicit(TEXT_KEY, part.text)
                return builder.take()
        self._read_carefully(frame.data)
        return builder.take()

    def finish(self) -> list[Event]:
        if not self.builder.is_over:
            self._finish()
        return self.builder.take()

    def _is_plain(self, chunk: _Chunk) -> bool:
        candidates = chunk.candidates
        return len(candidates) == 1 and candidates[0].index == self._index and len(candidates[0].content.parts) == 1

    # --- a chunk --------------------------------------------------------------------------------------

    def _read_carefully(self, data: bytes) -> None:
        body = self._objects.read(data)
        if body is None:
            return
        if body.get("error"):
            failure = errors.decode(200, body, target=PROTOCOL)
            self.builder.fail(failure or Failure("server", "the stream ended with an error", in_band=True))
            return
        fields = self._body.add(body, skip="candidates")
        self.builder.start(_text_or_empty(fields.get("responseId")), _text_or_empty(fields.get("modelVersion")))
        if fields.get("usageMetadata") is not None:
            self._count()
        self._read_candidates(fields.get("candidates"))

    def _count(self) -> None:
        """Add the first counts at once, since they hold the length of the prompt. Of the rest, the last ones count."""
        self._counts = _NONE
        if not self._has_counts:
            self._has_counts = True
            self._add_usage(self._whole_reply())

    def _read_candidates(self, candidates: Any) -> None:
        if candidates is None:
            return
        if type(candidates) is not list:
            self.builder.report("candidates that are not a list were left out")
            return
        for position, candidate in enumerate(candidates):
            if type(candidate) is not dict:
                self.builder.report("a candidate that is not an object was left out")
                continue
            index: Any = candidate.get("index")
            index = index if type(index) is int else position
            if self._index is None:
                self._index = index
            if index == self._index:
                self._read_candidate(candidate)
            else:
                self._others.setdefault(index, OtherCandidate()).add(candidate)

    def _read_candidate(self, candidate: Fields) -> None:
        fields = self._candidate.add(candidate, skip="content")
        failure = None
        written: Any = fields.get("finishReason")
        # A number stands for a name, except 0, which is not a reason.
        reason = reply.reason_of(fields)[0] if type(written) is str or (type(written) is int and written) else None
        if reason is not None:
            self._reason = reason
            self.builder.is_end_announced = True
            # J3: the model wrote a call that cannot run. That is a failure, whatever came before.
            rest = {key: value for key, value in candidate.items() if key != "content"} | {"finishReason": reason}
            failure = errors.decode(200, {"candidates": [rest]}, target=PROTOCOL)
        content: Any = fields.get("content")
        if type(content) is dict:
            self._has_content = True
            self._read_parts(content.get("parts"), is_usable=failure is None)
        elif content is not None:
            self.builder.report("content that is not an object was left out")
        if failure is not None:
            self._add_usage(self._whole_reply())  # what the model wrote was paid for, usable or not
            self.builder.fail(failure)

    # --- parts ----------------------------------------------------------------------------------------

    def _read_parts(self, parts: Any, *, is_usable: bool) -> None:
        listed: list[Any] = parts if type(parts) is list else [] if parts is None else [parts]
        before: str | None = None
        for part in listed:
            if self.builder.is_over:
                return
            if type(part) is not dict:
                self.builder.report("a part that is not an object was left out")
                continue
            plain = plain_text(part)
            if plain is None:
                before = None
                rest = self._continue_text(part) if is_usable else part
                self._read_part(rest, is_usable=is_usable)
                continue
            key = THINKING_KEY if plain[1] else TEXT_KEY
            if key == before:
                self.builder.close(key)
            before = key
            if key == TEXT_KEY:
                self.builder.add_implicit(TEXT_KEY, plain[0])
            else:
                self._think(plain[0])

    def _continue_text(self, part: Fields) -> Fields:
        """Add the words of a signed text to the text that is open. Returns the part without them."""
        words = part.get("text")
        is_signed_text = part.keys() <= _SIGNED_TEXT and type(words) is str and not part.get("thought")
        if not is_signed_text or not words or not self.builder.is_open(TEXT_KEY):
            return part
        self.builder.add_implicit(TEXT_KEY, words)
        return {**part, "text": ""}

    def _think(self, text: str) -> None:
        if text:
            if not self.builder.is_open(THINKING_KEY):
                self.builder.open(THINKING_KEY, Thinking(form=THOUGHT))
            self.builder.add(THINKING_KEY, text)

    def _read_part(self, part: Fields, *, is_usable: bool) -> None:
        """Read a part that is a block of its own."""
        fields, _ = in_camel(part)
        call: Any = fields.get("functionCall")
        if type(call) is dict and (self._arguments is not None or has_partial_arguments(call)):
            self._read_arguments(fields, call, is_usable=is_usable)
            return
        try:
            block = read_part(part)
        except InputError as error:
            if call is None:
                self.builder.report(f"a part could not be read and was left out: {error.message}")
                return
            fixed = self._fix_call(fields, call)
            if fixed is None:
                self.builder.fail(_unusable(f"the model's call cannot be read: {error.message}"))
                return
            block = fixed
        self.builder.add_whole_block(block, cut=not is_usable)

    def _fix_call(self, fields: Fields, call: Any) -> ToolCall | None:
        """A call whose arguments are a string, as in other protocols, or one without a name."""
        if type(call) is not dict:
            return None
        written, named = call.get("args"), call if call.get("name") is not None else {**call, "name": ""}
        try:
            block = read_part({**fields, "functionCall": {**named, "args": {}} if type(written) is str else named})
        except InputError:
            return None
        if named is not call:
            self.builder.report("a call has no name")
        if type(written) is not str:
            return block if isinstance(block, ToolCall) else None
        self.builder.report("the arguments of a call came as a string; they were parsed")
        arguments, raw, _ = read_arguments(written)
        raw = raw if arguments is None else None
        return replace(block, arguments=arguments, raw_input=raw) if isinstance(block, ToolCall) else None

    def _read_arguments(self, fields: Fields, call: Fields, *, is_usable: bool) -> None:
        """Read a part of a call whose arguments come in parts, as Vertex sends them on request."""
        if self._arguments is None or not self._arguments.is_of(call):
            self._cut_arguments()
            self._arguments = PartialArguments(call)
            self.builder.holds_back = True
        try:
            is_whole = self._arguments.add(fields, call)
        except InputError as error:
            self.builder.fail(_unusable(f"the model's call cannot be read: {error.message}"))
            return
        if is_whole:
            block = self._arguments.call
            self._arguments = None
            self.builder.holds_back = False
            self.builder.add_whole_block(block, cut=not is_usable)

    def _cut_arguments(self) -> None:
        """Add a call whose parts did not end, as cut."""
        if self._arguments is not None:
            self.builder.add_whole_block(self._arguments.call, cut=True)
            self._arguments = None
            self.builder.holds_back = False

    # --- the end --------------------------------------------------------------------------------------

    def _finish(self) -> None:
        self._cut_arguments()
        whole = self._whole_reply()
        self._add_usage(whole)
        is_blocked = self._index is None and whole.stop is not None
        if self._reason is not None or is_blocked:
            self.builder.finish(whole.stop, whole.extra, whole.form)
        else:
            self.builder.finish_without_reason(is_ended=False, extra=whole.extra, form=whole.form)

    def _add_usage(self, whole: Reply) -> None:
        if whole.usage is not None:
            self.builder.add_usage(whole.usage)

    def _whole_reply(self) -> Reply:
        """The reply without its blocks."""
        if self._counts:
            self._body.add({"usageMetadata": msgspec.json.decode(self._counts)}, skip="")
            self._counts = _NONE
        body = self._body.whole
        if self._index is not None:
            body["candidates"] = self._candidates()
        try:
            return reply.decode(body)
        except InputError as error:
            self.builder.report(f"the reply could not be read in full: {error.message} at {error.path}")
            return Reply(Turn("assistant"), reply.stop_of(self._reason, has_calls=False))

    def _candidates(self) -> list[Fields]:
        content: Fields = {"content": {"role": "model", "parts": []}} if self._has_content else {}
        return [{**content, **self._candidate.whole}, *(self._others[index].whole for index in sorted(self._others))]


def _text_or_empty(value: object) -> str:
    return value if isinstance(value, str) else ""


def _unusable(message: str) -> Failure:
    return Failure("bad_output", message, in_band=True)
