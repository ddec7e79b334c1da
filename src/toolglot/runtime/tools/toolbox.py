"""The tools of a session by name: functions, definitions, tools of MCP servers, all in one box.

Law: a name belongs to one tool. Tools keep the order in which they were added, even if one is replaced, because
providers cache the list of tools with the start of the conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from toolglot.conversation import ToolSpec
from toolglot.errors import InputError, quote
from toolglot.runtime.tools.definitions import define, specs_of
from toolglot.runtime.tools.functions import tool
from toolglot.runtime.tools.values import (
    Content,
    FunctionTool,
    OnTimeout,
    Output,
    Resources,
    Run,
    Tool,
    ToolContext,
    ToolError,
)

__all__ = [
    "Content",
    "FunctionTool",
    "OnTimeout",
    "Output",
    "Resources",
    "Run",
    "Tool",
    "ToolBox",
    "ToolContext",
    "ToolError",
    "ToolLike",
    "define",
    "tool",
]

ToolLike = Tool | ToolSpec | Mapping[str, Any] | Callable[..., Any]
"""What a box accepts: a tool, a definition in the format of any protocol, or a Python function."""


class ToolBox:
    """The tools that a model may call."""

    def __init__(self, tools: Iterable[ToolLike] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        if isinstance(tools, str | bytes | Mapping | ToolSpec | Tool) or not isinstance(tools, Iterable):
            raise InputError(f"expected a list of tools, got {quote(tools)}", path="tools", hint="ToolBox([tool])")
        self.add(*tools)

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The definitions that the model gets."""
        return tuple(held.spec for held in self._tools.values())

    def find(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def add(self, *tools: ToolLike) -> tuple[Tool, ...]:
        """Add tools: all of them, or none if one is refused. Returns the tools that were added."""
        made = [new for index, item in enumerate(tools) for new in _tools_of(item, f"tools[{index}]")]
        seen: dict[str, Tool] = {}
        for new in made:
            if new.name in self._tools or new.name in seen:
                hint = "rename one of them: tool(function, name=…)"
                raise InputError(f"there is a tool named {quote(new.name)} already", path="tools", hint=hint)
            seen[new.name] = new
        self._tools |= seen
        return tuple(made)

    def replace(self, new: Tool) -> None:
        """Replace the tool that has the same name."""
        if new.name not in self._tools:
            raise _missing(new.name)
        self._tools[new.name] = new

    def remove(self, name: str) -> Tool:
        if name not in self._tools:
            raise _missing(name)
        return self._tools.pop(name)

    def __iter__(self) -> Iterator[Tool]:
        return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __repr__(self) -> str:
        return f"ToolBox({[*self._tools]})"


def _tools_of(item: ToolLike, path: str) -> tuple[Tool, ...]:
    if isinstance(item, Tool):
        return (item,)
    if isinstance(item, ToolSpec | Mapping):
        return tuple(Tool(spec=spec) for spec in specs_of(item, path=path))
    if callable(item):
        return (tool(item),)
    raise InputError(f"expected a tool, got {quote(item)}", path=path, hint="a function, a definition or a Tool")


def _missing(name: str) -> InputError:
    return InputError(f"there is no tool named {quote(name)}", path="tools")
