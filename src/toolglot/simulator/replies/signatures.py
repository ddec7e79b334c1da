"""Signatures that the simulator puts on thinking, and checks when it comes back.

A signature names the model, the content, its position and the prefix before it, with a code over all of them that only
the same simulator can make. So it detects what was forged, edited, moved, or sent after another conversation.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Any, Final

from msgspec import Struct

from toolglot.simulator.replies.json_bytes import canonical_bytes

_MARK: Final = b"\x12\x54\x47"
_SHORT: Final = 12
_CODE: Final = 16
_LENGTH: Final = len(_MARK) + 1 + 3 * _SHORT + _CODE


class Signature(Struct, frozen=True):
    """What a signature signs."""

    position: int
    """The ordinal of the thinking in its turn."""
    model: bytes
    prefix: bytes
    content: bytes


def digest(value: Any) -> bytes:
    """A hash of a JSON value, whatever the order of its keys."""
    return hashlib.sha256(canonical_bytes(value)).digest()[:_SHORT]


class Signer:
    """Makes signatures and reads them. They differ for each seed and purpose."""

    def __init__(self, seed: int) -> None:
        self._key = hashlib.sha256(f"toolglot simulator {seed}".encode()).digest()

    def sign(self, purpose: str, *, model: str, content: Any, prefix: Any = None, position: int = 0) -> str:
        plain = _MARK + bytes([position % 256]) + digest(model) + digest(prefix) + digest(content)
        return base64.b64encode(plain + self._code(purpose, plain)).decode()

    def read(self, purpose: str, signature: str) -> Signature | None:
        """What a signature signs; None for one that was not made here for this purpose."""
        try:
            found = base64.b64decode(signature.replace("-", "+").replace("_", "/"), validate=True)
        except (binascii.Error, ValueError):
            return None
        # Base64 can spell the same bytes in other ways. Only Google's SDK does: it writes bytes in the URL-safe
        # alphabet.
        spelled = [base64.b64encode(found), *([base64.urlsafe_b64encode(found)] if purpose == "thought" else [])]
        if signature.encode() not in spelled:
            return None
        plain, code = found[:-_CODE], found[-_CODE:]
        if len(found) != _LENGTH or not hmac.compare_digest(code, self._code(purpose, plain)):
            return None
        start = len(_MARK) + 1
        model, prefix, content = (plain[at : at + _SHORT] for at in range(start, start + 3 * _SHORT, _SHORT))
        return Signature(plain[start - 1], model, prefix, content)

    def short_code(self, text: str) -> str:
        """A short code that shows that an id was issued here."""
        return hmac.digest(self._key, text.encode(), "sha256").hex()[:8]

    def _code(self, purpose: str, plain: bytes) -> bytes:
        return hmac.digest(self._key, purpose.encode() + b"\0" + plain, "sha256")[:_CODE]
