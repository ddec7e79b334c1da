"""Draws a plot and writes tables of what `bench/gateway.py --json FILE` measured, for docs/performance.md.

    python bench/gateway.py --json build/gateway.json
    python scripts/plot_performance.py build/gateway.json      # docs/performance.json, .svg and the tables of the page

Both come from docs/performance.json alone, so that `make docs` and its check repeat them.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, Final

DOCS: Final = Path(__file__).parents[1] / "docs"
MEASURES: Final = DOCS / "performance.json"
OURS: Final = "toolglot"
NAMES: Final = {
    "nginx": "nginx (translates nothing)",
    OURS: "toolglot",
    "llm-rosetta": "llm-rosetta",
    "litellm": "LiteLLM",
}
"""By name in the bench: the name that is shown, in this order."""

TIMES: Final = "\N{MULTIPLICATION SIGN}"

Measures = dict[str, Any]

# --- the plot ---------------------------------------------------------------------------------------

WIDTH: Final = 760
LEFT: Final = 204
RIGHT: Final = 110
TOP: Final = 64
ROW: Final = 30
GAP: Final = 46
FOOT: Final = 56
_PLOT: Final = WIDTH - LEFT - RIGHT

STYLE: Final = """
  text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; fill: #1f2328 }
  .title { font-size: 15px; font-weight: 600 }
  .quiet { fill: #59636e; font-size: 12px }
  .ours { font-weight: 600 }
  .label { paint-order: stroke; stroke: #ffffff; stroke-width: 5px; stroke-linejoin: round }
  .surface { fill: #ffffff }
  .grid { stroke: #d9dee3; stroke-width: 1 }
  .stem { stroke: #8c959f; stroke-width: 2 }
  .noise { stroke: #8c959f; stroke-width: 10; stroke-opacity: 0.35 }
  .dot { fill: #6e7781 }
  .noise.own { stroke: #0969da }
  .stem.own { stroke: #0969da; stroke-width: 3 }
  .dot.own { fill: #0969da }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .quiet { fill: #9198a1 }
    .label { stroke: #0d1117 }
    .surface { fill: #0d1117 }
    .grid { stroke: #2a313c }
    .stem { stroke: #6e7681 }
    .dot { fill: #9198a1 }
    .stem.own { stroke: #4493f8 }
    .dot.own { fill: #4493f8 }
  }
"""


def plot(measures: Measures) -> str:
    """The CPU time of each server, on a scale of powers of ten; what is shorter is better."""
    parts = measures["compared"]
    heights = [len(_ordered(part)) * ROW + GAP for part in parts]
    height = TOP + sum(heights) + FOOT
    low, high = _decades(parts)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" role="img">',
        "<title>CPU time of a gateway for a request, and for a stream</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="surface" width="{WIDTH}" height="{height}" rx="6"/>',
        _text(20, 28, "CPU time of the gateway, less is better", "title"),
        _text(
            20,
            48,
            "Messages client, Chat provider. In brackets: times toolglot's. Each step is ten times the one before.",
            "quiet",
        ),
    ]
    at = TOP
    for part, tall in zip(parts, heights, strict=True):
        lines += _panel(part, at, low, high)
        at += tall
    lines += _scale(low, high, at)
    lines.append(_text(20, height - 14, measures["machine"], "quiet"))
    return "\n".join([*lines, "</svg>", ""])


def _panel(part: Measures, top: int, low: int, high: int) -> Iterator[str]:
    rows = _ordered(part)
    yield _text(20, top + 22, part["title"].partition(",")[0], "title")
    yield from (
        f'<line class="grid" x1="{_x(10.0**power, low, high):.1f}" x2="{_x(10.0**power, low, high):.1f}" '
        f'y1="{top + 32}" y2="{top + 34 + ROW * len(rows)}"/>'
        for power in range(low, high + 1)
    )
    for number, name in enumerate(rows):
        y = top + 34 + ROW * number + ROW // 2
        found = part["servers"][name]
        x, own = _x(found["us"], low, high), " own" if name == OURS else ""
        yield _text(LEFT - 12, y + 4, NAMES.get(name, name), "ours" if own else "", anchor="end")
        yield f'<line class="stem{own}" x1="{LEFT}" x2="{x:.1f}" y1="{y}" y2="{y}"/>'
        if rounds := found.get("us_of_rounds"):
            first, last = (_x(us, low, high) for us in rounds)
            yield f'<line class="noise{own}" x1="{first:.1f}" x2="{last:.1f}" y1="{y}" y2="{y}"/>'
        yield f'<circle class="dot{own}" cx="{x:.1f}" cy="{y}" r="{6 if own else 5}"/>'
        yield _text(x + 12, y + 4, _label(name, found), "label ours" if own else "label")


def _label(name: str, found: Measures) -> str:
    shown = _time(found["us"])
    if name == OURS:
        return shown
    return f"{shown}  ({_ratio(found['ratio'])})"


def _ratio(ratio: float) -> str:
    return f"{ratio:,.0f} {TIMES}" if ratio >= 10 else f"{ratio:.2g} {TIMES}"


def _scale(low: int, high: int, top: int) -> Iterator[str]:
    for power in range(low, high + 1):
        yield _text(_x(10.0**power, low, high), top + 2, _time(10.0**power), "quiet", anchor="middle")


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    shown = f' class="{kind}"' if kind else ""
    anchored = f' text-anchor="{anchor}"' if anchor != "start" else ""
    return f'<text x="{x:.1f}" y="{y:.1f}"{shown}{anchored}>{escape(text)}</text>'


def _x(us: float, low: int, high: int) -> float:
    return LEFT + _PLOT * (math.log10(us) - low) / (high - low)


def _decades(parts: Sequence[Measures]) -> tuple[int, int]:
    """The powers of ten, in µs, below and above all figures."""
    found = [server["us"] for part in parts for server in part["servers"].values()]
    low = math.floor(math.log10(min(found)))
    return low, max(low + 1, math.ceil(math.log10(max(found))))


def _ordered(part: Measures) -> list[str]:
    known = [name for name in NAMES if name in part["servers"]]
    return known + sorted(set(part["servers"]) - set(known))


def _time(us: float) -> str:
    if us < 1_000:
        return f"{us:,.0f} µs"
    return f"{us / 1e3:,.3g} ms" if us < 1e6 else f"{us / 1e6:,.3g} s"


# --- the tables -------------------------------------------------------------------------------------


def tables(measures: Measures) -> str:
    """The same in figures, with the limits."""
    titles = {name: server["title"] for part in measures["compared"] for name, server in part["servers"].items()}
    others = ", ".join(title for name, title in titles.items() if name != OURS)
    lines = [f"{measures['machine']}{'; ' if others else ''}{others}.{_load(measures)}", ""]
    for part in measures["compared"]:
        lines += [*_comparison(part), ""]
    lines += ["| one process | measured | limit | kept |", "|---|---|---|---|"]
    for figure in measures["figures"]:
        limit = figure["limit"]
        kept = "" if limit is None else "yes" if figure["value"] <= limit else "no"
        shown = "" if limit is None else f"≤ {limit:,g} {figure['unit']}"
        lines.append(f"| {figure['name']} | {_figure(figure)} | {shown} | {kept} |")
    return "\n".join(lines)


def _load(measures: Measures) -> str:
    """What else the machine did."""
    load = measures.get("load")
    return f" Load of the machine: {load[0]:.1f} before the run, {load[1]:.1f} at its end." if load else ""


def _comparison(part: Measures) -> Iterator[str]:
    yield f"| {part['title']} | measured | times ours | in the rounds | limit | kept |"
    yield "|---|---|---|---|---|---|"
    for name in _ordered(part):
        found = part["servers"][name]
        ratio = found["ratio"]
        lower, upper = part["min_ratio"].get(name), part["max_ratio"].get(name)
        limit = kept = ""
        if lower is not None:
            limit, kept = f"≥ {lower:g} {TIMES}", "yes" if ratio >= lower else "no"
        elif upper is not None:
            limit = f"ours ≤ {upper:g} {TIMES} it"
            kept = f"{'yes' if 1 / ratio <= upper else 'no'}: {_ratio(1 / ratio)}"
        times = "" if name == OURS else _ratio(ratio)
        yield f"| {found['title']} | {found['us']:,.0f} µs | {times} | {_rounds(name, found)} | {limit} | {kept} |"
    for name in sorted(set(part["min_ratio"]) - set(part["servers"])):
        yield f"| {name} | not measured | | | ≥ {part['min_ratio'][name]:g} {TIMES} | no |"


def _rounds(name: str, found: Measures) -> str:
    """How much the machine's noise moves it: the lowest and the highest of the rounds."""
    if name == OURS:
        rounds = found.get("us_of_rounds")
        return f"{rounds[0]:,.0f} to {rounds[1]:,.0f} µs" if rounds else ""
    rounds = found.get("ratio_of_rounds")
    return f"{_ratio(rounds[0])} to {_ratio(rounds[1])}" if rounds else ""


def _figure(figure: Measures) -> str:
    value, unit = figure["value"], figure["unit"]
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:,.3g} {unit}"


# --- the page ---------------------------------------------------------------------------------------

BEGIN, END = "<!-- The last run: generated by `make docs`. -->\n", "<!-- End of the last run. -->\n"


def read_measures(file: Path = MEASURES) -> Measures:
    found: Measures = json.loads(file.read_text(encoding="utf-8"))
    return found


def performance_svg() -> str:
    return plot(read_measures())


def performance_page() -> str:
    """The page as it is, with the tables of the last run."""
    page = DOCS / "performance.md"
    text = page.read_text(encoding="utf-8") if page.exists() else BEGIN + END
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{tables(read_measures())}\n\n{END}{after}"


def main(arguments: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("measures", type=Path, help="the file that the bench wrote")
    found = read_measures(options.parse_args(arguments).measures)
    MEASURES.write_text(json.dumps(found, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
    for name, text in (("performance.svg", performance_svg()), ("performance.md", performance_page())):
        (DOCS / name).write_text(text, encoding="utf-8")
        print(f"wrote docs/{name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
