"""Opening a store's SQLite file: created if missing, readable by its owner only, and refused untouched if invalid.

A file is checked in three steps: its first bytes, then by SQLite for reading only, then by SQLite for writing. It is
refused before the first write.

Law: a file that is not a store, is corrupt or has a newer version stays as it is, byte for byte.
"""

from __future__ import annotations

import os
import sqlite3
import struct
import time
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, TypeVar

from toolglot.errors import InputError
from toolglot.store.interface import StoreError
from toolglot.store.schema import MIGRATIONS, check_database, check_owner, upgrade

T = TypeVar("T")

MEMORY: Final = ":memory:"
MAGIC: Final = b"SQLite format 3\0"
HEAD: Final = struct.Struct(">16sH6xI I 28xI 4xI 20xI 4x")
"""The head of a file, in the order of SQLite's file format: magic, page size, change counter, pages, user version,
application id, and the change counter that the number of pages was written with."""

CHECKED_BYTES: Final = 64 * 1024**2
"""A larger file is not checked completely when it is opened; corruption is reported when it is found."""

BUSY: Final = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL)
CORRUPT: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
RETRY_SECONDS: Final = 0.01

MOVE_AWAY: Final = "move the file away, or use another path"


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's own code without its refinements; 0 for what Python's module found by itself."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def retry_while_busy(act: Callable[[], T], seconds: float) -> T:
    """The result of `act`, repeated while others lock the file: in some states SQLite does not wait by itself."""
    end = time.monotonic() + seconds
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if primary_code(error) not in BUSY or time.monotonic() >= end:
                raise
        time.sleep(RETRY_SECONDS)


def store_error(error: Exception, file: str) -> Exception:
    """The error as a `StoreError`, if it is one of SQLite or the system."""
    if isinstance(error, OSError):
        return StoreError(f"{file}: the store failed: {error.strerror or error}")
    if not isinstance(error, sqlite3.Error):
        return error
    code = primary_code(error)
    if code in BUSY:
        return StoreError(f"{file}: other processes have locked the store for too long")
    if code in CORRUPT:
        return StoreError(f"{file}: the file is corrupt ({error}); stop toolglot and {MOVE_AWAY}")
    return StoreError(f"{file}: the store failed: {error}")


def resolve_path(where: str | Path) -> str:
    """The absolute path of a store."""
    if str(where) == MEMORY:
        return MEMORY
    if not str(where) or "\0" in str(where):
        raise InputError("expected the path of a file", path="$.store")
    try:
        return str(Path(where).expanduser().absolute())
    except (RuntimeError, OSError) as error:
        raise InputError(f"not a path: {error}", path="$.store") from None


def open_connections(
    file: str, seconds: float, *, durable: bool = False
) -> tuple[sqlite3.Connection, sqlite3.Connection | None]:
    """A connection that writes and one that reads, to a file of the newest version. In memory there is only one."""
    if file == MEMORY:
        writing = connect(MEMORY, seconds)
        upgrade(writing, MEMORY)
        return writing, None
    try:
        make_file(Path(file))
        check_head(Path(file))
    except OSError as error:
        raise InputError(f"the file cannot be used: {error.strerror}", path=file) from None
    try:
        return _open_file(file, seconds, "FULL" if durable else "NORMAL")
    except sqlite3.Error as error:
        if primary_code(error) in CORRUPT:
            raise InputError(f"the file is corrupt: {error}", path=file, hint=MOVE_AWAY) from None
        raise InputError(f"the file cannot be opened: {error}", path=file) from None


def _open_file(file: str, seconds: float, synchronous: str) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    address = Path(file).as_uri()
    # A journal that must be rolled back first cannot be read without write access; the next connection will report it.
    is_checked = False
    with closing(connect(f"{address}?mode=ro", seconds)) as checking, suppress(sqlite3.OperationalError):
        retry_while_busy(lambda: check_file(checking, file), seconds)
        is_checked = True
    writing = connect(f"{address}?mode=rw", seconds)
    try:
        retry_while_busy(lambda: check_file(writing, file, read_all=not is_checked), seconds)
        restrict_mode(Path(file))
        retry_while_busy(lambda: writing.execute("PRAGMA journal_mode = WAL"), seconds)
        writing.execute(f"PRAGMA synchronous = {synchronous}")
        writing.execute("PRAGMA journal_size_limit = 67108864")
        retry_while_busy(lambda: upgrade(writing, file), seconds)
        reading = connect(f"{address}?mode=rw", seconds)
    except BaseException:
        writing.close()
        raise
    reading.execute("PRAGMA query_only = ON")
    return writing, reading


def reopen(file: str, seconds: float, *, durable: bool, is_reader: bool) -> sqlite3.Connection:
    """A connection to a file that replaced the opened one. A missing file is not created: an empty store has no client
    keys, and would admit everyone."""
    check_head(Path(file))
    writing, reading = _open_file(file, seconds, "FULL" if durable else "NORMAL")
    connection, other = (reading, writing) if is_reader else (writing, reading)
    other.close()
    return connection


def identity_of(file: str) -> tuple[int, int] | None:
    """The device and inode of a file; None: it does not exist, or is in memory."""
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def connect(address: str, seconds: float) -> sqlite3.Connection:
    """A connection that one thread will use, and that begins no transaction by itself."""
    uri = address != MEMORY
    return sqlite3.connect(address, timeout=seconds, isolation_level=None, check_same_thread=False, uri=uri)


def check_file(connection: sqlite3.Connection, file: str, *, read_all: bool = True) -> None:
    """Check the owner of a file, and all of its content if it is not too large."""
    connection.execute("BEGIN")
    try:
        check_database(connection, file)
        if read_all and size_of(Path(file)) <= CHECKED_BYTES:
            verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise InputError("the file is corrupt", path=file, hint=MOVE_AWAY)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def make_file(path: Path) -> None:
    """Create the file and its folders, if they are missing."""
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if not path.is_file():
        raise InputError("this is not a file", path=str(path), hint="use another path")


def check_head(path: Path) -> None:
    """Check the first bytes without SQLite, which would take a short text file for an empty database."""
    with path.open("rb") as file:
        head = file.read(HEAD.size)
    if not head:
        return
    if len(head) < HEAD.size or not head.startswith(MAGIC):
        raise InputError("the file is not an SQLite database", path=str(path), hint="use another path")
    _, page, changes, pages, version, application, counted = HEAD.unpack(head)
    check_owner(application, version, str(path), len(MIGRATIONS))
    # Pages may be missing if a journal has them. The size is read last: a journal that no longer exists has written all
    # of its pages.
    has_journal = any(size_of(Path(f"{path}{end}")) for end in ("-wal", "-journal"))
    if not has_journal and changes == counted and size_of(path) < pages * (65536 if page == 1 else page):
        raise InputError("the file is corrupt: its end is missing", path=str(path), hint=MOVE_AWAY)


def restrict_mode(path: Path) -> None:
    """Make a file readable by its owner only; the journals take its mode."""
    if path.stat().st_mode & 0o077:
        with suppress(PermissionError):
            path.chmod(0o600)


def size_of(path: Path) -> int:
    """The size of a file; 0: it does not exist."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
