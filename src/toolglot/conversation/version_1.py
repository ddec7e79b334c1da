"""Values that version 1 of the serialised form stored: the codecs' notes become forms and canonical fields.

Until version 2, codecs kept how a value was written as *notes*: keys of `extra` that begin with `~`. Each protocol
reads its own (`from_notes` in its `form.py`). A malformed note is dropped: it says how to spell something, never what
it means. A client's field whose name begins with `~` was stored with a second `~`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeVar, get_type_hints

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation.forms import FormStruct, library, read_form

S = TypeVar("S", bound=Struct)

_NOTE: Final = "~"
_REST: Final = "rest"


def upgrade(value: S) -> S:
    """Turn the notes of a value, and of all values inside it, into forms. The same object if it has none."""
    changes: dict[str, Any] = {}
    for field in value.__struct_fields__:
        content = getattr(value, field)
        if isinstance(content, Struct):
            new: Any = upgrade(content)
        elif type(content) is tuple and content and isinstance(content[0], Struct):
            new = tuple([upgrade(item) for item in content])
            new = content if all(one is other for one, other in zip(new, content, strict=True)) else new
        else:
            continue
        if new is not content:
            changes[field] = new
    if changes:
        value = replace(value, **changes)
    extra = getattr(value, "extra", None)
    return _without_notes(value, extra) if extra else value


def _without_notes(value: S, extra: dict[str, dict[str, Any]]) -> S:
    remaining: dict[str, dict[str, Any]] = {}
    changes: dict[str, Any] = {}
    for protocol, fields in extra.items():
        if not any(name[:1] == _NOTE for name in fields):
            remaining[protocol] = fields
            continue
        read = library(protocol).from_notes
        notes = notes_in(fields)
        if read is not None and notes:
            changes |= _known(type(value), read(value, notes))
        rest = without_notes(fields)
        if rest:
            remaining[protocol] = rest
    if not changes and remaining.keys() == extra.keys() and all(remaining[name] is extra[name] for name in remaining):
        return value
    return replace(value, **{"extra": remaining or None, **changes})


def _is_note(name: str) -> bool:
    return name[:1] == _NOTE and name[1:2] != _NOTE


def notes_in(fields: dict[str, Any]) -> dict[str, Any]:
    """The notes among the fields of an object, by their names."""
    return {name[1:]: content for name, content in fields.items() if _is_note(name)}


def without_notes(fields: dict[str, Any]) -> dict[str, Any]:
    """The client's own fields, under their own names."""
    return {name.removeprefix(_NOTE): content for name, content in fields.items() if not _is_note(name)}


@cache
def _types(kind: type[Struct]) -> dict[str, Any]:
    return get_type_hints(kind)


def _known(kind: type[Struct], changes: dict[str, Any]) -> dict[str, Any]:
    """The changes whose content has the type of its field."""
    found: dict[str, Any] = {}
    for name, content in changes.items():
        try:
            found[name] = msgspec.convert(content, _types(kind)[name], dec_hook=read_form)
        except msgspec.ValidationError:
            continue
    return found


def notes_reader(
    readers: Mapping[type, Callable[[dict[str, Any]], dict[str, Any]]],
) -> Callable[[object, dict[str, Any]], dict[str, Any]]:
    """A `from_notes` that reads the notes of each type of value on their own."""

    def from_notes(value: object, notes: dict[str, Any]) -> dict[str, Any]:
        read = next((read for kind, read in readers.items() if isinstance(value, kind)), None)
        return read(notes) if read is not None else {}

    return from_notes


def opaque_of_notes(protocol: str, notes: dict[str, Any], note: str) -> dict[str, Any]:
    """The change for a note that holds something as its protocol wrote it."""
    return {"opaque": {"block": "opaque", "protocol": protocol, "value": notes[note]}} if note in notes else {}


def form_of_notes(kind: type[FormStruct], notes: dict[str, Any], **names: str) -> dict[str, Any]:
    """The change for notes that the form of a value holds. `names`: the name of the note, and the field of the form.

    A field whose name ends in `rest` holds unknown fields of the client's, which were stored like those of `extra`.
    """
    config = kind.__struct_config__
    fields = {field: notes[note] for note, field in names.items() if note in notes}
    rests = {name: rest for name, rest in fields.items() if name.endswith(_REST) and isinstance(rest, dict)}
    fields |= {name: without_notes(rest) for name, rest in rests.items()}
    return {"form": {str(config.tag_field): config.tag, **fields}} if fields else {}
