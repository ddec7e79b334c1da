"""The plot and the tables of docs/performance.md: drawn from what the bench wrote, whatever that holds."""

from __future__ import annotations

import copy
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "scripts"))

from plot_performance import (  # noqa: E402 - scripts are no package
    NAMES,
    WIDTH,
    performance_page,
    performance_svg,
    plot,
    read_measures,
    tables,
)

SVG = "{http://www.w3.org/2000/svg}"


def measures(**changes: float) -> dict[str, Any]:
    """A run in which some servers took another time."""
    found = copy.deepcopy(read_measures())
    for name, us in changes.items():
        for part in found["compared"]:
            part["servers"][name]["us"] = us
    return found


def test_what_is_drawn_is_what_was_measured() -> None:
    found = read_measures()
    drawn = ET.fromstring(plot(found))  # noqa: S314 - our own
    words = [text.text or "" for text in drawn.iter(f"{SVG}text")]
    assert all(sum(word == shown for word in words) == len(found["compared"]) for shown in NAMES.values())
    assert found["machine"] in words
    assert "prefers-color-scheme: dark" in plot(found)


@pytest.mark.parametrize("us", [0.4, 1.0, 999.0, 1e6, 3.7e7])
def test_every_mark_lies_on_the_plot_and_what_is_more_lies_further_right(us: float) -> None:
    drawn = ET.fromstring(plot(measures(litellm=us)))  # noqa: S314 - our own
    positions = [float(dot.attrib["cx"]) for dot in drawn.iter(f"{SVG}circle")]
    assert all(0 < position < WIDTH for position in positions)
    times = [server["us"] for part in measures(litellm=us)["compared"] for server in _in_order(part)]
    assert sorted(positions) == [position for _, position in sorted(zip(times, positions, strict=True))]


def _in_order(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [part["servers"][name] for name in NAMES]


def test_a_limit_is_kept_or_not_and_who_is_missing_is_reported() -> None:
    found = read_measures()
    whole = found["compared"][0]
    for server, ratio in (("litellm", 51.0), ("llm-rosetta", 4.9), ("nginx", 1 / 14)):
        whole["servers"][server]["ratio"] = ratio
    lines = tables(found).splitlines()
    titles = {name: whole["servers"][name]["title"] for name in NAMES}
    rows = {name: next(line for line in lines if line.startswith(f"| {title}")) for name, title in titles.items()}
    assert "| yes |" in rows["litellm"]
    assert "| no |" in rows["llm-rosetta"]
    assert "| yes: 14" in rows["nginx"]
    del whole["servers"]["litellm"]
    assert any("| litellm | not measured |" in line for line in tables(found).splitlines())
    assert plot(found)


def test_a_run_without_the_others_is_drawn_too() -> None:
    found = read_measures()
    for part in found["compared"]:
        part["servers"] = {"toolglot": {"title": "toolglot", "us": 1000.0, "ratio": 1.0}}
    assert tables(found).startswith(f"{found['machine']}.")
    drawn = ET.fromstring(plot(found))  # noqa: S314 - our own
    assert len(list(drawn.iter(f"{SVG}circle"))) == len(found["compared"])


def test_the_page_has_the_plot_and_the_tables_of_the_last_run() -> None:
    page = (ROOT / "docs" / "performance.md").read_text("utf-8")
    assert page == performance_page()
    assert "(performance.svg)" in page
    assert (ROOT / "docs" / "performance.svg").read_text("utf-8") == performance_svg()


def test_the_noise_of_the_machine_is_shown() -> None:
    found = read_measures()
    found["load"] = [0.4, 2.0]
    for part in found["compared"]:
        for server in part["servers"].values():
            server["us_of_rounds"] = [server["us"] * 0.9, server["us"] * 1.2]
            server["ratio_of_rounds"] = [server["ratio"] * 0.9, server["ratio"] * 1.2]
    shown = tables(found)
    assert "Load of the machine: 0.4 before the run, 2.0 at its end." in shown
    assert all(f"{part['servers']['toolglot']['us'] * 0.9:,.0f} to" in shown for part in found["compared"])
    assert plot(found).count('class="noise') == sum(len(part["servers"]) for part in found["compared"])


def test_peers_are_linked_where_their_code_is_and_their_versions_are_pinned() -> None:
    links = re.findall(r"\]\((https?://[^)]+)\)", (ROOT / "docs" / "performance.md").read_text(encoding="utf-8"))
    assert links
    assert all(link.startswith("https://github.com/") for link in links)
    for file in ("peers.py", "gateway_servers.py"):
        code = (ROOT / "bench" / file).read_text(encoding="utf-8")
        named = re.findall(r'"((?:litellm|llm-rosetta|orjson)(?:\[\w+\])?[<>=~!][^"]*)"', code)
        assert named
        assert all(re.search(r"==[\d.]+$", each) for each in named)
