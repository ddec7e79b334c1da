"""Schemas as they come: tools of coding agents and MCP servers, generators' habits, and traps."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

STRING: Schema = {"type": "string"}


def tool(**properties: Any) -> Schema:
    return {"type": "object", "properties": properties}


def required(*names: str, **properties: Any) -> Schema:
    return {**tool(**properties), "required": list(names)}


def bomb(width: int, depth: int) -> Schema:
    """Definitions that each use the next several times: exponential when written out."""
    last = f"L{depth}"
    definitions: Schema = {last: tool(leaf=STRING)}
    for level in range(depth):
        properties = {f"p{at}": {"$ref": f"#/$defs/L{level + 1}"} for at in range(width)}
        definitions[f"L{level}"] = {"type": "object", "properties": properties}
    return {**tool(start={"$ref": "#/$defs/L0"}), "$defs": definitions}


def nested(keyword: str, depth: int, innermost: Schema) -> Schema:
    out: Any = innermost
    for _ in range(depth):
        out = {"type": "array", "items": out} if keyword == "items" else {keyword: [out]}
    return tool(a=out)


NODE: Schema = {
    "type": "object",
    "properties": {"name": STRING, "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
    "required": ["name"],
}
CAT = required("kind", kind={"const": "cat"}, lives={"type": "integer"})
DOG = required("kind", kind={"const": "dog"}, tricks={"type": "array", "items": STRING})

ZOO: dict[str, Schema] = {
    # --- tools of agents
    "read_file": {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "file_path": {"type": "string", "description": "The absolute path."},
            "offset": {"type": "number", "description": "The line to start from."},
            "limit": {"type": "integer", "exclusiveMinimum": 0, "maximum": 2000},
        },
        "required": ["file_path"],
        "additionalProperties": False,
    },
    "edit": required(
        *("path", "edits"),
        path=STRING,
        edits={
            "type": "array",
            "minItems": 1,
            "items": {**required("old", "new", old=STRING, new=STRING), "additionalProperties": False},
        },
    ),
    "todo_write": required(
        "todos",
        todos={
            "type": "array",
            "items": required(
                *("content", "status"),
                content={"type": "string", "minLength": 1},
                status={"type": "string", "enum": ["pending", "in_progress", "completed"]},
            ),
        },
    ),
    "bash": required(
        "command", command=STRING, timeout={"type": "number", "default": 120_000}, background={"type": "boolean"}
    ),
    "fetch": required("url", url={"type": "string", "format": "uri"}, max_length={"type": "integer", "default": 5000}),
    "apply_patch": required("input", input={"type": "string", "description": "The patch."}),
    "browser_action": {
        **required("action", action={"type": "string", "enum": ["click", "type"]}, coordinate=STRING, text=STRING),
        "if": {"properties": {"action": {"const": "click"}}},
        "then": {"required": ["coordinate"]},
        "else": {"required": ["text"]},
    },
    "update_event": {
        **required("id", id=STRING, start=STRING, end=STRING, all_day={"type": "boolean"}),
        "anyOf": [{"required": ["start", "end"]}, {"required": ["all_day"]}],
    },
    "search_with_map": required(
        "filters", filters={"type": "object", "additionalProperties": {"type": "string", "maxLength": 20}}
    ),
    "notion": tool(
        data={"allOf": [tool(parent={"type": "string"}), {"description": "A page.", **tool(title=STRING)}]},
    ),
    "sql": required("params", params={"type": "array", "items": {"type": ["string", "number", "boolean", "null"]}}),
    "headers": tool(headers={"type": "object", "patternProperties": {"^x-": STRING}, "additionalProperties": False}),
    # --- habits of generators
    "pydantic_optional": tool(
        base_branch={
            "anyOf": [STRING, {"type": "null"}],
            "default": None,
            "title": "Base Branch",
            "description": "From.",
        }
    ),
    "pydantic_nested": {
        **tool(node={"$ref": "#/$defs/Item", "description": "The item."}),
        "$defs": {"Item": {**tool(n={"type": "integer"}), "title": "Item"}},
        "title": "Args",
    },
    "pydantic_v1_all_of": {
        **tool(node={"allOf": [{"$ref": "#/definitions/Item"}], "title": "Node"}),
        "definitions": {"Item": tool(n={"type": "integer"})},
    },
    "discriminated": {
        **tool(pet={"oneOf": [CAT, DOG], "discriminator": {"propertyName": "kind"}}),
    },
    "discriminated_references": {
        **tool(pet={"oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}]}),
        "$defs": {"Cat": CAT, "Dog": DOG},
    },
    "zod_root_reference": {
        "$ref": "#/definitions/args",
        "definitions": {"args": {**required("q", q=STRING), "additionalProperties": False}},
        "$schema": "http://json-schema.org/draft-07/schema#",
    },
    "zod_pointer_reference": tool(a=tool(x=STRING), b={"$ref": "#/properties/a"}),
    "zod_record": tool(env={"type": "object", "propertyNames": {"type": "string"}, "additionalProperties": STRING}),
    "zod_tuple": tool(
        point={"type": "array", "items": [{"type": "number"}, {"type": "number"}], "additionalItems": False}
    ),
    "tuple_2020": tool(
        point={"type": "array", "prefixItems": [{"type": "number"}, STRING], "items": {"type": "boolean"}}
    ),
    "openapi_nullable": tool(note={"type": "string", "nullable": True, "enum": ["a", "b"]}),
    "gemini_spelling": {"type": "OBJECT", "properties": {"q": {"type": "STRING"}}, "required": ["q"]},
    "draft_4": tool(
        n={"type": "integer", "minimum": 3, "exclusiveMinimum": True, "maximum": 9, "exclusiveMaximum": False}
    ),
    "rust_untagged": tool(
        value={"anyOf": [STRING, {"type": "integer", "format": "int64"}, tool(x={"type": "number"})]}
    ),
    # --- roots
    "empty": {},
    "empty_object": {"type": "object", "properties": {}},
    "no_properties": {"type": "object"},
    "no_type": {"properties": {"a": STRING}, "required": ["a"]},
    "root_one_of": {"type": "object", "oneOf": [required("a", a=STRING), required("b", b={"type": "integer"})]},
    "root_closed_union": {"anyOf": [{**CAT, "additionalProperties": False}, {**DOG, "additionalProperties": False}]},
    "root_all_of": {"allOf": [required("a", a=STRING), required("b", b=STRING)]},
    "root_string": {"type": "string"},
    "root_type_list": {"type": ["object", "null"], "properties": {"a": STRING}},
    "root_map": {"type": "object", "additionalProperties": STRING},
    # --- values and types
    "integer_enum": tool(level={"type": "integer", "enum": [0, 1, 2]}),
    "mixed_enum": tool(level={"enum": ["auto", 1, None]}),
    "huge_enum": tool(zone={"type": "string", "enum": [f"Zone/{n}" for n in range(3000)]}),
    "huge_number_enum": tool(zone={"enum": list(range(3000))}),
    "constant": tool(version={"const": 2}, flag={"const": "on"}),
    "untyped": tool(anything={}, described={"description": "Any JSON value."}),
    "bare_array": tool(a={"type": "array"}, b={"type": "array", "items": {}}),
    "bare_object": tool(m={"type": "object"}),
    "booleans": tool(a=True, b=False, c={"type": "array", "items": True}),
    "not": tool(a={"type": "string", "not": {"enum": ["root"]}}),
    "conjunction_chain": nested("allOf", 30, {"type": "string", "maxLength": 5}),
    "bounds": tool(
        n={"type": "number", "minimum": 1, "maximum": 10, "multipleOf": 0.5},
        s={"type": "string", "pattern": "^[a-z]+$"},
    ),
    "dependencies": {**tool(a=STRING, b=STRING), "dependentRequired": {"a": ["b"]}, "unevaluatedProperties": False},
    # --- references
    "tree": {**tool(root={"$ref": "#/$defs/Node"}), "$defs": {"Node": NODE}},
    "json_value": {
        **tool(value={"$ref": "#/$defs/Json"}),
        "$defs": {
            "Json": {
                "anyOf": [
                    *(STRING, {"type": "number"}, {"type": "boolean"}, {"type": "null"}),
                    {"type": "array", "items": {"$ref": "#/$defs/Json"}},
                    {"type": "object", "additionalProperties": {"$ref": "#/$defs/Json"}},
                ]
            }
        },
    },
    "reference_to_root": {**tool(name=STRING), "properties": {"name": STRING, "sub": {"$ref": "#"}}},
    "reference_to_nothing": tool(a={"$ref": "#/$defs/Missing"}, b={"$ref": "https://example.com/x.json"}),
    "reference_loop": {
        **tool(a={"$ref": "#/$defs/A"}),
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}},
    },
    "mutual": {
        **tool(a={"$ref": "#/$defs/A"}),
        "$defs": {"A": tool(b={"$ref": "#/$defs/B"}), "B": tool(a={"$ref": "#/$defs/A"}, c={"$ref": "#/$defs/A"})},
    },
    "bomb": bomb(8, 12),
    "all_of_bomb": {
        **tool(a={"$ref": "#/$defs/A0"}),
        "$defs": {
            **{f"A{n}": {"allOf": [{"$ref": f"#/$defs/A{n + 1}"}, {"$ref": f"#/$defs/A{n + 1}"}]} for n in range(30)},
            "A30": STRING,
        },
    },
    "deep": nested("items", 60, STRING),
    # --- names
    "odd_names": {
        **required(
            "$filter", "@type", **{"$filter": STRING, "@type": STRING, "привет": STRING, "a b": STRING, "ok": STRING}
        ),
        "additionalProperties": False,
    },
    "long_name": tool(**{"x" * 65: STRING}),
    # --- nonsense
    "nonsense": {
        "type": "object",
        "required": "a",
        "properties": {
            "a": {"type": "str", "minLength": "3", "required": True, "enum": "x"},
            "b": {"type": "array", "items": None, "minItems": 1.0},
            "c": {"type": ["string", "any"], "description": 5, "anyOf": []},
            "d": "string",
            "e": {"type": "object", "properties": [], "required": ["x", "x", 3]},
            "f": {"type": None, "properties": None, "$ref": 3, "default": float("nan")},
        },
    },
}
