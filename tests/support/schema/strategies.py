"""Random tool schemas with every keyword that lowering has to do with, and values for them.

Some are nonsense on purpose. `values` is guided by a schema, so that most of what it gives is valid.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

Draw = Any
Schema = dict[str, Any]

NAMES = ("a", "b", "kind", "next", "$odd", "with space", "ключ")
LEGAL = ("a", "b", "kind", "next")
DEFINITIONS = ("Node", "Leaf", "Tree")
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(-3, 5), st.sampled_from([0.5, 2.0, "", "a", "b", "x-y", "é"]))
JSON = st.recursive(
    SCALARS,
    lambda held: st.lists(held, max_size=3) | st.dictionaries(st.sampled_from(NAMES), held, max_size=3),
    max_leaves=5,
)
NONSENSE = st.one_of(JSON, st.sampled_from(["int", "STRING", -1, 1.5, [], {}, [1, 2], [[]], {"a": 3}]))


def _count() -> Any:
    return st.integers(0, 3) | st.just(2.0)


STRINGS = {
    "minLength": _count(),
    "maxLength": _count(),
    "pattern": st.sampled_from(["^a", "[a-z]", "^(?=a)"]),
    "format": st.sampled_from(["uri", "date-time", "email", "int32", "uuid", "enum"]),
}
NUMBERS = {
    "minimum": st.integers(-2, 3),
    "maximum": st.integers(-2, 3),
    "exclusiveMinimum": st.sampled_from([-1, 0, 1.5, True, False]),
    "exclusiveMaximum": st.sampled_from([4, 3.5, True]),
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    "format": st.sampled_from(["int32", "double"]),
}
REMARKS = {
    "title": st.just("A title"),
    "description": st.sampled_from(["What it is.", "(format: uri)"]),
    "default": JSON,
    "examples": st.lists(JSON, max_size=2),
    "nullable": st.booleans(),
    "deprecated": st.booleans(),
    "x-own": JSON,
    "$comment": st.just("no"),
}
TYPES = ("string", "number", "integer", "boolean", "array", "object", "null")


@st.composite
def schemas(draw: Draw, depth: int = 2, *, nonsense: bool = True, definitions: bool = True) -> Any:
    """A schema, of any kind."""
    kinds = ["scalar", "scalar", "values", "plain"]
    if definitions:
        kinds.append("reference")
    if depth > 0:
        kinds += ["object", "object", "array", "union", "allOf", "rest", "boolean"]
    out = draw(_KINDS[draw(st.sampled_from(kinds))](depth - 1, nonsense, definitions))
    if isinstance(out, dict) and draw(st.integers(0, 3)) == 0:
        out = {**out, **draw(_some(REMARKS, 2))}
    if isinstance(out, dict) and nonsense and draw(st.integers(0, 30)) == 0:
        keywords = (
            "type",
            "properties",
            "required",
            "enum",
            "items",
            "minimum",
            "anyOf",
            "description",
            "$ref",
            "allOf",
        )
        out = {**out, draw(st.sampled_from(keywords)): draw(NONSENSE)}
    return out


@st.composite
def tools(draw: Draw, *, nonsense: bool = True, roots: bool = True) -> Schema:
    """The schema of a tool: mostly an object, with definitions that may come back to themselves."""
    definitions = draw(st.booleans())
    kinds = ["object"] * 5 + (["union", "allOf", "reference", "scalar", "rest"] if roots else [])
    kind = draw(st.sampled_from(kinds))
    out = draw(_KINDS[kind](2, nonsense, definitions))
    root: Schema = out if isinstance(out, dict) else {}
    if roots and draw(st.booleans()):
        root = {**draw(_objects(1, nonsense, definitions)), **root}
    if not nonsense and "properties" in root and not root["properties"]:
        root["properties"] = {"a": draw(schemas(2, nonsense=False, definitions=definitions))}
    if kind in ("object", "union", "allOf") and draw(st.booleans()):
        root["type"] = "object"
    if definitions:
        keyword = draw(st.sampled_from(["$defs", "$defs", "definitions"])) if nonsense else "$defs"
        names = DEFINITIONS[: draw(st.integers(1, 3))] if nonsense else DEFINITIONS
        root[keyword] = {name: draw(schemas(1, nonsense=nonsense)) for name in names}
    if draw(st.integers(0, 5)) == 0:
        drafts = ("http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema")
        root["$schema"] = draw(st.sampled_from(drafts))
    return root


@st.composite
def _some(draw: Draw, keywords: dict[str, Any], most: int) -> Schema:
    chosen = draw(st.lists(st.sampled_from(sorted(keywords)), max_size=most, unique=True))
    return {keyword: draw(keywords[keyword]) for keyword in chosen}


@st.composite
def _scalars(draw: Draw, depth: int, nonsense: bool, definitions: bool) -> Schema:
    kind = draw(st.sampled_from(["string", "number", "integer", "boolean", "null", "list", "none"]))
    if kind == "list":
        types = draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=3, unique=True))
        return {"type": types, **draw(_some(STRINGS | NUMBERS, 2))}
    if kind == "none":
        return draw(_some(STRINGS | NUMBERS, 2))  # type: ignore[no-any-return]
    return {"type": kind, **draw(_some(STRINGS if kind == "string" else NUMBERS, 2))}


@st.composite
def _values(draw: Draw, depth: int, nonsense: bool, definitions: bool) -> Schema:
    if draw(st.booleans()):
        return {"const": draw(JSON)}
    listed = draw(st.lists(SCALARS, min_size=1, max_size=4) | st.lists(st.sampled_from(["a", "b", "c"]), min_size=1))
    return {"enum": listed, **({"type": draw(st.sampled_from(TYPES))} if draw(st.booleans()) else {})}


def _plain(depth: int, nonsense: bool, definitions: bool) -> Any:
    return st.sampled_from([{}, {"type": "object"}, {"type": "array"}, {"type": "object", "properties": {}}])


@st.composite
def _references(draw: Draw, depth: int, nonsense: bool, definitions: bool) -> Schema:
    names = [f"#/$defs/{name}" for name in DEFINITIONS]
    odd = ["#"]
    if nonsense:
        names += [f"#/definitions/{name}" for name in DEFINITIONS]
        odd += ["#/properties/a", "#/$defs/Nobody", "https://example.com/schema"]
    out: Schema = {"$ref": draw(st.sampled_from(names * 2 + odd))}
    return {
        **out,
        **draw(_some({"minLength": _count(), "description": st.just("Here."), "required": st.just(["a"])}, 1)),
    }


@st.composite
def _objects(draw: Draw, depth: int, nonsense: bool, definitions: bool) -> Schema:
    part = schemas(depth, nonsense=nonsense, definitions=definitions)
    names = draw(st.lists(st.sampled_from(NAMES), max_size=3, unique=True))
    keywords = {
        "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
        "additionalProperties": st.booleans() | part,
        "minProperties": _count(),
        "maxProperties": st.integers(2, 4),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$"]), part, min_size=1, max_size=2),
        "propertyNames": st.just({"maxLength": 20}) | part,
        "dependentRequired": st.just({"a": ["b"]}),
        "dependentSchemas": st.fixed_dictionaries({"a": part}),
        "dependencies": st.just({"a": ["b"]}) | st.fixed_dictionaries({"a": part}),
        "unevaluatedProperties": st.booleans() | part,
    }
    typed = {"type": "object"} if draw(st.integers(0, 4)) else {}
    return {**typed, "properties": {name: draw(part) for name in names}, **draw(_some(keywords, 2))}


@st.composite
def _arrays(draw: Draw, depth: int, nonsense: bool, definitions: bool) -> Schema:
    part = schemas(depth, nonsense=nonsense, definitions=definitions)
    positions = st.lists(part, min_size=1, max_size=3)
    keywords = {
        "minItems": _count(),
        "maxItems": _count(),
        "uniqueItems": st.booleans(),
        "contains": part,
        "maxContains": st.just(1),
        "unevaluatedItems": st.booleans(),
    }
    shapes: list[Schema] = [
        *({"items": part}, {"items": part}, {"items": positions, "additionalItems": st.booleans() | part}),
        *({"prefixItems": positions}, {"prefixItems": positions, "items": st.booleans() | part}, {}),
    ]
    shape = draw(st.sampled_from(shapes))
    return {"type": "array", **{keyword: draw(held) for keyword, held in shape.items()}, **draw(_some(keywords, 2))}


@st.composite
def _unions(draw: Draw, depth: int, nonsense: bool, definitions: bool) -> Schema:
    part = schemas(depth, nonsense=nonsense, definitions=definitions)
    out = {draw(st.sampled_from(["anyOf", "oneOf"])): draw(st.lists(part, min_size=1, max_size=3))}
    if draw(st.integers(0, 3)) == 0:
        out = {**draw(_objects(depth, nonsense, definitions)), **out}
    if draw(st.integers(0, 4)) == 0:
        out = {"type": draw(st.sampled_from(TYPES)), "anyOf": draw(st.lists(part, min_size=1, max_size=2)), **out}
    return out


@st.composite
def _conjunctions(draw: Draw, depth: int, nonsense: bool, definitions: bool) -> Schema:
    part = schemas(depth, nonsense=nonsense, definitions=definitions)
    out: Schema = {"allOf": draw(st.lists(part, min_size=1, max_size=3))}
    return {**out, **draw(_objects(depth, nonsense, definitions))} if draw(st.booleans()) else out


@st.composite
def _rest(draw: Draw, depth: int, nonsense: bool, definitions: bool) -> Schema:
    part = schemas(min(depth, 1), nonsense=nonsense, definitions=definitions)
    keywords = {"not": part, "if": part, "then": part, "else": part}
    return {**draw(_scalars(depth, nonsense, definitions)), **draw(_some(keywords, 3))}


def _booleans(depth: int, nonsense: bool, definitions: bool) -> Any:
    return st.booleans()


_KINDS: dict[str, Any] = {
    "scalar": _scalars,
    "values": _values,
    "plain": _plain,
    "reference": _references,
    "object": _objects,
    "array": _arrays,
    "union": _unions,
    "allOf": _conjunctions,
    "rest": _rest,
    "boolean": _booleans,
}


# --- values -------------------------------------------------------------------------------------------


@st.composite
def values(draw: Draw, root: Schema) -> Any:
    """An object that may well be valid under a schema."""
    found = _guided(draw, root, root, 6)
    return found if isinstance(found, dict) else {}


def _guided(draw: Draw, schema: Any, root: Schema, depth: int) -> Any:
    if not isinstance(schema, dict) or depth == 0 or draw(st.integers(0, 12)) == 0:
        return draw(JSON)
    schema = _followed(draw, schema, root)
    if "const" in schema:
        return schema["const"]
    if isinstance(schema.get("enum"), list) and schema["enum"]:
        return draw(st.sampled_from(schema["enum"]))
    type = schema.get("type") or ("object" if "properties" in schema else "array" if "items" in schema else None)
    if isinstance(type, list) and type:
        type = draw(st.sampled_from(type))
    if type == "object":
        return _object(draw, schema, root, depth - 1)
    if type == "array":
        return _array(draw, schema, root, depth - 1)
    scalars: dict[Any, Any] = {
        "string": st.sampled_from(["", "a", "ab", "abc", "b", "é"]),
        "integer": st.integers(-3, 5),
        "number": st.integers(-3, 5) | st.sampled_from([0.5, 1.5, 3.5]),
        "boolean": st.booleans(),
        "null": st.none(),
    }
    return draw(scalars.get(type if isinstance(type, str) else None, JSON))


def _followed(draw: Draw, schema: Schema, root: Schema) -> Schema:
    """A schema with what it refers to, and with one branch of each union, laid over it."""
    out = dict(schema)
    for _ in range(4):
        parts: list[Any] = list(out.pop("allOf", ())) if isinstance(out.get("allOf"), list) else []
        for keyword in ("anyOf", "oneOf"):
            branches = out.pop(keyword, None)
            if isinstance(branches, list) and branches:
                parts.append(draw(st.sampled_from(branches)))
        steps = str(out.pop("$ref", "")).split("/")
        if steps[0] == "#":
            schema_part: Any = root
            for step in steps[1:]:
                schema_part = schema_part.get(step) if isinstance(schema_part, dict) else None
            parts.append(schema_part)
        parts = [part for part in parts if isinstance(part, dict)]
        if not parts:
            break
        for part in parts:
            tables = [held for held in (out.get("properties"), part.get("properties")) if isinstance(held, dict)]
            out = {**out, **part, "properties": {name: held for table in tables for name, held in table.items()}}
    return out


def _object(draw: Draw, schema: Schema, root: Schema, depth: int) -> Any:
    properties = schema.get("properties")
    properties = properties if isinstance(properties, dict) else {}
    required = schema.get("required") if isinstance(schema.get("required"), list) else []
    names = [name for name in properties if name in (required or ()) or draw(st.booleans())]
    names += [name for name in required or () if isinstance(name, str) and name not in names]
    if draw(st.integers(0, 2)) == 0:
        names.append(draw(st.sampled_from(NAMES)))
    rest = schema.get("additionalProperties", True)
    return {name: _guided(draw, properties.get(name, rest), root, depth) for name in names}


def _array(draw: Draw, schema: Schema, root: Schema, depth: int) -> Any:
    positions = schema.get("prefixItems") if isinstance(schema.get("prefixItems"), list) else None
    items = schema.get("items")
    if isinstance(items, list):
        positions, items = items, schema.get("additionalItems")
    positions = positions or []
    length = draw(st.integers(0, 3))
    return [_guided(draw, positions[at] if at < len(positions) else items, root, depth) for at in range(length)]
