"""Calling a provider: its address, key and transport, routing by model name, retries, failover and circuit breakers.

    upstream = Upstream(name="anthropic", target="anthropic", url=url_of(PROVIDERS["anthropic"]), …)
    response = await upstream.call(toolglot.convert(body, source="openai", target="anthropic"))

Used by the gateway, sessions, discovery and the command line; imports the core and nothing above it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from toolglot.errors import InputError, how_to_install

if TYPE_CHECKING:
    from toolglot.protocols.base import Auth
    from toolglot.upstream.addresses import auth_headers, count_path, join_url, models_path, path_for
    from toolglot.upstream.aws_signing import AwsCredentials
    from toolglot.upstream.http.asgi_transport import AsgiTransport
    from toolglot.upstream.http.http_transport import HttpTransport
    from toolglot.upstream.http.transport import HttpRequest, HttpResponse, TimeLimits, Transport
    from toolglot.upstream.providers import PROVIDERS, Provider, aws_credentials, check_url, key_of, url_of
    from toolglot.upstream.upstream import Upstream

__all__ = [
    "PROVIDERS",
    "AsgiTransport",
    "Auth",
    "AwsCredentials",
    "HttpRequest",
    "HttpResponse",
    "HttpTransport",
    "Provider",
    "TimeLimits",
    "Transport",
    "Upstream",
    "auth_headers",
    "aws_credentials",
    "check_url",
    "count_path",
    "join_url",
    "key_of",
    "models_path",
    "path_for",
    "url_of",
]

_MODULES: Final = {
    "PROVIDERS": "upstream.providers",
    "AsgiTransport": "upstream.http.asgi_transport",
    "Auth": "protocols.base",
    "AwsCredentials": "upstream.aws_signing",
    "HttpRequest": "upstream.http.transport",
    "HttpResponse": "upstream.http.transport",
    "HttpTransport": "upstream.http.http_transport",
    "Provider": "upstream.providers",
    "TimeLimits": "upstream.http.transport",
    "Transport": "upstream.http.transport",
    "Upstream": "upstream.upstream",
    "auth_headers": "upstream.addresses",
    "aws_credentials": "upstream.providers",
    "check_url": "upstream.providers",
    "count_path": "upstream.addresses",
    "join_url": "upstream.addresses",
    "key_of": "upstream.providers",
    "models_path": "upstream.addresses",
    "path_for": "upstream.addresses",
    "url_of": "upstream.providers",
}
"""The module of each name. They are imported on first use: a command that calls no provider needs no event loop."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        try:
            found = getattr(import_module(f"toolglot.{module}"), name)
        except ImportError:
            if name != "HttpTransport":  # the only one that needs an extra
                raise
            hint = how_to_install("gateway")
            message = "talking to a provider needs aiohttp, which is not installed"
            raise InputError(message, path="", hint=hint) from None
        globals()[name] = found
        return found
