"""Conversations that an inspector is asked to show: hostile ones, and many streams at once."""

from __future__ import annotations

import contextlib
import json
import selectors
import socket
import struct
import threading
import zlib
from base64 import b64encode
from collections.abc import Iterator
from typing import Any, Final

from support.gateway.served_gateway import Served
from support.hostile.raw_sockets import connect, post

SCRIPT_TAG: Final = (
    "<script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'><svg onload='window.hacked = 3'>"
)
HOSTILE: Final = (
    f"{SCRIPT_TAG} \u202eesrever\u202c \u0627\u0644\u0633\u0644\u0627\u0645 "
    "\U0001f600\U0001f469\u200d\U0001f4bb \x07\x1b[31m {{7*7}} ${7*7}"
)
"""HTML, scripts, a turned direction, Arabic, emoji, control characters, templates."""
LONG_LINE: Final = 5_000_000
TOOL: Final[dict[str, Any]] = {
    "name": "files/read",
    "description": f"Reads a file. {SCRIPT_TAG}",
    "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
}


def png() -> bytes:
    """A picture of one pixel."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b"")


def hostile_body(model: str, *, line: int = LONG_LINE, more: int = 0) -> dict[str, Any]:
    """A request of an Anthropic client with everything that a page could stumble over; `more` exchanges at its end."""
    picture = {"type": "base64", "media_type": "image/png", "data": b64encode(png()).decode()}
    call = {"type": "tool_use", "id": "toolu_01hostile", "name": TOOL["name"], "input": {"path": f"a {SCRIPT_TAG}"}}
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": f"{HOSTILE}\n{'x' * line}"}
    orphan = {"type": "tool_result", "tool_use_id": "toolu_of_nobody", "content": f"Of no call. {SCRIPT_TAG}"}
    thinking = {"type": "thinking", "thinking": f"Hm. {HOSTILE}", "signature": "Zm9yZ2Vk"}
    messages = [
        {"role": "user", "content": [{"type": "text", "text": HOSTILE}, {"type": "image", "source": picture}]},
        {"role": "assistant", "content": [thinking, {"type": "text", "text": "I read it."}, call]},
        {"role": "user", "content": [result, orphan, {"type": "text", "text": "What does it say?"}]},
    ]
    for number in range(more):
        messages.append({"role": "assistant", "content": f"It says {number}."})
        messages.append({"role": "user", "content": f"And then? {number}"})
    return {"model": model, "max_tokens": 4000, "system": f"Be short. {HOSTILE}", "tools": [TOOL], "messages": messages}


def long_body(model: str, turns: int, size: int) -> dict[str, Any]:
    """A conversation of so many turns, and about so many bytes."""
    words = "a line of text, as they come. " * max(1, size // turns // 30)
    messages = [{"role": ("user", "assistant")[index % 2], "content": f"{index}: {words}"} for index in range(turns)]
    return {"model": model, "max_tokens": 500, "messages": messages[: turns - 1 + turns % 2]}


@contextlib.contextmanager
def many_streams(served: Served, model: str, count: int) -> Iterator[None]:
    """So many streams through a gateway, as long as the block lasts: each is read as it comes."""
    body = {"model": model, "stream": True, "messages": [{"role": "user", "content": "A long story"}]}
    sockets: list[socket.socket] = []
    selector = selectors.DefaultSelector()
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            for key, _ in selector.select(0.2):
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                try:
                    if not connection.recv(65536):
                        selector.unregister(connection)
                except ConnectionError:
                    selector.unregister(connection)

    reader = threading.Thread(target=read, daemon=True)
    try:
        for number in range(count):
            connection = connect(served)
            sockets.append(connection)
            headers = f"x-api-key: any\r\nuser-agent: storyteller/{number}\r\n"
            connection.sendall(post(json.dumps(body).encode(), headers, "/v1/chat/completions"))
            selector.register(connection, selectors.EVENT_READ)
        reader.start()
        yield
    finally:
        stop.set()
        if reader.ident is not None:
            reader.join()
        selector.close()
        for connection in sockets:
            connection.close()
