"""Writes calls as text that the dialect's reader reads, and results as text that a model can pair.

    write_calls([ToolCall("call_1", "ls", {"p": "/"})], "hermes")   # '<tool_call>\\n{"name":"ls",…}\\n</tool_call>'

Law: what is written is read back as the same calls. Every text is read before it is handed out; a value that a dialect
has no way to write is an `InputError` that says which.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final, NamedTuple

from toolglot.conversation import FREE_TEXT, RAW_ARGUMENTS, ToolCall, ToolResult
from toolglot.dialects.offered_tools import Tools, tool_schemas
from toolglot.dialects.registry import get
from toolglot.dialects.text_stream import ParsedText, parse_text
from toolglot.dialects.values.schema_types import type_of
from toolglot.dialects.writers.writing_forms import Arguments, IdStyle, Writing
from toolglot.errors import InputError, quote
from toolglot.jsontext import compact, json_path

_NINE: Final = re.compile(r"[A-Za-z0-9]{9}")
_DIGITS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


class Written(NamedTuple):
    """Calls as text, and the ids in it, by which results name their calls."""

    text: str
    ids: tuple[str, ...]


def write_calls(calls: Sequence[ToolCall], dialect: str, *, tools: Tools = (), first: int = 0) -> str:
    """The calls of one turn as text.

    tools: what was offered. A dialect without types needs their schemas for values that are not strings.
    first: how many calls the conversation had before.
    """
    return write_calls_with_ids(calls, dialect, tools=tools, first=first).text


def write_calls_with_ids(
    calls: Sequence[ToolCall], dialect: str, *, tools: Tools = (), first: int = 0, path: str = "calls"
) -> Written:
    """The same, with the ids that were written."""
    writing = writing_of(dialect)
    calls = _call_list(calls, path)
    if not calls:
        return Written("", ())
    schemas = {**dict.fromkeys((call.name for call in calls), None), **tool_schemas(tools)}
    ids = tuple(_written_id(call, position, first, writing.ids) for position, call in enumerate(calls))
    texts = [
        _write_one(call, id, dialect, schemas, f"{path}[{index}]")
        for index, (call, id) in enumerate(zip(calls, ids, strict=True))
    ]
    text = _join(writing, texts)
    if len(calls) > 1 and not _is_read_back(text, calls, dialect, schemas):
        hint = "write them in turns of their own, or choose another dialect"
        raise InputError(f"the dialect {dialect} cannot write these calls together", path=path, hint=hint)
    return Written(text, ids)


def _call_list(calls: Iterable[ToolCall], path: str) -> list[ToolCall]:
    if isinstance(calls, str | bytes | Mapping | ToolCall) or not isinstance(calls, Iterable):
        raise InputError(f"expected a list of calls, got {quote(calls)}", path=path, hint='[ToolCall("", "ls", {})]')
    listed = [*calls]
    for index, call in enumerate(listed):
        if not isinstance(call, ToolCall):
            hint = 'ToolCall("", "ls", {})'
            raise InputError(f"expected a ToolCall, got {quote(call)}", path=f"{path}[{index}]", hint=hint)
        _check(call, f"{path}[{index}]")
    return listed


def _check(call: ToolCall, path: str) -> None:
    """Check a caller's `ToolCall`, whose fields may hold anything."""
    for field, value in (("name", call.name), ("id", call.id)):
        if not isinstance(value, str):
            raise InputError(f"expected a string, got {quote(value)}", path=f"{path}.{field}")
    if not isinstance(call.arguments, dict | None):
        raise InputError(f"expected an object, got {quote(call.arguments)}", path=f"{path}.arguments")
    if not isinstance(call.raw_input, str | None):
        raise InputError(f"expected a string, got {quote(call.raw_input)}", path=f"{path}.raw_input")


def write_result(result: ToolResult, dialect: str, *, name: str = "", id: str = "", call: int | None = None) -> str:
    """A result as text. It names its call: by the id in the text of the call, or by name and position."""
    begin, end = writing_of(dialect).result
    body: dict[str, Any] = {}
    if name or result.name:
        body["name"] = name or result.name
    if id:
        body["id"] = id
    if call is not None:
        body["call"] = call
    if result.is_error:
        body["is_error"] = True
    if result.status == "cancelled":
        body["status"] = result.status
    body["content"] = result.text or result.error or (result.result if result.content is None else None) or ""
    text = compact(body)
    mark = end.strip()
    # a result must not be able to end itself and go on as something else
    return begin + (text.replace(mark, f"\\u{ord(mark[0]):04x}{mark[1:]}") if mark else text) + end


