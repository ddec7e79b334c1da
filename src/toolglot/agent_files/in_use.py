"""Whether an agent is using a session file now: its locks, and when it was last written.

Agents keep a session in memory: a file that is changed under a running one is overwritten, or splits in two.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from toolglot.agent_files.base import AgentFormat

RECENT: Final = 60.0
"""Seconds after the last write in which a session counts as open."""


def reason_in_use(format: AgentFormat, path: Path, now: float) -> str:
    """Why the file counts as open; empty if it does not."""
    if format.lock is not None:
        found = format.lock(path)
        if found:
            return found
    holder = _process_with(path)
    if holder:
        return f"process {holder} has the file open"
    age = now - path.stat().st_mtime
    return f"it was written {max(age, 0):.0f} seconds ago" if age < RECENT else ""


def _process_with(path: Path) -> int:
    """Another process that has the file open for writing, where the system says so; otherwise 0."""
    processes = Path("/proc")
    if not (processes / "self" / "fd").is_dir():
        return 0
    wanted = os.path.realpath(path)
    for process in processes.iterdir():
        if not process.name.isdecimal() or int(process.name) == os.getpid():
            continue
        try:
            for opened in (process / "fd").iterdir():
                if str(opened.readlink()) == wanted:
                    return int(process.name)
        except OSError:
            continue
    return 0
