"""JSON Schemas for the fields of request bodies, from which the gateway's OpenAPI document is made.

They are open: a protocol's own fields beyond these are accepted too, and its codec reads them.
"""

from __future__ import annotations

from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
FLAG: Final[Schema] = {"type": "boolean"}
TEXTS: Final[Schema] = {"type": "array", "items": TEXT}
INPUTS: Final[Schema] = {"type": ["string", "array"]}
OBJECTS: Final[Schema] = {"type": "array", "items": {"type": "object"}, "minItems": 1}
TOKENS: Final[Schema] = {"type": "integer", "minimum": 1}
MODEL: Final[Schema] = {**TEXT, "minLength": 1, "description": "a model, as `GET /v1/models` lists it"}


def object_schema(**fields: Schema) -> Schema:
    """An object that has all of these fields."""
    return {"type": "object", "properties": fields, "required": [*fields]}
