"""Requests of the Gemini generateContent protocol, both ways. The model is named in the address, not here."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import (
    ChoiceMode,
    Conversation,
    Options,
    OutputFormat,
    Reasoning,
    Role,
    ToolChoice,
    ToolSpec,
    Turn,
)
from toolglot.profiles import Profile
from toolglot.protocols.fields.function_tools import as_it_came, is_foreign, provider_tool
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    expected,
    from_root,
    held_or_none,
    note,
    noted,
    one_of,
    optional,
    optional_number,
    optional_texts,
    required,
)
from toolglot.protocols.fields.sampling import read_sampling, write_sampling
from toolglot.protocols.gemini.blocks import (
    PROTOCOL,
    filled,
    given_back,
    in_camel,
    kept,
    kept_rest,
    read_parts,
    write_part,
    write_parts,
)

_BODY = frozenset({"contents", "systemInstruction", "tools", "toolConfig", "generationConfig"})
_CONTENT = frozenset({"role", "parts"})
_SYSTEM = frozenset({"parts"})
_DECLARATION = frozenset({"name", "description"})
_TOOL_CONFIG = frozenset({"functionCallingConfig"})
_SAMPLING: Final = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "stop": "stopSequences",
    "seed": "seed",
    "presence_penalty": "presencePenalty",
    "frequency_penalty": "frequencyPenalty",
}
_WHOLE: Final = ("maxOutputTokens", "topK", "seed")
_CONFIG = frozenset({"thinkingConfig", "responseMimeType", "responseSchema", "responseJsonSchema", *_SAMPLING.values()})
_ROLES: Final[dict[str, Role]] = {"user": "user", "model": "assistant", "function": "tool"}
_MODES: Final[dict[str, ChoiceMode]] = {"AUTO": "auto", "ANY": "required", "NONE": "none", "VALIDATED": "auto"}
_NUMBERED_MODES: Final = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
"""The modes by their numbers, which Google's older SDKs write."""
_MODES_BACK: Final[dict[ChoiceMode, str]] = {
    "auto": "AUTO",
    "none": "NONE",
    "required": "ANY",
    "named": "ANY",
    "allowed": "VALIDATED",
}
_JSON: Final = "application/json"
_EXACT: Final = 2**53


@from_root
def decode(body: Fields) -> Conversation:
    """A request body as a conversation. Nothing is repaired; what is of the wrong type is an error."""
    fields, snake = in_camel(body)
    system = held_or_none(fields, "systemInstruction", _read_system)
    turns = each(_read_list(fields, "contents"), _read_content, ".contents")
    tools, shells = _read_tools(fields)
    choice, tool_config = held_or_none(fields, "toolConfig", _read_tool_config) or (None, None)
    options, config = held_or_none(fields, "generationConfig", _read_config) or (Options(), None)
    single = [key for key in ("contents", "tools") if type(fields.get(key)) is dict]
    return Conversation(
        tuple(turns) if system is None else (system, *turns),
        tuple(tools),
        Options(options.sampling, options.reasoning, choice, options.output),
        extra=kept(
            fields,
            _BODY,
            snake=snake,
            single=single or None,
            tools=shells,
            tool_config=tool_config,
            config=config,
        ),
    )


def _read_list(fields: Fields, key: str) -> list[Any]:
    """A list of objects, or the one object that some clients write in its place."""
    return [fields[key]] if type(fields.get(key)) is dict else required(fields, key, list)


def _read_system(content: Fields) -> Turn:
    blocks, form = read_parts(content)
    return Turn("system", blocks, extra=kept(content, _SYSTEM, system="top", parts=form))


def _read_content(fields: Fields) -> Turn:
    if not optional(fields, "role", str):
        blocks, form = read_parts(fields)
        return Turn("user", blocks, extra=kept(fields, _CONTENT - {"role"}, no_role=True, parts=form))
    role = one_of(fields, "role", _ROLES)
    blocks, form = read_parts(fields)
    written = "function" if role == "tool" else None
    return Turn(role, blocks, extra=kept(fields, _CONTENT, role=written, parts=form))


# --- reading tools ----------------------------------------------------------------------------------


