"""An upstream that means harm: whatever it answers, a client gets what its protocol allows, and nothing of a key.

Every answer of the tables goes to the clients of all protocols, whole and as a stream. The judge is the soak's strict
reading of the protocols (`scripts/soak_clients.py`), which shares no code with the gateway.
"""

from __future__ import annotations

import gzip
import json
import sys
import zlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
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
from support.waiting import wait_until

sys.path.append(str(Path(__file__).parents[2] / "scripts"))

from soak_clients import TALKS, ClientReply, FailedError, IllegalError

SECRET = "0c4e1f7a9b3d5e2f8a6c0d1b2e3f4a59"  # noqa: S105 - made up
FORBIDDEN = (
    *("set-cookie", "location", "refresh", "clear-site-data", "access-control-allow-origin", "alt-svc", "link"),
    *(
        "access-control-allow-credentials",
        "upgrade",
        "www-authenticate",
        "proxy-authenticate",
        "service-worker-allowed",
    ),
)
"""Headers that say something about the gateway's own address, or about a connection: never an upstream's to give."""


def _reply(**more: Any) -> dict[str, Any]:
    return {**GOOD, **more}


def _choice(**message: Any) -> dict[str, Any]:
    full_message = {"role": "assistant", "content": "hi", **message}
    return _reply(choices=[{"index": 0, "message": full_message, "finish_reason": "stop"}])


def _call(**more: Any) -> dict[str, Any]:
    function = {"name": more.pop("name", "read_file"), "arguments": more.pop("arguments", '{"path": "a"}')}
    return {"index": 0, "id": "call_1", "type": "function", "function": function, **more}


def _as_json(value: Any, status: int = 200, headers: str = "") -> Way:
    return once(whole(value if isinstance(value, bytes) else json.dumps(value).encode(), status, headers))


def _as_stream(*pieces: Any, end: bytes = END) -> Way:
    """A stream of chunks; what is not bytes is the delta of one."""
    written = [
        piece
        if isinstance(piece, bytes)
        else b"data: " + json.dumps({"choices": [{"index": 0, "delta": piece}]}).encode() + b"\n\n"
        for piece in pieces
    ]
    return once(EVENTS + b"".join(chunk(piece) for piece in (*written, end) if piece) + b"0\r\n\r\n")


def _key_in(head: bytes) -> str:
    return head.lower().partition(b"authorization: bearer ")[2].partition(b"\r\n")[0].decode()


def _echo(status: int, kind: str, text: str, headers: str = "") -> Way:
    """An answer that repeats the key of its request wherever a table says `{key}`."""

    async def way(head: bytes) -> AsyncIterator[bytes]:
        data = text.replace("{key}", _key_in(head)).encode()
        lines = f"content-type: {kind}\r\n{headers}".replace("{key}", _key_in(head))
        yield f"HTTP/1.1 {status} {_key_in(head)}\r\n{lines}content-length: {len(data)}\r\n\r\n".encode() + data

    return way


LOOKS_LIKE = (
    'a\n\ndata: [DONE]\n\nevent: error\ndata: {"error":{}}\n\n0\r\n\r\nHTTP/1.1 200 OK\r\nset-cookie: a=b\r\n\r\n'
)
ODD_IDS = (
    "",
    " ",
    "\0",
    "a\r\nx-evil: 1",
    "<script>alert(1)</script>",
    "\u202e",
    "a" * 10_000,
    "../../etc",
    "\ud800",
    "💣",
)
HEADERS = (
    "set-cookie: a=b; domain=127.0.0.1\r\nlocation: http://evil.example/\r\naccess-control-allow-origin: *\r\n"
    'access-control-allow-credentials: true\r\nclear-site-data: "*"\r\nrefresh: 0;url=http://evil.example\r\n'
    "x-toolglot-request: forged\r\nx-toolglot-upstream: forged\r\nalt-svc: h3=evil\r\nlink: <x>; rel=preload\r\n"
    "service-worker-allowed: /\r\nwww-authenticate: Basic\r\nproxy-authenticate: Basic\r\ntransfer: x\r\n"
)
HINTS = b"HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\n"
PAGE = b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 13\r\n\r\n<html></html>"
_CHUNK = {**GOOD, "object": "chat.completion.chunk", "choices": [{"index": 10**9, "delta": {"content": "hi"}}]}

