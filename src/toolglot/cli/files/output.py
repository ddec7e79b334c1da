"""Output files: written whole or not at all, and never over something that is there.

Law: a file gets its name only when it is complete (it is written beside it first). An existing file is replaced only
when that was asked for.
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
    """Raise where a file would be lost."""
    if Path(path).is_dir():
        raise InputError("is a directory", path=path, hint="name a file")
    if not force and os.path.lexists(path):
        raise InputError("exists already", path=path, hint="choose another name, or replace it with --force")


class OutputFile:
    """Where to write, while it is open."""

    def __init__(self, write: Write) -> None:
        self.write = write
        self.is_abandoned: bool = False

    def abandon(self) -> None:
        """Let the file be as it was."""
        self.is_abandoned = True


@contextlib.contextmanager
def open_output(path: str, terminal: Terminal, *, force: bool) -> Iterator[OutputFile]:
    """Stdout, or a file that appears at the end."""
    if path == STDOUT:
        yield OutputFile(terminal.write_data)
        return
    refuse_existing(path, force=force)
    with replacing(path) as output:
        yield output


@contextlib.contextmanager
def replacing(path: str) -> Iterator[OutputFile]:
    """Write a file beside the named one, which it replaces at the end; its permissions stay."""
    place = Path(os.path.realpath(path))  # a link stays a link
    try:
        handle, name = tempfile.mkstemp(prefix=f".{place.name[:60]}.", suffix=".part", dir=place.parent)
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(handle, "wb") as stream:
            output = OutputFile(lambda data: _written(path, stream, data))
            yield output
            _written(path, stream, b"")
        if not output.is_abandoned:
            _finish(name, place)
    finally:
        Path(name).unlink(missing_ok=True)


def _written(path: str, stream: BinaryIO, data: bytes) -> None:
    """What goes wrong with this file, and only with this one, is told as such."""
    try:
        stream.write(data)
        if not data:
            stream.flush()
    except OSError as error:
        raise _unwritable(path, error) from None


def _finish(name: str, place: Path) -> None:
    try:
        _take_permissions(name, place)
        Path(name).replace(place)
    except OSError as error:
        raise _unwritable(str(place), error) from None


def _take_permissions(name: str, place: Path) -> None:
    """Those of the file that is replaced, else what the user's mask gives to a new one."""
    if place.exists():
        shutil.copymode(place, name)
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
    return InputError(f"cannot be written: {reason}", path=path, hint="check the directory and its permissions")
