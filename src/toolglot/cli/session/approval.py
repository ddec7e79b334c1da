"""Whether a tool may run: what the options allow, and what a person says.

    y                run it
    n [REASON]       do not; the model is told why
    a                run it, and do not ask for this tool again
    e                change the arguments first

Law: without leave nothing runs. Where nobody can be asked, the reason names the option that would have allowed it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from toolglot.cli.screen.foreground import Foreground, InterruptedReadingError
from toolglot.cli.screen.line_input import visible
from toolglot.cli.screen.terminal import Terminal
from toolglot.cli.screen.transcript_view import TranscriptView, safe_line
from toolglot.conversation import ToolCall
from toolglot.runtime.scheduler.approvals import Allow, AllowAlways, Decision, Deny, Edit
from toolglot.runtime.tools.toolbox import Tool

DENIED: Final = "The user did not allow it."
QUESTION: Final = "  allow? [y]es, [n]o, [a]lways, [e]dit: "

Ask = Callable[[ToolCall, Tool, dict[str, Any]], Awaitable[Decision]]


class Approvals:
    """Decides, or asks whoever can."""

    def __init__(self, allowed: Sequence[str] = (), ask: Ask | None = None) -> None:
        self._allowed = tuple(allowed)
        self._ask = ask
        self.denied: list[str] = []
        """Tools that were denied because nobody could be asked."""

    async def __call__(self, call: ToolCall, tool: Tool, arguments: dict[str, Any]) -> Decision:
        if any(fnmatchcase(tool.name, pattern) for pattern in self._allowed) or is_reading(tool):
            return Allow()
        if self._ask is not None:
            return await self._ask(call, tool, arguments)
        self.denied.append(tool.name)
        return Deny(f"It needs an approval, and nobody can be asked. The user can allow it with --allow {tool.name}.")


def tell_denied(approvals: Approvals, terminal: Terminal) -> None:
    """Say what did not run because nobody could be asked, and what to do about it."""
    for name in dict.fromkeys(approvals.denied):
        terminal.note(f"{name} was not run: it needs an approval, which --allow {name} gives")


def is_reading(tool: Tool) -> bool:
    """Whether it is a tool of an MCP server that says that it changes nothing."""
    return tool.function is None and not tool.side_effects


class AskedApproval:
    """Asks the person at the terminal, one question at a time."""

    def __init__(self, foreground: Foreground, view: TranscriptView) -> None:
        self._foreground = foreground
        self._view = view
        self._one_at_a_time = asyncio.Lock()
        self._always: set[str] = set()

    async def __call__(self, _: ToolCall, tool: Tool, arguments: dict[str, Any]) -> Decision:
        async with self._one_at_a_time:
            if tool.name in self._always:  # it was said while this call waited
                return AllowAlways()
            with self._view.held():
                try:
                    decision = await self._asked(tool, arguments)
                except InterruptedReadingError:
                    self._foreground.interrupt()
                    await asyncio.Event().wait()  # the scheduler cancels whoever waits here
                    return Deny(DENIED)
                except EOFError:
                    return Deny(DENIED)
            if isinstance(decision, AllowAlways):
                self._always.add(tool.name)
            return decision

    async def _asked(self, tool: Tool, arguments: dict[str, Any]) -> Decision:
        page = self._view.page
        self._view.question(tool.name, arguments)
        while True:
            said = (await self._foreground.line(visible(page.paint(QUESTION, "bold")))).strip()
            letter, _, rest = said.partition(" ")
            match letter.lower():
                case "y" | "yes":
                    return Allow()
                case "a" | "always":
                    return AllowAlways()
                case "n" | "no":
                    return Deny(rest.strip() or DENIED)
                case "e" | "edit":
                    edited = await self._edited(arguments)
                    if edited is not None:
                        return edited

    async def _edited(self, arguments: dict[str, Any]) -> Edit | None:
        text = msgspec.json.encode(arguments).decode()
        said = (await self._foreground.line("  arguments: ", text)).strip()
        try:
            read = msgspec.json.decode(said or "null")
        except (msgspec.DecodeError, RecursionError) as error:
            self._view.note(f"not JSON: {safe_line(str(error))}")
            return None
        if not isinstance(read, dict):
            self._view.note("expected a JSON object, such as {}")
            return None
        return Edit(read)