def sample(dialect: str, count: int = 1) -> str:
    """Example calls, for a model that is to write calls."""
    writing = writing_of(dialect)
    name, arguments = writing.sample
    calls = [ToolCall(f"call_{position + 1}", name, arguments) for position in range(count)]
    return _join(
        writing,
        [
            writing.forms[0](name, arguments, _written_id(call, position, 0, writing.ids))
            for position, call in enumerate(calls)
        ],
    )


def writing_of(dialect: str) -> Writing:
    """How a dialect is written."""
    writing = get(dialect).writing
    if writing is None:
        hint = "register it with writing="
        raise InputError(f"the dialect {quote(dialect)} cannot be written", path="dialect", hint=hint)
    return writing


# --- writing ----------------------------------------------------------------------------------------


def _join(writing: Writing, texts: Iterable[str]) -> str:
    return writing.begin + writing.between.join(texts) + writing.end


def _write_one(call: ToolCall, id: str, dialect: str, schemas: Mapping[str, Any], path: str) -> str:
    """One call, in the first form that can express it."""
    writing = writing_of(dialect)
    arguments = _written_arguments(call)
    for form in writing.forms:
        text = form(call.name, arguments, id)
        if _is_read_back(_join(writing, [text]), [call], dialect, schemas):
            return text
    raise InputError(
        f"the dialect {dialect} has no way to write this",
        path=_culprit(call, dialect, schemas, path),
        hint=_remedy(call, dialect, schemas),
    )


def _remedy(call: ToolCall, dialect: str, schemas: Mapping[str, Any]) -> str:
    """What to do about a call that cannot be written. In formats without types, a schema may be all that is missing."""
    other = "choose another dialect"
    if schemas.get(call.name) is not None:
        return other
    writing, arguments = writing_of(dialect), _written_arguments(call)
    properties = {name: {"type": type_of(value)} for name, value in arguments.items()}
    described = {call.name: {"type": "object", "properties": properties}}
    texts = (_join(writing, [form(call.name, arguments, "0")]) for form in writing.forms)
    if any(_is_read_back(text, [call], dialect, described) for text in texts):
        return f"it has no types of its own: give the tool {quote(call.name)} with its schema as tools=, or {other}"
    return other


def _culprit(call: ToolCall, dialect: str, schemas: Mapping[str, Any], path: str) -> str:
    """The argument that cannot be written; the name if none can."""
    writing = writing_of(dialect)
    for name, value in _written_arguments(call).items():
        alone = ToolCall(call.id, call.name, {name: value})
        texts = (_join(writing, [form(call.name, {name: value}, "0")]) for form in writing.forms)
        if not any(_is_read_back(text, [alone], dialect, schemas) for text in texts):
            return json_path(f"{path}.arguments", [name])
    return path


def _is_read_back(text: str, calls: Sequence[ToolCall], dialect: str, schemas: Mapping[str, Any]) -> bool:
    tools = [{"name": name, "parameters": schema} for name, schema in schemas.items() if name]
    parsed = parse_text(text, dialect=dialect, tools=tools)
    return _read(parsed) == [(call.name, compact(_written_arguments(call))) for call in calls]


def _read(parsed: ParsedText) -> list[tuple[str, str]] | None:
    if parsed.text.strip() or parsed.thinking or parsed.cut:
        return None
    return [(call.name, compact(_written_arguments(call))) for call in parsed.calls]


def _written_arguments(call: ToolCall) -> Arguments:
    if call.arguments is not None:
        return call.arguments
    if call.type == "custom":
        return {FREE_TEXT: call.raw_input or ""}
    return {RAW_ARGUMENTS: call.raw_input} if call.raw_input else {}


def _written_id(call: ToolCall, position: int, first: int, style: IdStyle) -> str:
    if style == "nine":
        return call.id if _NINE.fullmatch(call.id) else _nine_characters(call.id)
    if style == "kimi":
        return f"functions.{call.name}:{first + position}"
    return {"none": "", "own": call.id, "count": str(first + position), "position": str(position + 1)}[style]


def _nine_characters(id: str) -> str:
    left = int.from_bytes(sha256(id.encode("utf-8", "surrogatepass")).digest()[:8])
    digits = []
    for _ in range(9):
        left, digit = divmod(left, len(_DIGITS))
        digits.append(_DIGITS[digit])
    return "".join(digits)
