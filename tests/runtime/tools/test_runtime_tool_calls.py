"""Arguments of tools: read by the types of the function, or refused."""

from __future__ import annotations

import datetime
import decimal
import pathlib
from collections.abc import Callable
from typing import Any, Optional

import pydantic
import pytest

from support.sessions.typed_tools import (
    Counter,
    Extra,
    Mixed,
    ModelPlace,
    Place,
    Point,
    Unit,
    Window,
    run,
)
from toolglot import InputError, ToolSpec
from toolglot.runtime.tools.toolbox import Tool, ToolContext, ToolError, define, tool

# --- types that the tests use ---------------------------------------------------------------------


class Model(pydantic.BaseModel):
    count: int = pydantic.Field(ge=0, description="How many.")
    place: Optional[ModelPlace] = None  # noqa: UP045 - as many write it


Model.model_rebuild()


# --- arguments ------------------------------------------------------------------------------------


def test_arguments_are_of_the_hinted_types() -> None:
    @tool
    def take(
        place: Place,
        window: Window,
        extra: Extra,
        point: Point,
        unit: Unit,
        mixed: Mixed,
        when: datetime.datetime,
        many: list[Place],
        by_number: dict[int, str],
        path: pathlib.Path,
        either: datetime.date | str,
        model: Model,
        price: decimal.Decimal,
        number: int,
        **rest: int,
    ) -> dict[str, Any]:
        return dict(locals())

    taken = run(
        take,
        place={"city": "Oslo"},
        window={"days": 3},
        extra={"note": "n"},
        point=[1, 2],
        unit="f",
        mixed=1.0,
        when="2026-01-02T03:04:05Z",
        many=[{"city": "Bergen"}],
        by_number={"1": "one"},
        path="/tmp",  # noqa: S108
        either="2026-01-02",
        model={"count": 1, "place": {"city": "Oslo"}},
        price="1.50",
        number=2.0,
        more=7,
    )
    assert taken == {
        "place": Place("Oslo"),
        "window": Window(3),
        "extra": {"note": "n"},
        "point": Point(1, 2),
        "unit": Unit.FAHRENHEIT,
        "mixed": Mixed.ONE,
        "when": datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
        "many": [Place("Bergen")],
        "by_number": {1: "one"},
        "path": pathlib.Path("/tmp"),  # noqa: S108
        "either": datetime.date(2026, 1, 2),
        "model": Model(count=1, place=ModelPlace(city="Oslo")),
        "price": decimal.Decimal("1.50"),
        "number": 2,
        "rest": {"more": 7},
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, r"\$\.place: missing, and required"),
        ({"place": {"city": 1}}, r"\$\.place\.city: Expected `str`, got `int`"),
        ({"place": {"city": "a"}, "count": "1"}, r"\$\.count: Expected `int \| null`, got `str`"),
        ({"place": {"city": "a"}, "nope": 1}, r"\$\.nope: no such argument; there are: place, count, mixed, path, m"),
        ({"place": {"city": "a"}, "context": {}}, r"\$\.context: no such argument"),
        ({"place": {"city": "a"}, "mixed": 2}, r"\$\.mixed: Expected one of the listed values"),
        ({"place": {"city": "a"}, "path": 2}, r"\$\.path: Expected `str`, got `int`"),
        ({"place": {"city": "a"}, "model": {"count": -1}}, r"\$\.model: count: Input should be greater than or equal"),
        ({"place": {"city": "a"}, "either": []}, r"\$\.either: Expected .* or Expected"),
        ({"place": {"city": "a"}, "when": "soon"}, r"\$\.when: Invalid RFC3339"),
        ({"place": 1, "count": "x"}, r"\$\.place: Expected `object`, got `int`; \$\.count: Expected"),
    ],
)
def test_what_does_not_fit_is_reported_with_its_path_and_the_function_is_not_called(
    arguments: dict[str, Any], message: str
) -> None:
    called: list[Any] = []

    @tool
    def take(
        place: Place,
        context: ToolContext,
        count: int | None = None,
        mixed: Mixed = Mixed.WORD,
        path: pathlib.Path | None = None,
        model: Model | None = None,
        either: str | datetime.date | None = None,
        when: datetime.datetime | None = None,
    ) -> None:
        called.append(place)

    with pytest.raises(ToolError, match="^The arguments do not fit: " + message) as raised:
        run(take, **arguments)
    assert raised.value.message == str(raised.value)
    assert called == []


class Strange:
    """A model that is not pydantic's, and says less of what it dislikes."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]:
        return {"type": "object"}

    @classmethod
    def model_validate(cls, value: Any) -> Strange:
        if value:
            raise ValueError("not empty")
        return cls()


def test_a_model_is_known_by_its_methods() -> None:
    @tool
    def take(strange: Strange) -> str:
        return type(strange).__name__

    assert run(take, strange={}) == "Strange"
    with pytest.raises(ToolError, match=r"\$\.strange: not empty"):
        run(take, strange={"a": 1})


# --- what is refused ------------------------------------------------------------------------------


def positional(value: int, /) -> None: ...


def variadic(*values: int) -> None: ...


def generator() -> Any:
    yield 1


async def asynchronous_generator() -> Any:
    yield 1


def callback(function: Callable[[], int]) -> None: ...


def unknown(value: NotThere) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def unreadable(value: "int[") -> None: ...  # type: ignore[valid-type]  # noqa: F722


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (positional, r"positional\.value: a positional-only parameter has no name for the model"),
        (variadic, r"variadic\.values: the model names every argument"),
        (generator, "generator: a generator cannot be a tool"),
        (asynchronous_generator, "a generator cannot be a tool"),
        (callback, r"callback\.function: this type hint is not supported"),
        (unknown, "unknown: a type hint refers to an unknown name: name 'NotThere'"),
        (unreadable, "unreadable: a type hint cannot be read"),
        (Counter.add, r"add\.self: the method is not bound"),
        (lambda: None, "'<lambda>' cannot be the name of a tool"),
        (3, "expected a function, got 3"),
        (dict.fromkeys, "."),
        (define(ToolSpec("made")), "'made' is a tool already"),
    ],
)
def test_what_cannot_be_a_tool_is_refused_with_the_reason(value: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tool(value)


def test_a_function_without_a_signature_is_refused() -> None:
    with pytest.raises(InputError, match="parameters of the function are not known"):
        tool(type, name="kind")


def test_a_hint_that_is_nested_without_end_is_refused() -> None:
    hint: Any = int
    for _ in range(60):
        hint = list[hint]

    def function(value: Any) -> None: ...

    function.__annotations__["value"] = hint
    with pytest.raises(InputError, match="nested too deeply"):
        tool(function)


@pytest.mark.parametrize("marks", [{"timeout": 0}, {"timeout": -1}, {"on_timeout": "hope"}])
def test_marks_that_make_no_sense_are_refused(marks: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        tool(Counter.twice, **marks)
    with pytest.raises(InputError, match="expected a ToolSpec"):
        Tool(spec="x")  # type: ignore[arg-type]
