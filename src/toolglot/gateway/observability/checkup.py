"""Checks of a gateway before it serves, or while it does: its configuration, store, port and upstreams.

    results = [*check_settings(config), *await check_store(config), *await check_port(config), …]

Laws: a check changes nothing: no store is made or migrated, no model is called. Everything has a time limit. A key is
never shown, only the variable that it is from. Each problem comes with what to do about it.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import math
import os
import shutil
import socket
import sqlite3
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct

from toolglot import __version__, profiles
from toolglot.errors import InputError, ToolglotError, how_to_install
from toolglot.gateway.config.checks import is_loopback
from toolglot.gateway.config.key_table import STORED_KEYS
from toolglot.gateway.config.settings import MEMORY, OFF, Config
from toolglot.gateway.endpoints.model_lists import decode_models
from toolglot.gateway.routing.middleware_chain import load_steps
from toolglot.gateway.routing.search_tool import SearchTool
from toolglot.gateway.routing.upstreams import Upstreams
from toolglot.protocols.errors.failures import ProviderError
from toolglot.store import StoreError, display_location, is_address, open_store
from toolglot.store.schema import MIGRATIONS, check_database, version_of
from toolglot.upstream import Upstream
from toolglot.upstream.settings import UpstreamSettings

UPSTREAM_SECONDS: Final = 10.0
"""Seconds that an upstream has for its checks."""
LOCAL_SECONDS: Final = 3.0
MAX_READ: Final = 4 * 1024 * 1024
LITTLE_DISK: Final = 1024**3
NO_DISK: Final = 100 * 1024**2
SKEWED: Final = 30.0
"""Seconds that the clock may be wrong."""
BADLY_SKEWED: Final = 300.0
"""Seconds from which on AWS refuses signatures."""

State = Literal["ok", "warn", "fail"]


class CheckResult(Struct, frozen=True):
    """The result of one check."""

    part: str
    state: State
    message: str
    todo: str = ""
    details: tuple[str, ...] = ()
    """Lines to copy, which are not wrapped."""


# --- the configuration ------------------------------------------------------------------------------

_CONFIG: Final = "configuration"


def check_settings(config: Config) -> list[CheckResult]:
    """Check a configuration."""
    settings = config.gateway
    where = config.origin or "the environment, because there is no file (toolglot init writes one)"
    found = [CheckResult(_CONFIG, "ok", f"read: {where}")]
    reach = "this machine only" if is_loopback(settings.host) else "other machines can reach it"
    found.append(CheckResult(_CONFIG, "ok", f"listens on {settings.host}:{settings.port}: {reach}"))
    count = sum(key != STORED_KEYS for key in settings.client_keys)
    own = f"{count} client key{'s' * (count != 1)} in the configuration" if count else ""
    stored = "those of `toolglot keys`" if STORED_KEYS in settings.client_keys else ""
    keys = (
        " and ".join(filter(None, (own, stored)))
        or "no client keys: any key works, unless `toolglot keys` has made some"
    )
    found.append(CheckResult(_CONFIG, "ok", keys))
    found += [CheckResult(_CONFIG, "warn", note) for note in config.notes]
    found.append(_check_models(config))
    if settings.middleware:
        found.append(_check_middleware(config))
    return found


def _check_models(config: Config) -> CheckResult:
    names = ", ".join(f"{name} ({each.target})" for name, each in config.upstreams.items())
    if config.simulates_known:
        message = "nothing is configured: simulated models answer to all known names, and no real model does"
        todo = "set a provider's key, such as OPENAI_API_KEY, or write a toolglot.toml (toolglot init)"
        return CheckResult(_CONFIG, "warn", message, todo)
    simulated = (
        "only names that begin with simulated/ are simulated" if config.allows_simulated else "no model is simulated"
    )
    if names:
        return CheckResult(_CONFIG, "ok", f"upstreams: {names}; other models are refused; {simulated}")
    message = f"there is no upstream, so no real model answers; {simulated}"
    return CheckResult(_CONFIG, "warn" if config.gateway.simulate else "fail", message, "write [upstreams.NAME]")


def _check_middleware(config: Config) -> CheckResult:
    try:
        steps = load_steps(config.gateway.middleware)
    except InputError as error:
        return CheckResult(_CONFIG, "fail", f"middleware: {error.message}", error.hint)
    return CheckResult(_CONFIG, "ok", f"middleware: {len(steps)} step{'s' * (len(steps) != 1)} can be loaded")


def check_config_error(error: InputError) -> list[CheckResult]:
    """All errors of a configuration that cannot be read."""
    return [
        CheckResult(_CONFIG, "fail", f"{each.path}: {each.message}" if each.path else each.message, each.hint)
        for each in error.errors
    ]


def check_keys(config: Config) -> list[CheckResult]:
    """Where the key of each upstream is from."""
    return [CheckResult("keys", *_key_state(upstream)) for upstream in config.upstreams.values()]


def _key_state(upstream: UpstreamSettings) -> tuple[State, str]:
    if upstream.key:
        return "ok", f"{upstream.name}: key from ${upstream.key_env}"
    if upstream.aws is not None:
        return "ok", f"{upstream.name}: signed with the AWS credentials of the environment"
    return "ok", f"{upstream.name}: no key, and none is needed"


# --- the store --------------------------------------------------------------------------------------

_STORE: Final = "store"


async def check_store(config: Config) -> list[CheckResult]:
    """Whether the store can be opened and written, and its disk has space."""
    location = config.gateway.store
    if location in (MEMORY, OFF):
        message = f"{location}: stored conversations are lost when the gateway stops, and workers share nothing"
        return [CheckResult(_STORE, "warn", message, "set store in [gateway] to a file")]
    if is_address(location):
        return [await _check_writing(location, display_location(location))]
    path = Path(location).expanduser()
    if not path.exists():
        return [_check_folder(path), _check_disk(path)]
    found = await asyncio.to_thread(_check_version, path)
    if found.state == "ok":
        found = await _check_writing(str(path), found.message)
    return [found, _check_disk(path)]


async def check_search(config: Config) -> list[CheckResult]:
    """Whether the MCP server of [web_search] answers, and has the tools."""
    if config.web_search is None:
        return []
    tool = SearchTool(config.web_search, os.environ)
    try:
        async with asyncio.timeout(config.web_search.timeout):
            found = [(await tool.find("search")).name]
            with contextlib.suppress(InputError):
                found.append((await tool.find("fetch")).name)
    except InputError as error:
        return [CheckResult("web search", "fail", error.message, error.hint)]
    except (ToolglotError, TimeoutError, OSError) as error:
        message = str(error) or f"the MCP server did not answer within {config.web_search.timeout:g} s"
        return [CheckResult("web search", "fail", message, "check mcp in [web_search]")]
    finally:
        await tool.close()
    return [CheckResult("web search", "ok", f"the MCP server answers, with {' and '.join(found)}")]


def _check_folder(path: Path) -> CheckResult:
    """Whether a store can be created."""
    folder = _nearest_folder(path)
    if os.access(folder, os.W_OK | os.X_OK):
        return CheckResult(_STORE, "ok", f"{path} does not exist yet; the first start creates it")
    return CheckResult(
        _STORE, "fail", f"{path} cannot be created", f"make {folder} writable, or set store in [gateway]"
    )


def _nearest_folder(path: Path) -> Path:
    return next((each for each in path.absolute().parents if each.is_dir()), Path("/"))


def _check_version(path: Path) -> CheckResult:
    """Read the version without opening the store, which would migrate it."""
    newest = len(MIGRATIONS)
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1)) as connection:
            check_database(connection, str(path))
            version_found = version_of(connection)
    except InputError as error:
        return CheckResult(_STORE, "fail", f"{path}: {error.message}", error.hint)
    except sqlite3.Error as error:
        hint = "stop the gateway and move the file away, or set store in [gateway] to another file"
        return CheckResult(_STORE, "fail", f"{path}: cannot read file: {error}", hint)
    if version_found < newest:
        message = f"{path} has version {version_found}; the next start migrates it to {newest}"
        return CheckResult(_STORE, "warn", message, "make a copy first: an older toolglot cannot read it afterwards")
    return CheckResult(_STORE, "ok", f"{path}, version {version_found}, {_size(path.stat().st_size)}")


async def _check_writing(location: str, description: str) -> CheckResult:
    """Write a row, read it and remove it."""
    where = display_location(location)
    begun = time.monotonic()
    try:
        async with asyncio.timeout(UPSTREAM_SECONDS):
            store = await asyncio.to_thread(open_store, location)
            try:
                await store.keep("doctor", "doctor", {"row": b"row"}, until=math.inf)
                found = await store.find("doctor", "doctor", ["row"])
                await store.remove("doctor", "doctor", ["row"])
            finally:
                await store.close()
    except (InputError, StoreError, TimeoutError) as error:
        hint = "check its owner, its mode and its disk; another process may lock it"
        if is_address(location):
            hint = "check that the server runs, and the address, user and password"
        return CheckResult(_STORE, "fail", f"{where} cannot be written: {str(error) or 'it takes too long'}", hint)
    if found != {"row": b"row"}:
        return CheckResult(
            _STORE, "fail", f"{where} does not return what was written", "set store in [gateway] to another"
        )
    return CheckResult(_STORE, "ok", f"{description}, written and read in {(time.monotonic() - begun) * 1000:.0f} ms")


def _check_disk(path: Path) -> CheckResult:
    free = shutil.disk_usage(_nearest_folder(path)).free
    message, todo = (
        f"{_size(free)} free on its disk",
        "free some space: on a full disk, conversations cannot be stored",
    )
    if free < LITTLE_DISK:
        return CheckResult(_STORE, "fail" if free < NO_DISK else "warn", message, todo)
    return CheckResult(_STORE, "ok", message)


def _size(count: float) -> str:
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


# --- the port ---------------------------------------------------------------------------------------

_PORT: Final = "port"


def root_of(config: Config) -> str:
    """The address at which this machine reaches the gateway."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(config.gateway.host, config.gateway.host)  # noqa: S104 - from here
    return f"http://[{host}]:{config.gateway.port}" if ":" in host else f"http://{host}:{config.gateway.port}"


