"""An MCP server as a child process: one message per line over its standard input and output.

The transport of the `mcp` package accepts lines of any length and prints the standard error. This one limits the
length of a line, counts lines that are not messages, and keeps the end of the standard error to explain failures.

Law: when the context exits, the process and its children are gone, within little more than twice `limits.stop`.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Iterator
from subprocess import PIPE
from typing import TYPE_CHECKING, Any

import anyio
from anyio.abc import ByteReceiveStream, Process
from msgspec import Struct

from toolglot.runtime.mcp.limits import McpLimits, McpServerError

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.shared.message import SessionMessage


class McpCommand(Struct, frozen=True):
    """The command line, environment and directory of a server."""

    command: str
    args: tuple[str, ...] = ()
    env: dict[str, str] | None = None
    cwd: str | None = None

    def __repr__(self) -> str:
        return f"McpCommand({self.command!r})"  # arguments and variables may be secrets


class Ending:
    """Why a server ended, as far as its transport knows, and its last error output."""

    def __init__(self, limits: McpLimits) -> None:
        self.reason: str = ""
        self.over: anyio.Event = anyio.Event()
        self._limits = limits
        self._errors = bytearray()

    def end(self, reason: str) -> None:
        self.reason = self.reason or reason
        self.over.set()

    def keep_errors(self, chunk: bytes) -> None:
        self._errors += chunk
        del self._errors[: -self._limits.max_errors]

    @property
    def errors(self) -> str:
        """The end of the server's standard error."""
        return self._errors.decode("utf-8", "replace")


@contextlib.asynccontextmanager
async def stdio_transport(command: McpCommand, limits: McpLimits, ending: Ending) -> AsyncIterator[tuple[Any, Any]]:
    """Start a server; the two streams for a client of the `mcp` package."""
    process = await _start_process(command)
    incoming, to_read = anyio.create_memory_object_stream["SessionMessage | Exception"](0)
    to_write, outgoing = anyio.create_memory_object_stream["SessionMessage"](0)
    with incoming, to_read, to_write, outgoing:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_read, process, incoming, limits, ending)
            tasks.start_soon(_write, process, outgoing, incoming, ending)
            tasks.start_soon(_watch_errors, process, ending)
            try:
                yield to_read, to_write
            finally:
                with anyio.CancelScope(shield=True):
                    await _stop(process, limits)
                tasks.cancel_scope.cancel()


async def _start_process(command: McpCommand) -> Process:
    from mcp.client.stdio import get_default_environment  # noqa: PLC0415 - only when a server is used

    environment = {**get_default_environment(), **(command.env or {})}
    program = shutil.which(command.command, path=environment.get("PATH")) or command.command
    process: Process | None = None
    try:
        with anyio.CancelScope(shield=True):  # an interrupted start would leave an unknown process
            process = await anyio.open_process(
                [program, *command.args],
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=environment,
                cwd=command.cwd,
                start_new_session=sys.platform != "win32",  # so that its children can be killed with it
            )
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise McpServerError(f"{command.command!r} cannot be started: {why}") from None
    assert process is not None  # noqa: S101 - nothing cancels that scope
    return process


# --- reading ----------------------------------------------------------------------------------------


class LineSplitter:
    """Splits bytes into lines of limited length."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._partial: list[bytes] = []
        self._length = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            yield b"".join((*self._partial, self._check_size(line)))
            self._partial, self._length = [], 0
        if rest:
            self._partial.append(self._check_size(rest))
            self._length += len(rest)

    def _check_size(self, part: bytes) -> bytes:
        if self._length + len(part) > self._max_bytes:
            raise McpServerError(f"it sent a message of more than {self._max_bytes} bytes")
        return part


async def _read(
    process: Process,
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    limits: McpLimits,
    ending: Ending,
) -> None:
    stdout = process.stdout
    assert stdout is not None  # noqa: S101 - it was opened with pipes
    splitter, noise = LineSplitter(limits.max_message), 0
    with incoming:
        try:
            async for chunk in _chunks(stdout):
                for line in splitter.feed(chunk):
                    message = _message_of(line)
                    if message is not None:
                        await incoming.send(message)
                    elif line.strip():
                        noise += 1
                    if noise > limits.max_noise:
                        raise McpServerError("its standard output is not JSON-RPC")  # noqa: TRY301
        except McpServerError as error:
            ending.end(error.message)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            ending.end("its connection was closed")
        else:
            ending.end("it ended")


async def _chunks(stream: ByteReceiveStream) -> AsyncIterator[bytes]:
    with contextlib.suppress(anyio.EndOfStream, ConnectionError):
        while True:
            yield await stream.receive()


def _message_of(line: bytes) -> SessionMessage | None:
    """The message of a line; None if it is not a message: some servers print other lines while they start."""
    from mcp.shared.message import SessionMessage  # noqa: PLC0415
    from mcp.types import jsonrpc_message_adapter  # noqa: PLC0415

    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except (ValueError, RecursionError):
        return None


async def _watch_errors(process: Process, ending: Ending) -> None:
    stderr = process.stderr
    assert stderr is not None  # noqa: S101 - it was opened with pipes
    with contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for chunk in _chunks(stderr):
            ending.keep_errors(chunk)


# --- writing and stopping ---------------------------------------------------------------------------


async def _write(
    process: Process,
    outgoing: MemoryObjectReceiveStream[SessionMessage],
    incoming: MemoryObjectSendStream[SessionMessage | Exception],
    ending: Ending,
) -> None:
    stdin = process.stdin
    assert stdin is not None  # noqa: S101 - it was opened with pipes
    try:
        async for item in outgoing:
            text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
            await stdin.send(text.encode() + b"\n")
    except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        ending.end("it no longer reads its standard input")
        incoming.close()  # it may go on writing: do not wait for that


async def _stop(process: Process, limits: McpLimits) -> None:
    """Close its input, wait, terminate it, wait, kill it."""
    if process.stdin is not None:
        with contextlib.suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await process.stdin.aclose()
    for name in (None, "SIGTERM", "SIGKILL"):
        if name is not None:
            _signal(process, name)
        if await _has_ended(process, limits.stop):
            break
    _signal(process, "SIGKILL")  # the children that are left
    with anyio.move_on_after(limits.stop):
        await process.aclose()


async def _has_ended(process: Process, seconds: float) -> bool:
    # `wait` would also wait for children that hold the pipes.
    with anyio.move_on_after(seconds):
        while process.returncode is None:
            await anyio.sleep(0.01)
    return process.returncode is not None


def _signal(process: Process, name: str) -> None:
    with contextlib.suppress(OSError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.Signals[name])
