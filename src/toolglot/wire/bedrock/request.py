"""Requests of the Bedrock Converse protocol (`POST /model/{modelId}/converse`), both ways.

The model stands in the address; a body that names it, as an SDK's parameters do, keeps it.
"""

from __future__ import annotations

from typing import Final

from toolglot.conversation import (
    ChoiceMode,
    Conversation,
    Extra,
    Issuer,
    Options,
    Role,
    Sampling,
    ToolChoice,
    ToolSpec,
    Turn,
)
from toolglot.errors import InputError
from toolglot.wire.bedrock.blocks import PROTOCOL, beside, read_block, wrapped, write_blocks
from toolglot.wire.reading import (
    Fields,
    each,
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

_BODY = frozenset({"modelId", "messages", "system", "inferenceConfig", "toolConfig"})
_MESSAGE = frozenset({"role", "content"})
_INFERENCE = frozenset({"maxTokens", "temperature", "topP", "stopSequences"})
_TOOLS = frozenset({"tools", "toolChoice"})
_TOOL = frozenset({"name", "description", "inputSchema", "strict"})
_SCHEMA = frozenset({"json"})
_ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant"}
_CHOICES: Final[dict[str, ChoiceMode]] = {"auto": "auto", "any": "required", "tool": "named"}
_CHOICES_BACK: Final = {**{mode: written for written, mode in _CHOICES.items()}, "allowed": "auto"}


def decode(body: Fields) -> Conversation:
    """A request body as a conversation. Nothing is repaired; what is of the wrong type is an error."""
    try:
        turns = _read_system(body)
        turns += each(required(body, "messages", list), _read_message, ".messages")
        config = optional(body, "toolConfig", dict)
        tools, choice = _read_tools(config or {})
        inference = optional(body, "inferenceConfig", dict)
        extra = noted(
            _rest(body, _BODY),
            PROTOCOL,
            inference=None if inference is None else _kept(inference, _INFERENCE),
            tools=None if config is None else _kept(config, _TOOLS),
        )
        options = Options(sampling=_read_sampling(inference or {}), tool_choice=choice)
        return Conversation(tuple(turns), tools, options, optional(body, "modelId", str) or "", extra)
    except InputError as error:
        raise inside(error, "$") from None


def _rest(fields: Fields, known: frozenset[str]) -> Extra | None:
    """What is left over, empty values included: a canonical value does not tell them from absent ones."""
    return leftover(fields, known - {key for key, value in fields.items() if value in ("", [])}, PROTOCOL)


def _kept(fields: Fields, known: frozenset[str]) -> Fields:
    rest = _rest(fields, known)
    return rest[PROTOCOL] if rest else {}


def _read_system(body: Fields) -> list[Turn]:
    system = optional(body, "system", list)
    return [] if system is None else [Turn("system", tuple(each(system, read_block, ".system")))]


def _read_message(fields: Fields) -> Turn:
    role = one_of(fields, "role", _ROLES)
    blocks = each(required(fields, "content", list), read_block, ".content")
    return Turn(role, tuple(blocks), extra=leftover(fields, _MESSAGE, PROTOCOL))


def _read_sampling(fields: Fields) -> Sampling:
    try:
        return Sampling(
            max_tokens=optional(fields, "maxTokens", int),
            temperature=optional_number(fields, "temperature"),
            top_p=optional_number(fields, "topP"),
            stop=optional_texts(fields, "stopSequences"),
        )
    except InputError as error:
        raise inside(error, ".inferenceConfig") from None


def _read_tools(config: Fields) -> tuple[tuple[ToolSpec, ...], ToolChoice | None]:
    try:
        tools = each(optional(config, "tools", list) or (), _read_tool, ".tools")
        return tuple(tools), _read_choice(config)
    except InputError as error:
        raise inside(error, ".toolConfig") from None


def _read_tool(fields: Fields) -> ToolSpec:
    spec = optional(fields, "toolSpec", dict)
    if spec is None:
        kind = next((key for key, value in fields.items() if value is not None), "unknown")
        system = fields.get("systemTool")
        name = system.get("name") if type(system) is dict else None
        name = name if type(name) is str else ""
        return ToolSpec(name, type=kind, issuer=Issuer(PROTOCOL), extra={PROTOCOL: {"~tool": fields}})
    try:
        schema = optional(spec, "inputSchema", dict)
        try:
            parameters = optional(schema or {}, "json", dict)
        except InputError as error:
            raise inside(error, ".inputSchema") from None
        rest = None if schema is None else leftover(schema, _SCHEMA, PROTOCOL)
        bare: Fields | None = {} if schema is not None and parameters is None else None
        return ToolSpec(
            required(spec, "name", str),
            optional(spec, "description", str),
            parameters,
            strict=optional(spec, "strict", bool),
            extra=noted(
                leftover(spec, _TOOL, PROTOCOL),
                PROTOCOL,
                block=beside(fields, "toolSpec"),
                schema=rest[PROTOCOL] if rest else bare,
            ),
        )
    except InputError as error:
        raise inside(error, ".toolSpec") from None


def _read_choice(config: Fields) -> ToolChoice | None:
    fields = optional(config, "toolChoice", dict)
    if fields is None:
        return None
    members = [key for key, value in fields.items() if value is not None and key in _CHOICES]
    if len(members) != 1:
        return ToolChoice(extra={PROTOCOL: {"~choice": fields}})
    (member,) = members
    try:
        inner = required(fields, member, dict)
        try:
            names = (required(inner, "name", str),) if member == "tool" else ()
        except InputError as error:
            raise inside(error, f".{member}") from None
    except InputError as error:
        raise inside(error, ".toolChoice") from None
    rest = leftover(inner, frozenset({"name"} if names else ()), PROTOCOL)
    return ToolChoice(_CHOICES[member], names, extra=noted(rest, PROTOCOL, block=beside(fields, member)))


# --- writing ----------------------------------------------------------------------------------------


def encode(conversation: Conversation) -> Fields:
    """A conversation as a request body. What the protocol has no place for is not written."""
    body: Fields = {"modelId": conversation.model} if conversation.model else {}
    end = next((at for at, turn in enumerate(conversation.turns) if not _is_system(turn)), len(conversation.turns))
    if end:
        body["system"] = [fields for turn in conversation.turns[:end] for fields in write_blocks(turn.blocks)]
    body["messages"] = [_write_message(turn) for turn in conversation.turns[end:]]
    inference = _write_sampling(conversation.options.sampling)
    written = note(conversation.extra, PROTOCOL, "inference")
    if inference or written is not None:
        body["inferenceConfig"] = restored(inference, {PROTOCOL: written or {}}, PROTOCOL)
    config = _write_tools(conversation)
    written = note(conversation.extra, PROTOCOL, "tools")
    if "tools" in config or written is not None:
        body["toolConfig"] = restored(config, {PROTOCOL: written or {}}, PROTOCOL)
    return restored(body, conversation.extra, PROTOCOL)


def _is_system(turn: Turn) -> bool:
    return turn.role in ("system", "developer")


def _write_message(turn: Turn) -> Fields:
    """Converse has two roles: whatever the model did not say, the user did."""
    role = "assistant" if turn.role == "assistant" else "user"
    return restored({"role": role, "content": write_blocks(turn.blocks)}, turn.extra, PROTOCOL)


def _write_sampling(sampling: Sampling) -> Fields:
    settings = {
        "maxTokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "stopSequences": list(sampling.stop) or None,
    }
    return present(settings)


def _write_tools(conversation: Conversation) -> Fields:
    tools = [fields for tool in conversation.tools if (fields := _write_tool(tool)) is not None]
    config: Fields = {"tools": tools} if tools else {}
    choice = conversation.options.tool_choice
    if choice is not None and choice.mode != "none":
        config["toolChoice"] = _write_choice(choice)
    return config


def _write_tool(tool: ToolSpec) -> Fields | None:
    """A tool that another provider runs itself is not written."""
    verbatim: Fields | None = note(tool.extra, PROTOCOL, "tool")
    if verbatim is not None or tool.issuer is not None:
        return verbatim
    fields: Fields = {"name": tool.name}
    if tool.description is not None:
        fields["description"] = tool.description
    rest = note(tool.extra, PROTOCOL, "schema")
    if tool.parameters is not None or rest is not None:
        schema = {} if tool.parameters is None else {"json": tool.parameters}
        fields["inputSchema"] = restored(schema, {PROTOCOL: rest or {}}, PROTOCOL)
    if tool.strict is not None:
        fields["strict"] = tool.strict
    return wrapped("toolSpec", restored(fields, tool.extra, PROTOCOL), tool.extra)


def _write_choice(choice: ToolChoice) -> Fields:
    verbatim: Fields | None = note(choice.extra, PROTOCOL, "choice")
    if verbatim is not None:
        return verbatim
    fields: Fields = {"name": choice.names[0]} if choice.mode == "named" else {}
    return wrapped(_CHOICES_BACK[choice.mode], restored(fields, choice.extra, PROTOCOL), choice.extra)
