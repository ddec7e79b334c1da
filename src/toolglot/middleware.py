"""The request and reply chain of seed 003, for programs that send requests themselves.

    request:   client → normalise → schema of the provider → provider
    response:  provider → parse → validate → the client's shape → client

    chain = MiddlewareChain([ToolingMiddleware()])
    chain.process_request(request)        # request.tools are now the provider's
    chain.process_response(response)      # response.get_tool_calls("openai")

Only tools and calls go through here; `convert` does whole conversations. No I/O, and nothing of the gateway.

Law: a step that fails leaves the request or response as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from toolglot import jsontext, profiles
from toolglot.conversation import Conversation, Text, ToolCall, ToolSpec, Turn, ids
from toolglot.errors import InputError, quote
from toolglot.policy import DEFAULT_POLICY, Policy
from toolglot.profiles import Overrides
from toolglot.protocols.base import codec, get
from toolglot.translate.parsers import ToolParser, get_parser, validate_tool_call
from toolglot.translate.requests import ConvertedRequest, convert

Fields = dict[str, Any]
Validator = Callable[[ToolCall], ToolCall]

_SHAPES: Final[dict[str, Callable[[ToolCall], Fields]]] = {
    "anthropic": ToolCall.to_anthropic,
    "openai": ToolCall.to_openai,
    "generic": ToolCall.to_generic,
}


# --- requests and responses -------------------------------------------------------------------------


class Request(Struct):
    """What is to be sent. `tools` are definitions in the shape of Anthropic or OpenAI, or `ToolSpec`s.

    model: the model that is asked for.
    provider_id: the target.
    messages: the messages, in the client's protocol.
    """

    model: str = ""
    provider_id: str = ""
    messages: list[Any] = field(default_factory=list)
    tools: list[Any] | None = None
    translated: ConvertedRequest | None = None
    """What was done to the tools, with its report. Set by `ToolingMiddleware`; responses need it."""


class Response(Struct):
    """What came back. `output_format` is `anthropic`; anything else means OpenAI's.

    body: the reply's body.
    provider_id: who answered.
    tool_calls_formatted: the calls in the form that `output_format` names.
    """

    body: Any
    provider_id: str = ""
    output_format: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    """The calls in canonical form, under the names that the request gave its tools."""
    tool_calls_formatted: list[Fields] = field(default_factory=list)
    request: Request | None = None
    """The request that it answers. It undoes what was changed for the provider."""
    warnings: list[str] = field(default_factory=list)
    """What the calls have that the provider's capabilities do not say. No call is left out for it."""

    def get_tool_calls(self, format: str | None = None) -> list[Any]:
        """The calls as `anthropic`, `openai` or `generic` objects; in canonical form without a format."""
        if format is None:
            return [*self.tool_calls]
        write = _SHAPES.get(format) if isinstance(format, str) else None
        if write is None:
            raise InputError(f"unknown format {quote(format)}", path="format", hint=f"one of {', '.join(_SHAPES)}")
        return [write(_with_object(call)) for call in self.tool_calls]


def _with_object(call: ToolCall) -> ToolCall:
    """The call with arguments. Free text is the one argument `input`, as it is in a converted request."""
    if call.arguments is not None or call.raw_input is None:
        return call
    return replace(call, arguments={"input": call.raw_input})


# --- schemas ----------------------------------------------------------------------------------------


