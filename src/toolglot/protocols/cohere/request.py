"""Requests of Cohere's chat protocol (`POST /v2/chat`), both ways."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import (
    ChoiceMode,
    Conversation,
    Opaque,
    Options,
    OutputFormat,
    Reasoning,
    ReasoningMode,
    ToolChoice,
    ToolSpec,
)
from toolglot.profiles import Profile
from toolglot.protocols.cohere.form import PROTOCOL, CohereOutput, CohereTool
from toolglot.protocols.cohere.messages import read_message, write_turn
from toolglot.protocols.fields.function_tools import is_foreign, read_function_tool, write_function_tool
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    from_root,
    held_or_none,
    leftover,
    opaque_value,
    optional,
    required,
    with_extra,
    without_empty,
)
from toolglot.protocols.fields.sampling import read_sampling, write_sampling
from toolglot.protocols.fields.turn_parts import one_by_one

_SAMPLING: Final = {
    "max_tokens": "max_tokens",
    "temperature": "temperature",
    "top_p": "p",
    "top_k": "k",
    "stop": "stop_sequences",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
_BODY = frozenset(
    {"model", "messages", "tools", "tool_choice", "stream", "response_format", "thinking", *_SAMPLING.values()}
)
_THINKING = frozenset({"type", "token_budget"})
_FORMATS: Final = ("text", "json_object")
_SCHEMAS: Final = ("json_schema", "schema")
_CHOICES: Final[dict[str, ChoiceMode]] = {"REQUIRED": "required", "NONE": "none"}
_CHOICES_BACK: Final[dict[ChoiceMode, str]] = {"required": "REQUIRED", "named": "REQUIRED", "none": "NONE"}
_MODES: Final[dict[str, ReasoningMode]] = {"enabled": "on", "disabled": "off"}


turn_parts: Final = one_by_one


@from_root
def decode(body: Fields) -> Conversation:
    """A request body as a conversation. Nothing is repaired; what is of the wrong type is an error."""
    turns = each(required(body, "messages", list), read_message, ".messages")
    strict = optional(body, "strict_tools", bool)
    tools = each(
        optional(body, "tools", list) or (),
        lambda tool: read_function_tool(tool, CohereTool, strict=strict),
        ".tools",
    )
    return Conversation(
        tuple(turns),
        tuple(tools),
        _read_options(body),
        optional(body, "model", str) or "",
        leftover(body, without_empty(body, _BODY), PROTOCOL),
    )


def _read_options(body: Fields) -> Options:
    return Options(
        sampling=read_sampling(body, _SAMPLING),
        reasoning=held_or_none(body, "thinking", _read_reasoning),
        tool_choice=_read_choice(body),
        output=held_or_none(body, "response_format", _read_output),
        stream=optional(body, "stream", bool),
    )


def _read_choice(body: Fields) -> ToolChoice | None:
    written = optional(body, "tool_choice", str)
    if written is None:
        return None
    mode = _CHOICES.get(written)
    return ToolChoice(opaque=Opaque(PROTOCOL, written)) if mode is None else ToolChoice(mode)


def _read_reasoning(thinking: Fields) -> Reasoning:
    mode = _MODES.get(required(thinking, "type", str))
    if mode is None:
        return Reasoning(opaque=Opaque(PROTOCOL, thinking))
    budget = optional(thinking, "token_budget", int)
    return Reasoning(mode, budget_tokens=budget, extra=leftover(thinking, _THINKING, PROTOCOL))


def _read_output(format: Fields) -> OutputFormat:
    kind = required(format, "type", str)
    named = [key for key in _SCHEMAS if format.get(key) is not None]
    if kind not in _FORMATS or len(named) > (kind == "json_object"):
        return OutputFormat(opaque=Opaque(PROTOCOL, format))
    schema = required(format, named[0], dict) if named else None
    extra = leftover(format, frozenset({"type", *named}), PROTOCOL)
    if kind == "text":
        return OutputFormat(extra=extra)
    form = CohereOutput("schema") if named == ["schema"] else None
    return OutputFormat("json_schema" if named else "json", schema=schema, extra=extra, form=form)


# --- writing ----------------------------------------------------------------------------------------


def encode(conversation: Conversation, profile: Profile | None = None) -> Fields:  # noqa: ARG001
    """A conversation as a request body. What the protocol cannot express is left out."""
    options = conversation.options
    body: Fields = {"model": conversation.model} if conversation.model else {}
    body["messages"] = [message for turn in conversation.turns for message in write_turn(turn)]
    _write_tools(body, conversation.tools)
    choice = _write_choice(options.tool_choice)
    if choice is not None:
        body["tool_choice"] = choice
    body.update(write_sampling(options.sampling, _SAMPLING))
    if options.stream is not None:
        body["stream"] = options.stream
    thinking = _write_reasoning(options.reasoning)
    if thinking is not None:
        body["thinking"] = thinking
    if options.output is not None:
        body["response_format"] = _write_output(options.output)
    return with_extra(body, conversation.extra, PROTOCOL)


def _write_tools(body: Fields, tools: tuple[ToolSpec, ...]) -> None:
    """The tools. Strictness is one flag for all of them: it is set if every one wants it."""
    written = [fields for tool in tools if (fields := _write_tool(tool)) is not None]
    if written:
        body["tools"] = written
    functions = [tool for tool in tools if not is_foreign(tool)]
    if functions and all(tool.strict for tool in functions):
        body["strict_tools"] = True


def _write_tool(tool: ToolSpec) -> Fields | None:
    return write_function_tool(tool, CohereTool, needs_parameters=True)


def _write_choice(choice: ToolChoice | None) -> str | None:
    """Without a tool choice, Cohere chooses freely."""
    if choice is None:
        return None
    verbatim: str | None = opaque_value(choice.opaque, PROTOCOL)
    return _CHOICES_BACK.get(choice.mode) if verbatim is None else verbatim


def _write_reasoning(reasoning: Reasoning | None) -> Fields | None:
    if reasoning is None:
        return None
    verbatim: Fields | None = opaque_value(reasoning.opaque, PROTOCOL)
    if verbatim is not None or reasoning.mode is None:
        return verbatim
    fields: Fields = {"type": "disabled" if reasoning.mode == "off" else "enabled"}
    if reasoning.budget_tokens is not None:
        fields["token_budget"] = reasoning.budget_tokens
    return with_extra(fields, reasoning.extra, PROTOCOL)


def _write_output(output: OutputFormat) -> Fields:
    verbatim: Fields | None = opaque_value(output.opaque, PROTOCOL)
    if verbatim is not None:
        return verbatim
    fields: Fields = {"type": "text" if output.kind == "text" else "json_object"}
    if output.schema is not None:
        form = output.form
        fields[(type(form) is CohereOutput and form.schema_field) or "json_schema"] = output.schema
    return with_extra(fields, output.extra, PROTOCOL)
