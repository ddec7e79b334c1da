"""Grounding of Gemini: what was searched for, found and cited is in one object beside the content.

Its positions are bytes of UTF-8 within the text.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Extra, Form
from toolglot.conversation.web_search import Citation, FoundPage, SearchRun, WebSearch
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.fields.web_search import (
    MAX_CITATIONS,
    MAX_PAGES,
    MAX_QUOTE,
    SearchCodec,
    index_of,
    list_of,
    strings,
    text_of,
)
from toolglot.protocols.gemini.form import PLAIN_REPLY, GeminiReply

_FIELD: Final = "groundingMetadata"
_SEARCHES: Final = {"googleSearch": "search", "google_search": "search", "urlContext": "fetch", "url_context": "fetch"}
_ID: Final = "grounding"


def _page(chunk: Any) -> FoundPage:
    web = chunk.get("web") if isinstance(chunk, dict) else None
    return FoundPage(text_of(web, "uri"), text_of(web, "title"))


class _Positions:
    """Positions in bytes as positions in characters."""

    def __init__(self, text: str) -> None:
        self._encoded = text.encode(errors="surrogatepass")
        self._is_ascii = len(self._encoded) == len(text)

    def of(self, segment: Any, name: str) -> int:
        index = index_of(segment, name, len(self._encoded))
        return index if self._is_ascii else len(self._encoded[:index].decode(errors="ignore"))


class _GeminiSearch(SearchCodec):
    def read_tool(self, fields: Fields) -> WebSearch | None:
        for name, kind in _SEARCHES.items():
            if name in fields:
                settings = fields[name] if isinstance(fields[name], dict) else {}
                blocked = strings(settings.get("excludeDomains"))
                return WebSearch("fetch") if kind == "fetch" else WebSearch(blocked_domains=blocked)
        return None

    def write_tool(self, search: WebSearch, kind: str) -> tuple[Fields, tuple[str, ...]]:
        lost = ("allowed_domains", "blocked_domains", "max_uses", "context_size", "location")
        return {kind: {}}, tuple([name for name in lost if getattr(search, name)])

    def read_reply(
        self, form: Form | None, extra: Extra | None, text: str
    ) -> tuple[SearchRun | None, tuple[Citation, ...]]:
        rest = form.candidate_rest if isinstance(form, GeminiReply) else None
        grounding: Any = (rest or {}).get(_FIELD)
        if not isinstance(grounding, dict):
            return None, ()
        pages = [_page(chunk) for chunk in list_of(grounding.get("groundingChunks"))[:MAX_PAGES]]
        queries = strings(grounding.get("webSearchQueries"))
        found = tuple([page for page in pages if page.url])
        if not queries and not found:
            return None, ()
        positions = _Positions(text)
        citations = (
            Citation(pages[index], positions.of(segment, "startIndex"), positions.of(segment, "endIndex"))
            for support in list_of(grounding.get("groundingSupports"))
            if isinstance(support, dict)
            for segment in (support.get("segment"),)
            for index in list_of(support.get("groundingChunkIndices"))
            if type(index) is int and 0 <= index < len(pages) and pages[index].url
        )
        return SearchRun(_ID, ", ".join(queries), found), tuple(islice(citations, MAX_CITATIONS))

    def without_search(self, form: Form | None, extra: Extra | None) -> tuple[Form | None, Extra | None]:
        rest = form.candidate_rest if isinstance(form, GeminiReply) else None
        if not isinstance(form, GeminiReply) or not rest or _FIELD not in rest:
            return form, extra
        kept = {key: value for key, value in rest.items() if key != _FIELD}
        return replace(form, candidate_rest=kept or None), extra

    def write_reply(
        self, runs: list[SearchRun], citations: list[Citation], text: str, form: Form | None, extra: Extra | None
    ) -> tuple[Form | None, Extra | None]:
        titles = {page.url: page.title for run in runs for page in run.pages}
        for each in citations:
            titles[each.page.url] = each.page.title or titles.get(each.page.url, "")
        index_by_url = {url: index for index, url in enumerate(titles)}
        supports = [
            {
                "segment": {
                    "startIndex": len(text[: each.start].encode(errors="surrogatepass")),
                    "endIndex": len(text[: each.end].encode(errors="surrogatepass")),
                    "text": text[each.start : each.end][:MAX_QUOTE],
                },
                "groundingChunkIndices": [index_by_url[each.page.url]],
            }
            for each in citations
        ]
        grounding: Fields = {
            "webSearchQueries": [run.query for run in runs if run.query],
            "groundingChunks": [{"web": {"uri": url, "title": title or url}} for url, title in titles.items()],
            "groundingSupports": supports,
        }
        own = form if isinstance(form, GeminiReply) else PLAIN_REPLY
        return replace(own, candidate_rest={**(own.candidate_rest or {}), _FIELD: grounding}), extra


SEARCH: Final = _GeminiSearch()
