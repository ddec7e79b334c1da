"""Requests of the Anthropic Messages protocol (`POST /v1/messages`), both ways."""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import (
    Block,
    ChoiceMode,
    Conversation,
    Extra,
    Options,
    OutputFormat,
    Reasoning,
    ReasoningMode,
    Role,
    Text,
    ToolChoice,
    ToolSpec,
    Turn,
)
from toolglot.conversation.tool_memory import written_tools
from toolglot.errors import InputError
from toolglot.profiles import Profile
from toolglot.protocols.anthropic.blocks import PROTOCOL, READERS, read_content, write_blocks
from toolglot.protocols.fields.function_tools import as_it_came, is_foreign, no_parameters, provider_tool
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    expected,
    from_root,
    held,
    held_or_none,
    leftover,
    note,
    noted,
    one_of,
    optional,
    required,
    rest_of,
    restored,
    with_rest,
)
from toolglot.protocols.fields.sampling import read_sampling, write_sampling

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
_SAMPLING: Final = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop": "stop_sequences",
}


@from_root
def decode(body: Fields) -> Conversation:
    """A request body as a conversation. Nothing is repaired; what is of the wrong type is an error."""
    turns = _read_system(body)
    turns += each(required(body, "messages", list), _read_message, ".messages")
    return Conversation(
        tuple(turns),
        tuple(each(optional(body, "tools", list) or (), _read_tool, ".tools")),
        _read_options(body),
        optional(body, "model", str) or "",
        _read_rest(body),
    )


_NOTED: Final = frozenset({"stop_sequences", "metadata", "output_config"})


def _read_rest(body: Fields) -> Extra | None:
    """What the body says that has no canonical place."""
    rest = leftover(body, _BODY, PROTOCOL)
    if _NOTED.isdisjoint(body) and body.get("tools") != []:
        return rest
    written: Fields = {key: [] for key in ("tools", "stop_sequences") if body.get(key) == []}
    for key, known in (("metadata", _METADATA), ("output_config", _OUTPUT)):
        if type(body.get(key)) is dict:
            written[key] = rest_of(body[key], known) or {}
    return noted(rest, PROTOCOL, **written)


def _read_system(body: Fields) -> list[Turn]:
    system: Any = body.get("system")
    if system is None:
        return []
    if type(system) is not str and type(system) is not list:
        raise expected("a string or an array of text blocks", system, ".system")
    own = {"~content": "text", "~system": "top"} if type(system) is str else {"~system": "top"}
    extra: Extra = {PROTOCOL: own}
    return [Turn("system", read_content(system, ".system"), extra=extra)]


def _read_message(fields: Fields) -> Turn:
    try:
        role, content = fields["role"], fields["content"]
        if len(fields) == 2 and type(content) is list and (role == "user" or role == "assistant"):
            blocks: list[Block] = []
            for block in content:
                blocks.append(READERS[block["type"]](block))  # noqa: PERF401 - a comprehension is slower for so few
            return Turn(role, tuple(blocks))  # as nearly all are written
        if len(fields) == 2 and type(content) is str and (role == "user" or role == "assistant"):
            return Turn(role, (Text(content),), extra={PROTOCOL: {"~content": "text"}})
    except (KeyError, TypeError, InputError):
        return _read_odd_message(fields)
    return _read_odd_message(fields)


def _read_odd_message(fields: Fields) -> Turn:
    """A message in any form, or where in it a mistake is."""
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
    name, described, given = fields.get("name"), fields.get("description"), fields.get("input_schema")
    if len(fields) == 3 and type(name) is str and type(described) is str and type(given) is dict:
        return ToolSpec(name, described, given)  # as nearly all are written
    kind = optional(fields, "type", str)
    if kind is not None and kind != "custom":
        return provider_tool(fields, PROTOCOL, kind, optional(fields, "name", str) or "")
    description, schema = optional(fields, "description", str), optional(fields, "input_schema", dict)
    strict = optional(fields, "strict", bool)
    read = 1 + (kind is not None) + (description is not None) + (schema is not None) + (strict is not None)
    extra = leftover(fields, _TOOL, PROTOCOL, read)
    if kind is not None or schema is None:
        extra = noted(extra, PROTOCOL, type=kind, no_parameters=True if schema is None else None)
    return ToolSpec(required(fields, "name", str), description, schema, strict=strict, extra=extra)


