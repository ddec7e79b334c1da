"""Law 10 over replies that are made up, whole and streamed: what the client gets otherwise than the provider sent it is
in the report.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from support.conversations.strategies import json_objects, raw_ids, texts
from support.translate.reply_bodies import PROTOCOLS
from support.translate.reply_reading import read_reply, read_stream
from support.translate.unreported_changes import target_of, unreported
from toolglot import Media, Reply, StreamTranslator, Text, Thinking, ToolCall, Turn, Usage, convert_reply
from toolglot.conversation.reply_events import of_reply
from toolglot.protocols.base import codec
from toolglot.protocols.errors.failures import ProviderError

counts = st.none() | st.integers(0, 50)
names = st.sampled_from(["read", "write", ""])
arguments = st.sampled_from(["", " ", "{", "[1]", '{"a":1,"a":2}', '"{\\"a\\":1}"', '{"a":"\\ud83d"}'])
"""What models write as arguments, well and badly."""
blocks = st.one_of(
    st.builds(Text, texts),
    st.builds(Thinking, texts, st.none() | st.just("c2ln")),
    st.builds(ToolCall, raw_ids, names, json_objects),
    st.builds(ToolCall, raw_ids, names, raw_input=arguments),
    st.just(Media("image", "image/png", data="aGk=")),
)
replies = st.builds(
    Reply,
    st.builds(Turn, st.just("assistant"), st.lists(blocks, max_size=4).map(tuple)),
    st.sampled_from([None, "stop", "tool_calls", "length", "filter", "pause", "error"]),
    st.none() | st.builds(Usage, counts, counts, counts, counts, counts),
    st.sampled_from(["", "r_1"]),
    st.sampled_from(["", "m-1"]),
)
sources = pytest.mark.parametrize("source", PROTOCOLS)


@pytest.mark.law
@sources
@given(reply=replies)
def test_law_10_each_difference_in_a_reply_is_reported(source: str, reply: Reply) -> None:
    body = json.loads(json.dumps(codec(source).reply.encode(reply)))
    sent = read_reply(source, body)
    for target in PROTOCOLS:
        try:
            out = convert_reply(body, source=target_of(source), target=target_of(target))
        except ProviderError:
            event("the reply is an error, which the client gets")
            return
        got = read_reply(target, out.body)
        missing = unreported(sent, got, out.data.decode(), "", out.report)
        assert not missing, f"{target}: {missing}: {sent} {got} {out.report}"
        if target == source and out.body != body:
            assert len(out.report), out.body


@pytest.mark.law
@sources
@given(reply=replies)
def test_law_10_the_same_for_streams(source: str, reply: Reply) -> None:
    data = codec(source).stream.Encoder().write([*of_reply(reply, piece=9)])
    sent = read_stream(source, data)
    for target in PROTOCOLS:
        translator = StreamTranslator(source=target_of(source), target=target_of(target))
        written = translator.feed(data) + translator.finish()
        if translator.failure is not None:
            event("the stream broke off, and the client gets an error")
            return
        got = read_stream(target, written)
        missing = unreported(sent, got, "", "", translator.report)
        assert not missing, f"{target}: {missing}: {sent} {got} {translator.report}"
        if target == source and written != data:
            assert len(translator.report), written
