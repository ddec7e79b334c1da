"""`toolglot demo`: one broken conversation, refused by five strict simulated providers, then accepted by all of them.

The first turn of the conversation, with signed thinking, is a reply of the simulated Anthropic. Each provider gets the
conversation twice: unchanged, encoded in the provider's own protocol, and as toolglot renders it.

Laws: no extra, no key and no network; the same on every machine. It pauses only on a terminal.
"""

from __future__ import annotations

import argparse
import json
import re
import textwrap
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec
from msgspec import Struct

from toolglot import profiles
from toolglot.cli.screen.terminal import Terminal, TerminalPage, clean
from toolglot.conversation import (
    Conversation,
    Issuer,
    Options,
    Reasoning,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    ToolSpec,
    Turn,
)
from toolglot.conversation.report import Report
from toolglot.history.history import History
from toolglot.jsontext import compact
from toolglot.protocols.base import codec
from toolglot.referee import lint
from toolglot.simulator.responder import Responder, SimulatedOutcome, SimulatedRequest
from toolglot.simulator.scripts.script import CallSpec, ReplySpec, Script, ScriptRule, When
from toolglot.translate.requests import request_for

LINE_SECONDS: Final = 0.35
"""The pause between lines on a terminal. The whole demo takes about half a minute."""
PART_SECONDS: Final = 2.0
_COLUMN: Final = 13
_TEXT: Final = _COLUMN + 7
"""The column of the error message, after the provider's name and the status."""
_ASIDE: Final = 40
_FAILED: Final = 1
_MIN_WIDTH: Final = 40

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