class SchemaTranslator:
    """Tool definitions from one shape to another.

    The first two change the shape alone, as the seed writes them: what a definition does not say is left out,
    but for Anthropic's `input_schema`, which is never absent. `to_provider_format` makes definitions that the
    provider accepts: names, schemas, required parameters, numbers of tools.

    overrides: changes to profiles, and profiles of one's own (`toolglot.profiles.read_overrides`).
    """

    def __init__(self, *, overrides: Overrides | None = None) -> None:
        self._overrides = overrides

    def anthropic_to_openai(self, tools: Iterable[Fields]) -> list[Fields]:
        """Anthropic's tools as OpenAI's functions. Those that only Anthropic runs are skipped."""
        return [
            {"type": "function", "function": _definition(tool, f"$[{index}]", "input_schema", "parameters")}
            for index, tool in enumerate(_objects(tools))
            if tool.get("type") in (None, "custom")
        ]

    def openai_to_anthropic(self, functions: Iterable[Fields]) -> list[Fields]:
        """OpenAI's functions as Anthropic's tools. Entries that hold no `function` are skipped."""
        tools = [
            _definition(function, f"$[{index}].function", "parameters", "input_schema")
            for index, entry in enumerate(_objects(functions))
            if isinstance(function := entry.get("function"), dict)
        ]
        for tool in tools:
            tool.setdefault("input_schema", {"type": "object", "properties": {}})
        return tools

    def to_provider_format(
        self, tools: Sequence[Fields | ToolSpec], provider_id: str, model: str = "", *, policy: Policy = DEFAULT_POLICY
    ) -> list[Fields]:
        """The definitions as the provider and its model accept them."""
        return tools_of(self.translate(tools, provider_id, model, policy=policy))

    def translate(
        self, tools: Sequence[Fields | ToolSpec], provider_id: str, model: str = "", *, policy: Policy = DEFAULT_POLICY
    ) -> ConvertedRequest:
        """The same as a request that has only these tools: with its report, and the way back for names."""
        source, body = _as_request(tools)
        return convert(body, source=source, target=provider_id, model=model, policy=policy, overrides=self._overrides)


def tools_of(request: ConvertedRequest) -> list[Fields]:
    """The tool definitions in a request of any protocol."""
    body = request.body
    listed: list[Fields] = (body.get("toolConfig") or body).get("tools") or []
    return listed


def _objects(entries: Iterable[Any]) -> list[Fields]:
    listed = jsontext.clone(_listed(entries)).value
    for index, entry in enumerate(listed):
        if not isinstance(entry, dict):
            raise InputError(f"expected an object, got {quote(entry)}", path=f"$[{index}]")
    return listed  # type: ignore[no-any-return]


def _listed(entries: Any) -> list[Any]:
    if isinstance(entries, str | bytes | dict) or not isinstance(entries, Iterable):
        raise InputError(f"expected a list of tool definitions, got {quote(entries)}")
    return [*entries]


def _definition(fields: Fields, path: str, schema: str, schema_there: str) -> Fields:
    names = {"name": "name", "description": "description", schema: schema_there}
    if not isinstance(fields.get("name"), str):
        raise InputError(f"expected a string, got {quote(fields.get('name'))}", path=f"{path}.name")
    return {there: fields[here] for here, there in names.items() if fields.get(here) is not None}


def _as_request(tools: Sequence[Fields | ToolSpec]) -> tuple[str, Fields]:
    """A protocol, and a request of it that has only these tools."""
    listed = _listed(tools)
    shapes = [_shape_of(tool, index) for index, tool in enumerate(listed)]
    if len({*shapes}) == 1 and shapes[0] is not None:
        return shapes[0], _request(shapes[0], jsontext.clone(listed).value)
    specs = [_spec(tool, shape, index) for index, (tool, shape) in enumerate(zip(listed, shapes, strict=True))]
    asked = Conversation((Turn("user", (Text("?"),)),), tuple(specs))
    return "openai_chat", codec("openai_chat").request.encode(asked)


def _request(protocol: str, tools: list[Any]) -> Fields:
    """A request for the sake of its tools."""
    return {get(protocol).turns: [{"role": "user", "content": "?"}], "tools": tools}


def _shape_of(tool: object, index: int) -> str | None:
    """The protocol that a definition is written in; None for one in canonical form."""
    if isinstance(tool, ToolSpec):
        return None
    if not isinstance(tool, dict):
        raise InputError(f"expected a tool definition, got {quote(tool)}", path=f"$.tools[{index}]")
    if "function" in tool or "custom" in tool:
        return "openai_chat"
    if "input_schema" in tool:
        return "anthropic"
    kind = tool.get("type")
    is_flat = kind in ("function", "custom") or "parameters" in tool or "name" not in tool
    return "openai_responses" if is_flat else "anthropic"


def _spec(tool: Any, shape: str | None, index: int) -> ToolSpec:
    """A definition in canonical form, for a list that mixes shapes."""
    spec: ToolSpec
    if shape is None:
        spec = tool
    else:
        (spec,) = codec(shape).request.decode(_request(shape, [jsontext.clone(tool).value])).tools
    if spec.issuer is not None:
        hint = "give all definitions in that provider's shape"
        path = f"$.tools[{index}]"
        raise InputError("a tool that its provider runs cannot be mixed with other shapes", path=path, hint=hint)
    return spec


# --- the chain --------------------------------------------------------------------------------------


