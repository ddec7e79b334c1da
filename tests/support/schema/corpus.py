"""Schemas to lower, and what judges them."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
from hypothesis import HealthCheck, settings

from toolglot import profiles
from toolglot.profiles import Profile

Schema = dict[str, Any]


JSON_SCHEMA_FIELD = profiles.Overrides(
    """
    [profiles.gemini.rules]
    "schema.field" = "parametersJsonSchema"
    "schema.keywords" = ["type", "title", "description", "enum", "items", "minItems", "maxItems", "properties",
        "required", "minimum", "maximum", "minLength", "maxLength", "pattern", "additionalProperties", "anyOf",
        "$ref", "$defs", "minProperties", "maxProperties"]
    "schema.refused" = []
    "schema.refs" = true
    "schema.type_lists" = true
    "schema.nullable" = false
    "schema.enum_types" = "any"
    "schema.union_with_type" = true
    "schema.type_required" = false
    "schema.properties_non_empty" = false
    """
)


TARGETS: dict[str, Profile] = {
    **{name: profiles.get(name) for name in profiles.names()},
    "bare": profiles.get("bare", overrides=profiles.Overrides('[profiles.bare]\ntitle = "Says nothing"')),
    "bedrock-claude": profiles.get("bedrock", "anthropic.claude-opus-4-6-v1:0"),
    "gemini-json-schema": profiles.get("gemini", overrides=JSON_SCHEMA_FIELD),
}


def corpus(examples: int) -> settings:
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=max(examples, settings().max_examples), suppress_health_check=quiet)


class Original:
    """What a schema accepts. A keyword that its draft does not know yet is read as the draft that does."""

    def __init__(self, schema: Schema) -> None:
        readings = [schema, {keyword: value for keyword, value in schema.items() if keyword != "$schema"}]
        self._validators = [
            jsonschema_rs.validator_for(reading, offline=True, validate_formats=False) for reading in readings
        ]

    def is_valid(self, value: Any) -> bool:
        return all(validator.is_valid(value) for validator in self._validators)


def validator(schema: Schema) -> Original | None:
    try:
        return Original(schema)
    except ValueError:
        return None
