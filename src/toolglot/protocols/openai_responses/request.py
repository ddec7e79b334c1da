"""Requests of the OpenAI Responses protocol (`POST /v1/responses`), both ways."""

from __future__ import annotations

from typing import Any, Final, Literal

from toolglot.conversation import (
    ChoiceMode,
    Conversation,
    Extra,
    Opaque,
    Options,
    OutputFormat,
    Reasoning,
    Text,
    ToolChoice,
    Turn,
)
from toolglot.conversation.tool_memory import encode_tools
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    from_root,
    held_or_none,
    leftover,
    opaque_value,
    optional,
    present,
    read_required,
    required,
    rest_of,
    type_error,
    with_extra,
    with_rest,
)
from toolglot.protocols.fields.sampling import read_sampling, write_sampling
from toolglot.protocols.openai_responses.client_tools import BY_TYPE
from toolglot.protocols.openai_responses.form import (
    CUSTOM_CHOICE,
    EMPTY_REASONING,
    INPUT_STRING,
    INSTRUCTIONS,
    MODE_UNSET,
    PLAIN_CHOICE,
    PLAIN_REQUEST,
    PROTOCOL,
    TYPED_CHOICE,
    ResponsesChoice,
    ResponsesMessage,
    ResponsesReasoning,
    ResponsesRequest,
)
from toolglot.protocols.openai_responses.items import ItemWriter, read_items, split_items
from toolglot.protocols.openai_responses.tools import read_tools, write_tools

_BODY = frozenset(
    {"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls", "max_output_tokens"}
    | {"temperature", "top_p", "reasoning", "text", "stream", "user"}
)
_SAMPLING: Final = {"max_tokens": "max_output_tokens", "temperature": "temperature", "top_p": "top_p"}
_REASONING = frozenset({"effort", "summary"})
_TEXT = frozenset({"format"})
_FORMAT = frozenset({"type", "name", "schema", "strict"})
_DESCRIBED_FORMAT = _FORMAT | {"description"}
_CHOICE = frozenset({"type", "name"})
_TYPED_CHOICE = frozenset({"type"})
_ALLOWED = frozenset({"type", "mode", "tools"})
_CHOICES: Final[dict[str, ChoiceMode]] = {"auto": "auto", "none": "none", "required": "required"}
_FORMATS: Final[dict[str, Literal["text", "json"]]] = {"text": "text", "json_object": "json"}
_FORMATS_BACK: Final = {kind: written for written, kind in _FORMATS.items()}


def stores_answers(extra: Extra | None) -> bool:
    """Whether the provider stores its replies, so that an item can be sent by its id alone. That is the default."""
    return extra is None or extra.get(PROTOCOL, {}).get("store") is not False


turn_parts: Final = split_items


@from_root
def decode(body: Fields) -> Conversation:
    """A request body as a conversation. Nothing is repaired; what is of the wrong type is an error."""
    return Conversation(
        (*_read_instructions(body), *_read_input(body)),
        read_tools(body),
        _read_options(body),
        optional(body, "model", str) or "",
        leftover(body, _BODY, PROTOCOL),
        _read_form(body),
    )


def _read_form(body: Fields) -> ResponsesRequest | None:
    text = body.get("text")
    form = ResponsesRequest(
        has_empty_model=body.get("model") == "",
        has_empty_tools=body.get("tools") == [],
        has_no_input=body.get("input") is None,
        text_rest=(rest_of(text, _TEXT) or {}) if type(text) is dict else None,
    )
    return None if form == PLAIN_REQUEST else form


def _read_instructions(body: Fields) -> list[Turn]:
    text = optional(body, "instructions", str)
    return [] if text is None else [Turn("system", (Text(text),), form=INSTRUCTIONS)]


def _read_input(body: Fields) -> list[Turn]:
    """Absent where a stored prompt or an earlier response stands for it."""
    found: Any = body.get("input")
    if found is None:
        return []
    if type(found) is str:
        return [Turn("user", (Text(found),), form=INPUT_STRING)]
    if type(found) is not list:
        raise type_error("a string or an array of items", found, ".input")
    return read_items(found)


def _read_options(body: Fields) -> Options:
    return Options(
        sampling=read_sampling(body, _SAMPLING),
        reasoning=held_or_none(body, "reasoning", _read_reasoning),
        tool_choice=_read_choice(body),
        output=held_or_none(body, "text", lambda text: held_or_none(text, "format", _read_format)),
        stream=optional(body, "stream", bool),
        user=optional(body, "user", str),
    )


