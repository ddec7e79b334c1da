"""The text of a failed result, for protocols without a field for failures (Chat, Responses, Cohere, Ollama).

Its first text starts with `Error: `, unless it starts with `Error:` already; a result without text gets one. A result
that has only the value that its tool returned has that as its text.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from toolglot.conversation import ResultPart, Text, ToolResult
from toolglot.conversation.completion import CANCELLED
from toolglot.jsontext import compact

_MARK: Final = "Error:"

Content = str | tuple[ResultPart, ...] | None


def has_failed(result: ToolResult) -> bool:
    """Whether a result is written as a failure. A cancel is one: it must not read as if the tool had succeeded."""
    if result.is_error or result.status != "cancelled":
        return result.is_error
    return type(result.content) is not tuple or all(type(part) is Text for part in result.content)


def result_content(result: ToolResult) -> Content:
    """The content of a result; without one, its error or the value that the tool returned, as text."""
    if result.status == "cancelled" and not result.content:
        return result.error or CANCELLED
    if result.content is not None:
        return result.content
    if result.is_error and result.error:
        return result.error
    if result.result is None:
        return None
    return result.result if isinstance(result.result, str) else compact(result.result)


def content_with_error(result: ToolResult) -> Content:
    """The content of a result, marked as an error if it failed."""
    content = result_content(result)
    if not has_failed(result):
        return content
    if not isinstance(content, tuple):
        return _marked(content or result.error or "")
    for index, part in enumerate(content):
        if isinstance(part, Text):
            return (*content[:index], replace(part, text=_marked(part.text)), *content[index + 1 :])
    return (Text(_marked(result.error or "")), *content)


def text_of(content: Content) -> str:
    """The textual content in one string, a line break between parts."""
    if isinstance(content, str):
        return content
    return "\n".join(part.text for part in content or () if isinstance(part, Text))


def _marked(text: str) -> str:
    if text.startswith(_MARK):
        return text
    return f"{_MARK} {text}" if text else _MARK
