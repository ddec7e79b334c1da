"""Arguments as text or as an object, to the object."""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

from toolglot import jsontext
from toolglot.arguments.nested import NestedDecoder
from toolglot.arguments.xml import parse_xml, truncation_error
from toolglot.errors import ArgumentsError, InputError, JSONError, LimitError, TruncatedJSONError, quote
from toolglot.jsontext import fix_surrogates
from toolglot.limits import DEFAULT_LIMITS, Limits

MAX_WRAPPINGS: Final = 3
"""How often a whole value may be JSON text in a JSON string."""

NoteAction = Literal["emptied", "unwrapped", "fixed", "cloned", "read-as-xml"]


class Note(Struct, frozen=True):
    """One thing that was done to read arguments."""

    action: NoteAction
    path: str
    reason: str


class ParsedArguments(Struct, frozen=True):
    """The object, the text that it was read from (None if it came as an object), and what was done."""

    arguments: dict[str, Any]
    raw: str | None = None
    notes: tuple[Note, ...] = ()


def parse(
    value: object,
    *,
    schema: dict[str, Any] | bool | None = None,
    limits: Limits = DEFAULT_LIMITS,
    path: str = "$",
    xml: bool = False,
) -> ParsedArguments:
    """The arguments in a JSON text, an object or nothing; with `xml`, in XML elements as well."""
    if value is None:
        return ParsedArguments({}, None, (Note("emptied", path, "null means no arguments"),))
    if issubclass(type(value), dict):
        cloned = jsontext.clone(value, limits=limits, path=path)
        notes = (Note("cloned", change.path, change.reason) for change in cloned.changes)
        parsed = ParsedArguments(cloned.value, None, tuple(notes))
    elif issubclass(type(value), str | bytes):
        parsed = _parse_text(value, limits, path, xml)
    else:
        raise _not_an_object(value, path)
    if type(schema) is not dict:
        return parsed
    decoder = NestedDecoder(schema, limits, path)
    decoded = decoder.decode(parsed.arguments, decoder.branches([schema]), ())
    unwrapped = (Note("unwrapped", change.path, change.reason) for change in decoder.log.changes())
    return ParsedArguments(decoded, parsed.raw, (*parsed.notes, *unwrapped))


def _parse_text(value: Any, limits: Limits, path: str, xml: bool) -> ParsedArguments:
    jsontext.refuse_large(value, limits, path)
    try:
        source = str.__str__(value) if isinstance(value, str) else jsontext.decode(value, path=path)
        text = fix_surrogates(source)
        notes = [] if text is source else [Note("fixed", path, "half surrogate pairs became U+FFFD")]
        if not text.strip():
            return ParsedArguments({}, text, (Note("emptied", path, "a blank string means no arguments"),))
        # JSON never starts with "<" and XML always does, so "JSON, otherwise XML" needs one look.
        if not xml or not text.lstrip().startswith("<"):
            return _parse_json(text, notes, limits, path)
        notes.append(Note("read-as-xml", path, "the arguments are XML elements, not JSON"))
        return ParsedArguments(parse_xml(text, limits=limits, path=path), text, tuple(notes))
    except (LimitError, ArgumentsError):
        raise
    except TruncatedJSONError as error:
        raise truncation_error(error.position, path) from None
    except InputError as error:
        message = f"failed to parse tool arguments: {error.message}"
        raise ArgumentsError(message, path=error.path, hint=error.hint) from None


def _parse_json(text: str, notes: list[Note], limits: Limits, path: str) -> ParsedArguments:
    parsed = jsontext.parse(text, limits=limits, path=path)
    if parsed.value is None:
        return ParsedArguments({}, text, (Note("emptied", path, "null means no arguments"),))
    notes += (Note("fixed", path, reason) for reason in parsed.repairs)
    inner = parsed
    for _ in range(MAX_WRAPPINGS):
        if type(inner.value) is not str:
            break
        try:
            inner = jsontext.parse(inner.value, limits=limits, path=path)
        except TruncatedJSONError:
            if inner.value.lstrip().startswith("{"):
                raise truncation_error(len(text), path) from None
            break
        except JSONError:
            break
        notes.append(Note("unwrapped", path, "the whole value was JSON text in a JSON string"))
        notes += (Note("fixed", path, reason) for reason in inner.repairs)
    if type(inner.value) is not dict:
        raise _not_an_object(parsed.value, path)
    return ParsedArguments(inner.value, text, tuple(notes))


def _not_an_object(value: object, path: str) -> ArgumentsError:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    got = names.get(type(value)) or quote(value)
    return ArgumentsError(f"expected a JSON object, got {got}", path=path, hint='pass {"name": value, …}')