def _read_choice(body: Fields) -> ToolChoice | None:
    found: Any = body.get("tool_choice")
    parallel = optional(body, "parallel_tool_calls", bool)
    if found is None:
        return None if parallel is None else ToolChoice(parallel=parallel, form=MODE_UNSET)
    if type(found) is str:
        mode = _CHOICES.get(found)
        return ToolChoice(mode or "auto", (), parallel, opaque=None if mode else Opaque(PROTOCOL, found))
    if type(found) is not dict:
        raise type_error("a string or an object", found, ".tool_choice")
    return read_required(body, "tool_choice", lambda fields: _read_choice_of_tools(fields, parallel))


def _read_choice_of_tools(fields: Fields, parallel: bool | None) -> ToolChoice:
    kind = required(fields, "type", str)
    if kind in ("function", "custom"):
        form = None if kind == "function" else CUSTOM_CHOICE
        extra = leftover(fields, _CHOICE, PROTOCOL)
        return ToolChoice("named", (required(fields, "name", str),), parallel, extra, form)
    if kind == "allowed_tools":
        tools = required(fields, "tools", list)
        mode = optional(fields, "mode", str)
        form = ResponsesChoice(allowed_tools=tools, allowed_mode=mode)
        extra = leftover(fields, _ALLOWED, PROTOCOL)
        return ToolChoice("required" if mode == "required" else "allowed", _names_of(tools), parallel, extra, form)
    if kind in BY_TYPE:
        return ToolChoice("named", (kind,), parallel, leftover(fields, _TYPED_CHOICE, PROTOCOL), TYPED_CHOICE)
    return ToolChoice(parallel=parallel, opaque=Opaque(PROTOCOL, fields, kind))


def _names_of(tools: list[Any]) -> tuple[str, ...]:
    """The names of allowed tools; hosted ones have none."""
    names = each(tools, _name_of, ".tools")
    return tuple(name for name in names if name is not None)


def _name_of(tool: Fields) -> str | None:
    kind = tool.get("type")
    return kind if type(kind) is str and kind in BY_TYPE else optional(tool, "name", str)


def _read_reasoning(fields: Fields) -> Reasoning:
    effort, summary = optional(fields, "effort", str), optional(fields, "summary", str)
    form = EMPTY_REASONING if effort is None and summary is None else None
    return Reasoning(effort=effort, summary=summary, extra=leftover(fields, _REASONING, PROTOCOL), form=form)


def _read_format(fields: Fields) -> OutputFormat:
    kind = required(fields, "type", str)
    plain = _FORMATS.get(kind)
    if plain is not None:
        return OutputFormat(plain, extra=leftover(fields, frozenset({"type"}), PROTOCOL))
    if kind != "json_schema":
        return OutputFormat(opaque=Opaque(PROTOCOL, fields, kind))
    name, schema = optional(fields, "name", str), optional(fields, "schema", dict)
    strict = optional(fields, "strict", bool)
    if name is None or schema is None:
        return OutputFormat("json_schema", name, schema, strict, opaque=Opaque(PROTOCOL, fields, kind))
    description: Any = fields.get("description")
    if type(description) is not str:
        return OutputFormat("json_schema", name, schema, strict, leftover(fields, _FORMAT, PROTOCOL))
    extra = leftover(fields, _DESCRIBED_FORMAT, PROTOCOL)
    return OutputFormat("json_schema", name, schema, strict, extra, description=description)


# --- writing ----------------------------------------------------------------------------------------


