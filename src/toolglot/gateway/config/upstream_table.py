"""The `[upstreams.NAME]` of a configuration, and the upstreams that an environment shows without one.

Law: an upstream has an address that was checked, a profile that exists, and its key, which is read from the environment
once. Only the configuration decides where requests go.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Final, get_args

from msgspec import Meta, Struct

from toolglot import profiles
from toolglot.errors import InputError, unknown_name
from toolglot.gateway.config.checks import ValueMistake, wrong_proxy, wrong_url
from toolglot.gateway.config.file import ConfigText, read_table
from toolglot.gateway.config.model_table import MAX_NAME_LENGTH
from toolglot.gateway.config.upstream_values import HEADERS, Seconds, read_headers, read_target, read_variable
from toolglot.gateway.config.variables import ENV, is_sendable, is_variable, shown_variable, variable
from toolglot.profiles import Overrides
from toolglot.protocols.base import Auth
from toolglot.upstream.aws_signing import AwsCredentials, region_of
from toolglot.upstream.providers import PROVIDERS, Provider, aws_credentials, url_of
from toolglot.upstream.routing.model_names import SIMULATED
from toolglot.upstream.secret import NONE, Secret
from toolglot.upstream.settings import UpstreamSettings

OWN_TARGET: Final = "openai_compatible"
"""The profile of an upstream that only has an address."""

UNKNOWN_KEEP_ALIVE: Final = 4.0
"""Seconds that an idle connection to an unknown server is reused: Node, uvicorn and Apache close after 5."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")


class UpstreamTable(Struct, frozen=True, kw_only=True):
    """`[upstreams.NAME]`: where requests for `NAME/model` go."""

    provider: Annotated[
        str,
        Meta(title="a string", description="A provider that toolglot knows. Default: the name of the section."),
    ] = ""
    target: Annotated[
        str,
        Meta(
            title="a string",
            description="Its [profile](profiles.md), built-in or your own. Default: the provider's; without a "
            "provider, the profile with the section's name, or `openai_compatible`.",
        ),
    ] = ""
    url: Annotated[
        str,
        Meta(
            title="a string",
            description="The base URL, as you would give it to the provider's SDK. Default: the provider's.",
        ),
    ] = ""
    key_env: Annotated[
        str,
        Meta(
            title="the name of an environment variable",
            description="The environment variable that holds the key. Default: the first of the provider's variables "
            "that is set.",
        ),
    ] = ""
    auth: Annotated[
        Auth | None,
        Meta(
            title="one of " + ", ".join(f'"{word}"' for word in get_args(Auth)),
            description="How the key is sent: as `Authorization: Bearer`, in the header of this name, as an AWS "
            "signature, or not at all. With `none`, no key is required, and a key that is set is sent as "
            "a bearer token. Default: the provider's; without a provider, `bearer` with `key_env`, "
            "otherwise `none`.",
        ),
    ] = None
    headers: HEADERS = {}
    proxy: Annotated[
        str,
        Meta(
            title="a string",
            description='The HTTP proxy to use, or `"env:NAME"`, which may contain a password. Default: '
            "`HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`.",
        ),
    ] = ""
    insecure: Annotated[
        bool,
        Meta(title="true or false", description="Allow plain `http://` to another machine."),
    ] = False
    connect_seconds: Annotated[Seconds, Meta(description="The timeout for connecting.")] = 10
    first_byte_seconds: Annotated[Seconds, Meta(description="The timeout for the first byte of the response.")] = 600
    idle_seconds: Annotated[Seconds, Meta(description="How long a response may be silent after it has begun.")] = 300
    keep_alive_seconds: Annotated[
        Seconds | None,
        Meta(
            title="a number of seconds above 0",
            description="How long an idle connection is kept. It should be shorter than the server's own timeout, "
            "because a POST that meets a closing connection is not sent again. Default: the provider's; "
            "30 for hosted providers, 4 for an address of your own.",
        ),
    ] = None
    retries: Annotated[
        int,
        Meta(
            ge=0,
            le=10,
            title="a whole number from 0 to 10",
            description="How often a request is sent again if the provider is busy, down or silent, before the next "
            "upstream of a chain is called. A request that was refused because of its content is not sent"
            " again. Most clients retry themselves.",
        ),
    ] = 0
    retry_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=600,
            title="a number of seconds",
            description="The maximum wait before a retry. If the provider requests more, the request is not retried.",
        ),
    ] = 8
    max_concurrent: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            title="a whole number",
            description="The maximum number of concurrent requests to it; 0 for no limit.",
        ),
    ] = 0
    breaker_failures: Annotated[
        int,
        Meta(
            ge=1,
            le=10_000,
            title="a whole number from 1",
            description="After this many failures in a row the circuit breaker opens: the upstream is not called for "
            "a while.",
        ),
    ] = 5
    breaker_seconds: Annotated[Seconds, Meta(description="How long the circuit breaker stays open.")] = 20
    models: Annotated[
        tuple[str, ...],
        Meta(
            max_length=10_000,
            title="a list of names",
            description="Models that it serves. They need no prefix, and listings show them. A pattern such as "
            "`llama-*` is not listed.",
        ),
    ] = ()


