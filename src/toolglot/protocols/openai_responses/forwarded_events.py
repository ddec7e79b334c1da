"""Events of a server of the OpenAI Responses protocol that are forwarded to a client of it.

Law: an event that leaves out nothing keeps its bytes. What is filled is what `envelope.py` says that clients demand.
"""

from __future__ import annotations

from typing import Final

import msgspec

from toolglot.protocols.base import StreamOptions
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.framing.json_line import json_bytes
from toolglot.protocols.framing.text_frames import Frame
from toolglot.protocols.openai_responses.envelope import fill_item, fill_missing, fill_part, settings_of

_WITH_RESPONSE: Final = frozenset(
    f"response.{status}" for status in ("created", "queued", "in_progress", "completed", "incomplete", "failed")
)
_STATUSES: Final = {"response.output_item.added": "in_progress", "response.output_item.done": "completed"}
_WITH_PART: Final = frozenset({"response.content_part.added", "response.content_part.done"})
_FILLABLE: Final = _WITH_RESPONSE | frozenset(_STATUSES) | _WITH_PART
_DELTA: Final = b'"delta"'


class FrameFiller:
    """Fills what the events of a server of this protocol leave out, for a client to which they are forwarded.

    Only events that hold a response, an item or a part are read, never a delta.
    """

    def __init__(self, options: StreamOptions) -> None:
        self._options = options
        self._settings = settings_of(options.settings)

    def fill(self, frame: Frame) -> bytes | None:
        """The event with what it leaves out; None: it leaves out nothing."""
        if frame.name not in _FILLABLE and (frame.name or _DELTA in frame.data):
            return None
        try:
            event = msgspec.json.decode(frame.data)
        except msgspec.DecodeError:
            return None
        filled = self._fill_event(event) if type(event) is dict else None
        if filled is None:
            return None
        name = b"event: %b\n" % frame.name.encode() if frame.name else b""
        return b"%bdata: %b\n\n" % (name, json_bytes(filled))

    def _fill_event(self, event: Fields) -> Fields | None:
        kind = event.get("type")
        if kind in _WITH_RESPONSE and type(event.get("response")) is dict:
            key, whole = "response", self._fill_response(event["response"])
        elif kind in _STATUSES:
            key, whole = "item", fill_item(event.get("item"), _STATUSES[kind])
        elif kind in _WITH_PART:
            key, whole = "part", fill_part(event.get("part"))
        else:
            return None
        return None if whole is event.get(key) else {**event, key: whole}

    def _fill_response(self, response: Fields) -> Fields:
        # A response without `created_at` is never forwarded, so that only its end needs a time.
        return fill_missing(self._settings, response, end_time(self._options))


def end_time(options: StreamOptions) -> int:
    """The time when a reply ended, as far as it is known."""
    return options.clock() if options.clock is not None else options.created
