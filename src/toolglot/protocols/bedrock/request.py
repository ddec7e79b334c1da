"""Requests of the Bedrock Converse protocol (`POST /model/{modelId}/converse`), both ways.

The model is in the path; a body that names it, as an SDK's parameters do, keeps it.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import (
    ChoiceMode,
    Conversation,
    Opaque,
    Options,
    Role,
    Sampling,
    ToolChoice,
    ToolSpec,
    Turn,
)
from toolglot.profiles import Profile
from toolglot.protocols.bedrock import options as model_options
from toolglot.protocols.bedrock.blocks import beside, read_block, write_blocks
from toolglot.protocols.bedrock.form import (
    CACHE_MARKING,
    PLAIN_REQUEST,
    PLAIN_TOOL,
    PROTOCOL,
    BedrockChoice,
    BedrockRequest,
    BedrockTool,
)
from toolglot.protocols.fields.function_tools import as_it_came, is_foreign, no_parameters, provider_tool
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
    with_extra,
    with_rest,
    without_empty,
)
from toolglot.protocols.fields.sampling import read_sampling, write_sampling
from toolglot.protocols.fields.turn_parts import one_by_one

_BODY = frozenset({"modelId", "messages", "system", "inferenceConfig", "toolConfig"})
_OWN: Final = (model_options.FIELDS, model_options.CONFIG)
_MESSAGE = frozenset({"role", "content"})
_SAMPLING: Final = {
    "max_tokens": "maxTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "stop": "stopSequences",
}
_INFERENCE = frozenset(_SAMPLING.values())
_TOOLS = frozenset({"tools", "toolChoice"})
_TOOL = frozenset({"name", "description", "inputSchema", "strict"})
_SCHEMA = frozenset({"json"})
_ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant"}
_CHOICES: Final[dict[str, ChoiceMode]] = {"auto": "auto", "any": "required", "tool": "named"}
_CHOICES_BACK: Final = {**{mode: written for written, mode in _CHOICES.items()}, "allowed": "auto"}


turn_parts: Final = one_by_one


@from_root
def decode(body: Fields) -> Conversation:
    """A request body as a conversation. Nothing is repaired; what is of the wrong type is an error."""
    turns = _read_system(body)
    turns += each(required(body, "messages", list), _read_message, ".messages")
    tools, choice, tools_rest = held_or_none(body, "toolConfig", _read_tools) or ((), None, None)
    sampling, rest = held_or_none(body, "inferenceConfig", _read_inference) or (Sampling(), None)
    settings, own = model_options.read(body), {key: body[key] for key in _OWN if type(body.get(key)) is dict}
    extra = leftover(body, without_empty(body, _BODY) | own.keys(), PROTOCOL)
    unread = model_options.unread_fields(body)
    if unread:
        extra = {PROTOCOL: {**(extra or {PROTOCOL: {}})[PROTOCOL], **unread}}
    return Conversation(
        tuple(turns),
        tools,
        Options(replace(sampling, top_k=settings.top_k), settings.reasoning, choice, settings.output),
        optional(body, "modelId", str) or "",
        extra,
        BedrockRequest(rest, tools_rest, own or None, "modelId" not in body),
    )


def _read_system(body: Fields) -> list[Turn]:
    system = optional(body, "system", list)
    return [] if system is None else [Turn("system", tuple(each(system, read_block, ".system")))]


def _read_message(fields: Fields) -> Turn:
    role = one_of(fields, "role", _ROLES)
    blocks = each(required(fields, "content", list), read_block, ".content")
    return Turn(role, tuple(blocks), extra=leftover(fields, _MESSAGE, PROTOCOL))


def _read_inference(fields: Fields) -> tuple[Sampling, Fields]:
    return read_sampling(fields, _SAMPLING), _rest(fields, _INFERENCE)


def _rest(fields: Fields, known: frozenset[str]) -> Fields:
    return rest_of(fields, without_empty(fields, known)) or {}


def _read_tools(config: Fields) -> tuple[tuple[ToolSpec, ...], ToolChoice | None, Fields]:
    read = each(optional(config, "tools", list) or (), _read_tool, ".tools")
    tools = _with_markers(read)
    known = _TOOLS if tools else frozenset({"toolChoice"})
    return tuple(tools), held_or_none(config, "toolChoice", _read_choice), _rest(config, known)


def _with_markers(read: list[ToolSpec | Fields]) -> list[ToolSpec]:
    """The tools, each with the cache markers behind it, and the first one with those before it too.

    Without a tool nothing can hold markers: then the list is left over as it is.
    """
    tools: list[ToolSpec] = []
    runs: list[list[Fields]] = [[]]
    for one in read:
        if isinstance(one, ToolSpec):
            tools.append(one)
            runs.append([])
        else:
            runs[-1].append(one)
    if len(tools) == len(read):
        return tools
    before = [runs[0]] + [[]] * len(tools)
    return [_marked(*found) for found in zip(tools, before, runs[1:], strict=False)]


def _marked(tool: ToolSpec, before: list[Fields], after: list[Fields]) -> ToolSpec:
    """A tool with its cache markers."""
    if not before and not after:
        return tool
    form = tool.form if type(tool.form) is BedrockTool else PLAIN_TOOL
    return replace(tool, form=replace(form, markers_before=before or None, markers_after=after or None))


def _read_tool(fields: Fields) -> ToolSpec | Fields:
    """A tool, or a cache marker among the tools as it came."""
    if fields.get("toolSpec") is not None:
        return read_required(fields, "toolSpec", lambda spec: _read_spec(fields, spec))
    kind = next((key for key, value in fields.items() if value is not None), "unknown")
    if kind == CACHE_MARKING.block:
        return fields
    system = fields.get("systemTool")
    name = system.get("name") if type(system) is dict else None
    return provider_tool(fields, PROTOCOL, kind, name if type(name) is str else "")


def _read_spec(fields: Fields, spec: Fields) -> ToolSpec:
    parameters, rest = held_or_none(spec, "inputSchema", _read_schema) or (None, None)
    block_rest, has_no_schema = beside(fields, "toolSpec"), spec.get("inputSchema") is None
    is_plain = block_rest is None and rest is None and not has_no_schema
    return ToolSpec(
        required(spec, "name", str),
        optional(spec, "description", str),
        parameters,
        strict=optional(spec, "strict", bool),
        extra=leftover(spec, _TOOL, PROTOCOL),
        form=None if is_plain else BedrockTool(block_rest, rest, has_no_schema),
    )


def _read_schema(schema: Fields) -> tuple[Fields | None, Fields | None]:
    """The schema of the arguments, and what is beside it; without a schema that is an object, if an empty one."""
    parameters = optional(schema, "json", dict)
    return parameters, rest_of(schema, _SCHEMA) or ({} if parameters is None else None)


def _read_choice(fields: Fields) -> ToolChoice:
    members = [key for key, value in fields.items() if value is not None and key in _CHOICES]
    if len(members) != 1:
        return ToolChoice(opaque=Opaque(PROTOCOL, fields))
    (member,) = members

    def read(inner: Fields) -> ToolChoice:
        names = (required(inner, "name", str),) if member == "tool" else ()
        extra, rest = leftover(inner, frozenset({"name"} if names else ()), PROTOCOL), beside(fields, member)
        return ToolChoice(_CHOICES[member], names, extra=extra, form=BedrockChoice(rest) if rest else None)

    return read_required(fields, member, read)


# --- writing ----------------------------------------------------------------------------------------


def encode(conversation: Conversation, profile: Profile | None = None) -> Fields:  # noqa: ARG001
    """A conversation as a request body. What the protocol cannot express is not written."""
    form = conversation.form if type(conversation.form) is BedrockRequest else PLAIN_REQUEST
    body: Fields = {"modelId": conversation.model} if conversation.model and not form.is_model_in_path else {}
    end = next((at for at, turn in enumerate(conversation.turns) if not _is_system(turn)), len(conversation.turns))
    if end:
        body["system"] = [fields for turn in conversation.turns[:end] for fields in write_blocks(turn.blocks)]
    body["messages"] = [_write_message(turn) for turn in conversation.turns[end:]]
    inference = write_sampling(conversation.options.sampling, _SAMPLING)
    if inference or form.inference_rest is not None:
        body["inferenceConfig"] = with_rest(inference, form.inference_rest)
    body.update(model_options.write(conversation.options, form.model_fields))
    config = _write_tools(conversation)
    if "tools" in config or form.tool_config_rest is not None:
        body["toolConfig"] = with_rest(config, form.tool_config_rest)
    return with_extra(body, conversation.extra, PROTOCOL)


def _is_system(turn: Turn) -> bool:
    return turn.role in ("system", "developer")


def _write_message(turn: Turn) -> Fields:
    """Converse has two roles: what is not the assistant's is the user's."""
    role = "assistant" if turn.role == "assistant" else "user"
    return with_extra({"role": role, "content": write_blocks(turn.blocks)}, turn.extra, PROTOCOL)


def _write_tools(conversation: Conversation) -> Fields:
    tools = [fields for tool in conversation.tools for fields in _write_marked(tool)]
    config: Fields = {"tools": tools} if tools else {}
    choice = conversation.options.tool_choice
    if choice is not None and choice.mode != "none":
        config["toolChoice"] = _write_choice(choice)
    return config


def _write_marked(tool: ToolSpec) -> list[Fields]:
    """A tool, if it can be written, between its cache markers."""
    fields = _write_tool(tool)
    written = [] if fields is None else [fields]
    form = tool.form
    if type(form) is BedrockTool and (form.markers_before or form.markers_after):
        return [*(form.markers_before or ()), *written, *(form.markers_after or ())]
    return written


def _write_tool(tool: ToolSpec) -> Fields | None:
    """A tool that another provider runs itself is not written."""
    verbatim = as_it_came(tool, PROTOCOL)
    if verbatim is not None or is_foreign(tool):
        return verbatim
    form = tool.form if type(tool.form) is BedrockTool else PLAIN_TOOL
    fields: Fields = {"name": tool.name}
    if tool.description is not None:
        fields["description"] = tool.description
    schema = _write_schema(tool, form)
    if schema is not None:
        fields["inputSchema"] = schema
    if tool.strict is not None:
        fields["strict"] = tool.strict
    return with_rest({"toolSpec": with_extra(fields, tool.extra, PROTOCOL)}, form.block_rest)


def _write_schema(tool: ToolSpec, form: BedrockTool) -> Fields | None:
    """The schema, which Converse requires; None if a client of the protocol left it out."""
    if tool.parameters is not None:
        return with_rest({"json": tool.parameters}, form.schema_rest)
    if form.schema_rest is not None:
        return with_rest({}, form.schema_rest)
    return None if form.has_no_schema else {"json": no_parameters()}


def _write_choice(choice: ToolChoice) -> Fields:
    verbatim: Fields | None = opaque_value(choice.opaque, PROTOCOL)
    if verbatim is not None:
        return verbatim
    fields: Fields = {"name": choice.names[0]} if choice.mode == "named" else {}
    written = {_CHOICES_BACK[choice.mode]: with_extra(fields, choice.extra, PROTOCOL)}
    return with_rest(written, choice.form.block_rest) if type(choice.form) is BedrockChoice else written