WHOLE: dict[str, Way] = {
    "headers": _as_json(GOOD, headers=HEADERS),
    "headers of an error": _as_json({"error": {"message": "no"}}, 400, HEADERS),
    "text that looks like a stream": _as_json(_choice(content=LOOKS_LIKE)),
    **{f"id {number}": _as_json(_choice(tool_calls=[_call(id=id)])) for number, id in enumerate(ODD_IDS)},
    **{f"name {number}": _as_json(_choice(tool_calls=[_call(name=name)])) for number, name in enumerate(ODD_IDS)},
    **{f"reply id {number}": _as_json(_reply(id=id, model=id)) for number, id in enumerate(ODD_IDS)},
    "the same id twice": _as_json(_choice(tool_calls=[_call(), _call(), _call(index=7)])),
    "arguments of another kind": _as_json(_choice(tool_calls=[_call(arguments=7), _call(arguments=None)])),
    "arguments that are no JSON": _as_json(_choice(tool_calls=[_call(arguments='{"path": "</script>\r\n\0')])),
    "arguments that are deep": _as_json(_choice(tool_calls=[_call(arguments="[" * 50_000)])),
    "no choices": _as_json(_reply(choices=[])),
    "choices null": _as_json(_reply(choices=None)),
    "choices a number": _as_json(_reply(choices=7)),
    "a choice of null": _as_json(_reply(choices=[None])),
    "no message": _as_json(_reply(choices=[{"index": 0, "finish_reason": "stop"}])),
    "a message of another kind": _as_json(_reply(choices=[{"index": 0, "message": "hi"}])),
    "content of another kind": _as_json(_choice(content={"a": 1})),
    "calls of another kind": _as_json(_choice(tool_calls={"a": 1})),
    "a call of null": _as_json(_choice(tool_calls=[None])),
    "an index of -1": _as_json(_reply(choices=[{**GOOD["choices"][0], "index": -1}])),  # type: ignore[index]
    "a finish of another kind": _as_json(_reply(choices=[{**GOOD["choices"][0], "finish_reason": [1]}])),  # type: ignore[index]
    "a finish with markup": _as_json(_reply(choices=[{**GOOD["choices"][0], "finish_reason": "<b>\r\n"}])),  # type: ignore[index]
    "usage of another kind": _as_json(_reply(usage=[1])),
    "usage of odd numbers": _as_json(_reply(usage={"prompt_tokens": -5, "completion_tokens": 1e300})),
    "a time of another kind": _as_json(_reply(created="yesterday")),
    "a time without end": _as_json(json.dumps(GOOD).encode().replace(b'"created": 1', b'"created": 1e999')),
    "NaN": _as_json(json.dumps(GOOD).encode().replace(b'"created": 1', b'"created": NaN')),
    "a key twice": _as_json(b'{"id":"a","id":"b",' + json.dumps(GOOD).encode()[1:]),
    "deep": _as_json(b'{"choices":' + b"[" * 100_000),
    "deep and whole": _as_json(b'{"choices":' + b"[" * 5000 + b"]" * 5000 + b"}"),
    "half a character": _as_json(json.dumps(GOOD).encode().replace(b'"hi"', b'"\\ud800"')),
    "a byte order mark": _as_json(b"\xef\xbb\xbf" + json.dumps(GOOD).encode()),
    "UTF-16": _as_json(json.dumps(GOOD).encode("utf-16")),
    "an empty body": _as_json(b""),
    "null": _as_json(b"null"),
    "a string": _as_json(b'"hi"'),
    "an error with status 200": _as_json({"error": {"message": "no", "code": {}, "type": 7}}),
    "an error of another kind": _as_json({"error": [[]]}, 500),
    "an error with markup": _as_json({"error": {"message": "<img src=x onerror=alert(1)>\r\nx: y\0"}}, 429),
    "a wait without end": _as_json({"error": {"message": "no"}}, 429, "retry-after: 1e999\r\n"),
    "a wait before now": _as_json({"error": {"message": "no"}}, 503, "retry-after: -99\r\n"),
    "a page": once(PAGE),
    "a picture": once(b"HTTP/1.1 200 OK\r\ncontent-type: image/png\r\ncontent-length: 4\r\n\r\n\x89PNG"),
    "no content type": once(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}"),
    "many notes before the answer": once(HINTS * 500 + whole(json.dumps(GOOD).encode())),
    "no redirect": _as_json(b"", 300, "location: /\r\n"),
    "gzip twice": _as_json(gzip.compress(gzip.compress(b"{}")), headers="content-encoding: gzip, gzip\r\n"),
    "an unknown coding": _as_json(GOOD, headers="content-encoding: br\r\n"),
    "a bomb of gzip as an error": _as_json(gzip.compress(b" " * 100_000_000, 1), 500, "content-encoding: gzip\r\n"),
    "a bomb of deflate": _as_json(zlib.compress(b" " * 100_000_000, 1), headers="content-encoding: deflate\r\n"),
    "the key in an error": _echo(401, "application/json", '{"error":{"message":"bad key {key}","param":"{key}"}}'),
    "the key in a page": _echo(403, "text/html", "<html>{key}</html>", "www-authenticate: Bearer {key}\r\n"),
    "the key in plain text": _echo(500, "text/plain", "failed for Bearer {key}", "x-request-id: {key}\r\n"),
    "the key in an error of another kind": _echo(
        400, "application/json", '{"detail":[{"loc":["{key}"],"msg":"{key}"}]}'
    ),
    "the key in a redirect": _echo(302, "text/plain", "{key}", "location: http://127.0.0.1:1/?key={key}\r\n"),
    "the key in an error with status 200": _echo(200, "application/json", '{"error":{"message":"who is {key}"}}'),
    "the key in what is no JSON": _echo(200, "application/json", "{key}"),
}
STREAMED: dict[str, Way] = {
    "text that looks like a stream": _as_stream({"content": LOOKS_LIKE}),
    **{f"id {number}": _as_stream({"tool_calls": [_call(id=id)]}) for number, id in enumerate(ODD_IDS)},
    **{f"name {number}": _as_stream({"tool_calls": [_call(name=name)]}) for number, name in enumerate(ODD_IDS)},
    "an index without end": _as_stream(
        {"tool_calls": [_call(index=10**18)]}, {"tool_calls": [_call(index=-1, id="b")]}
    ),
    "an index of another kind": _as_stream({"tool_calls": [_call(index="0")]}, {"tool_calls": [_call(index=None)]}),
    "a choice without end": _as_stream(b"data: " + json.dumps(_CHUNK).encode() + b"\n\n"),
    "comments": _as_stream(b":\n\n" * 20_000, {"content": "hi"}),
    "empty events": _as_stream(b"data: {}\n\n" * 5_000, {"content": "hi"}),
    "empty lines": _as_stream(b"\n" * 100_000, {"content": "hi"}),
    "names of events": _as_stream(b"event: " + b"x" * 100_000 + b"\ndata: {}\n\n", {"content": "hi"}),
    "unknown fields": _as_stream(b"retry: 1\nid: \0\nx: y\ndata: {}\n\n", {"content": "hi"}),
    "events that are no JSON": _as_stream(b"data: {\n\n", {"content": "hi"}),
    "events that are deep": _as_stream(b"data: " + b"[" * 100_000 + b"\n\n", {"content": "hi"}),
    "events that are not UTF-8": _as_stream(b"data: \xff\xfe\n\n", {"content": "hi"}),
    "half a character": _as_stream(b'data: {"choices":[{"index":0,"delta":{"content":"\\ud83d"}}]}\n\n'),
    "an error in the middle": _as_stream({"content": "hi"}, b'data: {"error":{"message":"no"}}\n\n'),
    "two ends": _as_stream({"content": "hi"}, END, {"content": "more"}),
    "no end": _as_stream({"content": "hi"}, end=b""),
    "nothing": _as_stream(end=b""),
    "JSON for a stream": _as_json(GOOD),
    "a stream that is a page": once(PAGE),
    "headers": once(EVENTS[:-2] + HEADERS.encode() + b"\r\n" + chunk(delta("hi")) + chunk(END) + b"0\r\n\r\n"),
    "the key in an error": _echo(401, "application/json", '{"error":{"message":"bad key {key}"}}'),
    "the key in a stream": _echo(200, "text/event-stream", 'data: {"error":{"message":"who is {key}?"}}\n\n'),
    "the key in what is no event": _echo(200, "text/event-stream", "{key}\n\n"),
    "the key in an event that is no JSON": _echo(200, "text/event-stream", "data: {key}\n\n"),
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Hostile]:
    ways: dict[str, Way] = {"good": _as_json(GOOD)}
    for prefix, table in (("w", WHOLE), ("s", STREAMED)):
        ways |= {f"{prefix}{number}": way for number, way in enumerate(table.values())}
    with hostile(ways) as running:
        yield running


