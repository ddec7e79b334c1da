"""Tools that run shell commands, and calls that are nothing but a command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from toolglot.dialects.reading import DialectReader, Outcome, Schemas
from toolglot.dialects.scanner import Steps, marks
from toolglot.dialects.values.argument_writer import ArgumentWriter

_NAMES: Final = frozenset(
    {
        "bash",
        "bash_command",
        "bash_tool",
        "cmd",
        "command",
        "console",
        "exec",
        "exec_command",
        "execute_bash",
        "execute_command",
        "execute_shell_command",
        "local_shell",
        "run_bash",
        "run_command",
        "run_in_terminal",
        "run_shell",
        "run_shell_command",
        "run_terminal_cmd",
        "sh",
        "shell",
        "shell_command",
        "shell_exec",
        "terminal",
        "zsh",
    }
)
_ARGUMENT: Final = "command"
MAX_COMMAND: Final = 4096
"""Characters that are held back until the tag is closed. Longer content is a command in any case."""


def is_shell_name(name: str) -> bool:
    """Whether a tool of this name runs shell commands."""
    return name.lower().replace("-", "_") in _NAMES


def shell_tool(tools: Schemas) -> str | None:
    """The one tool that runs shell commands; None if there is none, or more than one."""
    found = [name for name in tools if is_shell_name(name)]
    return found[0] if len(found) == 1 else None


def command_argument(schema: dict[str, Any] | None) -> str:
    """The argument that holds the command: `command`, unless the tool has none and requires exactly one argument."""
    properties = schema.get("properties") if schema is not None else None
    required = schema.get("required") if schema is not None else None
    if not isinstance(properties, dict) or _ARGUMENT in properties or not isinstance(required, list):
        return _ARGUMENT
    return required[0] if len(required) == 1 and isinstance(required[0], str) else _ARGUMENT


def read_command(closer: str) -> Callable[[DialectReader, str], Steps[Outcome]]:
    """Reads a command up to its closer. A short one that is never closed is text. If the dialect was detected, only an
    offered tool counts, and only if no other can be meant."""

    def read(reader: DialectReader, _opener: str) -> Steps[Outcome]:
        scanner = reader.scanner
        name = shell_tool(reader.tools)
        if name is None and not (reader.is_chosen and reader.accepts("bash")):
            return "none"
        yield from scanner.skip_spaces()
        command = _Command(reader)
        found = yield from scanner.until(marks(closer), command.add)
        if found is None and not command.is_open:
            return "unfinished"
        command.open()
        return command.close(cut=found is None)

    return read


class _Command:
    """A command. Once it is too long to be anything else, it is passed on as it arrives."""

    def __init__(self, reader: DialectReader) -> None:
        self._reader = reader
        self._name = shell_tool(reader.tools) or "bash"
        self._arguments = ArgumentWriter(reader, self._name, "newline")
        self._early: list[str] = []
        self._size = 0
        self.is_open = False

    def add(self, piece: str) -> None:
        if self.is_open:
            self._arguments.add(piece)
            return
        self._early.append(piece)
        self._size += len(piece)
        if self._size > MAX_COMMAND:
            self.open()

    def open(self) -> None:
        if not self.is_open:
            self.is_open = True
            self._reader.open(self._name)
            self._arguments.begin(command_argument(self._reader.schema(self._name)), frozenset({"string"}))
            for piece in self._early:
                self._arguments.add(piece)

    def close(self, *, cut: bool) -> Outcome:
        if not cut:
            self._arguments.end()
            self._arguments.finish()
        return self._reader.close(cut=cut)