def read_upstream(
    name: str, value: Any, environ: Mapping[str, str], overrides: Overrides | None, text: ConfigText
) -> UpstreamSettings:
    """One section, with its defaults from the provider."""
    return _Reader(name, value, environ, overrides, text).settings()


class _Reader:
    """Reads one section."""

    def __init__(
        self, name: str, value: Any, environ: Mapping[str, str], overrides: Overrides | None, text: ConfigText
    ) -> None:
        self.name = name
        self.at = ("upstreams", name)
        self.text = text
        self.environ = environ
        self.overrides = overrides
        self.table = read_table(value, UpstreamTable, text, *self.at)
        self._check_names()
        self.provider = self._provider()

    def settings(self) -> UpstreamSettings:
        table = self.table
        url = self._url()
        auth = table.auth or (self.provider.auth if self.provider else "bearer" if table.key_env else "none")
        key_env, key = self._key(auth)
        return UpstreamSettings(
            name=self.name,
            provider=self.provider.name if self.provider else "",
            target=self._target(),
            url=url,
            auth=auth,
            key=key,
            key_env=key_env,
            aws=self._aws(url) if auth == "aws" and not key else None,
            headers=read_headers(table.headers, self.environ, self.text, *self.at, "headers"),
            proxy=self._proxy(),
            connect_seconds=table.connect_seconds,
            first_byte_seconds=table.first_byte_seconds,
            idle_seconds=table.idle_seconds,
            keep_alive_seconds=self._keep_alive(),
            retries=table.retries,
            retry_seconds=table.retry_seconds,
            max_concurrent=table.max_concurrent,
            breaker_failures=table.breaker_failures,
            breaker_seconds=table.breaker_seconds,
            models=table.models,
            is_target_fixed=bool(table.target),
        )

    def _check_names(self) -> None:
        if self.name == SIMULATED or not _NAME.fullmatch(self.name):
            hint = f"use lowercase letters, digits and -_., and not {SIMULATED!r}: it is the prefix of a model's name"
            raise self.text.error("not a name for an upstream", *self.at, hint=hint)
        for model in self.table.models:
            if not model or len(model) > MAX_NAME_LENGTH or not model.isprintable() or " " in model:
                raise self._error(
                    "one of these is not the name of a model", "models", f"at most {MAX_NAME_LENGTH} characters"
                )

    def _provider(self) -> Provider | None:
        name = self.table.provider or self.name
        found = PROVIDERS.get(profiles.resolve(name))
        if found is None and (self.table.provider or not self.table.url):
            hint = f"known: {', '.join(PROVIDERS)}; for any other server, set url and no provider"
            key = ("provider",) if self.table.provider else ()
            raise self.text.name_error(unknown_name("provider", name, PROVIDERS, hint=hint), *self.at, *key)
        return found

    def _target(self) -> str:
        if self.table.target:
            return read_target(self.table.target, self.overrides, self.text, *self.at, "target")
        own = self.overrides.names if self.overrides else ()
        default = self.name if self.name in own else OWN_TARGET
        return self.provider.target if self.provider else default

    def _url(self) -> str:
        url = self.table.url
        if self.provider is not None:
            try:
                url = url_of(self.provider, url=url, environ=self.environ)
            except InputError as error:
                raise self._error(error.message, "url", error.hint) from None
        self._raise(wrong_url(url, insecure=self.table.insecure), "url")
        return url.rstrip("/")

    def _keep_alive(self) -> float:
        """Seconds that an idle connection is reused. The provider's own value is for its own address only."""
        if self.table.keep_alive_seconds is not None:
            return self.table.keep_alive_seconds
        if self.provider is None or self.table.url.rstrip("/") not in ("", self.provider.url):
            return UNKNOWN_KEEP_ALIVE
        return self.provider.keep_alive

    def _key(self, auth: Auth) -> tuple[str, Secret]:
        """The variable of the key, and the key; both empty if none is needed."""
        key_env = self.table.key_env
        if key_env and not is_variable(key_env):
            raise self._error(
                "expected the name of an environment variable",
                "key_env",
                "the file must not contain a key itself: put it into a variable and write the variable's name",
            )
        names = (key_env,) if key_env else self.provider.key_env if self.provider else ()
        name = next((each for each in names if variable(self.environ, each)), "")
        key = variable(self.environ, name) if name else ""
        if key and not is_sendable(key):
            message = f"the value of {shown_variable(name)} cannot be sent as a key"
            raise self._error(message, "key_env", "set it to one line of ASCII characters")
        if not key and auth != "none" and (auth != "aws" or key_env):
            hint = 'set it to the key, name another with key_env, or write auth = "none" if it needs none'
            missing = " and ".join(shown_variable(each) for each in names) or "the variable of the key"
            message = f"{missing} {'are' if len(names) > 1 else 'is'} not set in the environment"
            raise self._error(message if names else "a key is needed, and no variable is named", "key_env", hint)
        return name, Secret(key)

    def _aws(self, url: str) -> AwsCredentials:
        credentials = aws_credentials(self.environ)
        if credentials is None:
            own = f"{self.provider.key_env[0]}, or " if self.provider and self.provider.key_env else ""
            message = "the environment has neither a key nor AWS credentials"
            raise self._error(message, "key_env", f"set {own}AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
        try:
            region_of(url, credentials)
        except InputError as error:
            raise self._error(error.message, "url", error.hint) from None
        return credentials

    def _proxy(self) -> Secret:
        value = self.table.proxy
        if not value:
            return NONE
        resolved = read_variable(value, self.environ, self.text, *self.at, "proxy") if value.startswith(ENV) else value
        if "@" in value:
            hint = f'put the address into a variable and write proxy = "{ENV}NAME"'
            raise self._error("the file must not contain a password", "proxy", hint)
        self._raise(wrong_proxy(resolved), "proxy")
        return Secret(resolved)

    def _raise(self, wrong: ValueMistake | None, *keys: str) -> None:
        if wrong is not None:
            raise self.text.error(wrong.message, *self.at, *keys, hint=wrong.hint)

    def _error(self, message: str, key: str, hint: str) -> InputError:
        return self.text.error(message, *self.at, key, hint=hint)


# --- without a file ---------------------------------------------------------------------------------


def discovered_upstreams(environ: Mapping[str, str]) -> tuple[dict[str, UpstreamSettings], dict[str, str]]:
    """An upstream for each provider with a key in the environment; and why one with a key is not used."""
    found: dict[str, UpstreamSettings] = {}
    left_out: dict[str, str] = {}
    for provider in PROVIDERS.values():
        if not has_key(provider, environ):
            continue
        try:
            found[provider.name] = read_upstream(provider.name, {}, environ, None, ConfigText("environment"))
        except InputError as error:
            hint = f" ({error.hint})" if error.hint else ""
            left_out[provider.name] = f"{error.message}{hint}"
    return found, left_out


def has_key(provider: Provider, environ: Mapping[str, str]) -> bool:
    """Whether the environment has a key for a provider."""
    is_signed = provider.auth == "aws" and aws_credentials(environ) is not None
    return is_signed or any(variable(environ, name) for name in provider.key_env)
