"""What a tool gave back, as the content of a result.

Law: whatever a tool returns becomes a result. What cannot be written down is told as such: the tool has run all the
same, and the model must know.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from toolglot import jsontext
from toolglot.canonical_json import checked
from toolglot.conversation import Media, Opaque, Text, ToolCall, ToolResult, Turn
from toolglot.errors import InputError, type_name
from toolglot.jsontext import mend_text
from toolglot.runtime import outcomes
from toolglot.runtime.tool_values import Content, Output

_encode: Final = msgspec.json.Encoder().encode


class Given(NamedTuple):
    """What came of a tool: its content, whether it says that it failed, and the value behind it."""

    content: Content
    is_error: bool = False
    result: Any = None

    def of(self, call: ToolCall) -> ToolResult:
        """The result of a call that gave this."""
        made = outcomes.error if self.is_error else outcomes.success
        return made(call, self.content, result=self.result)


def given(value: object) -> Given:
    """What a tool returned, as content."""
    if isinstance(value, str):
        return Given(mend_text(str.__str__(value)))
    if value is None:
        return Given("")
    if isinstance(value, Output):
        return _of_output(value)
    if isinstance(value, bytes | bytearray):
        return Given(_of_bytes(bytes(value)))
    if isinstance(value, Text | Media | Opaque):
        return _of_parts((value,))
    if isinstance(value, list | tuple) and any(isinstance(part, Text | Media | Opaque) for part in value):
        return _of_parts(tuple(_part(part) for part in value))
    return _of_value(value)


def _of_output(output: Output) -> Given:
    result = _plain(output.result)
    if output.content is None and output.result is not None:
        inner = _of_value(output.result)
        return Given(inner.content, output.is_error or inner.is_error, result)
    inner = given(output.content)
    return Given(inner.content, bool(output.is_error) or inner.is_error, result)


def _of_bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"[{len(data)} bytes that are not text]"


def _part(part: object) -> Text | Media | Opaque:
    if isinstance(part, Text | Media | Opaque):
        return part
    content = given(part).content
    return Text(content if isinstance(content, str) else "")


def _of_parts(parts: tuple[Text | Media | Opaque, ...]) -> Given:
    """Parts as a history takes them: a tool may have put anything into their fields."""
    try:
        turn, _ = checked(Turn("tool", (ToolResult("", parts),)))
    except InputError as problem:
        return Given(f"The tool ran, and what it returned cannot be shown ({problem}).", is_error=True)
    return Given(turn.results[0].content)


def _of_value(value: object) -> Given:
    try:
        return Given(_encode(value).decode())
    except Exception as problem:  # noqa: BLE001 - it is the tool's object, and may raise anything while it is read
        kind = type_name(value)
        text = f"The tool ran, and returned a {kind} that cannot be shown ({outcomes.described(problem)})."
        return Given(text, is_error=True)


def _plain(value: object) -> Any:
    """A value that can be kept with a result; one that is too large is not."""
    try:
        return jsontext.clone(value).value
    except InputError:
        return None