def _read_tools(body: Fields) -> tuple[list[ToolSpec], list[Fields] | None]:
    """All tools in one list, and what is left of the entries they came in (None if there is nothing to say)."""
    if body.get("tools") is None:
        return [], None
    found = each(_read_list(body, "tools"), _read_entry, ".tools")
    tools = [
        replace(tool, extra=noted(tool.extra, PROTOCOL, group=group or None))
        for group, (members, _) in enumerate(found)
        for tool in members
    ]
    shells = [shell for _, shell in found]
    return tools, shells if any(shells) or not shells else None


def _read_entry(given: Fields) -> tuple[list[ToolSpec], Fields]:
    """The tools of an entry: functions, and those that Gemini runs itself."""
    fields, snake = in_camel(given)
    is_one = type(fields.get("functionDeclarations")) is dict
    declared = [fields["functionDeclarations"]] if is_one else optional(fields, "functionDeclarations", list) or []
    tools = each(declared, _read_declaration, ".functionDeclarations")
    for key, value in fields.items():
        if value is not None and key != "functionDeclarations":
            tools.append(provider_tool({key: value}, PROTOCOL, key, key))
    known = frozenset(fields if declared else fields.keys() - {"functionDeclarations"})
    return tools, kept_rest(
        fields, known, snake=snake, one=True if is_one else None, bare=None if tools else True
    ) or {}


def _read_declaration(given: Fields) -> ToolSpec:
    fields, snake = in_camel(given)
    schema, form = optional(fields, "parameters", dict), "parameters"
    if schema is None and type(fields.get("parametersJsonSchema")) is dict:
        schema, form = fields["parametersJsonSchema"], "parametersJsonSchema"
    return ToolSpec(
        required(fields, "name", str),
        optional(fields, "description", str),
        schema,
        extra=kept(
            fields,
            _DECLARATION if schema is None else _DECLARATION | {form},
            snake=snake,
            schema=None if schema is None else form,
        ),
    )


def _read_tool_config(given: Fields) -> tuple[ToolChoice | None, Fields]:
    fields, snake = in_camel(given)
    choice = held_or_none(fields, "functionCallingConfig", _read_choice)
    return choice, kept_rest(fields, _TOOL_CONFIG, snake=snake) or {}


def _read_choice(given: Fields) -> ToolChoice:
    fields, snake = in_camel(given)
    written: Any = fields.get("mode")
    said = written if type(written) is int else optional(fields, "mode", str) or ""
    names = optional_texts(fields, "allowedFunctionNames")
    mode = _mode_of(said, names)
    if mode in ("auto", "none"):
        names = ()
    known = frozenset([*(["mode"] if said != "" else []), *(["allowedFunctionNames"] if names else [])])
    return ToolChoice(
        mode,
        names,
        extra=kept(fields, known, snake=snake, mode=None if said == _MODES_BACK[mode] else said),
    )


def _mode_of(said: str | int, names: tuple[str, ...]) -> ChoiceMode:
    """What a mode means. Only ANY and VALIDATED heed names; with the latter the model may answer in words too."""
    name = said.upper() if isinstance(said, str) else dict(enumerate(_NUMBERED_MODES)).get(said, "")
    mode = _MODES.get(name, "auto")
    if mode == "required" and names:
        return "named" if len(names) == 1 else "required"
    return "allowed" if name == "VALIDATED" and names else mode


# --- reading the configuration ----------------------------------------------------------------------


def _read_config(given: Fields) -> tuple[Options, Fields]:
    fields, snake = in_camel(given)
    floats: Fields = {}
    whole = {key: _whole(fields, key, floats) for key in _WHOLE}
    sampling = read_sampling({**fields, **whole}, _SAMPLING)
    reasoning = held_or_none(fields, "thinkingConfig", _read_reasoning)
    output, unread = _read_output(fields)
    if not sampling.stop:
        unread.add("stopSequences")
    rest = kept_rest(fields, _CONFIG - unread, snake=snake, floats=floats or None)
    return Options(sampling, reasoning, output=output), rest or {}


def _whole(fields: Fields, key: str, floats: Fields) -> int | None:
    """A whole number, which some clients write as 40.0."""
    value = optional_number(fields, key)
    if type(value) is not float:
        return value  # type: ignore[return-value]
    if not value.is_integer() or abs(value) > _EXACT:
        raise expected("a whole number", value, f".{key}")
    floats[key] = value
    return int(value)


