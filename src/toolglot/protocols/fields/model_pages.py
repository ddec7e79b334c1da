"""Pages of a list of models: the parameters with which clients ask for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from toolglot.conversation import Failure
from toolglot.protocols.errors.failures import ProviderError

EPOCH: Final = "1970-01-01T00:00:00Z"
"""The creation time of a model, in lists that require one. It is unknown."""
MAX_PAGE: Final = 1_000


def page_size(query: Mapping[str, str], parameter: str, *, default: int, zero_is_default: bool = False) -> int:
    value = query.get(parameter, "")
    if not value or (zero_is_default and value == "0"):
        return default
    if not (value.isascii() and value.isdigit()) or not 1 <= int(value[:9]) <= MAX_PAGE:
        message = f"{parameter}: expected a whole number from 1 to {MAX_PAGE}"
        raise ProviderError(Failure("bad_request", message, 400, param=parameter))
    return int(value)


def model_index(names: Sequence[str], name: str, parameter: str) -> int:
    try:
        return names.index(name)
    except ValueError:
        message = f"{parameter}: there is no such model here"
        raise ProviderError(Failure("bad_request", message, 400, param=parameter)) from None
