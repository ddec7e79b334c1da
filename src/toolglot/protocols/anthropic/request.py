"""Requests of the Anthropic Messages protocol (`POST /v1/messages`), both ways."""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import (
    Block,
    ChoiceMode,
    Conversation,
    Opaque,
    Options,
    OutputFormat,
    Reasoning,
    ReasoningMode,
    Role,
    Text,
    ToolChoice,
    Turn,
)
from toolglot.conversation.tool_memory import encode_tools
from toolglot.errors import InputError
from toolglot.profiles import Profile
from toolglot.protocols.anthropic.blocks import PROMPT_READERS, READERS, read_content, write_blocks
from toolglot.protocols.anthropic.form import (
    PLAIN_REQUEST,
    PROMPT,
    PROMPT_MESSAGE,
    PROMPT_MESSAGE_STRING,
    PROMPT_STRING,
    PROTOCOL,
    STRING,
    AnthropicMessage,
    AnthropicRequest,
)
from toolglot.protocols.anthropic.tools import read_tool, write_tools
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    from_root,
    held_or_none,
    leftover,
    one_of,
    opaque_value,
    optional,
    read_required,
    required,
    rest_of,
    type_error,
    with_extra,
    with_rest,
)
from toolglot.protocols.fields.sampling import read_sampling, write_sampling
from toolglot.protocols.fields.turn_parts import one_by_one

_BODY = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "max_tokens", "temperature", "top_p", "top_k"}
    | {"stop_sequences", "stream", "thinking", "output_config", "metadata"}
)
_MESSAGE = frozenset({"role", "content"})
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


turn_parts: Final = one_by_one


@from_root
def decode(body: Fields) -> Conversation:
    """A request body as a conversation. Nothing is repaired; what is of the wrong type is an error."""
    turns = _read_system(body)
    turns += _read_messages(required(body, "messages", list))
    return Conversation(
        tuple(turns),
        tuple(each(optional(body, "tools", list) or (), read_tool, ".tools")),
        _read_options(body),
        optional(body, "model", str) or "",
        leftover(body, _BODY, PROTOCOL),
        _read_form(body),
    )


_IN_FORM: Final = frozenset({"stop_sequences", "metadata", "output_config"})


def _read_form(body: Fields) -> AnthropicRequest | None:
    """Empty lists, and unknown fields of inner objects."""
    if _IN_FORM.isdisjoint(body) and body.get("tools") != []:
        return None
    metadata, config = body.get("metadata"), body.get("output_config")
    form = AnthropicRequest(
        body.get("tools") == [],
        body.get("stop_sequences") == [],
        (rest_of(metadata, _METADATA) or {}) if type(metadata) is dict else None,
        (rest_of(config, _OUTPUT) or {}) if type(config) is dict else None,
    )
    return None if form == PLAIN_REQUEST else form


def _read_system(body: Fields) -> list[Turn]:
    system: Any = body.get("system")
    if system is None:
        return []
    if type(system) is not str and type(system) is not list:
        raise type_error("a string or an array of text blocks", system, ".system")
    form = PROMPT_STRING if type(system) is str else PROMPT
    return [Turn("system", read_content(system, ".system"), form=form)]


def _read_messages(messages: list[Any]) -> list[Turn]:
    """All messages, in one loop: calls cost, and there are many messages."""
    turns: list[Turn] = []
    readers = READERS
    for fields in messages:
        try:
            role, content = fields["role"], fields["content"]
            if len(fields) == 2 and type(content) is list and (role == "user" or role == "assistant"):
                blocks: list[Block] = []
                for block in content:
                    blocks.append(readers[block["type"]](block))  # noqa: PERF401 - a comprehension is slower for so few
                turns.append(Turn(role, tuple(blocks)))  # as nearly all are written
                continue
            if len(fields) == 2 and type(content) is str and (role == "user" or role == "assistant"):
                turns.append(Turn(role, (Text(content),), form=STRING))
                continue
        except (KeyError, TypeError, InputError):
            pass  # an error says where it is wrong if it is found below
        turns += each((fields,), _read_message, ".messages", len(turns))
    return turns


def _read_message(fields: Fields) -> Turn:
    """A message however it is written, or an error that says where it is wrong."""
    role = one_of(fields, "role", _ROLES)
    content: Any = fields.get("content")
    blocks = read_content(content, readers=PROMPT_READERS if role == "system" else READERS)
    is_string = type(content) is str
    form = STRING if is_string else None
    if role == "system":
        form = PROMPT_MESSAGE_STRING if is_string else PROMPT_MESSAGE
    return Turn(role, blocks, extra=leftover(fields, _MESSAGE, PROTOCOL, 2), form=form)


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
        return ToolChoice(opaque=Opaque(PROTOCOL, fields))
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
            return Reasoning(effort=effort, opaque=Opaque(PROTOCOL, thinking))
        budget = optional(thinking, "budget_tokens", int)
        return Reasoning(mode, effort, budget, extra=leftover(thinking, _THINKING, PROTOCOL))

    return read_required(body, "thinking", read)


