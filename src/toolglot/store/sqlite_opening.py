"""Opening a store's SQLite file: made when missing, for its owner's eyes only, and refused untouched when it is wrong.

A file is looked at in three steps: its first bytes, then by SQLite for reading only, then by SQLite for writing. What
is refused is refused before the first write.

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
DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
RETRY_SECONDS: Final = 0.01

ELSEWHERE: Final = "move the file away, or give another path"


def primary_code(error: sqlite3.Error) -> int:
    """SQLite's own code without its refinements; 0 for what Python's module found by itself."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def retry_while_busy(act: Callable[[], T], seconds: float) -> T:
    """What `act` gives, tried again while others hold the file: in some states SQLite answers at once, and does not
    wait by itself."""
    end = time.monotonic() + seconds
    while True:
        try:
            return act()
        except sqlite3.OperationalError as error:
            if primary_code(error) not in BUSY or time.monotonic() >= end:
                raise
        time.sleep(RETRY_SECONDS)


def store_error(error: Exception, file: str) -> Exception:
    """The same error in our words; what is no error of SQLite's stays what it is."""
    if isinstance(error, OSError):
        return StoreError(f"{file}: the store failed: {error.strerror or error}")
    if not isinstance(error, sqlite3.Error):
        return error
    code = primary_code(error)
    if code in BUSY:
        return StoreError(f"{file}: other processes have held the store too long")
    if code in DAMAGED:
        return StoreError(f"{file}: the file is damaged ({error}): stop toolglot and {ELSEWHERE}")
    return StoreError(f"{file}: the store failed: {error}")


def resolve_path(where: str | Path) -> str:
    """The file that is meant, as an absolute path."""
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
    """A connection that writes and one that reads, to a file of the newest version. What is in memory has but one."""
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
        return opened(file, seconds, "FULL" if durable else "NORMAL")
    except sqlite3.Error as error:
        if primary_code(error) in DAMAGED:
            raise InputError(f"the file is damaged: {error}", path=file, hint=ELSEWHERE) from None
        raise InputError(f"the file cannot be opened: {error}", path=file) from None


def opened(file: str, seconds: float, synchronous: str) -> tuple[sqlite3.Connection, sqlite3.Connection]:
    address = Path(file).as_uri()
    # A journal that must be rolled back first cannot be read without write access; the next connection will report it.
    is_read_through = False
    with closing(connect(f"{address}?mode=ro", seconds)) as looking, suppress(sqlite3.OperationalError):
        retry_while_busy(lambda: look(looking, file), seconds)
        is_read_through = True
    writing = connect(f"{address}?mode=rw", seconds)
    try:
        retry_while_busy(lambda: look(writing, file, read_through=not is_read_through), seconds)
        close_to_others(Path(file))
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
    """A connection to a file that replaced the opened one. A missing file is not created: an empty store would not know
    the keys of clients, and let everyone in."""
    check_head(Path(file))
    writing, reading = opened(file, seconds, "FULL" if durable else "NORMAL")
    kept, other = (reading, writing) if is_reader else (writing, reading)
    other.close()
    return kept


def identity_of(file: str) -> tuple[int, int] | None:
    """Which file it is that has this name; None: there is none, or it is in memory."""
    try:
        found = Path(file).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def connect(address: str, seconds: float) -> sqlite3.Connection:
    """A connection that is handed to one thread later, and begins no transaction by itself."""
    uri = address != MEMORY
    return sqlite3.connect(address, timeout=seconds, isolation_level=None, check_same_thread=False, uri=uri)


def look(connection: sqlite3.Connection, file: str, *, read_through: bool = True) -> None:
    """Reads who wrote the file, and all of it where it is not too large."""
    connection.execute("BEGIN")
    try:
        check_database(connection, file)
        if read_through and size_of(Path(file)) <= CHECKED_BYTES:
            verdict = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
            if verdict != "ok":
                raise InputError("the file is damaged", path=file, hint=ELSEWHERE)
    finally:
        if connection.in_transaction:
            connection.execute("ROLLBACK")


def make_file(path: Path) -> None:
    """The file and the folders above it, where they are missing."""
    for folder in reversed([folder for folder in path.parents if not folder.exists()]):
        folder.mkdir(mode=0o700, exist_ok=True)
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    if not path.is_file():
        raise InputError("this is not a file", path=str(path), hint="give another path")


def check_head(path: Path) -> None:
    """Checks the first bytes without SQLite, which would take a short text file for an empty database."""
    with path.open("rb") as file:
        head = file.read(HEAD.size)
    if not head:
        return
    if len(head) < HEAD.size or not head.startswith(MAGIC):
        raise InputError("the file is not an SQLite database", path=str(path), hint="give another path")
    _, page, changes, pages, version, application, counted = HEAD.unpack(head)
    check_owner(application, version, str(path), len(MIGRATIONS))
    # Pages may be missing as long as a journal has them. The size is asked for last: a journal that is gone by now has
    # brought all of its pages.
    has_journal = any(size_of(Path(f"{path}{end}")) for end in ("-wal", "-journal"))
    if not has_journal and changes == counted and size_of(path) < pages * (65536 if page == 1 else page):
        raise InputError("the file is damaged: its end is missing", path=str(path), hint=ELSEWHERE)


def close_to_others(path: Path) -> None:
    """An older file may be open to all; the journals take its mode."""
    if path.stat().st_mode & 0o077:
        with suppress(PermissionError):
            path.chmod(0o600)


def size_of(path: Path) -> int:
    """0 also for a file that is not there."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
