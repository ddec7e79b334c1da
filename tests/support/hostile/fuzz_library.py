"""The public entry points of the library under the fuzz of types: whatever their arguments, only our own errors.

An `Area` is what is changed and what is done with it. `finding` does it and says what came out that should not have:
an exception that is none of ours, or one of ours that does not say in its own words what is wrong.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import toolglot
from support.hostile.fuzz_bodies import ERRORS, PROTOCOLS, TARGETS, TESTS, replies, requests
from support.hostile.type_mutations import HALF_A_PAIR, SURROGATE, json_text
from support.translate.reply_bodies import stream_of
from toolglot import (
    Conversation,
    HistoryError,
    InputError,
    Ledger,
    Policy,
    ProviderError,
    ToolglotError,
    Turn,
    arguments,
    profiles,
)
from toolglot.conversation import ids
from toolglot.protocols.base import codec
from toolglot.protocols.framing import aws_frames

PACKAGE: Final = Path(toolglot.__file__).resolve().parent
ALLOWED: Final = (InputError, ProviderError, HistoryError)
"""What may come out. A `RenderError` says of itself that it is a fault of toolglot's."""
PYTHONS_WORDS: Final = (
    *("object has no attribute", "object is not ", "unhashable", "NoneType", "indices must be", "has no len"),
    *("unsupported operand", "not supported between", "must be str,", "Traceback", "codec can't"),
    *("argument of type", "unexpected keyword", "positional argument", "subscriptable"),
)
"""Words of an error that Python wrote and not we."""
POLICIES: Final = (
    Policy(),
    Policy(ids="canonical", required="aggressive", server_tools="drop"),
    Policy(responses_id_style="clasp", server_tools="spare", required="filter"),
    Policy(calls_in_text="always", stream_calls="whole", unoffered_calls="text"),
)

Run = Callable[[Any, int], object]
"""Does something with a document; the number chooses the target, and so on."""


class Area(NamedTuple):
    """What is changed, and what is done with it."""

    name: str
    documents: list[Any]
    run: Run


# --- requests ---------------------------------------------------------------------------------------


