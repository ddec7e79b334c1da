"""Fine-tuning files of OpenAI, and of the hosts that took over their form: Azure, Together, Mistral, Fireworks.

    {"messages": […], "tools": […], "parallel_tool_calls": false}
    {"input": {"messages": […], "tools": […]}, "preferred_output": […], "non_preferred_output": […]}

Arguments are strings. A row may have no other columns: a file in which some lines have one is refused as a whole.
`weight` of a message says whether it is trained on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from toolglot.bulk.example import Example, Notes, Row
from toolglot.bulk.formats.chat import (
    CHAT_COLUMNS,
    call_arguments,
    first_call,
    has_messages,
    read_chat,
    read_messages,
    write_messages,
    write_tools,
)
from toolglot.bulk.formats.format import Format, Writer
from toolglot.bulk.row_profiles import row_profile
from toolglot.conversation import Conversation
from toolglot.errors import InputError, quote
from toolglot.protocols.openai_chat.messages import PLAIN, HostStyle, style_of

_PREFERENCE: Final = frozenset({"input", "preferred_output", "non_preferred_output"})


def _detect(row: Row) -> float:
    if not has_messages(row):
        return 0.0
    arguments = call_arguments(first_call(row))
    if isinstance(arguments, str) and not row.keys() - CHAT_COLUMNS:
        return 0.97
    return 0.6 if isinstance(arguments, str) else 0.45 if arguments is None and not row.keys() - CHAT_COLUMNS else 0.2


def _read(row: Row, notes: Notes) -> Example:
    return Example(conversation=read_chat(row, notes, tags=False))


def _writer(profile: str) -> Writer:
    return lambda example, _: write_chat(example.conversation, style_of(row_profile(profile)))


def write_chat(conversation: Conversation, style: HostStyle = PLAIN, *, flag: str = "weight") -> Row:
    """A conversation as messages and tools."""
    row: Row = {"messages": write_messages(conversation.turns, style=style, flag=flag)}
    if conversation.tools:
        row["tools"] = write_tools(conversation.tools)
        choice = conversation.options.tool_choice
        if choice is not None and choice.parallel is not None:
            row["parallel_tool_calls"] = choice.parallel
    return row


def _detect_preference(row: Row) -> float:
    inner = row.get("input")
    return 0.98 if row.keys() >= _PREFERENCE and isinstance(inner, dict) and has_messages(inner) else 0.0


def _read_preference(row: Row, notes: Notes) -> Example:
    inner = row.get("input")
    if not isinstance(inner, dict):
        raise InputError(f"expected an object, got {quote(inner)}", path="$.input")
    return Example(
        conversation=read_chat(inner, notes, tags=False),
        preferred=read_messages(row.get("preferred_output"), notes, "$.preferred_output", tags=False),
        rejected=read_messages(row.get("non_preferred_output"), notes, "$.non_preferred_output", tags=False),
    )


def _write_preference(example: Example, _: Notes) -> Row:
    return {
        "input": write_chat(example.conversation, flag=""),
        "preferred_output": write_messages(example.preferred or ()),
        "non_preferred_output": write_messages(example.rejected or ()),
    }


_JSON: Final = frozenset({"messages", "tools"})


def _chat(name: str, title: str, detect: Callable[[Row], float]) -> Format:
    profile = f"{name}_rows"
    return Format(
        name=name,
        title=title,
        columns=CHAT_COLUMNS,
        detect=detect,
        read=_read,
        write=_writer(profile),
        source=profile,
        profile=profile,
        takes_columns=False,
        json_columns=_JSON,
    )


FORMATS: Final = (
    _chat("openai", "OpenAI and Azure fine-tuning", _detect),
    _chat("together", "Together fine-tuning", lambda _: 0.0),
    _chat("mistral", "Mistral fine-tuning", lambda _: 0.0),
    Format(
        name="openai-preference",
        title="OpenAI preference fine-tuning",
        columns=_PREFERENCE,
        detect=_detect_preference,
        read=_read_preference,
        write=_write_preference,
        source="openai_rows",
        profile="openai_rows",
        takes_columns=False,
        json_columns=_PREFERENCE,
        takes_preferences=True,
    ),
)
