"""Requests of the OpenAI Responses protocol (`POST /v1/responses`), both ways."""

from __future__ import annotations

from typing import Any, Final, Literal

from toolglot.conversation import (
    ChoiceMode,
    Conversation,
    Extra,
    Options,
    OutputFormat,
    Reasoning,
    Text,
    ToolChoice,
    Turn,
)
from toolglot.conversation.tool_memory import written_tools
from toolglot.profiles import Profile
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
    optional,
    present,
    required,
    rest_of,
    restored,
    with_rest,
)
from toolglot.protocols.fields.sampling import read_sampling, write_sampling
from toolglot.protocols.openai_responses.items import ItemWriter, joined_runs, read_item
from toolglot.protocols.openai_responses.parts import PROTOCOL
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
_ALLOWED = frozenset({"type", "mode", "tools"})
_CHOICES: Final[dict[str, ChoiceMode]] = {"auto": "auto", "none": "none", "required": "required"}
_FORMATS: Final[dict[str, Literal["text", "json"]]] = {"text": "text", "json_object": "json"}
_FORMATS_BACK: Final = {kind: written for written, kind in _FORMATS.items()}


def stores_answers(extra: Extra | None) -> bool:
    """Whether the provider keeps what it answers, so that an item can be sent by its id alone: unless told not to."""
    return extra is None or extra.get(PROTOCOL, {}).get("store") is not False


@from_root
def decode(body: Fields) -> Conversation:
    """A request body as a conversation. Nothing is repaired; what is of the wrong type is an error."""
    return Conversation(
        (*_read_instructions(body), *_read_input(body)),
        read_tools(body),
        _read_options(body),
        optional(body, "model", str) or "",
        _read_rest(body),
    )


def _read_rest(body: Fields) -> Extra | None:
    """What the body says that has no canonical place."""
    rest = leftover(body, _BODY, PROTOCOL)
    written: Fields = {key: body[key] for key in ("tools", "model") if body.get(key) in ([], "")}
    if body.get("input") is None:
        written["input"] = "absent"
    if type(body.get("text")) is dict:
        written["text"] = rest_of(body["text"], _TEXT) or {}
    return noted(rest, PROTOCOL, **written)


def _read_instructions(body: Fields) -> list[Turn]:
    text = optional(body, "instructions", str)
    return [] if text is None else [Turn("system", (Text(text),), extra=noted(None, PROTOCOL, system="top"))]


def _read_input(body: Fields) -> list[Turn]:
    """Absent where a stored prompt or an earlier response stands for it."""
    found: Any = body.get("input")
    if found is None:
        return []
    if type(found) is str:
        return [Turn("user", (Text(found),), extra=noted(None, PROTOCOL, content="text", input="text"))]
    if type(found) is not list:
        raise expected("a string or an array of items", found, ".input")
    return joined_runs(each(found, read_item, ".input"))


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
        if parallel is None:
            return None
        return ToolChoice(parallel=parallel, extra=noted(None, PROTOCOL, unsaid=True))
    if type(found) is str:
        mode = _CHOICES.get(found)
        return ToolChoice(mode or "auto", (), parallel, None if mode else {PROTOCOL: {"~choice": found}})
    if type(found) is not dict:
        raise expected("a string or an object", found, ".tool_choice")
    return held(body, "tool_choice", lambda fields: _read_choice_of_tools(fields, parallel))


def _read_choice_of_tools(fields: Fields, parallel: bool | None) -> ToolChoice:
    kind = required(fields, "type", str)
    if kind in ("function", "custom"):
        extra = noted(leftover(fields, _CHOICE, PROTOCOL), PROTOCOL, type=None if kind == "function" else kind)
        return ToolChoice("named", (required(fields, "name", str),), parallel, extra)
    if kind == "allowed_tools":
        tools = required(fields, "tools", list)
        mode = optional(fields, "mode", str)
        extra = noted(leftover(fields, _ALLOWED, PROTOCOL), PROTOCOL, mode=mode, tools=tools)
        return ToolChoice("required" if mode == "required" else "allowed", _names_of(tools), parallel, extra)
    return ToolChoice(parallel=parallel, extra={PROTOCOL: {"~choice": fields}})


def _names_of(tools: list[Any]) -> tuple[str, ...]:
    """The names of allowed tools; hosted ones have none."""
    names = each(tools, lambda tool: optional(tool, "name", str), ".tools")
    return tuple(name for name in names if name is not None)


def _read_reasoning(fields: Fields) -> Reasoning:
    effort, summary = optional(fields, "effort", str), optional(fields, "summary", str)
    said = True if effort is None and summary is None else None
    extra = noted(leftover(fields, _REASONING, PROTOCOL), PROTOCOL, said=said)
    return Reasoning(effort=effort, summary=summary, extra=extra)


