"""The providers that are simulated: their paths, their keys, and their errors that do not depend on the body.

What a provider demands of a request body is in its profile. How a protocol is served is in `protocols/`. One app serves
all providers, each under a prefix; the native paths work without it where they do not clash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import FailureKind
from toolglot.profiles.target_names import ANY_HOST, profile_heads
from toolglot.protocols.fields.reading import Fields
from toolglot.simulator.protocols.anthropic import HOSTED_ROUTES
from toolglot.simulator.protocols.base import SimulatedRoute, simulated_protocol
from toolglot.simulator.replies.refusals import ErrorEdit, Refusal
from toolglot.simulator.replies.streams import StreamStyle


class ErrorMessages(Struct, frozen=True, kw_only=True):
    """What a provider replies to a request with a wrong key or path, or that is not JSON."""

    no_key: str
    bad_key: str
    not_json: str
    no_route: str = "Not Found"
    no_key_kind: FailureKind = "auth"
    bad_key_kind: FailureKind = "auth"
    auth_fields: dict[str, str] = {}
    """Fields of the error object that it has when the key is wrong."""
    too_long: str = (
        "This model's maximum context length is {window} tokens. However, your messages resulted in {tokens} tokens. "
        "Please reduce the length of the messages."
    )
    reply_too_long: str = ""
    """What it says to a prompt that fits, but not together with the reply; empty: it accepts that."""


class SimulatedProvider(Struct, frozen=True, kw_only=True):
    """A provider as the simulator serves it."""

    name: str
    """The prefix of its paths, and its target unless a path names another."""
    routes: tuple[SimulatedRoute, ...]
    messages: ErrorMessages
    base: str = ""
    """What its SDK expects at the end of the base URL."""
    key_headers: tuple[str, ...] = ("authorization",)
    key_parameter: str = ""
    """The query parameter that can hold the key."""
    needs_key: bool = True
    required_header: str = ""
    """A header that every request needs. It also distinguishes its requests from those of others if paths clash."""
    models: tuple[str, ...] = ()
    stream_style: StreamStyle = StreamStyle()
    edit_error: ErrorEdit | None = None
    """Gives errors a form of its own."""


class MatchedPath(Struct, frozen=True, kw_only=True):
    """A path, with the provider and the route that it belongs to."""

    provider: SimulatedProvider
    route: SimulatedRoute
    model: str = ""
    """The model that the path names."""
    is_stream: bool = False
    """Whether the path is that of a stream."""

    @property
    def target(self) -> str:
        return self.route.target or self.provider.name


# --- errors with a form of their own ----------------------------------------------------------------

_ORDER_MESSAGE: Final = re.compile(r"Unexpected role|Expected last role|Not the same number|Unexpected tool call id")


_EXTRA_MESSAGE: Final = "Extra inputs are not permitted"


def _mistral_error(refusal: Refusal, status: int, body: Fields) -> tuple[int, Fields]:
    if refusal.rule == "shape" or refusal.message == _EXTRA_MESSAGE:
        kind = "extra_forbidden" if refusal.message == _EXTRA_MESSAGE else "value_error"
        steps: list[str | int] = [int(step) if step.isdigit() else step for step in re.findall(r"\w+", refusal.param)]
        return 422, {"detail": [{"type": kind, "loc": ["body", *steps], "msg": refusal.message}]}
    if refusal.kind == "auth":
        return 401, {"detail": refusal.message}
    is_order = _ORDER_MESSAGE.match(refusal.message) is not None
    kinds: dict[str, tuple[str, str | None]] = {
        "bad_request": ("invalid_request_message_order", "3230") if is_order else ("invalid_request_error", "3051"),
        "rate_limit": ("rate_limited", "1300"),
        "not_found": ("invalid_model", "1500"),
    }
    type, code = kinds.get(refusal.kind, ("internal_server_error", "3000"))
    message: Any = body["error"]["message"]
    return status, {"object": "error", "message": message, "type": type, "param": None, "code": code}


def _cohere_error(refusal: Refusal, status: int, body: Fields) -> tuple[int, Fields]:
    return 422 if refusal.message.startswith("unknown field") else status, body


def _kimi_error(_refusal: Refusal, status: int, body: Fields) -> tuple[int, Fields]:
    error = body["error"]
    return status, {"error": {"message": error["message"], "type": error["type"]}}


# --- the providers ----------------------------------------------------------------------------------

_CHAT: Final = simulated_protocol("openai_chat").routes
_RESPONSES_ALONE: Final = tuple(
    [route for route in simulated_protocol("openai_responses").routes if route.pattern.endswith("/responses")]
)
"""The Responses protocol of a host that has nothing but its responses."""
_CHAT_MESSAGES: Final = ErrorMessages(
    no_key="Authentication failed: no API key provided",
    bad_key="Authentication failed: invalid API key",
    not_json="Failed to parse the request body as JSON",
)
_OPENAI_MESSAGES: Final = ErrorMessages(
    no_key=(
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth "
        "(i.e. Authorization: Bearer YOUR_KEY)."
    ),
    bad_key="Incorrect API key provided. You can find your API key at https://platform.openai.com/account/api-keys.",
    not_json=(
        "We could not parse the JSON body of your request. The OpenAI API expects a JSON payload, but what was sent "
        "was not valid JSON."
    ),
    no_route="Invalid URL ({method} {path})",
)


def _chat(
    name: str,
    *models: str,
    messages: ErrorMessages = _CHAT_MESSAGES,
    base: str = "/v1",
    edit_error: ErrorEdit | None = None,
) -> SimulatedProvider:
    return SimulatedProvider(
        name=name,
        routes=_CHAT,
        messages=messages,
        base=base,
        models=models,
        stream_style=StreamStyle(usage_at_end=True),
        edit_error=edit_error,
    )


_DESCRIBED: Final = {
    provider.name: provider
    for provider in (
        SimulatedProvider(
            name="anthropic",
            routes=simulated_protocol("anthropic").routes,
            messages=ErrorMessages(
                no_key="x-api-key header is required",
                bad_key="invalid x-api-key",
                not_json="The request body is not valid JSON: {reason}",
                too_long="prompt is too long: {tokens} tokens > {window} maximum",
            ),
            key_headers=("x-api-key", "authorization"),
            required_header="anthropic-version",
            models=("claude-opus-5", "claude-sonnet-4-5", "claude-fable-5-1"),
        ),
        SimulatedProvider(
            name="vertex_claude",
            routes=HOSTED_ROUTES,
            messages=ErrorMessages(
                no_key="Request is missing required authentication credential.",
                bad_key="Request had invalid authentication credentials.",
                not_json="The request body is not valid JSON: {reason}",
                too_long="prompt is too long: {tokens} tokens > {window} maximum",
            ),
            models=("claude-opus-5", "claude-sonnet-4-5@20250929"),
        ),
        SimulatedProvider(
            name="openai",
            routes=(*_CHAT, *simulated_protocol("openai_responses").routes),
            messages=_OPENAI_MESSAGES,
            base="/v1",
            models=("gpt-4.1", "gpt-5.5"),
        ),
        SimulatedProvider(
            name="gemini",
            routes=simulated_protocol("gemini").routes,
            messages=ErrorMessages(
                no_key=(
                    "Method doesn't allow unregistered callers (callers without established identity). Please use API "
                    "Key or other form of API consumer identity to call this API."
                ),
                bad_key="API key not valid. Please pass a valid API key.",
                not_json="Invalid JSON payload received. {reason}",
                too_long="The input token count ({tokens}) exceeds the maximum number of tokens allowed ({window}).",
                no_key_kind="permission",
                bad_key_kind="bad_request",
            ),
            key_headers=("x-goog-api-key", "authorization"),
            key_parameter="key",
            models=("gemini-2.5-pro", "gemini-3-pro"),
        ),
        SimulatedProvider(
            name="mistral",
            routes=_CHAT,
            messages=ErrorMessages(
                no_key="Unauthorized",
                bad_key="Unauthorized",
                not_json="Invalid JSON: {reason}",
                too_long="Prompt contains {tokens} tokens, too large for model with {window} maximum context length",
            ),
            models=("mistral-large-latest", "magistral-medium-latest"),
            stream_style=StreamStyle(whole_calls=True, thinking_parts=True, usage_at_end=True),
            edit_error=_mistral_error,
        ),
        _chat(
            "deepseek",
            *("deepseek-chat", "deepseek-reasoner"),
            messages=ErrorMessages(
                no_key="Authentication Fails (governor)",
                bad_key="Authentication Fails, Your api key is invalid",
                not_json="Failed to parse the request body as JSON: {reason}",
                auth_fields={"type": "authentication_error", "code": "invalid_request_error"},
            ),
            base="",
        ),
        _chat(
            "kimi",
            *("kimi-k2.5", "kimi-k3"),
            messages=ErrorMessages(
                no_key="Invalid Authentication",
                bad_key="Invalid Authentication",
                not_json="Invalid request: failed to parse the request body as JSON",
                no_route="The requested URL was not found",
                too_long="Invalid request: Your request exceeded model token limit: {window} (requested: {tokens})",
                auth_fields={"type": "invalid_authentication_error"},
            ),
            edit_error=_kimi_error,
        ),
        replace(_chat("xai"), routes=(*_CHAT, *_RESPONSES_ALONE)),
        _chat(
            "vllm",
            messages=replace(
                _CHAT_MESSAGES,
                reply_too_long=(
                    "This model's maximum context length is {window} tokens. However, you requested {total} tokens "
                    "({tokens} in the messages, {reply} in the completion). Please reduce the length of the messages "
                    "or completion."
                ),
            ),
        ),
        SimulatedProvider(
            name="bedrock",
            routes=simulated_protocol("bedrock").routes,
            messages=ErrorMessages(
                no_key="Missing Authentication Token",
                bad_key="The security token included in the request is invalid.",
                not_json="Unexpected token in the request body",
                no_route="Unable to determine service/operation name to be authorized",
                too_long="Input is too long for requested model.",
            ),
            models=("anthropic.claude-opus-5-v1:0",),
        ),
        SimulatedProvider(
            name="cohere",
            routes=simulated_protocol("cohere").routes,
            messages=ErrorMessages(
                no_key="no api key supplied",
                bad_key="invalid api token",
                not_json="invalid json syntax",
                too_long=(
                    "too many tokens: total number of tokens in the prompt cannot exceed {window} - received {tokens}. "
                    "Try using a shorter prompt, or a smaller max_tokens value."
                ),
            ),
            models=("command-a-03-2025",),
            edit_error=_cohere_error,
        ),
        SimulatedProvider(
            name="ollama",
            routes=simulated_protocol("ollama").routes,
            messages=ErrorMessages(
                no_key="unauthorized",
                bad_key="unauthorized",
                not_json="{reason}",
                no_route="404 page not found",
                too_long="prompt too long; exceeded max context length by {excess} tokens",
            ),
            needs_key=False,
            models=("qwen3", "llama3.1"),
        ),
    )
}
"""The providers with messages, paths or models of their own."""

PROVIDERS: Final[dict[str, SimulatedProvider]] = _DESCRIBED | {
    name: _chat(name) for name, head in profile_heads().items() if head.extends == ANY_HOST and name not in _DESCRIBED
}
"""The described ones, and every other host of Chat Completions that has a profile."""

_UNPREFIXED: Final = ("openai", "anthropic", "gemini", "bedrock", "cohere", "ollama")
"""Providers whose native paths work without a prefix; of those that clash, the first."""


def url_of(root: str, provider: str) -> str:
    """The base URL for the SDK of a provider."""
    return f"{root.rstrip('/')}/{provider}{PROVIDERS[provider].base}"


def find(method: str, path: str, headers: Mapping[str, str]) -> tuple[SimulatedProvider, MatchedPath | None]:
    """The provider of a path, and its route; None where the provider has no such path."""
    first, _, rest = path.removeprefix("/").partition("/")
    if first in PROVIDERS:
        return PROVIDERS[first], _match(PROVIDERS[first], method, f"/{rest}")
    order = [PROVIDERS[name] for name in _UNPREFIXED]
    order.sort(key=lambda provider: not provider.required_header or provider.required_header not in headers)
    for provider in order:
        found = _match(provider, method, path)
        if found is not None:
            return provider, found
    return order[0], None


def _match(provider: SimulatedProvider, method: str, path: str) -> MatchedPath | None:
    for route in provider.routes:
        match = re.fullmatch(route.pattern, path) if route.method == method else None
        if match is not None:
            groups = match.groupdict()
            model, is_stream = groups.get("model") or "", groups.get("stream") is not None
            return MatchedPath(provider=provider, route=route, model=model, is_stream=is_stream)
    return None


def account_of(provider: SimulatedProvider, headers: Mapping[str, str], query: Mapping[str, Any]) -> str:
    """Whose prompt caches a request uses: those of its key. The rest of an AWS signature is new in each request."""
    key = key_of(provider, headers, query)
    signed = re.search(r"Credential=([^/,]+)/", key)
    return signed[1] if signed is not None else key


def key_of(provider: SimulatedProvider, headers: Mapping[str, str], query: Mapping[str, Any]) -> str:
    """The key of a request; empty if it has none."""
    for name in provider.key_headers:
        value = headers.get(name, "").strip()
        key = value[7:] if value.lower().startswith("bearer ") else value
        if key.strip() and key.lower() != "bearer":
            return key.strip()
    return str(query.get(provider.key_parameter, "")) if provider.key_parameter else ""
