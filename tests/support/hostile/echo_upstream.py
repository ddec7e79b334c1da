"""An upstream that answers with the markers that it saw (`store_checker.py`), as OpenAI Chat and as Anthropic Messages.

It keeps nothing: what it says of a conversation came in the request. An answer of Messages is a signed thought and a
call, so that a gateway has something to keep for a client that cannot carry it.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.hostile.store_checker import marks_in


def chat_answer(marks: tuple[str, ...]) -> dict[str, Any]:
    message = {"role": "assistant", "content": "saw " + " ".join(marks)}
    return {
        "id": f"chatcmpl-{marks[-1]}",
        "object": "chat.completion",
        "created": 1,
        "model": "echo",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }


def messages_answer(marks: tuple[str, ...]) -> dict[str, Any]:
    last = [mark for mark in marks if mark.startswith("mk-")][-1].removeprefix("mk-")
    content = [
        {"type": "thinking", "thinking": "Hm.", "signature": f"sg-{last}"},
        {"type": "text", "text": "saw " + " ".join(marks)},
        {"type": "tool_use", "id": f"toolu_0{last.replace('-', 'x')}abcdef12", "name": "look", "input": {}},
    ]
    return {
        "id": f"msg_{last}",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": content,
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 11, "output_tokens": 7},
    }


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        marks = marks_in(body)
        answer = messages_answer(marks) if self.path.endswith("/messages") else chat_answer(marks)
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class EchoServer(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A gateway that is killed leaves its connections: nothing to tell."""


@contextmanager
def echo_upstream() -> Iterator[str]:
    """Its address, as long as the block lasts."""
    server = EchoServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=lambda: server.serve_forever(0.05), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
