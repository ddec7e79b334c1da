"""Inline media as addresses, and what protocols call the formats of sounds."""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Media, Turn

AUDIO_TYPES: Final = {"mp3": "audio/mpeg"}
"""Formats whose media type is not simply `audio/` and their name."""

_AUDIO_FORMATS: Final = {"audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav"}

_AUDIO_STARTS: Final = {
    "UklGR": "audio/wav",
    "SUQz": "audio/mpeg",
    "//": "audio/mpeg",
    "T2dn": "audio/ogg",
    "ZkxhQ": "audio/flac",
}
"""How the base64 of a sound begins, by its first bytes."""


def data_url(media_type: str, data: str) -> str:
    return f"data:{media_type};base64,{data}"


def read_data_url(url: str) -> tuple[str, str] | None:
    """The media type and the data of an address that holds them, if it comes back as the same address."""
    if not url.startswith("data:"):
        return None
    media_type, mark, data = url[5:].partition(";base64,")
    if not mark or not media_type or "," in media_type:
        return None
    return media_type, data


def audio_type(format: str) -> str:
    return AUDIO_TYPES.get(format, f"audio/{format}")


def audio_format(media_type: str) -> str:
    return _AUDIO_FORMATS.get(media_type) or media_type.removeprefix("audio/")


def without_media(turn: Turn) -> Turn:
    """A turn for clients that know nothing but words and calls in a reply."""
    return replace(turn, blocks=tuple(block for block in turn.blocks if not isinstance(block, Media)))


def audio_type_of(data: str) -> str:
    """The media type of a sound whose protocol does not say it; empty if its first bytes are of no known format."""
    return next((found for start, found in _AUDIO_STARTS.items() if data.startswith(start)), "")


def image_detail(fields: dict[str, Any]) -> str | None:
    """How closely to look at an image, in the words that protocols share; None for any others."""
    detail: Any = fields.get("detail")
    return detail if type(detail) is str and detail in ("low", "high") else None
