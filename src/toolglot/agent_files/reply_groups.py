"""The records of a Claude Code session as messages: those of one reply together, behind it the results of its calls.

The records of parallel calls and their results need not be on one path: each result hangs on the record of its call,
and the next record of the reply may too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from toolglot.agent_files.json_lines import list_of, object_of, text_of
from toolglot.agent_files.parent_chains import ChainRecord

SPOKEN: Final = frozenset({"user", "assistant"})


def chain_record(line: int, value: dict[str, Any]) -> ChainRecord | None:
    """A record with a parent; None for any other."""
    if ("parentUuid" not in value and text_of(value, "type") not in SPOKEN) or not text_of(value, "uuid"):
        return None
    parent = value.get("parentUuid")
    is_root = value.get("subtype") == "compact_boundary"
    return ChainRecord(line, text_of(value, "uuid"), parent if isinstance(parent, str) else None, value, is_root)


def message_of(record: ChainRecord) -> dict[str, Any]:
    return object_of(record.value, "message")


def call_ids(message: dict[str, Any]) -> list[str]:
    return [text_of(block, "id") for block in list_of(message, "content") if text_of(block, "type") == "tool_use"]


def result_ids(message: dict[str, Any]) -> list[str]:
    return [
        text_of(block, "tool_use_id")
        for block in list_of(message, "content")
        if text_of(block, "type") == "tool_result"
    ]


def blocks_of(content: Any) -> list[Any]:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return content if isinstance(content, list) else []


def plain_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n\n".join(text_of(block, "text") for block in blocks_of(content) if text_of(block, "text"))


def group_replies(chain: Sequence[ChainRecord], records: Sequence[ChainRecord]) -> list[list[ChainRecord]]:
    """The records of the chain in groups, with those of `records` that belong to its replies."""
    by_reply: dict[str, list[ChainRecord]] = {}
    results: dict[str, list[ChainRecord]] = {}
    for record in records:
        reply = _reply_of(record)
        if reply:
            by_reply.setdefault(reply, []).append(record)
        elif record.value.get("type") == "user" and record.parent is not None and result_ids(message_of(record)):
            results.setdefault(record.parent, []).append(record)
    groups: list[list[ChainRecord]] = []
    used: set[int] = set()
    on_chain = {record.line for record in chain}
    for record in chain:
        if record.line in used:
            continue
        reply = _reply_of(record)
        group = [each for each in by_reply[reply] if each.line not in used] if reply in by_reply else [record]
        used |= {each.line for each in group}
        groups.append(group)
        if record.value.get("type") == "assistant":
            calls = {id for each in group for id in call_ids(message_of(each))}
            for answer in (answer for each in group for answer in results.get(each.id, ())):
                if (
                    answer.line not in used
                    and answer.line not in on_chain
                    and calls & {*result_ids(message_of(answer))}
                ):
                    used.add(answer.line)
                    groups.append([answer])
    return groups


def _reply_of(record: ChainRecord) -> str:
    return text_of(message_of(record), "id") if record.value.get("type") == "assistant" else ""
