"""The gateway without a server: HTTP clients for provider SDKs whose requests stay in this process.

    openai.OpenAI(api_key="any", http_client=toolglot.client("toolglot.toml"))
    anthropic.AsyncAnthropic(api_key="any", http_client=toolglot.async_client())

The SDKs use httpx2, older ones httpx; a client of either is made here, with a transport that calls the gateway in a
thread of its own. Neither library, nor the gateway, is imported before a client is made.

Law: the path of a request decides, whatever its host, and the gateway serves it. Nothing leaves the process except
through the upstreams of the configuration.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, overload

from toolglot.errors import InputError, how_to_install, quote
from toolglot.middleware import ToolMiddleware

if TYPE_CHECKING:
    import httpx
    import httpx2

    from toolglot.clients.background import BackgroundGateway
    from toolglot.gateway.config.settings import Config
    from toolglot.gateway.routing.upstreams import Upstreams

__all__ = ["async_client", "client"]

Log = Literal["text", "json", "off"]

LIBRARIES: Final = ("httpx2", "httpx")
"""In order of preference: what today's SDKs use, and what they used before."""


@overload
def client(
    config: Config | str | os.PathLike[str] | None = None,
    *,
    middleware: Sequence[ToolMiddleware] = (),
    upstreams: Upstreams | None = None,
    log: Log = "off",
    library: Literal["httpx2"] | None = None,
) -> httpx2.Client: ...


@overload
def client(
    config: Config | str | os.PathLike[str] | None = None,
    *,
    middleware: Sequence[ToolMiddleware] = (),
    upstreams: Upstreams | None = None,
    log: Log = "off",
    library: Literal["httpx"],
) -> httpx.Client: ...


def client(
    config: Config | str | os.PathLike[str] | None = None,
    *,
    middleware: Sequence[ToolMiddleware] = (),
    upstreams: Upstreams | None = None,
    log: Log = "off",
    library: Literal["httpx", "httpx2"] | None = None,
) -> httpx.Client | httpx2.Client:
    """An HTTP client for an SDK: pass it as `http_client`, and close it with the SDK's client or a `with` block.

    `config` is a configuration or its file; without one, it is found as `toolglot serve` finds it. `log` is the
    format of the request log on stderr. `library` is the one that the SDK uses, if that is not the newest installed.
    A mistake in the configuration is raised here.

    middleware: steps that requests and replies pass.
    upstreams: the upstreams to use instead of those of the configuration, as tests do.
    """
    from toolglot.clients.transports import ThreadTransport  # noqa: PLC0415 - asyncio comes with it

    module = _library(library)
    transport = ThreadTransport(_gateway(config, middleware, upstreams, log), module)
    made: httpx2.Client = module.Client(transport=transport, trust_env=False)
    return made


@overload
def async_client(
    config: Config | str | os.PathLike[str] | None = None,
    *,
    middleware: Sequence[ToolMiddleware] = (),
    upstreams: Upstreams | None = None,
    log: Log = "off",
    library: Literal["httpx2"] | None = None,
) -> httpx2.AsyncClient: ...


@overload
def async_client(
    config: Config | str | os.PathLike[str] | None = None,
    *,
    middleware: Sequence[ToolMiddleware] = (),
    upstreams: Upstreams | None = None,
    log: Log = "off",
    library: Literal["httpx"],
) -> httpx.AsyncClient: ...


def async_client(
    config: Config | str | os.PathLike[str] | None = None,
    *,
    middleware: Sequence[ToolMiddleware] = (),
    upstreams: Upstreams | None = None,
    log: Log = "off",
    library: Literal["httpx", "httpx2"] | None = None,
) -> httpx.AsyncClient | httpx2.AsyncClient:
    """As `client`, for SDKs in an asyncio program. It belongs to no event loop: any number of them may use it.

    config: a configuration or its file; without one, it is found as `toolglot serve` finds it.
    middleware: steps that requests and replies pass.
    upstreams: the upstreams to use instead of those of the configuration, as tests do.
    log: the format of the request log on stderr.
    library: `httpx2` or `httpx`; without it, the newest of those installed.
    """
    from toolglot.clients.transports import LoopTransport  # noqa: PLC0415 - asyncio comes with it

    module = _library(library)
    transport = LoopTransport(_gateway(config, middleware, upstreams, log), module)
    made: httpx2.AsyncClient = module.AsyncClient(transport=transport, trust_env=False)
    return made


def _gateway(
    config: Config | str | os.PathLike[str] | None,
    middleware: Sequence[ToolMiddleware],
    upstreams: Upstreams | None,
    log: Log,
) -> BackgroundGateway:
    from toolglot.clients.background import BackgroundGateway  # noqa: PLC0415 - an extra: it needs aiohttp
    from toolglot.gateway.app import Gateway  # noqa: PLC0415
    from toolglot.gateway.config.settings import Config, read_config  # noqa: PLC0415
    from toolglot.gateway.observability.request_log import RequestLog  # noqa: PLC0415

    read = config if isinstance(config, Config) else read_config(config, os.environ)
    request_log = RequestLog(max_remembered=read.gateway.reports, form=log)
    return BackgroundGateway(Gateway(read, upstreams=upstreams, middleware=middleware, request_log=request_log))


def _library(name: str | None) -> Any:
    """The module of an HTTP library: the one that is named, or the first that is installed."""
    if name is not None and name not in LIBRARIES:
        raise InputError(f"expected httpx2 or httpx, got {quote(name)}", path="library")
    wanted = LIBRARIES if name is None else (name,)
    for candidate in wanted:
        try:
            return importlib.import_module(candidate)
        except ImportError:
            continue
    hint = how_to_install("clients")
    raise InputError(f"this needs {' or '.join(wanted)}, which is not installed", path="library", hint=hint)
