"""Web search of OpenAI's Responses: an item for each search, and annotations of the text."""

from __future__ import annotations

import re
from typing import Any, Final

from toolglot.conversation import ServerTool, Text
from toolglot.conversation.web_search import OWN_MARK, Citation, FoundPage, SearchRun, WebSearch
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.fields.web_search import (
    SearchCodec,
    SearchReader,
    index_of,
    list_of,
    location_of,
    pages_of,
    strings,
    text_of,
)
from toolglot.protocols.openai_responses.form import PROTOCOL

_ITEM: Final = "web_search_call"
_OWN_ID: Final = f"ws_{OWN_MARK}_"
_NOT_IN_ID: Final = re.compile(r"[^a-zA-Z0-9_]")
SOURCES: Final = "web_search_call.action.sources"
"""What a request includes to get the pages that a search found."""


class _Reader(SearchReader):
    """Reads the searches of one reply: each is one item."""

    def read(self, block: ServerTool) -> SearchRun | None:
        value = block.value if isinstance(block.value, dict) else {}
        if value.get("type") != _ITEM:
            return None
        action: Any = value.get("action")
        action = action if isinstance(action, dict) else {}
        query = text_of(action, "query") or ", ".join(strings(action.get("queries"))) or text_of(action, "url")
        pages = pages_of(list_of(action.get("sources")), "url", "title")
        if action.get("type") == "open_page":
            pages = pages_of([action], "url", "title")
        return SearchRun(text_of(value, "id"), query, pages)


def _source(page: FoundPage) -> Fields:
    return {"type": "url", "url": page.url}


def issuer_of(id: str) -> str:
    """The protocol that the item of a search belongs to: OpenAI takes only its own back."""
    return OWN_MARK if id.startswith(_OWN_ID) else PROTOCOL


def _write_annotation(citation: Citation) -> Fields:
    page = citation.page
    return {
        "type": "url_citation",
        "start_index": citation.start,
        "end_index": citation.end,
        "url": page.url,
        "title": page.title or page.url,
    }


class _ResponsesSearch(SearchCodec):
    new_reader = _Reader
    has_blocks = True
    citation_field = "annotations"

    def read_tool(self, fields: Fields) -> WebSearch | None:
        if not text_of(fields, "type").startswith("web_search"):
            return None
        filters = fields.get("filters")
        filters = filters if isinstance(filters, dict) else {}
        return WebSearch(
            allowed_domains=strings(filters.get("allowed_domains")),
            blocked_domains=strings(filters.get("blocked_domains")),
            context_size=text_of(fields, "search_context_size"),
            location=location_of(fields),
        )

    def write_tool(self, search: WebSearch, kind: str) -> tuple[Fields, tuple[str, ...]]:
        fields: Fields = {"type": kind}
        if search.allowed_domains:
            fields["filters"] = {"allowed_domains": [*search.allowed_domains]}
        if search.context_size:
            fields["search_context_size"] = search.context_size
        if search.location:
            fields["user_location"] = {"type": "approximate", **search.location}
        lost = [name for name in ("blocked_domains", "max_uses") if getattr(search, name)]
        return fields, tuple(lost)

    def request_fields(self, extra: Fields) -> Fields:
        """The fields of a request with which it gets the pages that a search found."""
        included = strings(extra.get("include"))
        return extra if SOURCES in included else {**extra, "include": [*included, SOURCES]}

    def is_search(self, block: ServerTool) -> bool:
        return isinstance(block.value, dict) and block.value.get("type") == _ITEM

    def write_run(self, run: SearchRun) -> tuple[ServerTool, ...]:
        id = _OWN_ID + _NOT_IN_ID.sub("_", run.id)[-40:]
        action: Fields = {"type": "search", "query": run.query, "sources": [_source(page) for page in run.pages]}
        if run.kind == "fetch":
            action = {"type": "open_page", "url": run.query}
        value: Fields = {"type": _ITEM, "id": id, "status": "failed" if run.error else "completed", "action": action}
        if run.text:
            value["results"] = [{"type": "text", "text": run.text}]
        return (ServerTool(PROTOCOL, "call", value, "web_search", id),)

    def read_own(self, call: ServerTool, result: ServerTool | None) -> SearchRun | None:
        run = _Reader().read(call)
        if run is None or not call.id.startswith(_OWN_ID):
            return None
        texts = [text_of(entry, "text") for entry in list_of(call.value.get("results"))]
        is_page = text_of(call.value.get("action"), "type") == "open_page"
        return SearchRun(
            call.id.removeprefix(_OWN_ID),
            run.query,
            run.pages,
            kind="fetch" if is_page else "search",
            text="\n".join(filter(None, texts)),
            error="unavailable" if call.value.get("status") == "failed" else "",
        )

    def read_citations(self, text: Text) -> tuple[Citation, ...]:
        noted = list_of((text.extra or {}).get(PROTOCOL, {}).get("annotations"))
        length = len(text.text)
        return tuple(
            [
                Citation(page, index_of(entry, "start_index", length), index_of(entry, "end_index", length))
                for entry in noted
                if isinstance(entry, dict) and entry.get("type") == "url_citation"
                for page in pages_of([entry], "url", "title")
            ]
        )

    def write_citations(self, citations: tuple[Citation, ...], text: str) -> Fields:
        return {"annotations": [_write_annotation(each) for each in citations]}


SEARCH: Final = _ResponsesSearch()
