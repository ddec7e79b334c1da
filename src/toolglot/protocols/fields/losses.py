"""Fields of one protocol that no other has a place for: reported, since they are not carried.

`extra` of a conversation and its parts returns to its own protocol and nowhere else. Each field is reported once,
with how often it stood there. Fields that say nothing (null, empty) are not worth a word.
"""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Conversation, Extra, Options, Reply, ToolResult, Turn
from toolglot.conversation.field_gravity import LEFT_OVER, gravity_of_field, written_fields
from toolglot.conversation.report import Gravity

_NOTE: Final = "~"
_AROUND: Final = ("~choice", "~candidate")
_HOUSEKEEPING: Final = frozenset(
    {
        "object",
        "created",
        "created_at",
        "index",
        "type",
        "id",
        "status",
        "total_tokens",
        "totalTokenCount",
        "totalTokens",
    }
    | {"summary", "content", "system_fingerprint", "metrics", "stop_sequence", "parallel_tool_calls"}
)
"""Fields of a reply that tell a client nothing, or that are carried in another form."""
_ECHOED: Final = frozenset(
    {
        "background",
        "conversation",
        "frequency_penalty",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
    }
    | {"presence_penalty", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_retention", "reasoning"}
    | {"safety_identifier", "store", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p"}
    | {"truncation", "user", "completed_at"}
)
"""Fields of a reply's body that repeat what the client itself asked for (OpenAI's Responses do so)."""
_MEASURED: Final = frozenset(
    {"total_duration", "load_duration", "prompt_eval_duration", "eval_duration", "billed_units", "createTime"}
    | {"promptTokensDetails", "candidatesTokensDetails", "trafficType"}
)
"""Fields of a reply that measure its making: how long it took, what is billed, how counts that are carried divide."""
_REASONING: Final = "the reasoning settings"
_UNKNOWN_THINKING: Final = "~thinking"
"""The note of thinking of a kind that nobody knows."""
_NOTHING: Final[frozenset[str]] = frozenset()
_COMMON_NOTES: Final = frozenset({"~choice", "~finish_reason", "~content", "~system", "~arguments", "~read"})
_QUIET: Final = _HOUSEKEEPING | _COMMON_NOTES
"""What nearly all that is left over of a reply is: it is seen at a glance that there is nothing to tell."""
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


def unwritten(value: Conversation | Reply, protocol: str) -> list[tuple[str, str, Gravity]]:
    """Every field that a protocol will not show: the field, what to report of it, and how grave that is."""
    counts: dict[tuple[str, str, Gravity], int] = {}
    silent, quiet = (_HOUSEKEEPING, _QUIET) if type(value) is Reply else (_NOTHING, _COMMON_NOTES)
    for place, extra in _extras(value):
        for written_in, fields in extra.items():
            if written_in == protocol or quiet.issuperset(fields):
                continue
            for field, written in fields.items():
                if field[:1] == _NOTE:
                    if field[1:2] != _NOTE:
                        continue
                    field = field[1:]  # noqa: PLW2901 - as the client wrote it
                if field not in silent and (written or written not in _EMPTY):
                    is_light = silent is _HOUSEKEEPING and (
                        field in _MEASURED or (place == "the body" and field in _ECHOED)
                    )
                    key = (place, field, "housekeeping" if is_light else gravity_of_field(field, written))
                    counts[key] = counts.get(key, 0) + 1
            if silent is _NOTHING and not LEFT_OVER.isdisjoint(fields):
                inner = {field: written for field, written in fields.items() if field in LEFT_OVER}
                for field, written in written_fields(inner):
                    key = (place, field, gravity_of_field(field, written))
                    counts[key] = counts.get(key, 0) + 1
            if place == _REASONING and fields.get(_UNKNOWN_THINKING):
                counts[place, "thinking", "loss"] = 1
    if not counts:
        return []
    return [
        (field[:80], f"{field[:80]} on {place} has no place there{'' if count == 1 else f' ({count} times)'}", gravity)
        for (place, field, gravity), count in counts.items()
    ]


def _extras(value: Conversation | Reply) -> list[tuple[str, Extra]]:
    found: list[tuple[str, Extra]] = [] if value.extra is None else [("the body", value.extra)]
    if isinstance(value, Reply):
        if value.extra is not None:
            _add_answer(value.extra, found)
        _add_turns((value.turn,), found)
        if value.usage is not None and value.usage.extra is not None:
            found.append(("the usage", value.usage.extra))
        return found
    _add_turns(value.turns, found)
    for tool in value.tools:
        if tool.extra is not None:
            found.append(("a tool", tool.extra))  # noqa: PERF401 - a comprehension is slower where there are none
    _add_options(value.options, found)
    return found


def _add_options(options: Options, found: list[tuple[str, Extra]]) -> None:
    choice, reasoning, output = options.tool_choice, options.reasoning, options.output
    if choice is not None and choice.extra is not None:
        found.append(("the tool choice", choice.extra))
    if reasoning is not None and reasoning.extra is not None:
        found.append((_REASONING, reasoning.extra))
    if output is not None and output.extra is not None:
        found.append(("the output format", output.extra))


def _add_answer(extra: Extra, found: list[tuple[str, Extra]]) -> None:
    """What stood beside the answer, where a protocol wraps it in an object of its own."""
    for protocol, fields in extra.items():
        for note in _AROUND:
            around = fields.get(note)
            if isinstance(around, dict):
                found.append(("the answer", {protocol: around}))


def _add_turns(turns: tuple[Turn, ...], found: list[tuple[str, Extra]]) -> None:
    for turn in turns:
        if turn.extra is not None:
            found.append(("a message", turn.extra))
        for block in turn.blocks:
            if block.extra is not None:
                found.append(("a block", block.extra))
            if type(block) is ToolResult and type(block.content) is tuple:
                found += [("a part of a result", part.extra) for part in block.content if part.extra is not None]