async def check_port(config: Config) -> CheckResult:
    """Whether the port is free, or a gateway has it already."""
    settings = config.gateway
    where = f"{settings.host}:{settings.port}"
    if settings.port == 0:
        return CheckResult(_PORT, "ok", "any free port")
    response = await _read_root(config)
    if response is not None:
        try:
            root = msgspec.json.decode(response)
        except ValueError:
            root = {}
        if isinstance(root, dict) and root.get("name") == "toolglot":
            return CheckResult(_PORT, "ok", f"{where}: toolglot {str(root.get('version'))[:20]} is serving there")
        return CheckResult(
            _PORT, "fail", f"{where}: another program uses it", "end that program, or set port in [gateway]"
        )
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        socket.create_server((settings.host, settings.port), family=family).close()
    except OSError as error:
        todo = (
            "set port in [gateway] to 1024 or more" if error.errno == errno.EACCES else "set host and port in [gateway]"
        )
        return CheckResult(_PORT, "fail", f"{where}: {error.strerror or error}", todo)
    return CheckResult(_PORT, "ok", f"{where} is free")


async def _read_root(config: Config) -> bytes | None:
    """The response to `GET /` at the port; None: nothing listens there."""
    parts = urlsplit(root_of(config))
    try:
        async with asyncio.timeout(LOCAL_SECONDS):
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    except (OSError, TimeoutError):
        return None
    try:
        async with asyncio.timeout(LOCAL_SECONDS):
            writer.write(f"GET / HTTP/1.1\r\nhost: {parts.netloc}\r\nconnection: close\r\n\r\n".encode())
            data = await reader.read(65536)
            while len(data) < 65536 and (piece := await reader.read(65536)):
                data += piece
    except (OSError, TimeoutError):
        return b""
    else:
        return data.partition(b"\r\n\r\n")[2]
    finally:
        writer.close()


