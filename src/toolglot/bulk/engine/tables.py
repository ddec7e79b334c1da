"""Rows as columns of Arrow: a schema that every part of a run has, whatever its rows hold.

`json`: every column is text; what is an object or a list is JSON. Arrow merges the fields of all rows of a column
otherwise, so that every tool gets the parameters of every other one. `struct`: messages and turns are lists of structs
with fixed fields; tools and arguments stay JSON.

Law: the schema of a part follows from the format alone. Columns that no row of a run uses are left out when its
parts are put together.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, Final, Literal

from toolglot.bulk import formats
from toolglot.bulk.batch import CHANGES, VIOLATIONS
from toolglot.bulk.engine.files import Batch, Kind, batches, extra
from toolglot.bulk.example import Row
from toolglot.bulk.formats.format import Format
from toolglot.jsontext import compact, parse_plain

Columns = Literal["json", "struct"]
CARRIED: Final = "columns"
"""The column with the columns of the input that the format does not define, as JSON."""
WHOLE: Final = "row"
"""The one column of a format that does not name its columns."""
_LISTS: Final = (CHANGES, VIOLATIONS)
_TURN: Final = ("from", "value")
_MESSAGE: Final = ("role", "content", "tool_call_id", "name", "reasoning_content")
_FLAGS: Final = ("weight", "train", "loss")


def schema_of(target: Format, columns: Columns) -> Any:
    """The schema of a format's rows."""
    arrow = extra("pyarrow")
    text = arrow.large_string()
    fields = [(name, _type_of(name, columns, arrow)) for name in _names(target)]
    if target.takes_columns:
        fields.append((CARRIED, text))
    return arrow.schema([*fields, *((name, arrow.list_(text)) for name in _LISTS)])


def read_batches(path: str, kind: Kind, start: int, end: int, *, framing: str = "row") -> Iterator[Batch]:
    """The rows of a part of a file. Those of a table are what they were before they became columns."""
    for batch, size in batches(path, kind, start, end, framing=framing):
        yield [row_of(row) if isinstance(row, dict) else row for row in batch], size


def row_of(columns: Row) -> Row:
    """A row from its columns: objects and lists that are JSON are read, and columns without a value are left out."""
    row = {name: _read(name, value) for name, value in columns.items() if value is not None}
    if [*row] == [WHOLE] and isinstance(row[WHOLE], dict):
        row = row[WHOLE]
    carried = row.pop(CARRIED, None) if isinstance(row.get(CARRIED), dict) else None
    return {**row, **carried} if carried else row


@cache
def _json_names() -> frozenset[str]:
    """The columns that hold objects or lists in any format."""
    found = {name for known in formats.known_formats().values() for name in known.json_columns}
    return frozenset(found | {WHOLE, CARRIED, "parallel_tool_calls"})


def _read(name: str, value: Any) -> Any:
    if name not in _json_names() or not isinstance(value, str) or value[:1] not in ("[", "{", "t", "f"):
        return value
    try:
        return parse_plain(value)
    except (ValueError, RecursionError):
        return value


def _names(target: Format) -> list[str]:
    return sorted(target.columns) or [WHOLE]


def _type_of(name: str, columns: Columns, arrow: Any) -> Any:
    text = arrow.large_string()
    if columns == "struct" and name == "conversations":
        return arrow.list_(arrow.struct([(each, text) for each in _TURN]))
    if columns == "struct" and name in ("messages", "prompt", "chosen", "rejected", "completion"):
        function = arrow.struct([("name", text), ("arguments", text)])
        call = arrow.struct([("id", text), ("type", text), ("function", function)])
        fields = [(each, text) for each in _MESSAGE] + [(each, arrow.bool_()) for each in _FLAGS]
        return arrow.list_(arrow.struct([*fields, ("tool_calls", arrow.list_(call))]))
    return text


def table_of(rows: list[Row], target: Format, columns: Columns, schema: Any) -> Any:
    """Rows as a table of the schema."""
    names = _names(target)
    made: list[Row] = []
    for row in rows:
        if names == [WHOLE]:
            out: Row = {WHOLE: compact({name: held for name, held in row.items() if name not in _LISTS})}
        else:
            out = {name: _value(name, row[name], columns) for name in names if row.get(name) is not None}
            carried = {name: held for name, held in row.items() if name not in target.columns and name not in _LISTS}
            if carried and target.takes_columns:
                out[CARRIED] = compact(carried)
        made.append({**out, **{name: row[name] for name in _LISTS if name in row}})
    return extra("pyarrow").Table.from_pylist(made, schema=schema)


def _value(name: str, value: Any, columns: Columns) -> Any:
    if columns == "struct" and isinstance(value, list):
        if name == "conversations":
            return value
        if name in ("messages", "prompt", "chosen", "rejected", "completion"):
            return [_message(message) for message in value]
    return value if isinstance(value, str) else compact(value)


def _message(message: Row) -> Row:
    out: Row = {}
    for name in _MESSAGE:
        value = message.get(name)
        if value is not None:
            out[name] = value if isinstance(value, str) else compact(value)
    out |= {name: bool(message[name]) for name in _FLAGS if name in message}
    calls = message.get("tool_calls")
    if calls:
        out["tool_calls"] = [_call(call) for call in calls]
    return out


def _call(call: Row) -> Row:
    function = call.get("function") or {}
    arguments = function.get("arguments")
    return {
        "id": call.get("id"),
        "type": call.get("type"),
        "function": {
            "name": function.get("name"),
            "arguments": arguments if isinstance(arguments, str) else compact(arguments),
        },
    }
