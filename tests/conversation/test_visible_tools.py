"""The tools that a model sees, and what they cost: deferred ones from when they are loaded."""

from __future__ import annotations

from typing import Final

from toolglot import Conversation, ServerTool, Text, ToolCall, ToolChange, ToolReference, ToolResult, ToolSpec, Turn
from toolglot.conversation.visible_tools import visible_tools
from toolglot.gateway.endpoints.token_counts import estimate

FIND: Final = ToolSpec("find", "Finds tools.", {"type": "object"})
MAIL: Final = ToolSpec("mail", "Sends a mail.", {"type": "object"}, deferred=True)
READ: Final = ToolSpec("read", "Reads a file.", {"type": "object"})
NOW: Final = ToolSpec("now", "What time it is.", {"type": "object"})
START: Final = Turn("user", (Text("Go."),))


def names(*turns: Turn) -> list[str]:
    return [tool.name for tool in visible_tools(Conversation((START, *turns), (FIND, MAIL, READ)))]


def test_a_deferred_tool_is_seen_once_a_search_finds_it() -> None:
    call = Turn("assistant", (ToolCall("1", "find", {}),))
    result = Turn("tool", (ToolResult("1", (ToolReference("mail"), ToolReference("unknown"))),))
    assert names() == ["find", "read"]
    assert names(call, result) == ["find", "read", "mail"]
    found = ServerTool("anthropic", "result", {}, "tool_search", loaded=(ToolReference("mail"),))
    assert names(Turn("assistant", (found,))) == ["find", "read", "mail"]


def test_a_prompt_adds_and_removes_tools() -> None:
    added = Turn("system", (ToolChange((ToolReference("now", definition=NOW), ToolReference("mail"))),))
    removed = Turn("system", (ToolChange(removed=(ToolReference("find"), ToolReference("now"))),))
    assert names(added) == ["find", "read", "now", "mail"]
    assert names(added, removed) == ["read", "mail"]
    assert names(added, removed, added) == ["read", "mail", "now"]


def test_a_tool_that_the_model_does_not_see_costs_no_tokens() -> None:
    assert estimate(Conversation((START,), (FIND, MAIL))) == estimate(Conversation((START,), (FIND,)))
    added = Turn("system", (ToolChange((ToolReference("mail"),)),))
    before = estimate(Conversation((START, added), (FIND,)))
    assert estimate(Conversation((START, added), (FIND, MAIL))) > before
