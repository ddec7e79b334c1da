"""Sends a request of the past once more, to any model.

    replay = Replay(record, model="mistral/mistral-large-latest", stream=True, headers=…)
    request = replay.request()                     # for Gateway.serve: it goes the way of every request

Laws: only on a click, never by itself. It is a request of the key that asks for it, with that key's limits and budgets.
The body is what the client sent, but for the model and whether it is a stream.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote

import msgspec

from toolglot.gateway.endpoints.table import find
from toolglot.gateway.http.requests import ClientRequest, Headers, Hold, ignore_size, refusal
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.protocols.base import get

MAX_REPLAYS: Final = 8
"""Replays in progress at once."""
_KEY_HEADERS: Final = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
_MODEL: Final = re.compile(r"[^\x00-\x1f\x7f]{1,300}")


class ReplayChannel:
    """The client of a replay: it has a body, and reads no response. What comes is captured on its way here."""

    def __init__(self, body: bytes) -> None:
        self._body = body
        self._task: asyncio.Task[None] | None = None

    @property
    def is_gone(self) -> bool:
        return False

    @property
    def task(self) -> asyncio.Task[None] | None:
        return self._task

    def use(self, task: asyncio.Task[None]) -> None:
        """The task that answers it."""
        self._task = task

    def watch(self, on_disconnect: Callable[[], None]) -> None:
        pass

    def stop_watching(self) -> None:
        pass

    async def read(self, max_bytes: int, hold: Hold = ignore_size) -> bytes:  # noqa: ARG002 - it was read before
        hold(len(self._body))
        return self._body

    async def respond(self, status: int, headers: Headers, data: bytes) -> None:
        pass

    async def begin(self, status: int, headers: Headers) -> None:
        pass

    async def write(self, data: bytes) -> None:
        pass

    async def end(self) -> None:
        pass


def read_wish(body: bytes) -> tuple[str, bool]:
    """The model and whether a stream is wanted, from the body of a request for a replay."""
    try:
        wish = msgspec.json.decode(body, type=dict[str, Any])
    except (ValueError, RecursionError):
        raise refusal("bad_request", 'expected {"model": "…", "stream": true}', 400) from None
    model, stream = wish.get("model"), wish.get("stream", False)
    if not isinstance(model, str) or _MODEL.fullmatch(model.strip()) is None:
        raise refusal("bad_request", "expected the name of a model for model", 400)
    if not isinstance(stream, bool):
        raise refusal("bad_request", "expected true or false for stream", 400)
    return model.strip(), stream


def replay_request(record: RequestRecord, model: str, headers: Mapping[str, str], *, stream: bool) -> ClientRequest:
    """The request that repeats another one. One whose body is not kept, or is not a request to a model, is refused."""
    original = record.request
    endpoint = find("POST", original.path, {}, {})
    if not original.body:
        raise refusal("bad_request", 'the body of this request is not kept (keep = "bodies" in [inspector])', 409)
    if endpoint is None or endpoint.action != "generate" or endpoint.is_hosted:
        raise refusal("bad_request", "only requests to models can be repeated", 409)
    try:
        body = msgspec.json.decode(original.body, type=dict[str, Any])
    except (ValueError, RecursionError):
        raise refusal("bad_request", "the body of this request is not a JSON object", 409) from None
    path = original.path
    if endpoint.model:
        path = path_of(endpoint.protocol, model, stream=stream)
    else:
        body = {**body, "model": model, "stream": stream}
        if not stream:
            body.pop("stream_options", None)  # some clients send it only with a stream, and some providers refuse it
    data = msgspec.json.encode(body)
    own = {name: headers[name] for name in _KEY_HEADERS if headers.get(name)}
    sent = {**own, "content-type": "application/json", "user-agent": "toolglot-inspector"}
    path, _, query = path.partition("?")
    request = ClientRequest(ReplayChannel(data), "POST", path, path, query, sent, 0)
    request.replay_of = record.id
    return request


def path_of(protocol: str, model: str, *, stream: bool) -> str:
    """The path of a protocol whose paths name the model."""
    record = get(protocol)
    form = record.stream_path if stream and record.stream_path else record.path
    folder = f"{record.model_folders[0]}/" if record.model_folders else ""
    return form.replace("{model}", folder + quote(model, safe=""))
