"""The configuration of a gateway: `toolglot.toml`, or what the environment shows if there is none.

    config = read_config(None, os.environ)      # --config, else $TOOLGLOT_CONFIG, else ./toolglot.toml, else none
    config.upstreams["openai"].url
    config.gateway.port

Values only: nothing is opened, connected or imported here. Keys are read from the environment when the file is read and
are `Secret`s from then on; client keys are kept as hashes.

Law: a mistake is a `ConfigError` with the file, the line, the key and what to do, and never shows a key. What is not in
the file is its default; an unknown key is a mistake.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from toolglot import profiles
from toolglot.errors import ProfileError, quote
from toolglot.gateway.accounting.prices import PriceSettings, read_own_prices
from toolglot.gateway.config.checks import ValueMistake, is_loopback, wrong_host, wrong_origin
from toolglot.gateway.config.file import (
    ConfigError,
    ConfigText,
    Mistakes,
    keys_of,
    read_table,
    read_text,
    table_of,
    unknown_key,
)
from toolglot.gateway.config.key_table import STORED_KEYS, KeySettings, read_client_key, read_keys, short_keys
from toolglot.gateway.config.model_table import read_models
from toolglot.gateway.config.route_table import RouteReader, read_policy
from toolglot.gateway.config.upstream_table import discovered_upstreams, has_key, read_upstream
from toolglot.gateway.config.variables import ENV, shown_variable, variable
from toolglot.gateway.inspector.settings import InspectorSettings
from toolglot.gateway.routing.search_tool import SearchSettings
from toolglot.policy import Policy
from toolglot.profiles import Overrides
from toolglot.simulator.simulated_upstreams import SIMULATED_NAMES
from toolglot.store.addresses import is_address
from toolglot.upstream.providers import PROVIDERS
from toolglot.upstream.routing.model_names import SimulatedNames
from toolglot.upstream.routing.routes import ModelEntry
from toolglot.upstream.settings import CONFIG_FILE, UpstreamSettings

__all__ = ["Config", "ConfigError", "GatewaySettings", "config_from_environment", "parse_config", "read_config"]

FILE: Final = CONFIG_FILE
FILE_VARIABLE: Final = "TOOLGLOT_CONFIG"
CLIENT_KEY_VARIABLE: Final = "TOOLGLOT_CLIENT_KEY"
SECTIONS: Final = ("gateway", "policy", "upstreams", "models", "keys", "prices", "profiles", "web_search", "inspector")
MEMORY: Final = ":memory:"
OFF: Final = "off"

_MIDDLEWARE: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)


GATEWAY_POLICY: Final = Policy(server_tools="spare")
"""Coding agents offer their provider's own tools along with theirs in every request."""


