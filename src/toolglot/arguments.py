"""Tool arguments: what a model or a client wrote, as the object that the tool gets.

Law: read, never guessed. What is cut raises `TruncatedArgumentsError`, what is not an object raises
`ArgumentsError`, and nothing is coerced. Only encodings are undone: JSON text inside a JSON string for the
whole value always, for a nested one only where the schema says that no string may stand there. Each such
step is a `Note`, since what is executed must be what was approved.

Imports jsontext and below. jsonschema-rs is imported on first use: most conversations never need it.
"""

from __future__ import annotations

import functools
import importlib
import itertools
import operator
import re
from typing import Any, Final, Literal, NoReturn, TypeVar, cast

import msgspec
from msgspec import Struct

from toolglot import jsontext
from toolglot.errors import ArgumentsError, InputError, LimitError, TruncatedArgumentsError, quote
from toolglot.jsontext import ChangeLog, TruncatedJSONError, exceeds, json_path, mend_text
from toolglot.limits import DEFAULT_LIMITS, Limits

MAX_WRAPPINGS: Final = 3
"""How often a whole value may be JSON text in a JSON string."""
MAX_SCHEMA_DEPTH: Final = 32
"""How far into arguments and schema nested JSON text is looked for."""
MAX_BRANCHES: Final = 64
"""How many alternatives of a schema are considered for one place."""
MAX_MISMATCHES: Final = 20
MISMATCH_CHARACTERS: Final = 200
LISTED_NODES: Final = 10_000
"""Larger arguments get only their first mismatch: jsonschema-rs builds all before it gives one."""
BACKTRACKING: Final = 1_000
"""Steps that a pattern with look-around may take back; all other patterns run in linear time."""
TEXT_KEY: Final = "#text"
"""Where the text of an XML element goes that also has attributes or elements."""

NoteAction = Literal["emptied", "unwrapped", "mended", "cloned", "read-as-xml"]
T = TypeVar("T")


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


class Mismatch(Struct, frozen=True):
    """Where arguments and schema disagree. The message quotes the schema, never the arguments."""

    path: str
    message: str
    keyword: str
    schema_path: str


def parse(
    value: object,
    *,
    schema: dict[str, Any] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    path: str = "$",
    xml: bool = False,
) -> ParsedArguments:
    """The arguments in a JSON text, an object or nothing; with `xml`, in XML elements as well."""
    if value is None:
        return ParsedArguments({}, None, (Note("emptied", path, "null stands for no arguments"),))
    if issubclass(type(value), dict):
        cloned = jsontext.clone(value, limits=limits, path=path)
        notes = (Note("cloned", change.path, change.reason) for change in cloned.changes)
        parsed = ParsedArguments(cloned.value, None, tuple(notes))
    elif issubclass(type(value), str | bytes):
        parsed = _parse_text(value, limits, path, xml)
    else:
        raise _not_an_object(value, path)
    if schema is None:
        return parsed
    decoder = _NestedDecoder(schema, limits, path)
    decoded = decoder.decode(parsed.arguments, decoder.branches([schema]), ())
    unwrapped = (Note("unwrapped", change.path, change.reason) for change in decoder.log.changes())
    return ParsedArguments(decoded, parsed.raw, (*parsed.notes, *unwrapped))


def _parse_text(value: Any, limits: Limits, path: str, xml: bool) -> ParsedArguments:
    jsontext.refuse_large(value, limits, path)
    try:
        source = str.__str__(value) if isinstance(value, str) else jsontext.decode(value, path=path)
        text = mend_text(source)
        notes = [] if text is source else [Note("mended", path, "half surrogate pairs became U+FFFD")]
        if not text.strip():
            return ParsedArguments({}, text, (Note("emptied", path, "blank text stands for no arguments"),))
        # JSON never starts with "<" and XML always does, so "JSON, otherwise XML" needs one look.
        if not xml or not text.lstrip().startswith("<"):
            return _parse_json(text, notes, limits, path)
        notes.append(Note("read-as-xml", path, "the arguments are XML elements, not JSON"))
        return ParsedArguments(parse_xml(text, limits=limits, path=path), text, tuple(notes))
    except (LimitError, ArgumentsError):
        raise
    except TruncatedJSONError as error:
        raise _truncated(error.position, path) from None
    except InputError as error:
        message = f"failed to parse tool arguments: {error.message}"
        raise ArgumentsError(message, path=error.path, hint=error.hint) from None


