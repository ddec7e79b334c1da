"""The names that tools of MCP servers have in a box.

Servers choose the names of their tools, and two servers may use the same one. A tool keeps its name if that is legal
everywhere and not taken. Otherwise it becomes `server__tool`, made legal, with a mark if that changed it.

Law: names are legal for the strictest targets (letters, digits, `_` and `-`, at most 64) and unique, the original is
known, and a tool keeps its name as long as the box has it.
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
"""When the name of a tool begins with that of its server: to avoid a conflict, always, or never."""

STRICTEST: Final = "openai"


def legal_name(name: str) -> str:
    """The name itself, or a unique legal one instead."""
    return NameMap(profiles.get(STRICTEST), [name])[name]


class SyncedTools:
    """The tools of one server in one box, kept in sync with the server."""

    def __init__(self, box: ToolBox, server: str, names: Names, clashing: Collection[str] = ()) -> None:
        self.box = box
        self._server = server
        self._names = names
        self._clashing = frozenset(clashing)
        self._box_names: dict[str, str] = {}

    def sync(self, tools: Iterable[Tool]) -> list[str]:
        """Add new tools, replace known ones, remove the rest. Returns the tools for which no name was free."""
        listed = {tool.name: tool for tool in tools}
        for original in [known for known in self._box_names if known not in listed]:
            self.box.remove(self._box_names.pop(original))
        refused: list[str] = []
        for original, tool in listed.items():
            if original in self._box_names:
                self.box.replace(_with_name(tool, self._box_names[original]))
            elif (name := self._free_name(original)) is not None:
                self.box.add(_with_name(tool, name))
                self._box_names[original] = name
            else:
                refused.append(original)
        return refused

    def original(self, name: str) -> str | None:
        """The name that the server uses for a tool of the box."""
        return next((original for original, box_name in self._box_names.items() if box_name == name), None)

    def _free_name(self, original: str) -> str | None:
        prefixed = legal_name(f"{self._server}__{original}")
        plain = legal_name(original)
        wanted = {"always": [prefixed], "never": [plain], "auto": [plain, prefixed]}[self._names]
        if self._names == "auto" and plain in self._clashing:
            wanted = [prefixed]
        return next((name for name in wanted if name not in self.box), None)


def clashing_names(listed: Iterable[Iterable[str]]) -> frozenset[str]:
    """The legal names that more than one server uses."""
    seen: set[str] = set()
    twice: set[str] = set()
    for names in listed:
        own = {legal_name(name) for name in names}
        twice |= seen & own
        seen |= own
    return frozenset(twice)


def _with_name(tool: Tool, name: str) -> Tool:
    return tool if tool.name == name else replace(tool, spec=structs.replace(tool.spec, name=name))
