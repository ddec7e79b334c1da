"""Why a reply is missing or incomplete, as an error with a hint for the command line."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Failure
from toolglot.errors import InputError
from toolglot.runtime.session.events import RunResult, Stop

_STOPS: Final[dict[Stop, tuple[str, str]]] = {
    "length": ("the reply was truncated at the model's output limit", "ask it to continue"),
    "filter": ("the provider withheld the reply because of its content", "rephrase the prompt"),
    "loop_limit": ("the model kept calling tools until the limit on turns", "raise --max-turns, or let it continue"),
    "budget": ("the cost limit is reached", "raise --max-cost"),
    "calls_open": ("the model called tools that have no function", "add a function to each tool"),
}

_HINTS: Final = {
    "auth": "check the key of this provider",
    "permission": "check the permissions of this provider's key",
    "not_found": "check the model's name, or choose another with --model",
    "rate_limit": "wait, or set another model with --fallback",
    "overloaded": "try again, or set another model with --fallback",
    "timeout": "try again, or set another model with --fallback",
    "server": "try again, or set another model with --fallback",
    "quota": "add credit with this provider, or choose another model",
}


_UNREACHED: Final = "cannot be reached"
"""In the message of a failed connection."""


def problem_of(answer: RunResult, *, in_chat: bool = False) -> InputError | None:
    """The problem with a reply; None if it is complete or was cancelled. `in_chat`: hints name chat commands."""
    if answer.stop == "failed":
        return _failure_problem(answer.failure or Failure("server"), answer.model, in_chat=in_chat)
    found = _STOPS.get(answer.stop)
    return InputError(found[0], path=answer.model, hint=found[1]) if found is not None else None


def _failure_problem(failure: Failure, model: str, *, in_chat: bool) -> InputError:
    if failure.kind == "unreachable":
        _, _, why = failure.message.partition(_UNREACHED)
        other = "switch with /model NAME" if in_chat else "choose another model with --model or --fallback"
        return InputError(f"the host {_UNREACHED}{why}", path=model, hint=other)
    status = f" {failure.status}" if failure.status is not None else ""
    detail = f": {failure.message}" if failure.message else ""
    hint = _HINTS.get(failure.kind, "")
    if in_chat:
        hint = hint.replace("choose another with --model", "switch with /model NAME")
        hint = hint.replace("set another model with --fallback", "switch with /model NAME")
    return InputError(f"{failure.kind}{status}{detail}", path=model, hint=hint)
