"""The response of an MCP tool as the output of a tool.

    text                    Text
    image, audio            Media
    embedded resource       Text after its URI, or Media by its media type
    resource link           Text with its URI, which only the server may be able to open
    structuredContent       `result`; and the text, if the server sent no content

Law: nothing is dropped. Data that is not base64 is described in words, so that no provider refuses the request that
carries it.
"""

from __future__ import annotations

import binascii
import re
from typing import Any, Final, Literal

from toolglot import jsontext
from toolglot.conversation import Media, Text
from toolglot.runtime.tools.values import Content, Output

_MEDIA_TYPE: Final = re.compile(r"[\w.+-]{1,100}/[\w.+-]{1,100}")
_KINDS: Final[dict[str, Literal["image", "audio", "video"]]] = {"image": "image", "audio": "audio", "video": "video"}
_DOCUMENTS: Final = frozenset({"application/pdf", "text/plain", "text/markdown", "text/html", "text/csv"})


def output_of(answer: Any) -> Output:
    """The output for a `CallToolResult`."""
    blocks = tuple(_block(part) for part in answer.content)
    structured = answer.structured_content
    return Output(_content(blocks, structured), is_error=bool(answer.is_error), result=structured)


def _content(blocks: tuple[Text | Media, ...], structured: Any) -> Content:
    if not blocks:
        return None if structured is None else jsontext.compact(structured)
    first = blocks[0]
    return first.text if len(blocks) == 1 and isinstance(first, Text) else blocks


def _block(part: Any) -> Text | Media:
    if part.type == "text":
        return Text(part.text)
    if part.type in ("image", "audio"):
        return _media(part.data, part.mime_type, part.type)
    if part.type == "resource":
        return _resource(part.resource)
    return Text(_link(part))


def _resource(resource: Any) -> Text | Media:
    address = str(resource.uri)
    text = getattr(resource, "text", None)
    if isinstance(text, str):
        return Text(f"{address}:\n{text}")
    name = address.rstrip("/").rpartition("/")[2] or None
    return _media(resource.blob, resource.mime_type or "", "resource", name=name)


def _link(link: Any) -> str:
    details = "; ".join(text for text in (link.title, link.description, link.mime_type) if text)
    return f"{link.name}: {link.uri}" + (f" ({details})" if details else "")


def _media(data: str, media_type: str, what: str, *, name: str | None = None) -> Text | Media:
    plain = media_type.partition(";")[0].strip().lower()
    if not _MEDIA_TYPE.fullmatch(plain):
        plain = "application/octet-stream"
    if not _is_base64(data):
        return Text(f"[{what} of the type {plain}, whose data could not be read]")
    family = plain.partition("/")[0]
    kind = _KINDS.get(family) or ("document" if plain in _DOCUMENTS else "file")
    return Media(kind, plain, data, name=name)


def _is_base64(data: str) -> bool:
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        return False
    return True
