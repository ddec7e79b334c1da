"""The faults that can be injected, and how a fault is written.

    429        429,retry_after=3        reset,after=2        {"kind": "text_dialect", "dialect": "hermes"}

The first word names the fault, the rest are its options. A fault comes from a rule of the script, from the header
`x-simulate: fault=reset, after=2` of a request, from the command line or from the fixture. Law: what is not understood
in full is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from toolglot.errors import InputError, closest_names, quote
from toolglot.simulator.scripts.text_calls import DIALECTS

MAX_WAIT: Final = 600.0
MAX_NUMBER: Final = 1_000_000


class Fault(Struct, frozen=True, kw_only=True):
    """Something that goes wrong."""

    name: str
    after: int = 2
    """Events that are sent before it happens, if it happens within a reply."""
    seconds: float = MAX_WAIT
    """How long a timeout takes, and how long a slow drip takes for a byte."""
    retry_after: float | None = None
    dialect: str = "hermes"


FaultSpec = str | int | Mapping[str, Any] | Fault
"""A fault as users write it: its name or status, with or without options, or an object with its `kind`."""

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
"""Faults that are a reply of this status, and their kind of failure."""

FAULTS: Final = {
    **{status: f"a reply of status {status}" for status in STATUSES},
    "context_overflow": "the prompt is too long for the model",
    "timeout": "no reply for `seconds`, then one of status 504",
    "slow_drip": "the reply one byte at a time, `seconds` apart (default 0.01)",
    "reset": "the connection breaks `after` that many events",
    "no_end": "the stream ends without its last events",
    "truncated_call": "the reply is cut by length in the middle of its last call",
    "malformed_arguments": "the arguments of the last call are not JSON",
    "malformed_event": "an event of the stream, `after` that many, is not JSON",
    "wrong_stop": "the finish reason is `stop` although there are calls, or the other way round",
    "index_zero": "all calls of a stream have the index 0 (Chat Completions)",
    "no_index": "no call of a stream has an index (Chat Completions)",
    "repeated_names": "each delta of a call repeats its name and id (Chat Completions)",
    "empty_ids": "the calls have an empty id",
    "text_dialect": "calls are written as text, in a `dialect`",
    "error_event": "the stream ends with the provider's error event, `after` that many events",
    "empty": "the model says nothing",
}
"""Every fault, with its description."""

OPTIONS: Final = {
    **dict.fromkeys(STATUSES, "retry_after"),
    **dict.fromkeys(("timeout", "slow_drip"), "seconds"),
    **dict.fromkeys(("reset", "malformed_event", "error_event"), "after"),
    "text_dialect": "dialect",
}
"""The option of a fault, if it has one."""

UNANSWERED: Final = frozenset({*STATUSES, "context_overflow", "timeout", "reset", "error_event"})
"""Faults that leave no reply: a retry gets the reply that the first attempt should have got."""
CHAT_ONLY: Final = frozenset({"index_zero", "no_index", "repeated_names"})
STREAM_ONLY: Final = frozenset({"no_end", "malformed_event", "error_event", *CHAT_ONLY})


def read_fault(spec: FaultSpec, path: str = "fault") -> Fault:
    """Read and check a fault."""
    if isinstance(spec, Fault):
        spec = _spec_of(spec)
    name, options = _parts(spec, path)
    if name not in FAULTS:
        raise InputError(f"unknown fault {quote(name)}", path=path, hint=names_hint(name, FAULTS))
    own = OPTIONS.get(name, "")
    for option in options:
        if option != own:
            hint = f"its only option is {own}" if own else "it has no options"
            raise InputError(f"the fault {name} has no option {quote(option)}", path=path, hint=hint)
    at = f"{path}.{own}"
    retry = options.get("retry_after")
    return Fault(
        name=name,
        after=integer(options.get("after", 2), at),
        seconds=number(options.get("seconds", 0.01 if name == "slow_drip" else MAX_WAIT), at, MAX_WAIT),
        retry_after=None if retry is None else number(retry, at),
        dialect=_dialect(options.get("dialect", "hermes"), at),
    )


def _spec_of(fault: Fault) -> Mapping[str, Any]:
    """This fault as users write it, without the options that it does not have."""
    own = OPTIONS.get(fault.name, "")
    options = {"kind": fault.name, own: getattr(fault, own or "name")}
    return {key: value for key, value in options.items() if key and value is not None}


def _parts(spec: object, path: str) -> tuple[str, dict[str, Any]]:
    """The name of a fault and its options."""
    if isinstance(spec, str):
        name, _, rest = spec.strip().removeprefix("fault=").partition(",")
        return name.strip(), parse_settings(rest, path)
    if isinstance(spec, Mapping):
        options = dict(spec)
        kind = options.pop("kind", None)
        if type(kind) not in (str, int):
            hint = 'such as {"kind": "reset", "after": 2}'
            raise InputError("a fault needs its kind", path=f"{path}.kind", hint=hint)
        return str(kind).strip(), {str(key): value for key, value in options.items()}
    if type(spec) is int:
        return str(spec), {}
    hint = 'such as 429, "reset,after=2" or {"kind": "reset", "after": 2}'
    raise InputError(f"expected a fault, got {quote(spec)}", path=path, hint=hint)


def _dialect(name: object, path: str) -> str:
    if not isinstance(name, str) or name not in DIALECTS:
        raise InputError(f"unknown dialect {quote(name)}", path=path, hint=names_hint(name, DIALECTS))
    return name


def parse_settings(text: str, path: str) -> dict[str, str]:
    """`key=value` pairs, separated by commas or semicolons."""
    fields: dict[str, str] = {}
    for part in text.replace(";", ",").split(","):
        key, is_pair, value = part.strip().partition("=")
        if part.strip() and not is_pair:
            raise InputError(f"expected key=value, got {quote(part.strip())}", path=path)
        if is_pair:
            fields[key.strip().replace("-", "_")] = value.strip()
    return fields


def number(value: object, path: str, maximum: float = MAX_NUMBER, minimum: int = 0) -> float:
    """A number within bounds, from a script or from a string."""
    try:
        found = float(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else -1.0
    except (ValueError, OverflowError):
        found = -1.0
    if not minimum <= found <= maximum:
        raise InputError(f"expected a number from {minimum} to {maximum:.0f}, got {quote(value)}", path=path)
    return found


def integer(value: object, path: str, maximum: float = MAX_NUMBER, minimum: int = 0) -> int:
    found = number(value, path, maximum, minimum)
    if found != int(found):
        raise InputError(f"expected an integer from {minimum} to {maximum:.0f}, got {quote(value)}", path=path)
    return int(found)


def names_hint(name: object, known: Iterable[str]) -> str:
    """A hint: the names that are possible, and the closest."""
    names = list(known)
    close = closest_names(str(name), names) if isinstance(name, str | int) else ()
    suggestion = f"did you mean {close[0]}? " if close else ""
    return f"{suggestion}one of {', '.join(names)}"
