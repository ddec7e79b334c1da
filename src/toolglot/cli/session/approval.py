"""Decides whether a tool may run: by `--allow`, or by asking the user.

    y                run it
    n [REASON]       do not run it; the model gets the reason
    a                run it, and do not ask again for this tool
    e                edit the arguments first

Law: nothing runs without approval. If there is no user to ask, the reason names the option that would allow it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

import msgspec

from toolglot.cli.screen.foreground import Foreground, InterruptedReadingError
from toolglot.cli.screen.line_input import readline_prompt
from toolglot.cli.screen.terminal import Terminal
from toolglot.cli.screen.transcript_view import TranscriptView, safe_line
from toolglot.conversation import ToolCall
from toolglot.runtime.scheduler.approvals import Allow, AllowAlways, Decision, Deny, Edit
from toolglot.runtime.tools.toolbox import Tool

DENIED: Final = "The user denied it."
QUESTION: Final = "  allow? [y]es, [n]o, [a]lways, [e]dit: "

Ask = Callable[[ToolCall, Tool, dict[str, Any]], Awaitable[Decision]]


class Approvals:
    """Approves tools that are allowed, and asks for the others."""

    def __init__(self, allowed: Sequence[str] = (), ask: Ask | None = None) -> None:
        self._allowed = tuple(allowed)
        self._ask = ask
        self.denied: list[str] = []
        """Tools that were denied because there was no user to ask."""

    async def __call__(self, call: ToolCall, tool: Tool, arguments: dict[str, Any]) -> Decision:
        if any(fnmatchcase(tool.name, pattern) for pattern in self._allowed) or is_read_only(tool):
            return Allow()
        if self._ask is not None:
            return await self._ask(call, tool, arguments)
        self.denied.append(tool.name)
        return Deny(f"It needs approval, and there is no user to ask. The user can allow it with --allow {tool.name}.")


def note_denied(approvals: Approvals, terminal: Terminal) -> None:
    """Print the tools that were denied because there was no user to ask, and how to allow them."""
    for name in dict.fromkeys(approvals.denied):
        terminal.note(f"{name} was not run: it needs approval; allow it with --allow {name}")


def is_read_only(tool: Tool) -> bool:
    """Whether it is a tool of an MCP server that is declared read-only."""
    return tool.function is None and not tool.side_effects


class PromptedApproval:
    """Asks the user at the terminal, one question at a time."""

    def __init__(self, foreground: Foreground, view: TranscriptView) -> None:
        self._foreground = foreground
        self._view = view
        self._one_at_a_time = asyncio.Lock()
        self._always: set[str] = set()

    async def __call__(self, _: ToolCall, tool: Tool, arguments: dict[str, Any]) -> Decision:
        async with self._one_at_a_time:
            if tool.name in self._always:  # answered while this call waited
                return AllowAlways()
            with self._view.hold():
                try:
                    decision = await self._ask_user(tool, arguments)
                except InterruptedReadingError:
                    self._foreground.interrupt()
                    await asyncio.Event().wait()  # until the scheduler cancels this task
                    return Deny(DENIED)
                except EOFError:
                    return Deny(DENIED)
            if isinstance(decision, AllowAlways):
                self._always.add(tool.name)
            return decision

    async def _ask_user(self, tool: Tool, arguments: dict[str, Any]) -> Decision:
        page = self._view.page
        self._view.question(tool.name, arguments)
        while True:
            reply = (await self._foreground.line(readline_prompt(page.paint(QUESTION, "bold")))).strip()
            letter, _, rest = reply.partition(" ")
            match letter.lower():
                case "y" | "yes":
                    return Allow()
                case "a" | "always":
                    return AllowAlways()
                case "n" | "no":
                    return Deny(rest.strip() or DENIED)
                case "e" | "edit":
                    edited = await self._ask_arguments(arguments)
                    if edited is not None:
                        return edited

    async def _ask_arguments(self, arguments: dict[str, Any]) -> Edit | None:
        text = msgspec.json.encode(arguments).decode()
        reply = (await self._foreground.line("  arguments: ", text)).strip()
        try:
            edited = msgspec.json.decode(reply or "null")
        except (msgspec.DecodeError, RecursionError) as error:
            self._view.note(f"invalid JSON: {safe_line(str(error))}")
            return None
        if not isinstance(edited, dict):
            self._view.note("expected a JSON object, such as {}")
            return None
        return Edit(edited)
