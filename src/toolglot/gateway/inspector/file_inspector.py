"""The inspector on files: the same page and paths as those of the gateway, over captures that were read.

    app = FileInspector(captures, overrides)          # an ASGI app, for a server on loopback

Laws: it serves its own page only: requests with a foreign Origin or Host are refused. It changes nothing, and calls
nobody.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from toolglot.errors import ToolglotError
from toolglot.gateway.endpoints.table import GatewayEndpoint, find
from toolglot.gateway.http.asgi_client import asgi_request
from toolglot.gateway.http.requests import ClientRequest, GatewayRefusal, Receive, Scope, Send, refusal
from toolglot.gateway.http.web_pages import refuse_pages
from toolglot.gateway.inspector.access import refuse_other_pages
from toolglot.gateway.inspector.answers import Answers, Captured, InspectorAnswer, json_answer, page_answer
from toolglot.gateway.inspector.conversation_index import ConversationIndex, facts_of, placed
from toolglot.gateway.inspector.exporting import export_info
from toolglot.gateway.inspector.page_files import SAFETY
from toolglot.gateway.inspector.rows import Row, row_of_capture
from toolglot.gateway.inspector.views.reading import text_of
from toolglot.profiles import Overrides

_PAGES: Final = frozenset({"inspector", "inspector_file"})


def grouped(captures: Sequence[Captured], overrides: Overrides | None = None) -> list[Captured]:
    """Captures with their conversations, in the order of time."""
    index, found = ConversationIndex(), []
    for captured in sorted(captures, key=_time):
        id, client, body = (text_of(captured, name) for name in ("id", "client", "request"))
        facts = facts_of(
            body, source=text_of(captured, "protocol"), session=text_of(captured, "session"), overrides=overrides
        )
        place = index.add(id, client, facts)
        row = placed(row_of_capture(captured), place)
        own: Captured = {"conversation": place.conversation, "parent": place.parent, "compared": place.compared}
        found.append({**captured, "row": row, **own})
    return found


def _time(captured: Captured) -> float:
    time = captured.get("time")
    return float(time) if isinstance(time, int | float) else 0.0


class FileSource:
    """The captures of files."""

    def __init__(self, captures: Sequence[Captured]) -> None:
        self._captures = {text_of(captured, "id"): captured for captured in captures}

    async def rows(self, limit: int, before: str) -> tuple[list[Row], str | None]:
        ids = [*reversed(self._captures)]
        start = ids.index(before) + 1 if before in self._captures else 0
        shown = ids[start : start + limit]
        is_more = start + limit < len(ids)
        return [self._captures[id]["row"] for id in shown], shown[-1] if is_more and shown else None

    async def capture(self, id: str) -> Captured | None:
        return self._captures.get(id)

    async def conversation(self, name: str) -> list[Captured]:
        return [captured for captured in self._captures.values() if captured.get("conversation") == name]


class FileInspector:
    """The page and its paths, over captures."""

    def __init__(self, captures: Sequence[Captured], overrides: Overrides | None = None) -> None:
        self._info = export_info(overrides, mode="file")
        self._answers = Answers(FileSource(captures), overrides=overrides)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = asgi_request(scope, receive, send)
        try:
            answer = await self._answer(request)
        except GatewayRefusal as error:
            answer = _error(error.failure.message, error.failure.status or 400)
        except ToolglotError as error:
            answer = _error(str(error), 400)
        data = b"" if request.method == "HEAD" else answer.data
        await request.channel.respond(answer.status, answer.headers, data)

    async def _answer(self, request: ClientRequest) -> InspectorAnswer:
        refuse_pages(request, ())
        path = "/inspector" if request.path == "/" else request.path
        endpoint = find(request.method, path, request.query, request.headers)
        if endpoint is None or not endpoint.action.startswith("inspector"):
            raise refusal("not_found", f"unknown path {request.path[:200]!r}; the page is at /inspector", 404)
        if request.method not in ("GET", "HEAD"):
            raise refusal("bad_request", "files are only shown: use GET", 405)
        if endpoint.action in _PAGES:
            return page_answer(endpoint, request)
        refuse_other_pages(request, ())
        return await self._shown(endpoint, request)

    async def _shown(self, endpoint: GatewayEndpoint, request: ClientRequest) -> InspectorAnswer:
        if endpoint.action == "inspector_info":
            return json_answer(self._info)
        return await self._answers.answer(endpoint.action, endpoint.name, endpoint.part, request.query)


def _error(message: str, status: int) -> InspectorAnswer:
    data = msgspec.json.encode({"error": {"message": message.encode("utf-8", "replace").decode()}})
    return InspectorAnswer(data, {**SAFETY, "content-type": "application/json"}, status)
