"""Finds the values at JSON paths in a JSON document.

One pass over the tokens finds all paths. Law: time is linear in the text and the paths, memory in the paths and the
depth. For text that is not JSON, positions may be wrong, but there is no error.
"""

from __future__ import annotations

import bisect
import json
import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from toolglot.errors import quote

TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[\[\]{},:]|[^\s"\[\]{},:]++', re.DOTALL)
"""The tokens of JSON, without white space."""
_STEP: Final = re.compile(r"\.[^.\[\]]+|\[\d+\]|\['(?:[^'\\]|\\.)*'\]|\[\"(?:[^\"\\]|\\.)*\"\]")


class TextSpan(Struct, frozen=True):
    """A range of text: lines and columns from 1, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class _Node:
    """A step of the wanted paths; `start` is -1 until it is found."""

    __slots__ = ("children", "end", "start")

    def __init__(self) -> None:
        self.children: dict[str, _Node] = {}
        self.start = -1
        self.end = -1


class _Frame:
    """An open container."""

    __slots__ = ("index", "is_object", "key", "node")

    def __init__(self, node: _Node | None, *, is_object: bool) -> None:
        self.node = node
        self.is_object = is_object
        self.key: str | None = None
        self.index = 0


class LineIndex:
    """Lines and columns of a text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts: list[int] = [0, *(found.end() for found in re.finditer("\n", text))]

    def span(self, start: int, end: int) -> TextSpan:
        return TextSpan(*self._position(start), *self._position(end))

    def _position(self, offset: int) -> tuple[int, int]:
        line = bisect.bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def line(self, number: int) -> str:
        """The text of a line."""
        start = self.starts[number - 1]
        end = self.starts[number] - 1 if number < len(self.starts) else len(self.text)
        return self.text[start:end].rstrip("\r")


def locate(text: str, paths: Iterable[str]) -> dict[str, tuple[int, int]]:
    """The start and end of the value at each path. For a path that does not exist: of its nearest ancestor."""
    root = _Node()
    wanted = list(dict.fromkeys(paths))
    chains = [_chain(root, path) for path in wanted]
    _walk(text, root)
    found = {}
    for path, chain in zip(wanted, chains, strict=True):
        node = next((node for node in reversed(chain) if node.start >= 0), root)
        found[path] = (max(node.start, 0), node.end if node.end >= 0 else len(text))
    return found


def _chain(root: _Node, path: str) -> list[_Node]:
    """The nodes of a path. Missing ones are created."""
    chain, position = [root], 1
    while step := _STEP.match(path, position):
        chain.append(chain[-1].children.setdefault(step[0], _Node()))
        position = step.end()
    return chain


def _walk(text: str, root: _Node) -> None:
    stack: list[_Frame] = []
    open_nodes: list[_Node | None] = []
    for token in TOKEN.finditer(text):
        start, mark = token.start(), text[token.start()]
        if mark in "]}":
            if stack:
                stack.pop()
                _close(open_nodes.pop(), token.end())
        elif mark == ",":
            _next(stack)
        elif mark != ":":
            frame = stack[-1] if stack else None
            if frame is not None and frame.is_object and frame.key is None:
                frame.key = token[0]
                continue
            node = root if frame is None else _child(frame)
            if node is not None:
                node.start, node.end = start, token.end()
            if mark in "[{":
                stack.append(_Frame(node, is_object=mark == "{"))
                open_nodes.append(node)


def _close(node: _Node | None, end: int) -> None:
    if node is not None:
        node.end = end


def _next(stack: list[_Frame]) -> None:
    if stack:
        stack[-1].index += 1
        stack[-1].key = None


def _child(frame: _Frame) -> _Node | None:
    """The wanted node for the next value of a container."""
    if frame.node is None or not frame.node.children:
        return None
    children = frame.node.children
    if not frame.is_object:
        return children.get(f"[{frame.index}]")
    try:
        key = json.loads(frame.key or "")
    except ValueError:
        return None
    return children.get(f".{key}") or children.get(f"[{quote(key)}]")
