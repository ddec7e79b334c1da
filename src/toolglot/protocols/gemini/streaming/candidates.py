"""Objects of a Gemini stream that have no canonical place, put together out of their pieces.

What a chunk says replaces what one before it said. Candidates that are not the reply go back as they came; so they are
put together as parts, not as blocks.
"""

from __future__ import annotations

from typing import Any

from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.gemini.blocks import in_camel


def plain_text(part: Fields) -> tuple[str, bool] | None:
    """The text of a part and whether it is a thought, if it is nothing but that; fields that say nothing aside."""
    text: Any = part.get("text")
    if type(text) is not str:
        return None
    for key, value in part.items():
        if value and key != "text" and (key != "thought" or value is not True):
            return None
    return text, part.get("thought") is True


class Merged:
    """The fields of one object over all chunks, each in the spelling in which it came last."""

    def __init__(self) -> None:
        self._fields: Fields = {}
        self._spelled: dict[str, str] = {}

    def add(self, given: Fields, *, but: str) -> Fields:
        """More of it, but one field; what was given, in camelCase."""
        fields, snake = in_camel(given)
        back = {camel: written for written, camel in snake.items()} if snake else {}
        for key, value in fields.items():
            if key != but:
                self._fields[key] = value
                self._spelled[key] = back.get(key, key)
        return fields

    @property
    def whole(self) -> Fields:
        return {self._spelled[key]: value for key, value in self._fields.items()}


class OtherCandidate:
    """One candidate. `whole` is what it is by now."""

    def __init__(self) -> None:
        self._fields = Merged()
        self._content: Fields | None = None
        self._parts: list[Any] = []
        """Parts as they came; of plain text, whether it is a thought and its pieces."""

    def add(self, given: Fields) -> None:
        self._fields.add(given, but="content")
        content: Any = given.get("content")
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
