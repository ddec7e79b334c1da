"""The chain of request and response hooks, for programs that send requests themselves.

    request:   client → normalise → schema of the provider → provider
    response:  provider → parse → validate → format of the client → client

    chain = MiddlewareChain([ToolingMiddleware()])
    chain.process_request(request)        # request.tools now has the provider's format
    chain.process_response(response)      # response.get_tool_calls("openai")

It handles tools and calls only; `convert` handles whole conversations. No I/O, and no imports of the gateway.

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
    """A request. `tools` are definitions in the format of Anthropic or OpenAI, or `ToolSpec`s.

    model: the requested model.
    provider_id: the target.
    messages: the messages, in the client's protocol.
    """

    model: str = ""
    provider_id: str = ""
    messages: list[Any] = field(default_factory=list)
    tools: list[Any] | None = None
    translated: ConvertedRequest | None = None
    """The converted tools, with the report. Set by `ToolingMiddleware`; responses need it."""


class Response(Struct):
    """A response. `output_format` is `anthropic`; anything else means OpenAI's.

    body: the body of the reply.
    provider_id: the provider that replied.
    tool_calls_formatted: the calls in `output_format`.
    """

    body: Any
    provider_id: str = ""
    output_format: str = ""
    tool_calls: list[ToolCall] = field(default_factory=list)
    """The calls in canonical form, with the tool names of the request."""
    tool_calls_formatted: list[Fields] = field(default_factory=list)
    request: Request | None = None
    """The request that it replies to. Needed to undo what was changed for the provider."""
    warnings: list[str] = field(default_factory=list)
    """Where the calls exceed the known capabilities of the provider. No call is dropped for it."""

    def get_tool_calls(self, format: str | None = None) -> list[Any]:
        """The calls as `anthropic`, `openai` or `generic` objects; in canonical form without a format."""
        if format is None:
            return [*self.tool_calls]
        write = _SHAPES.get(format) if isinstance(format, str) else None
        if write is None:
            raise InputError(f"unknown format {quote(format)}", path="format", hint=f"one of {', '.join(_SHAPES)}")
        return [write(_with_arguments(call)) for call in self.tool_calls]


def _with_arguments(call: ToolCall) -> ToolCall:
    """The call with arguments. Free text becomes the argument `input`, as in a converted request."""
    if call.arguments is not None or call.raw_input is None:
        return call
    return replace(call, arguments={"input": call.raw_input})


# --- schemas ----------------------------------------------------------------------------------------


class SchemaTranslator:
    """Converts tool definitions from one format to another.

    The first two methods change the format alone: missing fields stay missing, except Anthropic's `input_schema`,
    which is required. `to_provider_format` returns definitions that the provider accepts: names, schemas, required
    parameters, number of tools.

    overrides: your own profiles, and changes to built-in ones (`toolglot.profiles.read_overrides`).
    """

    def __init__(self, *, overrides: Overrides | None = None) -> None:
        self._overrides = overrides

    def anthropic_to_openai(self, tools: Iterable[Fields]) -> list[Fields]:
        """Anthropic's tools as OpenAI's functions. Tools that only Anthropic can run are skipped."""
        return [
            {"type": "function", "function": _definition(tool, f"$[{index}]", "input_schema", "parameters")}
            for index, tool in enumerate(_object_list(tools))
            if tool.get("type") in (None, "custom")
        ]

    def openai_to_anthropic(self, functions: Iterable[Fields]) -> list[Fields]:
        """OpenAI's functions as Anthropic's tools. Entries without a `function` are skipped."""
        tools = [
            _definition(function, f"$[{index}].function", "parameters", "input_schema")
            for index, entry in enumerate(_object_list(functions))
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
        """The same as a converted request with only these tools: with the report, and the mapping of names."""
        source, body = _as_request(tools)
        return convert(body, source=source, target=provider_id, model=model, policy=policy, overrides=self._overrides)


def tools_of(request: ConvertedRequest) -> list[Fields]:
    """The tool definitions in a request of any protocol."""
    return get(request.target.protocol).tools_in(request.body)


def _object_list(entries: Iterable[Any]) -> list[Fields]:
    listed = jsontext.clone(_as_list(entries)).value
    for index, entry in enumerate(listed):
        if not isinstance(entry, dict):
            raise InputError(f"expected an object, got {quote(entry)}", path=f"$[{index}]")
    return listed  # type: ignore[no-any-return]


def _as_list(entries: Any) -> list[Any]:
    if isinstance(entries, str | bytes | dict) or not isinstance(entries, Iterable):
        raise InputError(f"expected a list of tool definitions, got {quote(entries)}")
    return [*entries]


def _definition(fields: Fields, path: str, schema: str, target_schema: str) -> Fields:
    names = {"name": "name", "description": "description", schema: target_schema}
    if not isinstance(fields.get("name"), str):
        raise InputError(f"expected a string, got {quote(fields.get('name'))}", path=f"{path}.name")
    return {there: fields[here] for here, there in names.items() if fields.get(here) is not None}


def _as_request(tools: Sequence[Fields | ToolSpec]) -> tuple[str, Fields]:
    """A protocol, and a request in it with only these tools."""
    listed = _as_list(tools)
    shapes = [_shape_of(tool, index) for index, tool in enumerate(listed)]
    if len({*shapes}) == 1 and shapes[0] is not None:
        return shapes[0], get(shapes[0]).request_with_tools(jsontext.clone(listed).value)
    specs = [_spec(tool, shape, index) for index, (tool, shape) in enumerate(zip(listed, shapes, strict=True))]
    conversation = Conversation((Turn("user", (Text("?"),)),), tuple(specs))
    return "openai_chat", codec("openai_chat").request.encode(conversation)


def _shape_of(tool: object, index: int) -> str | None:
    """The protocol of a definition; None for a `ToolSpec`."""
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
    """A definition in canonical form, for a list with mixed formats."""
    spec: ToolSpec
    if shape is None:
        spec = tool
    else:
        (spec,) = codec(shape).request.decode(get(shape).request_with_tools([jsontext.clone(tool).value])).tools
    if spec.issuer is not None:
        hint = "write all definitions in that provider's format"
        path = f"$.tools[{index}]"
        raise InputError("a tool that its provider runs cannot be mixed with other formats", path=path, hint=hint)
    return spec


# --- the chain --------------------------------------------------------------------------------------


class ToolMiddleware(Protocol):
    """A step of the chain. It changes the request or response in place."""

    def process_request(self, request: Request) -> None: ...

    def process_response(self, response: Response) -> None: ...


class ToolingMiddleware:
    """The step that converts tools and calls: schemas of requests, calls of responses.

    The default parser is that of the response's provider. A validator takes a call and returns the call to use; the
    built-in one also assigns ids.

    parser: reads the calls of a response.
    translator: rewrites tool definitions.
    validator: checks a call.
    policy: settings of the conversion (`toolglot.Policy`).
    overrides: your own profiles, and changes to built-in ones (`toolglot.profiles.read_overrides`).
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
        """Convert the tools to the provider's format. A request that is already converted is not changed."""
        if request.tools is None or (request.translated and request.tools == tools_of(request.translated)):
            return
        translated = self._translator.translate(request.tools, request.provider_id, request.model, policy=self._policy)
        request.tools, request.translated = tools_of(translated), translated

    def process_response(self, response: Response) -> None:
        """Parse the calls, validate them, and format them as `output_format` says."""
        request = response.request
        provider = response.provider_id or (request.provider_id if request is not None else "")
        parser = self._parser or get_parser(provider)
        provider = profiles.resolve(provider or parser.provider_id)
        parsed = enumerate(parser.parse(response.body))
        calls = [self._validated_call(call, provider, index, request) for index, call in parsed]
        form = "anthropic" if response.output_format == "anthropic" else "openai"
        written = Response(None, tool_calls=calls).get_tool_calls(form)
        response.tool_calls, response.tool_calls_formatted = calls, written
        response.warnings = _warnings(provider, len(calls), self._overrides)

    def _validated_call(self, call: ToolCall, provider: str, index: int, request: Request | None) -> ToolCall:
        call = _with_position_id(call, provider, index, request)
        validated = (
            self._validator(call)
            if self._validator is not None
            else validate_tool_call(call, provider=provider, index=index, turn_key=_turn_key(request))
        )
        if request is None or request.translated is None:
            return validated
        return request.translated.rendered.tools.original_call(validated)


def _warnings(provider: str, calls: int, overrides: Overrides | None) -> list[str]:
    """A warning if the response has more calls than its provider is known to support."""
    known = profiles.get_capabilities(provider, overrides=overrides)
    limit = known.max_tools_per_call if known.supports_parallel else 1
    if known == profiles.Capabilities() or limit is None or calls <= limit:
        return []
    allowed = "1 call" if limit == 1 else f"{limit} calls"
    return [f"{provider} is known to return at most {allowed} per response; this one has {calls}"]


def _turn_key(request: Request | None) -> str:
    return f"@{len(request.messages)}" if request is not None else ""


def _with_position_id(call: ToolCall, provider: str, index: int, request: Request | None) -> ToolCall:
    """Give a call without a provider id an id that also depends on the position of the reply.

    Otherwise two equal replies in a conversation would use one id for two calls.
    """
    if request is None or call.metadata is None or call.metadata.raw_id is not None or not ids.is_canonical(call.id):
        return call
    return replace(call, id=ids.mint(provider, None, call.name, call.id + _turn_key(request), index))


class MiddlewareChain:
    """A sequence of steps. Requests pass them in order, responses in reverse order."""

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
