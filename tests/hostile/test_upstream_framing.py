"""Answers of an upstream that could be read in two ways, or that end early: the client gets one answer or an error.

What follows an answer on the same connection is never the answer to the next request, and an answer that broke off is
never passed on as a whole one. The long form (`make soak`) cuts at every byte, for all clients.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from support.gateway.http_client import PROTOCOLS, Got, ask, request_of
from support.gateway.served_gateway import Served, gateway
from support.hostile.hostile_upstream import (
    END,
    EVENTS,
    GOOD,
    Hostile,
    Way,
    chunk,
    delta,
    hostile,
    once,
    upstream_at,
    whole,
)
from support.hostile.raw_sockets import chunked
from support.waiting import wait_until

IS_LONG = "HOSTILE_LONG" in os.environ


def _reply(words: str) -> bytes:
    message = {"role": "assistant", "content": words}
    return json.dumps({**GOOD, "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()


MEANT, SMUGGLED, NEXT = _reply("meant"), whole(_reply("smuggled")), _reply("next")
LENGTH = f"content-length: {len(MEANT)}"
IN_CHUNKS = "transfer-encoding: chunked"
SIZE = b"%x" % len(MEANT)


def _head(*headers: str | bytes, line: str = "HTTP/1.1 200 OK") -> bytes:
    lines = [line.encode(), b"content-type: application/json"]
    lines += [header if isinstance(header, bytes) else header.encode("latin-1") for header in headers]
    return b"\r\n".join(lines) + b"\r\n\r\n"


ANSWERS: dict[str, bytes] = {
    "another answer behind it": _head(LENGTH) + MEANT + SMUGGLED,
    "another answer behind chunks": _head(IN_CHUNKS) + chunked(MEANT) + SMUGGLED,
    "length and chunks": _head(LENGTH, IN_CHUNKS) + b"0\r\n\r\n" + SMUGGLED,
    "chunks and length": _head(IN_CHUNKS, "content-length: 5") + chunked(MEANT) + SMUGGLED,
    "two lengths": _head("content-length: 0", LENGTH) + MEANT + SMUGGLED,
    "two lengths, the other order": _head(LENGTH, "content-length: 0") + MEANT + SMUGGLED,
    "length -1": _head("content-length: -1") + MEANT + SMUGGLED,
    "length +n": _head(f"content-length: +{len(MEANT)}") + MEANT + SMUGGLED,
    "length of 2**64": _head(f"content-length: {2**64}") + MEANT + SMUGGLED,
    "length of 2**64 and n": _head(f"content-length: {2**64 + len(MEANT)}") + MEANT + SMUGGLED,
    "length in words": _head("content-length: many") + MEANT + SMUGGLED,
    "length in a list": _head(f"content-length: {len(MEANT)}, 0") + MEANT + SMUGGLED,
    "length that is too short": _head("content-length: 10") + MEANT + SMUGGLED,
    "length 0": _head("content-length: 0") + MEANT + SMUGGLED,
    "chunk of -1": _head(IN_CHUNKS) + b"-1\r\n" + MEANT + b"\r\n0\r\n\r\n" + SMUGGLED,
    "chunk of 2**64": _head(IN_CHUNKS) + b"10000000000000000\r\n" + MEANT + b"\r\n0\r\n\r\n" + SMUGGLED,
    "chunk that is longer than its size": _head(IN_CHUNKS) + b"5\r\n" + MEANT + b"\r\n0\r\n\r\n" + SMUGGLED,
    "chunk that ends in LF": _head(IN_CHUNKS) + SIZE + b"\n" + MEANT + b"\n0\n\n" + SMUGGLED,
    "extension with LF": _head(IN_CHUNKS) + SIZE + b";a=\n" + MEANT + b"\r\n0\r\n\r\n" + SMUGGLED,
    "space before the colon": _head("transfer-encoding : chunked", LENGTH) + MEANT + SMUGGLED,
    "folded": _head("x-a: b\r\n transfer-encoding: chunked", LENGTH) + MEANT + SMUGGLED,
    "NUL in a header": _head("x-a: b\0c", LENGTH) + MEANT + SMUGGLED,
    "CR in a header": _head("x-a: b\rcontent-length: 0", LENGTH) + MEANT + SMUGGLED,
    "LF for CRLF": _head(LENGTH).replace(b"\r\n", b"\n") + MEANT + SMUGGLED,
    "chunks that are none": _head("transfer-encoding: xchunked") + chunked(MEANT) + SMUGGLED,
    "coding before chunks": _head("transfer-encoding: identity, chunked") + chunked(MEANT) + SMUGGLED,
    "HTTP/0.9": MEANT + SMUGGLED,
    "HTTP/2": b"\0\0\x12\4\0\0\0\0\0" + SMUGGLED,
    "no status": b"HTTP/1.1 OK\r\n\r\n" + MEANT + SMUGGLED,
    "status of two digits": _head(LENGTH, line="HTTP/1.1 20 OK") + MEANT + SMUGGLED,
    "status of four digits": _head(LENGTH, line="HTTP/1.1 2000 OK") + MEANT + SMUGGLED,
    "status -200": _head(LENGTH, line="HTTP/1.1 -200 OK") + MEANT + SMUGGLED,
    "204 with a body": _head(LENGTH, line="HTTP/1.1 204 No Content") + MEANT + SMUGGLED,
    "304 with a body": _head(LENGTH, line="HTTP/1.1 304 Not Modified") + MEANT + SMUGGLED,
    "101": b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n" + SMUGGLED,
    "100 with a body": _head(LENGTH, line="HTTP/1.1 100 Continue") + MEANT + SMUGGLED,
    "103, then 204": b"HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\nHTTP/1.1 204 No\r\n\r\n" + SMUGGLED,
}
MAY_BE_MEANT = frozenset(
    {
        *("another answer behind it", "another answer behind chunks", "coding before chunks"),
        *("length 0", "space before the colon", "100 with a body"),
    }
)
"""Of these the first answer has one reading, whatever follows."""

STREAM = EVENTS + chunk(delta("one ")) + chunk(delta("two ")) + chunk(END) + b"0\r\n\r\n"
FINISHED = STREAM.index(b"\n\ndata: [DONE]") + 2
"""Bytes after which the provider has sent why it ended."""
WHOLE = whole(MEANT)
STEP = 1 if IS_LONG else 11
CLIENTS = PROTOCOLS if IS_LONG else ("anthropic", "openai")


def _ways() -> dict[str, Way]:
    ways: dict[str, Way] = {"next": once(whole(NEXT))}
    ways |= {f"answer-{number}": once(data) for number, data in enumerate(ANSWERS.values())}
    ways |= {f"whole-{end}": once(WHOLE[:end]) for end in range(len(WHOLE))}
    return ways | {f"stream-{end}": once(STREAM[:end]) for end in range(len(STREAM) + 1)}


def _served(*, keeps_connections: bool) -> Iterator[tuple[Served, Hostile]]:
    with hostile(_ways(), keeps_connections=keeps_connections) as provider:
        hasty = upstream_at(provider, "first_byte_seconds = 0.3", "idle_seconds = 0.3", name="hasty")
        with gateway(
            None, upstreams=f"{hasty}\n{upstream_at(provider)}", environ={"HOSTILE_KEY": "a-key-of-the-gateway"}
        ) as served:
            yield served, provider


@pytest.fixture(scope="module")
def kept() -> Iterator[tuple[Served, Hostile]]:
    yield from _served(keeps_connections=True)


@pytest.fixture(scope="module")
def closed() -> Iterator[tuple[Served, Hostile]]:
    yield from _served(keeps_connections=False)


def _ask(served: Served, protocol: str, model: str, **more: Any) -> Got:
    return ask(served, *request_of(protocol, model, **more))


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_can_be_read_in_two_ways_is_an_error_and_never_the_next_ones(
    kept: tuple[Served, Hostile], name: str
) -> None:
    served, _ = kept
    got = _ask(served, "anthropic", f"hasty/answer-{[*ANSWERS].index(name)}")
    if name in MAY_BE_MEANT and got.status == 200:
        assert b"meant" in got.data
    else:
        assert 500 <= got.status <= 599
        assert got.body["type"] == "error"
    assert b"smuggled" not in got.data
    after = _ask(served, "openai", "h/next")
    assert after.status == 200
    assert after.body["choices"][0]["message"]["content"] == "next"
    wait_until(lambda: served.app.open == 0)


def _is_complete(protocol: str, got: Got) -> bool:
    """Whether a stream tells its client that the turn came to its end."""
    if got.status != 200 or b'"error":{' in got.data or b'"error":"' in got.data:
        return False
    ends = {"anthropic": b"message_stop", "openai": b"[DONE]", "openai_responses": b"response.completed"}
    return ends.get(protocol, b"finishReason" if protocol == "gemini" else b'"done":true') in got.data


@pytest.mark.parametrize("protocol", CLIENTS)
def test_a_stream_that_is_cut_at_any_byte_is_complete_only_if_the_provider_ended_it(
    closed: tuple[Served, Hostile], protocol: str
) -> None:
    served, provider = closed
    ends = {*range(0, len(STREAM), STEP), FINISHED - 1, FINISHED - 2, len(STREAM)}
    found = {
        end: _is_complete(protocol, _ask(served, protocol, f"h/stream-{end}", stream=True)) for end in sorted(ends)
    }
    assert [end for end, is_complete in found.items() if is_complete and end < FINISHED] == []
    assert found[len(STREAM)]
    wait_until(lambda: served.app.open == 0 and provider.open == 0)


@pytest.mark.parametrize("protocol", CLIENTS)
def test_an_answer_that_is_cut_at_any_byte_is_an_error(closed: tuple[Served, Hostile], protocol: str) -> None:
    served, provider = closed
    for end in range(0, len(WHOLE), STEP):
        got = _ask(served, protocol, f"h/whole-{end}")
        assert 500 <= got.status <= 599, (end, got)
        assert b"meant" not in got.data
    wait_until(lambda: served.app.open == 0 and provider.open == 0)
