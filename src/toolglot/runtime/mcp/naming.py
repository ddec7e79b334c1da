"""The names that tools of MCP servers have in a box.

A server names its tools as it likes, and two servers may use one name. A tool keeps its name where that is legal
everywhere and free; otherwise it is `server__tool`, made legal, with a mark where that changed it.

Law: names are legal for the strictest targets (letters, digits, `_` and `-`, at most 64), each is one tool's, the way
back is kept, and a name once given stays that tool's as long as the box has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Final, Literal

from msgspec import structs

from toolglot import profiles
from toolglot.runtime.tools.toolbox import ToolBox
from toolglot.runtime.tools.values import Tool
from toolglot.schema import NameMap

Names = Literal["auto", "always", "never"]
"""When a tool's name begins with its server's: where it would meet another, always, or never."""

STRICTEST: Final = "openai"


def legal(name: str) -> str:
    """The name itself, or a legal one that stands for it alone."""
    return NameMap(profiles.get(STRICTEST), [name])[name]


class Joined:
    """The tools of one server in one box, kept in step with what the server has."""

    def __init__(self, box: ToolBox, server: str, names: Names, clashing: Collection[str] = ()) -> None:
        self.box = box
        self._server = server
        self._names = names
        self._clashing = frozenset(clashing)
        self._given: dict[str, str] = {}

    def sync(self, tools: Iterable[Tool]) -> list[str]:
        """Put in what is new, replace what is there, take out what is gone; the names that could not be given."""
        there = {tool.name: tool for tool in tools}
        for original in [known for known in self._given if known not in there]:
            self.box.remove(self._given.pop(original))
        refused: list[str] = []
        for original, tool in there.items():
            if original in self._given:
                self.box.replace(_renamed(tool, self._given[original]))
            elif (name := self._free_name(original)) is not None:
                self.box.add(_renamed(tool, name))
                self._given[original] = name
            else:
                refused.append(original)
        return refused

    def original(self, name: str) -> str | None:
        """The name that a tool of the box has at its server."""
        return next((original for original, given in self._given.items() if given == name), None)

    def _free_name(self, original: str) -> str | None:
        prefixed = legal(f"{self._server}__{original}")
        plain = legal(original)
        wanted = {"always": [prefixed], "never": [plain], "auto": [plain, prefixed]}[self._names]
        if self._names == "auto" and plain in self._clashing:
            wanted = [prefixed]
        return next((name for name in wanted if name not in self.box), None)


def clashing(listed: Iterable[Iterable[str]]) -> frozenset[str]:
    """The legal names that more than one server uses."""
    seen: set[str] = set()
    twice: set[str] = set()
    for names in listed:
        own = {legal(name) for name in names}
        twice |= seen & own
        seen |= own
    return frozenset(twice)


def _renamed(tool: Tool, name: str) -> Tool:
    return tool if tool.name == name else replace(tool, spec=structs.replace(tool.spec, name=name))
