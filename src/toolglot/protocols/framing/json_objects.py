"""Parses the JSON object of a frame with care: for all events except plain deltas.

Law: nothing that a provider sends raises an error here, except a limit. What is not an object is reported and left out.
The total size is bounded, since decoders keep some of it until the end.
"""

from __future__ import annotations

from toolglot import jsontext
from toolglot.errors import InputError, LimitError
from toolglot.limits import Limits
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.event_builder import CORRUPT_EVENT, EventBuilder


class ObjectReader:
    """Reads the frames of one stream."""

    def __init__(self, builder: EventBuilder, limits: Limits) -> None:
        self._builder = builder
        self._limits = limits
        self._left = limits.max_bytes

    def read(self, data: bytes) -> Fields | None:
        self._left -= len(data)
        if self._left < 0:
            raise LimitError(
                f"the stream is longer than the limit of {self._limits.max_bytes} (max_bytes)",
                hint="raise max_bytes of the limits",
            )
        try:
            parsed = jsontext.parse(data, limits=self._limits)
        except LimitError:
            raise
        except InputError:
            if self._builder.loses_content(data):
                self._builder.fail(CORRUPT_EVENT)
            else:
                self._builder.report("a part of the stream is not JSON; it was left out")
            return None
        for repair in parsed.repairs:
            self._builder.report_fix(repair)
        value = parsed.value
        if type(value) is list and len(value) == 1:
            value = value[0]  # errors come like that
        if type(value) is dict:
            return value
        self._builder.report("a part of the stream is not an object; it was left out")
        return None
