"""Requests of the Anthropic Messages protocol (`POST /v1/messages`), both ways."""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import (
    ChoiceMode,
    Conversation,
    Extra,
    Issuer,
    Options,
    OutputFormat,
    Reasoning,
    ReasoningMode,
    Role,
    Sampling,
    Text,
    ToolChoice,
    ToolSpec,
    Turn,
)
from toolglot.errors import InputError
from toolglot.wire.anthropic.blocks import PROTOCOL, read_content, write_blocks
from toolglot.wire.reading import (
    Fields,
    each,
    expected,
    inside,
    leftover,
    note,
    noted,
    one_of,
    optional,
    optional_number,
    optional_texts,
    present,
    required,
    restored,
)

_BODY = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "max_tokens", "temperature", "top_p", "top_k"}
    | {"stop_sequences", "stream", "thinking", "output_config", "metadata"}
)
_MESSAGE = frozenset({"role", "content"})
_TOOL = frozenset({"name", "description", "input_schema", "type", "strict"})
_CHOICE = frozenset({"type", "name", "disable_parallel_tool_use"})
_THINKING = frozenset({"type", "budget_tokens"})
_OUTPUT = frozenset({"effort", "format"})
_METADATA = frozenset({"user_id"})
_ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant", "system": "system"}
_CHOICES: Final[dict[str, ChoiceMode]] = {"auto": "auto", "none": "none", "any": "required", "tool": "named"}
_CHOICES_BACK: Final = {**{mode: written for written, mode in _CHOICES.items()}, "allowed": "auto"}
_MODES: Final[dict[str, ReasoningMode]] = {
    "enabled": "on",
    "disabled": "off",
    "adaptive": "adaptive",
    "between_tools": "between_tools",
}
_MODES_BACK: Final = {mode: written for written, mode in _MODES.items()}
_FORMAT = frozenset({"type", "schema"})


def decode(body: Fields) -> Conversation:
    """A request body as a conversation. Nothing is repaired; what is of the wrong type is an error."""
    try:
        turns = _read_system(body)
        turns += each(required(body, "messages", list), _read_message, ".messages")
        return Conversation(
            tuple(turns),
            tuple(each(optional(body, "tools", list) or (), _read_tool, ".tools")),
            _read_options(body),
            optional(body, "model", str) or "",
            _read_rest(body),
        )
    except InputError as error:
        raise inside(error, "$") from None


def _read_rest(body: Fields) -> Extra | None:
    """What the body says that has no canonical place."""
    rest = leftover(body, _BODY, PROTOCOL)
    written: Fields = {key: [] for key in ("tools", "stop_sequences") if body.get(key) == []}
    for key, known in (("metadata", _METADATA), ("output_config", _OUTPUT)):
        if type(body.get(key)) is dict:
            nested = leftover(body[key], known, PROTOCOL)
            written[key] = nested[PROTOCOL] if nested else {}
    return noted(rest, PROTOCOL, **written)


def _read_system(body: Fields) -> list[Turn]:
    system: Any = body.get("system")
    if system is None:
        return []
    if type(system) is not str and type(system) is not list:
        raise expected("a string or an array of text blocks", system, ".system")
    form = "text" if type(system) is str else None
    extra = noted(None, PROTOCOL, content=form, system="top")
    return [Turn("system", read_content(system, ".system"), extra=extra)]


def _read_message(fields: Fields) -> Turn:
    role = one_of(fields, "role", _ROLES)
    content: Any = fields.get("content")
    blocks = read_content(content)
    extra = leftover(fields, _MESSAGE, PROTOCOL, 2)
    if type(content) is str:
        extra = noted(extra, PROTOCOL, content="text")
    if role == "system":
        extra = noted(extra, PROTOCOL, system="message")
    return Turn(role, blocks, extra=extra)