def _read_format(fields: Fields) -> OutputFormat:
    kind = required(fields, "type", str)
    plain = _FORMATS.get(kind)
    if plain is not None:
        return OutputFormat(plain, extra=leftover(fields, frozenset({"type"}), PROTOCOL))
    if kind != "json_schema":
        return OutputFormat(extra={PROTOCOL: {"~format": fields}})
    name, schema = optional(fields, "name", str), optional(fields, "schema", dict)
    strict = optional(fields, "strict", bool)
    if name is None or schema is None:
        return OutputFormat("json_schema", name, schema, strict, {PROTOCOL: {"~format": fields}})
    description: Any = fields.get("description")
    if type(description) is not str:
        return OutputFormat("json_schema", name, schema, strict, leftover(fields, _FORMAT, PROTOCOL))
    extra = leftover(fields, _DESCRIBED_FORMAT, PROTOCOL)
    return OutputFormat("json_schema", name, schema, strict, extra, description=description)


# --- writing ----------------------------------------------------------------------------------------


def encode(conversation: Conversation, profile: Profile | None = None) -> Fields:  # noqa: ARG001
    """A conversation as a request body. What the protocol has no place for is not written.

    The protocol has one form only, whatever the profile of the target says.
    """
    options, extra = conversation.options, conversation.extra
    body: Fields = {}
    if conversation.model or note(extra, PROTOCOL, "model") is not None:
        body["model"] = conversation.model
    turns = conversation.turns
    if turns and _is_instructions(turns[0]):
        body["instructions"] = turns[0].text
        turns = turns[1:]
    if turns or note(extra, PROTOCOL, "input") is None:
        body["input"] = _write_input(turns)
    if conversation.tools or note(extra, PROTOCOL, "tools") is not None:
        body["tools"] = written_tools(conversation.tools, PROTOCOL, write_tools)
    if options.tool_choice is not None:
        _write_choice(body, options.tool_choice)
    body.update(write_sampling(options.sampling, _SAMPLING))
    body.update(present({"stream": options.stream, "user": options.user}))
    if options.reasoning is not None:
        _write_reasoning(body, options.reasoning)
    if options.output is not None or note(extra, PROTOCOL, "text") is not None:
        format: Fields = {} if options.output is None else {"format": _write_format(options.output)}
        body["text"] = with_rest(format, extra, PROTOCOL, "text")
    return restored(body, extra, PROTOCOL)


def _is_instructions(turn: Turn) -> bool:
    """A system prompt of one text at the head, unless it was sent as a message."""
    plain = turn.role == "system" and len(turn.blocks) == 1 and isinstance(turn.blocks[0], Text)
    return plain and note(turn.extra, PROTOCOL, "system") != "message"


def _write_input(turns: tuple[Turn, ...]) -> str | list[Fields]:
    if len(turns) == 1 and note(turns[0].extra, PROTOCOL, "input") == "text":
        (turn,) = turns
        if len(turn.blocks) == 1 and isinstance(turn.blocks[0], Text):
            return turn.text
    writer = ItemWriter(turns)
    for turn in turns:
        writer.write(turn)
    return writer.items


def _write_choice(body: Fields, choice: ToolChoice) -> None:
    if choice.parallel is not None:
        body["parallel_tool_calls"] = choice.parallel
    if choice.mode == "auto" and note(choice.extra, PROTOCOL, "unsaid") is not None:
        return
    verbatim = note(choice.extra, PROTOCOL, "choice")
    if verbatim is not None:
        body["tool_choice"] = verbatim
    elif choice.mode == "named":
        kind = note(choice.extra, PROTOCOL, "type") or "function"
        body["tool_choice"] = restored({"type": kind, "name": choice.names[0]}, choice.extra, PROTOCOL)
    elif choice.mode == "allowed" or choice.names or note(choice.extra, PROTOCOL, "tools") is not None:
        body["tool_choice"] = _write_allowed(choice)
    else:
        body["tool_choice"] = choice.mode


def _write_allowed(choice: ToolChoice) -> Fields:
    written = note(choice.extra, PROTOCOL, "tools")
    tools = [{"type": "function", "name": name} for name in choice.names]
    if written is not None and _names_of(written) == choice.names:
        tools = written
    fields: Fields = {"type": "allowed_tools", "tools": tools}
    usual = "required" if choice.mode == "required" else "auto"
    mode = usual if written is None else note(choice.extra, PROTOCOL, "mode")
    if mode is not None:
        fields["mode"] = mode
    return restored(fields, choice.extra, PROTOCOL)


def _write_reasoning(body: Fields, reasoning: Reasoning) -> None:
    fields = {"effort": reasoning.effort, "summary": reasoning.summary}
    written = present(fields)
    if written or note(reasoning.extra, PROTOCOL, "said") is not None:
        body["reasoning"] = restored(written, reasoning.extra, PROTOCOL)


def _write_format(output: OutputFormat) -> Fields:
    verbatim: Fields | None = note(output.extra, PROTOCOL, "format")
    if verbatim is not None:
        return verbatim
    if output.kind != "json_schema":
        return restored({"type": _FORMATS_BACK[output.kind]}, output.extra, PROTOCOL)
    name = "output" if output.name is None else output.name  # the protocol wants one
    fields: Fields = {"type": "json_schema", "name": name, "schema": output.schema or {}}
    if output.strict is not None:
        fields["strict"] = output.strict
    if output.description is not None:
        fields["description"] = output.description
    return restored(fields, output.extra, PROTOCOL)
