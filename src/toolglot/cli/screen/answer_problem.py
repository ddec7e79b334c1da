"""Why there is no whole answer, in the words of the command line: what, and what to do."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Failure
from toolglot.errors import InputError
from toolglot.runtime.session.events import Answer, Stop

_STOPS: Final[dict[Stop, tuple[str, str]]] = {
    "length": ("the answer was cut off at the longest that the model may write", "ask it to go on"),
    "filter": ("the provider withheld the answer, for its content", "say it otherwise"),
    "loop_limit": ("the model called tools until it was stopped", "allow more with --max-turns, or let it go on"),
    "budget": ("the limit in money is reached", "allow more with --max-cost"),
    "calls_open": ("the model called tools that nothing here runs", "give the tools a function"),
}

_HINTS: Final = {
    "auth": "check the key of this provider",
    "permission": "check what the key of this provider allows",
    "not_found": "check the model's name; --model names another",
    "rate_limit": "wait, or name another model with --fallback",
    "overloaded": "try again, or name another model with --fallback",
    "timeout": "try again, or name another model with --fallback",
    "server": "try again, or name another model with --fallback",
    "quota": "add credit with this provider, or name another model",
}


_UNREACHED: Final = "cannot be reached"
"""How a failure begins where there was no connection."""


def problem_of(answer: Answer, *, at_prompt: bool = False) -> InputError | None:
    """What is wrong with an answer; None: nothing, or it was cancelled. `at_prompt`: what to do is done in a chat."""
    if answer.stop == "failed":
        return _failed(answer.failure or Failure("server"), answer.model, at_prompt=at_prompt)
    found = _STOPS.get(answer.stop)
    return InputError(found[0], path=answer.model, hint=found[1]) if found is not None else None


def _failed(failure: Failure, model: str, *, at_prompt: bool) -> InputError:
    if failure.kind == "unreachable":
        _, _, why = failure.message.partition(_UNREACHED)
        other = "/model NAME asks another model" if at_prompt else "name another model with --model or --fallback"
        return InputError(f"its host {_UNREACHED}{why}", path=model, hint=other)
    status = f" {failure.status}" if failure.status is not None else ""
    said = f": {failure.message}" if failure.message else ""
    hint = _HINTS.get(failure.kind, "")
    if at_prompt:
        hint = hint.replace("--model names another", "/model NAME asks another one")
        hint = hint.replace("name another model with --fallback", "/model NAME asks another model")
    return InputError(f"{failure.kind}{status}{said}", path=model, hint=hint)