def _read_tool(fields: Fields) -> ToolSpec:
    kind = optional(fields, "type", str)
    if kind is not None and kind != "custom":
        name = optional(fields, "name", str) or ""
        return ToolSpec(name, type=kind, issuer=Issuer(PROTOCOL), extra={PROTOCOL: {"~tool": fields}})
    return ToolSpec(
        required(fields, "name", str),
        optional(fields, "description", str),
        optional(fields, "input_schema", dict),
        strict=optional(fields, "strict", bool),
        extra=noted(leftover(fields, _TOOL, PROTOCOL), PROTOCOL, type=kind),
    )


def _read_options(body: Fields) -> Options:
    metadata = optional(body, "metadata", dict) or {}
    try:
        user = optional(metadata, "user_id", str)
    except InputError as error:
        raise inside(error, ".metadata") from None
    return Options(
        sampling=Sampling(
            max_tokens=optional(body, "max_tokens", int),
            temperature=optional_number(body, "temperature"),
            top_p=optional_number(body, "top_p"),
            top_k=optional(body, "top_k", int),
            stop=optional_texts(body, "stop_sequences"),
        ),
        reasoning=_read_reasoning(body),
        tool_choice=_read_choice(body),
        output=_read_output(body),
        stream=optional(body, "stream", bool),
        user=user,
    )


def _read_choice(body: Fields) -> ToolChoice | None:
    fields = optional(body, "tool_choice", dict)
    if fields is None:
        return None
    try:
        mode = _CHOICES.get(required(fields, "type", str))
        if mode is None:
            return ToolChoice(extra={PROTOCOL: {"~choice": fields}})
        names = (required(fields, "name", str),) if mode == "named" else ()
        serial = optional(fields, "disable_parallel_tool_use", bool)
    except InputError as error:
        raise inside(error, ".tool_choice") from None
    known = _CHOICE if names else _CHOICE - {"name"}
    return ToolChoice(mode, names, None if serial is None else not serial, leftover(fields, known, PROTOCOL))


def _read_reasoning(body: Fields) -> Reasoning | None:
    thinking, output = optional(body, "thinking", dict), optional(body, "output_config", dict) or {}
    try:
        effort = optional(output, "effort", str)
    except InputError as error:
        raise inside(error, ".output_config") from None
    if thinking is None:
        return Reasoning(effort=effort) if effort is not None else None
    try:
        mode = _MODES.get(required(thinking, "type", str))
        if mode is None:
            return Reasoning(effort=effort, extra={PROTOCOL: {"~thinking": thinking}})
        budget = optional(thinking, "budget_tokens", int)
    except InputError as error:
        raise inside(error, ".thinking") from None
    return Reasoning(mode, effort, budget, extra=leftover(thinking, _THINKING, PROTOCOL))


def _read_output(body: Fields) -> OutputFormat | None:
    output = optional(body, "output_config", dict)
    format = output.get("format") if output is not None else None
    if format is None:
        return None
    if type(format) is not dict:
        raise expected("an object", format, ".output_config.format")
    if format.get("type") != "json_schema" or type(format.get("schema")) is not dict:
        return OutputFormat(extra={PROTOCOL: {"~format": format}})
    return OutputFormat("json_schema", schema=format["schema"], extra=leftover(format, _FORMAT, PROTOCOL))


# --- writing ----------------------------------------------------------------------------------------


def encode(conversation: Conversation) -> Fields:
    """A conversation as a request body. What the protocol has no place for is not written."""
    options = conversation.options
    body: Fields = {"model": conversation.model} if conversation.model else {}
    top, turns = _split_system(conversation.turns)
    if top:
        body["system"] = _write_system(top)
    body["messages"] = [_write_message(turn) for turn in turns]
    if conversation.tools or note(conversation.extra, PROTOCOL, "tools") is not None:
        body["tools"] = [_write_tool(tool) for tool in conversation.tools]
    if options.tool_choice is not None:
        body["tool_choice"] = _write_choice(options.tool_choice)
    _write_sampling(body, options.sampling, conversation.extra)
    _write_reasoning_and_output(body, options, conversation.extra)
    if options.stream is not None:
        body["stream"] = options.stream
    metadata = note(conversation.extra, PROTOCOL, "metadata")
    if options.user is not None or metadata is not None:
        user: Fields = {"user_id": options.user} if options.user is not None else {}
        body["metadata"] = restored(user, {PROTOCOL: metadata or {}}, PROTOCOL)
    return restored(body, conversation.extra, PROTOCOL)


