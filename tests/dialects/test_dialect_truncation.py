"""A text that ends before its call does is cut or plain text in every dialect, never a call that can be run."""

from __future__ import annotations

import pytest

from support.dialects.vectors import streamed
from support.dialects.written_calls import EMPTY, FULL, REQUEST, TOOLS, written
from toolglot import Reply, StreamTranslator, Text, ToolCall, Turn, convert, convert_reply
from toolglot.conversation.reply_events import of_reply
from toolglot.dialects import registry
from toolglot.dialects.text_stream import parse_text, parsed_text
from toolglot.protocols.base import codec

PREFIX = "]<]minimax[>["
CLOSERS = {
    **dict.fromkeys(("anthropic_legacy", "dots", "minimax_m2"), "</invoke>"),
    **dict.fromkeys(("deepseek_v32", "deepseek_v4"), "</\uff5cDSML\uff5cinvoke>"),
    **dict.fromkeys(("glm45", "glm47", "hy_v3", "ling3", "poolside_v1"), "</tool_call>"),
    **dict.fromkeys(("minicpm5", "qwen3_coder", "seed_oss", "step3p5"), "</function>"),
    **dict.fromkeys(("lfm2", "llama4_pythonic", "olmo3", "pythonic"), ")"),
    "bash_tag": "</tool>",
    "kimi_k3": "<|close|>call<|sep|>",
    "minimax_m3": f"{PREFIX}</invoke>",
    "muse_glimmer": "</atem:invoke>",
    "openai_json": '"',
    "step3": "</steptml:invoke>",
    "xai": "</xai:function_call",
}
"""What ends a call, by dialect. The default is the brace of its arguments."""
OTHER_FORMS = [
    ("anthropic_legacy", "<invoke><tool_name>ls</tool_name><parameters><path>/home</path></parameters></invoke>"),
    ("tool_xml", '<tool name="ls"><path>/home</path><depth>3</depth></tool>'),
    ("tool_xml", "<tool><name>ls</name><arguments><path>/home</path><depth>3</depth></arguments></tool>"),
    ("xai_tool_call", "<tool_call><name>ls</name><arguments><path>/home</path></arguments></tool_call>"),
]


def first_whole(text: str, dialect: str) -> int:
    """How much of a text must be there for its call to be whole; and until then it is so in no stream either."""
    for end in range(len(text) + 1):
        found = parse_text(text[:end], dialect=dialect, tools=TOOLS)
        assert parsed_text(streamed(text[:end], list(range(0, end, 3)), dialect, TOOLS)) == found
        assert all(call.arguments is None for call in found.cut)
        if found.calls:
            return end
    raise AssertionError("there is no call")


@pytest.mark.parametrize("named", [True, False], ids=["named", "auto"])
@pytest.mark.parametrize("call", [FULL, EMPTY], ids=["arguments", "none"])
@pytest.mark.parametrize("dialect", registry.names())
def test_a_call_is_whole_only_once_its_own_closer_is_there(dialect: str, call: ToolCall, named: bool) -> None:
    text = written(dialect, call)
    end = first_whole(text, dialect if named else "auto")
    assert text[:end].endswith(CLOSERS.get(dialect, "}"))


@pytest.mark.parametrize(("dialect", "text"), OTHER_FORMS)
def test_other_forms_of_a_dialect_are_whole_only_with_their_closer(dialect: str, text: str) -> None:
    assert first_whole(text, dialect) == len(text)


@pytest.mark.parametrize("ending", ["</tool_call>", "<function=pwd></function>"], ids=["section", "next call"])
def test_a_missing_closer_is_forgiven_where_something_else_ends_the_call(ending: str) -> None:
    text = "<tool_call><function=ls><parameter=path>/home</parameter>"
    assert [call.name for call in parse_text(text, dialect="qwen3_coder").cut] == ["ls"]
    assert parse_text(text + ending, dialect="qwen3_coder").calls[0].arguments == {"path": "/home"}


@pytest.mark.parametrize("dialect", registry.names())
def test_no_piece_of_a_closer_is_text_where_the_answer_ends_inside_of_it(dialect: str) -> None:
    text = written(dialect, FULL)
    for end in range(first_whole(text, dialect), len(text) + 1):
        assert parse_text(text[:end], dialect=dialect, tools=TOOLS).text == ""


# --- replies and streams ----------------------------------------------------------------------------

CONVERTED = convert(REQUEST, source="anthropic", target="vllm", model="some-model")


def translate_in_pieces(text: str) -> StreamTranslator:
    """A stream of this text, read to its end."""
    answer = Reply(Turn("assistant", (Text(text),)), "stop", None, "id_1", "some-model")
    translator = StreamTranslator(source="vllm", target="anthropic", request=CONVERTED)
    data = codec("openai_chat").stream.Encoder().write(list(of_reply(answer, piece=4)))
    out = translator.feed(data) + translator.finish()
    assert b"message_stop" in out
    return translator


@pytest.mark.parametrize("dialect", registry.names())
def test_a_client_gets_no_call_of_an_answer_that_was_cut(dialect: str) -> None:
    """Also if the server ends with `stop`, as if nothing had been cut."""
    text = written(dialect, FULL)
    end = first_whole(text, dialect)
    for size in range(1, end, max(1, end // 12)):
        body = {"choices": [{"message": {"role": "assistant", "content": text[:size]}, "finish_reason": "stop"}]}
        back = convert_reply(body, source="vllm", target="anthropic", request=CONVERTED)
        assert all(block["type"] == "text" for block in back.body["content"])
        assert back.body["stop_reason"] in ("end_turn", "max_tokens")
        live = translate_in_pieces(text[:size])
        assert live.calls == ()
        assert live.reply.stop in ("stop", "length")
