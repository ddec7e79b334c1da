"""What a reply cost, in the two ways that several protocols share.

Anthropic and Bedrock count what came from a cache and what was written to it beside the other input; all of it is the
canonical input. They also say for how long it was written, which has its own price. Chat Completions and Responses have
such counts inside of the details of another.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec.structs import replace

from toolglot.conversation import Extra, Form, Usage
from toolglot.protocols.fields.reading import Fields, held_or_none, optional, present, rest_of, with_rest


class CountNames(NamedTuple):
    """What a protocol calls the counts that stand beside each other."""

    input: str
    output: str
    cache_read: str
    cache_write: str


def read_split(
    fields: Fields, names: CountNames, extra: Extra | None, reasoning: int | None = None, form: Form | None = None
) -> Usage:
    fresh = optional(fields, names.input, int)
    read, written = optional(fields, names.cache_read, int), optional(fields, names.cache_write, int)
    whole = None if fresh is None else fresh + (read or 0) + (written or 0)
    return Usage(whole, optional(fields, names.output, int), read, written, reasoning, extra, form)


def write_split(usage: Usage, names: CountNames) -> Fields:
    if usage.cache_read_tokens is None and usage.cache_write_tokens is None:
        counted = {names.input: usage.input_tokens, names.output: usage.output_tokens}
        return counted if None not in counted.values() else present(counted)
    cached = (usage.cache_read_tokens or 0) + (usage.cache_write_tokens or 0)
    fresh = None if usage.input_tokens is None else usage.input_tokens - cached
    counts = (fresh, usage.output_tokens, usage.cache_read_tokens, usage.cache_write_tokens)
    return present(dict(zip(names, counts, strict=True)))


def with_hour_writes(usage: Usage, count: object) -> Usage:
    """The usage with what was written for an hour: at most all that was written."""
    if type(count) is not int or count < 0 or usage.cache_write_tokens is None:
        return usage
    return replace(usage, cache_write_1h_tokens=min(count, usage.cache_write_tokens))


def split_writes(usage: Usage) -> tuple[int | None, int]:
    """What was written for an hour, and for five minutes; None: the provider did not say."""
    hour = usage.cache_write_1h_tokens
    return hour, max((usage.cache_write_tokens or 0) - (hour or 0), 0)


def read_details(fields: Fields, key: str, *names: str) -> tuple[list[int | None], Fields | None]:
    """Counts that stand in the details of another, and what is left over of them; None if there are none."""
    found = held_or_none(
        fields,
        key,
        lambda inner: ([optional(inner, name, int) for name in names], rest_of(inner, frozenset(names)) or {}),
    )
    return ([None] * len(names), None) if found is None else found


def write_details(counts: Fields, rest: Fields | None) -> Fields | None:
    """The details, if there is one or if there were some."""
    written = present(counts)
    return with_rest(written, rest) if written or rest is not None else None