def encode(conversation: Conversation, profile: Profile | None = None) -> Fields:  # noqa: ARG001
    """A conversation as a request body. What the protocol cannot express is left out.

    The protocol has one form only, whatever the profile of the target says.
    """
    options, extra = conversation.options, conversation.extra
    form = conversation.form if type(conversation.form) is ResponsesRequest else PLAIN_REQUEST
    body: Fields = {}
    if conversation.model or form.has_empty_model:
        body["model"] = conversation.model
    turns = conversation.turns
    if turns and _is_instructions(turns[0]):
        body["instructions"] = turns[0].text
        turns = turns[1:]
    if turns or not form.has_no_input:
        body["input"] = _write_input(turns)
    if conversation.tools or form.has_empty_tools:
        body["tools"] = encode_tools(conversation.tools, PROTOCOL, write_tools)
    if options.tool_choice is not None:
        _write_choice(body, options.tool_choice)
    body.update(write_sampling(options.sampling, _SAMPLING))
    body.update(present({"stream": options.stream, "user": options.user}))
    if options.reasoning is not None:
        _write_reasoning(body, options.reasoning)
    if options.output is not None or form.text_rest is not None:
        format: Fields = {} if options.output is None else {"format": _write_format(options.output)}
        body["text"] = with_rest(with_rest(format, form.text_rest), _text_from_elsewhere(extra))
    return with_extra(body, extra, PROTOCOL)


def _text_from_elsewhere(extra: Extra | None) -> Fields | None:
    """Fields of `text` that were carried here from another protocol."""
    text = extra.get(PROTOCOL, {}).get("text") if extra else None
    return text if type(text) is dict else None


def _is_instructions(turn: Turn) -> bool:
    """A system prompt of one text at the head, unless it was sent as a message."""
    plain = turn.role == "system" and len(turn.blocks) == 1 and isinstance(turn.blocks[0], Text)
    return plain and (type(turn.form) is not ResponsesMessage or turn.form.prompt_position != "message")


def _write_input(turns: tuple[Turn, ...]) -> str | list[Fields]:
    if len(turns) == 1:
        (turn,) = turns
        is_input = type(turn.form) is ResponsesMessage and turn.form.is_input
        if is_input and len(turn.blocks) == 1 and isinstance(turn.blocks[0], Text):
            return turn.text
    writer = ItemWriter(turns)
    for turn in turns:
        writer.write(turn)
    return writer.items


def _write_choice(body: Fields, choice: ToolChoice) -> None:
    if choice.parallel is not None:
        body["parallel_tool_calls"] = choice.parallel
    form = choice.form if type(choice.form) is ResponsesChoice else PLAIN_CHOICE
    if choice.mode == "auto" and form.is_mode_unset:
        return
    verbatim = opaque_value(choice.opaque, PROTOCOL)
    if verbatim is not None:
        body["tool_choice"] = verbatim
    elif choice.mode == "named" and form.is_typed:
        body["tool_choice"] = with_extra({"type": choice.names[0]}, choice.extra, PROTOCOL)
    elif choice.mode == "named":
        kind = "custom" if form.is_custom else "function"
        body["tool_choice"] = with_extra({"type": kind, "name": choice.names[0]}, choice.extra, PROTOCOL)
    elif choice.mode == "allowed" or choice.names or form.allowed_tools is not None:
        body["tool_choice"] = _write_allowed(choice, form)
    else:
        body["tool_choice"] = choice.mode


def _write_allowed(choice: ToolChoice, form: ResponsesChoice) -> Fields:
    written = form.allowed_tools
    tools = [{"type": "function", "name": name} for name in choice.names]
    if written is not None and _names_of(written) == choice.names:
        tools = written
    fields: Fields = {"type": "allowed_tools", "tools": tools}
    usual = "required" if choice.mode == "required" else "auto"
    mode = usual if written is None else form.allowed_mode
    if mode is not None:
        fields["mode"] = mode
    return with_extra(fields, choice.extra, PROTOCOL)


def _write_reasoning(body: Fields, reasoning: Reasoning) -> None:
    fields = {"effort": reasoning.effort, "summary": reasoning.summary}
    written = present(fields)
    if written or type(reasoning.form) is ResponsesReasoning:
        body["reasoning"] = with_extra(written, reasoning.extra, PROTOCOL)


def _write_format(output: OutputFormat) -> Fields:
    verbatim: Fields | None = opaque_value(output.opaque, PROTOCOL)
    if verbatim is not None:
        return verbatim
    if output.kind != "json_schema":
        return with_extra({"type": _FORMATS_BACK[output.kind]}, output.extra, PROTOCOL)
    name = "output" if output.name is None else output.name  # the protocol wants one
    fields: Fields = {"type": "json_schema", "name": name, "schema": output.schema or {}}
    if output.strict is not None:
        fields["strict"] = output.strict
    if output.description is not None:
        fields["description"] = output.description
    return with_extra(fields, output.extra, PROTOCOL)
