"""Signatures that the simulator puts on thinking and knows again.

A seal says who made it, for which text, at which place and after which prefix, and carries a code over all of that
which only the same simulator can make. So what comes back is told apart: forged, edited, moved, or sent on after
another conversation.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Any, Final

from msgspec import Struct

from toolglot.simulator.replies.json_bytes import canonical

_MARK: Final = b"\x12\x54\x47"
_SHORT: Final = 12
_CODE: Final = 16
_LENGTH: Final = len(_MARK) + 1 + 3 * _SHORT + _CODE


class Seal(Struct, frozen=True):
    """What a signature says."""

    place: int
    """The ordinal of the thinking in its turn."""
    model: bytes
    prefix: bytes
    content: bytes


def digest(value: Any) -> bytes:
    """A hash of a JSON value, whatever the order of its keys."""
    return hashlib.sha256(canonical(value)).digest()[:_SHORT]


class Sealer:
    """Makes seals and reads them. Another seed or purpose makes others."""

    def __init__(self, seed: int) -> None:
        self._key = hashlib.sha256(f"toolglot simulator {seed}".encode()).digest()

    def seal(self, purpose: str, *, model: str, content: Any, prefix: Any = None, place: int = 0) -> str:
        plain = _MARK + bytes([place % 256]) + digest(model) + digest(prefix) + digest(content)
        return base64.b64encode(plain + self._code(purpose, plain)).decode()

    def read(self, purpose: str, signature: str) -> Seal | None:
        """What a signature says; None for one that was not made here for this purpose."""
        try:
            found = base64.b64decode(signature.replace("-", "+").replace("_", "/"), validate=True)
        except (binascii.Error, ValueError):
            return None
        # The same bytes can be spelled in other ways; only Google's SDK may, since it writes all bytes for addresses.
        spelled = [base64.b64encode(found), *([base64.urlsafe_b64encode(found)] if purpose == "thought" else [])]
        if signature.encode() not in spelled:
            return None
        plain, code = found[:-_CODE], found[-_CODE:]
        if len(found) != _LENGTH or not hmac.compare_digest(code, self._code(purpose, plain)):
            return None
        start = len(_MARK) + 1
        model, prefix, content = (plain[at : at + _SHORT] for at in range(start, start + 3 * _SHORT, _SHORT))
        return Seal(plain[start - 1], model, prefix, content)

    def mark(self, text: str) -> str:
        """A short code by which an id is known to be issued here."""
        return hmac.digest(self._key, text.encode(), "sha256").hex()[:8]

    def _code(self, purpose: str, plain: bytes) -> bytes:
        return hmac.digest(self._key, purpose.encode() + b"\0" + plain, "sha256")[:_CODE]
