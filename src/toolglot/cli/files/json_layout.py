"""Writes a changed JSON value in the layout of the text that it was parsed from.

`rewrite(text, before, after)` encodes `after` and copies from `text` everything that is equal in `before`. Unchanged
parts keep their indentation, spacing, number formats, escapes and key order, so that a diff shows the change alone.

Laws: the result parses as `after`. Time is linear, except for the bounded alignment of changed lists. The result is
None for text that is not plain JSON.
"""

from __future__ import annotations

import difflib
import itertools
import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from toolglot.cli.files.locations import TOKEN

MAX_ALIGNED: Final = 100
"""Changed items of a list that are aligned by content. More than that are paired by position."""

_WORDS: Final = {"true": True, "false": False, "null": None}


class _Node:
    """A value in the text: its position, its identity, and its items in order."""

    __slots__ = ("end", "identity", "items", "start", "value")

    def __init__(self, start: int, value: Any) -> None:
        self.start = start
        self.end = start
        self.value = value
        self.items: list[_Item] = []
        self.identity = -1


class _Item:
    """A member of an object or of a list; `start` is where its key begins, if it has one."""

    __slots__ = ("key", "node", "start")

    def __init__(self, start: int, key: str | None, node: _Node) -> None:
        self.start = start
        self.key = key
        self.node = node


class _Identities:
    """Equal values get the same number, and different ones different numbers: `1`, `1.0` and `true` differ."""

    def __init__(self) -> None:
        self._known: dict[object, int] = {}
        self._containers: dict[int, int] = {}

    def of(self, value: Any) -> int:
        """The number of a value. Containers are cached by `id()`, so they must stay alive."""
        if isinstance(value, dict):
            found = self._containers.get(id(value))
            if found is None:
                found = self.of_object((key, self.of(each)) for key, each in value.items())
                self._containers[id(value)] = found
            return found
        if isinstance(value, list):
            found = self._containers.get(id(value))
            if found is None:
                found = self._number(("list", *map(self.of, value)))
                self._containers[id(value)] = found
            return found
        return self._number((type(value), repr(value) if isinstance(value, float) else value))

    def of_object(self, items: Iterator[tuple[str, int]]) -> int:
        return self._number(("object", *sorted(dict(items).items())))

    def of_list(self, items: Iterator[int]) -> int:
        return self._number(("list", *items))

    def _number(self, key: object) -> int:
        return self._known.setdefault(key, len(self._known))


def rewrite(text: str, before: Any, after: Any) -> str | None:
    """Encode `after` in the layout of `text`, from which `before` was parsed; None if that is not possible."""
    identities = _Identities()
    try:
        json.loads(text)  # raises for text that is not JSON, which the code below would not notice
        root = _parse(text, identities)
        if root is None or root.identity != identities.of(before):
            return None
        written = _Writer(text, root, identities).write(root, after)
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return text[: root.start] + written + text[root.end :]


def _parse(text: str, identities: _Identities) -> _Node | None:
    """The value in the text, with the positions of all its parts; None if it is not one JSON value."""
    root: _Node | None = None
    open_nodes: list[_Node] = []
    key: tuple[int, str] | None = None
    for token in TOKEN.finditer(text):
        mark, start = token[0][0], token.start()
        if mark in ",:":
            continue
        if mark in "]}":
            node = open_nodes.pop()
            _close(node, token.end(), identities)
            continue
        parent = open_nodes[-1] if open_nodes else None
        if parent is not None and isinstance(parent.value, dict) and key is None:
            key = start, json.loads(token[0])
            continue
        if parent is None and root is not None:
            return None
        node = _Node(start, {} if mark == "{" else [] if mark == "[" else _scalar(token[0]))
        if parent is None:
            root = node
        else:
            parent.items.append(_Item(key[0] if key else start, key[1] if key else None, node))
        key = None
        if mark in "{[":
            open_nodes.append(node)
        else:
            node.end = token.end()
            node.identity = identities.of(node.value)
    return root if not open_nodes else None


def _scalar(token: str) -> Any:
    return _WORDS[token] if token in _WORDS else json.loads(token)


def _close(node: _Node, end: int, identities: _Identities) -> None:
    node.end = end
    if isinstance(node.value, dict):
        node.identity = identities.of_object((item.key or "", item.node.identity) for item in node.items)
    else:
        node.identity = identities.of_list(item.node.identity for item in node.items)


