"""Requests of the Bedrock Converse protocol (`POST /model/{modelId}/converse`), both ways.

The model stands in the address; a body that names it, as an SDK's parameters do, keeps it.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import (
    ChoiceMode,
    Conversation,
    Options,
    Role,
    Sampling,
    ToolChoice,
    ToolSpec,
    Turn,
)
from toolglot.profiles import Profile
from toolglot.protocols.bedrock import options as asked
from toolglot.protocols.bedrock.blocks import PROTOCOL, beside, read_block, wrapped, write_blocks
from toolglot.protocols.fields.function_tools import as_it_came, is_foreign, no_parameters, provider_tool
from toolglot.protocols.fields.reading import (
    Fields,
    each,
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
    without_empty,
)
from toolglot.protocols.fields.sampling import read_sampling, write_sampling

_BODY = frozenset({"modelId", "messages", "system", "inferenceConfig", "toolConfig"})
_OWN: Final = (asked.FIELDS, asked.CONFIG)
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
_MARKER: Final = "cachePoint"
"""What stands among tools, and in their form, but is none: it says how far a prompt is cached."""
_ROLES: Final[dict[str, Role]] = {"user": "user", "assistant": "assistant"}
_CHOICES: Final[dict[str, ChoiceMode]] = {"auto": "auto", "any": "required", "tool": "named"}
_CHOICES_BACK: Final = {**{mode: written for written, mode in _CHOICES.items()}, "allowed": "auto"}


@from_root
def decode(body: Fields) -> Conversation:
    """A request body as a conversation. Nothing is repaired; what is of the wrong type is an error."""
    turns = _read_system(body)
    turns += each(required(body, "messages", list), _read_message, ".messages")
    tools, choice, tools_rest = held_or_none(body, "toolConfig", _read_tools) or ((), None, None)
    sampling, rest = held_or_none(body, "inferenceConfig", _read_inference) or (Sampling(), None)
    said, own = asked.read(body), {key: body[key] for key in _OWN if type(body.get(key)) is dict}
    extra = leftover(body, without_empty(body, _BODY) | own.keys(), PROTOCOL)
    unread = asked.unread(body)
    if unread:
        extra = {PROTOCOL: {**(extra or {PROTOCOL: {}})[PROTOCOL], **unread}}
    return Conversation(
        tuple(turns),
        tools,
        Options(replace(sampling, top_k=said.top_k), said.reasoning, choice, said.output),
        optional(body, "modelId", str) or "",
        noted(extra, PROTOCOL, inference=rest, tools=tools_rest, own=own or None, **_where_named(body)),
    )


def _where_named(body: Fields) -> Fields:
    """A note where the model is named in the address alone, as on the wire; SDKs name it beside the rest."""
    return {} if "modelId" in body else {"addressed": True}


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

    Without a tool there is nobody to hold markers: then the list is left over as it is.
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


def _marked(tool: ToolSpec, before: list[Fields], behind: list[Fields]) -> ToolSpec:
    """A tool with its cache markers: a note, and a field, so that they are told where nobody can write them."""
    if not before and not behind:
        return tool
    own = (tool.extra or {}).get(PROTOCOL, {})
    is_told = _MARKER not in own
    told = {_MARKER: [*before, *behind]} if is_told else {}
    markers = {"before": before, "behind": behind, "told": is_told}
    return replace(tool, extra=noted({PROTOCOL: {**own, **told}}, PROTOCOL, markers=markers))


def _read_tool(fields: Fields) -> ToolSpec | Fields:
    """A tool, or a cache marker among the tools as it came."""
    if fields.get("toolSpec") is not None:
        return held(fields, "toolSpec", lambda spec: _read_spec(fields, spec))
    kind = next((key for key, value in fields.items() if value is not None), "unknown")
    if kind == _MARKER:
        return fields
    system = fields.get("systemTool")
    name = system.get("name") if type(system) is dict else None
    return provider_tool(fields, PROTOCOL, kind, name if type(name) is str else "")


def _read_spec(fields: Fields, spec: Fields) -> ToolSpec:
    parameters, rest = held_or_none(spec, "inputSchema", _read_schema) or (None, None)
    return ToolSpec(
        required(spec, "name", str),
        optional(spec, "description", str),
        parameters,
        strict=optional(spec, "strict", bool),
        extra=noted(
            leftover(spec, _TOOL, PROTOCOL),
            PROTOCOL,
            block=beside(fields, "toolSpec"),
            schema=rest,
            no_schema=True if spec.get("inputSchema") is None else None,
        ),
    )


def _read_schema(schema: Fields) -> tuple[Fields | None, Fields | None]:
    """The schema of the arguments, and what stands beside it; a schema without one is noted."""
    parameters = optional(schema, "json", dict)
    return parameters, rest_of(schema, _SCHEMA) or ({} if parameters is None else None)


def _read_choice(fields: Fields) -> ToolChoice:
    members = [key for key, value in fields.items() if value is not None and key in _CHOICES]
    if len(members) != 1:
        return ToolChoice(extra={PROTOCOL: {"~choice": fields}})
    (member,) = members

    def read(inner: Fields) -> ToolChoice:
        names = (required(inner, "name", str),) if member == "tool" else ()
        rest = leftover(inner, frozenset({"name"} if names else ()), PROTOCOL)
        return ToolChoice(_CHOICES[member], names, extra=noted(rest, PROTOCOL, block=beside(fields, member)))

    return held(fields, member, read)


# --- writing ----------------------------------------------------------------------------------------


def encode(conversation: Conversation, profile: Profile | None = None) -> Fields:  # noqa: ARG001
    """A conversation as a request body. What the protocol has no place for is not written."""
    is_named = bool(conversation.model) and note(conversation.extra, PROTOCOL, "addressed") is None
    body: Fields = {"modelId": conversation.model} if is_named else {}
    end = next((at for at, turn in enumerate(conversation.turns) if not _is_system(turn)), len(conversation.turns))
    if end:
        body["system"] = [fields for turn in conversation.turns[:end] for fields in write_blocks(turn.blocks)]
    body["messages"] = [_write_message(turn) for turn in conversation.turns[end:]]
    extra = conversation.extra
    inference = write_sampling(conversation.options.sampling, _SAMPLING)
    if inference or note(extra, PROTOCOL, "inference") is not None:
        body["inferenceConfig"] = with_rest(inference, extra, PROTOCOL, "inference")
    body.update(asked.write(conversation.options, note(extra, PROTOCOL, "own")))
    config = _write_tools(conversation)
    if "tools" in config or note(extra, PROTOCOL, "tools") is not None:
        body["toolConfig"] = with_rest(config, extra, PROTOCOL, "tools")
    return restored(body, extra, PROTOCOL)


def _is_system(turn: Turn) -> bool:
    return turn.role in ("system", "developer")


def _write_message(turn: Turn) -> Fields:
    """Converse has two roles: whatever the model did not say, the user did."""
    role = "assistant" if turn.role == "assistant" else "user"
    return restored({"role": role, "content": write_blocks(turn.blocks)}, turn.extra, PROTOCOL)


def _write_tools(conversation: Conversation) -> Fields:
    tools = [fields for tool in conversation.tools for fields in _write_marked(tool)]
    config: Fields = {"tools": tools} if tools else {}
    choice = conversation.options.tool_choice
    if choice is not None and choice.mode != "none":
        config["toolChoice"] = _write_choice(choice)
    return config


def _write_marked(tool: ToolSpec) -> list[Fields]:
    """A tool, if it can be written, between its cache markers."""
    markers = note(tool.extra, PROTOCOL, "markers")
    if markers is None:
        written = _write_tool(tool)
        return [] if written is None else [written]
    own = tool.extra[PROTOCOL] if tool.extra else {}
    plain = {key: value for key, value in own.items() if key != _MARKER} if markers["told"] else own
    written = _write_tool(replace(tool, extra={PROTOCOL: plain}))
    return [*markers["before"], *([] if written is None else [written]), *markers["behind"]]


def _write_tool(tool: ToolSpec) -> Fields | None:
    """A tool that another provider runs itself is not written."""
    verbatim = as_it_came(tool, PROTOCOL)
    if verbatim is not None or is_foreign(tool):
        return verbatim
    fields: Fields = {"name": tool.name}
    if tool.description is not None:
        fields["description"] = tool.description
    schema = _write_schema(tool)
    if schema is not None:
        fields["inputSchema"] = schema
    if tool.strict is not None:
        fields["strict"] = tool.strict
    return wrapped("toolSpec", restored(fields, tool.extra, PROTOCOL), tool.extra)


def _write_schema(tool: ToolSpec) -> Fields | None:
    """The schema, which Converse demands; None where its own client left it out."""
    if tool.parameters is not None:
        return with_rest({"json": tool.parameters}, tool.extra, PROTOCOL, "schema")
    if note(tool.extra, PROTOCOL, "schema") is not None:
        return with_rest({}, tool.extra, PROTOCOL, "schema")
    return None if note(tool.extra, PROTOCOL, "no_schema") else {"json": no_parameters()}


def _write_choice(choice: ToolChoice) -> Fields:
    verbatim: Fields | None = note(choice.extra, PROTOCOL, "choice")
    if verbatim is not None:
        return verbatim
    fields: Fields = {"name": choice.names[0]} if choice.mode == "named" else {}
    return wrapped(_CHOICES_BACK[choice.mode], restored(fields, choice.extra, PROTOCOL), choice.extra)
