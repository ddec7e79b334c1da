"""Content parts of the OpenAI Responses protocol, both ways. Messages and tool outputs are made of them.

A refusal is a text, so that every client can show it; a note lets it return as what it was.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import Block, Media, Opaque, Text
from toolglot.protocols.fields.media import audio_format, audio_type, data_url, image_detail, read_data_url
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    expected,
    held,
    leftover,
    note,
    noted,
    optional,
    present,
    required,
    restored,
)

PROTOCOL: Final = "openai_responses"

INPUT: Final = "input_text"
OUTPUT: Final = "output_text"
"""What a text part is called: in assistant messages, and everywhere else."""

Part = Text | Media | Opaque

_TEXT = frozenset({"type", "text"})
_REFUSAL = frozenset({"type", "refusal"})
_IMAGE = frozenset({"type", "image_url", "file_id"})
_DETAILED_IMAGE = _IMAGE | {"detail"}
_FILE = frozenset({"type", "file_data", "file_url", "file_id", "filename"})
_AUDIO = frozenset({"type", "input_audio"})
_AUDIO_FORMATS: Final = frozenset({"mp3", "wav"})


def read_content(content: Any, text_type: str, path: str = ".content") -> tuple[Part, ...]:
    """Content written as a string or as parts."""
    if type(content) is str:
        return (Text(content),)
    if type(content) is not list:
        raise expected("a string or an array of parts", content, path)
    return tuple(each(content, lambda fields: _read_part(fields, text_type), path))


def _read_part(fields: Fields, text_type: str) -> Part:
    kind = required(fields, "type", str)
    part: Part | None = None
    if kind in (INPUT, OUTPUT):
        extra = noted(leftover(fields, _TEXT, PROTOCOL), PROTOCOL, type=None if kind == text_type else kind)
        return Text(required(fields, "text", str), extra=extra)
    if kind == "refusal":
        extra = noted(leftover(fields, _REFUSAL, PROTOCOL), PROTOCOL, refusal=True)
        return Text(required(fields, "refusal", str), extra=extra)
    if kind == "input_image":
        part = _read_image(fields)
    elif kind == "input_file":
        part = _read_file(fields)
    elif kind == "input_audio":
        part = _read_audio(fields)
    return part or Opaque(PROTOCOL, fields, kind, extra={PROTOCOL: {"~part": True}})


def _read_image(fields: Fields) -> Media | None:
    address, file_id = optional(fields, "image_url", str), optional(fields, "file_id", str)
    if address is None and file_id is None:
        return None
    inline, detail = read_data_url(address or ""), image_detail(fields)
    known = _IMAGE if detail is None else _DETAILED_IMAGE
    return Media(
        "image",
        media_type=inline[0] if inline else "",
        data=inline[1] if inline else None,
        url=None if inline else address,
        file_id=file_id,
        extra=noted(leftover(fields, known, PROTOCOL), PROTOCOL, no_detail=None if "detail" in fields else True),
        detail=detail,
    )


def _read_file(fields: Fields) -> Media | None:
    data, address = optional(fields, "file_data", str), optional(fields, "file_url", str)
    file_id, name = optional(fields, "file_id", str), optional(fields, "filename", str)
    if data is None and address is None and file_id is None:
        return None
    inline = read_data_url(data or "")
    bare = True if data is not None and inline is None else None
    return Media(
        "document" if inline and inline[0] == "application/pdf" else "file",
        media_type=inline[0] if inline else "",
        data=inline[1] if inline else data,
        url=address,
        file_id=file_id,
        name=name,
        extra=noted(leftover(fields, _FILE, PROTOCOL), PROTOCOL, bare=bare),
    )


def _read_audio(fields: Fields) -> Media | None:
    def read(sound: Fields) -> Media | None:
        data, form = optional(sound, "data", str), optional(sound, "format", str)
        if data is None or form not in _AUDIO_FORMATS or len(sound) > 2:
            return None
        return Media("audio", audio_type(form), data=data, extra=leftover(fields, _AUDIO, PROTOCOL))

    return held(fields, "input_audio", read)


# --- writing ----------------------------------------------------------------------------------------


def write_part(block: Block, text_type: str) -> Fields | None:
    """A block as a part; None if there is no part for it."""
    if isinstance(block, Text):
        if is_refusal(block):
            return restored({"type": "refusal", "refusal": block.text}, block.extra, PROTOCOL)
        fields: Fields = {"type": note(block.extra, PROTOCOL, "type") or text_type, "text": block.text}
        return restored(fields, block.extra, PROTOCOL)
    if isinstance(block, Media):
        return _write_media(block)
    if isinstance(block, Opaque) and is_part(block):
        value: Fields = block.value
        return value
    return None


def is_refusal(block: Text) -> bool:
    return note(block.extra, PROTOCOL, "refusal") is not None


def is_part(block: Opaque) -> bool:
    """Whether something unknown stood inside a message or an output, rather than among the items."""
    return block.protocol == PROTOCOL and note(block.extra, PROTOCOL, "part") is not None


def _write_media(media: Media) -> Fields | None:
    if media.kind == "audio":
        return _write_audio(media)
    if media.kind == "video":
        return None
    inline = None if media.data is None else data_url(media.media_type, media.data)
    if media.kind == "image":
        fields = {"type": "input_image", "image_url": inline or media.url, "file_id": media.file_id}
    else:
        bare = note(media.extra, PROTOCOL, "bare")
        fields = {
            "type": "input_file",
            "file_data": media.data if bare else inline,
            "file_url": media.url,
            "file_id": media.file_id,
            "filename": media.name,
        }
    written = present(fields)
    if len(written) == 1:
        return None
    if media.detail is not None and media.kind == "image":
        written["detail"] = media.detail
    elif media.kind == "image" and not note(media.extra, PROTOCOL, "no_detail"):
        written["detail"] = (media.extra or {}).get(PROTOCOL, {}).get("detail", "auto")
    return restored(written, media.extra, PROTOCOL)


def _write_audio(media: Media) -> Fields | None:
    if media.data is None:
        return None
    sound = {"data": media.data, "format": audio_format(media.media_type)}
    return restored({"type": "input_audio", "input_audio": sound}, media.extra, PROTOCOL)
