"""The tables of a store's SQLite file, as ordered migrations, and the check of its owner.

`PRAGMA user_version` counts the migrations of a file. A released migration is never changed. Each is one transaction: a
file has one version or the next.

Law: a file of another program, or of a newer version, is refused before anything is written.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Final

from toolglot.errors import InputError, VersionError

APPLICATION_ID: Final = 0x746F6F6C
"""In the head of the file: "tool" in ASCII."""

VERSION_1: Final = (
    f"PRAGMA application_id = {APPLICATION_ID}",
    """CREATE TABLE kept (
        kind TEXT NOT NULL, client TEXT NOT NULL, key TEXT NOT NULL, until REAL NOT NULL, value BLOB NOT NULL
    )""",
    "CREATE UNIQUE INDEX kept_by_name ON kept (kind, client, key)",
)
# `age` grows with every row, is never reused, and a replaced row gets a new one: the smallest is the oldest. `size` is
# before the value, so that it is read without it; the index over both gives the sum without the table.
VERSION_2: Final = (
    "ALTER TABLE kept RENAME TO kept_1",
    "DROP INDEX kept_by_name",
    """CREATE TABLE kept (
        age INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, client TEXT NOT NULL, key TEXT NOT NULL,
        until REAL NOT NULL, size INTEGER NOT NULL, value BLOB NOT NULL
    )""",
    """INSERT INTO kept (kind, client, key, until, size, value)
        SELECT kind, client, key, until, length(CAST(kind || client || key AS BLOB)) + length(value), value
        FROM kept_1 ORDER BY rowid""",
    "DROP TABLE kept_1",
    "CREATE UNIQUE INDEX kept_by_name ON kept (kind, client, key)",
    "CREATE INDEX kept_by_until ON kept (until, size)",
)
# Totals have a table of their own: there are few, they are small, and pruning does not remove them. All totals of a key
# are one row, as a JSON object: they are read and written together.
VERSION_3: Final = (
    """CREATE TABLE counted (
        kind TEXT NOT NULL, client TEXT NOT NULL, key TEXT NOT NULL, until REAL NOT NULL, amounts TEXT NOT NULL,
        PRIMARY KEY (kind, client, key)
    ) WITHOUT ROWID""",
    "CREATE INDEX counted_by_until ON counted (until)",
)
# An expired claim counts as none; the index is for removing such rows.
VERSION_4: Final = (
    """CREATE TABLE claimed (
        kind TEXT NOT NULL, client TEXT NOT NULL, key TEXT NOT NULL, until REAL NOT NULL, holder TEXT NOT NULL,
        PRIMARY KEY (kind, client, key)
    ) WITHOUT ROWID""",
    "CREATE INDEX claimed_by_until ON claimed (until)",
)
MIGRATIONS: Final = (VERSION_1, VERSION_2, VERSION_3, VERSION_4)


def version_of(connection: sqlite3.Connection) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()[0]
    return version


def check_owner(application: int, version: int, file: str, newest: int) -> None:
    """Refuse a file of another program or of a newer toolglot."""
    if application not in (0, APPLICATION_ID):
        raise InputError("this is a database of another program", path=file, hint="use another path")
    if application == APPLICATION_ID and version > newest:
        raise VersionError(
            f"the store has version {version}, and this toolglot supports up to {newest}",
            path=file,
            hint="upgrade toolglot, or use another path",
        )


def check_database(connection: sqlite3.Connection, file: str, newest: int = len(MIGRATIONS)) -> None:
    """Refuse a database of another program. Call it inside a transaction, so that it reads one state."""
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = version_of(connection)
    check_owner(application, version, file, newest)
    if application == 0 and (version or connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()):
        raise InputError("this is a database of another program", path=file, hint="use another path")


def upgrade(connection: sqlite3.Connection, file: str, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Migrate a file to the newest version; another process may do the same at the same time."""
    while True:
        connection.execute("BEGIN IMMEDIATE")
        try:
            check_database(connection, file, len(migrations))
            version = version_of(connection)
            if version == len(migrations):
                return
            for statement in migrations[version]:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {version + 1}")
            connection.execute("COMMIT")
        finally:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
