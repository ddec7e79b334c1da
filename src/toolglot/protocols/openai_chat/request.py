"""Requests of the Chat Completions protocol (`POST /v1/chat/completions`), both ways."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import (
    ChoiceMode,
    Conversation,
    Extra,
    Opaque,
    Options,
    OutputFormat,
    Sampling,
    ToolChoice,
    ToolSpec,
    Turn,
)
from toolglot.conversation.tool_memory import encode_tools
from toolglot.errors import InputError
from toolglot.profiles import Profile
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    from_root,
    held_or_none,
    leftover,
    optional,
    optional_texts,
    read_required,
    required,
    rest_of,
    type_error,
    with_extra,
    with_rest,
)
from toolglot.protocols.fields.sampling import read_sampling, write_sampling
from toolglot.protocols.fields.turn_parts import one_by_one
from toolglot.protocols.openai_chat.form import MODE_UNSET, PROTOCOL, ChatChoice, ChatOutput, ChatRequest
from toolglot.protocols.openai_chat.messages import read_message, style_of, write_turn
from toolglot.protocols.openai_chat.reasoning import read_reasoning, reasoning_fields, write_reasoning
from toolglot.protocols.openai_chat.tools import read_tool, write_tool

_BODY = frozenset(
    {"model", "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "max_completion_tokens"}
    | {
        "temperature",
        "top_p",
        "seed",
        "random_seed",
        "presence_penalty",
        "frequency_penalty",
        "stop",
        "reasoning_effort",
    }
    | {"response_format", "stream", "user"}
)
_NAMED = frozenset({"name"})
_FORMAT = frozenset({"type", "json_schema"})
_SCHEMA = frozenset({"name", "schema", "strict"})
_DESCRIBED_SCHEMA = _SCHEMA | {"description"}
_PLAIN: Final = ChatRequest()
_LIMITS: Final = ("max_completion_tokens", "max_tokens")
"""The fields that limit an answer; the second is the old name, which many hosts know alone."""
_SEEDS: Final = ("seed", "random_seed")
"""The fields with the seed; the second is Mistral's."""
_SAMPLING: Final = {
    "temperature": "temperature",
    "top_p": "top_p",
    "presence_penalty": "presence_penalty",
    "frequency_penalty": "frequency_penalty",
}
_CHOICES: Final[dict[str, ChoiceMode]] = {"auto": "auto", "none": "none", "required": "required", "any": "required"}


turn_parts: Final = one_by_one


@from_root
def decode(body: Fields) -> Conversation:
    """A request body as a conversation. Nothing is repaired; what is of the wrong type is an error."""
    return Conversation(
        tuple(each(required(body, "messages", list), read_message, ".messages")),
        tuple(each(optional(body, "tools", list) or (), read_tool, ".tools")),
        _read_options(body),
        optional(body, "model", str) or "",
        _read_rest(body),
        _read_form(body),
    )


def _read_rest(body: Fields) -> Extra | None:
    """The fields of the body that are not known."""
    known = _BODY if body.get("model") else _BODY - {"model"}
    repeated = [key for names in (_LIMITS, _SEEDS) for key in _present(body, names)[1:]]
    return leftover(body, known.difference(repeated).union(reasoning_fields(body)), PROTOCOL)


def _present(body: Fields, names: tuple[str, ...]) -> list[str]:
    """Those of some fields with the same meaning that are set. The first counts."""
    return [key for key in names if body.get(key) is not None]


def _read_form(body: Fields) -> ChatRequest | None:
    stop: Any = body.get("stop")
    form = ChatRequest(
        next(iter(_present(body, _LIMITS)), None),
        body.get("tools") == [],
        "text" if type(stop) is str else "empty" if stop == [] else None,
        next(iter(_present(body, _SEEDS)), None),
    )
    return None if form == _PLAIN else form


def _read_options(body: Fields) -> Options:
    limits, seeds = ([optional(body, key, int) for key in names] for names in (_LIMITS, _SEEDS))
    stop: Any = body.get("stop")
    return Options(
        sampling=replace(
            read_sampling(body, _SAMPLING),
            max_tokens=limits[0] if limits[0] is not None else limits[1],
            seed=seeds[0] if seeds[0] is not None else seeds[1],
            stop=(stop,) if type(stop) is str else optional_texts(body, "stop"),
        ),
        reasoning=read_reasoning(body, optional(body, "reasoning_effort", str)),
        tool_choice=_read_choice(body),
        output=held_or_none(body, "response_format", _read_output),
        stream=optional(body, "stream", bool),
        user=optional(body, "user", str),
    )