def _split_system(turns: tuple[Turn, ...]) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """The system turns at the head, and the rest. A system message that was sent as one stays one."""
    end = 0
    for turn in turns:
        if turn.role not in ("system", "developer") or note(turn.extra, PROTOCOL, "system") == "message":
            break
        end += 1
    return turns[:end], turns[end:]


def _write_system(turns: tuple[Turn, ...]) -> str | list[Fields]:
    blocks = [block for turn in turns for block in turn.blocks]
    if len(blocks) == 1 and note(turns[0].extra, PROTOCOL, "content") == "text" and isinstance(blocks[0], Text):
        return blocks[0].text
    return write_blocks(blocks)


def _write_message(turn: Turn) -> Fields:
    role = "user" if turn.role == "tool" else "system" if turn.role == "developer" else turn.role
    content: Any = write_blocks(turn.blocks)
    if note(turn.extra, PROTOCOL, "content") == "text" and len(turn.blocks) == 1:
        (block,) = turn.blocks
        content = block.text if isinstance(block, Text) else content
    return restored({"role": role, "content": content}, turn.extra, PROTOCOL)


def _write_tool(tool: ToolSpec) -> Fields:
    verbatim = note(tool.extra, PROTOCOL, "tool")
    if verbatim is not None:
        fields: Fields = verbatim
        return fields
    fields = {"name": tool.name}
    kind = note(tool.extra, PROTOCOL, "type")
    if kind is not None:
        fields["type"] = kind
    if tool.description is not None:
        fields["description"] = tool.description
    if tool.parameters is not None:
        fields["input_schema"] = tool.parameters
    if tool.strict is not None:
        fields["strict"] = tool.strict
    return restored(fields, tool.extra, PROTOCOL)


def _write_choice(choice: ToolChoice) -> Fields:
    verbatim: Fields | None = note(choice.extra, PROTOCOL, "choice")
    if verbatim is not None:
        return verbatim
    fields: Fields = {"type": _CHOICES_BACK[choice.mode]}
    if choice.mode == "named":
        fields["name"] = choice.names[0]
    if choice.parallel is not None:
        fields["disable_parallel_tool_use"] = not choice.parallel
    return restored(fields, choice.extra, PROTOCOL)


def _write_sampling(body: Fields, sampling: Sampling, extra: Extra | None) -> None:
    settings = {
        "max_tokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
    }
    body.update(present(settings))
    if sampling.stop or note(extra, PROTOCOL, "stop_sequences") is not None:
        body["stop_sequences"] = list(sampling.stop)


def _write_reasoning_and_output(body: Fields, options: Options, extra: Extra | None) -> None:
    config: Fields = {}
    reasoning = options.reasoning
    unknown = note(reasoning.extra, PROTOCOL, "thinking") if reasoning is not None else None
    if unknown is not None:
        body["thinking"] = unknown
    if reasoning is not None and reasoning.mode is not None:
        fields: Fields = {"type": _MODES_BACK[reasoning.mode]}
        if reasoning.budget_tokens is not None:
            fields["budget_tokens"] = reasoning.budget_tokens
        body["thinking"] = restored(fields, reasoning.extra, PROTOCOL)
    if reasoning is not None and reasoning.effort is not None:
        config["effort"] = reasoning.effort
    if options.output is not None:
        verbatim = note(options.output.extra, PROTOCOL, "format")
        if verbatim is not None:
            config["format"] = verbatim
        elif options.output.schema is not None:
            format = {"type": "json_schema", "schema": options.output.schema}
            config["format"] = restored(format, options.output.extra, PROTOCOL)
    written = note(extra, PROTOCOL, "output_config")
    if config or written is not None:
        body["output_config"] = restored(config, {PROTOCOL: written or {}}, PROTOCOL)
