"""Texts that are made to take long: of each dialect its marks, halves of them, and what calls are written with, over
and over, alone and behind the beginning of a call.

The bench of the dialects (`bench/dialects.py`) measures them, and tests count their work. Only the standard library and
toolglot: the bench imports this file.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from toolglot.dialects import registry
from toolglot.dialects.dialect import Dialect

VECTORS: Final = Path(__file__).parents[2] / "dialect_vectors"

_BITS: Final = (
    *(
        "{",
        "}",
        "[",
        "]",
        '"',
        "'",
        "\\",
        "\\\\",
        '\\"',
        " ",
        "\n",
        "\t",
        ":",
        ",",
        "(",
        "=",
        "`",
        "~~~",
        "<",
        "</",
        "<|",
    ),
    *(
        '{"',
        '{"name":',
        '{"id":',
        '{"name": "ls", "arguments": {',
        '{"a":1',
        '{"a":1}',
        '"a":[',
        '"f":\'',
        "'\"",
        "{[(",
    ),
    *(
        "```",
        "```{",
        '~~~{"',
        "\n[",
        "\n[ls",
        "\n[ls(",
        "\n[ls()]",
        "[ls()]",
        "ls(p=",
        "ls(p='",
        "\nAction:",
        "<think>",
    ),
    *("</think>", "<think></think>", "<a ", '<a b="', "<a>", "</a>"),
)
"""What calls of many dialects are written with."""


def _dialects(name: str) -> list[Dialect]:
    names = registry.names() if name == "auto" else (name,)
    found = [registry.get(each) for each in names]
    return [*found, *(each.named for each in found if each.named is not None and name != "auto")]


@cache
def hostile_units(dialect: str) -> tuple[str, ...]:
    """What a hostile text repeats."""
    units = dict.fromkeys(_BITS)
    for each in _dialects(dialect):
        marks = (*each.openers, *each.closers, *(mark for pair in each.thinking for mark in pair))
        for mark in marks:
            units |= dict.fromkeys(
                (mark, mark[: len(mark) // 2 + 1], mark[:-1] or mark, f"{mark}{{", f"{mark}[", f"{mark} ")
            )
        units |= dict.fromkeys(f"{one}{other}" for one in each.openers[:3] for other in each.openers[:3])
    return tuple(units)


@cache
def _beginnings(dialect: str) -> tuple[str, ...]:
    """Calls that are cut in the middle; none for `auto`, since each dialect has its own."""
    if dialect == "auto":
        return ("",)
    body = json.loads((VECTORS / f"{dialect}.json").read_text(encoding="utf-8"))
    calls = [vector["text"] for vector in body["vectors"] if vector["expected"].get("calls")][:2]
    return ("", *(text[: len(text) * part // 4] for text in calls for part in (2, 3)))


def hostile_texts(dialect: str, size: int) -> Iterator[tuple[str, str]]:
    """Each with what it repeats."""
    for beginning in _beginnings(dialect):
        for unit in hostile_units(dialect):
            yield f"{beginning}{unit}", beginning + unit * (size // len(unit))