class ToolMiddleware(Protocol):
    """A step on the way of requests and responses. It changes what it is given."""

    def process_request(self, request: Request) -> None: ...

    def process_response(self, response: Response) -> None: ...


class ToolingMiddleware:
    """The step that makes tools and calls fit: schemas on the way out, calls on the way back.

    Without a parser, that of the response's provider is used. A validator takes a call and returns the one to
    use; the built-in one also gives ids. `overrides` are profiles of one's own.

    parser: reads the calls of a response.
    translator: rewrites tool definitions.
    validator: checks a call.
    policy: what to do where there is a choice (`toolglot.Policy`).
    overrides: changes to profiles, and profiles of one's own (`toolglot.profiles.read_overrides`).
    """

    def __init__(
        self,
        *,
        parser: ToolParser | None = None,
        translator: SchemaTranslator | None = None,
        validator: Validator | None = None,
        policy: Policy = DEFAULT_POLICY,
        overrides: Overrides | None = None,
    ) -> None:
        self._parser = parser
        self._translator = translator or SchemaTranslator(overrides=overrides)
        self._validator = validator
        self._policy = policy
        self._overrides = overrides

    def process_request(self, request: Request) -> None:
        """Put the tools into the provider's shape. A request that was translated already is left alone."""
        if request.tools is None or (request.translated and request.tools == tools_of(request.translated)):
            return
        translated = self._translator.translate(request.tools, request.provider_id, request.model, policy=self._policy)
        request.tools, request.translated = tools_of(translated), translated

    def process_response(self, response: Response) -> None:
        """Parse the calls, validate them, and write them in the shape that is asked for."""
        request = response.request
        provider = response.provider_id or (request.provider_id if request is not None else "")
        parser = self._parser or get_parser(provider)
        provider = profiles.resolve(provider or parser.provider_id)
        calls = [self._ready(call, provider, index, request) for index, call in enumerate(parser.parse(response.body))]
        form = "anthropic" if response.output_format == "anthropic" else "openai"
        written = Response(None, tool_calls=calls).get_tool_calls(form)
        response.tool_calls, response.tool_calls_formatted = calls, written
        response.warnings = _warnings(provider, len(calls), self._overrides)

    def _ready(self, call: ToolCall, provider: str, index: int, request: Request | None) -> ToolCall:
        call = _placed(call, provider, index, request)
        validated = (
            self._validator(call)
            if self._validator is not None
            else validate_tool_call(call, provider=provider, index=index, turn_key=_place(request))
        )
        if request is None or request.translated is None:
            return validated
        return request.translated.rendered.tools.original_call(validated)


def _warnings(provider: str, calls: int, overrides: Overrides | None) -> list[str]:
    """Where a response holds more calls than its provider is known for."""
    known = profiles.get_capabilities(provider, overrides=overrides)
    limit = known.max_tools_per_call if known.supports_parallel else 1
    if known == profiles.Capabilities() or limit is None or calls <= limit:
        return []
    return [
        f"{provider} is known for at most {limit} call{'s' if limit > 1 else ''} in a response; this one has {calls}"
    ]


def _place(request: Request | None) -> str:
    return f"@{len(request.messages)}" if request is not None else ""


def _placed(call: ToolCall, provider: str, index: int, request: Request | None) -> ToolCall:
    """A call whose id was made from its reply alone, under one that also depends on where the reply stands.

    Otherwise a model that says the same twice in a conversation would use one id for two calls.
    """
    if request is None or call.metadata is None or call.metadata.raw_id is not None or not ids.is_canonical(call.id):
        return call
    return replace(call, id=ids.mint(provider, None, call.name, call.id + _place(request), index))


class MiddlewareChain:
    """Several steps as one: requests pass them in order, responses in the opposite order."""

    def __init__(self, steps: Iterable[ToolMiddleware]) -> None:
        self._steps = tuple(steps)
        for index, step in enumerate(self._steps):
            if not all(callable(getattr(step, name, None)) for name in ("process_request", "process_response")):
                hint = "pass objects with process_request and process_response"
                raise InputError(f"expected a middleware, got {quote(step)}", path=f"steps[{index}]", hint=hint)

    def process_request(self, request: Request) -> None:
        for step in self._steps:
            step.process_request(request)

    def process_response(self, response: Response) -> None:
        for step in reversed(self._steps):
            step.process_response(response)
