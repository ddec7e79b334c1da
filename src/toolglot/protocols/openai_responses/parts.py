"""Content parts of the OpenAI Responses protocol, both ways. Messages and tool outputs are made of them.

A refusal is a text, so that every client can show it; its form lets it return as what it was.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import Block, Media, Opaque, Text
from toolglot.protocols.fields.media import audio_format, audio_type, data_url, image_detail, read_data_url
from toolglot.protocols.fields.reading import (
    Fields,
    each,
    leftover,
    optional,
    present,
    read_required,
    required,
    type_error,
    with_extra,
)
from toolglot.protocols.openai_responses.form import (
    NO_DETAIL,
    PLAIN_DATA,
    PROTOCOL,
    REFUSAL,
    UNKNOWN_PART,
    ResponsesMedia,
    ResponsesOpaque,
    ResponsesText,
)

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
_OTHER_TEXTS: Final = {INPUT: ResponsesText(type="input_text"), OUTPUT: ResponsesText(type="output_text")}
_AUDIO_FORMATS: Final = frozenset({"mp3", "wav"})


def read_content(content: Any, text_type: str, path: str = ".content") -> tuple[Part, ...]:
    """Content written as a string or as parts."""
    if type(content) is str:
        return (Text(content),)
    if type(content) is not list:
        raise type_error("a string or an array of parts", content, path)
    return tuple(each(content, lambda fields: _read_part(fields, text_type), path))


def _read_part(fields: Fields, text_type: str) -> Part:
    kind = required(fields, "type", str)
    part: Part | None = None
    if kind in (INPUT, OUTPUT):
        form = None if kind == text_type else _OTHER_TEXTS[kind]
        return Text(required(fields, "text", str), extra=leftover(fields, _TEXT, PROTOCOL), form=form)
    if kind == "refusal":
        extra = leftover(fields, _REFUSAL, PROTOCOL)
        return Text(required(fields, "refusal", str), extra=extra, form=REFUSAL, is_refusal=True)
    if kind == "input_image":
        part = _read_image(fields)
    elif kind == "input_file":
        part = _read_file(fields)
    elif kind == "input_audio":
        part = _read_audio(fields)
    return part or Opaque(PROTOCOL, fields, kind, form=UNKNOWN_PART)


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
        extra=leftover(fields, known, PROTOCOL),
        form=None if "detail" in fields else NO_DETAIL,
        detail=detail,
    )


def _read_file(fields: Fields) -> Media | None:
    data, address = optional(fields, "file_data", str), optional(fields, "file_url", str)
    file_id, name = optional(fields, "file_id", str), optional(fields, "filename", str)
    if data is None and address is None and file_id is None:
        return None
    inline = read_data_url(data or "")
    return Media(
        "document" if inline and inline[0] == "application/pdf" else "file",
        media_type=inline[0] if inline else "",
        data=inline[1] if inline else data,
        url=address,
        file_id=file_id,
        name=name,
        extra=leftover(fields, _FILE, PROTOCOL),
        form=PLAIN_DATA if data is not None and inline is None else None,
    )


def _read_audio(fields: Fields) -> Media | None:
    def read(sound: Fields) -> Media | None:
        data, form = optional(sound, "data", str), optional(sound, "format", str)
        if data is None or form not in _AUDIO_FORMATS or len(sound) > 2:
            return None
        return Media("audio", audio_type(form), data=data, extra=leftover(fields, _AUDIO, PROTOCOL))

    return read_required(fields, "input_audio", read)


# --- writing ----------------------------------------------------------------------------------------


def write_part(block: Block, text_type: str) -> Fields | None:
    """A block as a part; None if there is no part for it."""
    if isinstance(block, Text):
        kind = (block.form.type if type(block.form) is ResponsesText else None) or text_type
        fields: Fields = {"type": kind, "refusal" if kind == "refusal" else "text": block.text}
        return with_extra(fields, block.extra, PROTOCOL)
    if isinstance(block, Media):
        return _write_media(block)
    if isinstance(block, Opaque) and is_part(block):
        value: Fields = block.value
        return value
    return None


def is_part(block: Opaque) -> bool:
    """Whether something unknown stood inside a message or an output, rather than among the items."""
    return block.protocol == PROTOCOL and type(block.form) is ResponsesOpaque


def _write_media(media: Media) -> Fields | None:
    if media.kind == "audio":
        return _write_audio(media)
    if media.kind == "video":
        return None
    form = media.form if type(media.form) is ResponsesMedia else None
    inline = None if media.data is None else data_url(media.media_type, media.data)
    if media.kind == "image":
        fields = {"type": "input_image", "image_url": inline or media.url, "file_id": media.file_id}
    else:
        fields = {
            "type": "input_file",
            "file_data": media.data if form is not None and form.is_plain_data else inline,
            "file_url": media.url,
            "file_id": media.file_id,
            "filename": media.name,
        }
    written = present(fields)
    if len(written) == 1:
        return None
    if media.detail is not None and media.kind == "image":
        written["detail"] = media.detail
    elif media.kind == "image" and (form is None or not form.has_no_detail):
        written["detail"] = (media.extra or {}).get(PROTOCOL, {}).get("detail", "auto")
    return with_extra(written, media.extra, PROTOCOL)


def _write_audio(media: Media) -> Fields | None:
    if media.data is None:
        return None
    sound = {"data": media.data, "format": audio_format(media.media_type)}
    return with_extra({"type": "input_audio", "input_audio": sound}, media.extra, PROTOCOL)
