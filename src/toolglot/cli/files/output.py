"""Output files.

Law: files are written atomically: to a temporary file first, which is renamed when it is complete. An existing file is
overwritten only on request.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Final

from toolglot.cli.screen.terminal import Terminal
from toolglot.errors import InputError

STDOUT: Final = "-"
Write = Callable[[bytes], object]


def refuse_existing(path: str, *, force: bool) -> None:
    """Raise if a file would be overwritten."""
    if Path(path).is_dir():
        raise InputError("is a directory", path=path, hint="pass a file")
    if not force and os.path.lexists(path):
        raise InputError("file already exists", path=path, hint="choose another name, or overwrite it with --force")


class OutputFile:
    """An open output file."""

    def __init__(self, write: Write) -> None:
        self.write = write
        self.is_abandoned: bool = False

    def abandon(self) -> None:
        """Leave the file as it was."""
        self.is_abandoned = True


@contextlib.contextmanager
def open_output(path: str, terminal: Terminal, *, force: bool) -> Iterator[OutputFile]:
    """Open stdout, or a file that appears when the block ends."""
    if path == STDOUT:
        yield OutputFile(terminal.write_data)
        return
    refuse_existing(path, force=force)
    with replace_file(path) as output:
        yield output


@contextlib.contextmanager
def replace_file(path: str) -> Iterator[OutputFile]:
    """Write to a temporary file that replaces `path` when the block ends. Permissions are kept."""
    target = Path(os.path.realpath(path))  # a link stays a link
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:60]}.", suffix=".part", dir=target.parent)
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(handle, "wb") as stream:
            output = OutputFile(lambda data: _write_data(path, stream, data))
            yield output
            _write_data(path, stream, b"")
        if not output.is_abandoned:
            _finish(name, target)
    finally:
        Path(name).unlink(missing_ok=True)


def _write_data(path: str, stream: BinaryIO, data: bytes) -> None:
    """Write, and report an error with the name of this file."""
    try:
        stream.write(data)
        if not data:
            stream.flush()
    except OSError as error:
        raise _unwritable(path, error) from None


def _finish(name: str, target: Path) -> None:
    try:
        _copy_permissions(name, target)
        Path(name).replace(target)
    except OSError as error:
        raise _unwritable(str(target), error) from None


def _copy_permissions(name: str, target: Path) -> None:
    """Copy the permissions of the replaced file; for a new file, follow the umask."""
    if target.exists():
        shutil.copymode(target, name)
        return
    mask = os.umask(0)
    os.umask(mask)
    Path(name).chmod(0o666 & ~mask)


def back_up(path: str, *, force: bool) -> str:
    """Copy a file to `FILE.bak`."""
    backup = f"{path}.bak"
    refuse_existing(backup, force=force)
    try:
        shutil.copy2(path, backup)
    except OSError as error:
        raise _unwritable(backup, error) from None
    return backup


def _unwritable(path: str, error: OSError | ValueError) -> InputError:
    reason = getattr(error, "strerror", None) or str(error)
    return InputError(f"cannot write file: {reason}", path=path, hint="check the directory and its permissions")
