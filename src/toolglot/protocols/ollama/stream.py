"""Streams of Ollama's chat protocol, both ways: JSON lines.

Each line holds a message with more of what is thought and said; calls come whole. The line that is `done` says why
the answer ended and what it cost, and nothing follows it. Blocks come in the order of the lines, in one line in the
order of the one-shot form. Everything but the messages is put together into one body, which `reply.decode` reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Block, Failure, Media, Reply, ToolCall, Turn
from toolglot.conversation.events import (
    Accumulator,
    BlockEnded,
    Event,
    Failed,
    Finished,
    Started,
    TextDelta,
    ThinkingDelta,
    Used,
)
from toolglot.errors import InputError
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.base import StreamWish
from toolglot.protocols.fields.argument_text import read_arguments
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.json_line import json_line
from toolglot.protocols.framing.json_objects import ObjectReader
from toolglot.protocols.framing.sequence import SAYING, THINKING, Sequence
from toolglot.protocols.framing.text_frames import Frame, LineFramer
from toolglot.protocols.framing.whole_blocks import call_as_known, say_block
from toolglot.protocols.ollama import errors, reply
from toolglot.protocols.ollama.form import PROTOCOL, OllamaReply
from toolglot.protocols.ollama.messages import read_message, write_message

COUNTS_BLOCKS: Final = False

framer: Final = LineFramer

_NO_WISH: Final = StreamWish()
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LOGPROBS: Final = "logprobs"


# --- reading ----------------------------------------------------------------------------------------


class _Message(Struct, gc=False, forbid_unknown_fields=True):
    role: Literal["assistant"]
    content: str = ""
    thinking: str = ""


class _Line(Struct, gc=False, forbid_unknown_fields=True):
    """More text, and nothing else: nearly all lines. Any other is read with care."""

    message: _Message
    done: bool
    model: str = ""
    created_at: str = ""


_decode_line: Final = msgspec.json.Decoder(_Line).decode


class Decoder:
    """The events of one stream."""

    def __init__(self, *, tools: Collection[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:
        del tools  # names come whole here
        self.sequence: Sequence = Sequence(build_call=call_as_known, limits=limits)
        self._objects = ObjectReader(self.sequence, limits)
        self._body: Fields = {}
        """What the lines say besides their messages; a later one counts."""
        self._logprobs: list[Any] = []

    def read(self, frame: Frame) -> list[Event]:
        sequence = self.sequence
        if not frame.data or sequence.is_over:
            return []
        if self._body:
            try:
                line = _decode_line(frame.data)
            except (ValueError, RecursionError):
                self._read_carefully(frame.data)
                return sequence.take()
            if line.done is False:
                message = line.message
                if message.thinking:
                    sequence.say(THINKING, message.thinking)
                if message.content:
                    sequence.say(SAYING, message.content)
                return sequence.take()
        self._read_carefully(frame.data)
        return sequence.take()

    def finish(self) -> list[Event]:
        self.sequence.finish_unsaid(is_ended=False)
        return self.sequence.take()

    def _read_carefully(self, data: bytes) -> None:
        body = self._objects.read(data)
        if body is None:
            return
        failure = errors.decode(200, body, target=PROTOCOL)
        if failure is not None:
            self.sequence.fail(failure)
            return
        model: Any = body.get("model")
        self.sequence.start(model=model if type(model) is str else "", form=OllamaReply(done=False))
        self._body.update((key, value) for key, value in body.items() if key != "message")
        if type(body.get(_LOGPROBS)) is list:
            self._logprobs += body[_LOGPROBS]
        message: Any = body.get("message")
        if type(message) is dict:
            self._read_message(message)
        elif message is not None or body.get("done") is not True:
            self.sequence.tell("a line without a message was left out")
        if body.get("done") is True:
            self._end(body.get("done_reason"))

    def _read_message(self, message: Fields) -> None:
        if message.get("role") != "assistant":
            self.sequence.tell("a message that is not the assistant's was read as if it were")
        for field, key in (("thinking", THINKING), ("content", SAYING)):
            text: Any = message.get(field)
            if type(text) is str:
                self.sequence.say(key, text)
            elif text is not None:
                self.sequence.tell(f"a {field} that is no text was left out")
        for image in self._listed(message, "images"):
            self._read_image(image)
        for call in self._listed(message, "tool_calls"):
            if not self.sequence.is_over:
                self._read_call(call)

    def _listed(self, message: Fields, field: str) -> list[Any]:
        values: Any = message.get(field)
        if values is None or type(values) is list:
            return values or []
        self.sequence.tell(f"{field} that are no list were left out")
        return []

    def _read_image(self, image: Any) -> None:
        if type(image) is str:
            say_block(self.sequence, Media("image", data=image))
        else:
            self.sequence.tell("an image that is no text was left out")

    def _read_call(self, given: Any) -> None:
        try:
            call = _call(given)
        except InputError as error:
            mended = _mended_call(given)
            if mended is None:
                message = f"the model's call cannot be read: {error.message}"
                self.sequence.fail(Failure("bad_output", message, in_band=True))
                return
            self.sequence.tell("a call has no name, or its arguments came as text or not at all")
            call = mended
        say_block(self.sequence, call)

    def _end(self, said: Any) -> None:
        body = {**self._body, "message": {"role": "assistant", "content": ""}}
        if self._logprobs:
            body[_LOGPROBS] = self._logprobs
        try:
            whole = reply.decode(body)
        except InputError as error:
            self.sequence.tell(f"the answer could not be read in full: {error.message} at {error.path}")
            stop = reply.stop_of(said if type(said) is str else None, done=True, has_calls=False)
            whole = Reply(Turn("assistant"), stop)
        if whole.usage is not None:
            self.sequence.used(whole.usage)
        self.sequence.finish(whole.stop, whole.extra, whole.form)


def _call(given: Any) -> ToolCall:
    return read_message({"role": "assistant", "tool_calls": [given]}).calls[0]


def _mended_call(given: Any) -> ToolCall | None:
    """A call whose arguments are text, as in other protocols, or null; or one that has no name."""
    function: Any = given.get("function") if type(given) is dict else None
    written: Any = function.get("arguments") if type(function) is dict else None
    if type(function) is not dict or not isinstance(written, dict | str | None):
        return None
    named = function if function.get("name") is not None else {**function, "name": ""}
    try:
        call = _call({**given, "function": {**named, "arguments": written if type(written) is dict else {}}})
    except InputError:
        return None
    if type(written) is dict:
        return call
    arguments, raw, done = read_arguments(written if type(written) is str else "")
    raw = raw if arguments is None else None
    return replace(call, arguments=arguments, raw_input=raw, argument_fixes=done)


# --- writing ----------------------------------------------------------------------------------------


class Encoder:
    """The bytes of one stream. Calls are written whole when they end, one that was cut never."""

    def __init__(self, wish: StreamWish = _NO_WISH) -> None:
        self._model = wish.model
        self._created = _rfc_3339(wish.created)
        self._sum = Accumulator()
        self._has_calls = False
        self._start(Started())

    def write(self, events: Iterable[Event]) -> bytes:
        written: list[bytes] = []
        for event in events:
            kind = type(event)
            if kind is TextDelta:
                written.append(self._before_text + json_line(event.text) + b'},"done":false}\n')  # type: ignore[union-attr]
            elif kind is ThinkingDelta:
                written.append(self._before_thought + json_line(event.text) + b'},"done":false}\n')  # type: ignore[union-attr]
            else:
                written.append(self._write(event))
        return b"".join(written)

    def ping(self) -> bytes:
        """A line that says nothing."""
        return self._before_text + b'""},"done":false}\n'

    def _write(self, event: Event) -> bytes:
        if isinstance(event, BlockEnded):
            return b"" if event.cut else self._end(event.block)
        if isinstance(event, Started):
            self._start(event)
        elif isinstance(event, Used):
            self._sum.add((event,))
        elif isinstance(event, Finished):
            self._sum.add((event,))
            return self._finish()
        elif isinstance(event, Failed):
            return json_line(errors.encode(event.failure)[1]) + b"\n"
        return b""

    def _start(self, started: Started) -> None:
        model = started.model or self._model
        self._sum.add((replace(started, model=model),))
        head = json_line({"model": model, "created_at": self._created})[:-1]
        self._before = head + b',"message":'
        self._before_text = self._before + b'{"role":"assistant","content":'
        self._before_thought = self._before_text + b'"","thinking":'
        self._is_own = type(started.form) is OllamaReply

    def _end(self, block: Block) -> bytes:
        """What is not written in deltas: calls, and images where the answer is Ollama's own."""
        if not isinstance(block, ToolCall) and not (isinstance(block, Media) and self._is_own):
            return b""
        self._has_calls = self._has_calls or isinstance(block, ToolCall)
        message = write_message(Turn("assistant", (block,)))
        if len(message) == 2:
            return b""  # a medium that has no field
        return self._before + json_line(message) + b',"done":false}\n'

    def _finish(self) -> bytes:
        """The last line: a whole body that says nothing more. A call in it is only for the choice of the word."""
        blocks = (ToolCall("", ""),) if self._has_calls else ()
        body = reply.encode(replace(self._sum.reply, turn=Turn("assistant", blocks)))
        body["message"] = {"role": "assistant", "content": ""}
        return json_line({"model": body["model"], "created_at": self._created, **body}) + b"\n"


def _rfc_3339(seconds: int) -> str:
    try:
        return f"{(_EPOCH + timedelta(seconds=seconds)).replace(tzinfo=None).isoformat()}Z"
    except OverflowError:
        return f"{_EPOCH.replace(tzinfo=None).isoformat()}Z"