def _parse_json(text: str, notes: list[Note], limits: Limits, path: str) -> ParsedArguments:
    parsed = jsontext.parse(text, limits=limits, path=path)
    if parsed.value is None:
        return ParsedArguments({}, text, (Note("emptied", path, "null stands for no arguments"),))
    notes += (Note("mended", path, reason) for reason in parsed.mended)
    inner = parsed
    for _ in range(MAX_WRAPPINGS):
        if type(inner.value) is not str:
            break
        try:
            inner = jsontext.parse(inner.value, limits=limits, path=path)
        except TruncatedJSONError:
            if inner.value.lstrip().startswith("{"):
                raise _truncated(len(text), path) from None
            break
        except jsontext.JSONError:
            break
        notes.append(Note("unwrapped", path, "the whole value was JSON text in a JSON string"))
        notes += (Note("mended", path, reason) for reason in inner.mended)
    if type(inner.value) is not dict:
        raise _not_an_object(parsed.value, path)
    return ParsedArguments(inner.value, text, tuple(notes))


def _truncated(position: int, path: str) -> TruncatedArgumentsError:
    message = f"tool arguments end before they are complete, at character {position}"
    hint = "do not run the call; ask for it again with a larger output limit"
    return TruncatedArgumentsError(message, position=position, path=path, hint=hint)


def _not_an_object(value: object, path: str) -> ArgumentsError:
    names = {list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}
    got = names.get(type(value)) or f"a value of type {quote(value)}"
    return ArgumentsError(f"expected a JSON object, got {got}", path=path, hint='pass {"name": value, …}')


_ANY: Final = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})


class _NestedDecoder:
    """Walks arguments and schema together and decodes strings that the schema has no place for."""

    def __init__(self, root: dict[str, Any], limits: Limits, path: str) -> None:
        self.root = root
        self.limits = limits
        self.log = ChangeLog(path)
        self.allowed: dict[int, frozenset[str]] = {}
        self.flat: dict[tuple[int, ...], list[dict[str, Any]]] = {}

    def decode(self, value: Any, schemas: list[dict[str, Any]], steps: tuple[str | int, ...]) -> Any:
        """The object or array with what is in it decoded; itself if nothing is."""
        if not schemas or len(steps) > MAX_SCHEMA_DEPTH:
            return value
        if type(value) is dict:
            tables = [held for schema in schemas if type(held := schema.get("properties")) is dict]
            fresh = [
                self._decode_child(child, [table[key] for table in tables if key in table], (*steps, key))
                for key, child in value.items()
            ]
            same = map(operator.is_, fresh, value.values())
            return value if all(same) else dict(zip(value, fresh, strict=True))
        inner = [schema["items"] for schema in schemas if "items" in schema]
        fresh = [self._decode_child(child, inner, (*steps, at)) for at, child in enumerate(value)]
        return value if all(map(operator.is_, fresh, value)) else fresh

    def _decode_child(self, value: Any, schemas: list[Any], steps: tuple[str | int, ...]) -> Any:
        if not schemas:
            return value
        if type(value) is str and value.lstrip()[:1] in {"[", "{"}:
            value = self._decode_string(value, schemas, steps)
        return self.decode(value, self.branches(schemas), steps) if type(value) in {dict, list} else value

    def _decode_string(self, text: str, schemas: list[Any], steps: tuple[str | int, ...]) -> Any:
        allowed = frozenset().union(*(self.types(schema, 0) for schema in schemas))
        wanted = "object" if text.lstrip()[0] == "{" else "array"
        if "string" in allowed or wanted not in allowed:
            return text
        try:
            room = msgspec.structs.replace(self.limits, max_depth=self.limits.max_depth - len(steps))
            parsed = jsontext.parse(text, limits=room)
        except InputError:
            return text
        for reason in (f"the schema wants an {wanted}, and the string was JSON text of one", *parsed.mended):
            self.log.add(steps, reason)
        return parsed.value

    def types(self, schema: Any, depth: int) -> frozenset[str]:
        """The JSON types that a schema allows; where it does not say, all of them."""
        if type(schema) is not dict or depth > MAX_SCHEMA_DEPTH:
            return _ANY
        if (known := self.allowed.get(id(schema))) is not None:
            return known
        self.allowed[id(schema)] = _ANY  # what a schema that refers to itself adds
        declared = schema.get("type")
        allowed = frozenset({declared}) if type(declared) is str else _ANY
        if type(declared) is list:
            allowed = frozenset(name for name in declared if type(name) is str)
        if "$ref" in schema:
            allowed &= self.types(self._resolve(schema["$ref"]), depth + 1)
        for branch in _list_in(schema, "allOf"):
            allowed &= self.types(branch, depth + 1)
        for keyword in ("anyOf", "oneOf"):
            if branches := _list_in(schema, keyword):
                allowed &= frozenset().union(*(self.types(branch, depth + 1) for branch in branches))
        self.allowed[id(schema)] = allowed
        return allowed

    def branches(self, schemas: list[Any]) -> list[dict[str, Any]]:
        """The schemas, what they refer to, and their alternatives."""
        place = tuple(map(id, schemas))
        if place in self.flat:
            return self.flat[place]
        found: list[dict[str, Any]] = self.flat.setdefault(place, [])
        seen: set[int] = set()
        pending = list(schemas)
        while pending and len(found) < MAX_BRANCHES:
            schema = pending.pop()
            if type(schema) is not dict or id(schema) in seen:
                continue
            seen.add(id(schema))
            found.append(schema)
            if "$ref" in schema:
                pending.append(self._resolve(schema["$ref"]))
            for keyword in ("allOf", "anyOf", "oneOf"):
                pending += _list_in(schema, keyword)
        if pending:
            found.clear()  # too many to know what they all say, so none is believed
        return found

    def _resolve(self, reference: Any) -> Any:
        """What a local reference names; None for any other, which is never fetched."""
        if type(reference) is not str or not f"{reference}/".startswith("#/"):
            return None
        place: Any = self.root
        for step in reference.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            place = place.get(key) if type(place) is dict else None
        return place


