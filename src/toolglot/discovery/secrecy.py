"""What is secret is taken out of everything that an endpoint says before anybody looks at it.

An endpoint may repeat the key that it was given, plainly or in disguise: in an error, in a header, in a model's name.

Law: after `Secrets.cleaned` no secret is in a value, as it is or in any of the usual encodings; and no text in it has
control characters or is longer than is of use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from toolglot.masking import MASK, KnownSecrets, is_secret_name, mask

SHORTEST: Final = 8
"""Characters from which on a secret is looked for: a shorter one is none, and would be found in every word."""
LONGEST_TEXT: Final = 20_000
_DEEPEST: Final = 40
_MOST: Final = 20_000
_UNSEEN: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def visible(text: str, longest: int = LONGEST_TEXT) -> str:
    """A text that is safe to show: what a terminal would act upon is written out."""
    short = text[:longest].encode(errors="backslashreplace").decode()
    shown = _UNSEEN.sub(lambda found: found[0].encode("unicode_escape").decode(), short)
    return shown if len(text) <= longest else f"{shown}…"


def one_line(text: str, longest: int = 200) -> str:
    return visible(" ".join(text[: 4 * longest].split()), longest)


def secret_values(headers: Mapping[str, str]) -> list[str]:
    """Values of headers whose names say that they are secret, with and without a scheme before them."""
    values = [value for name, value in headers.items() if is_secret_name(name)]
    return [part for value in values for part in (value, value.rpartition(" ")[2])]


class Secrets:
    """The secrets of one discovery: the key, and whatever was given in headers."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._known = KnownSecrets(secrets, min_length=SHORTEST, encoded=True)

    def in_bytes(self, data: bytes) -> bytes:
        return self._known.mask_bytes(data)

    def in_text(self, text: str) -> str:
        return mask(self._known.mask(text))

    def cleaned(self, value: Any) -> Any:
        """A JSON value without secrets and control characters. What is too deep or too many is left out."""
        return self._cleaned(value, _DEEPEST, [_MOST])

    def _cleaned(self, value: Any, depth: int, left: list[int]) -> Any:
        left[0] -= 1
        if isinstance(value, str):
            return visible(self.in_text(value[: LONGEST_TEXT + 1]))
        if not isinstance(value, dict | list):
            return value
        if depth == 0 or left[0] < 0:
            return "…"
        if isinstance(value, list):
            return [self._cleaned(item, depth - 1, left) for item in value[: max(left[0], 0)]]
        kept = list(value.items())[: max(left[0], 0)]
        return {visible(self.in_text(str(name)), 200): self._cleaned(item, depth - 1, left) for name, item in kept}


def shown_url(url: str) -> str:
    """An address without what may be secret in it: the values of its query."""
    parts = urlsplit(url)
    query = "&".join(f"{part.partition('=')[0]}={MASK}" for part in parts.query.split("&")) if parts.query else ""
    host = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, host, parts.path, query if parts.query != "alt=sse" else "alt=sse", ""))
