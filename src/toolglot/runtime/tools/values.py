"""A tool that can be run, what it is told when it runs, and what it may give back.

Law: values only. Nothing here runs a tool, and nothing here knows where one came from: a Python function, a plain
definition, an MCP server.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, ParamSpec, TypeVar

from toolglot.conversation import Media, Opaque, Text, ToolSpec
from toolglot.errors import InputError, ToolglotError, quote

OnTimeout = Literal["error", "unknown"]
"""`error`: a tool that ran out of time is known to have stopped. `unknown`: it may have run."""

Content = str | tuple[Text | Media | Opaque, ...] | None
"""What the content of a result may be."""

P = ParamSpec("P")
R = TypeVar("R")
"""What a Python function takes and returns: a tool that is made of it takes and returns the same."""

Run = Callable[[dict[str, Any], "ToolContext"], Awaitable[object]]
Resources = Callable[[dict[str, Any]], Iterable[str]]


class ToolError(ToolglotError):
    """What a tool raises to tell the model, in these words, why it did not work.

    message: what the model is told.
    """

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


def _say_nothing(text: str) -> None:
    """Where nobody listens to progress."""


@dataclass(slots=True)
class ToolContext:
    """What a running tool knows of its call. A function that has a parameter of this type is given it.

    session_id: the session that the call is part of.
    attempt: which try this is, from 1.
    """

    call_id: str = ""
    """Canonical: the same however often the call is tried, so it is good as an idempotency key."""
    tool: str = ""
    session_id: str = ""
    attempt: int = 1
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the call is cancelled: for tools that run in a thread, which nothing else can stop."""
    progress: Callable[[str], None] = _say_nothing
    """Tells whoever watches how far the tool is. Never becomes part of the history."""
    session: object | None = None
    """The session, for tools that spawn others."""
    waits_for: str = ""
    """What a tool waits for that has done nothing yet ("The server was still starting"). A call that is stopped while
    this is set is told as one that was never started."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool returns where a plain value does not say it all."""

    content: Content = None
    is_error: bool = False
    result: Any = None
    """The value behind the content, where there is one: not shown to the model, kept with the result."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A tool: what the model sees of it, how it is run, and what running it means.

    spec: what the model sees: name, description, parameters.
    on_timeout: whether a tool that ran out of time is known to have stopped (`error`) or may have run (`unknown`).
    """

    spec: ToolSpec
    run: Run | None = None
    """None: only a definition. Whoever asked runs it and gives the result."""
    side_effects: bool = True
    """It is in the log before it starts, and never runs a second time."""
    idempotent: bool = False
    """It may be tried again after an error or a timeout."""
    resources: Resources | None = None
    """Calls that use the same resource run one after another."""
    timeout: float | None = None
    """Seconds; None: the scheduler's."""
    on_timeout: OnTimeout = "unknown"
    approval: bool = False
    """Somebody is asked before each run."""
    function: Callable[..., Any] | None = None
    """The Python function that it was made of, where it is a `FunctionTool`."""

    def __post_init__(self) -> None:
        if not isinstance(self.spec, ToolSpec):
            raise InputError(f"expected a ToolSpec, got {quote(self.spec)}", path="spec")
        if self.timeout is not None and not self.timeout > 0:
            raise InputError("expected seconds, more than 0", path="timeout")
        if self.on_timeout not in ("error", "unknown"):
            raise InputError(f"expected 'error' or 'unknown', got {quote(self.on_timeout)}", path="on_timeout")

    @property
    def name(self) -> str:
        return self.spec.name


@dataclass(frozen=True, kw_only=True, slots=True)
class FunctionTool(Tool, Generic[P, R]):
    """A tool that was made of a Python function, and is called as that function is."""

    function: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """The function itself, as if it were no tool."""
        return self.function(*args, **kwargs)
