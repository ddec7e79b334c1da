"""What a request of the Anthropic Messages protocol wants to be done to its context, and the reply about it.

`context_management.edits` clears old results and thinking, and compacts above a threshold; `compaction` compacts at
once. A compaction block stands for all messages before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Conversation, Usage
from toolglot.conversation.context_requests import (
    AppliedEdit,
    ClearResults,
    ClearThinking,
    CompactionRequest,
    ContextEdit,
    ContextRequest,
)
from toolglot.protocols.anthropic.form import PROTOCOL, AnthropicReply
from toolglot.protocols.context_form import ContextForm
from toolglot.protocols.fields.reading import Fields

_FIELDS: Final = ("context_management", "compaction")
_COMPACT: Final = "compact_"
_CLEAR_RESULTS: Final = "clear_tool_uses_"
_CLEAR_THINKING: Final = "clear_thinking_"
_COMPACT_TOKENS: Final = 150_000
_CLEAR_TOKENS: Final = 100_000
"""The triggers of edits that name none."""
_MAX_EDITS: Final = 20


def read(conversation: Conversation) -> ContextRequest | None:
    """What the request wants; None: nothing."""
    own = (conversation.extra or {}).get(PROTOCOL, {})
    if not any(own.get(field) for field in _FIELDS):
        return None
    now, management = own.get("compaction"), own.get("context_management")
    if type(now) is dict and now.get("type") == "summarize":
        return ContextRequest(CompactionRequest(None, _text(now.get("instructions")), stops_after=True))
    listed = management.get("edits") if type(management) is dict else None
    compaction: CompactionRequest | None = None
    edits: list[ContextEdit] = []
    unknown: list[str] = ["compaction"] if now else []
    for edit in listed[:_MAX_EDITS] if type(listed) is list else ():
        kind = edit.get("type") if type(edit) is dict else None
        if type(kind) is not str:
            unknown.append("an edit without a type")
        elif kind.startswith(_COMPACT):
            compaction = _compaction(edit)
        elif kind.startswith(_CLEAR_RESULTS):
            edits.append(_clear_results(kind, edit))
        elif kind.startswith(_CLEAR_THINKING):
            edits.append(ClearThinking(kind, _kept_turns(edit.get("keep", 1))))
        else:
            unknown.append(kind[:80])
    return ContextRequest(compaction, tuple(edits), tuple(unknown))


def _compaction(edit: Fields) -> CompactionRequest:
    trigger = _number(edit.get("trigger"), "input_tokens")
    return CompactionRequest(
        _COMPACT_TOKENS if trigger is None else trigger,
        _text(edit.get("instructions")),
        stops_after=edit.get("pause_after_compaction") is True,
    )


def _clear_results(kind: str, edit: Fields) -> ClearResults:
    trigger = edit.get("trigger")
    tokens, calls = _number(trigger, "input_tokens"), _number(trigger, "tool_uses")
    keep, inputs = _number(edit.get("keep"), "tool_uses"), edit.get("clear_tool_inputs")
    return ClearResults(
        kind,
        _CLEAR_TOKENS if tokens is None and calls is None else tokens,
        calls,
        3 if keep is None else keep,
        _number(edit.get("clear_at_least"), "input_tokens") or 0,
        _names(edit.get("exclude_tools")),
        inputs if type(inputs) is bool else _names(inputs) or False,
    )


def _number(value: Any, kind: str) -> int | None:
    """The number of a limit of this type."""
    if type(value) is not dict or value.get("type") != kind:
        return None
    number = value.get("value")
    return number if type(number) is int and number >= 0 else None


def _kept_turns(keep: Any) -> int | None:
    if keep == "all" or (type(keep) is dict and keep.get("type") == "all"):
        return None
    number = keep if type(keep) is int else _number(keep, "thinking_turns")
    return number if number is not None and number > 0 else 1


def _names(value: Any) -> frozenset[str]:
    return frozenset(name for name in value if type(name) is str) if type(value) is list else frozenset()


def _text(value: Any) -> str:
    return value.strip() if type(value) is str else ""


def without(conversation: Conversation) -> Conversation:
    """The conversation without those wishes."""
    extra = conversation.extra or {}
    own = {field: value for field, value in extra.get(PROTOCOL, {}).items() if field not in _FIELDS}
    others = {protocol: fields for protocol, fields in extra.items() if protocol != PROTOCOL}
    return replace(conversation, extra=({**others, PROTOCOL: own} if own else others) or None)


def reply_fields(applied: Sequence[AppliedEdit]) -> Fields:
    """The field of a reply that says what was done."""
    return {"context_management": {"applied_edits": [_applied(edit) for edit in applied]}}


def _applied(edit: AppliedEdit) -> Fields:
    count = "cleared_thinking_turns" if edit.is_thinking else "cleared_tool_uses"
    return {"type": edit.kind, count: edit.cleared, "cleared_input_tokens": edit.tokens}


def compacted_usage(usage: Usage | None, summarised: Usage, *, goes_on: bool) -> Usage:
    """The counts of a reply that begins with a compaction: what that took is listed, and not in the sum."""
    own = usage or Usage()
    turns = [_iteration("compaction", summarised), *([_iteration("message", own)] if goes_on else [])]
    extra = own.extra or {}
    rest = replace(own, extra={**extra, PROTOCOL: {**extra.get(PROTOCOL, {}), "iterations": turns}})
    return rest if goes_on else replace(rest, input_tokens=0, output_tokens=0)


def _iteration(kind: str, usage: Usage) -> Fields:
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    return {
        "type": kind,
        "input_tokens": max((usage.input_tokens or 0) - cached, 0),
        "output_tokens": usage.output_tokens or 0,
        "cache_read_input_tokens": usage.cache_read_tokens or 0,
        "cache_creation_input_tokens": usage.cache_write_tokens or 0,
    }


CONTEXT: Final = ContextForm(
    read=read,
    without=without,
    usage=compacted_usage,
    reply_fields=reply_fields,
    shows_summary=True,
    stop="pause",
    stop_form=AnthropicReply("compaction"),
)
