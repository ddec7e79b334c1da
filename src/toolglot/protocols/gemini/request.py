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
    from_root,
    held_or_none,
    one_of,
    optional,
    optional_number,
    optional_texts,
    required,
    rest_of,
    type_error,
)
from toolglot.protocols.fields.sampling import read_sampling, write_sampling
from toolglot.protocols.fields.turn_parts import one_by_one
from toolglot.protocols.gemini.blocks import (
    content_form,
    in_camel,
    read_parts,
    refill,
    unknown_fields,
    with_unknown_fields,
    write_part,
    write_parts,
)
from toolglot.protocols.gemini.form import (
    FUNCTION_ROLE,
    NO_ROLE,
    PLAIN_OUTPUT,
    PLAIN_REASONING,
    PLAIN_REQUEST,
    PLAIN_TOOL,
    PROTOCOL,
    SYSTEM_INSTRUCTION,
    GeminiContent,
    GeminiOutput,
    GeminiReasoning,
    GeminiRequest,
    GeminiTool,
    GeminiToolChoice,
    Snake,
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


turn_parts: Final = one_by_one


@from_root
def decode(body: Fields) -> Conversation:
    """A request body as a conversation. Nothing is repaired; what is of the wrong type is an error."""
    fields, snake = in_camel(body)
    system = held_or_none(fields, "systemInstruction", _read_system)
    turns = each(_read_list(fields, "contents"), _read_content, ".contents")
    tools, entries = _read_tools(fields)
    choice, *tool_config = held_or_none(fields, "toolConfig", _read_tool_config) or (None, None, None)
    options, *config = held_or_none(fields, "generationConfig", _read_config) or (Options(), None, None, None)
    single = [key for key in ("contents", "tools") if type(fields.get(key)) is dict]
    form = GeminiRequest(snake, single or None, entries, *tool_config, *config)
    return Conversation(
        tuple(turns) if system is None else (system, *turns),
        tuple(tools),
        Options(options.sampling, options.reasoning, choice, options.output),
        extra=unknown_fields(fields, _BODY),
        form=None if form == PLAIN_REQUEST else form,
    )


def _read_list(fields: Fields, key: str) -> list[Any]:
    """A list of objects, or the single object that some clients send instead."""
    return [fields[key]] if type(fields.get(key)) is dict else required(fields, key, list)


def _read_system(content: Fields) -> Turn:
    blocks, parts = read_parts(content)
    form = SYSTEM_INSTRUCTION if parts is None else GeminiContent(parts, is_system_instruction=True)
    return Turn("system", blocks, extra=unknown_fields(content, _SYSTEM), form=form)


def _read_content(fields: Fields) -> Turn:
    if not optional(fields, "role", str):
        blocks, parts = read_parts(fields)
        form = NO_ROLE if parts is None else GeminiContent(parts, has_no_role=True)
        return Turn("user", blocks, extra=unknown_fields(fields, _CONTENT - {"role"}), form=form)
    role = one_of(fields, "role", _ROLES)
    blocks, parts = read_parts(fields)
    known = FUNCTION_ROLE if role == "tool" else None
    if parts is not None:
        known = GeminiContent(parts, None if known is None else known.role)
    return Turn(role, blocks, extra=unknown_fields(fields, _CONTENT), form=known)


# --- reading tools ----------------------------------------------------------------------------------


def _read_tools(body: Fields) -> tuple[list[ToolSpec], list[Fields] | None]:
    """All tools in one list, and what else is known of the entries they came in (None if nothing is)."""
    if body.get("tools") is None:
        return [], None
    found = each(_read_list(body, "tools"), _read_entry, ".tools")
    tools = [_in_entry(tool, index) for index, (members, _) in enumerate(found) for tool in members]
    entries = [entry for _, entry in found]
    return tools, entries if any(entries) or not entries else None


def _in_entry(tool: ToolSpec, index: int) -> ToolSpec:
    if not index:
        return tool
    return replace(tool, form=replace(tool.form if type(tool.form) is GeminiTool else PLAIN_TOOL, entry=index))


def _read_entry(entry: Fields) -> tuple[list[ToolSpec], Fields]:
    """The tools of an entry: functions, and those that Gemini runs itself. And what else is known of it."""
    fields, snake = in_camel(entry)
    is_one = type(fields.get("functionDeclarations")) is dict
    declared = [fields["functionDeclarations"]] if is_one else optional(fields, "functionDeclarations", list) or []
    tools = each(declared, _read_declaration, ".functionDeclarations")
    for key, value in fields.items():
        if value is not None and key != "functionDeclarations":
            tools.append(provider_tool({key: value}, PROTOCOL, key, key))
    known = frozenset(fields if declared else fields.keys() - {"functionDeclarations"})
    facts = {"rest": rest_of(fields, known), "snake": snake, "is_single": is_one, "is_empty": not tools}
    return tools, {name: value for name, value in facts.items() if value}


def _read_declaration(declaration: Fields) -> ToolSpec:
    fields, snake = in_camel(declaration)
    schema, schema_field = optional(fields, "parameters", dict), "parameters"
    if schema is None and type(fields.get("parametersJsonSchema")) is dict:
        schema, schema_field = fields["parametersJsonSchema"], "parametersJsonSchema"
    return ToolSpec(
        required(fields, "name", str),
        optional(fields, "description", str),
        schema,
        extra=unknown_fields(fields, _DECLARATION if schema is None else _DECLARATION | {schema_field}),
        form=GeminiTool(snake, None if schema is None else schema_field) if snake or schema is not None else None,
    )


def _read_tool_config(config: Fields) -> tuple[ToolChoice | None, Fields, Snake | None]:
    fields, snake = in_camel(config)
    choice = held_or_none(fields, "functionCallingConfig", _read_choice)
    return choice, rest_of(fields, _TOOL_CONFIG) or {}, snake


def _read_choice(config: Fields) -> ToolChoice:
    fields, snake = in_camel(config)
    written: Any = fields.get("mode")
    word = written if type(written) is int else optional(fields, "mode", str) or ""
    names = optional_texts(fields, "allowedFunctionNames")
    mode = _mode_of(word, names)
    if mode in ("auto", "none"):
        names = ()
    known = frozenset([*(["mode"] if word != "" else []), *(["allowedFunctionNames"] if names else [])])
    original = None if word == _MODES_BACK[mode] else word
    form = GeminiToolChoice(snake, original) if snake or original is not None else None
    return ToolChoice(mode, names, extra=unknown_fields(fields, known), form=form)


def _mode_of(word: str | int, names: tuple[str, ...]) -> ChoiceMode:
    """What a mode means. Only ANY and VALIDATED heed names; with the latter the model may answer in words too."""
    name = word.upper() if isinstance(word, str) else dict(enumerate(_NUMBERED_MODES)).get(word, "")
    mode = _MODES.get(name, "auto")
    if mode == "required" and names:
        return "named" if len(names) == 1 else "required"
    return "allowed" if name == "VALIDATED" and names else mode


# --- reading the configuration ----------------------------------------------------------------------


def _read_config(config: Fields) -> tuple[Options, Fields, Snake | None, Fields | None]:
    """The options, then unknown fields, those in snake_case, and whole numbers that were written as 40.0."""
    fields, snake = in_camel(config)
    floats: Fields = {}
    whole = {key: _whole(fields, key, floats) for key in _WHOLE}
    sampling = read_sampling({**fields, **whole}, _SAMPLING)
    reasoning = held_or_none(fields, "thinkingConfig", _read_reasoning)
    output, unread = _read_output(fields)
    if not sampling.stop:
        unread.add("stopSequences")
    rest = rest_of(fields, _CONFIG - unread) or {}
    return Options(sampling, reasoning, output=output), rest, snake, floats or None


def _whole(fields: Fields, key: str, floats: Fields) -> int | None:
    """A whole number, which some clients write as 40.0."""
    value = optional_number(fields, key)
    if type(value) is not float:
        return value  # type: ignore[return-value]
    if not value.is_integer() or abs(value) > _EXACT:
        raise type_error("a whole number", value, f".{key}")
    floats[key] = value
    return int(value)


def _read_reasoning(config: Fields) -> Reasoning:
    """How much to think: by a budget, or by a level where there is none (a body may not have both)."""
    fields, snake = in_camel(config)
    floats: Fields = {}
    budget = _whole(fields, "thinkingBudget", floats)
    level = optional(fields, "thinkingLevel", str) if budget is None else None
    shown = optional(fields, "includeThoughts", bool)
    is_read = {
        "thinkingBudget": budget is not None and budget >= 0,
        "thinkingLevel": level is not None,
        "includeThoughts": shown is True,
    }
    form = GeminiReasoning(
        snake,
        floats or None,
        level if level is not None and level.lower().upper() != level else None,
        budget is not None and budget < 0,
        not config,
    )
    return Reasoning(
        None if budget is None else "on" if budget > 0 else "adaptive" if budget else "off",
        level.lower() if level is not None else None,
        budget if budget is not None and budget > 0 else None,
        "auto" if shown else None,
        unknown_fields(fields, frozenset(key for key, value in is_read.items() if value)),
        form=None if form == PLAIN_REASONING else form,
    )


def _read_output(config: Fields) -> tuple[OutputFormat | None, set[str]]:
    """The format of the answer, and the fields that it does not express."""
    mime = optional(config, "responseMimeType", str)
    schema, schema_field = optional(config, "responseSchema", dict), "responseSchema"
    if schema is None and type(config.get("responseJsonSchema")) is dict:
        schema, schema_field = config["responseJsonSchema"], "responseJsonSchema"
    unread = {"responseSchema", "responseJsonSchema"} - ({schema_field} if schema is not None else set())
    if not mime:
        unread.add("responseMimeType")
    if mime is None and schema is None:
        return None, unread
    form = GeminiOutput(None if mime == _JSON else mime or "", None if schema is None else schema_field)
    kind: Any = "json_schema" if schema is not None else "json" if mime == _JSON else "text"
    return OutputFormat(kind, schema=schema, form=None if form == PLAIN_OUTPUT else form), unread


# --- writing ----------------------------------------------------------------------------------------


def encode(conversation: Conversation, profile: Profile | None = None) -> Fields:
    """A conversation as a request body. What the protocol cannot express is left out.

    The profile says which of two fields holds schemas of other protocols: only one of them takes JSON Schema.
    """
    as_json_schema = profile is None or profile.schema.field == "parametersJsonSchema"
    options = conversation.options
    form = conversation.form if type(conversation.form) is GeminiRequest else PLAIN_REQUEST
    body: Fields = {}
    top, turns = _split_system(conversation.turns)
    if top:
        parts = [part for turn in top for part in _write_blocks(turn)]
        body["systemInstruction"] = write_parts({}, parts, top[0])
    body["contents"] = [_write_content(turn) for turn in turns]
    tools = _write_tools(conversation.tools, form.tool_entries or [], as_json_schema)
    if tools or form.tool_entries == []:
        body["tools"] = tools
    if options.tool_choice is not None or form.tool_config_rest is not None:
        choice = _write_choice(options.tool_choice)
        body["toolConfig"] = refill(choice, form.tool_config_rest, form.tool_config_snake)
    config = _write_config(options, form, as_json_schema)
    if config or form.config_rest is not None:
        body["generationConfig"] = config
    for key in form.single or ():
        if len(body.get(key, ())) == 1:
            (body[key],) = body[key]
    return with_unknown_fields(body, conversation.extra, form)


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
    form = content_form(turn)
    if turn.role == "tool":
        role = form.role or role
    is_omitted = turn.role == "user" and form.has_no_role
    return write_parts({} if is_omitted else {"role": role}, _write_blocks(turn), turn)


def _write_tools(tools: tuple[ToolSpec, ...], known: list[Fields], as_json_schema: bool) -> list[Fields]:
    """The tools in the entries that they came in; those from elsewhere in the first."""
    entries: list[Fields] = [{} for _ in known]
    for tool in tools:
        index = tool.form.entry if type(tool.form) is GeminiTool else 0
        entries += [{} for _ in range(len(entries), index + 1)]
        verbatim = as_it_came(tool, PROTOCOL)
        if verbatim is not None:
            entries[index].update(verbatim)
        elif not is_foreign(tool):
            entries[index].setdefault("functionDeclarations", []).append(_write_declaration(tool, as_json_schema))
    written = []
    for index, entry in enumerate(entries):
        facts = known[index] if index < len(known) else {}
        if facts.get("is_single") and len(entry.get("functionDeclarations", ())) == 1:
            (entry["functionDeclarations"],) = entry["functionDeclarations"]
        if entry or facts.get("is_empty"):
            written.append(refill(entry, facts.get("rest"), facts.get("snake")))
    return written


def _write_declaration(tool: ToolSpec, as_json_schema: bool) -> Fields:
    own = tool.form if type(tool.form) is GeminiTool else PLAIN_TOOL
    fields: Fields = {"name": tool.name}
    if tool.description is not None:
        fields["description"] = tool.description
    if tool.parameters is not None:
        usual = "parametersJsonSchema" if as_json_schema else "parameters"
        fields[own.schema_field or usual] = tool.parameters
    return with_unknown_fields(fields, tool.extra, own)


def _write_choice(choice: ToolChoice | None) -> Fields:
    if choice is None:
        return {}
    fields: Fields = {}
    word = choice.form.mode if type(choice.form) is GeminiToolChoice else None
    if word is None or _mode_of(word, choice.names) != choice.mode:
        word = _MODES_BACK[choice.mode]
    if word != "":
        fields["mode"] = word
    if choice.names:
        fields["allowedFunctionNames"] = list(choice.names)
    return {"functionCallingConfig": with_unknown_fields(fields, choice.extra, choice.form)}


def _write_config(options: Options, form: GeminiRequest, as_json_schema: bool) -> Fields:
    config = write_sampling(options.sampling, _SAMPLING)
    _as_floats(config, form.config_floats)
    thinking = _write_reasoning(options.reasoning) if options.reasoning is not None else None
    if thinking is not None:
        config["thinkingConfig"] = thinking
    if options.output is not None:
        config.update(_write_output(options.output, as_json_schema))
    return refill(config, form.config_rest, form.config_snake)


def _as_floats(fields: Fields, floats: dict[str, float] | None) -> None:
    """Whole numbers that were written as 40.0 are written so again."""
    for key, value in (floats or {}).items():
        if fields.get(key) == value:
            fields[key] = value


def _write_reasoning(reasoning: Reasoning) -> Fields | None:
    form = reasoning.form if type(reasoning.form) is GeminiReasoning else PLAIN_REASONING
    fields: Fields = {}
    if reasoning.mode == "off":
        fields["thinkingBudget"] = 0
    elif reasoning.budget_tokens is not None:
        fields["thinkingBudget"] = reasoning.budget_tokens
    elif reasoning.effort is not None:
        is_same = form.level is not None and form.level.lower() == reasoning.effort
        fields["thinkingLevel"] = form.level if is_same else reasoning.effort.upper()
    elif reasoning.mode == "adaptive" and not form.is_budget_unknown:
        fields["thinkingBudget"] = -1
    _as_floats(fields, form.floats)
    if reasoning.summary is not None:
        fields["includeThoughts"] = True
    with_unknown_fields(fields, reasoning.extra, form)
    return fields if fields or form.is_empty else None


def _write_output(output: OutputFormat, as_json_schema: bool) -> Fields:
    form = output.form if type(output.form) is GeminiOutput else PLAIN_OUTPUT
    mime = form.mime
    if mime is None and output.kind != "text":
        mime = _JSON
    fields: Fields = {"responseMimeType": mime} if mime else {}
    if output.schema is not None:
        usual = "responseJsonSchema" if as_json_schema else "responseSchema"
        fields[form.schema_field or usual] = output.schema
    return fields