class GatewaySettings(Struct, frozen=True, kw_only=True):
    """`[gateway]`: how it listens, what it stores and what it reports."""

    host: Annotated[
        str,
        Meta(title="a string", description="The address to listen on. Any other than loopback requires `client_keys`."),
    ] = "127.0.0.1"
    port: Annotated[
        int,
        Meta(ge=0, le=65535, title="a whole number from 0 to 65535", description="The port; 0 picks a free one."),
    ] = 8400
    client_keys: Annotated[
        tuple[str, ...],
        Meta(
            max_length=1000,
            title="a list of strings",
            description='The keys that clients may use: `"env:NAME"`, the variable that holds a key; `"sha256:HEX"`, '
            'its hash; or `"store"`, the keys made by [`toolglot keys`](keys.md). Keys in the store are '
            'always accepted; with `"store"` a key is required even while the store has none. If no key '
            "is configured and the store has none, any request is accepted.",
        ),
    ] = ()
    allowed_origins: Annotated[
        tuple[str, ...],
        Meta(
            max_length=100,
            title="a list of origins",
            description="[Web pages](gateway.md#safety) that may read responses, and that may use a gateway without "
            'client keys: `"https://chat.example"`, `"http://localhost:3000"`, `"app://obsidian.md"`, '
            '`"vscode-webview://*"` (any host of this scheme; not for http and https), `"null"` (every '
            "local file and sandboxed frame).",
        ),
    ] = ()
    store: Annotated[
        str,
        Meta(
            title="a string",
            description="Where the vault and stored responses are: a SQLite file, relative to the configuration, or a"
            " server that several gateways share: `postgres://…`, `redis://…`, or `env:NAME`, the "
            "variable that holds the address, since an address has a password ([stores](stores.md)). "
            "`:memory:` keeps everything in memory until the gateway stops; `off` does the same and "
            "stores no responses. Default: `toolglot/gateway.db` in `$XDG_STATE_HOME` or "
            "`~/.local/state`.",
        ),
    ] = ""
    store_seconds: Annotated[
        float,
        Meta(
            gt=0,
            le=3600,
            title="a number above 0",
            description="How long a request waits for the store. After that, a request that can do without the store "
            "continues; one that needs it gets a 503. [When the server is "
            "away](stores.md#when-the-server-is-away).",
        ),
    ] = 3
    retention_hours: Annotated[
        float,
        Meta(
            gt=0, le=876_000, title="a number above 0", description="How long the vault and stored responses are kept."
        ),
    ] = 168
    usage_days: Annotated[
        int,
        Meta(
            ge=1,
            le=36_500,
            title="a whole number from 1",
            description="How long the daily usage of each client is kept, for `toolglot usage`.",
        ),
    ] = 400
    max_body_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=1 << 40,
            title="a whole number from 1024",
            description="The maximum size of a request body.",
        ),
    ] = 64 * 1024 * 1024
    max_answer_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=1024 * 1024 * 1024,
            title="a whole number from 1024",
            description="The maximum size of an upstream's response, complete or streamed. A longer one counts as a "
            "failure of the upstream: the next one of a chain is called.",
        ),
    ] = 64 * 1024 * 1024
    max_bytes_in_flight: Annotated[
        int,
        Meta(
            ge=1024,
            le=1 << 40,
            title="a whole number from 1024",
            description="The maximum size of all request and response bodies that are in memory at the same time; "
            "further requests get a 503. This limits the [memory](operations.md#memory) of the gateway.",
        ),
    ] = 256 * 1024 * 1024
    max_concurrent: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            title="a whole number from 1",
            description="The maximum number of concurrent requests; further ones get a 503.",
        ),
    ] = 1000
    max_connections: Annotated[
        int,
        Meta(
            ge=1,
            le=1_000_000,
            title="a whole number from 1",
            description="The maximum number of open connections, active or idle; further ones get a 503. The limit on"
            " [file descriptors](operations.md#connections) may allow fewer.",
        ),
    ] = 20_000
    ping_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            title="a number from 0",
            description="How long a stream may be silent before the client gets a keep-alive ping; 0 turns pings off.",
        ),
    ] = 15
    drain_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=86_400,
            title="a number from 0",
            description="How long [open responses](operations.md#stopping) may continue after the gateway got a signal "
            "to stop.",
        ),
    ] = 30
    lame_duck_seconds: Annotated[
        float,
        Meta(
            ge=0,
            le=3600,
            title="a number from 0",
            description="How long the gateway still accepts connections after it got a signal to stop, while `/ready` "
            "says that it stops and responses end their connections, so that a [load balancer]"
            "(scale.md#rolling-restarts) can go elsewhere.",
        ),
    ] = 0
    websocket_minutes: Annotated[
        float,
        Meta(
            ge=0,
            le=525_600,
            title="a number from 0",
            description="How long a [WebSocket](gateway.md#websockets) may last; 0 turns WebSockets off, and clients "
            "use HTTP.",
        ),
    ] = 60
    websocket_memory_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=1 << 40,
            title="a whole number from 0",
            description="The maximum size of the conversations that WebSockets keep in memory, so that clients need "
            "not send them again. A client whose conversation was forgotten sends it again.",
        ),
    ] = 64 * 1024 * 1024
    request_memory_bytes: Annotated[
        int,
        Meta(
            ge=0,
            le=1 << 40,
            title="a whole number from 0",
            description="The maximum size of the [last requests](operations.md#repeated-histories) that each worker "
            "keeps in memory, so that the history that an agent sends with every turn is not read again; 0: none.",
        ),
    ] = 64 * 1024 * 1024
    cache_keys: Annotated[
        bool,
        Meta(
            title="true or false",
            description="Name a client's session to upstreams that keep a conversation where its "
            "[prompt cache](caching.md) is, as a hash in `prompt_cache_key` or a header, and balance upstreams by it.",
        ),
    ] = True
    log: Annotated[
        Literal["text", "json", "off"],
        Meta(title='one of "text", "json", "off"', description="How each request is logged on stderr."),
    ] = "text"
    reports: Annotated[
        int,
        Meta(
            ge=0,
            le=1_000_000,
            title="a whole number from 0",
            description="How many requests `/toolglot/requests` keeps; 0 for none.",
        ),
    ] = 500
    metrics: Annotated[
        Literal["keyed", "open", "off"],
        Meta(
            title='one of "keyed", "open", "off"',
            description="Who may read [`/metrics`](observability.md). `keyed`: clients with the `metrics_key`;"
            " without a `metrics_key`, clients with the client key if there is only one, and everyone if there is"
            " none. `open`: everyone. `off`: no one, and nothing is counted.",
        ),
    ] = "keyed"
    metrics_key: Annotated[
        str,
        Meta(
            title="a string",
            description='The key for `/metrics`, and for nothing else: `"env:NAME"`, the variable that holds it, or '
            '`"sha256:HEX"`, its hash. With several client keys, `/metrics` needs this key, because it '
            "shows the totals of all of them.",
        ),
    ] = ""
    tracing: Annotated[
        bool,
        Meta(
            title="true or false",
            description="Send [OpenTelemetry](observability.md#traces) spans, if its packages are installed (`pip "
            "install '.[otel]'` in a clone).",
        ),
    ] = False
    middleware: Annotated[
        tuple[str, ...],
        Meta(
            max_length=100,
            title="a list of strings",
            description='Your own middleware, in the order in which requests go through it: `"package.module:Name"`.',
        ),
    ] = ()
    simulate: Annotated[
        bool | None,
        Meta(
            title="true or false",
            description="[Built-in simulated models](gateway.md#simulated-models) answer to names that begin with "
            "`simulated/`, and to no others. `true` also lists them; `false` turns them off. Default: "
            "they answer and are not listed.",
        ),
    ] = None


