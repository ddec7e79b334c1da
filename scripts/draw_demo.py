"""The picture of `toolglot demo`: its real output, as an SVG that reads well on light and on dark pages.

`generate_docs.py` writes it, and checks that it is what the command says.
"""

from __future__ import annotations

import io
import re
from html import escape

from toolglot.cli.commands import demo
from toolglot.cli.commands.demo import Demo
from toolglot.cli.screen.terminal import TerminalPage

COLUMNS = 100
CHARACTER = 8.4
LINE = 19
MARGIN = 22
BAR = 38
SIZE = 14
COLORS = {"31": "#ff7b72", "32": "#56d364", "36": "#79c0ff", "2": "#9aa4af"}
FONTS = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
TITLE = "toolglot demo: a conversation that five providers refuse, and that they accept through toolglot"
PAINTED = re.compile(r"\x1b\[([0-9;]*)m")


class Picture(TerminalPage):
    """A page of a fixed width, in colour."""

    def __init__(self) -> None:
        self.text = io.StringIO()
        super().__init__(self.text, "always")

    @property
    def width(self) -> int:
        return COLUMNS


def demo_svg() -> str:
    """The output of the command on a terminal of 100 columns."""
    lines = ["$ toolglot demo", *demo_text().rstrip("\n").split("\n")]
    width = round(COLUMNS * CHARACTER + 2 * MARGIN)
    height = BAR + len(lines) * LINE + MARGIN
    rows = [_row(line, BAR + SIZE + position * LINE) for position, line in enumerate(lines)]
    dots = [f'<circle cx="{22 + 20 * n}" cy="19" r="6" fill="{color}"/>' for n, color in enumerate(_DOTS)]
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-labelledby="title">'
    frame = f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="10" fill="#0d1117" stroke="#6e7681"/>'
    group = f'<g font-family="{FONTS}" font-size="{SIZE}" fill="#e6edf3" xml:space="preserve">'
    title = f'<title id="title">{TITLE}</title>'
    return "\n".join([head, title, frame, *dots, group, *filter(None, rows), "</g>", "</svg>", ""])


_DOTS = ("#ff5f57", "#febc2e", "#28c840")


def demo_text() -> str:
    """What the command writes, with its colours."""
    page = Picture()
    demo.show(Demo(), page, lambda _seconds: None)
    return page.text.getvalue()


def _row(line: str, y: int) -> str:
    """A line, each part in its colour and at its column, so that any font keeps the columns."""
    parts: list[str] = []
    column, codes = 0, ""
    for position, piece in enumerate(PAINTED.split(line)):
        if position % 2:
            codes = piece
            continue
        text = piece.strip(" ")
        if text:
            start = column + len(piece) - len(piece.lstrip(" "))
            parts.append(_part(text, start, codes.split(";")))
        column += len(piece)
    return f'<text y="{y}">{"".join(parts)}</text>' if parts else ""


def _part(text: str, column: int, codes: list[str]) -> str:
    style = ' font-weight="bold"' if "1" in codes else ""
    color = next((f' fill="{COLORS[code]}"' for code in codes if code in COLORS), "")
    x = round(MARGIN + column * CHARACTER, 1)
    length = round(len(text) * CHARACTER, 1)
    return f'<tspan x="{x}" textLength="{length}"{style}{color}>{escape(text, quote=False)}</tspan>'
