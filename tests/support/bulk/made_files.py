"""Files of rows for tests of the engines."""

from __future__ import annotations

import hashlib
import json
from copy import deepcopy
from pathlib import Path
from typing import Any

from support.bulk.samples import SHAREGPT


def sharegpt_rows(count: int) -> list[dict[str, Any]]:
    """Rows that differ in their number."""
    rows = []
    for number in range(count):
        row = deepcopy(SHAREGPT)
        row["conversations"][0]["value"] = f"What is here? {number}"
        row["id"] = number
        rows.append(row)
    return rows


def write_lines(path: Path, rows: list[Any]) -> Path:
    """A file of JSONL; texts are lines as they are."""
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read_lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def hash_of(path: Path) -> str:
    """The bytes of a file, or of all parts in a folder."""
    if path.is_dir():
        return "".join(hash_of(part) for part in sorted(path.glob("part-*")))
    return hashlib.sha256(path.read_bytes()).hexdigest()
