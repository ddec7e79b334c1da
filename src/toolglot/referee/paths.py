"""JSON paths: `$.messages[0].content`, with brackets and quotes around unusual names."""

from __future__ import annotations

import re
from typing import Final

from toolglot.errors import quote

_PLAIN: Final = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


def step(path: str, key: object) -> str:
    """The path of a child."""
    if isinstance(key, str) and len(key) <= 80 and _PLAIN.fullmatch(key):
        return f"{path}.{key}"
    return f"{path}[{quote(key)}]"
