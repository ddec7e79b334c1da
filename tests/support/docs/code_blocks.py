"""The fenced code blocks of README.md and docs/, as the tests run them.

A block is run according to its language (see `test_docs.py`). Markers are HTML comments on the line above the fence:

    <!-- not run: REASON -->        the block cannot be run by a test, and why
    <!-- file: NAME -->             the block is a file: it is written before anything else on the page is run
    <!-- output -->                 the block shows what the Python block above it prints

Law: every block is run or has a reason, and `blocks_of` loses none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
CONTINUES: Final = "Run the Python blocks of this page in order: each continues the one before."
"""The sentence that tells readers, and the tests, that a page is one session."""

_FENCE: Final = re.compile(r"(?P<indent> *)(?P<ticks>`{3,})(?P<language>\S*)[^\n]*")
_MARKER: Final = re.compile(r" *<!-- (?P<kind>not run|file|output)(?:: (?P<value>.+?))? -->")


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    """Of its first line of code, from 1."""
    language: str
    code: str
    marker: str = ""
    """`not run`, `file`, `output`, or nothing."""
    value: str = ""
    """The reason, or the file name."""

    @property
    def position(self) -> str:
        return f"{self.page}:{self.line}"


def pages() -> list[str]:
    found = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [str(path.relative_to(ROOT)) for path in found]


def is_one_session(page: str) -> bool:
    text = (ROOT / page).read_text(encoding="utf-8")
    return CONTINUES in " ".join(text.split())


def blocks_of(page: str) -> list[Block]:
    return list(find_blocks(page, (ROOT / page).read_text(encoding="utf-8")))


def find_blocks(page: str, text: str) -> Iterator[Block]:
    lines = text.splitlines()
    index = 0
    while index < len(lines):
        fence = _FENCE.fullmatch(lines[index])
        if fence is None:
            index += 1
            continue
        marker = _MARKER.fullmatch(lines[index - 1]) if index else None
        start = index + 1
        end = next(
            (at for at in range(start, len(lines)) if lines[at].strip() == fence["ticks"]),
            None,
        )
        assert end is not None, f"{page}:{start}: this block is never closed"
        yield Block(
            page=page,
            line=start + 1,
            language=fence["language"],
            code="\n".join(line.removeprefix(fence["indent"]) for line in lines[start:end]) + "\n",
            marker=marker["kind"] if marker else "",
            value=(marker["value"] or "") if marker else "",
        )
        index = end + 1
