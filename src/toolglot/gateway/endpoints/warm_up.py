"""The reply to a request that only prepares a conversation: `generate: false` over a WebSocket.

Law: no upstream is called, and nothing costs anything; the model, the key and the request are checked as usual.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from toolglot.conversation import Usage
from toolglot.conversation.events import Event, Finished, Started, Used
from toolglot.gateway.endpoints.table import GatewayEndpoint
from toolglot.gateway.http.requests import ResponseChannel
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.protocols.base import StreamOptions, codec


async def send_warm_up(
    channel: ResponseChannel, endpoint: GatewayEndpoint, record: RequestRecord, id: str, fields: Mapping[str, Any]
) -> None:
    """Send the stream of an empty response."""
    model = record.request.model
    options = StreamOptions(created=int(time.time()), model=model, settings=fields)
    encoder = codec(endpoint.protocol).stream.Encoder(options)
    events: list[Event] = [Started(id, model), Used(Usage(0, 0)), Finished("stop")]
    record.reply.end("stop", "")
    record.response.begin(200)
    await channel.begin(200, {"content-type": "text/event-stream", "x-toolglot-request": record.id})
    record.response.complete()
    await channel.write(encoder.write(events))
    await channel.end()
