"""How the default script quotes tool results: `a.txt says: …`, `delete_file: …`, shorten_quote if they are long.

Law: a reply quotes at most `MAX_QUOTED` characters of a result, and says how much it left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from toolglot.conversation import ToolCall, ToolResult, Turn
from toolglot.jsontext import compact
from toolglot.simulator.scripts import prompt_cues

MAX_QUOTED: Final = 2_000
MAX_LABEL: Final = 200
"""Characters of the source that a quote names."""
_NUMBERED: Final = re.compile(r"^ {0,8}\d{1,8}(?:[\t→]|$)", re.MULTILINE)
_FIRST_NUMBERED: Final = re.compile(r" {0,8}\d{1,8}[\t→]")
_SHELL_HEAD: Final = re.compile(r"\A(?>[A-Z][\w ]{1,40}:? [^\n]{0,200}\n){1,8}Output:\n")
"""What Codex writes of a command before its output. Atomic groups: a line that matches is not tried again."""


def quote_results(results: Sequence[ToolResult], turns: Iterable[Turn], directory: str) -> list[str]:
    """One sentence for each result."""
    calls = {call.id: call for turn in turns for call in turn.calls}
    return [_quote_result(result, calls.get(result.call_id), directory) for result in results]


def _quote_result(result: ToolResult, call: ToolCall | None, directory: str) -> str:
    name = result.name or (call.name if call is not None else "") or "The tool"
    text = shorten_quote(_text_of(result))
    if result.is_error:
        return f"{name} failed: {text}"
    if not prompt_cues.only_reads(name) and not _has_command(call):
        return f"{name}: {text}" if text else f"{name} is done: its result is empty."
    label = next(_sources(call, directory), name) if call is not None else name
    return f"{label} says: {text}" if text else f"{label} says nothing: its result is empty."


def _sources(call: ToolCall, directory: str) -> Iterator[str]:
    """The file or URL of a call."""
    for name, value in (call.arguments or {}).items():
        cue = prompt_cues.last_word(name)
        if not isinstance(value, str) or not value or len(value) > MAX_LABEL:
            continue
        if cue in prompt_cues.PATH | prompt_cues.FOLDER | prompt_cues.URL:
            yield value.removeprefix(f"{directory}/") if directory else value
        elif cue in prompt_cues.COMMAND:
            yield value.removeprefix("cat ")


def _has_command(call: ToolCall | None) -> bool:
    return call is not None and any(prompt_cues.last_word(name) in prompt_cues.COMMAND for name in call.arguments or {})


def _text_of(result: ToolResult) -> str:
    """The text of a result, without what coding agents put around it."""
    text = result.text or (compact(result.result) if result.result is not None else "")
    text = prompt_cues.without_reminders(text)
    head = _SHELL_HEAD.match(text)
    text = text[head.end() :] if head is not None else text
    lines = text.splitlines()
    if lines and _FIRST_NUMBERED.match(lines[0]) and all(_NUMBERED.match(line) for line in lines):
        text = _NUMBERED.sub("", text)
    return text.strip("\n")


def shorten_quote(text: str) -> str:
    """A long text up to the end of a line, and how much more there is."""
    if len(text) <= MAX_QUOTED:
        return text
    cut = text.rfind("\n", MAX_QUOTED // 2, MAX_QUOTED)
    shown = text[: cut if cut > 0 else MAX_QUOTED]
    return f"{shown}\n… ({len(text) - len(shown):,} more characters)"
