"""Gemini signs the last words of a text: for a client of another protocol they are still one text in one block."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from toolglot import StreamTranslator, convert_reply
from toolglot.conversation import Text

WORDS = ("Hello ", "big ", "world")


def body(*parts: dict[str, Any], **candidate: Any) -> dict[str, Any]:
    content = {"role": "model", "parts": list(parts)}
    return {
        "candidates": [{"content": content, "index": 0, **candidate}],
        "modelVersion": "gemini-3-pro-preview",
        "responseId": "r",
    }


def chunk(*parts: dict[str, Any], **candidate: Any) -> bytes:
    return b"data: " + msgspec.json.encode(body(*parts, **candidate)) + b"\n\n"


PARTS: list[dict[str, Any]] = [{"text": word} for word in WORDS[:-1]] + [
    {"text": WORDS[-1], "thoughtSignature": "c2ln"}
]


@pytest.mark.parametrize("per_chunk", [1, 3])
def test_a_streamed_text_whose_last_chunk_is_signed_is_one_block(per_chunk: int) -> None:
    translator = StreamTranslator(source="gemini", target="anthropic")
    if per_chunk == 1:
        written = b"".join(translator.feed(chunk(part)) for part in PARTS[:-1])
        written += translator.feed(chunk(PARTS[-1], finishReason="STOP"))
    else:
        written = translator.feed(chunk({"text": "".join(WORDS[:-1])}, PARTS[-1], finishReason="STOP"))
    written += translator.finish()
    assert written.count(b"event: content_block_start") == 1
    assert translator.provider_reply.turn.blocks == (Text("".join(WORDS)), Text("", "c2ln"))


def test_a_whole_reply_whose_last_words_are_signed_is_one_block() -> None:
    parts = [{"text": "".join(WORDS[:-1])}, PARTS[-1]]
    reply = convert_reply(body(*parts, finishReason="STOP"), source="gemini", target="anthropic")
    assert reply.body["content"] == [{"type": "text", "text": "".join(WORDS)}]
    assert [block.signature for block in reply.provider_reply.turn.blocks if isinstance(block, Text)] == [None, "c2ln"]


def test_a_gemini_client_gets_the_parts_as_they_came() -> None:
    original = body(*PARTS, finishReason="STOP")
    assert convert_reply(original, source="gemini", target="gemini").body == original
