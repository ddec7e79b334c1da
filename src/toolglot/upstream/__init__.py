"""Calling a provider: its address, key and transport, routing by model name, retries, failover and circuit breakers.

    upstream = Upstream(name="anthropic", target="anthropic", url=url_of(PROVIDERS["anthropic"]), …)
    response = await upstream.call(toolglot.convert(body, source="openai", target="anthropic"))

Used by the gateway, sessions, discovery and the command line; imports the core and nothing above it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toolglot.errors import InputError, how_to_install
from toolglot.protocols.base import Auth
from toolglot.upstream.addresses import auth_headers, count_path, join_url, models_path, path_for
from toolglot.upstream.aws_signing import AwsCredentials
from toolglot.upstream.http.asgi_transport import AsgiTransport
from toolglot.upstream.http.transport import HttpRequest, HttpResponse, TimeLimits, Transport
from toolglot.upstream.providers import PROVIDERS, Provider, aws_credentials, check_url, key_of, url_of
from toolglot.upstream.upstream import Upstream

if TYPE_CHECKING:
    from toolglot.upstream.http.http_transport import HttpTransport

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


def __getattr__(name: str) -> Any:
    """The HTTP client is imported when it is first used: it is an extra."""
    if name != "HttpTransport":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from toolglot.upstream.http.http_transport import HttpTransport  # noqa: PLC0415
    except ImportError:
        hint = how_to_install("gateway")
        raise InputError("talking to a provider needs aiohttp, which is not installed", path="", hint=hint) from None
    globals()[name] = HttpTransport
    return HttpTransport
