"""The return value of a tool as the content of a result.

Law: whatever a tool returns becomes a result, and whatever its value raises while it is read, even `SystemExit`, is
caught here. A value that cannot be shown is described as such: the tool has run anyway, and the model must know. A
medium that no provider could read becomes a text that says so. Changes are listed in the notes.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from toolglot import jsontext
from toolglot.conversation import Media, Opaque, ResultPart, Text, ToolCall, ToolReference, ToolResult, Turn
from toolglot.conversation.canonical_json import validate
from toolglot.errors import InputError, LimitError, type_name
from toolglot.jsontext import fix_surrogates
from toolglot.protocols.fields.media import read_data_url
from toolglot.render.content import media_faults
from toolglot.runtime.scheduler import outcomes
from toolglot.runtime.tools.values import Content, Output

MAX_PARTS: Final = 10_000
"""The parts of one output."""
MAX_NOTES: Final = 10

NOT_FINITE: Final = "[Numbers that are not finite (NaN, infinity) are shown as null.]"

_encode: Final = msgspec.json.Encoder().encode

_PARTS: Final = (Text, Media, Opaque, ToolReference)


class ToolOutcome(NamedTuple):
    """The output of a tool: its content, whether it failed, and the value behind the content."""

    content: Content
    is_error: bool = False
    result: Any = None
    notes: tuple[str, ...] = ()
    """What was converted, for the report."""

    def result_of(self, call: ToolCall) -> ToolResult:
        """The result of a call with this output."""
        make_result = outcomes.error if self.is_error else outcomes.success
        return make_result(call, self.content, result=self.result)


def read_output(value: object) -> ToolOutcome:
    """Read the return value of a tool."""
    if type(value) is str:
        return ToolOutcome(fix_surrogates(value))
    if value is None:
        return ToolOutcome("")
    try:
        return _read_value(value)
    except BaseException as problem:  # noqa: BLE001 - it is the tool's object, and may raise anything while it is read
        return _unreadable(value, problem)


def _read_value(value: object) -> ToolOutcome:
    if isinstance(value, str):
        return ToolOutcome(fix_surrogates(str.__str__(value)))
    if value is None:
        return ToolOutcome("")
    if isinstance(value, Output):
        return _from_output(value)
    if isinstance(value, bytes | bytearray):
        return ToolOutcome(_from_bytes(bytes(value)))
    if isinstance(value, _PARTS):
        return _from_parts((value,))
    if _holds_parts(value):
        collected = _PartCollector()
        collected.add(value, is_outermost=True)
        return collected.outcome()
    return _from_json_value(value)


def _holds_parts(value: object) -> bool:
    """Whether a value is a list with at least one content part."""
    return isinstance(value, list | tuple) and any(issubclass(kind, _PARTS) for kind in set(map(type, value)))


def _unreadable(value: object, problem: BaseException) -> ToolOutcome:
    text = f"The tool ran, and returned a {type_name(value)} that cannot be shown ({outcomes.describe_error(problem)})."
    return ToolOutcome(text, is_error=True)


def _from_output(output: Output) -> ToolOutcome:
    result = _plain(output.result)
    is_value = output.content is None and output.result is not None
    inner = _from_json_value(output.result) if is_value else _read_value(output.content)
    return inner._replace(is_error=bool(output.is_error) or inner.is_error, result=result)


def _from_bytes(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return f"[{len(data)} bytes that are not text]"


# --- lists of parts ---------------------------------------------------------------------------------


class _PartCollector:
    """Collects the parts of a list, and of the lists in it. Other values become text."""

    __slots__ = ("is_error", "notes", "parts")

    def __init__(self) -> None:
        self.parts: list[ResultPart] = []
        self.notes: list[str] = []
        self.is_error = False

    def add(self, values: Any, *, is_outermost: bool = False) -> None:
        for part in values:
            if len(self.parts) >= MAX_PARTS:
                raise InputError(f"it has more than {MAX_PARTS} parts", path="")
            try:
                self._add_one(part, may_hold_more=is_outermost)
            except BaseException as problem:  # noqa: BLE001 - as in `read_output`; the others can be shown
                self.put(_unreadable(part, problem))

    def _add_one(self, part: object, *, may_hold_more: bool) -> None:
        if isinstance(part, _PARTS):
            self.parts.append(part)
        elif may_hold_more and _holds_parts(part):
            self.add(part)
        else:
            self.put(_from_json_value(part) if isinstance(part, list | tuple) else _read_value(part))

    def put(self, inner: ToolOutcome) -> None:
        self.parts += inner.content if isinstance(inner.content, tuple) else (Text(inner.content or ""),)
        self.notes += inner.notes
        self.is_error = self.is_error or inner.is_error

    def outcome(self) -> ToolOutcome:
        whole = _from_parts(tuple(self.parts))
        return whole._replace(is_error=whole.is_error or self.is_error, notes=(*self.notes, *whole.notes)[:MAX_NOTES])


def _from_parts(parts: tuple[ResultPart, ...]) -> ToolOutcome:
    """Validate parts as a history does: a tool may have put anything into their fields."""
    try:
        turn, changes = validate(Turn("tool", (ToolResult("", parts),)))
    except LimitError as problem:
        return _unusable(problem)
    except InputError as problem:
        if len(parts) == 1:
            return _unusable(problem)
        collected = _PartCollector()
        for part in parts:
            collected.put(_from_parts((part,)))
        return ToolOutcome(tuple(collected.parts), collected.is_error, notes=tuple(collected.notes[:MAX_NOTES]))
    notes = [f"a part of the output was changed: {change.reason}" for change in changes]
    content = turn.results[0].content
    shown = tuple(_readable_part(part, notes) for part in content) if isinstance(content, tuple) else content
    return ToolOutcome(shown, notes=tuple(notes[:MAX_NOTES]))


def _unusable(problem: InputError) -> ToolOutcome:
    return ToolOutcome(f"The tool ran, and what it returned cannot be shown ({problem}).", is_error=True)


def _readable_part(part: ResultPart, notes: list[str]) -> ResultPart:
    """The part, or a text that replaces a medium that no provider could read."""
    if not isinstance(part, Media):
        return part
    media = _inline(part)
    fault = media_faults.fault_of(media)
    if not fault and media.data is not None:
        media = media_faults.with_standard_base64(media)
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
    """A medium with the data of its `data:` URL."""
    found = read_data_url(media.url) if media.data is None and media.url is not None else None
    return media if found is None else replace(media, media_type=found[0], data=found[1], url=None)


# --- other values -----------------------------------------------------------------------------------


def _from_json_value(value: object) -> ToolOutcome:
    try:
        text = _encode(value).decode()
    except UnicodeEncodeError:
        return _from_repaired(value)
    except Exception as problem:  # noqa: BLE001 - it is the tool's object, and may raise anything while it is read
        return _unreadable(value, problem)
    if "null" in text and not _is_finite(value):
        return ToolOutcome(f"{text}\n{NOT_FINITE}", notes=("numbers of the output that are not finite became null",))
    return ToolOutcome(text)


def _from_repaired(value: object) -> ToolOutcome:
    """A value that contains a lone surrogate."""
    try:
        cloned = jsontext.clone(msgspec.to_builtins(value, str_keys=True))
    except InputError as problem:
        return _unreadable(value, problem)
    notes = [f"the output was changed at {change.path}: {change.reason}" for change in cloned.changes[:MAX_NOTES]]
    return ToolOutcome(_encode(cloned.value).decode(), notes=tuple(map(fix_surrogates, notes)))


def _is_finite(value: object) -> bool:
    try:
        json.dumps(msgspec.to_builtins(value, str_keys=True), allow_nan=False)
    except ValueError:
        return False
    return True


def _plain(value: object) -> Any:
    """The value to keep with a result; None if it is too large."""
    try:
        return jsontext.clone(value).value
    except InputError:
        return None