_UNREAD: Final = GatewaySettings()
"""Replaces settings that could not be read, while the rest of the file is checked."""


class Config(Struct, frozen=True, kw_only=True):
    """The whole configuration of a gateway."""

    gateway: GatewaySettings
    """With the hashes of the client keys, and the full path of the store."""
    policy: Policy = GATEWAY_POLICY
    upstreams: dict[str, UpstreamSettings] = {}
    """In the order of the file."""
    models: tuple[ModelEntry, ...] = ()
    keys: dict[str, KeySettings] = {}
    """By name; their hashes are among `gateway.client_keys` too."""
    key_origins: dict[str, str] = {}
    """By hash: what the configuration says of a client key, such as `env:CI_KEY`."""
    prices: dict[str, PriceSettings] = {}
    """By pattern, in the order of the file."""
    overrides: Overrides | None = None
    web_search: SearchSettings | None = None
    """The tool that searches the web for upstreams that have no search of their own."""
    inspector: InspectorSettings = InspectorSettings()
    """What is kept of past requests."""
    origin: str = ""
    """The file; empty: there is none, and the environment decided."""
    is_empty: bool = False
    """Nothing is configured: there is neither a file nor a provider's key in the environment."""
    left_out: dict[str, str] = {}
    """Why a provider that has a key in the environment is not an upstream."""
    notes: tuple[str, ...] = ()
    """Warnings for the operator."""

    @property
    def is_configurable(self) -> bool:
        """Errors suggest what to write into the file."""
        return True

    @property
    def simulated(self) -> SimulatedNames:
        """The simulated models."""
        return SIMULATED_NAMES

    @property
    def allows_simulated(self) -> bool:
        """Whether names that begin with `simulated/` have a route."""
        return self.gateway.simulate is not False

    @property
    def simulates_known(self) -> bool:
        """Whether simulated models answer to the names of known models."""
        return self.is_empty and self.allows_simulated

    @property
    def lists_simulated(self) -> bool:
        return self.gateway.simulate is True or self.simulates_known

    def without_simulated(self) -> Config:
        """The same without simulated models, for `--no-simulate`."""
        text = ConfigText(self.origin or "--no-simulate")
        for entry in self.models:
            if any(destination.simulated for destination in entry.destinations):
                hint = "remove --no-simulate, or let the name lead to an upstream"
                raise text.error("--no-simulate forbids the target of this name", "models", entry.name, hint=hint)
        return msgspec.structs.replace(self, gateway=msgspec.structs.replace(self.gateway, simulate=False))

    def listening_at(self, host: str | None = None, port: int | None = None) -> Config:
        """The same on another address, for the options of the command line."""
        wanted = {"host": host, "port": port}
        changed = {name: value for name, value in wanted.items() if value is not None}
        text = ConfigText("--host" if host is not None else "--port")
        if port is not None and not 0 <= port <= 65535:
            raise text.error("expected a whole number from 0 to 65535")
        settings = msgspec.structs.replace(self.gateway, **changed)
        _check_host(settings, text)
        return msgspec.structs.replace(self, gateway=settings)


