"""The progress of a discovery: a table on a terminal, a line for each probe elsewhere, nothing with `--quiet`.

Law: text from the endpoint is shown without control characters, and never as markup.
"""

from __future__ import annotations

import contextlib
import importlib
import os
from collections.abc import Iterator, Sequence
from typing import Any

from toolglot.cli.screen.terminal import TerminalPage, clean
from toolglot.discovery.findings import Finding, ProbeOutcome
from toolglot.discovery.markdown_report import finding_text
from toolglot.discovery.probe import GROUPS, Probe


class Silent:
    """Shows nothing."""

    def on_start(self, probe: Probe) -> None:
        """A probe starts."""

    def on_end(self, probed: ProbeOutcome, found: Sequence[Finding]) -> None:
        """A probe has ended."""


class ProgressLines(Silent):
    """A line for each probe that has ended."""

    def __init__(self, page: TerminalPage) -> None:
        self._page = page

    def on_end(self, probed: ProbeOutcome, found: Sequence[Finding]) -> None:
        if probed.reason.startswith("not for "):
            return
        self._page.line(f"{probed.probe:<24} {describe_outcome(probed, found)}")
        self._page.stream.flush()


def describe_outcome(probed: ProbeOutcome, found: Sequence[Finding]) -> str:
    """The outcome of a probe, in a few words."""
    if probed.outcome != "found":
        return clean(f"{probed.outcome}: {probed.reason}")[:160]
    words = [f"{one.key or one.probe} {finding_text(one)}" for one in found if one.probe != "replies.example"]
    return clean("; ".join(words))[:160]


class Table(Silent):
    """A live table with a row for each group."""

    def __init__(self, probes: Sequence[Probe], live: Any) -> None:
        self._live = live
        self._total = {group: sum(probe.group == group for probe in probes) for group in GROUPS}
        self._done = dict.fromkeys(GROUPS, 0)
        self._requests = dict.fromkeys(GROUPS, 0)
        self._last = dict.fromkeys(GROUPS, "")
        self._odd: set[str] = set()
        """Groups whose row shows a quirk, which stays."""
        self._now = "looking for the endpoint"
        self._draw()

    def on_start(self, probe: Probe) -> None:
        self._now = probe.question
        self._draw()

    def on_end(self, probed: ProbeOutcome, found: Sequence[Finding]) -> None:
        group = probed.group
        self._done[group] += 1
        self._requests[group] += probed.requests
        quirk = next((one.quirk for one in found if one.quirk), "")
        if quirk or (probed.outcome == "found" and group not in self._odd):
            self._last[group] = clean(quirk or describe_outcome(probed, found))
        if quirk:
            self._odd.add(group)
        self._draw()

    def _draw(self) -> None:
        table = importlib.import_module("rich.table").Table(box=None, pad_edge=False)
        text = importlib.import_module("rich.text").Text
        for heading in ("", "probes", "requests", ""):
            table.add_column(heading, justify="right" if heading else "left", no_wrap=True, overflow="ellipsis")
        for group, title in GROUPS.items():
            if self._total[group]:
                done = f"{self._done[group]}/{self._total[group]}"
                table.add_row(text(title), text(done), text(str(self._requests[group])), text(self._last[group]))
        table.add_row(text("now", style="dim"), text(""), text(""), text(clean(self._now), style="dim"))
        self._live.update(table)


@contextlib.contextmanager
def progress_on(page: TerminalPage, probes: Sequence[Probe], *, quiet: bool) -> Iterator[Silent]:
    """The progress display for a page."""
    if quiet:
        yield Silent()
    elif not page.is_terminal or os.environ.get("TERM") == "dumb":
        yield ProgressLines(page)
    else:
        try:
            rich = importlib.import_module("rich.live")
            console = importlib.import_module("rich.console").Console(file=page.stream, no_color=not page.has_color)
        except ImportError:
            yield ProgressLines(page)
            return
        with rich.Live(console=console, transient=True, refresh_per_second=8) as live:
            yield Table(probes, live)
