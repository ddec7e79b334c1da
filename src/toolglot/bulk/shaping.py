"""What the options do to an example before it is rendered: thinking, images, secrets, failed calls, and the split.

Law: pure. An example that an option leaves alone is returned as the same object.
"""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator
from hashlib import sha256
from typing import Any, Final

from msgspec.structs import replace

from toolglot.bulk.example import Example, Notes
from toolglot.bulk.options import BulkOptions
from toolglot.conversation import Block, Media, ResultPart, Text, Thinking, ToolCall, ToolResult, ToolSpec, Turn
from toolglot.masking import mask

_HOMES: Final = re.compile(r"(/home/|/Users/|[A-Za-z]:\\{1,2}Users\\{1,2})(?!user\b)[\w.\-]{1,64}")
_FAILED: Final = re.compile(r"\A\s*(?:Error\b|Traceback \(most recent call last\))", re.IGNORECASE)
_ENDINGS: Final = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


def shape(example: Example, options: BulkOptions, notes: Notes, files: dict[str, bytes]) -> Example:
    """The example as the options want it. Images that become files are put into `files`, by name."""
    if options.reasoning != "keep":
        example = _map_turns(example, lambda turns: _with_reasoning(turns, options, notes))
    if options.images != "keep":
        example = _map_blocks(example, lambda block: _with_image(block, options, notes, files))
    if options.redact:
        example = _redacted(example, notes)
    return example


def split(example: Example, options: BulkOptions) -> Iterator[Example]:
    """The rows that an example becomes: itself, or one for each turn of the model."""
    turns = example.conversation.turns
    if options.split == "conversation" or example.is_preference:
        yield example
        return
    for number, turn in enumerate(turns):
        if turn.role == "assistant":
            yield replace(example, conversation=replace(example.conversation, turns=turns[: number + 1]))


def has_failed_call(example: Example) -> bool:
    """Whether a tool call failed."""
    return any(is_failed(result) for turn in example.conversation.turns for result in turn.results)


def is_failed(result: ToolResult) -> bool:
    """Whether a result is marked as an error, or begins as errors do."""
    is_marked = result.is_error or result.error is not None or result.status == "error"
    return is_marked or _FAILED.match(result.text) is not None


def strip_nulls(value: Any) -> Any:
    """A value without fields that are null."""
    if isinstance(value, dict):
        return {key: strip_nulls(held) for key, held in value.items() if held is not None}
    if isinstance(value, list):
        return [strip_nulls(held) for held in value]
    return value


def redact_text(text: str) -> str:
    """A text without what looks like a secret, and without names of home directories."""
    return _HOMES.sub(r"\g<1>user", mask(text))


# --- turns and blocks -------------------------------------------------------------------------------


def _map_turns(example: Example, change: Callable[[tuple[Turn, ...]], tuple[Turn, ...]]) -> Example:
    turns = change(example.conversation.turns)
    same = turns is example.conversation.turns
    if not example.is_preference:
        return example if same else replace(example, conversation=replace(example.conversation, turns=turns))
    return replace(
        example,
        conversation=replace(example.conversation, turns=turns),
        preferred=change(example.preferred or ()),
        rejected=change(example.rejected or ()),
    )


def _map_blocks(example: Example, change: Callable[[Block], Block | None]) -> Example:
    def changed(turns: tuple[Turn, ...]) -> tuple[Turn, ...]:
        out = tuple(_turn(turn, change) for turn in turns)
        kept = tuple(turn for turn in out if turn.blocks)
        return turns if all(new is old for new, old in zip(out, turns, strict=True)) else kept

    return _map_turns(example, changed)


def _turn(turn: Turn, change: Callable[[Block], Block | None]) -> Turn:
    blocks = [_block(block, change) for block in turn.blocks]
    if all(new is old for new, old in zip(blocks, turn.blocks, strict=True)):
        return turn
    return replace(turn, blocks=tuple(block for block in blocks if block is not None))


