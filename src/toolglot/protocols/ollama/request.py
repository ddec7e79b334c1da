"""Requests of Ollama's chat protocol (`POST /api/chat`), both ways."""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import Conversation, Opaque, Options, OutputFormat, Reasoning, Sampling
from toolglot.profiles import Profile
from toolglot.protocols.fields.function_tools import read_function_tool, write_function_tool
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    from_root,
    held_or_none,
    leftover,
    opaque_value,
    optional,
    required,
    rest_of,
    type_error,
    with_extra,
    with_rest,
    without_empty,
)
from toolglot.protocols.fields.sampling import read_sampling, write_sampling
from toolglot.protocols.fields.turn_parts import one_by_one
from toolglot.protocols.ollama.form import PROTOCOL, OllamaRequest, OllamaTool
from toolglot.protocols.ollama.messages import read_message, write_turn

_BODY = frozenset({"model", "messages", "tools", "stream", "options", "think", "format"})
_SAMPLING: Final = {
    "max_tokens": "num_predict",
    "temperature": "temperature",
    "top_p": "top_p",
    "top_k": "top_k",
    "stop": "stop",
    "seed": "seed",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
_OPTIONS = frozenset(_SAMPLING.values())
_NOTHING: Final = OllamaRequest()
_WHOLE: Final = ("top_k", "num_predict", "seed")


turn_parts: Final = one_by_one


@from_root
def decode(body: Fields) -> Conversation:
    """A request body as a conversation. Nothing is repaired; what is of the wrong type is an error."""
    turns = each(required(body, "messages", list), read_message, ".messages")
    tools = each(optional(body, "tools", list) or (), lambda tool: read_function_tool(tool, OllamaTool), ".tools")
    sampling, rest = held_or_none(body, "options", _read_sampling) or (Sampling(), None)
    stream = optional(body, "stream", bool)
    options = Options(
        sampling=sampling,
        reasoning=_read_reasoning(body),
        output=_read_output(body),
        stream=True if stream is None else stream,
    )
    form = OllamaRequest(rest, stream is None) if rest is not None or stream is None else None
    extra = leftover(body, without_empty(body, _BODY), PROTOCOL)
    return Conversation(tuple(turns), tuple(tools), options, optional(body, "model", str) or "", extra, form)


def _read_sampling(fields: Fields) -> tuple[Sampling, Fields]:
    """The settings that every protocol has, and the others as they are.

    Ollama reads 40.0 as the whole number that it is, and a negative `num_predict` as no limit; neither has a
    canonical form.
    """
    odd = {key for key in _WHOLE if type(fields.get(key)) is float}
    limit: Any = fields.get("num_predict")
    if type(limit) is int and limit < 0:
        odd.add("num_predict")
    plain = {key: value for key, value in fields.items() if key not in odd}
    rest = rest_of(fields, without_empty(fields, _OPTIONS - odd))
    return read_sampling(plain, _SAMPLING), rest or {}


def _read_reasoning(body: Fields) -> Reasoning | None:
    think: Any = body.get("think")
    if think is None:
        return None
    if type(think) is bool:
        return Reasoning("on" if think else "off")
    if type(think) is not str:
        raise type_error("true, false or a string", think, ".think")
    return Reasoning("on", think)


def _read_output(body: Fields) -> OutputFormat | None:
    format: Any = body.get("format")
    if format is None:
        return None
    if type(format) is dict:
        return OutputFormat("json_schema", schema=format)
    if type(format) is not str:
        raise type_error('"json" or an object', format, ".format")
    return OutputFormat("json") if format == "json" else OutputFormat(opaque=Opaque(PROTOCOL, format))


# --- writing ----------------------------------------------------------------------------------------


def encode(conversation: Conversation, profile: Profile | None = None) -> Fields:  # noqa: ARG001
    """A conversation as a request body. What the protocol cannot express is left out."""
    options = conversation.options
    body: Fields = {"model": conversation.model} if conversation.model else {}
    body["messages"] = [message for turn in conversation.turns for message in write_turn(turn)]
    tools = [fields for tool in conversation.tools if (fields := write_function_tool(tool, OllamaTool)) is not None]
    if tools:
        body["tools"] = tools
    settings = write_sampling(options.sampling, _SAMPLING)
    form = conversation.form if type(conversation.form) is OllamaRequest else _NOTHING
    if settings or form.options_rest is not None:
        body["options"] = with_rest(settings, form.options_rest)
    if not (options.stream and form.is_stream_implied):
        body["stream"] = bool(options.stream)  # this protocol streams by default
    _write_reasoning_and_output(body, options)
    return with_extra(body, conversation.extra, PROTOCOL)


def _write_reasoning_and_output(body: Fields, options: Options) -> None:
    reasoning, output = options.reasoning, options.output
    if reasoning is not None and reasoning.mode == "off":
        body["think"] = False
    elif reasoning is not None and reasoning.effort is not None:
        body["think"] = reasoning.effort
    elif reasoning is not None and reasoning.mode is not None:
        body["think"] = True
    if output is None:
        return
    verbatim = opaque_value(output.opaque, PROTOCOL)
    if verbatim is not None:
        body["format"] = verbatim
    elif output.schema is not None:
        body["format"] = output.schema
    elif output.kind == "json":
        body["format"] = "json"
