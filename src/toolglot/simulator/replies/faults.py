"""What can go wrong on order, and how it is ordered.

    429        429,retry_after=3        reset,after=2        {"kind": "text_dialect", "dialect": "hermes"}

The first word names the fault, the rest says how. An order comes from a rule of the script, from the header
`x-simulate: fault=reset, after=2` of a request, from the command line or from the fixture. Law: an order that would be
understood in part is refused.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from toolglot.errors import InputError, quote
from toolglot.simulator.scripts.text_calls import DIALECTS

LONGEST_WAIT: Final = 600.0
LARGEST: Final = 1_000_000


class Fault(Struct, frozen=True, kw_only=True):
    """Something that goes wrong."""

    name: str
    after: int = 2
    """Events that are sent before it happens, where it happens in the middle."""
    seconds: float = LONGEST_WAIT
    """How long a hanging server hangs, and how long a dripping one takes for a byte."""
    retry_after: float | None = None
    dialect: str = "hermes"


Order = str | int | Mapping[str, Any] | Fault
"""A fault as it can be ordered: its name or status, with or without options, or an object with its `kind`."""

STATUSES: Final = {
    "400": "bad_request",
    "401": "auth",
    "403": "permission",
    "404": "not_found",
    "413": "too_large",
    "429": "rate_limit",
    "500": "server",
    "503": "overloaded",
    "504": "timeout",
    "529": "overloaded",
}
"""Faults that are an answer of this status, and the kind of failure that it is."""

FAULTS: Final = {
    **{status: f"an answer of status {status}" for status in STATUSES},
    "context_overflow": "the prompt is said to be too long",
    "timeout": "no answer at all for so many `seconds`, then one of status 504",
    "slow_drip": "the answer a byte at a time, with so many `seconds` between them (0.01 unless told)",
    "reset": "the connection breaks `after` so many events",
    "no_end": "the stream ends without its last events",
    "truncated_call": "the answer is cut by length in the middle of its last call",
    "malformed_arguments": "the arguments of the last call are not JSON",
    "malformed_event": "an event of the stream, the one `after` so many, is not JSON",
    "wrong_stop": "the answer says that it stopped although it calls, or that it calls although it does not",
    "index_zero": "all calls of a stream have the index 0 (Chat Completions)",
    "no_index": "no call of a stream has an index (Chat Completions)",
    "repeated_names": "each delta of a call says its name and id again (Chat Completions)",
    "empty_ids": "the calls have an empty id",
    "text_dialect": "calls are written as text, in a `dialect`",
    "error_event": "the stream breaks off with the provider's error event, `after` so many events",
    "empty": "the model says nothing",
}
"""Every fault and what it is."""

OPTIONS: Final = {
    **dict.fromkeys(STATUSES, "retry_after"),
    **dict.fromkeys(("timeout", "slow_drip"), "seconds"),
    **dict.fromkeys(("reset", "malformed_event", "error_event"), "after"),
    "text_dialect": "dialect",
}
"""The option of a fault, where it has one."""

UNANSWERED: Final = frozenset({*STATUSES, "context_overflow", "timeout", "reset", "error_event"})
"""Faults after which nothing was answered: who tries again gets what the first try should have got."""
CHAT_ONLY: Final = frozenset({"index_zero", "no_index", "repeated_names"})
STREAM_ONLY: Final = frozenset({"no_end", "malformed_event", "error_event", *CHAT_ONLY})


def read_fault(order: Order, path: str = "fault") -> Fault:
    """A fault as it was ordered."""
    if isinstance(order, Fault):
        order = _order_of(order)
    name, options = _parts(order, path)
    if name not in FAULTS:
        raise InputError(f"there is no fault {quote(name)}", path=path, hint=one_of(name, FAULTS))
    own = OPTIONS.get(name, "")
    for given in options:
        if given != own:
            hint = f"it takes {own} only" if own else "it takes no options"
            raise InputError(f"the fault {name} has no option {quote(given)}", path=path, hint=hint)
    at = f"{path}.{own}"
    retry = options.get("retry_after")
    return Fault(
        name=name,
        after=whole(options.get("after", 2), at),
        seconds=number(options.get("seconds", 0.01 if name == "slow_drip" else LONGEST_WAIT), at, LONGEST_WAIT),
        retry_after=None if retry is None else number(retry, at),
        dialect=_dialect(options.get("dialect", "hermes"), at),
    )


def _order_of(fault: Fault) -> Mapping[str, Any]:
    """The order that gives this fault: what it does not use is left out."""
    own = OPTIONS.get(fault.name, "")
    given = {"kind": fault.name, own: getattr(fault, own or "name")}
    return {key: value for key, value in given.items() if key and value is not None}


def _parts(order: object, path: str) -> tuple[str, dict[str, Any]]:
    """The name of a fault and its options."""
    if isinstance(order, str):
        name, _, rest = order.strip().removeprefix("fault=").partition(",")
        return name.strip(), settings(rest, path)
    if isinstance(order, Mapping):
        options = dict(order)
        kind = options.pop("kind", None)
        if type(kind) not in (str, int):
            hint = 'such as {"kind": "reset", "after": 2}'
            raise InputError("an order has the kind of its fault", path=f"{path}.kind", hint=hint)
        return str(kind).strip(), {str(key): value for key, value in options.items()}
    if type(order) is int:
        return str(order), {}
    hint = 'such as 429, "reset,after=2" or {"kind": "reset", "after": 2}'
    raise InputError(f"expected a fault, got {quote(order)}", path=path, hint=hint)


def _dialect(name: object, path: str) -> str:
    if not isinstance(name, str) or name not in DIALECTS:
        raise InputError(f"there is no dialect {quote(name)} here", path=path, hint=one_of(name, DIALECTS))
    return name


def settings(text: str, path: str) -> dict[str, str]:
    """`key=value` pairs with commas or semicolons between them."""
    fields: dict[str, str] = {}
    for part in text.replace(";", ",").split(","):
        key, is_pair, value = part.strip().partition("=")
        if part.strip() and not is_pair:
            raise InputError(f"expected key=value, got {quote(part.strip())}", path=path)
        if is_pair:
            fields[key.strip().replace("-", "_")] = value.strip()
    return fields


def number(value: object, path: str, most: float = LARGEST, least: int = 0) -> float:
    """A number within its bounds, of a script or of a text."""
    try:
        found = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    except (ValueError, OverflowError):
        found = -1.0
    if not least <= found <= most:
        raise InputError(f"expected a number from {least} to {most:.0f}, got {quote(value)}", path=path)
    return found


def whole(value: object, path: str, most: float = LARGEST, least: int = 0) -> int:
    """A number without a fraction."""
    found = number(value, path, most, least)
    if found != int(found):
        raise InputError(f"expected a whole number from {least} to {most:.0f}, got {quote(value)}", path=path)
    return int(found)


def one_of(given: object, known: Iterable[str]) -> str:
    """A hint: what may stand here, and what was probably meant."""
    names = list(known)
    close = difflib.get_close_matches(str(given)[:80], names, n=1) if isinstance(given, str | int) else []
    meant = f"did you mean {close[0]}? " if close else ""
    return f"{meant}one of {', '.join(names)}"


def misfit(fault: Fault, protocol: str, *, stream: bool) -> str:
    """Why a fault cannot happen to an answer; empty if it can."""
    if fault.name in CHAT_ONLY and protocol != "openai_chat":
        return f"the fault {fault.name} is one of Chat Completions only"
    if fault.name in STREAM_ONLY and not stream:
        return f"the fault {fault.name} is one of streams only"
    return ""
