"""How a gateway's process holds memory: what a large request took is given back when it is over.

The allocator of glibc learns from large blocks that were freed to take the next ones out of its heaps, of which each
thread may get its own. What stays for longer, such as a turn in the vault, then lies between them, and the heaps cannot
shrink: a gateway whose caches hold 20 MB kept 30 MB more that were free (`make soak`). With a fixed border, large
blocks are the system's own pages, which go back at once.

Law: a setting of who starts the process counts: where the environment says something of the allocator, nothing is set.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
SETTINGS: Final = {_MMAP_THRESHOLD: 128 * 1024, _TRIM_THRESHOLD: 1024 * 1024, _ARENA_MAX: 2}
"""By the numbers of glibc's malloc.h. Bytes from which on a block is the system's own; that may be free at the end of a
heap; and how many heaps there are."""
_OWN: Final = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")


def give_back_early(environ: Mapping[str, str], library: Any = None) -> bool:
    """Set the allocator of this process; whether that was done."""
    if any(name.startswith(_OWN) for name in environ):
        return False
    try:
        mallopt = (library or ctypes.CDLL(None)).mallopt
    except (AttributeError, OSError, TypeError):  # another library, or none: musl, macOS, Windows
        return False
    answers = [mallopt(name, value) for name, value in SETTINGS.items()]
    return answers == [1] * len(answers)
