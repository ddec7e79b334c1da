"""The tools of commands in the docs."""

from __future__ import annotations

from pathlib import Path


def read_file(path: str) -> str:
    """Read a file of the project.

    Args:
        path: Its name.
    """
    return Path(path).read_text(encoding="utf-8")
