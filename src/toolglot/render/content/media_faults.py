"""What is wrong with a medium for any target: data that are not base64, a URL that no provider can open, no content.

Law: a medium without a fault here is one that a provider can read, as far as that shows from outside. Nothing is
decoded, and no URL is opened.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec.structs import replace

from toolglot.conversation import Media

ADDRESSES: Final = ("https", "http")
"""The schemes that every provider that accepts URLs can open."""

_LETTERS: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_STANDARD: Final = _LETTERS + b"+/"
_EITHER: Final = _STANDARD + b"-_"
_SPACE: Final = " \t\r\n"
_MEDIA_TYPE: Final = re.compile(r"[A-Za-z0-9][\w.+-]{0,99}/[A-Za-z0-9][\w.+-]{0,99}(?:;.{0,200})?", re.ASCII)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9.+-]{0,20}(?=:)")

_STARTS: Final = {
    "iVBORw0KGgo": "image/png",
    "/9j/": "image/jpeg",
    "R0lGOD": "image/gif",
    "UklGR": "image/webp",
    "JVBERi0": "application/pdf",
}
"""How the base64 of a file starts, by its type."""


def is_base64(data: str) -> bool:
    """Bytes as base64, in either alphabet, with or without padding."""
    return _is_written_in(data, _EITHER)


def standard_base64(data: str) -> str | None:
    """Base64 in the standard alphabet; the same string if it already is, None if it is not base64."""
    if len(data) % 4 == 0 and _is_written_in(data, _STANDARD):
        return data
    plain = data.translate(str.maketrans("-_", "+/", _SPACE)).rstrip("=")
    return plain + "=" * (-len(plain) % 4) if _is_written_in(plain, _STANDARD) else None


def type_by_start(data: str) -> str:
    """The media type by the first bytes; empty if they are of no known type."""
    return next((found for start, found in _STARTS.items() if data.startswith(start)), "")


def has_type(media: Media) -> bool:
    """Whether the medium has a well-formed type."""
    return _MEDIA_TYPE.fullmatch(media.media_type) is not None


def scheme_of(url: str) -> str:
    found = _SCHEME.match(url)
    return found[0].lower() if found is not None else ""


def fault_of(media: Media, schemes: tuple[str, ...] = ADDRESSES) -> str:
    """Why no provider can read a medium; empty if one can."""
    if media.data is not None:
        if not media.data.strip(_SPACE):
            return "it is empty"
        return "" if standard_base64(media.data) is not None else "its data are not base64"
    if media.url is not None:
        return "" if scheme_of(media.url) in schemes else "a provider cannot open its URL"
    return "" if media.file_id else "it is empty"


def with_standard_base64(media: Media) -> Media:
    """The medium with its data as every provider reads them."""
    data = None if media.data is None else standard_base64(media.data)
    return media if data is None or data is media.data else replace(media, data=data)


def _is_written_in(data: str, alphabet: bytes) -> bool:
    if not data.isascii():
        return False
    rest = data.encode().translate(None, alphabet)
    # The only other character may be the padding, at the end.
    return rest in (b"", b"=", b"==") and data.endswith(rest.decode()) and (len(data) - len(rest)) % 4 != 1
