"""What a tool gave back, as the content of a result.

Law: whatever a tool returns becomes a result, and whatever its value does while it is read, be it `SystemExit`, stays
here. What cannot be written down is told as such: the tool has run all the same, and the model must know. A medium that
no provider could read becomes a text that says so; what was changed is in the notes.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from toolglot import jsontext
from toolglot.conversation import Media, Opaque, Text, ToolCall, ToolResult, Turn
from toolglot.conversation.canonical_json import checked
from toolglot.errors import InputError, LimitError, type_name
from toolglot.jsontext import mend_text
from toolglot.protocols.fields.media import read_data_url
from toolglot.render.content import media_faults
from toolglot.runtime.scheduler import outcomes
from toolglot.runtime.tools.values import Content, Output

MOST_PARTS: Final = 10_000
"""Of one output."""
MOST_NOTES: Final = 10

NOT_FINITE: Final = "[Numbers that are not finite (NaN, infinity) are shown as null.]"

_encode: Final = msgspec.json.Encoder().encode

Part = Text | Media | Opaque
_PARTS: Final = (Text, Media, Opaque)


class ToolOutcome(NamedTuple):
    """What came of a tool: its content, whether it says that it failed, and the value behind it."""

    content: Content
    is_error: bool = False
    result: Any = None
    notes: tuple[str, ...] = ()
    """What is shown in another way than it was given, for the report."""

    def of(self, call: ToolCall) -> ToolResult:
        """The result of a call that gave this."""
        made = outcomes.error if self.is_error else outcomes.success
        return made(call, self.content, result=self.result)


def read_output(value: object) -> ToolOutcome:
    """What a tool returned, as content."""
    if type(value) is str:
        return ToolOutcome(mend_text(value))
    if value is None:
        return ToolOutcome("")
    try:
        return _given(value)
    except BaseException as problem:  # noqa: BLE001 - it is the tool's object, and may raise anything while it is read
        return _unshown(value, problem)


def _given(value: object) -> ToolOutcome:
    if isinstance(value, str):
        return ToolOutcome(mend_text(str.__str__(value)))
    if value is None:
        return ToolOutcome("")
    if isinstance(value, Output):
        return _of_output(value)
    if isinstance(value, bytes | bytearray):
        return ToolOutcome(_of_bytes(bytes(value)))
    if isinstance(value, _PARTS):
        return _of_parts((value,))
    if _holds_parts(value):
        gathered = _Gathered()
        gathered.add(value, is_outermost=True)
        return gathered.read_output()
    return _of_value(value)


def _holds_parts(value: object) -> bool:
    """Whether a value is a list of which at least one thing is a part of a content."""
    return isinstance(value, list | tuple) and any(issubclass(kind, _PARTS) for kind in set(map(type, value)))


def _unshown(value: object, problem: BaseException) -> ToolOutcome:
    text = f"The tool ran, and returned a {type_name(value)} that cannot be shown ({outcomes.describe_error(problem)})."
    return ToolOutcome(text, is_error=True)


def _of_output(output: Output) -> ToolOutcome:
    result = _plain(output.result)
    is_value = output.content is None and output.result is not None
    inner = _of_value(output.result) if is_value else _given(output.content)
    return inner._replace(is_error=bool(output.is_error) or inner.is_error, result=result)


def _of_bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"[{len(data)} bytes that are not text]"


# --- lists of parts ---------------------------------------------------------------------------------


class _Gathered:
    """Parts out of a list, and of the lists in it; what is no part is written as a text."""

    __slots__ = ("is_error", "notes", "parts")

    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.notes: list[str] = []
        self.is_error = False

    def add(self, held: Any, *, is_outermost: bool = False) -> None:
        for part in held:
            if len(self.parts) >= MOST_PARTS:
                raise InputError(f"it has more than {MOST_PARTS} parts", path="")
            try:
                self._add_one(part, may_hold_more=is_outermost)
            except BaseException as problem:  # noqa: BLE001 - as in `given`; the others can be shown
                self.put(_unshown(part, problem))

    def _add_one(self, part: object, *, may_hold_more: bool) -> None:
        if isinstance(part, _PARTS):
            self.parts.append(part)
        elif may_hold_more and _holds_parts(part):
            self.add(part)
        else:
            self.put(_of_value(part) if isinstance(part, list | tuple) else _given(part))

    def put(self, inner: ToolOutcome) -> None:
        self.parts += inner.content if isinstance(inner.content, tuple) else (Text(inner.content or ""),)
        self.notes += inner.notes
        self.is_error = self.is_error or inner.is_error

    def read_output(self) -> ToolOutcome:
        whole = _of_parts(tuple(self.parts))
        return whole._replace(is_error=whole.is_error or self.is_error, notes=(*self.notes, *whole.notes)[:MOST_NOTES])


def _of_parts(parts: tuple[Part, ...]) -> ToolOutcome:
    """Parts as a history takes them: a tool may have put anything into their fields."""
    try:
        turn, changes = checked(Turn("tool", (ToolResult("", parts),)))
    except LimitError as problem:
        return _refused(problem)
    except InputError as problem:
        if len(parts) == 1:
            return _refused(problem)
        gathered = _Gathered()
        for part in parts:
            gathered.put(_of_parts((part,)))
        return ToolOutcome(tuple(gathered.parts), gathered.is_error, notes=tuple(gathered.notes[:MOST_NOTES]))
    notes = [f"a part of the output was changed: {change.reason}" for change in changes]
    content = turn.results[0].content
    shown = tuple(_readable(part, notes) for part in content) if isinstance(content, tuple) else content
    return ToolOutcome(shown, notes=tuple(notes[:MOST_NOTES]))


def _refused(problem: InputError) -> ToolOutcome:
    return ToolOutcome(f"The tool ran, and what it returned cannot be shown ({problem}).", is_error=True)


def _readable(part: Part, notes: list[str]) -> Part:
    """The part, or the text that stands for a medium which no provider could read."""
    if not isinstance(part, Media):
        return part
    media = _inline(part)
    fault = media_faults.fault_of(media)
    if not fault and media.data is not None:
        media = media_faults.standard(media)
        if not media_faults.has_type(media):
            media = replace(media, media_type=media_faults.type_by_start(media.data or ""))
            fault = "" if media.media_type else "its type is not known"
    if not fault:
        return media
    notes.append(f"a medium of the output is not shown: {fault}")
    what = f"{media.kind} {media.media_type[:80]}".strip()
    named = media.name or (media.url if media.data is None else None) or ""
    return Text(f"[{what}{f' {named[:200]!r}' if named else ''}: it is not shown, because {fault}]")


def _inline(media: Media) -> Media:
    """A medium whose address holds it, with its data."""
    found = read_data_url(media.url) if media.data is None and media.url is not None else None
    return media if found is None else replace(media, media_type=found[0], data=found[1], url=None)


# --- other values -----------------------------------------------------------------------------------


def _of_value(value: object) -> ToolOutcome:
    try:
        text = _encode(value).decode()
    except UnicodeEncodeError:
        return _of_mended(value)
    except Exception as problem:  # noqa: BLE001 - it is the tool's object, and may raise anything while it is read
        return _unshown(value, problem)
    if "null" in text and not _is_finite(value):
        return ToolOutcome(f"{text}\n{NOT_FINITE}", notes=("numbers of the output that are not finite became null",))
    return ToolOutcome(text)


def _of_mended(value: object) -> ToolOutcome:
    """A value with half a surrogate pair somewhere in it."""
    try:
        cloned = jsontext.clone(msgspec.to_builtins(value, str_keys=True))
    except InputError as problem:
        return _unshown(value, problem)
    notes = [f"the output was changed at {change.path}: {change.reason}" for change in cloned.changes[:MOST_NOTES]]
    return ToolOutcome(_encode(cloned.value).decode(), notes=tuple(map(mend_text, notes)))


def _is_finite(value: object) -> bool:
    try:
        json.dumps(msgspec.to_builtins(value, str_keys=True), allow_nan=False)
    except ValueError:
        return False
    return True


def _plain(value: object) -> Any:
    """A value that can be kept with a result; one that is too large is not."""
    try:
        return jsontext.clone(value).value
    except InputError:
        return None
