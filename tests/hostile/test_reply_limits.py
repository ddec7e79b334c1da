"""An upstream's answer that breaks a limit is the upstream's failure: the next one is called, and a client never hears
that it should have sent less.

All over real sockets: an upstream that sends bytes as they are written here, before one that answers well.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest

from support.gateway.http_client import PROTOCOLS, Got, ask, request_of
from support.gateway.served_gateway import Served, gateway
from support.hostile.hostile_upstream import END, EVENTS, GOOD, Hostile, Way, chunk, delta, hostile, once, whole

MOST_BYTES = 200_000
"""`max_answer_bytes` of the gateways here."""


def answer_with(content: Any) -> bytes:
    """A whole answer with this as what the model wrote."""
    return json.dumps(
        {**GOOD, "choices": [{"index": 0, "message": {"role": "assistant", "content": content}}]}
    ).encode()


def event(content: bytes) -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{"role":"assistant","content":' + content + b"}}]}\n\n"


def streamed(*events: bytes) -> bytes:
    return EVENTS + b"".join(map(chunk, events)) + b"0\r\n\r\n"


DEEP = b"[" * 300 + b'"\\ud800"' + b"]" * 300
"""Half a surrogate pair has to be fixed, so that no faster reader of JSON takes it."""
MANY = b'["\\ud800",' + b"0," * 2_000_100 + b"0]"
LARGE = b'"' + b"x" * 2 * MOST_BYTES + b'"'
LONG_EVENT = b'"' + b"x" * 17 * 1024 * 1024 + b'"'

WHOLE: dict[str, tuple[Way, str]] = {
    "large": (once(whole(answer_with("x" * 2 * MOST_BYTES))), "max_answer_bytes"),
    "packed": (
        once(whole(gzip.compress(answer_with("x" * 2 * MOST_BYTES)), headers="content-encoding: gzip\r\n")),
        "max_answer_bytes",
    ),
    "deep": (once(whole(answer_with("D").replace(b'"D"', DEEP))), "max_depth"),
    "header": (once(whole(answer_with("hi"), headers=f"x-long: {'x' * 70_000}\r\n")), "sent headers of more than"),
    "refusal": (once(whole(b"x" * 2 * MOST_BYTES, status=500)), f"more than {MOST_BYTES} bytes"),
}
STREAMED: dict[str, tuple[Way, str]] = {
    "large": (once(streamed(event(LARGE))), "max_answer_bytes"),
    "whole": (once(whole(answer_with("x" * 2 * MOST_BYTES))), "max_answer_bytes"),
    "packed": (
        once(whole(gzip.compress(event(LARGE)), headers="content-encoding: gzip\r\n")),
        "max_answer_bytes",
    ),
    "deep": (once(streamed(event(DEEP))), "max_depth"),
    "header": (once(whole(answer_with("hi"), headers=f"x-long: {'x' * 70_000}\r\n")), "sent headers of more than"),
}
"""What is sent, and what the error says of it, by name."""
LARGER: dict[str, tuple[Way, str]] = {
    "many": (once(whole(answer_with("D").replace(b'"D"', MANY))), "max_nodes"),
    "many-stream": (once(streamed(event(MANY))), "max_nodes"),
    "event-stream": (once(streamed(event(LONG_EVENT))), "an event of the stream is longer than the limit of 16777216"),
}
"""What is only too large for limits that are fixed."""

GOOD_WAYS: dict[str, Way] = {
    "good": once(whole(answer_with("hi"))),
    "good-stream": once(streamed(delta("hi"), END)),
}
WAYS = {
    **{name: way for name, (way, _) in (WHOLE | LARGER).items()},
    **{f"{name}-stream": way for name, (way, _) in STREAMED.items()},
    **GOOD_WAYS,
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Hostile]:
    with hostile(WAYS) as running:
        yield running


def served_by(provider: Hostile, settings: str) -> Any:
    upstreams = "".join(
        f'[upstreams.{name}]\nurl = "{provider.url}"\nbreaker_failures = 10000\n' for name in ("bad", "well")
    )
    models = {
        f"{end}{stream}": f'["bad/{end}{stream}", "well/good{stream}"]'
        for end in (*WHOLE, *STREAMED, "many", "event")
        for stream in ("", "-stream")
    }
    return gateway(None, settings=settings, upstreams=upstreams, models=models)


@pytest.fixture(scope="module")
def small(provider: Hostile) -> Iterator[Served]:
    with served_by(provider, f"max_answer_bytes = {MOST_BYTES}") as running:
        yield running


@pytest.fixture(scope="module")
def usual(provider: Hostile) -> Iterator[Served]:
    with served_by(provider, "") as running:
        yield running


def check_passed_over(served: Served, got: Got) -> None:
    """The client has the answer of the second one, and the first one's failure is counted once."""
    assert got.status == 200, got.data[:500]
    assert b"hi" in got.data
    assert got.headers["x-toolglot-upstream"].startswith("well/good")
    record = served.records[-1]
    assert (record.calls.failures, record.response.error, record.response.is_broken) == ([("bad", "server")], "", False)


