"""The tool calls of a reply that arrives in pieces, of any protocol.

    calls = toolglot.ToolCallAccumulator()
    for chunk in chunks:
        calls.add_chunk(chunk)
        for call in calls.drain(): ...

Pieces are those of a provider's stream, of JSON (the chunks of a stream without their framing, or a whole reply), or of
the text that a model wrote. The beginning shows which; JSON that no provider sends is text.

Law: the result depends on the reply and never on where it was cut. A call is returned once, as soon as it is
complete.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable
from functools import cache
from io import StringIO
from typing import Any, Final, Literal

from msgspec.structs import replace

from toolglot import arguments, dialects, jsontext, profiles
from toolglot.conversation import Failure, ToolCall
from toolglot.conversation.events import BlockEnded, BlockStarted, Event, InputDelta, TextDelta
from toolglot.errors import InputError, LimitError
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.policy import DEFAULT_POLICY, Policy
from toolglot.protocols.base import EVENTS, get, names
from toolglot.protocols.errors.failures import ProviderError, from_input_error
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.text_frames import SseFramer
from toolglot.translate.parsers import get_parser
from toolglot.translate.stream_reader import StreamReader

Form = Literal["", "stream", "json", "text"]

_BOM: Final = b"\xef\xbb\xbf"
_FIELD: Final = re.compile(rb"(?:data|event|id|retry|error)?:")
_MAX_FIELD: Final = len(b"event:")
_JSON_MARK: Final = re.compile(r'["{}\[\]]')
_IN_STRING: Final = re.compile(r'["\\]')
_BETWEEN: Final = re.compile(r"[\s,]*")
_TEXT_DIALECTS: Final = {"": ("auto", "bash_tag"), "deepseek": ("auto", "bash_tag")}
"""The dialects of text, by source; each reads what the one before it left."""


class ToolCallAccumulator:
    """Collects the tool calls of a reply, chunk by chunk.

        calls = toolglot.ToolCallAccumulator("openai_chat")
        calls.add_chunk(chunk)
        calls.drain()          # the calls that were completed since the last time

    Chunks are pieces of the provider's stream, of JSON or of text, cut anywhere. What is not a call is in `text`. Calls
    that a model writes into the text of a stream count if the source's profile or the policy says so.

    source: the provider that replies; without it, it is detected.
    policy: what to do where there is a choice (`toolglot.Policy`).
    limits: how large and how deep the JSON may be (`toolglot.Limits`).
    """

    def __init__(self, source: str = "", *, policy: Policy = DEFAULT_POLICY, limits: Limits = DEFAULT_LIMITS) -> None:
        self._policy = policy
        self._limits = limits
        self._reader = StreamReader(source=source, policy=policy, limits=limits) if source else None
        self._source = self._reader.source.name if self._reader is not None else ""
        self._form: Form = ""
        self._early = b""
        self._framer = SseFramer(limits.max_bytes)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._values = _JsonValues(limits)
        self._texts: list[dialects.TextToolStream] = []
        self._open: _OpenCall | None = None
        self._completed: list[ToolCall] = []
        self._text = StringIO()
        self._drained = 0
        self._failure: Failure | None = None
        self._is_read = False
        """Whether anything of a stream was read."""

    # --- what comes in ------------------------------------------------------------------------------

    def add_chunk(self, chunk: bytes | str) -> None:
        """Add more of the reply."""
        data = chunk.encode("utf-8", "replace") if isinstance(chunk, str) else chunk
        if not self._form:
            self._early += data
            self._form = self._form_of(self._early, is_over=False)
            data, self._early = (self._early, b"") if self._form else (b"", self._early)
        self._take(data)

    def finish(self) -> None:
        """End the reply: an open call is complete now, or was cut off."""
        if not self._form:
            self._form = self._form_of(self._early, is_over=True) or "text"
            self._take(self._early)
        if self._form != "stream":
            self._take_text(self._values.rest() + self._decoder.decode(b"", final=True))
        for frame in self._framer.finish() if self._source == "" else ():
            self._take_stream_chunk(frame.data)
        for number, stream in enumerate(self._texts):
            self._pass_text(stream.finish(), number + 1)
        if self._reader is not None and self._is_read:
            self._add(self._reader.finish())

    def _form_of(self, data: bytes, *, is_over: bool) -> Form:
        """What a reply consists of, judged by its beginning; empty if that is not known yet."""
        if self._reader is not None and get(self._reader.source.protocol).stream_type != EVENTS:
            return "stream"
        begun = data.removeprefix(_BOM).lstrip()
        if not begun:
            return ""
        if begun[:1] == b"{":
            return "json"
        if _FIELD.match(begun) or (begun[:1] == b"[" and self._source):
            return "stream"
        may_be_field = any(field.startswith(begun) for field in (b"data", b"event", b"id", b"retry", b"error"))
        return "" if may_be_field and len(begun) < _MAX_FIELD and not is_over else "text"

    def _take(self, data: bytes) -> None:
        if self._form == "stream":
            self._take_stream(data)
        elif self._form == "json":
            self._take_json(self._decoder.decode(data))
        elif self._form == "text":
            self._take_text(self._decoder.decode(data))

    def _take_stream(self, data: bytes) -> None:
        if self._reader is not None and self._source:
            self._is_read = True
            self._add(self._reader.feed(data))
            return
        try:
            frames = self._framer.feed(data)
        except LimitError as error:
            self._fail(error)
            return
        for frame in frames:
            self._take_stream_chunk(frame.data)

    def _take_stream_chunk(self, data: bytes) -> None:
        """An event of a stream whose provider is not known."""
        if data[:1] == b"{":
            self._take_value(data.decode("utf-8", "replace"))

    def _take_json(self, text: str) -> None:
        try:
            found = self._values.feed(text)
        except LimitError as error:
            self._fail(error)
            return
        for written in found:
            self._take_value(written)
        if self._values.is_over:  # something else follows
            self._form = "text"
            self._take_text(self._values.rest())

    def _take_value(self, written: str) -> None:
        try:
            value = jsontext.parse(written, limits=self._limits).value
        except InputError:
            self._take_text(written)
            return
        value = _in_chunk(value)
        protocol = _protocol_of(value)
        if protocol is None:
            self._take_text(written)
        elif _is_chunk(value):
            self._is_read = True
            self._add(
                self._reader_of(protocol).feed(b"data: " + jsontext.compact(value).encode("utf-8", "replace") + b"\n\n")
            )
        else:
            self._take_reply(value, written, protocol)

    def _reader_of(self, protocol: str) -> StreamReader:
        """The reader of this protocol's streams: that of the source, if it has this protocol."""
        if self._reader is None or self._reader.source.protocol != protocol:
            self._reader = StreamReader(source=protocol, policy=self._policy, limits=self._limits)
        return self._reader

    def _take_reply(self, value: Any, written: str, protocol: str) -> None:
        """A whole reply, or a part of one that only a parser reads."""
        is_sources = bool(self._source) and profiles.get(self._source).protocol == protocol
        source = self._source if is_sources else protocol
        whole = StreamReader(source=source, policy=self._policy, limits=self._limits)
        events = [*whole.feed(written.encode("utf-8", "replace")), *whole.finish()]
        if whole.failure is None:
            self._add(events)
            return
        try:
            self._completed += get_parser(source).parse(value)
        except ProviderError as error:
            self._failure = error.failure
        except InputError:
            self._take_text(written)

    # --- text ---------------------------------------------------------------------------------------

    def _take_text(self, text: str) -> None:
        if not text:
            return
        if not self._texts:
            names = _TEXT_DIALECTS.get(self._source, ("auto",))
            self._texts = [dialects.TextToolStream(dialect=name) for name in names]
        self._pass_text(self._texts[0].feed(text), 1)

    def _pass_text(self, events: list[Event], next_stream: int) -> None:
        """Add what one dialect read from the text; what it left as text goes to the next dialect."""
        for event in events:
            if type(event) is TextDelta and next_stream < len(self._texts):
                self._pass_text(self._texts[next_stream].feed(event.text), next_stream + 1)
            elif type(event) is TextDelta:
                self._text.write(event.text)
            elif type(event) is BlockEnded and isinstance(event.block, ToolCall) and not event.cut:
                self._completed.append(event.block)

    # --- events of a stream -------------------------------------------------------------------------

    def _add(self, events: list[Event]) -> None:
        for event in events:
            if type(event) is TextDelta:
                self._text.write(event.text)
            elif type(event) is BlockStarted:
                self._open = _OpenCall(event.block) if isinstance(event.block, ToolCall) else None
            elif type(event) is InputDelta and self._open is not None and self._open.index is None:
                self._add_if_whole(self._open, event.text)
            elif type(event) is BlockEnded and isinstance(event.block, ToolCall):
                self._end(event.block, is_cut=event.cut)

    def _add_if_whole(self, call: _OpenCall, text: str) -> None:
        """Add a call whose arguments are complete, even if the stream has not ended it yet."""
        whole = call.add(text)
        if whole is not None:
            call.index = len(self._completed)
            self._completed.append(whole)

    def _end(self, block: ToolCall, *, is_cut: bool) -> None:
        known = self._open.index if self._open is not None else None
        self._open = None
        if known is not None and not is_cut:
            self._completed[known] = block
        elif known is None and not is_cut:
            self._completed.append(block)

    def _fail(self, error: InputError) -> None:
        self._failure = from_input_error(error)

    # --- what is known ------------------------------------------------------------------------------

    def get_completed(self) -> tuple[ToolCall, ...]:
        """All complete calls."""
        return tuple(self._completed)

    def drain(self) -> tuple[ToolCall, ...]:
        """The calls that were completed since the last time."""
        new = self._completed[self._drained :]
        self._drained = len(self._completed)
        return tuple(new)

    @property
    def text(self) -> str:
        """The text of the reply besides its calls."""
        return self._text.getvalue()

    @property
    def failure(self) -> Failure | None:
        """Why the stream broke off, if it did."""
        return self._failure or (self._reader.failure if self._reader is not None else None)


