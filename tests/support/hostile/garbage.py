"""What of ours is left to the garbage collector: values that refer to each other, and so outlive their use.

assert left_by(lambda: translate(stream)) == {}
"""

from __future__ import annotations

import contextlib
import gc
from collections import Counter
from collections.abc import Callable, Iterator


def left_by(act: Callable[[], object]) -> dict[str, int]:
    """How many values of which types of toolglot are left when something was done twice."""
    act()  # what is remembered from the first time on is not garbage
    with collecting() as found:
        act()
    return found


@contextlib.contextmanager
def collecting() -> Iterator[dict[str, int]]:
    """What only a collection finds when the block is over, by type; empty until then."""
    was_enabled = gc.isenabled()
    found: dict[str, int] = {}
    gc.disable()
    gc.freeze()  # what was there before is not looked at
    try:
        gc.set_debug(gc.DEBUG_SAVEALL)
        yield found
        gc.collect()
        found.update(Counter(name for value in gc.garbage if (name := _name(value)).startswith("toolglot")))
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        if was_enabled:
            gc.enable()


def _name(value: object) -> str:
    """The type of a value; of functions and generators, what they are."""
    kind = type(value)
    if kind.__module__ != "builtins":
        return f"{kind.__module__}.{kind.__qualname__}"
    code = getattr(value, "gi_code", None) or getattr(value, "cr_code", None)
    if code is not None and "/toolglot/" in code.co_filename:
        return f"toolglot generator {code.co_qualname}"
    return f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', '')}"
