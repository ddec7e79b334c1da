"""Sessions that are one JSON document, one text, or rows of an SQLite database.

Law: a file that cannot be read, is too large, nests too deeply or is not what it should be is an `InputError` with its
path; a database is opened for reading only.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from toolglot import jsontext
from toolglot.agent_files.json_lines import MAX_FILE_BYTES, FileLine, refuse_special
from toolglot.errors import InputError
from toolglot.limits import Limits

LIMITS: Final = Limits(max_bytes=MAX_FILE_BYTES, max_nodes=20_000_000)
MARK: Final = "#"
"""Between the path of a database and the id of a session in it."""
_ROW_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")
"""Ids that can be a part of a path."""

Rows = Callable[..., list[sqlite3.Row]]
"""Runs a query."""


def read_bytes(path: Path) -> bytes:
    """A whole file."""
    refuse_special(path)
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot read the session: {reason}", path=str(path), hint="check the path") from None
    if len(data) > MAX_FILE_BYTES:
        raise InputError(f"larger than {MAX_FILE_BYTES} bytes", path=str(path), hint="this is too large for a session")
    return data


def read_parsed(path: Path) -> jsontext.Parsed:
    """The value of a JSON file, and what had to be replaced in it."""
    return jsontext.parse(read_bytes(path), limits=LIMITS, path=str(path))


def read_document(path: Path) -> Any:
    """The value of a JSON file."""
    return read_parsed(path).value


def no_lines(_path: Path) -> Iterator[FileLine]:
    """The lines of a session that is examined as a whole."""
    return iter(())


def parse_or_none(data: object) -> Any:
    """The value of a JSON text; None for anything else."""
    try:
        return jsontext.parse(data, limits=LIMITS).value if isinstance(data, str | bytes) else None
    except InputError:
        return None


def session_path(database: Path, id: object) -> Path | None:
    """The path that stands for a session in a database; None for an id that cannot be part of a path."""
    if not isinstance(id, str) or not _ROW_ID.fullmatch(id):
        return None
    return database.with_name(f"{database.name}{MARK}{id}")


def database_of(path: Path) -> Path | None:
    """The database of such a path; None for the path of a file."""
    name, mark, _ = path.name.rpartition(MARK)
    return path.with_name(name) if mark and name else None


def row_id(path: Path) -> str:
    """The id of the session that such a path stands for."""
    return path.name.rpartition(MARK)[2]


@contextlib.contextmanager
def opened(database: Path) -> Iterator[Rows]:
    """A function that runs a query. Bytes that are not UTF-8 become U+FFFD."""
    try:
        address = f"{database.absolute().as_uri()}?mode=ro"
        with contextlib.closing(sqlite3.connect(address, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = lambda data: data.decode("utf-8", "replace")
            yield lambda query, *values: connection.execute(query, values).fetchall()
    except sqlite3.Error as error:
        hint = "the agent itself may be able to, and export the session"
        raise InputError(f"the database cannot be read: {error}", path=str(database), hint=hint) from None
