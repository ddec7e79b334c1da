"""Collects what has no canonical form in a Gemini stream: fields of chunks, and candidates besides the first.

A field of a chunk replaces that of earlier chunks. Other candidates are returned as they came, so they are collected as
parts, not as blocks.
"""

from __future__ import annotations

from typing import Any

from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.gemini.blocks import in_camel


def plain_text(part: Fields) -> tuple[str, bool] | None:
    """The text of a part and whether it is thinking; None if the part holds more than that."""
    text: Any = part.get("text")
    if type(text) is not str:
        return None
    for key, value in part.items():
        if value and key != "text" and (key != "thought" or value is not True):
            return None
    return text, part.get("thought") is True


class MergedFields:
    """The fields of one object over all chunks, each in its last spelling."""

    def __init__(self) -> None:
        self._fields: Fields = {}
        self._spelled: dict[str, str] = {}

    def add(self, original: Fields, *, skip: str) -> Fields:
        """Add fields, except one. Returns all of them in camelCase."""
        fields, snake = in_camel(original)
        back = {camel: written for written, camel in snake.items()} if snake else {}
        for key, value in fields.items():
            if key != skip:
                self._fields[key] = value
                self._spelled[key] = back.get(key, key)
        return fields

    @property
    def whole(self) -> Fields:
        return {self._spelled[key]: value for key, value in self._fields.items()}


class OtherCandidate:
    """One candidate. `whole` is the candidate so far."""

    def __init__(self) -> None:
        self._fields = MergedFields()
        self._content: Fields | None = None
        self._parts: list[Any] = []
        """Parts as they came; for plain text, whether it is thinking, and its pieces."""

    def add(self, original: Fields) -> None:
        self._fields.add(original, skip="content")
        content: Any = original.get("content")
        if type(content) is not dict:
            return
        self._content = {key: value for key, value in content.items() if key != "parts"}
        parts: Any = content.get("parts")
        listed: list[Any] = parts if type(parts) is list else [] if parts is None else [parts]
        for position, part in enumerate(listed):
            plain = plain_text(part) if type(part) is dict else None
            if plain is None:
                self._parts.append(part)
            elif position == 0 and self._parts and type(self._parts[-1]) is tuple and self._parts[-1][0] == plain[1]:
                self._parts[-1][1].append(plain[0])
            else:
                self._parts.append((plain[1], [plain[0]]))

    @property
    def whole(self) -> Fields:
        if self._content is None:
            return self._fields.whole
        return {"content": {**self._content, "parts": [_part(part) for part in self._parts]}, **self._fields.whole}


def _part(part: Any) -> Any:
    if type(part) is not tuple:
        return part
    text = "".join(part[1])
    return {"text": text, "thought": True} if part[0] else {"text": text}
