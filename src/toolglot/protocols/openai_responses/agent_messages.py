"""Messages between agents (`agent_message`), as text for a model that does not know such items.

Codex sends them: what one agent tells another, with an author and a recipient. The message that an agent passes to a
tool of Codex is encrypted if a model of OpenAI wrote it (`"encrypted": true` in the schema of the tool). Any other
model writes it as plain text, and Codex puts that into the same field.
"""

from __future__ import annotations

import re
from typing import Any, Final

from toolglot.protocols.fields.reading import Fields

UNREADABLE: Final = "[encrypted text that only OpenAI can read]"
_CIPHER: Final = re.compile(r"[A-Za-z0-9+/_=-]{64,}")
"""What encrypted text looks like: base64, without a blank."""


def text_of(item: Fields) -> str:
    """What a message between agents says, and who says it to whom."""
    names = [name for name in (item.get("author"), item.get("recipient")) if type(name) is str and name]
    head = f"[Message from agent {' to '.join(names)}]" if names else "[Message from another agent]"
    content = item.get("content")
    return "\n".join([head, *map(_text_of_part, content if type(content) is list else (content,))]).rstrip("\n")


def _text_of_part(part: Any) -> str:
    if type(part) is str:
        return part
    if type(part) is not dict:
        return ""
    encrypted = part.get("encrypted_content")
    if type(encrypted) is str:
        return UNREADABLE if is_encrypted(encrypted) else encrypted
    text = part.get("text")
    return text if type(text) is str else ""


def is_encrypted(text: str) -> bool:
    """Whether a text may be encrypted."""
    return _CIPHER.fullmatch(text) is not None
