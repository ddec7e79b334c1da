"""Hugging Face's `messages` and `tools`, as TRL, Axolotl and chat templates read them.

    {"messages": […], "tools": […]}              arguments are objects; results say the name of their tool
    {"prompt": […], "chosen": […], "rejected": […]}
    {"prompt": […], "completion": […]}           read as one conversation, of which the completion is trained on

Thinking is `reasoning_content`; `thinking` and `<think>` in the text are read too. `train` of a message says whether it
is trained on (Axolotl).
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from toolglot.bulk.example import Example, Notes, Row, with_training
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
from toolglot.bulk.formats.format import Format
from toolglot.bulk.formats.turns import ImageColumn
from toolglot.conversation import Text, Turn

_COLUMNS: Final = CHAT_COLUMNS | {"images", "prompt", "completion"}
_PREFERENCE: Final = frozenset({"prompt", "chosen", "rejected", "tools"})
_TRAIN: Final = (False, True)


def _detect(row: Row) -> float:
    if has_messages(row):
        arguments = call_arguments(first_call(row))
        return 0.97 if isinstance(arguments, dict) else 0.5
    return 0.8 if has_messages(row, "prompt") and has_messages(row, "completion") else 0.0


def _read(row: Row, notes: Notes) -> Example:
    if "messages" in row or "completion" not in row:
        conversation = read_chat(row, notes)
    else:
        prompt = read_chat(row, notes, field="prompt")
        before = (with_training(turn, False) if turn.role == "assistant" else turn for turn in prompt.turns)
        completion = read_messages(row.get("completion"), notes, "$.completion")
        conversation = replace(prompt, turns=(*before, *completion))
    if row.get("images"):
        images = ImageColumn(row["images"], "$.images")
        turns = images.with_rest(images.fill(conversation.turns), notes)
        conversation = replace(conversation, turns=tuple(turns))
    return Example(conversation=conversation)


def _write(example: Example, notes: Notes) -> Row:
    for turn in example.conversation.turns:
        first = turn.blocks[0] if turn.role == "assistant" and turn.blocks else None
        if isinstance(first, Text) and first.text.lstrip().startswith("<think>"):
            notes.add("converted", "a text begins with <think>, which readers of this format take for thinking")
    row: Row = {"messages": _messages(example.conversation.turns)}
    if example.conversation.tools:
        row["tools"] = write_tools(example.conversation.tools)
    return row


def _messages(turns: tuple[Turn, ...]) -> list[dict[str, Any]]:
    return write_messages(turns, objects=True, names=True, flag="train", flags=_TRAIN)


def _detect_preference(row: Row) -> float:
    return 0.95 if all(has_messages(row, field) for field in ("prompt", "chosen", "rejected")) else 0.0


def _read_preference(row: Row, notes: Notes) -> Example:
    return Example(
        conversation=read_chat(row, notes, field="prompt"),
        preferred=read_messages(row.get("chosen"), notes, "$.chosen"),
        rejected=read_messages(row.get("rejected"), notes, "$.rejected"),
    )


def _write_preference(example: Example, _: Notes) -> Row:
    row: Row = {
        "prompt": _messages(example.conversation.turns),
        "chosen": _messages(example.preferred or ()),
        "rejected": _messages(example.rejected or ()),
    }
    if example.conversation.tools:
        row["tools"] = write_tools(example.conversation.tools)
    return row


FORMATS: Final = (
    Format(
        name="messages",
        title="Hugging Face messages and tools (TRL, Axolotl, transformers)",
        columns=_COLUMNS,
        detect=_detect,
        read=_read,
        write=_write,
        json_columns=frozenset({"messages", "tools"}),
    ),
    Format(
        name="messages-preference",
        title="Hugging Face prompt, chosen and rejected (TRL)",
        columns=_PREFERENCE,
        detect=_detect_preference,
        read=_read_preference,
        write=_write_preference,
        json_columns=_PREFERENCE,
        takes_preferences=True,
    ),
)
