"""The laws of lowering, on random schemas, for every target."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis_jsonschema import from_schema

from support.schema.corpus import TARGETS, Schema, corpus, validator
from support.schema.judges import meaning, objections
from support.schema.strategies import tools, values
from toolglot.schema import lower

CORPUS = 2_000
"""Random schemas in an ordinary run; a soak has more."""

EVERY = tuple(TARGETS)
some_targets = st.integers(0, 7).map(lambda start: EVERY[start::8])


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
    # Where a type is demanded and there is none, one is assumed and reported; that may forbid other types.
    if lowered.schema is None or any("was assumed" in loss.reason for loss in lowered.losses):
        return
    judge: Any = jsonschema_rs.Draft202012Validator
    if profile.schema.tuple_items == "items":
        judge = jsonschema_rs.Draft7Validator
    judging = judge(meaning(lowered.schema), offline=True, validate_formats=False)
    for value in accepted:
        assert judging.is_valid(value), (target, value, lowered.schema)
