"""What the referee's readers see of a body, in lines that tests can compare."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from toolglot.referee.view import PartView, View


def read(protocol: str, body: Any) -> View:
    reader: Callable[[Any], View] = importlib.import_module(f"toolglot.referee.readers.{protocol}").read
    return reader(body)


def summarise_part(item: PartView) -> str:
    """An item in a line: kind, type, path, and what identifies it."""
    own = [item.id, item.item_id, item.name, item.text, item.media, item.source, item.signature]
    marks = [word for word, is_so in (("custom", item.is_custom), ("redacted", item.is_redacted)) if is_so]
    if item.is_error is not None:
        marks.append("error" if item.is_error else "success")
    if not item.has_content:
        marks.append("no content")
    shown = [part for part in (*own, *marks) if part]
    inside = "".join(f" < {summarise_part(part)} >" for part in item.content)
    return " ".join([item.kind, item.type or "-", item.path, *shown]) + inside


def summarise_messages(view: View) -> list[tuple[str, str, list[str]]]:
    return [(message.role, message.path, [summarise_part(item) for item in message.items]) for message in view.messages]


def summarise_tools(view: View) -> list[tuple[str, str, str | None, str]]:
    return [(tool.kind, tool.path, tool.name, tool.schema_path) for tool in view.tools or ()]


def shapes(protocol: str, body: Any) -> list[tuple[str, str]]:
    return [(shape.path, shape.rule) for shape in read(protocol, body).shapes]
