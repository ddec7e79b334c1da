"""How much work an action does, counted instead of timed: the same number on every machine, idle or busy.

`steps_of` counts what Python executes: the lines of toolglot, and every call, also of functions written in C. It says
nothing about the length of one such call. Where the work is done in C (a regular expression, a parser), the text is so
long that more than linear work would take an hour, and `no_hang` ends that: it counts processor time, of which such a
test needs a second.
"""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

import toolglot

SOURCE: Final = str(Path(toolglot.__file__).parent)
HANG_SECONDS: Final = 120.0
"""Of processor time."""


class HangError(AssertionError):
    """The work has no end in sight."""


def steps_of(action: Callable[[], object], folder: str = SOURCE) -> int:
    """The lines that are executed in a folder, and all calls."""
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        steps += 1
        return trace if frame.f_code.co_filename.startswith(folder) else None

    def count_calls(_: FrameType, event: str, __: Any) -> None:
        nonlocal steps
        steps += event == "c_call"

    before, profile = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(count_calls)
    try:
        action()
    finally:
        sys.setprofile(profile)
        sys.settrace(before)
    return steps


def methods_called_on(value: object, action: Callable[[], object]) -> list[str]:
    """The methods of one string, or of another value of a type written in C, that an action calls."""
    called: list[str] = []

    def note(_: FrameType, event: str, function: Any) -> None:
        if event == "c_call" and getattr(function, "__self__", None) is value:
            called.append(function.__name__)

    profile = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(profile)
    return called


def is_linear(work: Callable[[int], Callable[[], object]], size: int, *, times: int = 8, slack: float = 1.5) -> bool:
    """Whether the work for a size that is so many times as large is about so many times as much, or less.

    `slack` is room for what grows in leaps. Quadratic work would be `times` too much.
    """
    small, large = (steps_of(work(each)) for each in (size, size * times))
    return large <= small * times * slack


@contextlib.contextmanager
def no_hang(seconds: float = HANG_SECONDS) -> Iterator[None]:
    """End what takes so much processor time that it must hang. In the main thread only."""

    def end(_: int, __: FrameType | None) -> None:
        raise HangError(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
