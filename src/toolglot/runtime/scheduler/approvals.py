"""Whether a call may run: what is asked, what can be answered, and what counts as an answer.

Law: only a decision that says so lets a call run. A callback that raises, or that answers something else, denies.
What is approved is what runs: the callback gets arguments of its own, and edited ones are validated like any others.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct

from toolglot.conversation import ToolCall
from toolglot.errors import type_name
from toolglot.runtime.tools.values import Tool


class Allow(Struct, frozen=True, tag="allow"):
    """Run it."""


class AllowAlways(Struct, frozen=True, tag="allow_always"):
    """Run it, and do not ask again for this tool in this session."""


class Deny(Struct, frozen=True, tag="deny"):
    """Do not run it; the model is told why."""

    reason: str = ""


class Edit(Struct, frozen=True, tag="edit"):
    """Run it with these arguments; the model is told of them."""

    arguments: dict[str, Any]


Decision = Allow | AllowAlways | Deny | Edit

Approve = Callable[[ToolCall, Tool, dict[str, Any]], Awaitable[Decision]]
"""Asks somebody: the call as the model wrote it, its tool, and the arguments that the tool would get."""

NOBODY: Final = Deny("It needs an approval, and nobody is there to give one.")


def decision_of(answer: object) -> Decision:
    """What a callback answered, if it is a decision; otherwise it is no leave to run."""
    kind = type(answer)  # not its class: what is no decision may do anything when it is asked
    if issubclass(kind, Deny) and not issubclass(type(answer.reason), str):  # type: ignore[attr-defined]
        return Deny()
    if issubclass(kind, Allow | AllowAlways | Deny | Edit):
        return answer  # type: ignore[return-value]
    return Deny(f"The question for approval was answered with a {type_name(answer)}, which is no decision.")


def failed(error: BaseException) -> Deny:
    """What stands for the answer of a callback that raised."""
    return Deny(f"The question for approval failed ({type_name(error)}).")
