"""Types and functions that the tests make tools of."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict

import msgspec
import pydantic

from toolglot.runtime.tools.toolbox import Tool, ToolContext


def run(made: Tool, context: ToolContext | None = None, /, **arguments: Any) -> Any:
    assert made.run is not None
    return asyncio.run(_awaited(made.run(arguments, context or ToolContext())))


async def _awaited(awaitable: Any) -> Any:
    return await awaitable


def properties(made: Tool) -> dict[str, Any]:
    assert made.spec.parameters is not None
    found: dict[str, Any] = made.spec.parameters["properties"]
    return found


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


class ModelPlace(pydantic.BaseModel):
    city: str


class ModelNode(pydantic.BaseModel):
    name: str
    children: list[ModelNode] = []


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
