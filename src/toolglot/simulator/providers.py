"""The providers that are simulated: their paths, their keys, and their words for what is wrong with a request as such.

What a provider demands of a request body is in its profile; here is only what lies around the body. One app serves all
of them, each under a prefix; the native paths work without it where they do not clash.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from toolglot.conversation import FailureKind
from toolglot.profiles.target_names import ANY_HOST, profile_heads

Kind = Literal["generate", "count", "models", "model", "tags", "version", "show"]


class Words(Struct, frozen=True, kw_only=True):
    """What a provider says where no body is at fault."""

    no_key: str
    bad_key: str
    not_json: str
    no_route: str = "Not Found"
    no_key_kind: FailureKind = "auth"
    bad_key_kind: FailureKind = "auth"
    auth_fields: dict[str, str] = {}
    """Fields of the error object that are its own when a key is at fault."""


class SimulatedProvider(Struct, frozen=True, kw_only=True):
    """A provider as the simulator serves it."""

    name: str
    """The prefix of its paths, and its target where its paths name no other."""
    routes: tuple[SimulatedRoute, ...]
    words: Words
    base: str = ""
    """What its SDK expects at the end of the base address."""
    key_headers: tuple[str, ...] = ("authorization",)
    needs_key: bool = True
    models: tuple[str, ...] = ()
    whole_calls: bool = False
    """A stream has each call in one chunk."""
    thinking_parts: bool = False
    """A stream has thinking in parts of the content."""
    usage_at_end: bool = False
    """A stream has its usage in the chunk that says why it ended."""


class SimulatedRoute(Struct, frozen=True):
    """A path of a provider and what it is for."""

    pattern: str
    kind: Kind = "generate"
    protocol: str = "openai_chat"
    target: str = ""
    """Whose rules hold; empty: those of the provider."""
    method: str = "POST"


class MatchedPath(Struct, frozen=True, kw_only=True):
    """A path, understood."""

    provider: SimulatedProvider
    route: SimulatedRoute
    model: str = ""
    """The model that the path names."""
    is_stream: bool = False
    """The path asks for a stream."""

    @property
    def target(self) -> str:
        return self.route.target or self.provider.name


_CHAT: Final = (
    SimulatedRoute(r"(?:/v1)?/chat/completions"),
    SimulatedRoute(r"(?:/v1)?/models", "models", method="GET"),
    SimulatedRoute(r"(?:/v1)?/models/(?P<model>.+)", "model", method="GET"),
)
_RESPONSES: Final = (
    SimulatedRoute(r"(?:/v1)?/responses", "generate", "openai_responses", "openai_responses"),
    SimulatedRoute(r"(?:/v1)?/responses/input_tokens", "count", "openai_responses", "openai_responses"),
)
_ANTHROPIC: Final = (
    SimulatedRoute(r"/v1/messages", "generate", "anthropic"),
    SimulatedRoute(r"/v1/messages/count_tokens", "count", "anthropic"),
    SimulatedRoute(r"/v1/models", "models", "anthropic", method="GET"),
    SimulatedRoute(r"/v1/models/(?P<model>.+)", "model", "anthropic", method="GET"),
)
_MODEL_OF: Final = r"/v1(?:beta|alpha)?/models/(?P<model>[^:]+)"
_GEMINI: Final = (
    SimulatedRoute(rf"{_MODEL_OF}:generateContent", "generate", "gemini"),
    SimulatedRoute(rf"{_MODEL_OF}:(?P<stream>streamGenerateContent)", "generate", "gemini"),
    SimulatedRoute(rf"{_MODEL_OF}:countTokens", "count", "gemini"),
    SimulatedRoute(r"/v1(?:beta|alpha)?/models", "models", "gemini", method="GET"),
    SimulatedRoute(_MODEL_OF, "model", "gemini", method="GET"),
)
_BEDROCK: Final = (
    SimulatedRoute(r"/model/(?P<model>.+)/converse", "generate", "bedrock"),
    SimulatedRoute(r"/model/(?P<model>.+)/(?P<stream>converse-stream)", "generate", "bedrock"),
    SimulatedRoute(r"/model/(?P<model>.+)/count-tokens", "count", "bedrock"),
)
_COHERE: Final = (
    SimulatedRoute(r"/v2/chat", "generate", "cohere"),
    SimulatedRoute(r"/v1/models", "models", "cohere", method="GET"),
)
_OLLAMA: Final = (
    SimulatedRoute(r"/api/chat", "generate", "ollama"),
    SimulatedRoute(r"/api/tags", "tags", "ollama", method="GET"),
    SimulatedRoute(r"/api/version", "version", "ollama", method="GET"),
    SimulatedRoute(r"/api/show", "show", "ollama"),
)

_CHAT_WORDS: Final = Words(
    no_key="Authentication failed: no API key provided",
    bad_key="Authentication failed: invalid API key",
    not_json="Failed to parse the request body as JSON",
)
_OPENAI_WORDS: Final = Words(
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


def _chat(name: str, *models: str, words: Words = _CHAT_WORDS, base: str = "/v1") -> SimulatedProvider:
    return SimulatedProvider(name=name, routes=_CHAT, words=words, base=base, models=models, usage_at_end=True)


_OWN_WORDS: Final = {
    provider.name: provider
    for provider in (
        SimulatedProvider(
            name="anthropic",
            routes=_ANTHROPIC,
            words=Words(
                no_key="x-api-key header is required",
                bad_key="invalid x-api-key",
                not_json="The request body is not valid JSON: {reason}",
            ),
            key_headers=("x-api-key", "authorization"),
            models=("claude-opus-5", "claude-sonnet-4-5", "claude-fable-5-1"),
        ),
        SimulatedProvider(
            name="openai",
            routes=(*_CHAT, *_RESPONSES),
            words=_OPENAI_WORDS,
            base="/v1",
            models=("gpt-4.1", "gpt-5.5"),
        ),
        SimulatedProvider(
            name="gemini",
            routes=_GEMINI,
            words=Words(
                no_key=(
                    "Method doesn't allow unregistered callers (callers without established identity). Please use API "
                    "Key or other form of API consumer identity to call this API."
                ),
                bad_key="API key not valid. Please pass a valid API key.",
                not_json="Invalid JSON payload received. {reason}",
                no_key_kind="permission",
                bad_key_kind="bad_request",
            ),
            key_headers=("x-goog-api-key", "authorization"),
            models=("gemini-2.5-pro", "gemini-3-pro"),
        ),
        SimulatedProvider(
            name="mistral",
            routes=_CHAT,
            words=Words(no_key="Unauthorized", bad_key="Unauthorized", not_json="Invalid JSON: {reason}"),
            models=("mistral-large-latest", "magistral-medium-latest"),
            whole_calls=True,
            thinking_parts=True,
            usage_at_end=True,
        ),
        _chat(
            "deepseek",
            *("deepseek-chat", "deepseek-reasoner"),
            words=Words(
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
            words=Words(
                no_key="Invalid Authentication",
                bad_key="Invalid Authentication",
                not_json="Invalid request: failed to parse the request body as JSON",
                no_route="The requested URL was not found",
                auth_fields={"type": "invalid_authentication_error"},
            ),
        ),
        SimulatedProvider(
            name="bedrock",
            routes=_BEDROCK,
            words=Words(
                no_key="Missing Authentication Token",
                bad_key="The security token included in the request is invalid.",
                not_json="Unexpected token in the request body",
                no_route="Unable to determine service/operation name to be authorized",
            ),
            models=("anthropic.claude-opus-5-v1:0",),
        ),
        SimulatedProvider(
            name="cohere",
            routes=_COHERE,
            words=Words(no_key="no api key supplied", bad_key="invalid api token", not_json="invalid json syntax"),
            models=("command-a-03-2025",),
        ),
        SimulatedProvider(
            name="ollama",
            routes=_OLLAMA,
            words=Words(
                no_key="unauthorized", bad_key="unauthorized", not_json="{reason}", no_route="404 page not found"
            ),
            needs_key=False,
            models=("qwen3", "llama3.1"),
        ),
    )
}
"""The providers with words, paths or models of their own."""

PROVIDERS: Final[dict[str, SimulatedProvider]] = _OWN_WORDS | {
    name: _chat(name) for name, head in profile_heads().items() if head.extends == ANY_HOST and name not in _OWN_WORDS
}
"""Those, and every other host of Chat Completions that has a profile."""

_UNPREFIXED: Final = ("openai", "anthropic", "gemini", "bedrock", "cohere", "ollama")
"""Whose native paths work without a prefix; of those that clash, the first."""


def url_of(root: str, provider: str) -> str:
    """The base address that the SDK of a provider is given."""
    return f"{root.rstrip('/')}/{provider}{PROVIDERS[provider].base}"


def find(method: str, path: str, headers: Mapping[str, str]) -> tuple[SimulatedProvider, MatchedPath | None]:
    """Whose path it is, and what it is for; no call where the provider has no such path."""
    first, _, rest = path.removeprefix("/").partition("/")
    if first in PROVIDERS:
        return PROVIDERS[first], _call(PROVIDERS[first], method, f"/{rest}")
    order = ("anthropic", *_UNPREFIXED) if "anthropic-version" in headers else _UNPREFIXED
    for name in order:
        found = _call(PROVIDERS[name], method, path)
        if found is not None:
            return PROVIDERS[name], found
    return PROVIDERS[order[0]], None


def _call(provider: SimulatedProvider, method: str, path: str) -> MatchedPath | None:
    for route in provider.routes:
        match = re.fullmatch(route.pattern, path) if route.method == method else None
        if match is not None:
            named = match.groupdict()
            model, is_stream = named.get("model") or "", named.get("stream") is not None
            return MatchedPath(provider=provider, route=route, model=model, is_stream=is_stream)
    return None


def key_of(provider: SimulatedProvider, headers: Mapping[str, str], query: Mapping[str, Any]) -> str:
    """The key that a request came with; empty if it has none."""
    for name in provider.key_headers:
        value = headers.get(name, "").strip()
        bare = value[7:] if value.lower().startswith("bearer ") else value
        if bare.strip() and bare.lower() != "bearer":
            return bare.strip()
    return str(query.get("key", "")) if provider.name == "gemini" else ""