def read_config(path: str | os.PathLike[str] | None, environ: Mapping[str, str]) -> Config:
    """The configuration of a file: this one, else that of `$TOOLGLOT_CONFIG`, else ./toolglot.toml, else none."""
    named = path or environ.get(FILE_VARIABLE) or (FILE if Path(FILE).is_file() else None)
    return parse_config(read_text(named), environ) if named else config_from_environment(environ)


def config_from_environment(environ: Mapping[str, str]) -> Config:
    """Without a file: an upstream for each provider whose key is in the environment."""
    text = ConfigText("environment")
    upstreams, left_out = discovered_upstreams(environ)
    keys = [f"{ENV}{CLIENT_KEY_VARIABLE}"] if variable(environ, CLIENT_KEY_VARIABLE) else []
    settings, notes = _gateway({"client_keys": keys}, environ, text)
    origins = dict(zip(settings.client_keys, keys, strict=True))
    return Config(
        gateway=settings,
        upstreams=upstreams,
        is_empty=not upstreams and not left_out,
        left_out=left_out,
        key_origins=origins,
        notes=(*(f"{name} is left out: {reason}" for name, reason in left_out.items()), *notes),
    )


def parse_config(text: ConfigText, environ: Mapping[str, str]) -> Config:
    """The configuration that a text holds."""
    document = text.tables()
    mistakes = Mistakes()
    for name in document:
        if name not in SECTIONS:
            mistakes.add(unknown_key(name, list(SECTIONS), text))
    tables = {name: document.get(name, {}) for name in SECTIONS}
    overrides = mistakes.collect(lambda: _overrides(document, text))
    if "profiles" in document and overrides is None:
        mistakes.raise_all()  # every mention of a profile would be a mistake too
    keys = mistakes.collect(lambda: read_keys(tables["keys"], environ, text))
    hashes = ["unread"] if keys is None else [each.key for each in keys.values()]
    settings, notes = mistakes.collect(lambda: _gateway(tables["gateway"], environ, text, hashes)) or (_UNREAD, ())
    upstreams = mistakes.collect(lambda: _upstreams(tables["upstreams"], environ, overrides, text))
    policy = mistakes.collect(lambda: _policy(tables["policy"], text)) or GATEWAY_POLICY
    prices = mistakes.collect(lambda: read_own_prices(tables["prices"], text)) or {}
    search = mistakes.collect(lambda: _web_search(document, text))
    inspector = mistakes.collect(lambda: read_table(tables["inspector"], InspectorSettings, text, "inspector"))
    routes = RouteReader(text, environ, overrides, policy)
    listed = {name: upstream.models for name, upstream in (upstreams or {}).items()}
    if upstreams is None and isinstance(tables["upstreams"], dict):
        listed = dict.fromkeys(
            tables["upstreams"], ()
        )  # so that a name that leads to an invalid upstream is not a mistake too
    simulate = settings.simulate is not False
    models = mistakes.collect(lambda: read_models(tables["models"], listed, simulate=simulate, routes=routes))
    mistakes.raise_all()
    keys, upstreams, models = keys or {}, upstreams or {}, models or ()
    notes = (*notes, *short_keys((table["key"] for table in tables["keys"].values()), environ))
    if not upstreams and not settings.simulate:
        only = "" if settings.simulate is False else "; only names that begin with simulated/ work"
        usable = [provider.name for provider in PROVIDERS.values() if has_key(provider, environ)]
        sections = " and ".join(f"[upstreams.{name}], whose key is set" for name in usable[:2]) or "[upstreams.NAME]"
        notes = (*notes, f"{text.origin} has no upstream{only}: write {sections}")
    return Config(
        gateway=settings,
        policy=policy,
        upstreams=upstreams,
        models=models,
        keys=keys,
        key_origins={read_client_key(each, environ, text): each for each in _key_entries(tables)},
        prices=prices,
        overrides=overrides,
        web_search=search,
        inspector=inspector or InspectorSettings(),
        origin=text.origin,
        notes=notes,
    )