def check_refused(got: Got, words: str) -> None:
    """The client hears what was wrong with the answer, and nothing of what it could do about it."""
    assert got.status == 502, got.data[:500]
    text = got.data.decode()
    assert words in text
    for blaming in ("smaller", "too large", "too_large", "invalid_request", "INVALID_ARGUMENT"):
        assert blaming not in text, text[:500]


CASES = [(name, words, False) for name, (_, words) in WHOLE.items()]
CASES += [(f"{name}-stream", words, True) for name, (_, words) in STREAMED.items()]


@pytest.mark.parametrize(("name", "words", "stream"), CASES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_beyond_a_limit_is_passed_over(
    small: Served, protocol: str, name: str, words: str, stream: bool
) -> None:
    check_passed_over(small, ask(small, *request_of(protocol, name, stream=stream)))
    check_refused(ask(small, *request_of(protocol, f"bad/{name}", stream=stream)), words)


@pytest.mark.parametrize(("name", "words"), [(name, words) for name, (_, words) in LARGER.items()])
def test_an_answer_beyond_a_fixed_limit_is_passed_over(usual: Served, name: str, words: str) -> None:
    stream = name.endswith("-stream")
    check_passed_over(usual, ask(usual, *request_of("anthropic", name, stream=stream)))
    check_refused(ask(usual, *request_of("anthropic", f"bad/{name}", stream=stream)), words)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_an_answer_that_breaks_a_limit_after_its_beginning_ends_as_an_error_of_the_stream(protocol: str) -> None:
    events = streamed(delta("hi"), *[delta("x" * 30_000)] * 10)

    async def later(_head: bytes) -> Any:
        """The beginning is on its way to the client before the rest comes."""
        yield EVENTS + chunk(delta("hi"))
        for _ in range(10):
            yield chunk(delta("x" * 30_000))

    assert len(events) > MOST_BYTES
    with hostile({"long": later}) as provider, served_by(provider, f"max_answer_bytes = {MOST_BYTES}") as served:
        got = ask(served, *request_of(protocol, "bad/long", stream=True))
    assert got.status == 200
    text = got.data.decode()
    assert "max_answer_bytes" in text
    assert "smaller" not in text
    assert len(got.data) < 10 * MOST_BYTES, "some protocols say everything again at their end"
    record = served.records[-1]
    assert (record.response.is_broken, record.calls.failures) == (True, [("bad", "server")])


def test_a_request_of_the_client_that_breaks_a_limit_is_still_its_own(small: Served) -> None:
    path, body = request_of("openai", "well/good")
    got = ask(small, path, json.dumps(body).encode().replace(b'"What is in a.txt?"', DEEP))
    assert got.status in (400, 413)
    assert b"max_depth" in got.data


def test_requests_and_answers_have_limits_of_their_own(provider: Hostile) -> None:
    with served_by(provider, "max_body_bytes = 5000") as served:
        got = ask(served, *request_of("openai", "bad/large"))
    assert got.status == 200, "max_body_bytes is for requests"
