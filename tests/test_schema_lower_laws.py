"""The laws of lowering, on random schemas, for every target."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema

from schema_judges import meaning, objections
from schema_strategies import tools, values
from toolglot import profiles
from toolglot.profiles import Profile
from toolglot.schema import lower

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

CORPUS = 2_000
"""Random schemas in an ordinary run; a soak has more."""

EVERY = tuple(TARGETS)
some_targets = st.integers(0, 7).map(lambda start: EVERY[start::8])


def corpus(examples: int) -> settings:
    quiet = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
    return settings(max_examples=max(examples, settings().max_examples), suppress_health_check=quiet)


@pytest.mark.law
@given(schema=tools(), targets=some_targets)
@corpus(CORPUS)
def test_whatever_the_schema_the_lowered_one_is_accepted(schema: Schema, targets: tuple[str, ...]) -> None:
    before = copy.deepcopy(schema)
    for target in targets:
        profile = TARGETS[target]
        lowered = lower(schema, profile)
        assert objections(lowered.schema, profile) == [], target
        again = lower(lowered.schema, profile)
        assert again.schema is lowered.schema, target
        assert again.losses == (), target
        assert lower(copy.deepcopy(schema), profile) == lowered, target
        assert lowered.schema is not schema or lowered.losses == (), target
        assert not lowered.strict, target
    assert schema == before


@pytest.mark.law
@given(data=st.data(), schema=tools(nonsense=False))
@corpus(CORPUS // 4)
def test_what_the_original_accepts_is_not_forbidden(data: st.DataObject, schema: Schema) -> None:
    original = validator(schema)
    if original is None:
        return
    accepted = [value for value in (data.draw(values(schema)) for _ in range(3)) if original.is_valid(value)]
    for target in TARGETS if accepted else ():
        check_nothing_forbidden(schema, target, accepted)


@pytest.mark.law
@given(data=st.data(), schema=tools(nonsense=False, roots=False), targets=some_targets)
@corpus(1)
def test_what_another_generator_makes_of_the_original_is_not_forbidden(
    data: st.DataObject, schema: Schema, targets: tuple[str, ...]
) -> None:
    if any(word in str(schema) for word in ("$ref", "definitions", "$schema", "'dependencies'", "True, 'minimum'")):
        return
    original = validator(schema)
    if original is None:
        return
    try:
        value = data.draw(from_schema(schema))
    except Exception as error:
        if type(error).__module__.startswith("hypothesis.") or "Unsatisfiable" in type(error).__name__:
            raise
        return
    if isinstance(value, dict) and original.is_valid(value):
        for target in targets:
            check_nothing_forbidden(schema, target, [value])


def check_nothing_forbidden(schema: Schema, target: str, accepted: list[Any]) -> None:
    profile = TARGETS[target]
    lowered = lower(schema, profile)
    # Where a type is demanded and none was given, one is assumed, and told; that may forbid other types.
    if lowered.schema is None or any("was assumed" in loss.reason for loss in lowered.losses):
        return
    judge: Any = jsonschema_rs.Draft202012Validator
    if profile.schema.tuple_items == "items":
        judge = jsonschema_rs.Draft7Validator
    judging = judge(meaning(lowered.schema), offline=True, validate_formats=False)
    for value in accepted:
        assert judging.is_valid(value), (target, value, lowered.schema)


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