def _request(protocol: str) -> Run:
    def run(body: Any, number: int) -> None:
        target = TARGETS[number % len(TARGETS)]
        policy = POLICIES[number // len(TARGETS) % len(POLICIES)]
        original = json_text(body) if number % 3 else body
        out = toolglot.convert(
            original, source=protocol, target=target, model="gpt-5" if number % 2 else "", policy=policy
        )
        _check_written(out)
        toolglot.load(toolglot.dump(out.rendered.conversation))

    return run


def _repair(protocol: str) -> Run:
    own = [name for name in TARGETS if profiles.get(name).protocol == protocol]

    def run(body: Any, number: int) -> None:
        target = own[number % len(own)]
        original = json_text(body) if number % 2 else body
        toolglot.lint(original, target)
        _check_written(toolglot.repair(original, target=target))

    return run


def _received(protocol: str) -> Run:
    """A request as the gateway and the sessions take it: read once, for several targets, with its history."""

    def run(body: Any, number: int) -> None:
        received = toolglot.read_request(json_text(body), source=protocol)
        for step in (0, 7):
            _check_written(received.for_target(TARGETS[(number + step) % len(TARGETS)]))

    return run


def _check_written(out: toolglot.Converted) -> None:
    json.loads(out.data)
    str(out.report)


# --- replies ----------------------------------------------------------------------------------------

_REQUESTS: Final[dict[str, toolglot.ConvertedRequest]] = {}


def _request_of(source: str, target: str) -> toolglot.ConvertedRequest:
    """A request with tools, of a client for a provider."""
    key = f"{source} {target}"
    if key not in _REQUESTS:
        body = {
            "model": "m",
            "messages": [{"role": "user", "content": "hi"}],
            "tools": [
                {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
                for name in ("read", "list", "f", "dotted.name/with slash")
            ],
        }
        chat = toolglot.convert(body, source="openai_compatible", target=source, model="m")
        _REQUESTS[key] = toolglot.convert(chat.data, source=source, target=target, model="m")
    return _REQUESTS[key]


def _reply(protocol: str) -> Run:
    own = [name for name in TARGETS if profiles.get(name).protocol == protocol]

    def run(body: Any, number: int) -> None:
        source, target = own[number % len(own)], TARGETS[number // 2 % len(TARGETS)]
        original = json_text(body) if number % 3 else body
        request = _request_of(target, source) if number % 2 else None
        policy = POLICIES[number % len(POLICIES)]
        out = toolglot.convert_reply(original, source=source, target=target, request=request, policy=policy)
        _check_written(out)
        history = toolglot.History(provider=source)
        attempt = toolglot.Attempt(history, provider=source, model="m")
        attempt.add_reply(out.provider_reply)
        attempt.commit()

    return run


def _error(body: Any, number: int) -> None:
    statuses = (400, 401, 404, 413, 429, 500, 503, 529, 200, 101, 302, 700)
    source, target = TARGETS[number % len(TARGETS)], TARGETS[number // 3 % len(TARGETS)]
    status = statuses[number % len(statuses)]
    headers = {
        "retry-after": ("1", "-1", "x", "1e308", "\u0663", "9" * 30)[number % 6],
        "content-type": "application/json",
        "x-request-id": "r",
    }
    original = json_text(body) if number % 3 else body
    out = toolglot.convert_error(status, original, source=source, target=target, headers=headers)
    json.loads(out.data)


# --- streams ----------------------------------------------------------------------------------------


def _frames(protocol: str, data: bytes) -> list[dict[str, Any]]:
    """A stream as a document: the names and the data of its events."""
    framer = codec(protocol).stream.framer()
    frames = [*framer.feed(data), *framer.finish()]
    return [{"name": frame.name, "data": _value(frame.data)} for frame in frames if frame.data]


def _value(data: bytes) -> Any:
    return "[DONE]" if data == b"[DONE]" else json.loads(data)


def stream_text(protocol: str, frames: Any) -> bytes:
    """The stream that a document says. What is no event is written as one."""
    if not isinstance(frames, list):
        return json_text(frames)
    pieces = []
    for frame in frames:
        name = frame.get("name") if isinstance(frame, dict) else None
        value = frame.get("data") if isinstance(frame, dict) else frame
        data = b"[DONE]" if value == "[DONE]" else json_text(value)
        if protocol == "bedrock":
            kind = name[:200] if isinstance(name, str) and name and _is_ascii(name) else "chunk"
            pieces.append(aws_frames.message(aws_frames.event_headers(kind), data))
        elif protocol == "ollama":
            pieces.append(data + b"\n")
        else:
            event = b"event: %b\n" % name.encode("ascii", "replace") if isinstance(name, str) and name else b""
            pieces.append(event + b"data: " + data + b"\n\n")
    return b"".join(pieces)


def _is_ascii(name: str) -> bool:
    return name.isascii() and name.isprintable()


def stream_documents(protocol: str) -> list[Any]:
    return [_frames(protocol, stream_of(protocol, body)) for body in replies(protocol) if _is_readable(protocol, body)]


def _is_readable(protocol: str, body: Any) -> bool:
    try:
        stream_of(protocol, body)
    except ToolglotError:
        return False
    return True


def _stream(protocol: str) -> Run:
    own = [name for name in TARGETS if profiles.get(name).protocol == protocol]

    def run(frames: Any, number: int) -> None:
        source, target = own[number % len(own)], TARGETS[number // 2 % len(TARGETS)]
        data = stream_text(protocol, frames)
        request = _request_of(target, source) if number % 2 else None
        policy = POLICIES[number % len(POLICIES)]
        translator = toolglot.StreamTranslator(source=source, target=target, request=request, policy=policy)
        size = (len(data), 700, 61)[number % 3] or 1
        written = b"".join(translator.feed(data[at : at + size]) for at in range(0, len(data), size))
        written += translator.finish()
        if translator.content_type.startswith("text/event-stream"):
            written.decode()
        str(translator.report), translator.reply, translator.provider_reply, translator.calls, translator.cut
        reader = toolglot.StreamReader(source=source)
        events = [*reader.feed(data), *reader.finish()]
        history = toolglot.History(provider=source)
        attempt = toolglot.Attempt(history, provider=source, model="m")
        attempt.add(events)
        if reader.failure is None:
            attempt.commit()
        accumulator = toolglot.ToolCallAccumulator(source if number % 2 else "")
        accumulator.add_chunk(data)
        accumulator.finish()
        accumulator.drain()

    return run


# --- text, tools, arguments, ids --------------------------------------------------------------------


def _texts() -> list[Any]:
    """Vectors of all dialects: the text and the tools, and what is requested."""
    found: list[Any] = []
    for file in sorted((TESTS / "dialect_vectors").glob("*.json")):
        vectors = json.loads(file.read_text())
        found += [
            {"text": vector["text"], "tools": vectors["tools"], "dialect": file.stem, "model": "qwen3", "at": 3}
            for vector in vectors["vectors"][:3]
        ]
    found.append({"text": f"{SURROGATE} <tool_call>{SURROGATE}", "tools": [], "dialect": "auto", "model": "", "at": 3})
    return found


def _text(document: Any, number: int) -> None:
    if not isinstance(document, dict):
        document = {"text": document}
    text, tools = document.get("text"), document.get("tools", ())
    dialect, model, at = document.get("dialect", "auto"), document.get("model", ""), document.get("at")
    if isinstance(text, str) and number % 2:
        position = number * 7 % (len(text) + 1)
        text = text[:position] + HALF_A_PAIR + text[position:]
    if number % 5 == 0:
        dialect = "auto"
    done: list[Callable[[], object]] = [
        lambda: toolglot.parse_text(text, dialect=dialect, tools=tools, model=model),
        lambda: toolglot.detect(text, tools, model),
        lambda: toolglot.detect_format(text),
        lambda: _fed(text, dialect, tools, at if type(at) is int and at > 0 else 5),
        lambda: toolglot.to_prompt(tools, Conversation((Turn("user", (toolglot.Text("hi"),)),)), dialect),
        lambda: toolglot.get_parser(("openai", "hermes", "anthropic")[number % 3]).parse(text),
        lambda: toolglot.SchemaTranslator().anthropic_to_openai(tools),
        lambda: toolglot.SchemaTranslator().openai_to_anthropic(tools),
        lambda: toolglot.SchemaTranslator().to_provider_format(tools, TARGETS[number % len(TARGETS)]),
    ]
    for act in done:
        _ours(act)


def _fed(text: Any, dialect: Any, tools: Any, size: int) -> None:
    stream = toolglot.TextToolStream(dialect=dialect, tools=tools)
    pieces = [text[at : at + size] for at in range(0, len(text), size)] if isinstance(text, str) else [text]
    for piece in pieces:
        stream.feed(piece)
    stream.finish()


def _ours(act: Callable[[], object]) -> None:
    """Several things are done with one document: one of our errors does not keep the others from being done."""
    try:
        act()
    except ALLOWED as error:
        _check_words(error)


_CALLS: Final[list[Any]] = [
    {
        "text": '{"a": "1", "b": [1, {"c": null}]}',
        "schema": {
            "type": "object",
            "properties": {
                "a": {"type": ["integer", "null"], "enum": [1, 2], "default": 1},
                "b": {"type": "array", "items": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/d"}]}},
            },
            "required": ["a"],
            "additionalProperties": False,
            "$defs": {"d": {"type": "object", "properties": {"c": {"type": "string", "format": "date"}}}},
        },
        "id": "call_1",
        "name": "f",
        "call": {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}},
    },
    {"text": "<a>1</a><b>x</b>", "schema": {"type": "object"}, "id": "toolu_1", "name": "f", "call": {}},
]


def _call(document: Any, number: int) -> None:
    if not isinstance(document, dict):
        document = {"text": document, "schema": document, "id": document, "name": document}
    text, schema, id_, name = (document.get(key) for key in ("text", "schema", "id", "name"))
    target = TARGETS[number % len(TARGETS)]
    done: list[Callable[[], object]] = [
        lambda: arguments.parse(text, schema=schema, xml=bool(number % 2)),
        lambda: arguments.sanitise(text),
        lambda: ids.translate(id_, to=("openai", "anthropic", "gemini", "responses")[number % 4]),
        lambda: ids.to_openai(id_),
        lambda: ids.canonical(provider="openai", raw_id=id_, tool_name=name, turn_key="k", call_index=0),
        lambda: toolglot.validate_tool_call(toolglot.ToolCall(id_, name, text), provider=target),
        lambda: toolglot.validate_tool_call(toolglot.ToolCall(id_, name, None, raw_input=text), provider=target),
        lambda: toolglot.write_calls([toolglot.ToolCall(id_, name, text)], ("hermes", "mistral", "glm45")[number % 3]),
        lambda: toolglot.get_parser(target).parse(document),
        lambda: toolglot.get_parser(target).parse([document.get("call")]),
        lambda: _through_middleware(document, target),
        lambda: toolglot.get_capabilities(name),
        lambda: _recorded(id_, name, text),
    ]
    for act in done:
        _ours(act)


def _through_middleware(document: Any, target: str) -> None:
    tools = [{"name": document.get("name"), "input_schema": document.get("schema")}]
    request = toolglot.Request(model="m", provider_id=target, messages=[], tools=tools)
    chain = toolglot.MiddlewareChain([toolglot.ToolingMiddleware()])
    chain.process_request(request)
    chain.process_response(toolglot.Response(document, provider_id=target, request=request))


def _recorded(id_: Any, name: Any, text: Any) -> None:
    history = toolglot.History(provider="openai")
    history.append(Turn("assistant", (toolglot.ToolCall(id_, name, {"a": text}),)))
    history.record(toolglot.ToolResult(id_, text, name=name))
    toolglot.request_for(history, target="anthropic", model="claude-opus-5")


# --- documents of our own ---------------------------------------------------------------------------


def _canonical() -> list[Any]:
    made = []
    for protocol in PROTOCOLS:
        for body in requests(protocol)[::5]:
            try:
                conversation = toolglot.convert(body, source=protocol, target="anthropic").rendered.conversation
            except ToolglotError:
                continue
            made.append(json.loads(toolglot.dump(conversation)))
    return made


def _load(document: Any, number: int) -> None:
    conversation = toolglot.load(json_text(document))
    toolglot.dump(conversation)
    Ledger.of(conversation.turns)
    history = toolglot.History(conversation, provider="openai")
    str(history.report), history.ledger.pending
    out = toolglot.request_for(history, target=TARGETS[number % len(TARGETS)], model="m")
    json.loads(out.data)


def _overrides(document: Any, number: int) -> None:
    overrides = profiles.Overrides(_toml("deep" if _is_deep(document) else document))
    for name in overrides.names:
        profile = profiles.get(name, "m", overrides=overrides)
        toolglot.convert(
            {"messages": [{"role": "user", "content": "hi"}]}, source="openai", target=profile.name, overrides=overrides
        )
    del number


def _toml(document: Any) -> str:
    """A document as TOML, as far as TOML can say it."""
    lines = []
    for table, fields in (document if isinstance(document, dict) else {"x": document}).items():
        lines.append(f"[{json.dumps(table)}]")
        lines += (
            [f"{json.dumps(key)} = {_toml_value(value)}" for key, value in fields.items()]
            if isinstance(fields, dict)
            else [f"x = {_toml_value(fields)}"]
        )
    return "\n".join(lines)


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {_toml_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml_value(inner) for inner in value) + "]"
    return "nan" if value is None else json_text(value).decode()


def _is_deep(value: Any, left: int = 200) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return not left or any(_is_deep(each, left - 1) for each in inner)


_OVERRIDES: Final[list[Any]] = [
    {
        "providers.mine": {
            "base": "openai_compatible",
            "ids.pattern": "[a-z]+",
            "tools.max": 5,
            "models": ["a*"],
            "reasoning.field": "x",
        },
        "mine": {"like": "openai", "protocol": "openai_chat", "tools": {"max_tools": 5}},
    }
]


def areas() -> list[Area]:
    """Everything that is fuzzed in the library."""
    made: list[Area] = []
    for protocol in PROTOCOLS:
        made.append(Area(f"{protocol} request", requests(protocol), _request(protocol)))
        made.append(Area(f"{protocol} repair", requests(protocol), _repair(protocol)))
        made.append(Area(f"{protocol} received", requests(protocol), _received(protocol)))
        made.append(Area(f"{protocol} reply", replies(protocol), _reply(protocol)))
        made.append(Area(f"{protocol} stream", stream_documents(protocol), _stream(protocol)))
    made.append(Area("errors", ERRORS, _error))
    made.append(Area("text", _texts(), _text))
    made.append(Area("calls", _CALLS, _call))
    made.append(Area("conversations", _canonical(), _load))
    made.append(Area("overrides", _OVERRIDES, _overrides))
    return made


# --- findings ---------------------------------------------------------------------------------------


class ForeignWordsError(Exception):
    """An error of ours that only repeats Python's message."""


def _check_words(error: ToolglotError) -> None:
    text = str(error)
    if not text.strip() or any(word in text for word in PYTHONS_WORDS):
        raise ForeignWordsError(f"{type(error).__name__}: {text}") from error


def finding(area: Area, document: Any, number: int) -> BaseException | None:
    """What came out of the library that should not have, if anything did."""
    try:
        try:
            area.run(document, number)
        except ALLOWED as error:
            _check_words(error)
    except Exception as error:  # noqa: BLE001 - anything else is what is looked for
        return error
    return None


def mark(error: BaseException) -> str:
    """What makes two findings the same: the kind of error, and the last line of toolglot that it went through."""
    cause = error.__cause__ if isinstance(error, ForeignWordsError) and error.__cause__ else error
    frames = [frame for frame in traceback.extract_tb(cause.__traceback__) if str(PACKAGE) in frame.filename]
    where = f"{Path(frames[-1].filename).relative_to(PACKAGE)}:{frames[-1].lineno}" if frames else "outside"
    return f"{type(error).__name__} at {where}"