def _upstreams(
    value: Any, environ: Mapping[str, str], overrides: Overrides | None, text: ConfigText
) -> dict[str, UpstreamSettings]:
    found, mistakes = {}, Mistakes()
    for name, table in table_of(value, text, "upstreams").items():
        settings = mistakes.collect(functools.partial(read_upstream, name, table, environ, overrides, text))
        if settings is not None:
            found[name] = settings
    mistakes.raise_all()
    return found


def _key_entries(tables: Mapping[str, Any]) -> list[str]:
    """The client keys as a configuration writes them."""
    unnamed = [key for key in tables["gateway"].get("client_keys", ()) if key != STORED_KEYS]
    return [*unnamed, *(table["key"] for table in tables["keys"].values())]


def _policy(value: Any, text: ConfigText) -> Policy:
    return read_policy(table_of(value, text, "policy"), GATEWAY_POLICY, text, "policy")


def _web_search(document: Mapping[str, Any], text: ConfigText) -> SearchSettings | None:
    if "web_search" not in document:
        return None
    settings = read_table(document["web_search"], SearchSettings, text, "web_search")
    if not isinstance(settings.mcp.get("command", settings.mcp.get("url")), str):
        hint = 'mcp = { command = "uvx", args = ["NAME"] }, or mcp = { url = "http://127.0.0.1:8000/mcp" }'
        raise text.error("expected the MCP server that searches", "web_search", "mcp", hint=hint)
    return settings


# --- [gateway] --------------------------------------------------------------------------------------