class _OpenCall:
    """A call of a stream whose arguments are still arriving."""

    def __init__(self, call: ToolCall) -> None:
        self._call = call
        self._values = _JsonValues(DEFAULT_LIMITS)
        self.index: int | None = None
        """Its index among the completed calls, once it is one."""

    def add(self, text: str) -> ToolCall | None:
        """The call, if these are the last of its arguments."""
        if self._call.type == "custom":
            return None
        for written in self._values.feed(text):
            try:
                found = arguments.parse(written).arguments
            except InputError:
                return None
            return replace(self._call, arguments=found) if found else None  # some begin with an empty object
        return None


class _JsonValues:
    """Objects in text that arrives in pieces, with only white space and commas between them."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._pieces: list[str] = []
        self._size = 0
        self._depth = 0
        self._is_string = False
        self._is_escaped = False
        self.is_over = False
        """Whether something other than an object followed. It is in `rest`."""

    def feed(self, text: str) -> list[str]:
        """The objects that are complete now."""
        found: list[str] = []
        start = position = 0
        while position < len(text) and not self.is_over:
            if self._depth == 0:
                between = _BETWEEN.match(text, position)
                start = position = between.end() if between is not None else position
                if position == len(text):
                    return found
                if text[position] != "{":
                    self.is_over = True
                    break
            position = self._follow(text, position)
            if self._depth == 0:
                found.append("".join((*self._pieces, text[start:position])))
                self._pieces, self._size, start = [], 0, position
        self._pieces.append(text[start:])
        self._size += len(text) - start
        if self._size > self._limits.max_bytes:
            raise LimitError("the answer is longer than the limit (max_bytes)")
        return found

    def _follow(self, text: str, position: int) -> int:
        """The position behind the object, or the end of the text."""
        while position < len(text):
            if self._is_escaped:
                self._is_escaped = False
                position += 1
                continue
            mark = (_IN_STRING if self._is_string else _JSON_MARK).search(text, position)
            if mark is None:
                return len(text)
            position = mark.end()
            if mark[0] == "\\":
                self._is_escaped = True
            elif mark[0] == '"':
                self._is_string = not self._is_string
            else:
                self._depth += 1 if mark[0] in "{[" else -1
                if self._depth <= 0:
                    return position
        return position

    def rest(self) -> str:
        """Take what is left."""
        rest, self._pieces, self._size = "".join(self._pieces), [], 0
        return rest


def _in_chunk(value: Any) -> Any:
    """A choice of a Chat chunk, or its bare delta, as the whole chunk. Indexes distinguish a delta from a message."""
    if "choices" in value or "type" in value:
        return value
    if isinstance(value.get("delta"), dict):
        return {"choices": [value]}
    calls = value.get("tool_calls")
    is_delta = isinstance(calls, list) and any(isinstance(call, dict) and "index" in call for call in calls)
    return {"choices": [{"index": 0, "delta": value}]} if is_delta else value


def _protocol_of(value: Fields) -> str | None:
    """The protocol of a JSON object that is a chunk, a reply or a call; None if it is none of these."""
    return next((name for name, is_fragment in _recognisers(names()) if is_fragment(value)), None)


@cache
def _recognisers(known: tuple[str, ...]) -> tuple[tuple[str, Callable[[Fields], bool]], ...]:
    ranked = sorted(map(get, known), key=lambda record: record.reply_rank)
    return tuple([(record.name, record.is_fragment) for record in ranked if record.is_fragment is not None])


def _is_chunk(value: Any) -> bool:
    """Whether an object is a part of a stream, and not a whole reply or call."""
    kind, choices = value.get("type"), value.get("choices")
    if isinstance(choices, list):
        return not choices or any(isinstance(each, dict) and "delta" in each for each in choices)
    return isinstance(kind, str) and kind.startswith(("response.", "message_", "content_block_"))
