"""The server: any client on any provider. Configuration, routing, endpoints and state.

from toolglot.gateway import Gateway, read_config, serve
serve("toolglot.toml", app_middleware=[MyMiddleware()])
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from toolglot.gateway.app import Gateway
    from toolglot.gateway.config.settings import Config, GatewaySettings, read_config
    from toolglot.gateway.http.serving import running, serve
    from toolglot.gateway.routing.upstreams import Upstreams

__all__ = ["Config", "Gateway", "GatewaySettings", "Upstreams", "read_config", "running", "serve"]

_MODULES: Final = {
    "Config": "config.settings",
    "Gateway": "app",
    "GatewaySettings": "config.settings",
    "Upstreams": "routing.upstreams",
    "read_config": "config.settings",
    "running": "http.serving",
    "serve": "http.serving",
}
"""Imported on first use: reading a configuration needs no server."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(importlib.import_module(f"toolglot.gateway.{_MODULES[name]}"), name)
        return found