def _list_in(schema: dict[str, Any], keyword: str) -> list[Any]:
    found = schema.get(keyword)
    return found if type(found) is list else []


_NAME = r"[^\W\d][\w.:-]*+"
_ATTRIBUTE = re.compile(rf"""\s++({_NAME})\s*+=\s*+(?:"([^"<]*+)"|'([^'<]*+)')""")
_OPENING = re.compile(rf"""<({_NAME})((?:\s++{_NAME}\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'))*+)\s*+(/?)>""")
_CLOSING = re.compile(rf"</({_NAME})\s*+>")
_UNFINISHED = re.compile(r"""<(?:[^<>"']++|"[^"]*+"|'[^']*+')*+(?:"[^"]*+|'[^']*+)?""")
_CHARACTER = re.compile(r"#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}))")
_ENTITIES = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}


def parse_xml(text: str, *, limits: Limits = DEFAULT_LIMITS, path: str = "$") -> dict[str, Any]:
    """Elements as an object: `<city>Oslo</city><n>5</n>`, or the same inside one element.

    Repeated elements become a list, nested ones an object, attributes keys beside them; text stays text.
    Only an element that is not closed shows a cut: bare siblings that end between two are complete.
    """
    jsontext.refuse_large(text, limits, path)
    fields = _XmlReader(mend_text(text), limits, path).read()
    only = next(iter(fields.values())) if len(fields) == 1 else None
    return only if isinstance(only, dict) else fields


class _XmlReader:
    """A scanner by hand: expat knows neither bare siblings nor a cut from a mistake, and here there is no
    code for document types, processing instructions or entities of one's own that could be switched on.

    `stack` holds, from the outside in, each open element's name, fields and text.
    """

    def __init__(self, text: str, limits: Limits, path: str) -> None:
        self.text = text
        self.limits = limits
        self.path = path
        self.nodes = 0
        self.stack: list[tuple[str, dict[str, Any], list[str]]] = [("", {}, [])]

    def read(self) -> dict[str, Any]:
        position = 0
        while (at := self.text.find("<", position)) >= 0:
            self._take_text(self._unescape(position, at), position)
            position = self._take_markup(at)
        if len(self.stack) > 1:
            raise _truncated(len(self.text), self.path)
        self._take_text(self._unescape(position, len(self.text)), position)
        if not self.nodes:
            self._refuse("no XML element", 0)
        return self.stack[0][1]

    def _take_text(self, text: str, at: int) -> None:
        if len(self.stack) > 1:
            self.stack[-1][2].append(text)
        elif text.strip():
            self._refuse("text outside of an element", at)

    def _take_markup(self, at: int) -> int:
        """Read a tag, a comment or a CDATA section; return where it ends."""
        for start, end in (("<!--", "-->"), ("<![CDATA[", "]]>")):
            if self.text.startswith(start, at):
                stop = self.text.find(end, at + len(start))
                if stop < 0:
                    raise _truncated(len(self.text), self.path)
                if start != "<!--":
                    self._take_text(self.text[at + len(start) : stop], at)
                return stop + len(end)
        if tag := _OPENING.match(self.text, at):
            self._open(tag)
        elif tag := _CLOSING.match(self.text, at):
            if tag[1] != self.stack[-1][0]:
                self._refuse(f"a closing tag {quote(tag[1])} without its opening tag", at)
            self._close()
        elif _UNFINISHED.fullmatch(self.text, at):
            raise _truncated(len(self.text), self.path)
        else:
            self._refuse("not a tag (declarations and processing instructions are refused)", at)
        return tag.end()

    def _open(self, tag: re.Match[str]) -> None:
        self.nodes += 1
        if len(self.stack) > self.limits.max_depth:
            raise exceeds("max_depth", self.limits.max_depth, self.path, f" at character {tag.start()}")
        if self.nodes > self.limits.max_nodes:
            raise exceeds("max_nodes", self.limits.max_nodes, self.path)
        fields: dict[str, Any] = {}
        for attribute in _ATTRIBUTE.finditer(self.text, tag.start(2), tag.end(2)):
            group = 2 if attribute[3] is None else 3
            _put(fields, attribute[1], self._unescape(attribute.start(group), attribute.end(group)))
        self.stack.append((tag[1], fields, []))
        if tag[3]:
            self._close()

    def _close(self) -> None:
        name, fields, texts = self.stack.pop()
        text = "".join(texts)
        if fields and text.strip():
            _put(fields, TEXT_KEY, text)
        _put(self.stack[-1][1], name, fields or text)

    def _unescape(self, start: int, end: int) -> str:
        parts: list[str] = []
        while (at := self.text.find("&", start, end)) >= 0:
            stop = self.text.find(";", at, min(at + 12, end))
            parts += (self.text[start:at], self._character(self.text[at + 1 : max(stop, at)], at))
            start = stop + 1
        return "".join((*parts, self.text[start:end]))

    def _character(self, entity: str, at: int) -> str:
        if entity in _ENTITIES:
            return _ENTITIES[entity]
        number = _CHARACTER.fullmatch(entity)
        code = (int(number[1], 16) if number[1] else int(number[2])) if number else 0
        if code not in {9, 10, 13} and not 0x20 <= code < 0xD800 and not 0xE000 <= code <= 0x10FFFF:
            self._refuse("an entity that is not one of the five of XML or a character number", at)
        return chr(code)

    def _refuse(self, problem: str, at: int) -> NoReturn:
        message = f"failed to parse tool arguments: not XML: {problem} at character {at}"
        raise ArgumentsError(message, path=self.path, hint="write <name>value</name> for each argument")


