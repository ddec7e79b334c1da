"""The tools that a command line names: Python files, MCP servers.

    load_tools("weather.py")                  # what it marks with @tool, else all its public functions
    load_tools("weather.py:forecast,alerts")
    mcp_servers(["uvx mcp-server-git", "https://example.com/mcp", "servers.json"])

Laws: whatever a file does when it is loaded, what is told is one line with the file, the line and the reason. A tool
that nobody could run is refused. Tools of MCP servers need an approval.
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


def load_tools(given: str) -> list[Tool]:
    """The tools of one `--tools`."""
    place, names = _parts(given)
    module = _loaded(place)
    found = [each for name in names for each in _named(module, name, place)] if names else _all_of(module, place)
    for each in found:
        if each.run is None:
            hint = "give it a function: tool(function)"
            raise InputError(f"the tool {quote(each.name)} is a definition, and nothing runs it", path=place, hint=hint)
    return found


def _parts(given: str) -> tuple[str, list[str]]:
    """The file, or the module, and the names in it."""
    if Path(given).is_file():
        return given, []
    place, mark, listed = given.rpartition(":")
    names = [name.strip() for name in listed.split(",")]
    if not mark or not place or not all(name.isidentifier() for name in names):
        return given, []
    return place, names


# --- loading ----------------------------------------------------------------------------------------


def _loaded(place: str) -> ModuleType:
    if all(part.isidentifier() for part in place.split(".")) and not Path(place).exists() and place[-3:] != ".py":
        return _run(place, lambda: importlib.import_module(place))
    path = Path(place)
    if not path.is_file():
        why = "is a folder" if path.is_dir() else "there is no such file"
        raise InputError(why, path=place, hint=_HINT)
    name = f"toolglot_tools_{path.stem}_{zlib.crc32(os.fsencode(path.resolve())):x}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise InputError("is no Python file", path=place, hint=_HINT)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # type hints are looked up there
    folder = str(path.resolve().parent)
    if folder not in sys.path:
        sys.path.append(folder)  # its neighbours can be imported, as by a script
    loader = spec.loader

    def load() -> ModuleType:
        loader.exec_module(module)
        return module

    return _run(place, load)


def _run(place: str, load: Any) -> ModuleType:
    try:
        loaded: ModuleType = load()
    except KeyboardInterrupt:
        raise
    except ModuleNotFoundError as error:
        if error.name and (place == error.name or place.startswith(f"{error.name}.")):
            raise InputError("there is no such file or module", path=place, hint=_HINT) from None
        raise _failed(place, error) from None
    except SyntaxError as error:
        own = error.filename is None or Path(error.filename).name == Path(place).name
        at = f"{place if own else error.filename}:{error.lineno or 1}"
        raise InputError(f"is not Python: {error.msg}", path=at, hint="python -m py_compile FILE shows more") from None
    except InputError as error:
        raise InputError(error.message, path=f"{place}: {error.path}", hint=error.hint) from None
    except BaseException as error:  # noqa: BLE001 - it may do anything, and even exit
        raise _failed(place, error) from None
    return loaded


def _failed(place: str, error: BaseException) -> InputError:
    """What a file raised when it was loaded, with the line of that file."""
    frames = [
        frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).name == Path(place).name
    ]
    at = f"{place}:{frames[-1].lineno}" if frames else place
    said = " ".join(str(error).split())[:300]
    what = f"{type(error).__name__}: {said}" if said else type(error).__name__
    return InputError(f"cannot be loaded: {what}", path=at, hint="it has to load by itself: python FILE")


# --- choosing ---------------------------------------------------------------------------------------


def _all_of(module: ModuleType, place: str) -> list[Tool]:
    """What is marked, else the public functions that are defined there."""
    values = list({id(value): value for name, value in vars(module).items() if not name.startswith("_")}.values())
    marked = [value for value in values if isinstance(value, Tool)]
    if marked:
        return marked
    own = [value for value in values if inspect.isfunction(value) and value.__module__ == module.__name__]
    own = [function for function in own if not function.__name__.startswith("_")]
    if not own:
        hint = "define a public function, or mark one with @toolglot.tool"
        raise InputError("defines no tools", path=place, hint=hint)
    return [_tool(function, place) for function in own]


def _named(module: ModuleType, name: str, place: str) -> list[Tool]:
    value = getattr(module, name, None)
    if value is None:
        known = ", ".join(each.name for each in _public(module)[:10])
        raise InputError(f"has no {name}", path=place, hint=f"it has {known}" if known else _HINT)
    if isinstance(value, Tool):
        return [value]
    if isinstance(value, list | tuple | ToolBox):
        return [each if isinstance(each, Tool) else _tool(each, place) for each in value]
    return [_tool(value, place)]


def _public(module: ModuleType) -> list[Tool]:
    try:
        return _all_of(module, "")
    except InputError:
        return []


def _tool(value: Any, place: str) -> Tool:
    try:
        (made,) = ToolBox([value if not inspect.isfunction(value) else tool(value)])
    except InputError as error:
        raise InputError(error.message, path=f"{place}: {error.path}", hint=error.hint) from None
    return made


# --- MCP --------------------------------------------------------------------------------------------


def mcp_servers(given: Sequence[str]) -> McpServers:
    """The servers of all `--mcp`, not yet started."""
    from toolglot.runtime.mcp.servers import McpServers  # noqa: PLC0415 - only for whoever uses one

    servers: list[McpServer] = []
    for text in given:
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
            else [McpServer.http(text, name=_free(server.name, taken), approval=True)]
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
        raise InputError(f"{quote(text)} is no command: {error}", path="--mcp", hint="close its quotes") from None
    if not words:
        raise InputError("no server is named", path="--mcp", hint="a command, an address, or a JSON file")
    return [McpServer.stdio(words[0], words[1:], name=_free(_name_of(words), taken), approval=True)]


def _name_of(words: Sequence[str]) -> str:
    """What a server that is started with these words is called: its program, not what interprets it."""
    program = Path(words[0]).stem
    first = next((word for word in words[1:] if not word.startswith("-")), "")
    is_interpreter = program.rstrip("0123456789.") in ("python", "node", "uv", "uvx", "npx", "bunx", "deno", "pipx")
    return (Path(first).stem if first and is_interpreter else program) or "server"


def _free(name: str, taken: set[str]) -> str:
    number = 2
    free = name
    while free in taken:
        free, number = f"{name}-{number}", number + 1
    return free