def _read_reasoning(given: Fields) -> Reasoning:
    """How much to think: by a budget, or by a level where there is none (a body may not have both)."""
    fields, snake = in_camel(given)
    floats: Fields = {}
    budget = _whole(fields, "thinkingBudget", floats)
    level = optional(fields, "thinkingLevel", str) if budget is None else None
    shown = optional(fields, "includeThoughts", bool)
    is_read = {
        "thinkingBudget": budget is not None and budget >= 0,
        "thinkingLevel": level is not None,
        "includeThoughts": shown is True,
    }
    return Reasoning(
        None if budget is None else "on" if budget > 0 else "adaptive" if budget else "off",
        level.lower() if level is not None else None,
        budget if budget is not None and budget > 0 else None,
        "auto" if shown else None,
        kept(
            fields,
            frozenset(key for key, value in is_read.items() if value),
            snake=snake,
            floats=floats or None,
            level=level if level is not None and level.lower().upper() != level else None,
            negative=True if budget is not None and budget < 0 else None,
            empty=None if given else True,
        ),
    )


def _read_output(config: Fields) -> tuple[OutputFormat | None, set[str]]:
    """The format of the answer, and the fields that it does not say."""
    mime = optional(config, "responseMimeType", str)
    schema, form = optional(config, "responseSchema", dict), "responseSchema"
    if schema is None and type(config.get("responseJsonSchema")) is dict:
        schema, form = config["responseJsonSchema"], "responseJsonSchema"
    unread = {"responseSchema", "responseJsonSchema"} - ({form} if schema is not None else set())
    if not mime:
        unread.add("responseMimeType")
    if mime is None and schema is None:
        return None, unread
    extra = noted(
        None,
        PROTOCOL,
        mime=None if mime == _JSON else mime or "",
        schema=None if schema is None else form,
    )
    kind: Any = "json_schema" if schema is not None else "json" if mime == _JSON else "text"
    return OutputFormat(kind, schema=schema, extra=extra), unread


# --- writing ----------------------------------------------------------------------------------------


def encode(conversation: Conversation, profile: Profile | None = None) -> Fields:
    """A conversation as a request body. What the protocol has no place for is not written.

    The profile says in which of two fields schemas from elsewhere stand; the one takes JSON Schema, the other not.
    """
    as_json_schema = profile is None or profile.schema.field == "parametersJsonSchema"
    extra, options = conversation.extra, conversation.options
    body: Fields = {}
    top, turns = _split_system(conversation.turns)
    if top:
        parts = [part for turn in top for part in _write_blocks(turn)]
        body["systemInstruction"] = write_parts({}, parts, top[0].extra)
    body["contents"] = [_write_content(turn) for turn in turns]
    shells = note(extra, PROTOCOL, "tools")
    tools = _write_tools(conversation.tools, shells or [], as_json_schema)
    if tools or shells == []:
        body["tools"] = tools
    rest = note(extra, PROTOCOL, "tool_config")
    if options.tool_choice is not None or rest is not None:
        body["toolConfig"] = filled(_write_choice(options.tool_choice), rest)
    rest = note(extra, PROTOCOL, "config")
    config = _write_config(options, rest or {}, as_json_schema)
    if config or rest is not None:
        body["generationConfig"] = config
    for key in note(extra, PROTOCOL, "single") or ():
        if len(body.get(key, ())) == 1:
            (body[key],) = body[key]
    return given_back(body, extra)


def _split_system(turns: tuple[Turn, ...]) -> tuple[tuple[Turn, ...], tuple[Turn, ...]]:
    """The system turns at the head, and the rest."""
    end = 0
    while end < len(turns) and turns[end].role in ("system", "developer"):
        end += 1
    return turns[:end], turns[end:]


def _write_blocks(turn: Turn) -> list[Fields]:
    return [part for part in map(write_part, turn.blocks) if part is not None]


def _write_content(turn: Turn) -> Fields:
    role = "model" if turn.role == "assistant" else "user"
    if turn.role == "tool":
        role = note(turn.extra, PROTOCOL, "role") or role
    unsaid = turn.role == "user" and note(turn.extra, PROTOCOL, "no_role")
    return write_parts({} if unsaid else {"role": role}, _write_blocks(turn), turn.extra)