# --- the upstreams ----------------------------------------------------------------------------------

_UPSTREAMS: Final = "upstreams"


async def check_upstreams(
    config: Config, report: Callable[[str], None], seconds: float = UPSTREAM_SECONDS
) -> list[CheckResult]:
    """List the models of every upstream, all at once. `report` gets the name of each that is done."""
    upstreams = Upstreams(config)
    skews: list[float] = []

    async def one(upstream: Upstream) -> CheckResult:
        found = await _check_upstream(upstream, config, skews, seconds)
        report(upstream.name)
        return found

    try:
        found = await asyncio.gather(*map(one, upstreams.configured_upstreams()))
    finally:
        await upstreams.close()
    return [*found, *([_check_clock(min(skews, key=abs))] if skews else [])]


async def _check_upstream(upstream: Upstream, config: Config, skews: list[float], seconds: float) -> CheckResult:
    profile = profiles.get(upstream.target, overrides=config.overrides)
    variable = config.upstreams[upstream.name].key_env
    begun = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            response = await upstream.models(profile)
            if response is None:
                return await _check_connection(upstream)
            try:
                data = await response.whole(MAX_READ)
            finally:
                await response.close()
    except (ProviderError, InputError, TimeoutError) as error:
        return await _check_failure(upstream, error)
    took = f"{(time.monotonic() - begun) * 1000:.0f} ms"
    if (skew := _skew(response.headers)) is not None:
        skews.append(skew)
    return _check_status(upstream.name, response.status, len(decode_models(data, profile.protocol)), took, variable)


