"""Probes of parameter schemas: which keywords are accepted, and how they may be combined.

Keywords are tried all at once, each in a property of its own; if that is refused, each half, and so on.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Any, Final

from toolglot.discovery.bodies import Body, RequestStyle, tool, user
from toolglot.discovery.endpoint_client import ProbeRequest
from toolglot.discovery.parsed_reply import ParsedReply
from toolglot.discovery.probe import Probe, ProbeCase, Steps, UnclearError, finding, is_accepted, yes_or_no

Schema = dict[str, Any]
_TEXT: Final[Schema] = {"type": "string"}
_INNER: Final[Schema] = {"type": "object", "properties": {"a": _TEXT}}

KEYWORDS: Final[dict[str, Schema]] = {
    "title": {"type": "string", "title": "T"},
    "default": {"type": "string", "default": "x"},
    "examples": {"type": "string", "examples": ["x"]},
    "const": {"type": "string", "const": "x"},
    "enum": {"type": "string", "enum": ["x", "y"]},
    "pattern": {"type": "string", "pattern": "^[a-z]+$"},
    "minLength": {"type": "string", "minLength": 1},
    "maxLength": {"type": "string", "maxLength": 9},
    "minimum": {"type": "integer", "minimum": 1},
    "maximum": {"type": "integer", "maximum": 9},
    "exclusiveMinimum": {"type": "integer", "exclusiveMinimum": 0},
    "exclusiveMaximum": {"type": "integer", "exclusiveMaximum": 9},
    "multipleOf": {"type": "integer", "multipleOf": 2},
    "minItems": {"type": "array", "items": _TEXT, "minItems": 1},
    "maxItems": {"type": "array", "items": _TEXT, "maxItems": 3},
    "uniqueItems": {"type": "array", "items": _TEXT, "uniqueItems": True},
    "contains": {"type": "array", "items": _TEXT, "contains": _TEXT},
    "minProperties": {**_INNER, "minProperties": 1},
    "maxProperties": {**_INNER, "maxProperties": 3},
    "additionalProperties": {**_INNER, "additionalProperties": False},
    "patternProperties": {**_INNER, "patternProperties": {"^x": _TEXT}},
    "propertyNames": {**_INNER, "propertyNames": _TEXT},
    "dependentRequired": {**_INNER, "dependentRequired": {"a": ["a"]}},
    "dependentSchemas": {**_INNER, "dependentSchemas": {"a": _INNER}},
    "unevaluatedProperties": {**_INNER, "unevaluatedProperties": False},
    "anyOf": {"anyOf": [_TEXT, {"type": "integer"}]},
    "oneOf": {"oneOf": [_TEXT, {"type": "integer"}]},
    "allOf": {"allOf": [_TEXT]},
    "not": {"type": "string", "not": {"type": "integer"}},
    "if": {"type": "string", "if": _TEXT, "then": _TEXT, "else": _TEXT},
    "format": {"type": "string", "format": "date-time"},
    "$comment": {"type": "string", "$comment": "x"},
    "$id": {"type": "string", "$id": "https://example.com/x"},
}
"""A property for each keyword, with nothing else that is unusual."""
AT_ROOT: Final[dict[str, Schema]] = {
    "$schema": {"$schema": "https://json-schema.org/draft/2020-12/schema"},
    "definitions": {"definitions": {"d": _TEXT}},
}
"""Keywords of the root."""
TRIED: Final = (*KEYWORDS, *AT_ROOT)
FORMATS: Final = (
    *("date-time", "date", "time", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"),
    *("int32", "int64", "float", "double", "enum", "x-toolglot"),
)
_NUMBERS: Final = {"int32": "integer", "int64": "integer", "float": "number", "double": "number"}


def with_schema(style: RequestStyle, properties: Schema, root: Schema | None = None) -> Body:
    schema = {"type": "object", "properties": {"city": _TEXT, **properties}, "required": ["city"], **(root or {})}
    return style.body(user(), tools=(tool(schema=schema),))


def _keywords_body(style: RequestStyle, names: Sequence[str]) -> Body:
    properties = {f"p{index}": KEYWORDS[name] for index, name in enumerate(names) if name in KEYWORDS}
    root = {key: value for name in names if name in AT_ROOT for key, value in AT_ROOT[name].items()}
    return with_schema(style, properties, root)


def _formats_body(style: RequestStyle, names: Sequence[str]) -> Body:
    properties: Schema = {}
    for index, name in enumerate(names):
        more = {"enum": ["x"]} if name == "enum" else {}
        properties[f"p{index}"] = {"type": _NUMBERS.get(name, "string"), "format": name, **more}
    return with_schema(style, properties)


def find_refused(
    request_for: Callable[[Sequence[str]], ProbeRequest], names: Sequence[str]
) -> Generator[ProbeRequest, ParsedReply, tuple[list[str], list[ParsedReply]]]:
    """Which of the names are refused: all at once, then halves of what is refused."""
    response = yield request_for(names)
    shown = [response]
    if is_accepted(response):
        return [], shown
    if len(names) == 1:
        return list(names), shown
    refused: list[str] = []
    middle = len(names) // 2
    for half in (names[:middle], names[middle:]):
        found, more = yield from find_refused(request_for, half)
        refused += found
        shown += more
    if not refused:
        raise UnclearError(f"{', '.join(names)} are refused together and accepted one by one")
    return refused, shown


def _keywords(case: ProbeCase) -> Steps:
    def request_for(names: Sequence[str]) -> ProbeRequest:
        return ProbeRequest(body=_keywords_body(case.style, names), about=f"the keywords {', '.join(names)}")

    refused, shown = yield from find_refused(request_for, TRIED)
    more = [*(("then", "else") if "if" in refused else ())]
    quirk = f"refused in schemas: {', '.join(refused)}" if refused else ""
    shown = [response for response in shown if response.refused] or shown
    return [finding("schema.keywords", "schema.refused", (*refused, *more), *shown, quirk=quirk)]


def _formats(case: ProbeCase) -> Steps:
    def request_for(names: Sequence[str]) -> ProbeRequest:
        return ProbeRequest(body=_formats_body(case.style, names), about=f"the formats {', '.join(names)}")

    # The format `enum` needs the keyword `enum`.
    names = [name for name in FORMATS if name not in (case.found.get("schema.refused") or ())]
    refused, shown = yield from find_refused(request_for, names)
    value = tuple(name for name in names if name not in refused) if refused else None
    return [finding("schema.formats", "schema.formats", value, *shown)]


def _references(style: RequestStyle) -> Body:
    return with_schema(style, {"at": {"$ref": "#/$defs/place"}}, {"$defs": {"place": _TEXT}})


def _root_union(style: RequestStyle) -> Body:
    sides = [{"type": "object", "properties": {name: _TEXT}} for name in ("city", "place")]
    return style.body(user(), tools=(tool(schema={"type": "object", "properties": {"city": _TEXT}, "anyOf": sides}),))


def _tuples(case: ProbeCase) -> Steps:
    listed = yield ProbeRequest(
        body=with_schema(case.style, {"pair": {"type": "array", "items": [_TEXT, _TEXT]}}),
        about="a tuple as a list of items",
    )
    if is_accepted(listed):
        return [finding("schema.tuples", "schema.tuple_items", "items", listed)]
    prefixed = yield ProbeRequest(
        body=with_schema(case.style, {"pair": {"type": "array", "items": _TEXT, "prefixItems": [_TEXT, _TEXT]}}),
        about="a tuple with prefixItems",
    )
    value = "prefixItems" if is_accepted(prefixed) else "no"
    return [finding("schema.tuples", "schema.tuple_items", value, listed, prefixed)]


def _has(keyword: str) -> Callable[[ProbeCase], str]:
    def why_not(case: ProbeCase) -> str:
        return f"{keyword} is refused" if keyword in (case.found.get("schema.refused") or ()) else ""

    return why_not


def _property(schema: Schema) -> Callable[[RequestStyle], Body]:
    return lambda style: with_schema(style, {"other": schema})


def _probe(name: str, key: str, question: str, schema: Schema, yes: Any, no: Any, needs: str = "") -> Probe:
    return yes_or_no(
        f"schema.{name}",
        f"schema.{key}",
        question,
        _property(schema),
        yes=yes,
        no=no,
        needs=("tools",),
        why_not=_has(needs) if needs else None,
    )


def _if_alone(case: ProbeCase) -> str:
    return _has("anyOf")(case) or ("anyOf cannot have siblings" if case.found.get("schema.union_alone") else "")


def _if_typed(case: ProbeCase) -> str:
    is_split = case.found.get("schema.union_with_type") is False
    return _if_alone(case) or ("type cannot be a sibling of anyOf" if is_split else "")


PROBES: Final = (
    Probe(
        name="schema.keywords",
        question="which keywords are accepted",
        steps=_keywords,
        keys=("schema.refused",),
        max_requests=2 * len(TRIED),
        needs=("tools",),
        request_tokens=500,
    ),
    yes_or_no(
        "schema.references",
        "schema.refs",
        "references to $defs",
        _references,
        needs=("tools",),
        quirk="no references in schemas",
    ),
    _probe(
        "union_alone",
        "union_alone",
        "a description next to anyOf",
        {"anyOf": [_TEXT, {"type": "integer"}], "description": "x"},
        False,
        True,
        "anyOf",
    ),
    yes_or_no(
        "schema.union_type",
        "schema.union_with_type",
        "type next to anyOf",
        _property({"type": "string", "anyOf": [_TEXT]}),
        needs=("tools",),
        why_not=_if_alone,
    ),
    yes_or_no(
        "schema.root_union",
        "schema.root_union",
        "a union at the root",
        _root_union,
        needs=("tools",),
        why_not=_if_typed,
    ),
    _probe("type_lists", "type_lists", "a list of types", {"type": ["string", "integer"]}, True, False),
    _probe("untyped", "type_required", "a property without a type", {"description": "x"}, False, True),
    _probe(
        "null",
        "nullable",
        "null as a type of a union",
        {"anyOf": [_TEXT, {"type": "null"}]},
        False,
        True,
        "anyOf",
    ),
    Probe(
        name="schema.tuples",
        question="how a tuple is written",
        steps=_tuples,
        keys=("schema.tuple_items",),
        max_requests=2,
        needs=("tools",),
    ),
    _probe(
        "enum_numbers", "enum_types", "an enum of numbers", {"type": "integer", "enum": [1, 2]}, "any", "string", "enum"
    ),
    Probe(
        name="schema.formats",
        question="which formats are accepted",
        steps=_formats,
        keys=("schema.formats",),
        why_not=_has("format"),
        max_requests=2 * len(FORMATS),
        needs=("tools",),
        request_tokens=300,
    ),
    _probe("no_properties", "properties_required", "an object without properties", {"type": "object"}, False, True),
    _probe(
        "empty_properties",
        "properties_non_empty",
        "an object with an empty list of properties",
        {"type": "object", "properties": {}},
        False,
        True,
    ),
    _probe("no_items", "items_required", "an array without items", {"type": "array"}, False, True),
    yes_or_no(
        "schema.required",
        "schema.required_defined",
        "a required name without a property",
        lambda style: with_schema(style, {}, {"required": ["city", "nowhere"]}),
        yes=False,
        no=True,
        needs=("tools",),
    ),
)
