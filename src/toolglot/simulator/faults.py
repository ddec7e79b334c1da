"""What can go wrong on order, and how it is ordered.

    429,retry_after=3        reset,after=2        text_dialect,dialect=hermes

The first word names the fault, the rest says how. An order comes from a rule of the script, from the header
`x-simulate: fault=reset, after=2` of a request, from the command line or from the fixture.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from toolglot.errors import InputError, quote

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

CHAT_ONLY: Final = frozenset({"index_zero", "no_index", "repeated_names"})
STREAM_ONLY: Final = frozenset({"no_end", "malformed_event", "error_event", *CHAT_ONLY})


def read_fault(order: str, path: str = "fault") -> Fault:
    """A fault as it was ordered."""
    name, _, rest = order.strip().removeprefix("fault=").partition(",")
    known = name.strip()
    if known not in FAULTS:
        raise InputError(f"there is no fault {quote(known)}", path=path, hint=f"one of {', '.join(FAULTS)}")
    fields = settings(rest, path)
    seconds = fields.pop("seconds", "0.01" if known == "slow_drip" else str(LONGEST_WAIT))
    retry = fields.pop("retry_after", "")
    fault = Fault(
        name=known,
        after=int(number(fields.pop("after", "2"), path, LARGEST)),
        seconds=number(seconds, path, LONGEST_WAIT),
        retry_after=number(retry, path, LARGEST) if retry else None,
        dialect=fields.pop("dialect", "hermes"),
    )
    if fields:
        raise InputError(
            f"a fault has no {quote(next(iter(fields)))}", path=path, hint="after, seconds, retry_after, dialect"
        )
    return fault


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


def number(text: str, path: str, most: float) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= most:
        raise InputError(f"expected a number from 0 to {most:.0f}, got {quote(text)}", path=path)
    return value


def misfit(fault: Fault, protocol: str, *, stream: bool) -> str:
    """Why a fault cannot happen to an answer; empty if it can."""
    if fault.name in CHAT_ONLY and protocol != "openai_chat":
        return f"the fault {fault.name} is one of Chat Completions only"
    if fault.name in STREAM_ONLY and not stream:
        return f"the fault {fault.name} is one of streams only"
    return ""
