"""Whether a call may run: the decisions of an approval callback, and how its answer is read.

Law: only a decision that allows it lets a call run. A callback that raises, or returns anything else, denies. What is
approved is what runs: the callback gets its own copy of the arguments, and edited arguments are validated as usual.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from msgspec import Struct

from toolglot.conversation import ToolCall
from toolglot.errors import type_name
from toolglot.runtime.tools.values import Tool


class Allow(Struct, frozen=True, tag="allow"):
    """Run the call."""


class AllowAlways(Struct, frozen=True, tag="allow_always"):
    """Run the call, and do not ask again for this tool in this session."""


class Deny(Struct, frozen=True, tag="deny"):
    """Do not run the call. The model gets the reason."""

    reason: str = ""


class Edit(Struct, frozen=True, tag="edit"):
    """Run the call with these arguments. The result shows them to the model."""

    arguments: dict[str, Any]


Decision = Allow | AllowAlways | Deny | Edit

Approve = Callable[[ToolCall, Tool, dict[str, Any]], Awaitable[Decision]]
"""Decides about a call. Gets the call as the model wrote it, its tool, and the arguments that the tool would get."""

NO_APPROVER: Final = Deny("It needs approval, and there is no approval callback.")


def read_decision(value: object) -> Decision:
    """The decision that a callback returned. Any other value denies."""
    kind = type(value)  # not its class attribute: what is not a decision may do anything when it is accessed
    if issubclass(kind, Deny) and not issubclass(type(value.reason), str):  # type: ignore[attr-defined]
        return Deny()
    if issubclass(kind, Allow | AllowAlways | Deny | Edit):
        return value  # type: ignore[return-value]
    return Deny(f"The approval callback returned a {type_name(value)}, which is not a decision.")


def denial_after(error: BaseException) -> Deny:
    """The decision when the callback raised."""
    return Deny(f"The approval callback failed ({type_name(error)}).")