def _read_format(format: Fields) -> OutputFormat:
    if format.get("type") != "json_schema" or type(format.get("schema")) is not dict:
        return OutputFormat(opaque=Opaque(PROTOCOL, format))
    return OutputFormat("json_schema", schema=format["schema"], extra=leftover(format, _FORMAT, PROTOCOL))


# --- writing ----------------------------------------------------------------------------------------


def encode(conversation: Conversation, profile: Profile | None = None) -> Fields:
    """A conversation as a request body. What the protocol cannot express is not written.

    A cloud that hosts the protocol has the model in the path, and the version in the body.
    """
    options = conversation.options
    form = conversation.form if type(conversation.form) is AnthropicRequest else PLAIN_REQUEST
    version = profile.request.hosted_version if profile is not None else ""
    body: Fields = {"model": conversation.model} if conversation.model and not version else {}
    if version:
        body["anthropic_version"] = version
    top, turns = _split_system(conversation.turns)
    if top:
        body["system"] = _write_system(top)
    body["messages"] = [_write_message(turn) for turn in turns]
    tools = encode_tools(conversation.tools, PROTOCOL, write_tools)
    if tools or form.has_empty_tools:
        body["tools"] = tools
    if options.tool_choice is not None:
        body["tool_choice"] = _write_choice(options.tool_choice)
    body.update(write_sampling(options.sampling, _SAMPLING))
    if form.has_empty_stop_sequences:
        body.setdefault("stop_sequences", [])
    _write_reasoning_and_output(body, options, form)
    if options.stream is not None:
        body["stream"] = options.stream
    if options.user is not None or form.metadata_rest is not None:
        user: Fields = {"user_id": options.user} if options.user is not None else {}
        body["metadata"] = with_rest(user, form.metadata_rest)
    return with_extra(body, conversation.extra, PROTOCOL)


def _split_system(turns: tuple[Turn, ...]) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """The system turns at the head, and the rest. A system message that was sent as one stays one."""
    end = 0
    for turn in turns:
        if turn.role not in ("system", "developer") or _is_message(turn):
            break
        end += 1
    return turns[:end], turns[end:]


def _is_message(prompt: Turn) -> bool:
    return type(prompt.form) is AnthropicMessage and prompt.form.prompt_position == "message"


def _is_string(turn: Turn) -> bool:
    return type(turn.form) is AnthropicMessage and turn.form.is_string


def _write_system(turns: tuple[Turn, ...]) -> str | list[Fields]:
    blocks = [block for turn in turns for block in turn.blocks]
    if len(blocks) == 1 and _is_string(turns[0]) and isinstance(blocks[0], Text) and not blocks[0].extra:
        return blocks[0].text
    return write_blocks(blocks)


def _write_message(turn: Turn) -> Fields:
    role = "user" if turn.role == "tool" else "system" if turn.role == "developer" else turn.role
    blocks = turn.blocks
    if len(blocks) == 1 and _is_string(turn) and isinstance(block := blocks[0], Text) and not block.extra:
        return with_extra({"role": role, "content": block.text}, turn.extra, PROTOCOL)
    return with_extra({"role": role, "content": write_blocks(blocks)}, turn.extra, PROTOCOL)


def _write_choice(choice: ToolChoice) -> Fields:
    verbatim: Fields | None = opaque_value(choice.opaque, PROTOCOL)
    if verbatim is not None:
        return verbatim
    fields: Fields = {"type": _CHOICES_BACK[choice.mode]}
    if choice.mode == "named":
        fields["name"] = choice.names[0]
    if choice.parallel is not None:
        fields["disable_parallel_tool_use"] = not choice.parallel
    return with_extra(fields, choice.extra, PROTOCOL)


def _write_reasoning_and_output(body: Fields, options: Options, form: AnthropicRequest) -> None:
    config: Fields = {}
    reasoning = options.reasoning
    unknown = opaque_value(reasoning.opaque, PROTOCOL) if reasoning is not None else None
    if unknown is not None:
        body["thinking"] = unknown
    if reasoning is not None and reasoning.mode is not None:
        fields: Fields = {"type": _MODES_BACK[reasoning.mode]}
        if reasoning.budget_tokens is not None:
            fields["budget_tokens"] = reasoning.budget_tokens
        body["thinking"] = with_extra(fields, reasoning.extra, PROTOCOL)
    if reasoning is not None and reasoning.effort is not None:
        config["effort"] = reasoning.effort
    if options.output is not None:
        verbatim = opaque_value(options.output.opaque, PROTOCOL)
        if verbatim is not None:
            config["format"] = verbatim
        elif options.output.schema is not None:
            format = {"type": "json_schema", "schema": options.output.schema}
            config["format"] = with_extra(format, options.output.extra, PROTOCOL)
    if config or form.output_config_rest is not None:
        body["output_config"] = with_rest(config, form.output_config_rest)
