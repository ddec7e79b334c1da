"""MCP servers from the configuration format that MCP clients share.

    {"mcpServers": {"git":  {"command": "uvx", "args": ["mcp-server-git"], "env": {"TOKEN": "${GIT_TOKEN}"}},
                    "docs": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${DOCS_KEY}"}}}}

`${NAME}` and `${env:NAME}` are replaced from the environment, `${NAME:-else}` has a default. VS Code's `servers` works
like `mcpServers`; an entry with `"disabled": true` is left out; fields of other clients are ignored.

Law: a missing variable is an error that names it, and no error contains the value of one.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Unpack

from toolglot import jsontext
from toolglot.errors import InputError, quote
from toolglot.limits import Limits
from toolglot.runtime.mcp.servers import McpServer, McpServers, ServerOptions

FILE_LIMITS: Final = Limits(max_bytes=1_000_000, max_depth=20, max_nodes=100_000)

_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")
_TABLES: Final = ("mcpServers", "servers")
_OVER_HTTP: Final = ("http", "streamable-http", "streamableHttp", "streamable_http")


def servers_from(
    config: str | Path | Mapping[str, Any],
    *,
    environ: Mapping[str, str] | None = None,
    all_needed: bool = True,
    **options: Unpack[ServerOptions],
) -> McpServers:
    """The servers of a configuration: the path of a JSON file, or its content. `options` apply to every server."""
    table = _table_of(_read(config) if isinstance(config, str | Path) else config)
    known = os.environ if environ is None else environ
    found: list[McpServer] = []
    for name, entry in table.items():
        path = f"$.mcpServers.{name}"
        if not isinstance(entry, Mapping):
            raise InputError(f"expected an object, got {quote(entry)}", path=path)
        if entry.get("disabled") is not True:
            found.append(_server(name, entry, path, known, options))
    return McpServers(found, names=options.get("names", "auto"), all_needed=all_needed)


def _read(path: str | Path) -> Any:
    try:
        with Path(path).open("rb") as file:
            data = file.read(FILE_LIMITS.max_bytes + 1)
    except OSError as error:
        raise InputError(f"cannot read file {quote(str(path))}: {error.strerror}", path="config") from None
    return jsontext.parse(data, limits=FILE_LIMITS).value


def _table_of(config: Any) -> Mapping[str, Any]:
    found = next((config[key] for key in _TABLES if key in config), None) if isinstance(config, Mapping) else None
    if not isinstance(found, Mapping):
        raise InputError("there are no MCP servers", path="$", hint='{"mcpServers": {"name": {"command": …}}}')
    return found


def _server(
    name: str, entry: Mapping[str, Any], path: str, environ: Mapping[str, str], options: ServerOptions
) -> McpServer:
    expand = _expander(environ)
    kind = entry.get("type") or entry.get("transport")
    if kind is not None and kind not in ("stdio", *_OVER_HTTP):
        raise InputError(f"the transport {quote(kind)} is not supported", path=f"{path}.type", hint="stdio, or http")
    if "url" in entry and kind != "stdio":
        url = expand(entry["url"], f"{path}.url")
        return McpServer.http(url, _strings(entry, "headers", path, expand), name=name, **options)
    if "command" not in entry:
        raise InputError("expected a command or a url", path=path)
    args = entry.get("args") or []
    if not isinstance(args, list):
        raise InputError(f"expected a list, got {quote(args)}", path=f"{path}.args")
    return McpServer.stdio(
        expand(entry["command"], f"{path}.command"),
        [expand(arg, f"{path}.args[{index}]") for index, arg in enumerate(args)],
        _strings(entry, "env", path, expand),
        expand(entry["cwd"], f"{path}.cwd") if entry.get("cwd") is not None else None,
        name=name,
        **options,
    )


Expand = Callable[[Any, str], str]


def _strings(entry: Mapping[str, Any], key: str, path: str, expand: Expand) -> dict[str, str]:
    found = entry.get(key) or {}
    if not isinstance(found, Mapping):
        raise InputError(f"expected an object, got {quote(found)}", path=f"{path}.{key}")
    return {name: expand(value, f"{path}.{key}.{name}") for name, value in found.items()}


def _expander(environ: Mapping[str, str]) -> Expand:
    """Replaces the variables of a string by their values."""

    def expand(value: Any, path: str) -> str:
        if not isinstance(value, str):
            raise InputError(f"expected a string, got {quote(value)}", path=path)

        def value_of(match: re.Match[str]) -> str:
            name, otherwise = match.groups()
            if name not in environ and otherwise is None:
                hint = f"set it, or write ${{{name}:-something}}"
                raise InputError(f"the environment variable {name} is not set", path=path, hint=hint)
            return environ.get(name) or otherwise or ""

        return _VARIABLE.sub(value_of, value)

    return expand