@pytest.fixture(scope="module")
def served(provider: Hostile) -> Iterator[Served]:
    with gateway(None, upstreams=upstream_at(provider), environ={"HOSTILE_KEY": SECRET}) as running:
        yield running


OWN_ERRORS = (400, 500)
TALK_OF = {"openai_responses": "responses"}


def _read(protocol: str, got: Got, *, stream: bool) -> ClientReply | None:
    """What a client understands; None: an error of its protocol. Everything else is illegal."""
    talk = TALKS[TALK_OF.get(protocol, protocol)]("any", ("read_file",), thinks=False)
    if got.status != 200:
        assert 400 <= got.status <= 599
        if protocol == "openai" and got.status in OWN_ERRORS:  # it comes from its own protocol, and stays what it was
            assert isinstance(got.body, dict)
        else:
            assert talk.read_error(got.data)
        return None
    try:
        return talk.read_stream(got.data) if stream else talk.read_reply(got.data)
    except FailedError:
        return None


def _wrong(protocol: str, got: Got, *, stream: bool) -> str:
    """What is wrong with an answer to a client; empty: nothing."""
    try:
        _read(protocol, got, stream=stream)
    except (IllegalError, AssertionError, KeyError, TypeError, ValueError) as error:
        return f"illegal: {error!r} {got.data[:300]!r}"
    if SECRET in f"{got.headers}{got.data!r}":
        return "the key is in it"
    if found := [name for name in FORBIDDEN if name in got.headers] + ["forged"] * ("forged" in str(got.headers)):
        return f"headers that are not the upstream's to give: {found}"
    return "the gateway failed" if b"internal error of the gateway" in got.data else ""


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
def test_whatever_an_upstream_says_the_client_gets_what_its_protocol_allows(
    served: Served, provider: Hostile, capfd: pytest.CaptureFixture[str], protocol: str, stream: bool
) -> None:
    found: dict[str, str] = {}
    for number, name in enumerate(STREAMED if stream else WHOLE):
        path, body = request_of(protocol, f"h/{'s' if stream else 'w'}{number}", stream=stream)
        wrong = _wrong(protocol, ask(served, path, body), stream=stream)
        if wrong:
            found[name] = wrong
    assert found == {}
    wait_until(lambda: served.app.open == 0 and provider.open == 0)
    assert "Traceback" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("stream", [False, True])
def test_text_that_looks_like_a_protocol_is_text(served: Served, protocol: str, stream: bool) -> None:
    table = [*(STREAMED if stream else WHOLE)]
    number = table.index("text that looks like a stream")
    got = ask(served, *request_of(protocol, f"h/{'s' if stream else 'w'}{number}", stream=stream))
    reply = _read(protocol, got, stream=stream)
    assert reply is not None
    assert reply.text == LOOKS_LIKE


def test_a_redirect_is_never_followed(provider: Hostile) -> None:
    """Neither with the key nor without, wherever it leads."""
    goal = {"good": _as_json(GOOD), "passed": _as_json(GOOD)}
    with hostile(goal) as elsewhere:
        location = f"location: {elsewhere.url}/chat/completions\r\n"
        ways = {str(status): _as_json(b"", status, location) for status in (301, 302, 303, 307, 308)}
        with (
            hostile(ways) as redirecting,
            gateway(None, upstreams=upstream_at(redirecting), environ={"HOSTILE_KEY": SECRET}) as served,
        ):
            for status in ways:
                got = ask(served, *request_of("openai", f"h/{status}"))
                assert 500 <= got.status <= 599
                assert "location" not in got.headers
        assert elsewhere.heads == []
