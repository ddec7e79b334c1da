"""The errors of OpenAI about stored responses and items.

Messages, codes and parameters are OpenAI's own: clients look for them, and begin a new conversation when they find
`previous_response_not_found`.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import Failure
from toolglot.protocols.errors.failures import ProviderError
from toolglot.protocols.openai_responses import errors

_MAX_LENGTH: Final = 200
_ENDED: Final = ("completed", "failed")


class MissingError(ProviderError):
    """What a request refers to is not stored here."""


def missing_previous(id: str) -> MissingError:
    text = f"Previous response with id '{id[:_MAX_LENGTH]}' not found."
    return MissingError(_failure(400, text, "previous_response_id", "previous_response_not_found"))


def missing_response(id: str) -> MissingError:
    return MissingError(_failure(404, f"Response with id '{id[:_MAX_LENGTH]}' not found."))


def missing_conversation(id: str) -> MissingError:
    return MissingError(_failure(404, f"Conversation with id '{id[:_MAX_LENGTH]}' not found."))


def long_conversation(id: str) -> ProviderError:
    text = f"The conversation '{id[:_MAX_LENGTH]}' is larger than what is stored. Begin a new one."
    return invalid("conversation", text)


def two_histories() -> ProviderError:
    text = "Mutually exclusive parameters: 'previous_response_id' and 'conversation'. Send only one of them."
    return invalid("conversation", text)


def in_conversation(id: str) -> ProviderError:
    text = f"The previous response belongs to a conversation: send conversation '{id[:_MAX_LENGTH]}' instead."
    return invalid("previous_response_id", text)


def missing_item(id: str, param: str = "input", *, stores: bool = True) -> MissingError:
    text = f"Item with id '{id[:_MAX_LENGTH]}' not found."
    if not stores:
        text += (
            " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this"
            " item from your input."
        )
    return MissingError(_failure(404, text, param))


def missing_compaction(mark: str) -> MissingError:
    """The summary of a compaction that the gateway made is gone. OpenAI has no such error."""
    text = (
        f"The summary of the compaction item '{mark[:_MAX_LENGTH]}' is not known here: it has expired, was made for "
        "another key, or by another gateway. Send the conversation without that item, or begin a new one."
    )
    return MissingError(_failure(400, text, "input", "compaction_not_found"))


def repeated_item(id: str) -> ProviderError:
    text = f"Duplicate item found with id {id[:_MAX_LENGTH]}. Remove duplicate items from your input and try again."
    return invalid("input", text)


def too_long(what: str) -> ProviderError:
    text = f"The conversation that this request continues has more than {what}, the maximum that is stored."
    return invalid("previous_response_id", f"{text} Send its items as input, without previous_response_id.")


def not_cancelled(body: dict[str, Any]) -> ProviderError:
    """Only what runs in the background can be cancelled, and only while it runs."""
    status = body.get("status")
    text = "Cannot cancel a synchronous response."
    if body.get("background") is True:
        text = f"Cannot cancel a {status if status in _ENDED else 'finished'} response."
    return invalid("response_id", text)


def not_streamed() -> ProviderError:
    return invalid("stream", "This response cannot be streamed because it was not created with background=true.")


def invalid(param: str, message: str) -> ProviderError:
    return ProviderError(_failure(400, message, param))


def _failure(status: int, message: str, param: str | None = None, code: str | None = None) -> Failure:
    """A failure with exactly this message: it is read from the body that OpenAI would send."""
    body = {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}
    failure = errors.decode(status, body)
    assert failure is not None  # noqa: S101 - an error status always is one
    return failure
