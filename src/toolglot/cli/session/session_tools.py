"""Loads the tools of `--tools` and `--mcp`.

    load_tools("weather.py")                  # functions marked with @tool, else all public functions
    load_tools("weather.py:forecast,alerts")
    mcp_servers(["uvx mcp-server-git", "https://example.com/mcp", "servers.json"])

Laws: whatever happens when a file is loaded, the error is one line with file, line and reason. A tool without a
function is an error. Tools of MCP servers need approval.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import shlex
import sys
import traceback
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from toolglot.errors import InputError, quote
from toolglot.runtime.tools.toolbox import Tool, ToolBox, tool

if TYPE_CHECKING:
    from toolglot.runtime.mcp.servers import McpServer, McpServers

_HINT: Final = "a Python file such as tools.py, or tools.py:NAME"


def load_tools(option: str) -> list[Tool]:
    """The tools of one `--tools` option."""
    location, names = _split_names(option)
    module = _load_module(location)
    found = (
        [each for name in names for each in _named_tools(module, name, location)]
        if names
        else _all_tools(module, location)
    )
    for each in found:
        if each.run is None:
            hint = "add a function: tool(function)"
            raise InputError(
                f"the tool {quote(each.name)} is a definition, and nothing runs it", path=location, hint=hint
            )
    return found


def _split_names(option: str) -> tuple[str, list[str]]:
    """Split `FILE.py:NAME,NAME` into the file, or module, and the names."""
    if Path(option).is_file():
        return option, []
    location, mark, listed = option.rpartition(":")
    names = [name.strip() for name in listed.split(",")]
    if not mark or not location or not all(name.isidentifier() for name in names):
        return option, []
    return location, names


# --- loading ----------------------------------------------------------------------------------------


def _load_module(location: str) -> ModuleType:
    if (
        all(part.isidentifier() for part in location.split("."))
        and not Path(location).exists()
        and location[-3:] != ".py"
    ):
        return _run(location, lambda: importlib.import_module(location))
    path = Path(location)
    if not path.is_file():
        why = "is a directory" if path.is_dir() else "no such file"
        raise InputError(why, path=location, hint=_HINT)
    name = f"toolglot_tools_{path.stem}_{zlib.crc32(os.fsencode(path.resolve())):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError("not a Python file", path=location, hint=_HINT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # needed to resolve type hints
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # it can import files next to it, like a script
    loader = spec.loader

    def load() -> ModuleType:
        loader.exec_module(module)
        return module

    return _run(location, load)


def _run(location: str, load: Any) -> ModuleType:
    try:
        loaded: ModuleType = load()
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        if error.name and (location == error.name or location.startswith(f"{error.name}.")):
            raise InputError("no such file or module", path=location, hint=_HINT) from None
        raise _load_error(location, error) from None
    except SyntaxError as error:
        own = error.filename is None or Path(error.filename).name == Path(location).name
        at = f"{location if own else error.filename}:{error.lineno or 1}"
        raise InputError(f"invalid Python: {error.msg}", path=at, hint="python -m py_compile FILE shows more") from None
    except InputError as error:
        raise InputError(error.message, path=f"{location}: {error.path}", hint=error.hint) from None
    except BaseException as error:  # noqa: BLE001 - the file may raise anything, and even exit
        raise _load_error(location, error) from None
    return loaded


def _load_error(location: str, error: BaseException) -> InputError:
    """The error of a file that could not be loaded, with its line."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == Path(location).name
    ]
    at = f"{location}:{frames[-1].lineno}" if frames else location
    message = " ".join(str(error).split())[:300]
    what = f"{type(error).__name__}: {message}" if message else type(error).__name__
    return InputError(f"cannot load file: {what}", path=at, hint="check that it runs by itself: python FILE")


# --- choosing ---------------------------------------------------------------------------------------


def _all_tools(module: ModuleType, location: str) -> list[Tool]:
    """The functions that are marked as tools, else the public functions of the module."""
    values = list({id(value): value for name, value in vars(module).items() if not name.startswith("_")}.values())
    marked = [value for value in values if isinstance(value, Tool)]
    if marked:
        return marked
    own = [value for value in values if inspect.isfunction(value) and value.__module__ == module.__name__]
    own = [function for function in own if not function.__name__.startswith("_")]
    if not own:
        hint = "define a public function, or mark one with @toolglot.tool"
        raise InputError("defines no tools", path=location, hint=hint)
    return [_tool(function, location) for function in own]


def _named_tools(module: ModuleType, name: str, location: str) -> list[Tool]:
    value = getattr(module, name, None)
    if value is None:
        known = ", ".join(each.name for each in _public(module)[:10])
        raise InputError(f"defines no {name}", path=location, hint=f"it defines {known}" if known else _HINT)
    if isinstance(value, Tool):
        return [value]
    if isinstance(value, list | tuple | ToolBox):
        return [each if isinstance(each, Tool) else _tool(each, location) for each in value]
    return [_tool(value, location)]


def _public(module: ModuleType) -> list[Tool]:
    try:
        return _all_tools(module, "")
    except InputError:
        return []


def _tool(value: Any, location: str) -> Tool:
    try:
        (made,) = ToolBox([value if not inspect.isfunction(value) else tool(value)])
    except InputError as error:
        raise InputError(error.message, path=f"{location}: {error.path}", hint=error.hint) from None
    return made


# --- MCP --------------------------------------------------------------------------------------------


def mcp_servers(options: Sequence[str]) -> McpServers:
    """The servers of all `--mcp` options, not started yet."""
    from toolglot.runtime.mcp.servers import McpServers  # noqa: PLC0415 - only if there is one

    servers: list[McpServer] = []
    for text in options:
        servers += _servers_of(text, {server.name for server in servers})
    return McpServers(servers)


def _servers_of(text: str, taken: set[str]) -> Iterable[McpServer]:
    from toolglot.runtime.mcp.config import servers_from  # noqa: PLC0415
    from toolglot.runtime.mcp.servers import McpServer  # noqa: PLC0415

    if text.startswith(("http://", "https://")):
        server = McpServer.http(text, approval=True)
        return (
            [server]
            if server.name not in taken
            else [McpServer.http(text, name=_unique_name(server.name, taken), approval=True)]
        )
    if text.endswith(".json"):
        try:
            return [*servers_from(text, approval=True)]
        except InputError as error:
            at = f"{text}: {error.path}" if error.path.startswith("$.") else text
            raise InputError(error.message, path=at, hint=error.hint) from None
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise InputError(f"invalid command {quote(text)}: {error}", path="--mcp", hint="close the quotes") from None
    if not words:
        raise InputError("expected a server", path="--mcp", hint="use a command, a URL, or a JSON file")
    return [McpServer.stdio(words[0], words[1:], name=_unique_name(_name_of(words), taken), approval=True)]


def _name_of(words: Sequence[str]) -> str:
    """The name of a server that is started with these words: its program, not the interpreter."""
    program = Path(words[0]).stem
    first = next((word for word in words[1:] if not word.startswith("-")), "")
    is_interpreter = program.rstrip("0123456789.") in ("python", "node", "uv", "uvx", "npx", "bunx", "deno", "pipx")
    return (Path(first).stem if first and is_interpreter else program) or "server"


def _unique_name(name: str, taken: set[str]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free
