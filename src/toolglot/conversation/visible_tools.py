"""The tools that a model sees at the end of a conversation: those that are not deferred, and those that were loaded."""

from __future__ import annotations

from collections.abc import Iterable

from toolglot.conversation.values import (
    Block,
    Conversation,
    ServerTool,
    ToolCall,
    ToolChange,
    ToolReference,
    ToolResult,
    ToolSpec,
)

Key = tuple[str | None, str]
"""A tool's namespace and name."""


def tool_key(tool: ToolSpec | ToolReference | ToolCall) -> Key:
    """What identifies a tool. An empty namespace is none."""
    return tool.namespace or None, tool.name


def loaded_by(block: Block) -> Iterable[ToolReference]:
    """The tools that a block loads."""
    if isinstance(block, ToolResult):
        content = block.content
        return [part for part in content if isinstance(part, ToolReference)] if isinstance(content, tuple) else ()
    if isinstance(block, ToolReference):
        return (block,)
    return block.added if isinstance(block, ToolChange) else block.loaded if isinstance(block, ServerTool) else ()


def visible_tools(conversation: Conversation) -> tuple[ToolSpec, ...]:
    """The tools that the model may call at the end, those that were loaded behind the others."""
    declared = {tool_key(tool): tool for tool in conversation.tools}
    seen: dict[Key, ToolSpec] = {key: tool for key, tool in declared.items() if not tool.deferred}
    for turn in conversation.turns:
        for block in turn.blocks:
            for reference in loaded_by(block):
                key = tool_key(reference)
                tool = reference.definition or declared.get(key)
                if tool is not None:
                    seen[key] = tool
            for reference in block.removed if isinstance(block, ToolChange) else ():
                seen.pop(tool_key(reference), None)
    return tuple(seen.values())