OK: Final = 200
_NOON: Final = 1_767_268_800.0
_KEYS: Final = {
    "x-api-key": "demo",
    "authorization": "Bearer demo",
    "x-goog-api-key": "demo",
    "anthropic-version": "2023-06-01",
}
QUESTION: Final = "What is in a.txt and in b.txt?"
STOP: Final = "Stop, b.txt is huge. What is in c.txt?"
LAST: Final = "Compare a.txt and c.txt."
_CANCELLED: Final = "Cancelled by the user."
_KIMI_ID: Final = "functions.read_file:0"
_LIMITS: Final = {"anthropic": {"max_tokens": 1000}}
"""Required fields, so that only the conversation itself can be refused."""
_RULE_ID: Final = re.compile(r" \([a-z0-9]+(?:-[a-z0-9]+)+\)")
_SCRIPT: Final = Script(
    rules=(
        ScriptRule(
            when=When(turn=1),
            reply=ReplySpec(
                thinking="I read both files.",
                calls=tuple(CallSpec(name="read_file", arguments={"path": path}) for path in ("a.txt", "b.txt")),
            ),
        ),
        ScriptRule(reply=ReplySpec(text="One is a greeting, the other one wishes a good morning.")),
    )
)
_TOOL: Final = ToolSpec(
    "read_file",
    "Read a file.",
    {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
)

_STORY: Final = (
    ("you", QUESTION, ""),
    ("Claude", "read_file a.txt, read_file b.txt", "its thinking is signed"),
    ("tool", "a.txt: hello", "no result for b.txt yet"),
    ("you", STOP, "cancelled; switched to Kimi"),
    ("Kimi", "read_file c.txt", "the id has Kimi's own format"),
    ("tool", "c.txt: good morning", ""),
    ("you", LAST, "which provider accepts it?"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.description, parser.epilog = _DESCRIPTION, _EPILOG
    parser.add_argument("--fast", action="store_true", help="do not wait between lines")
    parser.add_argument("--json", action="store_true", help="print the requests and their results as JSON")


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
    """Do not pause."""


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
    """Print the demo, line by line."""
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
    """Prints lines at reading pace."""

    def __init__(self, page: TerminalPage, wait: Callable[[float], None]) -> None:
        self._page = page
        self._wait = wait
        self._yes, self._no = ("✓", "✗") if page.can_write("✓✗") else ("ok", "no")
        self._width = max(page.width, _MIN_WIDTH)

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
        for line in [shown] if fits else self._wrap(f"{words} ({aside})" if aside else words, head):
            self.line(line)

    def _wrap(self, text: str, head: str, indent: int = _COLUMN) -> list[str]:
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


# --- the conversation, and what becomes of it --------------------------------------------------------


class DemoProvider(Struct, frozen=True):
    """A provider that the demo sends to."""

    title: str
    target: str
    model: str
    path: str


CLAUDE: Final = DemoProvider("Anthropic", "anthropic", "claude-opus-5", "/anthropic/v1/messages")
_BEDROCK_MODEL: Final = "anthropic.claude-sonnet-4-5-20250929-v1:0"
PROVIDERS: Final = (
    CLAUDE,
    DemoProvider("OpenAI", "openai_responses", "gpt-5.5", "/openai/v1/responses"),
    DemoProvider("Gemini", "gemini", "gemini-3-pro", "/gemini/v1beta/models/gemini-3-pro:generateContent"),
    DemoProvider("Mistral", "mistral", "mistral-large-latest", "/mistral/v1/chat/completions"),
    DemoProvider("Bedrock", "bedrock", _BEDROCK_MODEL, f"/bedrock/model/{_BEDROCK_MODEL}/converse"),
)


class Trial(Struct, frozen=True, kw_only=True):
    """The response of one provider."""

    provider: str
    model: str
    status: int
    message: str
    """The provider's error message, if it refused."""
    violations: int = 0
    """The number of violations. The provider reports one of them."""
    changes: tuple[str, ...] = ()
    """What toolglot changed."""

    @property
    def is_accepted(self) -> bool:
        return self.status == OK


class Demo:
    """The conversation, and the simulated providers that it is sent to."""

    def __init__(self) -> None:
        self._responder = Responder(_SCRIPT, lambda: _NOON)
        self.turns = self._broken_turns()

    def _broken_turns(self) -> tuple[Turn, ...]:
        """Claude calls two tools, of which the user cancels one; the next question goes to Kimi."""
        start = Conversation(
            turns=(Turn("user", (Text(QUESTION),)),),
            tools=(_TOOL,),
            options=Options(reasoning=Reasoning(mode="adaptive")),
        )
        first = request_for(start, target=CLAUDE.target, model=CLAUDE.model)
        reply = codec("anthropic").reply.decode(json.loads(self._send(CLAUDE, first.body).pieces[0]))
        return (
            start.turns[0],
            msgspec.structs.replace(reply.turn, issuer=Issuer("anthropic", model=CLAUDE.model)),
            Turn("tool", (ToolResult(reply.turn.calls[0].id, "hello"),)),
            Turn("user", (Text(STOP),)),
            Turn("assistant", (ToolCall(_KIMI_ID, "read_file", {"path": "c.txt"}),), issuer=Issuer("kimi")),
            Turn("tool", (ToolResult(_KIMI_ID, "good morning"),)),
            Turn("user", (Text(LAST),)),
        )

    def _history(self) -> History:
        """The same conversation as an agent stores it with toolglot: the stopped call is cancelled explicitly."""
        history = History(provider="anthropic")
        history.extend(self.turns[:3])
        pending = [interaction.id for interaction in history.ledger if interaction.status == "pending"]
        history.cancel(*pending, reason=_CANCELLED)
        history.extend(self.turns[3:])
        return history

    def send_as_it_is(self, provider: DemoProvider) -> Trial:
        """Send the conversation in the provider's own protocol, with nothing repaired."""
        profile = profiles.get(provider.target, provider.model)
        conversation = Conversation(turns=self.turns, tools=(_TOOL,), model=provider.model)
        body = {**codec(profile.protocol).request.encode(conversation, profile), **_LIMITS.get(profile.protocol, {})}
        found = lint(body, provider.target, provider.model)
        return _trial(provider, self._send(provider, body), violations=len(found))

    def send_through_toolglot(self, provider: DemoProvider) -> Trial:
        out = request_for(self._history(), target=provider.target, model=provider.model, tools=(_TOOL,))
        changes = (*self._kept_parts(json.dumps(out.body)), *_changes(self._native_ids(), out.report))
        return _trial(provider, self._send(provider, out.body), changes=changes)

    def _kept_parts(self, sent: str) -> Iterator[str]:
        """What the rendered request contains that the original lacks."""
        if _CANCELLED in sent:
            yield f"the cancelled call has a result: {_CANCELLED!r}"
        signatures = [block.signature for block in self.turns[1].blocks if isinstance(block, Thinking)]
        if any(signature is not None and signature in sent for signature in signatures):
            yield "the signed thinking goes back to its own model unchanged"

    def _native_ids(self) -> list[str]:
        return [call.id for turn in self.turns for call in turn.calls]

    def _send(self, provider: DemoProvider, body: dict[str, Any]) -> SimulatedOutcome:
        data = json.dumps(body).encode()
        return self._responder.answer(
            SimulatedRequest(method="POST", path=provider.path, headers=_KEYS, query={}, body=data)
        )


def _trial(
    provider: DemoProvider, outcome: SimulatedOutcome, *, violations: int = 0, changes: tuple[str, ...] = ()
) -> Trial:
    return Trial(
        provider=provider.title,
        model=provider.model,
        status=outcome.status,
        message=outcome.error,
        violations=violations,
        changes=changes,
    )


def _changes(native: list[str], report: Report) -> Iterator[str]:
    """The changes, each once, without rule ids."""
    renamed = [(old, new) for old, new in zip(native, report.ids.calls, strict=True) if old != new]
    if renamed:
        old, new = renamed[-1]
        more = f", and {len(renamed) - 1} more" if len(renamed) > 1 else ""
        yield f"ids: {old} -> {new}{more}"
    entries = [f"{entry.action}: {_RULE_ID.sub('', entry.reason)}" for entry in report.entries]
    for entry in dict.fromkeys(entries):
        count = entries.count(entry)
        yield entry + (f" ({count} times)" if count > 1 else "")
