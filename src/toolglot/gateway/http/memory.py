"""Settings of the memory allocator, so that the memory of a large request is returned to the system at its end.

After large blocks were freed, the allocator of glibc takes the next ones from its heaps, of which each thread may have
its own. Small blocks that stay for longer, such as a turn in the vault, then lie between them, and the heaps cannot
shrink: a gateway whose caches hold 20 MB kept 30 MB more that were free (`make soak`). With a fixed threshold, large
blocks are pages of the system, which are returned at once.

Law: the operator decides: if the environment has a setting of the allocator, nothing is set here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Any, Final

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_ARENA_MAX: Final = -8
SETTINGS: Final = {_MMAP_THRESHOLD: 128 * 1024, _TRIM_THRESHOLD: 1024 * 1024, _ARENA_MAX: 2}
"""By the numbers of glibc's malloc.h: the size from which on a block is pages of the system; the bytes that may be free
at the end of a heap; and the number of heaps."""
_OWN: Final = ("MALLOC_", "GLIBC_TUNABLES", "LD_PRELOAD")


def return_memory_early(environ: Mapping[str, str], library: Any = None) -> bool:
    """Set the allocator of this process. Returns whether that was done."""
    if any(name.startswith(_OWN) for name in environ):
        return False
    try:
        mallopt = (library or ctypes.CDLL(None)).mallopt
    except (AttributeError, OSError, TypeError):  # another library, or none: musl, macOS, Windows
        return False
    results = [mallopt(name, value) for name, value in SETTINGS.items()]
    return results == [1] * len(results)
