"""A law of tools from functions: what their schema accepts can be read, and the function is called with it."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import inspect
from typing import Annotated, Any, Literal, TypedDict, Union

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolglot.arguments import validate
from toolglot.runtime.tools.references import inline_definitions
from toolglot.runtime.tools.toolbox import Tool, ToolContext, ToolError, tool


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Mixed(enum.Enum):
    ONE = 1
    TWO = "two"


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


class Named(TypedDict, total=False):
    name: str


class Span(msgspec.Struct):
    start: Annotated[int, msgspec.Meta(ge=0, le=9)]
    point: Point | None = None


LEAVES = (int, float, str, bool, None, Any, Literal["a", "b", 3], Color, Mixed, Point, Named, Span)


def hints() -> st.SearchStrategy[Any]:
    """Hints of what JSON can say without a format; those are not asserted."""
    return st.recursive(
        st.sampled_from(LEAVES),
        lambda inner: st.one_of(
            inner.map(lambda hint: list[hint]),  # type: ignore[valid-type]
            inner.map(lambda hint: dict[str, hint]),  # type: ignore[valid-type]
            inner.map(lambda hint: tuple[hint, ...]),  # type: ignore[valid-type]
            st.tuples(inner, inner).map(lambda pair: tuple[pair]),  # type: ignore[valid-type]
            st.tuples(inner, inner).map(lambda pair: Union[pair]),  # noqa: UP007
        ),
        max_leaves=4,
    )


@st.composite
def functions(draw: st.DrawFn) -> tuple[Tool, list[dict[str, Any]]]:
    """A tool with an unusual signature, and what it was called with."""
    kinds = draw(st.lists(st.tuples(hints(), st.booleans()), max_size=4))
    seen: list[dict[str, Any]] = []

    async def function(**arguments: Any) -> str:
        seen.append(arguments)
        return "called"

    parameters = [
        inspect.Parameter(
            f"p{index}",
            inspect.Parameter.KEYWORD_ONLY,
            default=None if is_optional else inspect.Parameter.empty,
            annotation=hint,
        )
        for index, (hint, is_optional) in enumerate(kinds)
    ]
    function.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    function.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return tool(function), seen


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
PLAIN: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(),
    "boolean": st.booleans(),
    "null": st.none(),
    "number": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
}


def accepted(schema: Any) -> st.SearchStrategy[Any]:
    """Values that a schema accepts, as far as the hints above need it."""
    if schema is True or not schema:
        return JSON
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([accepted(member) for member in schema["anyOf"]])
    kind = schema.get("type")
    if kind == "integer":
        least, most = schema.get("minimum", -(2**70)), schema.get("maximum", 2**70)
        # 1.0 is a whole number in JSON.
        return st.integers(least, most).flatmap(lambda number: st.sampled_from(_spelled(number)))
    if kind == "array":
        if "prefixItems" in schema:
            return st.tuples(*map(accepted, schema["prefixItems"])).map(list)
        return st.lists(accepted(schema.get("items")), max_size=3)
    return _objects(schema) if kind == "object" else PLAIN.get(kind, JSON)


def _spelled(number: int) -> list[int | float]:
    return [number, float(number)] if abs(number) < 2**50 else [number]


def _objects(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    table = {name: accepted(held) for name, held in schema.get("properties", {}).items()}
    needed = {name: table.pop(name) for name in schema.get("required", [])}
    known = st.fixed_dictionaries(needed, optional=table)
    more = schema.get("additionalProperties", True)
    if more is False:
        return known
    others = st.text().filter(lambda name: name not in schema.get("properties", {}))
    return st.builds(lambda a, b: {**a, **b}, st.dictionaries(others, accepted(more), max_size=2), known)


@pytest.mark.law
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large])
@given(functions(), st.data())
def test_arguments_that_the_schema_accepts_are_read_and_the_function_is_called(
    made: tuple[Tool, list[dict[str, Any]]], data: st.DataObject
) -> None:
    function, seen = made
    schema = function.spec.parameters
    assert schema is not None
    assert "$ref" not in str(schema)
    arguments = data.draw(accepted(schema))
    assert validate(arguments, schema) == ()
    assert function.run is not None
    assert asyncio.run(_awaited(function.run(arguments, ToolContext()))) == "called"
    assert set(seen[-1]) == set(arguments)


@pytest.mark.law
@given(functions(), st.dictionaries(st.sampled_from(["p0", "p1", "p2", "else"]), JSON))
def test_whatever_the_arguments_are_the_function_is_called_or_the_model_gets_an_error(
    made: tuple[Tool, list[dict[str, Any]]], arguments: dict[str, Any]
) -> None:
    function, seen = made
    assert function.run is not None
    outcome = asyncio.run(_error_text(function.run(arguments, ToolContext())))
    if outcome == "called":
        assert [set(held) for held in seen] == [set(arguments)]
    else:
        assert outcome.startswith("The arguments do not fit: $.")
        assert len(outcome) <= 510
        assert seen == []


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


async def _error_text(awaitable: Any) -> str:
    try:
        return str(await awaitable)
    except ToolError as error:
        return error.message


# --- definitions written out ------------------------------------------------------------------------


def test_definitions_are_written_out_and_only_recursive_ones_stay() -> None:
    definitions: dict[str, Any] = {
        "A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}, "n": {"$ref": "#/$defs/Node"}}},
        "B": {"type": "integer"},
        "Node": {"properties": {"next": {"$ref": "#/$defs/Node"}, "b": {"$ref": "#/$defs/B", "title": "mine"}}},
        "Unused": {"$ref": "#/$defs/Unused"},
    }
    assert inline_definitions({"items": [{"$ref": "#/$defs/A"}], "$ref": "#/elsewhere"}, definitions) == {
        "items": [
            {"type": "object", "properties": {"b": {"type": "integer"}, "n": {"$ref": "#/$defs/Node"}}},
        ],
        "$ref": "#/elsewhere",
        "$defs": {
            "Node": {"properties": {"next": {"$ref": "#/$defs/Node"}, "b": {"type": "integer", "title": "mine"}}}
        },
    }


def test_what_would_become_too_large_stays_as_it_is() -> None:
    definitions: dict[str, Any] = {"d0": {"type": "integer"}}
    for depth in range(1, 40):
        definitions[f"d{depth}"] = {"items": [{"$ref": f"#/$defs/d{depth - 1}"}] * 2}
    schema = {"$ref": "#/$defs/d39"}
    assert inline_definitions(schema, definitions) == {**schema, "$defs": definitions}
