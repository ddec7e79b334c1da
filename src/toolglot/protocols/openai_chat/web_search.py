"""Web search in Chat Completions: a field of the request, and annotations of the message."""

from __future__ import annotations

from typing import Any, Final

from toolglot.conversation import Extra, Form
from toolglot.conversation.web_search import Citation, SearchRun, WebSearch
from toolglot.protocols.fields.web_search import (
    SearchCodec,
    index_of,
    list_of,
    location_of,
    pages_of,
    text_of,
    without_field,
)

PROTOCOL: Final = "openai_chat"
OPTIONS: Final = "web_search_options"
_ANNOTATIONS: Final = "annotations"


class _ChatSearch(SearchCodec):
    carries_searches = False
    options_field = OPTIONS

    def read_options(self, extra: Extra | None) -> WebSearch | None:
        options: Any = (extra or {}).get(PROTOCOL, {}).get(OPTIONS)
        if not isinstance(options, dict):
            return None
        return WebSearch(context_size=text_of(options, "search_context_size"), location=location_of(options))

    def read_reply(
        self, form: Form | None, extra: Extra | None, text: str
    ) -> tuple[SearchRun | None, tuple[Citation, ...]]:
        cited = [
            entry.get("url_citation")
            for entry in list_of((extra or {}).get(PROTOCOL, {}).get(_ANNOTATIONS))
            if isinstance(entry, dict) and entry.get("type") == "url_citation"
        ]
        length = len(text)
        citations = [
            Citation(page, index_of(entry, "start_index", length), index_of(entry, "end_index", length))
            for entry in cited
            for page in pages_of([entry], "url", "title")
        ]
        pages = tuple(dict.fromkeys(citation.page for citation in citations))
        return SearchRun("annotations", pages=pages) if pages else None, tuple(citations)

    def without_search(self, form: Form | None, extra: Extra | None) -> tuple[Form | None, Extra | None]:
        return form, without_field(extra, PROTOCOL, _ANNOTATIONS)

    def write_reply(
        self, runs: list[SearchRun], citations: list[Citation], text: str, form: Form | None, extra: Extra | None
    ) -> tuple[Form | None, Extra | None]:
        noted = [
            {
                "type": "url_citation",
                "url_citation": {
                    "start_index": each.start,
                    "end_index": each.end,
                    "url": each.page.url,
                    "title": each.page.title or each.page.url,
                },
            }
            for each in citations
        ]
        own = {**(extra or {}).get(PROTOCOL, {}), _ANNOTATIONS: noted}
        return form, {**(extra or {}), PROTOCOL: own} if noted else extra


SEARCH: Final = _ChatSearch()
