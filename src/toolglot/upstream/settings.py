"""The settings of an upstream, and of the route to it, as values that were checked when they were read.

Law: values only. Keys and headers are `Secret`s, which are never shown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from toolglot.errors import InputError
from toolglot.policy import Policy
from toolglot.protocols.base import Auth
from toolglot.upstream.aws_signing import AwsCredentials
from toolglot.upstream.providers import Provider, aws_credentials, key_of, url_of
from toolglot.upstream.routing.model_names import SIMULATED
from toolglot.upstream.secret import NONE, Secret

CONFIG_FILE: Final = "toolglot.toml"
"""The name of the configuration file, for messages too."""


class UpstreamSettings(Struct, frozen=True, kw_only=True):
    """An upstream as it was configured, or found in the environment."""

    name: str
    provider: str
    """The provider that toolglot knows; empty: none."""
    target: str
    url: str
    auth: Auth
    key: Secret = NONE
    key_env: str = ""
    """The variable that the key is from."""
    aws: AwsCredentials | None = None
    """The credentials that sign requests, if `auth` is `aws` and there is no key."""
    headers: dict[str, Secret] = {}
    """By lowercase name."""
    proxy: Secret = NONE
    connect_seconds: float = 10
    first_byte_seconds: float = 600
    idle_seconds: float = 300
    keep_alive_seconds: float = 4
    retries: int = 0
    retry_seconds: float = 8
    max_concurrent: int = 0
    breaker_failures: int = 5
    breaker_seconds: float = 20
    models: tuple[str, ...] = ()
    is_target_fixed: bool = False
    """The profile was named, so that no other one of the same provider is used."""


def settings_from_environment(provider: Provider, environ: Mapping[str, str]) -> UpstreamSettings:
    """A provider as an upstream, with the key and address of the environment. `InputError` says what is missing."""
    key = key_of(provider, environ)
    aws = aws_credentials(environ) if provider.auth == "aws" and not key else None
    if not key and aws is None and provider.auth != "none":
        variables = " or ".join(provider.key_env)
        hint = f"set the environment variable {variables}, or use {SIMULATED}/{provider.name}/…, which needs none"
        raise InputError(f"{provider.title} needs a key", path="model", hint=hint)
    return UpstreamSettings(
        name=provider.name,
        provider=provider.name,
        target=provider.target,
        url=url_of(provider, environ=environ),
        auth=provider.auth,
        key=Secret(key),
        aws=aws,
    )


Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

_Count = Annotated[Annotated[int, Meta(ge=1, le=10**9)] | None, Meta(title="a whole number from 1")]
_Penalty = Annotated[Annotated[float, Meta(ge=-2, le=2)] | None, Meta(title="a number from -2 to 2")]


class RequestSettings(Struct, frozen=True, kw_only=True):
    """`default` and `force` of a name of `[models]`: sampling, reasoning and tool choice of a request."""

    max_tokens: Annotated[_Count, Meta(description="The maximum length of a reply.")] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        Meta(title="a number from 0 to 2", description="The sampling temperature."),
    ] = None
    top_p: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(title="a number from 0 to 1", description="Nucleus sampling: the probability mass to choose from."),
    ] = None
    top_k: Annotated[_Count, Meta(description="The number of tokens to choose from.")] = None
    stop: Annotated[
        Annotated[tuple[Annotated[str, Meta(min_length=1, max_length=1000)], ...], Meta(max_length=16)] | None,
        Meta(title="a list of strings", description="Stop sequences."),
    ] = None
    seed: Annotated[
        Annotated[int, Meta(ge=0, le=2**63 - 1)] | None,
        Meta(
            title="a whole number from 0", description="The seed for repeatable sampling, if the provider supports one."
        ),
    ] = None
    presence_penalty: Annotated[_Penalty, Meta(description="The penalty for tokens that already occur.")] = None
    frequency_penalty: Annotated[_Penalty, Meta(description="The penalty for tokens that occur often.")] = None
    reasoning_mode: Annotated[
        Literal["off", "on", "adaptive", "between_tools"] | None,
        Meta(
            title='one of "off", "on", "adaptive", "between_tools"',
            description="Whether the model thinks before it replies.",
        ),
    ] = None
    reasoning_effort: Annotated[
        Effort | None,
        Meta(
            title='one of "none", "minimal", "low", "medium", "high", "xhigh", "max"',
            description="How much the model thinks.",
        ),
    ] = None
    reasoning_budget_tokens: Annotated[
        _Count, Meta(description="The same in tokens, if the provider supports that.")
    ] = None
    tool_choice: Annotated[
        Literal["auto", "none", "required"] | None,
        Meta(
            title='one of "auto", "none", "required"',
            description="Whether the model may, must not or must call a tool, in requests that have tools.",
        ),
    ] = None
    parallel_tool_calls: Annotated[
        bool | None,
        Meta(
            title="true or false",
            description="Whether the model may call several tools at once, in requests that have tools.",
        ),
    ] = None


class RetrySettings(Struct, frozen=True):
    """Retries and timeouts of a route; None: those of the upstream."""

    retries: int | None = None
    retry_seconds: float | None = None
    connect_seconds: float | None = None
    first_byte_seconds: float | None = None
    idle_seconds: float | None = None


class RouteSettings(Struct, frozen=True, kw_only=True):
    """The settings of one route from a name to an upstream."""

    name: str
    """The entry of `[models]`, for the report."""
    system: str = ""
    default: RequestSettings = RequestSettings()
    force: RequestSettings = RequestSettings()
    policy: Policy | None = None
    """None: that of the gateway."""
    target: str = ""
    headers: dict[str, Secret] = {}
    retry: RetrySettings = RetrySettings()
