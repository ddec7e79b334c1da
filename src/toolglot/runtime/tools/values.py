"""A tool, the context of its call, and its output.

Law: values only. Nothing here runs a tool, or knows where it comes from: a Python function, a plain definition, an MCP
server.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, ParamSpec, TypeVar

from toolglot.conversation import ResultPart, ToolSpec
from toolglot.errors import InputError, ToolglotError, quote

OnTimeout = Literal["error", "unknown"]
"""`error`: a tool that ran out of time is known to have stopped. `unknown`: it may have run."""

Content = str | tuple[ResultPart, ...] | None
"""What the content of a result may be."""

P = ParamSpec("P")
R = TypeVar("R")
"""The parameters and the return type of a Python function, and of the tool made from it."""

Run = Callable[[dict[str, Any], "ToolContext"], Awaitable[object]]
Resources = Callable[[dict[str, Any]], Iterable[str]]


class ToolError(ToolglotError):
    """Raise this in a tool to tell the model why it failed.

    message: what the model reads, exactly.
    """

    def __init__(self, message: str) -> None:
        self.message = message
        super().__init__(message)


def _ignore_progress(text: str) -> None:
    """Used when nothing listens to progress."""


@dataclass(slots=True)
class ToolContext:
    """What a running tool knows about its call. A function gets it in a parameter of this type.

    session_id: the session that the call belongs to.
    attempt: the number of this attempt, from 1.
    """

    call_id: str = ""
    """The canonical id. It is the same for every attempt, so it can be an idempotency key."""
    tool: str = ""
    session_id: str = ""
    attempt: int = 1
    cancelled: threading.Event = field(default_factory=threading.Event)
    """Set when the call is cancelled. Tools that run in a thread should check it: nothing else can stop them."""
    progress: Callable[[str], None] = _ignore_progress
    """Reports progress to the listener of the session. It never becomes part of the history."""
    session: object | None = None
    """The session, for tools that spawn subagents."""
    waits_for: str = ""
    """What a tool waits for before it has done anything ("The server was still starting"). A call that is stopped
    while this is set is reported as never started."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a tool returns if a plain value is not enough."""

    content: Content = None
    is_error: bool = False
    result: Any = None
    """The value behind the content, if there is one. It is kept with the result and not shown to the model."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tool:
    """A tool: its definition, how it runs, and what running it means.

    spec: the definition that the model sees: name, description, parameters.
    on_timeout: whether a tool that ran out of time is known to have stopped (`error`) or may have run (`unknown`).
    """

    spec: ToolSpec
    run: Run | None = None
    """None: only a definition. The caller runs it and supplies the result."""
    side_effects: bool = True
    """It is logged before it starts, and never runs twice."""
    idempotent: bool = False
    """It may be retried after an error or a timeout."""
    resources: Resources | None = None
    """Calls that use the same resource run one after another."""
    timeout: float | None = None
    """Seconds; None: the scheduler's."""
    on_timeout: OnTimeout = "unknown"
    approval: bool = False
    """Each run needs an approval."""
    function: Callable[..., Any] | None = None
    """The Python function behind it, if it is a `FunctionTool`."""

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
    """A tool made from a Python function. Calling it calls the function."""

    function: Callable[P, R]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function directly."""
        return self.function(*args, **kwargs)
