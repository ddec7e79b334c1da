"""Chunks that are like the one before them are read by their string alone, with the same result."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot.conversation.events import Event, Finished, Started
from toolglot.protocols.framing.text_frames import Frame
from toolglot.protocols.openai_chat.stream_reader import Decoder

pieces = st.lists(st.text('ab"\\{}[]:,é\n\u2028😀', min_size=1, max_size=8), min_size=1, max_size=12)


def chunk(**delta: Any) -> bytes:
    body = {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}], "z": 1}
    return msgspec.json.encode(body)


def content_events(*chunks: bytes) -> list[Event]:
    decoder = Decoder()
    events = [event for data in chunks for event in decoder.read(Frame(data))] + decoder.finish()
    return [event for event in events if not isinstance(event, Started | Finished)]  # which hold the other fields


def unlike(data: bytes, number: int) -> bytes:
    """The same chunk in a form that no other has, so that it is read whole."""
    return data[:-1] + b',"n%d":0}' % number


@pytest.mark.law
@given(pieces)
def test_text_is_the_same_whether_chunks_are_alike_or_not(texts: list[str]) -> None:
    alike = [chunk(content=text) for text in texts]
    assert content_events(*alike) == content_events(*[unlike(data, number) for number, data in enumerate(alike)])


@pytest.mark.law
@given(pieces)
def test_arguments_are_the_same_whether_chunks_are_alike_or_not(texts: list[str]) -> None:
    start = chunk(tool_calls=[{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}])
    alike = [chunk(tool_calls=[{"index": 0, "function": {"arguments": text}}]) for text in texts]
    assert content_events(start, *alike) == content_events(
        start, *[unlike(data, number) for number, data in enumerate(alike)]
    )


@pytest.mark.parametrize(
    "middle",
    [
        b'"a","role":"assistant"',
        b'"a","tool_calls":[]',
        b'"a"}},{"index":0,"delta":{"content":"b"',
        b"null",
        b"7",
        b'""',
        b'"\xff"',
        b'"a',
    ],
)
def test_what_only_looks_alike_is_read_as_it_is(middle: bytes) -> None:
    plain = chunk(content="x")
    odd = plain.replace(b'"x"', middle)
    assert content_events(plain, plain, odd) == content_events(unlike(plain, 1), unlike(plain, 2), odd)


def test_servers_that_pad_every_chunk_are_not_looked_at_for_ever() -> None:
    chunks = [unlike(chunk(content="x"), number) for number in range(40)]
    decoder = Decoder()
    for data in chunks:
        decoder.read(Frame(data))
    assert decoder._template is None