def _put(fields: dict[str, Any], name: str, value: object) -> None:
    """Add a field; the values of one that is repeated become a list."""
    if name not in fields:
        fields[name] = value
    elif type(fields[name]) is list:
        fields[name].append(value)
    else:
        fields[name] = [fields[name], value]


def validate(
    arguments: dict[str, Any],
    schema: dict[str, Any] | bool,
    *,
    limits: Limits = DEFAULT_LIMITS,
    path: str = "$",
) -> tuple[Mismatch, ...]:
    """Where arguments and their JSON Schema disagree: at most `MAX_MISMATCHES`, none if they agree."""
    # The validator recurses, so that no limit of the caller may let it go deeper than a parser does.
    bounded = msgspec.structs.replace(limits, max_depth=min(limits.max_depth, jsontext.PARSER_DEPTH))
    instance = jsontext.clone(arguments, limits=bounded, path=path)
    validator = _validator(msgspec.json.encode(jsontext.clone(schema, limits=bounded).value))
    try:
        validator.validate(instance.value)
    except ValueError as first:
        found = validator.iter_errors(instance.value) if instance.nodes <= LISTED_NODES else (first,)
        return tuple(_mismatch(error, path) for error in itertools.islice(found, MAX_MISMATCHES))
    return ()


@functools.lru_cache(maxsize=256)
def _validator(schema: bytes) -> Any:
    """A compiled schema that fetches nothing: neither over a network nor from a file."""
    jsonschema_rs = importlib.import_module("jsonschema_rs")
    patterns = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKING)
    parsed = jsontext.parse(schema).value
    try:
        return jsonschema_rs.validator_for(parsed, offline=True, pattern_options=patterns, mask="the value")
    except ValueError as error:
        where = json_path("$", getattr(error, "instance_path", ()))
        message = f"the schema is invalid: {getattr(error, 'message', error)!s:.{MISMATCH_CHARACTERS}}"
        raise InputError(message, path=where, hint="only references inside it are followed") from None


def _mismatch(error: Any, path: str) -> Mismatch:
    message = f"{error.message:.{MISMATCH_CHARACTERS}}"
    place = json_path("$", error.schema_path)
    return Mismatch(json_path(path, error.instance_path), message, error.kind.name, place)


def sanitise(value: T, *, strict: bool = False, limits: Limits = DEFAULT_LIMITS) -> T:
    r"""The value without control characters in its strings and keys; itself if it has none.

    `\n`, `\t` and, unless `strict`, `\r` stay. Other JSON values are untouched; see `jsontext.clone` for
    what is not JSON.
    """
    clean = functools.partial(_clean, _CONTROL_OR_RETURN if strict else _CONTROL)
    return cast("T", jsontext.clone(value, limits=limits, text=clean).value)


_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]+")
_CONTROL_OR_RETURN = re.compile(r"[\x00-\x08\x0b-\x1f]+")


def _clean(pattern: re.Pattern[str], text: str) -> str:
    return mend_text(pattern.sub("", text) if pattern.search(text) else text)
