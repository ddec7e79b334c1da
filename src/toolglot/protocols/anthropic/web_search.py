"""Web search of Anthropic: a call and its result are blocks of the reply, and texts name what they cite."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

from msgspec.structs import replace

from toolglot.conversation import Extra, ServerTool, Text, Usage
from toolglot.conversation.web_search import OWN_MARK, Citation, SearchRun, WebSearch
from toolglot.protocols.anthropic.form import PROTOCOL
from toolglot.protocols.fields.reading import Fields
from toolglot.protocols.fields.web_search import (
    MAX_QUOTE,
    SearchCodec,
    SearchReader,
    list_of,
    location_of,
    pack_text,
    pages_of,
    strings,
    text_of,
    unpack_text,
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


def _write_found(run: SearchRun) -> Any:
    """The content of the result block of a search."""
    name = "web_fetch" if run.kind == "fetch" else "web_search"
    if run.error:
        return {"type": f"{name}_tool_result_error", "error_code": run.error}
    if run.kind == "fetch":
        source = {"type": "text", "media_type": "text/plain", "data": run.text}
        content = {"type": "document", "source": source, "title": None, "citations": None}
        return {"type": "web_fetch_result", "url": run.query, "content": content, "retrieved_at": None}
    return [
        {
            "type": "web_search_result",
            "url": page.url,
            "title": page.title or page.url,
            "encrypted_content": pack_text(run.text) if index == 0 and run.text else "",
            "page_age": None,
        }
        for index, page in enumerate(run.pages)
    ]


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
        name, argument = ("web_fetch", "url") if run.kind == "fetch" else ("web_search", "query")
        call = {"type": "server_tool_use", "id": id, "name": name, "input": {argument: run.query}}
        kind = f"{name}_tool_result"
        result = {"type": kind, "tool_use_id": id, "content": _write_found(run)}
        return ServerTool(PROTOCOL, "call", call, name, id), ServerTool(PROTOCOL, "result", result, kind, id)

    def read_own(self, call: ServerTool, result: ServerTool | None) -> SearchRun | None:
        if not call.id.startswith(_OWN_ID) or call.name not in ("web_search", "web_fetch"):
            return None
        arguments = call.value.get("input") if isinstance(call.value, dict) else None
        found = result.value.get("content") if result is not None and isinstance(result.value, dict) else None
        run = SearchRun(call.id.removeprefix(_OWN_ID), error=text_of(found, "error_code"))
        if call.name == "web_fetch":
            content: Any = found.get("content") if isinstance(found, dict) else None
            source: Any = content.get("source") if isinstance(content, dict) else None
            return replace(run, kind="fetch", query=text_of(arguments, "url"), text=text_of(source, "data"))
        pages = pages_of(list_of(found), "url", "title")
        texts = [text for page in list_of(found) if (text := unpack_text(text_of(page, "encrypted_content")))]
        return replace(run, query=text_of(arguments, "query"), pages=pages, text="\n".join(texts))

    def read_citations(self, text: Text) -> tuple[Citation, ...]:
        cited = list_of((text.extra or {}).get(PROTOCOL, {}).get("citations"))
        return tuple(
            [
                Citation(page, 0, len(text.text), text_of(entry, "cited_text"))
                for entry in cited
                for page in pages_of([entry], "url", "title")
            ]
        )

    def with_searches(self, usage: Usage, runs: Sequence[SearchRun]) -> Usage:
        kinds = [run.kind for run in runs if not run.error]
        counts = {"web_search_requests": kinds.count("search"), "web_fetch_requests": kinds.count("fetch")}
        own = {**(usage.extra or {}).get(PROTOCOL, {}), "server_tool_use": counts}
        return replace(usage, extra={**(usage.extra or {}), PROTOCOL: own}) if kinds else usage

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
