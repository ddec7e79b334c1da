"""The database of opencode with one session."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from pathlib import Path
from typing import Any

_TABLES = """
CREATE TABLE session (id TEXT PRIMARY KEY, project_id TEXT, parent_id TEXT, slug TEXT, directory TEXT, title TEXT,
  version TEXT, model TEXT, time_created INTEGER, time_updated INTEGER);
CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT);
"""


def opencode_database(home: Path, document: dict[str, Any], *, has_row: bool = True) -> Path:
    """A database with a session in the form of `opencode export`."""
    database = home / ".local" / "share" / "opencode" / "opencode.db"
    database.parent.mkdir(parents=True, exist_ok=True)
    info = document["info"]
    with contextlib.closing(sqlite3.connect(database)) as connection:
        connection.executescript(_TABLES)
        if has_row:
            times = info["time"]["created"], info["time"]["updated"]
            row = (info["id"], "global", None, info["slug"], info["directory"], info["title"], "1.18.33", None, *times)
            connection.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", row)
        for message in document["messages"]:
            about = {name: value for name, value in message["info"].items() if name not in ("id", "sessionID")}
            id = message["info"]["id"]
            time = about["time"]["created"]
            connection.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (id, info["id"], time, json.dumps(about)))
            for part in message["parts"]:
                data = {name: value for name, value in part.items() if name not in ("id", "sessionID", "messageID")}
                values = (part["id"], id, info["id"], json.dumps(data))
                connection.execute("INSERT INTO part VALUES (?, ?, ?, ?)", values)
        connection.commit()
    return database
