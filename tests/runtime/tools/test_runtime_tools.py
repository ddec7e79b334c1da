"""Tools from Python functions and plain definitions: the schema that the model sees."""

from __future__ import annotations

import asyncio
import contextvars
import datetime
import decimal
import functools
import pathlib
import threading
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
import pytest

from support.sessions.typed_tools import (
    Counter,
    Extra,
    Level,
    Mixed,
    ModelNode,
    ModelPlace,
    Node,
    Place,
    Unit,
    Window,
    properties,
    run,
)
from toolglot import ToolSpec
from toolglot.runtime.tools.toolbox import ToolContext, define, tool

# --- types that the tests use ---------------------------------------------------------------------


# --- schemas --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int, {"type": "integer"}),
        (float, {"type": "number"}),
        (bool, {"type": "boolean"}),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (Any, {}),
        (object, {}),
        (object | None, {}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (list, {"type": "array"}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (Iterable[str], {"type": "array", "items": {"type": "string"}}),
        (Iterable, {"type": "array"}),
        (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
        (Mapping[str, Any], {"type": "object"}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "minItems": 2,
                "maxItems": 2,
                "items": False,
            },
        ),
        (Literal["a", "b"], {"enum": ["a", "b"]}),
        (Unit, {"title": "Unit", "enum": ["c", "f"]}),
        (Level, {"title": "Level", "enum": [1, 2]}),
        (Mixed, {"title": "Mixed", "enum": [1, None, "word"]}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (datetime.date, {"type": "string", "format": "date"}),
        (datetime.timedelta, {"type": "string", "format": "duration"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (decimal.Decimal, {"type": "string", "format": "decimal"}),
        (pathlib.Path, {"type": "string", "format": "path"}),
        (
            Place,
            {
                "title": "Place",
                "type": "object",
                "properties": {
                    "city": {"type": "string", "description": "The city's name."},
                    "country": {"type": "string", "default": "NO"},
                },
                "required": ["city"],
            },
        ),
        (
            Window,
            {
                "title": "Window",
                "description": "A span of days.",
                "type": "object",
                "properties": {"days": {"type": "integer", "minimum": 1, "maximum": 14}},
                "required": ["days"],
            },
        ),
        (
            Extra,
            {
                "title": "Extra",
                "type": "object",
                "properties": {"more": {"type": "integer"}, "note": {"type": "string"}},
                "required": ["note"],
            },
        ),
        (
            ModelPlace,
            {
                "title": "ModelPlace",
                "type": "object",
                "properties": {"city": {"title": "City", "type": "string"}},
                "required": ["city"],
            },
        ),
        (str | pathlib.Path, {"anyOf": [{"type": "string"}, {"type": "string", "format": "path"}]}),
        (
            list[int] | list[str],
            {
                "anyOf": [
                    {"type": "array", "items": {"type": "integer"}},
                    {"type": "array", "items": {"type": "string"}},
                ]
            },
        ),
        (Annotated[int, "How many."], {"type": "integer", "description": "How many."}),
        (Annotated[str, msgspec.Meta(min_length=1)], {"type": "string", "minLength": 1}),
        (
            Annotated[int, msgspec.Meta(description="first"), "second", object()],
            {"type": "integer", "description": "first"},
        ),
    ],
)
def test_a_hint_has_its_schema(hint: Any, schema: dict[str, Any]) -> None:
    def function(value: Any) -> None: ...

    function.__annotations__["value"] = hint
    made = tool(function)
    assert made.spec.parameters == {
        "type": "object",
        "properties": {"value": schema},
        "required": ["value"],
        "additionalProperties": False,
    }


def test_only_what_contains_itself_stays_a_definition() -> None:
    @tool
    def grow(tree: Node, again: Node, model: ModelNode, either: Place | ModelNode | Node | None = None) -> None: ...

    schema = grow.spec.parameters
    assert schema is not None
    assert schema["properties"]["tree"] == {"$ref": "#/$defs/Node"}
    assert set(schema["$defs"]) >= {"Node", "model.ModelNode"}
    node = {"name": "a", "children": [{"name": "b", "children": []}]}

    seen: list[Any] = []

    @tool
    def keep(tree: Node, model: ModelNode, either: Place | ModelNode | None = None) -> None:
        seen.extend([tree, model, either])

    run(keep, tree=node, model=node, either=node)
    assert seen[0] == Node("a", [Node("b")])
    assert isinstance(seen[1], ModelNode)
    assert isinstance(seen[2], ModelNode)


def test_docstrings_of_every_style_describe_the_tool_and_its_parameters() -> None:
    def google(city: str, days: int = 3) -> None:
        """The weather.

        For a few days.

        Args:
            city: Where.
            days: How long.
        """

    def numpy(city: str, days: int = 3) -> None:
        """The weather.

        For a few days.

        Parameters
        ----------
        city : str
            Where.
        days : int
            How long.
        """

    def sphinx(city: str, days: int = 3) -> None:
        """The weather.

        For a few days.

        :param city: Where.
        :param days: How long.
        """

    for function in (google, numpy, sphinx):
        made = tool(function)
        assert made.spec.description == "The weather.\n\nFor a few days."
        assert properties(made) == {
            "city": {"type": "string", "description": "Where."},
            "days": {"type": "integer", "description": "How long.", "default": 3},
        }
    assert tool(google, description="Mine.", name="weather").spec.description == "Mine."
    assert tool(lambda: None, name="bare").spec.description is None


def test_defaults_are_shown_where_json_has_them() -> None:
    def function(  # type: ignore[no-untyped-def]
        unit: Unit = Unit.CELSIUS,
        place: Place = Place("Oslo"),  # noqa: B008
        maybe: int = None,  # type: ignore[assignment]  # noqa: RUF013
        anything=None,
        odd: Any = object(),  # noqa: B008
    ) -> None: ...

    shown = properties(tool(function))
    assert shown["unit"]["default"] == "c"
    assert shown["place"]["default"] == {"city": "Oslo", "country": "NO"}
    assert shown["maybe"] == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    assert shown["anything"] == {"default": None}
    assert shown["odd"] == {}


# --- what is made a tool --------------------------------------------------------------------------


def test_methods_callables_and_partials_are_tools() -> None:
    counter = Counter()
    assert run(tool(counter.add), number=2) == 2
    assert run(tool(counter), number=3) == 5
    assert (tool(counter).name, tool(counter).spec.description) == ("Counter", "Counts.")
    assert run(tool(Counter.name), prefix="a ") == "a Counter"
    assert run(tool(Counter.twice), number=4) == 8

    def scaled(number: int, factor: int, label: str = "x") -> str:
        """Scales."""
        return f"{number * factor}{label}"

    half = tool(functools.partial(functools.partial(scaled, factor=10), label="y"))
    assert (half.name, half.spec.description) == ("scaled", "Scales.")
    assert properties(half)["factor"] == {"type": "integer", "default": 10}
    assert run(half, number=2) == "20y"
    assert run(tool(functools.partial(scaled, 2)), factor=3) == "6x"
    assert run(tool(functools.partial(counter)), number=1) == 6
    made = tool(Place)
    assert run(made, city="Oslo") == Place("Oslo")


def test_a_tool_can_still_be_called_as_the_function_that_it_is() -> None:
    @tool(timeout=5, idempotent=True, side_effects=False, approval=True, on_timeout="error", strict=True)
    def double(number: int) -> int:
        return number * 2

    assert double(4) == 8
    assert double.timeout == 5
    assert double.spec.strict is True
    assert (double.idempotent, double.side_effects, double.approval, double.on_timeout) == (True, False, True, "error")
    plain = define(ToolSpec("plain"))
    assert not callable(plain)


async def test_functions_run_in_a_thread_with_their_context_and_coroutines_do_not() -> None:
    who = contextvars.ContextVar("who", default="nobody")

    def here(context: ToolContext) -> tuple[bool, str, str]:
        return threading.current_thread() is threading.main_thread(), who.get(), context.call_id

    async def there(context: Annotated[ToolContext | None, "given"] = None) -> tuple[bool, str, str]:
        assert context is not None
        return here(context)

    who.set("me")
    context = ToolContext(call_id="call")
    for function, is_main in ((here, False), (there, True)):
        made = tool(function)
        assert properties(made) == {}
        assert made.run is not None
        assert await made.run({}, context) == (is_main, "me", "call")


async def test_a_function_in_a_thread_can_be_cancelled_and_abandoned() -> None:
    started, release = threading.Event(), threading.Event()

    @tool
    def stubborn(context: ToolContext) -> str:
        started.set()
        context.cancelled.wait(120)
        release.wait(120)
        return "stopped"

    assert stubborn.run is not None
    context = ToolContext()
    call = asyncio.ensure_future(stubborn.run({}, context))
    while not started.is_set():
        await asyncio.sleep(0)
    context.cancelled.set()
    for _ in range(2):
        call.cancel()
        await asyncio.sleep(0)
    with pytest.raises(asyncio.CancelledError):
        await call
    release.set()


def test_what_an_ordinary_function_returns_to_be_awaited_is_awaited() -> None:
    async def later() -> str:
        return "later"

    assert run(tool(lambda **_: later(), name="now")) == "later"


def test_a_hint_may_name_what_an_enclosing_function_has() -> None:
    class Local(msgspec.Struct):
        number: int

    @tool
    def take(local: Local) -> Local:
        return Local(local.number + 1)

    assert run(take, local={"number": 1}) == Local(2)