def _gateway(
    value: Any, environ: Mapping[str, str], text: ConfigText, named: Iterable[str] = ()
) -> tuple[GatewaySettings, tuple[str, ...]]:
    settings = read_table(value, GatewaySettings, text, "gateway")
    for name in settings.middleware:
        if not _MIDDLEWARE.fullmatch(name):
            raise text.error(
                "not the name of a middleware", "gateway", "middleware", hint='write "package.module:Name"'
            )
    notes = short_keys((*settings.client_keys, settings.metrics_key), environ)
    at = ("gateway", "client_keys")
    unnamed = [key if key == STORED_KEYS else read_client_key(key, environ, text, *at) for key in settings.client_keys]
    settings = msgspec.structs.replace(
        settings,
        client_keys=tuple(dict.fromkeys([*unnamed, *named])),
        metrics_key=_metrics_key(settings.metrics_key, environ, text),
        store=_store(settings.store, environ, text),
    )
    if STORED_KEYS in settings.client_keys and settings.store in (MEMORY, OFF):
        hint = "set store to a file or a server: `toolglot keys` writes its keys there"
        raise text.error(f'client_keys = ["{STORED_KEYS}"] needs a store that lasts', *at, hint=hint)
    _check_host(settings, text)
    _check_origins(settings, text)
    return settings, notes


def _metrics_key(value: str, environ: Mapping[str, str], text: ConfigText) -> str:
    return read_client_key(value, environ, text, "gateway", "metrics_key") if value else ""


def _check_host(settings: GatewaySettings, text: ConfigText) -> None:
    keys = ("gateway", "host") if text.text else ()
    wrong = wrong_host(settings.host)
    if wrong is None and not is_loopback(settings.host) and not settings.client_keys:
        wrong = ValueMistake(
            "other machines can reach this address, so clients need a key",
            f'set client_keys = ["{ENV}{CLIENT_KEY_VARIABLE}"] in [gateway] and that variable, or ["{STORED_KEYS}"] '
            "for those of `toolglot keys`, or listen on 127.0.0.1",
        )
    if wrong is not None:
        raise text.error(wrong.message, *keys, hint=wrong.hint)


def _check_origins(settings: GatewaySettings, text: ConfigText) -> None:
    for origin in settings.allowed_origins:
        wrong = wrong_origin(origin)
        if wrong is not None:
            raise text.error(f"{quote(origin)} {wrong.message}", "gateway", "allowed_origins", hint=wrong.hint)


def _store_of(name: str, environ: Mapping[str, str], text: ConfigText) -> str:
    """The address in a variable. It may have a password, so it is not in the file."""
    address = variable(environ, name)
    if not is_address(address):
        hint = "set it to postgres://USER:PASSWORD@HOST/DATABASE or redis://:PASSWORD@HOST/0"
        raise text.error(f"{shown_variable(name)} is not set to the address of a store", "gateway", "store", hint=hint)
    return address


def _store(value: str, environ: Mapping[str, str], text: ConfigText) -> str:
    """The full path of the store."""
    if value in (MEMORY, OFF) or is_address(value):
        return value
    if value.startswith(ENV):
        return _store_of(value.removeprefix(ENV), environ, text)
    if "\0" in value:
        raise text.error("not the name of a file", "gateway", "store")
    state = Path(environ.get("XDG_STATE_HOME", ""))
    if not value and state.is_absolute():  # a relative one is ignored
        return str(state / "toolglot" / "gateway.db")
    if value and not value.startswith("~/"):
        return str(Path(text.origin).absolute().parent / value)
    home = Path(environ.get("HOME", ""))
    if not home.is_absolute():
        hint = f'set HOME, or store in [gateway] to a file, "{MEMORY}" or "{OFF}"'
        raise text.error("the home directory for the store is unknown", "gateway", "store", hint=hint)
    return str(home / (value[2:] or ".local/state/toolglot/gateway.db"))


# --- [profiles] -------------------------------------------------------------------------------------


def _overrides(document: Mapping[str, Any], text: ConfigText) -> Overrides | None:
    """The user's profiles; each is looked up once, so that what they extend is there."""
    if "profiles" not in document:
        return None
    try:
        overrides = Overrides(text.text, origin=text.origin)
        for name in overrides.names:
            profiles.get(name, overrides=overrides)
    except ProfileError as error:
        keys = keys_of(error.path.removeprefix(text.origin)) or ("profiles",)
        raise text.error(error.message, *keys, hint=error.hint) from None
    return overrides
