"""Masks secrets in everything that an endpoint sends, before it is parsed or shown.

An endpoint may repeat the key of a request, plain or encoded: in an error, in a header, in the name of a model.

Law: after `Secrets.clean` no secret is in a value, plain or in any of the usual encodings; its strings have no control
characters and a bounded length.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from toolglot.masking import MASK, KnownSecrets, is_secret_name, mask

MIN_LENGTH: Final = 8
"""Characters of a secret. A shorter one would be found in every word."""
MAX_TEXT: Final = 20_000
_MAX_DEPTH: Final = 40
_MAX_VALUES: Final = 20_000
_UNSEEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def visible(text: str, max_length: int = MAX_TEXT) -> str:
    """A text that is safe to show: control characters are escaped."""
    short = text[:max_length].encode(errors="backslashreplace").decode()
    shown = _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), short)
    return shown if len(text) <= max_length else f"{shown}…"


def one_line(text: str, max_length: int = 200) -> str:
    return visible(" ".join(text[: 4 * max_length].split()), max_length)


def secret_values(headers: Mapping[str, str]) -> list[str]:
    """Values of headers with secret names, with and without a scheme before them."""
    values = [value for name, value in headers.items() if is_secret_name(name)]
    return [part for value in values for part in (value, value.rpartition(" ")[2])]


class Secrets:
    """The secrets of one discovery: the key, and those in headers."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = KnownSecrets(secrets, min_length=MIN_LENGTH, encoded=True)

    def mask_bytes(self, data: bytes) -> bytes:
        return self._known.mask_bytes(data)

    def mask_text(self, text: str) -> str:
        return mask(self._known.mask(text))

    def clean(self, value: Any) -> Any:
        """A JSON value without secrets and control characters, cut at a maximum of depth and values."""
        return self._clean(value, _MAX_DEPTH, [_MAX_VALUES])

    def _clean(self, value: Any, depth: int, left: list[int]) -> Any:
        left[0] -= 1
        if isinstance(value, str):
            return visible(self.mask_text(value[: MAX_TEXT + 1]))
        if not isinstance(value, dict | list):
            return value
        if depth == 0 or left[0] < 0:
            return "…"
        if isinstance(value, list):
            return [self._clean(item, depth - 1, left) for item in value[: max(left[0], 0)]]
        kept = list(value.items())[: max(left[0], 0)]
        return {visible(self.mask_text(str(name)), 200): self._clean(item, depth - 1, left) for name, item in kept}


def masked_url(url: str) -> str:
    """A URL without what may be secret in it: the values of its query, and credentials."""
    parts = urlsplit(url)
    query = "&".join(f"{part.partition('=')[0]}={MASK}" for part in parts.query.split("&")) if parts.query else ""
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, query if parts.query != "alt=sse" else "alt=sse", ""))