class _Writer:
    """Encodes values. New ones get the style of the rest of the text."""

    def __init__(self, text: str, root: _Node, identities: _Identities) -> None:
        self.text = text
        self.identities = identities
        self.is_ascii = text.isascii() and "\\u" in text
        self.colon = ":" if re.search(r'":[^\s]', text) and not re.search(r'":\s', text) else ": "
        self.comma = "," if self.colon == ":" else ", "
        self.indent = self._indent(root)

    def _indent(self, root: _Node) -> str:
        """The indentation of one level; empty if everything is on one line."""
        if not root.items:
            return ""
        first = self.text[root.start + 1 : root.items[0].start]
        return first.rpartition("\n")[2] if "\n" in first else ""

    def write(self, node: _Node, after: Any) -> str:
        if node.identity == self.identities.of(after):
            return self.text[node.start : node.end]
        if node.items and after:
            if isinstance(after, dict) and isinstance(node.value, dict):
                return self._object(node, after)
            if isinstance(after, list) and isinstance(node.value, list):
                return self._list(node, after)
        return self._new_value(after, self._margin(node.start))

    def _object(self, node: _Node, after: dict[str, Any]) -> str:
        """Existing members keep their order. New ones come after the member that they follow in `after`."""
        names = [item.key or "" for item in node.items]
        old = {key: index for index, key in enumerate(names)}
        kept = [key for index, key in enumerate(names) if key in after and old[key] == index]
        is_in_order = kept == [key for key in after if key in old]
        keys = list(after) if is_in_order else [*kept, *(key for key in after if key not in old)]
        parts: list[tuple[int | None, str]] = []
        for key in keys:
            index = old.get(key)
            if index is None:
                parts.append(
                    (None, self._dump(key) + self.colon + self._new_value(after[key], self._item_margin(node)))
                )
            else:
                item = node.items[index]
                parts.append((index, self.text[item.start : item.node.start] + self.write(item.node, after[key])))
        return self._join(node, parts, "{}")

    def _list(self, node: _Node, after: list[Any]) -> str:
        parts: list[tuple[int | None, str]] = []
        for index, position in self._pair_items(node, after):
            if position is None:
                continue
            if index is None:
                parts.append((None, self._new_value(after[position], self._item_margin(node))))
            else:
                parts.append((index, self.write(node.items[index].node, after[position])))
        return self._join(node, parts, "[]")

    def _pair_items(self, node: _Node, after: list[Any]) -> Iterator[tuple[int | None, int | None]]:
        """Pairs of old and new items, by index."""
        old = [item.node.identity for item in node.items]
        new = [self.identities.of(value) for value in after]
        head = equal_prefix(old, new)
        tail = equal_prefix(old[head:][::-1], new[head:][::-1])
        yield from ((index, index) for index in range(head))
        middle_old, middle_new = old[head : len(old) - tail], new[head : len(new) - tail]
        for first, last, start, stop in _matching_ranges(middle_old, middle_new):
            for offset in range(max(last - first, stop - start)):
                index = head + first + offset if first + offset < last else None
                yield index, head + start + offset if start + offset < stop else None
        yield from ((len(old) - tail + offset, len(new) - tail + offset) for offset in range(tail))

    def _join(self, node: _Node, parts: list[tuple[int | None, str]], empty: str) -> str:
        """The container with its new parts, and the white space between the old ones."""
        if not parts:
            return empty
        text, items = self.text, node.items
        opening = text[node.start + 1 : items[0].start]
        gaps = [text[before.node.end : item.start] for before, item in itertools.pairwise(items)]
        usual = gaps[0] if gaps else "," + opening if "\n" in opening else self.comma
        written = [empty[0], opening, parts[0][1]]
        for (previous, _), (index, part) in itertools.pairwise(parts):
            follows = index is not None and previous is not None and index == previous + 1
            written += (gaps[index - 1] if follows and index is not None else usual, part)
        return "".join((*written, text[items[-1].node.end : node.end]))

    def _margin(self, position: int) -> str:
        """The indentation of the line at a position; empty if the text is on one line."""
        line = self.text[self.text.rfind("\n", 0, position) + 1 : position]
        return line[: len(line) - len(line.lstrip())] if self.indent else ""

    def _item_margin(self, node: _Node) -> str | None:
        """The indentation of new items of a container; None if it is on one line."""
        opening = self.text[node.start + 1 : node.items[0].start]
        return opening.rpartition("\n")[2] if "\n" in opening else None

    def _new_value(self, value: Any, margin: str | None) -> str:
        """Encode a new value."""
        if not self.indent or margin is None:
            return self._dump(value)
        return self._dump(value, self.indent).replace("\n", "\n" + margin)

    def _dump(self, value: Any, indent: str | None = None) -> str:
        separators = (self.comma if indent is None else ",", self.colon)
        return json.dumps(value, ensure_ascii=self.is_ascii, indent=indent, separators=separators, allow_nan=False)


def equal_prefix(old: Sequence[object], new: Sequence[object]) -> int:
    """The number of equal items at the start."""
    for count, (one, other) in enumerate(zip(old, new, strict=False)):
        if one != other:
            return count
    return min(len(old), len(new))


def _matching_ranges(old: list[int], new: list[int]) -> Iterator[tuple[int, int, int, int]]:
    """Ranges of both lists that correspond."""
    if max(len(old), len(new)) > MAX_ALIGNED:
        yield 0, len(old), 0, len(new)
        return
    for _, first, last, start, stop in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield first, last, start, stop