def _write_tools(tools: tuple[ToolSpec, ...], shells: list[Fields], as_json_schema: bool) -> list[Fields]:
    """The tools in the entries that they came in; those from elsewhere in the first."""
    groups: list[Fields] = [{} for _ in shells]
    for tool in tools:
        group = note(tool.extra, PROTOCOL, "group") or 0
        groups += [{} for _ in range(len(groups), group + 1)]
        verbatim = as_it_came(tool, PROTOCOL)
        if verbatim is not None:
            groups[group].update(verbatim)
        elif not is_foreign(tool):
            groups[group].setdefault("functionDeclarations", []).append(_write_declaration(tool, as_json_schema))
    written = []
    for index, entry in enumerate(groups):
        shell = shells[index] if index < len(shells) else {}
        if "~one" in shell and len(entry.get("functionDeclarations", ())) == 1:
            (entry["functionDeclarations"],) = entry["functionDeclarations"]
        if entry or "~bare" in shell:
            written.append(filled(entry, shell))
    return written


def _write_declaration(tool: ToolSpec, as_json_schema: bool) -> Fields:
    fields: Fields = {"name": tool.name}
    if tool.description is not None:
        fields["description"] = tool.description
    if tool.parameters is not None:
        form = "parametersJsonSchema" if as_json_schema else "parameters"
        fields[note(tool.extra, PROTOCOL, "schema") or form] = tool.parameters
    return given_back(fields, tool.extra)


def _write_choice(choice: ToolChoice | None) -> Fields:
    if choice is None:
        return {}
    fields: Fields = {}
    said = note(choice.extra, PROTOCOL, "mode")
    if said is None or _mode_of(said, choice.names) != choice.mode:
        said = _MODES_BACK[choice.mode]
    if said != "":
        fields["mode"] = said
    if choice.names:
        fields["allowedFunctionNames"] = list(choice.names)
    return {"functionCallingConfig": given_back(fields, choice.extra)}


def _write_config(options: Options, rest: Fields, as_json_schema: bool) -> Fields:
    config = write_sampling(options.sampling, _SAMPLING)
    _as_floats(config, rest.get("~floats"))
    thinking = _write_reasoning(options.reasoning) if options.reasoning is not None else None
    if thinking is not None:
        config["thinkingConfig"] = thinking
    if options.output is not None:
        config.update(_write_output(options.output, as_json_schema))
    return filled(config, rest)


def _as_floats(fields: Fields, floats: Fields | None) -> None:
    """Whole numbers that were written as 40.0 are written so again."""
    for key, value in (floats or {}).items():
        if fields.get(key) == value:
            fields[key] = value


def _write_reasoning(reasoning: Reasoning) -> Fields | None:
    fields: Fields = {}
    if reasoning.mode == "off":
        fields["thinkingBudget"] = 0
    elif reasoning.budget_tokens is not None:
        fields["thinkingBudget"] = reasoning.budget_tokens
    elif reasoning.effort is not None:
        level = note(reasoning.extra, PROTOCOL, "level")
        same = level is not None and level.lower() == reasoning.effort
        fields["thinkingLevel"] = level if same else reasoning.effort.upper()
    elif reasoning.mode == "adaptive" and not note(reasoning.extra, PROTOCOL, "negative"):
        fields["thinkingBudget"] = -1
    _as_floats(fields, note(reasoning.extra, PROTOCOL, "floats"))
    if reasoning.summary is not None:
        fields["includeThoughts"] = True
    given_back(fields, reasoning.extra)
    return fields if fields or note(reasoning.extra, PROTOCOL, "empty") else None


def _write_output(output: OutputFormat, as_json_schema: bool) -> Fields:
    mime = note(output.extra, PROTOCOL, "mime")
    if mime is None and output.kind != "text":
        mime = _JSON
    fields: Fields = {"responseMimeType": mime} if mime else {}
    if output.schema is not None:
        form = "responseJsonSchema" if as_json_schema else "responseSchema"
        fields[note(output.extra, PROTOCOL, "schema") or form] = output.schema
    return fields