def _check_status(name: str, status: int, count: int, took: str, variable: str) -> CheckResult:
    """The result for a status."""
    if status == 200:
        return CheckResult(_UPSTREAMS, "ok", f"{name}: responds in {took}, lists {count} models")
    if status in (401, 403):
        todo = f"check that ${variable} is complete and of this account" if variable else "set key_env to its key"
        return CheckResult(_UPSTREAMS, "fail", f"{name}: does not accept the key (status {status})", todo)
    if status in (404, 405):
        message = f"{name}: responds in {took}, and has no list of models at this address (status {status})"
        return CheckResult(_UPSTREAMS, "warn", message, "if requests fail too, check its url")
    if status == 429:
        return CheckResult(_UPSTREAMS, "warn", f"{name}: too many requests (status 429)", "try again later")
    return CheckResult(
        _UPSTREAMS, "warn", f"{name}: responds with status {status}", "try again, or check its status page"
    )


async def _check_connection(upstream: Upstream) -> CheckResult:
    """Whether an upstream without a list of models accepts connections."""
    host, port = _host_and_port(upstream.url)
    try:
        async with asyncio.timeout(LOCAL_SECONDS):
            _, writer = await asyncio.open_connection(host, port, ssl=upstream.url.startswith("https:") or None)
            writer.close()
    except (OSError, TimeoutError) as error:
        return await _check_failure(upstream, error)
    return CheckResult(_UPSTREAMS, "ok", f"{upstream.name}: {host} accepts connections; it has no list of models")


async def _check_failure(upstream: Upstream, error: Exception) -> CheckResult:
    """Why there was no response: the name, the connection, or what came."""
    host, port = _host_and_port(upstream.url)
    message = error.failure.message if isinstance(error, ProviderError) else str(error) or "no response in time"
    message = message.partition("; check ")[0]  # `todo` says more about the name and the host
    message = message if message.startswith(upstream.name) else f"{upstream.name}: {message}"
    try:
        async with asyncio.timeout(LOCAL_SECONDS):
            await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, TimeoutError):
        todo = "check its url, the name server, and HTTPS_PROXY if there is a proxy"
        return CheckResult(_UPSTREAMS, "fail", message, todo)
    todo = (
        "check that it is running, and its url" if is_loopback(host) else "check its url, the network and HTTPS_PROXY"
    )
    return CheckResult(_UPSTREAMS, "fail", message, todo)


def _host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _skew(headers: Mapping[str, str]) -> float | None:
    """The seconds by which this clock is ahead of the provider's."""
    try:
        return time.time() - parsedate_to_datetime(headers.get("date", "")).timestamp()
    except (ValueError, TypeError, IndexError):
        return None


def _check_clock(skew: float) -> CheckResult:
    way = "ahead" if skew > 0 else "behind"
    if abs(skew) < SKEWED:
        return CheckResult("clock", "ok", "agrees with the upstreams' clocks")
    state: State = "fail" if abs(skew) > BADLY_SKEWED else "warn"
    return CheckResult(
        "clock", state, f"{abs(skew):.0f} s {way} of the upstreams' clocks", "synchronise it with NTP (timedatectl)"
    )


# --- packages ---------------------------------------------------------------------------------------

_NEEDED: Final = ("msgspec", "jiter", "jsonschema-rs", "uvicorn", "aiohttp")
_OPTIONAL: Final = {
    "uvloop": "a faster event loop",
    "httptools": "a faster HTTP parser, with limits for slow and broken clients",
    "splintr-rs": "better estimates of tokens",
    "rich": "a progress bar",
    "opentelemetry-sdk": "traces",
}
_EXTRAS: Final = {"rich": "cli", "opentelemetry-sdk": "otel"}


def check_packages(installed: Callable[[str], str] | None = None) -> list[CheckResult]:
    """Python, toolglot, and the packages that they use."""
    found = installed or _installed
    needed = {name: found(name) for name in _NEEDED}
    there = ", ".join(f"{name} {number}" for name, number in needed.items() if number)
    results = [CheckResult("packages", "ok", f"toolglot {__version__}, Python {sys.version.split()[0]}, {there}")]
    if missing := [name for name, number in needed.items() if not number]:
        todo = how_to_install("gateway")
        results.append(CheckResult("packages", "fail", f"not installed: {', '.join(missing)}", todo))
    for name, benefit in _OPTIONAL.items():
        if number := found(name):
            results.append(CheckResult("packages", "ok", f"{name} {number}: {benefit}"))
            continue
        todo = how_to_install(_EXTRAS.get(name, "gateway"))
        if name in _EXTRAS:
            message = f"{name} is not installed, and only needed for {benefit}"
            results.append(CheckResult("packages", "ok", message, f"if you want that: {todo}"))
        else:
            results.append(CheckResult("packages", "warn", f"{name} is not installed: it provides {benefit}", todo))
    return results


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
