"""Fields of one protocol that another cannot express: reported, since they are not carried.

`extra` and `form` of a conversation and its parts return to their own protocol and nowhere else. Each field is reported
once, with how often it occurs. Empty fields (null, "", [], {}) are not reported.
"""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Conversation, Extra, Form, Media, Options, Reply, ToolResult, Turn
from toolglot.conversation.cache_markers import marker_fields, why_no_markers
from toolglot.conversation.field_gravity import gravity_of_field, unknown_fields
from toolglot.conversation.report import Gravity
from toolglot.profiles import Profile
from toolglot.protocols.base import get

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
"""Fields of a reply that do not matter to a client, or that are carried in another form."""
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
"""Fields of a reply's body that repeat the request (OpenAI's Responses do so)."""
_MEASURED: Final = frozenset(
    {"total_duration", "load_duration", "prompt_eval_duration", "eval_duration", "billed_units", "createTime"}
    | {"promptTokensDetails", "candidatesTokensDetails", "trafficType"}
)
"""Fields of a reply that measure its making: how long it took, what is billed, how counts that are carried divide."""
_REASONING: Final = "the reasoning settings"
_EMPTY: Final[tuple[object, ...]] = (None, "", [], {})


_Counts = dict[tuple[str, str, Gravity], int]
"""How often a field occurs: by what it is on, its name, and how grave it is that it is not carried."""


def unwritten(
    value: Conversation | Reply, protocol: str, target: Profile | None = None
) -> list[tuple[str, str, Gravity]]:
    """Every field that a protocol will not show: the field, what to report of it, and how grave that is.

    target: who gets a request.
    """
    counts: _Counts = {}
    if isinstance(value, Reply):
        _count_in_reply(value, protocol, counts)
    else:
        _count_in_request(value, protocol, counts)
    if not counts:
        return []
    markers = marker_fields() if target is not None else frozenset[str]()
    found: list[tuple[str, str, Gravity]] = []
    for (holder, field, gravity), count in counts.items():
        name, times = field[:80], "" if count == 1 else f" ({count} times)"
        if target is not None and field in markers:
            found.append((name, f"{why_no_markers(target)}; {name} on {holder} was dropped{times}", gravity))
        else:
            found.append((name, f"{name} on {holder} has no place there{times}", gravity))
    return found


def _count_in_request(conversation: Conversation, protocol: str, counts: _Counts) -> None:
    for holder, extra, form in _holders(conversation):
        if extra is not None and protocol in extra:
            extra = {name: fields for name, fields in extra.items() if name != protocol}  # noqa: PLW2901
        for field, written in unknown_fields(extra, form if form is None or form.protocol != protocol else None):
            key = (holder, field, gravity_of_field(field, written))
            counts[key] = counts.get(key, 0) + 1
    reasoning, output = conversation.options.reasoning, conversation.options.output
    if reasoning is not None and reasoning.opaque is not None and reasoning.opaque.protocol != protocol:
        counts[_REASONING, "thinking", "loss"] = 1
    if output is not None and output.description is not None and not get(protocol).has_schema_description:
        counts["the output format", "description", "loss"] = 1
    if not get(protocol).has_image_detail:
        _count_details(conversation, counts)


def _count_details(conversation: Conversation, counts: _Counts) -> None:
    """How closely to look at images, for a protocol that has no field for that."""
    for turn in conversation.turns:
        for block in turn.blocks:
            if type(block) is Media and block.detail is not None:
                key: tuple[str, str, Gravity] = ("a block", "detail", "loss")
                counts[key] = counts.get(key, 0) + 1
            elif type(block) is ToolResult and type(block.content) is tuple:
                for part in block.content:
                    if type(part) is Media and part.detail is not None:
                        key = ("a part of a result", "detail", "loss")
                        counts[key] = counts.get(key, 0) + 1


def _count_in_reply(reply: Reply, protocol: str, counts: _Counts) -> None:
    for holder, extra, _ in _holders(reply):
        for written_in, fields in (extra or {}).items():
            # Most have nothing to report.
            if written_in == protocol or _HOUSEKEEPING.issuperset(fields):
                continue
            for name, written in fields.items():
                if name in _HOUSEKEEPING or (not written and written in _EMPTY):
                    continue
                is_light = name in _MEASURED or (holder == "the body" and name in _ECHOED)
                key = (holder, name, "housekeeping" if is_light else gravity_of_field(name, written))
                counts[key] = counts.get(key, 0) + 1


_Holder = tuple[str, Extra | None, Form | None]
"""A value's name for the report, and its fields that toolglot does not know."""


def _holders(value: Conversation | Reply) -> list[_Holder]:
    found: list[_Holder] = []
    if value.extra is not None or value.form is not None:
        found.append(("the body", value.extra, value.form))
    if isinstance(value, Reply):
        _add_answer(value, found)
        _add_turns((value.turn,), found)
        if value.usage is not None and value.usage.extra is not None:
            found.append(("the usage", value.usage.extra, None))
        return found
    _add_turns(value.turns, found)
    for tool in value.tools:
        if tool.extra is not None or tool.form is not None:
            found.append(("a tool", tool.extra, tool.form))  # noqa: PERF401 - a comprehension is slower for none
    _add_options(value.options, found)
    return found


def _add_options(options: Options, found: list[_Holder]) -> None:
    choice, reasoning, output = options.tool_choice, options.reasoning, options.output
    if choice is not None:
        found.append(("the tool choice", choice.extra, choice.form))
    if reasoning is not None:
        found.append((_REASONING, reasoning.extra, reasoning.form))
    if output is not None:
        found.append(("the output format", output.extra, output.form))


def _add_answer(reply: Reply, found: list[_Holder]) -> None:
    """The fields around the answer, where a protocol wraps it in an object of its own."""
    form = reply.form
    if form is not None and (known := form.answer_fields()):
        found.append(("the answer", {form.protocol: dict(known)}, None))


def _add_turns(turns: tuple[Turn, ...], found: list[_Holder]) -> None:
    for turn in turns:
        if turn.extra is not None or turn.form is not None:
            found.append(("a message", turn.extra, turn.form))
        for block in turn.blocks:
            if block.extra is not None or block.form is not None:
                found.append(("a block", block.extra, block.form))
            if type(block) is ToolResult and type(block.content) is tuple:
                for part in block.content:
                    if part.extra is not None or part.form is not None:
                        found.append(("a part of a result", part.extra, part.form))  # noqa: PERF401 - as above