def _read_options(body: Fields) -> Options:
    return Options(
        sampling=read_sampling(body, _SAMPLING),
        reasoning=_read_reasoning(body) if "thinking" in body or "output_config" in body else None,
        tool_choice=held_or_none(body, "tool_choice", _read_choice) if "tool_choice" in body else None,
        output=held_or_none(body, "output_config", _read_output) if "output_config" in body else None,
        stream=optional(body, "stream", bool),
        user=held_or_none(body, "metadata", _read_user) if "metadata" in body else None,
    )


def _read_output(config: Fields) -> OutputFormat | None:
    return held_or_none(config, "format", _read_format)


def _read_user(metadata: Fields) -> str | None:
    return optional(metadata, "user_id", str)


def _read_choice(fields: Fields) -> ToolChoice:
    mode = _CHOICES.get(required(fields, "type", str))
    if mode is None:
        return ToolChoice(extra={PROTOCOL: {"~choice": fields}})
    names = (required(fields, "name", str),) if mode == "named" else ()
    serial = optional(fields, "disable_parallel_tool_use", bool)
    known = _CHOICE if names else _CHOICE - {"name"}
    return ToolChoice(mode, names, None if serial is None else not serial, leftover(fields, known, PROTOCOL))


def _read_reasoning(body: Fields) -> Reasoning | None:
    effort = held_or_none(body, "output_config", lambda config: optional(config, "effort", str))
    if body.get("thinking") is None:
        return Reasoning(effort=effort) if effort is not None else None

    def read(thinking: Fields) -> Reasoning:
        mode = _MODES.get(required(thinking, "type", str))
        if mode is None:
            return Reasoning(effort=effort, extra={PROTOCOL: {"~thinking": thinking}})
        budget = optional(thinking, "budget_tokens", int)
        return Reasoning(mode, effort, budget, extra=leftover(thinking, _THINKING, PROTOCOL))

    return held(body, "thinking", read)


def _read_format(format: Fields) -> OutputFormat:
    if format.get("type") != "json_schema" or type(format.get("schema")) is not dict:
        return OutputFormat(extra={PROTOCOL: {"~format": format}})
    return OutputFormat("json_schema", schema=format["schema"], extra=leftover(format, _FORMAT, PROTOCOL))


# --- writing ----------------------------------------------------------------------------------------


def encode(conversation: Conversation, profile: Profile | None = None) -> Fields:  # noqa: ARG001
    """A conversation as a request body. What the protocol has no place for is not written.

    The protocol has one form only, whatever the profile of the target says.
    """
    options = conversation.options
    body: Fields = {"model": conversation.model} if conversation.model else {}
    top, turns = _split_system(conversation.turns)
    if top:
        body["system"] = _write_system(top)
    body["messages"] = [_write_message(turn) for turn in turns]
    tools = written_tools(conversation.tools, PROTOCOL, _write_tools)
    if tools or note(conversation.extra, PROTOCOL, "tools") is not None:
        body["tools"] = tools
    if options.tool_choice is not None:
        body["tool_choice"] = _write_choice(options.tool_choice)
    body.update(write_sampling(options.sampling, _SAMPLING))
    if note(conversation.extra, PROTOCOL, "stop_sequences") is not None:
        body.setdefault("stop_sequences", [])
    _write_reasoning_and_output(body, options, conversation.extra)
    if options.stream is not None:
        body["stream"] = options.stream
    metadata = note(conversation.extra, PROTOCOL, "metadata")
    if options.user is not None or metadata is not None:
        user: Fields = {"user_id": options.user} if options.user is not None else {}
        body["metadata"] = with_rest(user, conversation.extra, PROTOCOL, "metadata")
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


def _write_tools(tools: tuple[ToolSpec, ...]) -> list[Fields]:
    return [written for tool in tools if (written := _write_tool(tool)) is not None]


def _write_tool(tool: ToolSpec) -> Fields | None:
    verbatim = as_it_came(tool, PROTOCOL)
    if verbatim is not None or is_foreign(tool):
        return verbatim  # a tool that another provider runs has no place here
    fields: Fields = {"name": tool.name}
    kind = note(tool.extra, PROTOCOL, "type")
    if kind is not None:
        fields["type"] = kind
    if tool.description is not None:
        fields["description"] = tool.description
    if tool.parameters is not None:
        fields["input_schema"] = tool.parameters
    elif not note(tool.extra, PROTOCOL, "no_parameters"):
        fields["input_schema"] = no_parameters()
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
    if config or note(extra, PROTOCOL, "output_config") is not None:
        body["output_config"] = with_rest(config, extra, PROTOCOL, "output_config")