def _read_choice(body: Fields) -> ToolChoice | None:
    """Which tools the model may call, and whether several at once: two fields, either of which may be absent."""
    parallel = optional(body, "parallel_tool_calls", bool)
    written: Any = body.get("tool_choice")
    if written is None:
        return None if parallel is None else ToolChoice(parallel=parallel, form=MODE_UNSET)
    if type(written) is str:
        mode = _CHOICES.get(written)
        if mode is None:
            return ToolChoice(parallel=parallel, opaque=Opaque(PROTOCOL, written))
        return ToolChoice(mode, (), parallel, form=ChatChoice(written=written) if written == "any" else None)
    if type(written) is not dict:
        raise type_error("a string or an object", written, ".tool_choice")
    return read_required(body, "tool_choice", lambda fields: _read_choice_object(fields, parallel))


def _read_choice_object(fields: Fields, parallel: bool | None) -> ToolChoice:
    kind = required(fields, "type", str)
    if kind in ("function", "custom"):
        name, rest = read_required(fields, kind, lambda inner: (required(inner, "name", str), rest_of(inner, _NAMED)))
        extra = leftover(fields, frozenset({"type", kind}), PROTOCOL)
        form = ChatChoice(type="custom" if kind == "custom" else "function", inner_rest=rest)
        return ToolChoice("named", (name,), parallel, extra, form)
    if kind == "allowed_tools":
        names = read_required(fields, kind, _allowed_names)
        is_forced = fields[kind].get("mode") == "required"
        form = ChatChoice(written=fields)
        return ToolChoice("required" if is_forced else "allowed", names, parallel, form=form)
    return ToolChoice(parallel=parallel, opaque=Opaque(PROTOCOL, fields, kind))


def _allowed_names(fields: Fields) -> tuple[str, ...]:
    return tuple(name for name in each(required(fields, "tools", list), _allowed_name, ".tools") if name is not None)


def _allowed_name(fields: Fields) -> str | None:
    """The name of an allowed tool; None for one of a kind that has none."""
    kind = required(fields, "type", str)
    if kind not in ("function", "custom"):
        return None
    return read_required(fields, kind, lambda inner: required(inner, "name", str))


def _read_output(format: Fields) -> OutputFormat:
    kind = format.get("type")
    if kind == "text":
        return OutputFormat("text", extra=leftover(format, _FORMAT - {"json_schema"}, PROTOCOL))
    if kind == "json_object":
        return OutputFormat("json", extra=leftover(format, _FORMAT - {"json_schema"}, PROTOCOL))
    inner = format.get("json_schema")
    name = inner.get("name") if type(inner) is dict else None
    if kind != "json_schema" or type(inner) is not dict or not (name is None or type(name) is str):
        return OutputFormat(opaque=Opaque(PROTOCOL, format, kind if type(kind) is str else ""))
    return read_required(format, "json_schema", lambda inner: _read_schema(format, inner, name))


def _read_schema(format: Fields, inner: Fields, name: str | None) -> OutputFormat:
    description: Any = inner.get("description")
    is_described = type(description) is str
    rest = rest_of(inner, _DESCRIBED_SCHEMA if is_described else _SCHEMA)
    return OutputFormat(
        "json_schema",
        name,
        optional(inner, "schema", dict),
        optional(inner, "strict", bool),
        leftover(format, _FORMAT, PROTOCOL),
        ChatOutput(name is None, rest) if name is None or rest else None,
        description=description if is_described else None,
    )


# --- writing ----------------------------------------------------------------------------------------


def encode(conversation: Conversation, profile: Profile | None = None) -> Fields:
    """A conversation as a request body. What the protocol cannot express is left out.

    Hosts differ in how they want some of it: the profile of the target says how.
    """
    options = conversation.options
    body: Fields = {"model": conversation.model} if conversation.model else {}
    body["messages"] = write_turns(conversation.turns, profile)
    tools = encode_tools(conversation.tools, PROTOCOL, _write_tools)
    form = conversation.form if type(conversation.form) is ChatRequest else _PLAIN
    if tools or form.has_empty_tools:
        body["tools"] = tools
    if options.tool_choice is not None:
        _write_choice(body, options.tool_choice, conversation.tools)
    _write_sampling(body, options.sampling, form, profile)
    if options.reasoning is not None:
        write_reasoning(body, options.reasoning, profile.reasoning.switch if profile is not None else "")
    if options.output is not None:
        body["response_format"] = _write_output(options.output)
    if options.stream is not None:
        body["stream"] = options.stream
    if options.user is not None:
        body["user"] = options.user
    return with_extra(body, conversation.extra, PROTOCOL)


