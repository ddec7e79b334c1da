"""Reads the streams of Ollama's chat protocol: JSON lines.

Each line holds a message with more thinking and text; calls come whole. The line that is `done` has the stop reason and
the usage, and nothing follows it. Blocks come in the order of the lines, and within a line in the order of a reply that
is not streamed. All other fields are collected in one body, which `reply.decode` reads.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Failure, Media, Reply, ToolCall, Turn
from toolglot.conversation.events import (
    Event,
)
from toolglot.errors import InputError
from toolglot.limits import DEFAULT_LIMITS, Limits
from toolglot.protocols.fields.argument_text import read_arguments
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.event_builder import TEXT_KEY, THINKING_KEY, EventBuilder, keep_call
from toolglot.protocols.framing.json_objects import ObjectReader
from toolglot.protocols.framing.text_frames import Frame, LineFramer
from toolglot.protocols.ollama import errors, reply
from toolglot.protocols.ollama.form import PROTOCOL, OllamaReply
from toolglot.protocols.ollama.messages import read_message

COUNTS_BLOCKS: Final = False
"""Blocks have no numbers on the wire."""
framer: Final = LineFramer

_LOGPROBS: Final = "logprobs"


class _Message(Struct, gc=False, forbid_unknown_fields=True):
    role: Literal["assistant"]
    content: str = ""
    thinking: str = ""


class _Line(Struct, gc=False, forbid_unknown_fields=True):
    """More text and nothing else: nearly all lines. Any other is read with care."""

    message: _Message
    done: bool
    model: str = ""
    created_at: str = ""


_decode_line: Final = msgspec.json.Decoder(_Line).decode


class Decoder:
    """The events of one stream."""

    def __init__(self, *, tools: Collection[str] = (), limits: Limits = DEFAULT_LIMITS) -> None:
        del tools  # names come whole here
        self.builder: EventBuilder = EventBuilder(build_call=keep_call, limits=limits)
        self._objects = ObjectReader(self.builder, limits)
        self._body: Fields = {}
        """The fields of the lines besides their messages. A later value counts."""
        self._logprobs: list[Any] = []

    def read(self, frame: Frame) -> list[Event]:
        builder = self.builder
        if not frame.data or builder.is_over:
            return []
        if self._body:
            try:
                line = _decode_line(frame.data)
            except (ValueError, RecursionError):
                self._read_carefully(frame.data)
                return builder.take()
            if line.done is False:
                message = line.message
                if message.thinking:
                    builder.add_implicit(THINKING_KEY, message.thinking)
                if message.content:
                    builder.add_implicit(TEXT_KEY, message.content)
                return builder.take()
        self._read_carefully(frame.data)
        return builder.take()

    def finish(self) -> list[Event]:
        self.builder.finish_without_reason(is_ended=False)
        return self.builder.take()

    def _read_carefully(self, data: bytes) -> None:
        body = self._objects.read(data)
        if body is None:
            return
        failure = errors.decode(200, body, target=PROTOCOL)
        if failure is not None:
            self.builder.fail(failure)
            return
        model: Any = body.get("model")
        self.builder.start(model=model if type(model) is str else "", form=OllamaReply(done=False))
        self._body.update((key, value) for key, value in body.items() if key != "message")
        if type(body.get(_LOGPROBS)) is list:
            self._logprobs += body[_LOGPROBS]
        message: Any = body.get("message")
        if type(message) is dict:
            self._read_message(message)
        elif message is not None or body.get("done") is not True:
            self.builder.report("a line without a message was left out")
        if body.get("done") is True:
            self._end(body.get("done_reason"))

    def _read_message(self, message: Fields) -> None:
        if message.get("role") != "assistant":
            self.builder.report("a message that is not the assistant's was read as if it were")
        for field, key in (("thinking", THINKING_KEY), ("content", TEXT_KEY)):
            text: Any = message.get(field)
            if type(text) is str:
                self.builder.add_implicit(key, text)
            elif text is not None:
                self.builder.report(f"{field} that is not a string was left out")
        for image in self._listed(message, "images"):
            self._read_image(image)
        for call in self._listed(message, "tool_calls"):
            if not self.builder.is_over:
                self._read_call(call)

    def _listed(self, message: Fields, field: str) -> list[Any]:
        values: Any = message.get(field)
        if values is None or type(values) is list:
            return values or []
        self.builder.report(f"{field} that are not a list were left out")
        return []

    def _read_image(self, image: Any) -> None:
        if type(image) is str:
            self.builder.add_whole_block(Media("image", data=image))
        else:
            self.builder.report("an image that is not a string was left out")

    def _read_call(self, fields: Any) -> None:
        try:
            call = _read_whole_call(fields)
        except InputError as error:
            fixed = _fix_call(fields)
            if fixed is None:
                message = f"the model's call cannot be read: {error.message}"
                self.builder.fail(Failure("bad_output", message, in_band=True))
                return
            self.builder.report("a call has no name, or its arguments are a string or missing")
            call = fixed
        self.builder.add_whole_block(call)

    def _end(self, reason: Any) -> None:
        body = {**self._body, "message": {"role": "assistant", "content": ""}}
        if self._logprobs:
            body[_LOGPROBS] = self._logprobs
        try:
            whole = reply.decode(body)
        except InputError as error:
            self.builder.report(f"the reply could not be read in full: {error.message} at {error.path}")
            stop = reply.stop_of(reason if type(reason) is str else None, done=True, has_calls=False)
            whole = Reply(Turn("assistant"), stop)
        if whole.usage is not None:
            self.builder.add_usage(whole.usage)
        self.builder.finish(whole.stop, whole.extra, whole.form)


def _read_whole_call(fields: Any) -> ToolCall:
    return read_message({"role": "assistant", "tool_calls": [fields]}).calls[0]


def _fix_call(fields: Any) -> ToolCall | None:
    """A call whose arguments are a string, as in other protocols, or null; or one without a name."""
    function: Any = fields.get("function") if type(fields) is dict else None
    written: Any = function.get("arguments") if type(function) is dict else None
    if type(function) is not dict or not isinstance(written, dict | str | None):
        return None
    named = function if function.get("name") is not None else {**function, "name": ""}
    try:
        call = _read_whole_call(
            {**fields, "function": {**named, "arguments": written if type(written) is dict else {}}}
        )
    except InputError:
        return None
    if type(written) is dict:
        return call
    arguments, raw, done = read_arguments(written if type(written) is str else "")
    raw = raw if arguments is None else None
    return replace(call, arguments=arguments, raw_input=raw, argument_fixes=done)
