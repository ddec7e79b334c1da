"""A disk of a few megabytes that can be filled, and that is gone with the process that holds it.

with small_disk(folder, megabytes=8) as disk:
    with process(…, command=disk.enter): …       # a process that sees it at `folder`
    disk.fill()                                 # nothing more can be written there
    disk.empty()

It is a tmpfs in a mount namespace of its own: no other process sees it, and nothing is left when a test run is killed.
Where this is not allowed, tests that use it are skipped.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

_MOUNT = 'mount -t tmpfs -o size="$1"m tmpfs "$2" && echo mounted && exec sleep infinity'
_PIECE = 64 * 1024


class SmallDisk:
    """A disk that is mounted."""

    def __init__(self, holder: int, folder: Path) -> None:
        self.folder = folder
        self.seen = Path(f"/proc/{holder}/root{folder}")
        """The same from outside."""
        self.enter = [shutil.which("nsenter") or "nsenter", f"--mount=/proc/{holder}/ns/mnt", "--"]
        """What stands before a command that is to see the disk."""

    def fill(self) -> None:
        """Write until there is no room, not even for a byte."""
        with (self.seen / "filler").open("ab", buffering=0) as file:
            for piece in (_PIECE, 4096, 1):
                with contextlib.suppress(OSError):
                    while file.write(bytes(piece)) == piece:
                        pass

    def empty(self) -> None:
        (self.seen / "filler").unlink()

    @property
    def free(self) -> int:
        found = os.statvfs(self.seen)
        return found.f_bavail * found.f_frsize


@contextlib.contextmanager
def small_disk(folder: Path, *, megabytes: int) -> Iterator[SmallDisk]:
    """The disk as long as the block lasts."""
    if shutil.which("unshare") is None or shutil.which("nsenter") is None:
        pytest.skip("there is no unshare or nsenter (Debian: util-linux)")
    words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", _MOUNT, "sh", str(megabytes), str(folder)]
    holder = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stderr is not None
    try:
        if holder.stdout.readline() != b"mounted\n":
            pytest.skip(f"a tmpfs cannot be mounted here: {holder.stderr.read().decode().strip()[:200]}")
        yield SmallDisk(holder.pid, folder)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
        holder.stderr.close()