def write_turns(turns: Iterable[Turn], profile: Profile | None) -> list[Fields]:
    """The messages of turns; those of a turn are the same whatever is before and behind it."""
    style = style_of(profile)
    messages: list[Fields] = []
    for turn in turns:
        write_turn(turn, messages, style)
    return messages


def _write_tools(tools: tuple[ToolSpec, ...]) -> list[Fields]:
    return [written for tool in tools if (written := write_tool(tool)) is not None]


def _write_choice(body: Fields, choice: ToolChoice, tools: tuple[ToolSpec, ...]) -> None:
    if choice.parallel is not None:
        body["parallel_tool_calls"] = choice.parallel
    form = choice.form if type(choice.form) is ChatChoice else _PLAIN_CHOICE
    if choice.mode == "auto" and form.is_mode_unset:
        return
    kinds = {tool.name: "custom" for tool in tools if tool.type == "custom"}
    if choice.opaque is not None and choice.opaque.protocol == PROTOCOL and choice.mode == "auto":
        body["tool_choice"] = choice.opaque.value
    elif form.written is not None and _still_says(form.written, choice):
        body["tool_choice"] = form.written
    elif choice.mode == "named":
        name = choice.names[0]
        kind = form.type or kinds.get(name, "function")
        fields: Fields = {"type": kind, kind: with_rest({"name": name}, form.inner_rest)}
        body["tool_choice"] = with_extra(fields, choice.extra, PROTOCOL)
    elif choice.mode == "allowed" or (choice.mode == "required" and choice.names):
        named = [(name, kinds.get(name, "function")) for name in choice.names]
        mode = "required" if choice.mode == "required" else "auto"
        allowed = {"mode": mode, "tools": [{"type": kind, kind: {"name": name}} for name, kind in named]}
        before = _allowed_tools(form.written)
        if before is not None:
            allowed = {**before, "tools": allowed["tools"]}
        body["tool_choice"] = {"type": "allowed_tools", "allowed_tools": allowed}
    else:
        body["tool_choice"] = choice.mode


_PLAIN_CHOICE: Final = ChatChoice()


def _allowed_tools(written: str | Fields | None) -> Fields | None:
    allowed = written.get("allowed_tools") if isinstance(written, dict) else None
    return allowed if isinstance(allowed, dict) else None


def _still_says(written: str | Fields, choice: ToolChoice) -> bool:
    """Whether a choice, as it was written, is still the one that is meant; tools may have new names."""
    if isinstance(written, str):
        return choice.mode == _CHOICES.get(written)
    allowed = _allowed_tools(written)
    if allowed is None or choice.mode != ("required" if allowed.get("mode") == "required" else "allowed"):
        return False
    try:
        return _allowed_names(allowed) == choice.names
    except InputError:
        return False


def _write_sampling(body: Fields, sampling: Sampling, form: ChatRequest, profile: Profile | None) -> None:
    if sampling.max_tokens is not None:
        usual = _LIMITS[0] if profile is None else profile.request.max_tokens_field
        body[form.limit_field or usual] = sampling.max_tokens
    body.update(write_sampling(sampling, _SAMPLING))
    if sampling.seed is not None:
        body[form.seed_field or (_SEEDS[0] if profile is None else profile.request.seed_field)] = sampling.seed
    if form.stop == "text" and len(sampling.stop) == 1:
        body["stop"] = sampling.stop[0]
    elif sampling.stop or form.stop == "empty":
        body["stop"] = list(sampling.stop)


_PLAIN_OUTPUT: Final = ChatOutput()


def _write_output(output: OutputFormat) -> Fields:
    if output.opaque is not None and output.opaque.protocol == PROTOCOL:
        verbatim: Fields = output.opaque.value
        return verbatim
    if output.kind != "json_schema":
        return with_extra({"type": "json_object" if output.kind == "json" else "text"}, output.extra, PROTOCOL)
    form = output.form if type(output.form) is ChatOutput else _PLAIN_OUTPUT
    inner: Fields = {}
    if output.name is not None or not form.has_no_name:
        inner["name"] = output.name if output.name is not None else "response"
    if output.schema is not None:
        inner["schema"] = output.schema
    if output.strict is not None:
        inner["strict"] = output.strict
    if output.description is not None:
        inner["description"] = output.description
    fields = {"type": "json_schema", "json_schema": with_rest(inner, form.json_schema_rest)}
    return with_extra(fields, output.extra, PROTOCOL)
