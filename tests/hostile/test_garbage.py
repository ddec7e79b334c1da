"""Nothing that is translated is left to the garbage collector: what a stream read is freed with it.

An answer of 80,000 calls left 100 MB of values that refer to each other, which stayed until the next full collection.
"""

from __future__ import annotations

import contextlib
import itertools
import json

import pytest

import toolglot
from support.gateway.http_client import PROTOCOLS as CLIENTS
from support.gateway.http_client import ask, request_of
from support.gateway.served_gateway import gateway
from support.hostile.fuzz_bodies import replies, requests
from support.hostile.garbage import collecting, left_by
from support.sessions.simulated_sessions import SimulatedProviders, run_with_providers
from support.translate.reply_bodies import BODIES, PROTOCOLS, stream_of
from toolglot import Policy, ToolglotError
from toolglot.simulator import serve

POLICIES = {"plain": Policy(), "calls in text": Policy(calls_in_text="always", stream_calls="whole")}
STREAMS = {
    protocol: [stream_of(protocol, bodies[protocol]) for bodies in BODIES.values() if protocol in bodies]
    for protocol in PROTOCOLS
}


class Circle:
    """Something that refers to itself."""

    def __init__(self) -> None:
        self.me = self


Circle.__module__ = "toolglot.planted"


def test_what_refers_to_itself_is_seen() -> None:
    assert left_by(Circle) == {"toolglot.planted.Circle": 1}
    assert left_by(lambda: [Circle] * 3) == {}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("source", PROTOCOLS)
def test_a_translated_stream_leaves_nothing(source: str, policy: str) -> None:
    def translate() -> None:
        for target in PROTOCOLS:
            for data in STREAMS[source][::2]:
                translator = toolglot.StreamTranslator(source=source, target=target, policy=POLICIES[policy])
                for start in range(0, len(data), 200):
                    translator.feed(data[start : start + 200])
                translator.finish()
                assert translator.report is not None
                assert translator.reply is not None

    assert left_by(translate) == {}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("end", ["never", "closed", "failed", "damaged"])
def test_a_stream_that_does_not_come_to_its_end_leaves_nothing(end: str, policy: str) -> None:
    def translate() -> None:
        for source in PROTOCOLS:
            for data in STREAMS[source][::3]:
                translator = toolglot.StreamTranslator(source=source, target="openai", policy=POLICIES[policy])
                reader = toolglot.StreamReader(source=source, policy=POLICIES[policy])
                for each in (translator, reader):
                    each.feed(data[: len(data) * 2 // 3])
                    if end == "closed":
                        each.close()
                    elif end == "failed":
                        each.fail()
                    elif end == "damaged":
                        each.feed(b'data: {"a": \xff\n\n' * 3)
                        each.finish()

    assert left_by(translate) == {}


@pytest.mark.parametrize("source", PROTOCOLS)
def test_whole_replies_and_requests_leave_nothing(source: str) -> None:
    bodies = [json.dumps(body).encode() for body in requests(source)[::12]]
    answered = [json.dumps(body).encode() for body in replies(source)]

    def convert() -> None:
        for target in PROTOCOLS:
            for body in bodies:
                with contextlib.suppress(ToolglotError):
                    str(toolglot.convert(body, source=source, target=target).report)
            for body in answered:
                with contextlib.suppress(ToolglotError):
                    str(toolglot.convert_reply(body, source=source, target=target).report)

    assert left_by(convert) == {}


def test_text_and_chunks_leave_nothing() -> None:
    def read() -> None:
        toolglot.parse_text('<tool_call>{"name": "ls", "arguments": {}}</tool_call>', tools=["ls"])
        toolglot.parse_text("<think>a", tools=["ls"], rescue_thinking=True)
        toolglot.TextToolStream(tools=["ls"]).feed("<tool_call>{")
        accumulator = toolglot.ToolCallAccumulator("openai")
        accumulator.add_chunk(STREAMS["openai_chat"][2])
        accumulator.drain()

    assert left_by(read) == {}


def test_the_streams_of_a_gateway_leave_nothing() -> None:
    with serve({"rules": [{"reply": {"text": "Hello."}}]}) as simulated, gateway(simulated) as served:

        def converse() -> None:
            for client, upstream in itertools.product(CLIENTS, PROTOCOLS):
                path, body = request_of(client, f"{upstream}/some-model", stream=True)
                assert ask(served, path, body).status == 200
            assert served.records

        assert left_by(converse) == {}


@toolglot.tool
def read_file(path: str) -> str:
    return path


@pytest.mark.parametrize("model", ["anthropic/claude-opus-5", "openai/gpt-5.5", "gemini/gemini-3-pro"])
def test_the_answers_of_a_session_leave_nothing(model: str) -> None:
    async def scene(providers: SimulatedProviders) -> dict[str, int]:
        async with providers.session(model, tools=[read_file]) as session:
            await session.run("Read a.txt")
            with collecting() as found:
                await session.run("Read a.txt")
                async for _ in session.stream("And read b.txt?"):
                    pass
        return found

    assert run_with_providers(scene) == {}