def _block(block: Block, change: Callable[[Block], Block | None]) -> Block | None:
    if isinstance(block, ToolResult) and isinstance(block.content, tuple):
        parts = [change(part) for part in block.content]
        if any(new is not old for new, old in zip(parts, block.content, strict=True)):
            kept: tuple[ResultPart, ...] = tuple(part for part in parts if part is not None)  # type: ignore[misc]
            block = replace(block, content=kept)
    return change(block)


def _with_reasoning(turns: tuple[Turn, ...], options: BulkOptions, notes: Notes) -> tuple[Turn, ...]:
    last = max((number for number, turn in enumerate(turns) if turn.role == "assistant"), default=-1)
    out: list[Turn] = []
    for number, turn in enumerate(turns):
        is_kept = options.reasoning == "last" and number == last
        if is_kept or not any(isinstance(block, Thinking) for block in turn.blocks):
            out.append(turn)
            continue
        notes.add("dropped", f"thinking was dropped (reasoning={options.reasoning})", gravity="change")
        blocks = tuple(block for block in turn.blocks if not isinstance(block, Thinking))
        if blocks:
            out.append(replace(turn, blocks=blocks))
    same = len(out) == len(turns) and all(new is old for new, old in zip(out, turns, strict=True))
    return turns if same else tuple(out)


def _with_image(block: Block, options: BulkOptions, notes: Notes, files: dict[str, bytes]) -> Block | None:
    if not isinstance(block, Media) or block.kind != "image":
        return block
    if options.images == "drop":
        notes.add("dropped", "an image was dropped (images=drop)", gravity="change")
        return Text("[image]")
    if block.data is None:
        return block
    try:
        data = b64decode(block.data, validate=True)
    except (Base64Error, ValueError):
        notes.add("mismatched", "an image is not base64; it was left as it is")
        return block
    name = f"{sha256(data).hexdigest()[:32]}.{_ENDINGS.get(block.media_type, 'bin')}"
    files[name] = data
    return replace(block, data=None, url=f"images/{name}", form=None)


# --- secrets ----------------------------------------------------------------------------------------


def _redacted(example: Example, notes: Notes) -> Example:
    counts = [0]

    def text(value: str) -> str:
        masked = redact_text(value)
        counts[0] += masked != value
        return masked if masked != value else value

    out = _map_blocks(example, lambda block: _redacted_block(block, text))
    tools = tuple(_redacted_tool(tool, text) for tool in out.conversation.tools)
    if any(new is not old for new, old in zip(tools, out.conversation.tools, strict=True)):
        out = replace(out, conversation=replace(out.conversation, tools=tools))
    if out.columns:
        columns = _redacted_value(out.columns, text)
        out = out if columns == out.columns else replace(out, columns=columns)
    if counts[0]:
        notes.add("filtered", f"secrets and names of home directories were masked in {counts[0]} texts")
    return out


def _redacted_block(block: Block, text: Callable[[str], str]) -> Block:
    if isinstance(block, Text | Thinking):
        masked = text(block.text)
        return block if masked == block.text else replace(block, text=masked)
    if isinstance(block, ToolCall):
        arguments = _redacted_value(block.arguments, text)
        raw = text(block.raw_input) if block.raw_input is not None else None
        if arguments == block.arguments and raw == block.raw_input:
            return block
        return replace(block, arguments=arguments, raw_input=raw if block.arguments is None else None, form=None)
    if isinstance(block, ToolResult) and isinstance(block.content, str):
        masked = text(block.content)
        return block if masked == block.content else replace(block, content=masked)
    return block


def _redacted_tool(tool: ToolSpec, text: Callable[[str], str]) -> ToolSpec:
    masked = text(tool.description) if tool.description else tool.description
    return tool if masked == tool.description else replace(tool, description=masked)


def _redacted_value(value: Any, text: Callable[[str], str], level: int = 0) -> Any:
    if isinstance(value, str):
        return text(value)
    if level > 200:
        return value
    if isinstance(value, dict):
        return {key: _redacted_value(held, text, level + 1) for key, held in value.items()}
    if isinstance(value, list):
        return [_redacted_value(held, text, level + 1) for held in value]
    return value
