"""The formats of rows, and how one is found: by its name, or by what rows look like.

    get("swift"), get("request:anthropic"), get("text:hermes")
    detect(rows)                 # the format of rows, and how sure that is

A format is one file, or a few in a file where they share a form; it is listed in `_PACKAGES`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import islice
from typing import Final

from msgspec import Struct

from toolglot.bulk.example import Row
from toolglot.bulk.formats import (
    agent_session,
    atif,
    datasets,
    hermes,
    messages,
    openai,
    otel,
    session_trace,
    sharegpt,
    stored,
    swift,
    text_calls,
    wire,
)
from toolglot.bulk.formats.format import Format
from toolglot.bulk.formats.model_text import PREFIX as TEXT_PREFIX
from toolglot.bulk.formats.model_text import text_format
from toolglot.bulk.formats.wire import PREFIX as REQUEST_PREFIX
from toolglot.bulk.formats.wire import request_format
from toolglot.errors import InputError, closest_names, unknown_name
from toolglot.protocols.base import names as protocol_names

_MODULES: Final = (
    openai,
    messages,
    sharegpt,
    hermes,
    swift,
    datasets,
    text_calls,
    atif,
    session_trace,
    otel,
    wire,
    stored,
    agent_session,
)
ALIASES: Final = {
    "trl": "messages",
    "axolotl": "messages",
    "huggingface": "messages",
    "openai-ft": "openai",
    "azure": "openai",
    "fireworks": "openai",
    "llamafactory": "sharegpt",
    "llama-factory": "sharegpt",
    "ms-swift": "swift",
    "apigen": "xlam",
    "apigen-mt": "sharegpt",
    "sts": "session-trace",
    "session": "conversation",
    "agent": "agent-session",
    "sessions": "agent-session",
    "dpo": "messages-preference",
}
"""Other names of formats."""

DETECTED_ROWS: Final = 64
"""How many rows are looked at to detect a format."""
DECIDED: Final = 0.9
"""A row is of a form that only one format has if one is so sure."""
CERTAIN: Final = 0.5
"""A format that is less sure than this is not assumed."""


class DetectedFormat(Struct, frozen=True, kw_only=True):
    """The format that rows seem to have.

    name: the format; empty: none is likely.
    confidence: how sure that is, from 0 to 1: the mean of the rows.
    others: other formats that are likely, with how sure.
    """

    name: str = ""
    confidence: float = 0.0
    others: tuple[tuple[str, float], ...] = ()


@cache
def known_formats() -> dict[str, Format]:
    """The formats by name, without those that a name is made for."""
    return {found.name: found for module in _MODULES for found in module.FORMATS}


def get(name: str, *, path: str = "") -> Format:
    """A format by its name: one of `known_formats()`, an alias, `request:NAME` or `text:DIALECT`.

    path: where the name is from, for an error.
    """
    if not isinstance(name, str):
        raise InputError("expected the name of a format", path=path or "format")
    spelled = name.strip().lower().replace("_", "-")
    if spelled.startswith(REQUEST_PREFIX):
        return request_format(REQUEST_PREFIX + name.strip().partition(":")[2])
    if spelled.startswith(TEXT_PREFIX):
        return text_format(TEXT_PREFIX + name.strip().partition(":")[2])
    found = known_formats().get(ALIASES.get(spelled, spelled))
    if found is None:
        hint = f"known: {', '.join(sorted(known_formats()))}, request:PROVIDER, text:DIALECT"
        close = closest_names(name, sorted(known_formats())) or closest_names(name, sorted(ALIASES))
        raise unknown_name("format", name, (), suggestions=close, path=path, hint=hint)
    return found


def readers() -> tuple[Format, ...]:
    """The formats that rows are compared with."""
    known = tuple(found for found in known_formats().values() if found.read is not None)
    return (*known, *(request_format(REQUEST_PREFIX + name) for name in protocol_names()))


def detect(rows: Iterable[Row]) -> DetectedFormat:
    """The format of rows: the one that is most sure of them all.

    A row that several formats write in the same way, as one without calls, says less than one of a form that only one
    format has: if there are such rows, the others only count against a format that cannot read them.
    """
    objects = islice((row for row in rows if isinstance(row, dict)), DETECTED_ROWS)
    found = [{each.name: sure for each in readers() if (sure := each.detect(row))} for row in objects]
    decided = [sures for sures in found if max(sures.values(), default=0.0) >= DECIDED]
    undecided = [sures for sures in found if max(sures.values(), default=0.0) < DECIDED]
    totals: dict[str, tuple[float, int]] = {}
    for name in {name for sures in found for name in sures}:
        counted = [*decided, *(sures for sures in undecided if not decided or name not in sures)]
        totals[name] = sum(sures.get(name, 0.0) for sures in counted), len(counted)
    ranked = sorted(((sum_ / count, name) for name, (sum_, count) in totals.items() if sum_), key=_by_confidence)
    if not ranked:
        return DetectedFormat()
    best, name = ranked[0]
    others = tuple((other, round(sure, 3)) for sure, other in ranked[1:4])
    if best < CERTAIN:
        return DetectedFormat(others=((name, round(best, 3)), *others))
    return DetectedFormat(name=name, confidence=round(best, 3), others=others)


def _by_confidence(each: tuple[float, str]) -> tuple[float, str]:
    return -each[0], each[1]
