"""`toolglot demo`: one broken conversation, refused by five strict simulated providers, then accepted by all of them.

Law: needs no extra, no key and no network; waits only where somebody watches.
"""

from __future__ import annotations

import argparse
import textwrap
import time
from collections.abc import Callable
from typing import Final

from toolglot.cli.demo_trial import LAST, PROVIDERS, QUESTION, STOP, Demo, Trial
from toolglot.cli.screen.terminal import Terminal, TerminalPage, clean
from toolglot.jsontext import compact

LINE_SECONDS: Final = 0.35
"""Between lines, on a terminal: all of it takes about half a minute."""
PART_SECONDS: Final = 2.0
_COLUMN: Final = 13
_TEXT: Final = _COLUMN + 7
"""Where the words of a refusal begin, behind the provider's name and the status."""
_ASIDE: Final = 40
_FAILED: Final = 1
_NARROWEST: Final = 40

_DESCRIPTION: Final = """\
Show in half a minute what toolglot is for. A conversation that has been through a lot (signed thinking of one model, a
tool call that was cancelled, a switch to another provider, ids in that provider's style) is sent to five simulated
providers, which check requests by the rules of the real ones: first as it is, then through toolglot.

Everything happens in this process: no key, no network, nothing to install but toolglot itself."""

_EPILOG: Final = """\
examples:
  toolglot demo
  toolglot demo --fast
  toolglot demo --json

exit codes: 0 all five accepted what toolglot sent; 1 one of them did not
"""

_STORY: Final = (
    ("you", QUESTION, ""),
    ("Claude", "read_file a.txt, read_file b.txt", "its thinking is signed"),
    ("tool", "a.txt: hello", "b.txt has not answered yet"),
    ("you", STOP, "cancelled; Kimi goes on"),
    ("Kimi", "read_file c.txt", "its id has a form of Kimi's own"),
    ("tool", "c.txt: good morning", ""),
    ("you", LAST, "which provider goes on?"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("--fast", action="store_true", help="do not wait between lines")
    parser.add_argument("--json", action="store_true", help="what was sent and what became of it, as JSON")


def run(arguments: argparse.Namespace, terminal: Terminal) -> int:
    demo = Demo()
    if arguments.json:
        refused = [demo.send_as_it_is(provider) for provider in PROVIDERS]
        accepted = [demo.send_through_toolglot(provider) for provider in PROVIDERS]
        terminal.out.line(compact(_record(refused, accepted)))
    else:
        is_watched = terminal.out.is_terminal and not arguments.fast
        refused, accepted = show(demo, terminal.out, time.sleep if is_watched else _no_wait)
    return 0 if all(trial.is_accepted for trial in accepted) else _FAILED


def _no_wait(_seconds: float) -> None:
    """Nobody watches."""


def _record(refused: list[Trial], accepted: list[Trial]) -> dict[str, object]:
    return {
        "as_it_is": [
            {"provider": trial.provider, "model": trial.model, "status": trial.status, "message": trial.message}
            for trial in refused
        ],
        "through_toolglot": [
            {"provider": trial.provider, "model": trial.model, "status": trial.status, "changes": list(trial.changes)}
            for trial in accepted
        ],
        "accepted": sum(trial.is_accepted for trial in accepted),
    }


def show(demo: Demo, page: TerminalPage, wait: Callable[[float], None]) -> tuple[list[Trial], list[Trial]]:
    """Write the demo on a page, line by line."""
    screen = _Screen(page, wait)
    screen.title("A conversation that has been through a lot")
    for speaker, words, aside in _STORY:
        screen.story(speaker, words, aside)
    screen.part("1. Sent as it is, in each provider's own format")
    refused = [screen.refusal(demo.send_as_it_is(provider)) for provider in PROVIDERS]
    screen.part("2. Sent through toolglot")
    accepted = [screen.acceptance(demo.send_through_toolglot(provider)) for provider in PROVIDERS]
    screen.end(refused, accepted)
    return refused, accepted


class _Screen:
    """Lines that come at the pace of a reader."""

    def __init__(self, page: TerminalPage, wait: Callable[[float], None]) -> None:
        self._page = page
        self._wait = wait
        self._yes, self._no = ("✓", "✗") if _can_write(page, "✓✗") else ("ok", "no")
        self._width = max(page.width, _NARROWEST)

    def line(self, text: str = "") -> None:
        self._page.line(text)
        self._page.stream.flush()
        self._wait(LINE_SECONDS)

    def part(self, title: str) -> None:
        self._wait(PART_SECONDS)
        self.line()
        self.title(title)

    def title(self, text: str) -> None:
        for line in textwrap.wrap(text, self._width):
            self.line(self._page.paint(line, "bold"))

    def story(self, speaker: str, words: str, aside: str) -> None:
        paint = self._page.paint
        head = f"  {speaker}".ljust(_COLUMN)
        gap = max(_ASIDE - len(words), 2)
        fits = len(head) + len(words) + gap + len(aside) <= self._width
        shown = paint(head, "cyan") + words
        if aside and fits:
            shown += " " * gap + paint(aside, "dim")
        for line in [shown] if fits else self._wrapped(f"{words} ({aside})" if aside else words, head):
            self.line(line)

    def _wrapped(self, text: str, head: str, indent: int = _COLUMN) -> list[str]:
        lines = textwrap.wrap(text, self._width - indent, break_on_hyphens=False) or [""]
        return [self._page.paint(head, "cyan") + lines[0], *(" " * indent + line for line in lines[1:])]

    def refusal(self, trial: Trial) -> Trial:
        head = self._head(trial)
        lines = textwrap.wrap(clean(trial.message), self._width - _TEXT, break_on_hyphens=False) or [""]
        self.line(f"{head}  {lines[0]}".rstrip())
        for line in lines[1:]:
            self.line(" " * _TEXT + line)
        return trial

    def acceptance(self, trial: Trial) -> Trial:
        self.line(self._head(trial))
        for text in [clean(trial.message)] * (not trial.is_accepted) + [*map(clean, trial.changes)]:
            for line in textwrap.wrap(
                text,
                self._width,
                initial_indent=" " * _COLUMN + "- ",
                subsequent_indent=" " * (_COLUMN + 2),
                break_on_hyphens=False,
            ):
                self.line(self._page.paint(line, "dim"))
        return trial

    def _head(self, trial: Trial) -> str:
        mark, style = (self._yes, "green") if trial.is_accepted else (self._no, "red")
        name = self._page.paint(f"  {trial.provider}".ljust(_COLUMN), "cyan")
        return name + self._page.paint(f"{mark} {trial.status}", "bold", style)

    def end(self, refused: list[Trial], accepted: list[Trial]) -> None:
        count, good = len(accepted), sum(trial.is_accepted for trial in accepted)
        bad = sum(not trial.is_accepted for trial in refused)
        self.part(f"Refused by {bad} of {count} as it is. Accepted by {good} of {count} through toolglot.")
        for line in textwrap.wrap(_CLOSING, self._width):
            self.line(line)


_CLOSING: Final = (
    "The providers are simulated: they check requests by the rules of the real ones and refuse in their words, in this "
    "process, without a network. With a provider's key, the gateway ('toolglot serve', or 'make serve' in a clone) "
    "does the same for Claude Code, Codex, Gemini CLI and every SDK."
)


def _can_write(page: TerminalPage, text: str) -> bool:
    try:
        text.encode(getattr(page.stream, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
