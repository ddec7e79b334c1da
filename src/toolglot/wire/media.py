"""Inline media as addresses, and what protocols call the formats of sounds."""

from __future__ import annotations

from typing import Final

AUDIO_TYPES: Final = {"mp3": "audio/mpeg"}
"""Formats whose media type is not simply `audio/` and their name."""

_AUDIO_FORMATS: Final = {"audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav"}


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
