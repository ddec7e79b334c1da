"""The counts of rows as a drawing: how long they are, how many turns they have, and what was called (SVG).

Law: pure; names from rows are escaped, and nothing is loaded from anywhere.
"""

from __future__ import annotations

from typing import Any, Final
from xml.sax.saxutils import escape

WIDTH: Final = 720
_LINE: Final = 22
_LABEL: Final = 210
_BAR: Final = WIDTH - _LABEL - 110
_MAX_TOOLS: Final = 20
_BLUE, _RED, _GREY = "#3b6ea8", "#c0504d", "#555"

Bar = tuple[str, int, int, str]
"""A label, a number, the part of it that is drawn in red, and a note."""


def draw(stats: dict[str, Any], title: str) -> str:
    """The drawing of `RowStats.as_json()`."""
    calls = [
        (each["tool"], each["calls"], each["failures"], f"{100 * each['failures'] / each['calls']:.1f} % failed")
        for each in stats["calls"][:_MAX_TOOLS]
    ]
    charts: list[tuple[str, list[Bar]]] = [
        ("Rows by length, in characters", _groups(stats["lengths"])),
        ("Rows by number of turns", _groups(stats["turns_of_rows"])),
        ("Calls by tool, failed ones in red", calls),
        ("Faults by class", [(name, count, 0, "") for name, count in stats["fault_classes"].items()]),
    ]
    pieces: list[str] = [_text(12, 26, title, size=16)]
    y = 56
    for heading, bars in charts:
        if not bars:
            continue
        pieces.append(_text(12, y, heading, size=13))
        y += 10
        most = max(bar[1] for bar in bars) or 1
        for bar in bars:
            pieces += _bar(bar, most, y)
            y += _LINE
        y += 34
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{y}" viewBox="0 0 {WIDTH} {y}" '
    style = 'font-family="sans-serif" role="img">'
    return "\n".join([f"{head}{style}", f'<rect width="{WIDTH}" height="{y}" fill="#fff"/>', *pieces, "</svg>", ""])


def _groups(groups: list[dict[str, Any]]) -> list[Bar]:
    return [(f"up to {each['up_to']:,}" if each["up_to"] else "more", each["rows"], 0, "") for each in groups]


def _bar(bar: Bar, most: int, y: int) -> list[str]:
    label, count, failed, note = bar
    width = round(_BAR * count / most)
    pieces = [_text(_LABEL - 8, y + 15, label[:32], anchor="end")]
    pieces.append(f'<rect x="{_LABEL}" y="{y + 3}" width="{width}" height="{_LINE - 6}" fill="{_BLUE}"/>')
    if failed:
        red = round(width * failed / count)
        pieces.append(f'<rect x="{_LABEL}" y="{y + 3}" width="{red}" height="{_LINE - 6}" fill="{_RED}"/>')
    pieces.append(_text(_LABEL + width + 6, y + 15, f"{count:,}{'  ' if note else ''}{note}", color=_GREY))
    return pieces


def _text(x: int, y: int, text: str, *, size: int = 12, anchor: str = "start", color: str = "#111") -> str:
    shown = escape("".join(mark if mark.isprintable() else "\ufffd" for mark in text))
    return f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" fill="{color}">{shown}</text>'
