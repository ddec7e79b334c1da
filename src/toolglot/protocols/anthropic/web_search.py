"""Web search of Anthropic: a call and its result are blocks of the reply, and texts name what they cite."""

from __future__ import annotations

import re
from typing import Any, Final

from toolglot.conversation import Extra, ServerTool, Text
from toolglot.conversation.web_search import OWN_MARK, Citation, SearchRun, WebSearch
from toolglot.protocols.anthropic.form import PROTOCOL
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.fields.web_search import (
    MAX_QUOTE,
    SearchCodec,
    SearchReader,
    list_of,
    location_of,
    pages_of,
    strings,
    text_of,
)

_OWN_ID: Final = f"srvtoolu_{OWN_MARK}_"
_NOT_IN_ID: Final = re.compile(r"[^a-zA-Z0-9_]")
_RESULT: Final = "web_search_tool_result"


def _read_settings(fields: Fields, search: WebSearch) -> WebSearch:
    return WebSearch(
        search.kind,
        strings(fields.get("allowed_domains")),
        strings(fields.get("blocked_domains")),
        search.max_uses,
        location=search.location,
    )


def _count(fields: Fields) -> int | None:
    count: Any = fields.get("max_uses")
    return count if type(count) is int else None


class _Reader(SearchReader):
    """Reads the searches of one reply: a call, and later its result."""

    def __init__(self) -> None:
        self._queries: dict[str, str] = {}

    def read(self, block: ServerTool) -> SearchRun | None:
        """The search that is complete with this block; None: there is none, or it goes on."""
        value = block.value if isinstance(block.value, dict) else {}
        if block.phase == "call":
            arguments = value.get("input")
            query = text_of(arguments, "query") or text_of(arguments, "url")
            self._queries[block.id] = query
            return None
        if block.name not in (_RESULT, "web_fetch_tool_result"):
            return None
        found = value.get("content")
        pages = pages_of(found if isinstance(found, list) else [found], "url", "title")
        return SearchRun(block.id, self._queries.pop(block.id, ""), pages)

    def unfinished(self) -> list[SearchRun]:
        return [SearchRun(id, query) for id, query in self._queries.items()]


def issuer_of(id: str) -> str:
    """The protocol that a block of a search belongs to: Anthropic takes only its own back."""
    return OWN_MARK if id.startswith(_OWN_ID) else PROTOCOL


def owned_citations(extra: Extra | None) -> Extra | None:
    """The unknown fields of a text; citations that were written here, and that Anthropic does not take back, apart."""
    fields = (extra or {}).get(PROTOCOL, {})
    cited = fields.get("citations")
    if not isinstance(cited, list) or not any(map(_is_own_citation, cited)):
        return extra
    kept = [entry for entry in cited if not _is_own_citation(entry)]
    rest = {key: value for key, value in fields.items() if key != "citations"} | ({"citations": kept} if kept else {})
    own = {OWN_MARK: {"citations": [entry for entry in cited if _is_own_citation(entry)]}}
    return {PROTOCOL: rest, **own} if rest else own


def _is_own_citation(entry: Any) -> bool:
    return isinstance(entry, dict) and entry.get("encrypted_index") == ""


class _AnthropicSearch(SearchCodec):
    new_reader = _Reader
    has_blocks = True
    citation_field = "citations"

    def read_tool(self, fields: Fields) -> WebSearch | None:
        kind = text_of(fields, "type")
        if kind.startswith("web_search"):
            return _read_settings(fields, WebSearch(max_uses=_count(fields), location=location_of(fields)))
        return (
            _read_settings(fields, WebSearch("fetch", max_uses=_count(fields)))
            if kind.startswith("web_fetch")
            else None
        )

    def write_tool(self, search: WebSearch, kind: str) -> tuple[Fields, tuple[str, ...]]:
        fields: Fields = {"type": kind, "name": "web_fetch" if search.kind == "fetch" else "web_search"}
        if search.allowed_domains:
            fields["allowed_domains"] = [*search.allowed_domains]
        elif search.blocked_domains:
            fields["blocked_domains"] = [*search.blocked_domains]
        if search.max_uses is not None:
            fields["max_uses"] = search.max_uses
        if search.location and search.kind == "search":
            fields["user_location"] = {"type": "approximate", **search.location}
        return fields, ("context_size",) if search.context_size else ()

    def is_search(self, block: ServerTool) -> bool:
        return block.name in ("web_search", "web_fetch", _RESULT, "web_fetch_tool_result")

    def write_run(self, run: SearchRun) -> tuple[ServerTool, ...]:
        id = _OWN_ID + _NOT_IN_ID.sub("_", run.id)[-40:]
        call = {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": run.query}}
        pages = [
            {
                "type": "web_search_result",
                "url": page.url,
                "title": page.title or page.url,
                "encrypted_content": "",
                "page_age": None,
            }
            for page in run.pages
        ]
        result = {"type": _RESULT, "tool_use_id": id, "content": pages}
        return ServerTool(PROTOCOL, "call", call, "web_search", id), ServerTool(PROTOCOL, "result", result, _RESULT, id)

    def read_citations(self, text: Text) -> tuple[Citation, ...]:
        cited = list_of((text.extra or {}).get(PROTOCOL, {}).get("citations"))
        return tuple(
            [
                Citation(page, 0, len(text.text), text_of(entry, "cited_text"))
                for entry in cited
                for page in pages_of([entry], "url", "title")
            ]
        )

    def write_citations(self, citations: tuple[Citation, ...], text: str) -> Fields:
        return {
            "citations": [
                {
                    "type": "web_search_result_location",
                    "url": each.page.url,
                    "title": each.page.title or None,
                    "cited_text": (each.quote or text[each.start : each.end])[:MAX_QUOTE],
                    "encrypted_index": "",
                }
                for each in citations
            ]
        }


SEARCH: Final = _AnthropicSearch()
