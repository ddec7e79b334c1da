"""JSON as the simulator writes it: to send, and to hash.

Law: whatever was read from a request can be written, integers of any size and lone surrogates included.
"""

from __future__ import annotations

import json
from typing import Any

from toolglot.jsontext import compact, fix_surrogates


def encode_json(value: Any) -> bytes:
    """A value as bytes for a client."""
    return fix_surrogates(compact(value)).encode()


def canonical_bytes(value: Any) -> bytes:
    """A value in one form, whatever the order of its keys."""
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
