"""Tools from Python functions and plain definitions: what the model sees, what the function gets, what is refused."""

from __future__ import annotations

import asyncio
import contextvars
import dataclasses
import datetime
import decimal
import enum
import functools
import pathlib
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict

import msgspec
import pydantic
import pytest

from toolglot import InputError, ToolSpec, lint, request_for
from toolglot.conversation import Conversation, Text, Turn
from toolglot.runtime.tools.toolbox import Output, Tool, ToolBox, ToolContext, ToolError, define, tool


def run(made: Tool, context: ToolContext | None = None, /, **arguments: Any) -> Any:
    assert made.run is not None
    return asyncio.run(_awaited(made.run(arguments, context or ToolContext())))


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def properties(made: Tool) -> dict[str, Any]:
    assert made.spec.parameters is not None
    found: dict[str, Any] = made.spec.parameters["properties"]
    return found


# --- types that the tests use -----------------------------------------------------------------------


class Unit(enum.Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    ONE = 1
    NOTHING = None
    WORD = "word"


@dataclasses.dataclass
class Place:
    city: Annotated[str, "The city's name."]
    country: str = "NO"


class Window(msgspec.Struct):
    """A span of days."""

    days: Annotated[int, msgspec.Meta(ge=1, le=14)]


class Extra(TypedDict):
    note: str
    more: NotRequired[int]


class Point(NamedTuple):
    x: float
    y: float


@dataclasses.dataclass
class Node:
    name: str
    children: list[Node] = dataclasses.field(default_factory=list)


class Model(pydantic.BaseModel):
    count: int = pydantic.Field(ge=0, description="How many.")
    place: Optional[ModelPlace] = None  # noqa: UP045 - as many write it


class ModelPlace(pydantic.BaseModel):
    city: str


class ModelNode(pydantic.BaseModel):
    name: str
    children: list[ModelNode] = []


Model.model_rebuild()


# --- schemas ----------------------------------------------------------------------------------------


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


# --- what is made a tool ----------------------------------------------------------------------------


class Counter:
    """Counts."""

    def __init__(self) -> None:
        self.count = 0

    def add(self, number: int) -> int:
        """Adds to it."""
        self.count += number
        return self.count

    async def __call__(self, number: int) -> int:
        """Adds, too."""
        return self.add(number)

    @classmethod
    def name(cls, prefix: str) -> str:
        return prefix + cls.__name__

    @staticmethod
    def twice(number: int) -> int:
        return number * 2


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


async def test_a_function_in_a_thread_can_be_told_to_stop_and_let_go() -> None:
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


# --- arguments --------------------------------------------------------------------------------------


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
def test_what_does_not_fit_is_told_with_its_place_and_the_function_is_not_called(
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


# --- what is refused --------------------------------------------------------------------------------


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
    ("given", "message"),
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
def test_what_cannot_be_a_tool_is_refused_and_told_why(given: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        tool(given)


def test_a_function_that_tells_nothing_of_itself_is_refused() -> None:
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


# --- definitions ------------------------------------------------------------------------------------

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
FUNCTION = {"name": "weather", "description": "The weather.", "parameters": SCHEMA}


@pytest.mark.parametrize(
    "definition",
    [
        ToolSpec("weather", "The weather.", SCHEMA),
        {"type": "function", "function": FUNCTION},
        {"function": FUNCTION},
        {"type": "function", **FUNCTION},
        FUNCTION,
        {"name": "weather", "description": "The weather.", "input_schema": SCHEMA},
        {"type": "custom", "name": "weather", "description": "The weather.", "input_schema": SCHEMA},
        {"functionDeclarations": [FUNCTION]},
        {"function_declarations": [FUNCTION]},
        {"name": "weather", "description": "The weather.", "parametersJsonSchema": SCHEMA},
        {"toolSpec": {"name": "weather", "description": "The weather.", "inputSchema": {"json": SCHEMA}}},
        {"name": "weather", "description": "The weather.", "inputSchema": SCHEMA, "annotations": {}},
    ],
)
def test_a_definition_of_any_protocol_is_the_same_tool(definition: Any) -> None:
    made = define(definition)
    assert (made.spec.name, made.spec.description, made.spec.parameters) == ("weather", "The weather.", SCHEMA)
    assert made.run is None
    assert made.spec.issuer is None
    assert ToolBox([definition]).find("weather") == made


def test_geminis_own_types_and_tools_that_a_provider_types_are_read() -> None:
    shouted = {"name": "weather", "parameters": {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}}
    assert define(shouted).name == "weather"
    bash = define({"type": "bash_20250124", "name": "bash"}, lambda arguments: arguments["command"])
    assert bash.name == "bash"
    assert run(bash, command="ls") == "ls"
    assert define({"type": "custom", "name": "patch"}).spec.type == "custom"


@pytest.mark.parametrize(
    ("definition", "message"),
    [
        ("weather", "expected a tool definition, got 'weather'"),
        ({}, "expected"),
        ({"type": "function", "function": {}}, "name"),
        ({"toolSpec": {"name": 1}}, "name"),
        ({"inputSchema": {}}, r"\$\.name: expected a string"),
        ({"name": "x", "inputSchema": 1}, r"\$\.inputSchema: expected a JSON schema"),
        ({"name": "x", "inputSchema": {}, "description": 1}, r"\$\.description: expected a string"),
        ({"functionDeclarations": []}, "expected a tool with a name"),
        ({"functionDeclarations": [{"name": "a"}, {"name": "b"}]}, "expected one tool, got 2"),
        ({"type": "web_search"}, "expected a tool with a name"),
    ],
)
def test_a_definition_that_is_none_is_refused(definition: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        define(definition)


def test_a_handler_gets_the_arguments_and_the_context_if_it_takes_it() -> None:
    async def asynchronous(arguments: dict[str, Any], context: ToolContext) -> Any:
        return [arguments, context.call_id]

    def plain(arguments: dict[str, Any]) -> Any:
        return [arguments, threading.current_thread() is threading.main_thread()]

    context = ToolContext(call_id="id")
    assert run(define(FUNCTION, asynchronous), context, city="Oslo") == [{"city": "Oslo"}, "id"]
    assert run(define(FUNCTION, plain), context, city="Oslo") == [{"city": "Oslo"}, False]
    assert run(define(FUNCTION, dict), city="Oslo") == {"city": "Oslo"}
    with pytest.raises(InputError, match="expected a function"):
        define(FUNCTION, "run")  # type: ignore[arg-type]


def test_marks_of_a_definition_are_kept() -> None:
    made = define(FUNCTION, dict, side_effects=False, idempotent=True, timeout=1, on_timeout="error", approval=True)
    assert (made.side_effects, made.idempotent, made.timeout) == (False, True, 1)
    assert (made.on_timeout, made.approval, made.resources) == ("error", True, None)


# --- the box ----------------------------------------------------------------------------------------


def test_a_box_keeps_its_order_and_its_names() -> None:
    def first() -> None: ...

    box = ToolBox([first, FUNCTION, {"functionDeclarations": [{"name": "a"}, {"name": "b"}]}])
    assert [spec.name for spec in box.specs] == ["first", "weather", "a", "b"]
    (added,) = box.add(tool(first, name="last"))
    assert box.find("last") is added
    new = tool(first, name="weather")
    box.replace(new)
    assert [held.name for held in box] == ["first", "weather", "a", "b", "last"]
    assert box.find("weather") is new
    assert box.remove("a").name == "a"
    assert box.find("a") is None
    assert "a" not in box
    assert len(box) == 4
    assert repr(box) == "ToolBox(['first', 'weather', 'b', 'last'])"


def test_a_name_is_one_tool_and_a_refused_batch_changes_nothing() -> None:
    box = ToolBox([FUNCTION])
    with pytest.raises(InputError, match="there is a tool named 'weather' already"):
        box.add(ToolSpec("new"), FUNCTION)
    with pytest.raises(InputError, match="there is a tool named 'new' already"):
        box.add(ToolSpec("new"), ToolSpec("new"))
    assert [held.name for held in box] == ["weather"]
    for change in (lambda: box.remove("none"), lambda: box.replace(define(ToolSpec("none")))):
        with pytest.raises(InputError, match="there is no tool named 'none'"):
            change()


@pytest.mark.parametrize("given", ["weather", FUNCTION, ToolSpec("x"), 3, [3], [["x"]]])
def test_what_is_no_list_of_tools_is_refused(given: Any) -> None:
    with pytest.raises(InputError, match="expected"):
        ToolBox(given)


def test_no_package_is_loaded_before_it_is_needed() -> None:
    code = (
        "import sys, toolglot; assert not {'anyio', 'mcp', 'docstring_parser'} & {*sys.modules}\n"
        "import toolglot.runtime.mcp.config; assert not {'mcp', 'pydantic', 'httpx2'} & {*sys.modules}"
    )
    answered = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert answered.returncode == 0, answered.stderr


def test_an_output_and_an_error_are_what_they_say() -> None:
    assert Output("text") == Output("text", is_error=False, result=None)
    context = ToolContext()
    context.progress("nobody listens")
    assert not context.cancelled.is_set()


@pytest.mark.parametrize(
    ("target", "model"),
    [
        ("anthropic", "claude-sonnet-4-5"),
        ("openai", "gpt-4.1"),
        ("openai_responses", "gpt-5.5"),
        ("gemini", "gemini-3-pro"),
        ("mistral", "mistral-large-latest"),
    ],
)
def test_every_provider_accepts_the_tools(target: str, model: str) -> None:
    @tool(strict=True)
    def take(
        place: Place,
        window: Window,
        extra: Extra,
        point: Point,
        mixed: Mixed,
        when: datetime.datetime,
        tree: Node,
        model: ModelNode,
        either: list[int] | list[str] | Place,
        level: Level = Level.LOW,
        any_thing: Any = None,
        **rest: int,
    ) -> None:
        """Takes all there is."""

    box = ToolBox([take, Counter().add, FUNCTION])
    asked = Conversation((Turn("user", (Text("?"),)),), box.specs)
    assert lint(request_for(asked, target=target, model=model).body, target=target) == ()
