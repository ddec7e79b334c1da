"""What the inspector's paths answer, over requests of a gateway or of files.

    answers = Answers(source, overrides=config.overrides)
    answer = await answers.view("tg_…", "diff", {})

Laws: of one source, whoever asks. The answers are functions of captures, so that a running gateway, `toolglot inspect`
and an exported page show the same. What takes long runs in a thread.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol

import msgspec
from msgspec import Struct

from toolglot.errors import InputError
from toolglot.gateway.endpoints.table import GatewayEndpoint
from toolglot.gateway.http import offloading
from toolglot.gateway.http.requests import ClientRequest, refusal
from toolglot.gateway.inspector.exporting import EXPORT_TYPES, encodable, exported_page, jsonl
from toolglot.gateway.inspector.page_files import INDEX, SAFETY, page_file
from toolglot.gateway.inspector.rows import Row
from toolglot.gateway.inspector.views.blocks import PICTURES, media_of
from toolglot.gateway.inspector.views.code import code_of
from toolglot.gateway.inspector.views.detail import MAX_TEXTS, TEXTS, detail_of
from toolglot.gateway.inspector.views.explanation import explanation_of
from toolglot.gateway.inspector.views.prefix_diff import diff_of
from toolglot.gateway.inspector.views.reading import receive, text_of
from toolglot.gateway.inspector.views.target_table import on_target, overview
from toolglot.gateway.inspector.views.timeline import timeline_of
from toolglot.profiles import Overrides
from toolglot.upstream.prices import LISTED, Prices

Captured = dict[str, Any]

MAX_LISTED: Final = 1_000
USUALLY_LISTED: Final = 200
MAX_NAME: Final = 300
JSON_HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {**SAFETY, "content-type": "application/json", "cache-control": "no-store"}
)


class InspectorAnswer(Struct, frozen=True):
    """A response of the inspector."""

    data: bytes
    headers: Mapping[str, str] = JSON_HEADERS
    status: int = 200


class InspectorSource(Protocol):
    """The requests that one client may see."""

    async def rows(self, limit: int, before: str) -> tuple[list[Row], str | None]:
        """The requests before a cursor, the latest first, and the cursor of the next ones."""
        ...

    async def capture(self, id: str) -> Captured | None:
        """Everything about a request, with its `row`, `conversation` and `parent`."""
        ...

    async def conversation(self, name: str) -> list[Captured]:
        """The requests of a conversation, the oldest first."""
        ...


def json_answer(value: Any) -> InspectorAnswer:
    """A value as JSON. Half surrogate pairs, which no JSON can hold, are replaced."""
    try:
        return InspectorAnswer(msgspec.json.encode(value))
    except UnicodeEncodeError:
        return InspectorAnswer(msgspec.json.encode(encodable(value)))


class Answers:
    """The answers about the requests of one source."""

    def __init__(self, source: InspectorSource, *, overrides: Overrides | None = None, prices: Prices = LISTED) -> None:
        self._source = source
        self._overrides = overrides
        self._prices = prices
        self._views: dict[str, Callable[[Captured, Mapping[str, str]], Awaitable[InspectorAnswer]]] = {
            "explain": self._explain,
            "diff": self._diff,
            "timeline": self._timeline,
            "targets": self._targets,
            "code": self._code,
            "export": self._export,
        }

    async def answer(self, action: str, name: str, part: str, query: Mapping[str, str]) -> InspectorAnswer:
        """The answer of an endpoint. One that is not about requests that are over is refused."""
        if action == "inspector_requests":
            return await self.rows(query)
        if action == "inspector_request":
            return await self.request(name, query)
        if action == "inspector_view":
            return await self.view(name, part, query)
        if action == "inspector_target":
            return await self.target(name, part, query)
        if action == "inspector_media":
            return await self.media(name, part)
        if action == "inspector_body":
            return await self.body(name, part)
        if action == "inspector_conversation":
            return await self.conversation(name, query)
        raise refusal("not_found", "this is shown of a running gateway only", 404)

    async def rows(self, query: Mapping[str, str]) -> InspectorAnswer:
        """The list."""
        limit = min(whole_number(query, "limit", USUALLY_LISTED), MAX_LISTED)
        rows, following = await self._source.rows(limit, query.get("before", ""))
        return json_answer({"rows": rows, "more": following is not None, "next": following})

    async def request(self, id: str, query: Mapping[str, str]) -> InspectorAnswer:
        """One request. `from` and `to` name the turns; `texts=0` leaves the bodies out."""
        captured = await self.capture(id)
        first = whole_number(query, "from", 0) if "from" in query else None
        last = whole_number(query, "to", 0) if "to" in query else None
        max_texts = MAX_TEXTS if query.get("texts", "1") != "0" else 0
        overrides = self._overrides
        return await self._work(
            captured, lambda: json_answer(detail_of(captured, overrides, first=first, last=last, max_texts=max_texts))
        )

    async def view(self, id: str, name: str, query: Mapping[str, str]) -> InspectorAnswer:
        """A part of what is known of one request."""
        return await self._views[name](await self.capture(id), query)

    async def target(self, id: str, name: str, query: Mapping[str, str]) -> InspectorAnswer:
        """A request as one target is sent it."""
        captured, model = await self.capture(id), query.get("model", "")[:MAX_NAME]
        return await self._work(captured, lambda: json_answer(on_target(captured, name, model, self._overrides)))

    async def media(self, id: str, number: str) -> InspectorAnswer:
        """A picture of a request. Whatever is none is a download, and never shown."""
        captured = await self.capture(id)
        if not number.isdecimal():
            raise refusal("not_found", "pictures have numbers", 404)
        return await self._work(captured, lambda: media_answer(captured, int(number[:9]), self._overrides))

    async def body(self, id: str, name: str) -> InspectorAnswer:
        """One of the bodies of a request, as text."""
        if name not in TEXTS:
            raise refusal("not_found", f"unknown body {name[:40]!r}; one of {', '.join(TEXTS)}", 404)
        captured = await self.capture(id)
        headers = {**JSON_HEADERS, "content-type": "text/plain; charset=utf-8"}
        return InspectorAnswer(text_of(captured, name).encode("utf-8", "replace"), headers)

    async def conversation(self, name: str, query: Mapping[str, str]) -> InspectorAnswer:
        """All requests of a conversation, as a file."""
        captures = await self._source.conversation(name)
        if not captures:
            raise refusal("not_found", f"unknown conversation {name[:60]!r}", 404)
        return await self._exported(captures, query)

    # --- views --------------------------------------------------------------------------------------

    async def _explain(self, _captured: Captured, query: Mapping[str, str]) -> InspectorAnswer:
        try:
            return json_answer(explanation_of(query.get("rule", ""), self._overrides))
        except InputError as error:
            raise refusal("not_found", str(error), 404) from None

    async def _export(self, captured: Captured, query: Mapping[str, str]) -> InspectorAnswer:
        return await self._exported([captured], query)

    async def _exported(self, captures: list[Captured], query: Mapping[str, str]) -> InspectorAnswer:
        """Captures as a file: JSONL, or a page."""
        form = query.get("form", "html")
        if form not in EXPORT_TYPES:
            raise refusal("bad_request", f"unknown form {form[:40]!r}; one of {', '.join(EXPORT_TYPES)}", 400)
        name = f"toolglot-{text_of(captures[-1], 'id') or 'requests'}.{form}"
        headers = {
            **JSON_HEADERS,
            "content-type": EXPORT_TYPES[form],
            "content-disposition": f'attachment; filename="{re.sub("[^A-Za-z0-9_.-]", "", name)}"',
        }
        if form == "jsonl":
            data = await offloading.in_thread(lambda: jsonl(captures))
        else:
            data = await offloading.in_thread(lambda: exported_page(captures, self._overrides, self._prices))
        return InspectorAnswer(data, headers)

    async def _diff(self, captured: Captured, _query: Mapping[str, str]) -> InspectorAnswer:
        compared = captured.get("compared")
        previous = await self._source.capture(compared) if isinstance(compared, str) else None
        price = self._prices.of(text_of(captured, "sent_model"), text_of(captured, "upstream"))
        return await self._work(
            captured, lambda: json_answer(diff_of(captured, previous, self._overrides, price)), previous
        )

    async def _timeline(self, captured: Captured, _query: Mapping[str, str]) -> InspectorAnswer:
        return await self._work(captured, lambda: json_answer(timeline_of(captured, self._overrides)))

    async def _targets(self, captured: Captured, query: Mapping[str, str]) -> InspectorAnswer:
        # In a thread whatever its size: it is rendered for each target.
        only = query.get("only", "")[:MAX_NAME]
        return await offloading.in_thread(lambda: json_answer({"targets": overview(captured, self._overrides, only)}))

    async def _code(self, captured: Captured, query: Mapping[str, str]) -> InspectorAnswer:
        form = query.get("as", "curl")
        return await self._work(captured, lambda: json_answer({"text": code_of(captured, form, self._overrides)}))

    # --- captures -----------------------------------------------------------------------------------

    async def capture(self, id: str) -> Captured:
        """The capture of a request that there is."""
        captured = await self._source.capture(id)
        if captured is None:
            message = f"unknown request {id[:60]!r}; only the last ones are kept (reports in [gateway])"
            raise refusal("not_found", message, 404)
        return captured

    async def _work(
        self, captured: Captured, work: Callable[[], InspectorAnswer], other: Captured | None = None
    ) -> InspectorAnswer:
        """The result of work on captures, in a thread if they are large."""
        size = sum(len(text_of(each, name)) for each in (captured, other or {}) for name in TEXTS)
        return await offloading.run(0, 4 * size, work)


def page_answer(endpoint: GatewayEndpoint, request: ClientRequest) -> InspectorAnswer:
    """A file of the page."""
    name = endpoint.name if endpoint.action == "inspector_file" else INDEX
    found = page_file(name, request.headers.get("if-none-match", ""))
    if found is None:
        raise refusal("not_found", f"the inspector has no file {name[:60]!r}", 404)
    return InspectorAnswer(found.data, found.headers, found.status)


def media_answer(captured: Captured, number: int, overrides: Overrides | None) -> InspectorAnswer:
    """The bytes of a picture."""
    read = receive(captured, overrides)
    found = media_of(read.conversation) if read is not None else []
    if number >= len(found) or not found[number].data:
        raise refusal("not_found", "there is no such picture, or it is only an address", 404)
    try:
        data = base64.b64decode(found[number].data or "", validate=False)
    except ValueError:
        raise refusal("not_found", "the picture is not base64", 404) from None
    media_type = found[number].media_type
    if media_type in PICTURES:
        return InspectorAnswer(data, {**JSON_HEADERS, "content-type": media_type})
    download = {"content-type": "application/octet-stream", "content-disposition": "attachment"}
    return InspectorAnswer(data, {**JSON_HEADERS, **download})


def whole_number(query: Mapping[str, str], name: str, default: int) -> int:
    """A number of the query. One that is none is refused."""
    text = query.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or len(text) > 9:
        raise refusal("bad_request", f"expected a whole number for {name}, got {text[:40]!r}", 400)
    return int(text)
