"""A refusal keeps its form between OpenAI's two protocols, and its reason everywhere; whole and in pieces alike."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.translate.reply_bodies import stream_of
from toolglot import StreamTranslator, convert_reply

NO = "I'm sorry, I can't assist with that."


def response(*parts: dict[str, Any]) -> dict[str, Any]:
    item = {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [*parts]}
    usage = {"input_tokens": 43, "output_tokens": 11, "total_tokens": 54}
    return {"id": "resp_1", "object": "response", "status": "completed", "model": "m", "output": [item], "usage": usage}


REFUSED = response({"type": "refusal", "refusal": NO})
MIXED = response({"type": "output_text", "text": "Well. ", "annotations": []}, {"type": "refusal", "refusal": NO})


def translate_streamed(body: dict[str, Any], target: str) -> bytes:
    translator = StreamTranslator(source="openai_responses", target=target)
    return translator.feed(stream_of("openai_responses", body)) + translator.finish()


def chat_message(data: bytes) -> tuple[dict[str, Any], str]:
    """What a client adds up: the texts of the deltas by their field, and the one finish reason."""
    message: dict[str, Any] = {}
    reasons: list[str] = []
    for line in data.decode().split("\n\n"):
        if not line.startswith("data: {"):
            continue
        for choice in json.loads(line[6:])["choices"]:
            for key, value in choice["delta"].items():
                message[key] = message[key] + value if isinstance(message.get(key), str) else value
            reasons += [choice["finish_reason"]] if choice["finish_reason"] else []
    (reason,) = reasons
    return message, reason


def test_a_refusal_of_responses_is_one_of_chat_and_the_reply_came_to_its_end() -> None:
    choice = convert_reply(REFUSED, source="openai_responses", target="openai").body["choices"][0]
    assert choice["message"] == {"role": "assistant", "content": None, "refusal": NO}
    assert choice["finish_reason"] == "stop"


def test_a_refusal_in_pieces_is_what_it_is_whole() -> None:
    whole = convert_reply(REFUSED, source="openai_responses", target="openai").body["choices"][0]
    message, reason = chat_message(translate_streamed(REFUSED, "openai"))
    assert (message, reason) == (whole["message"], whole["finish_reason"])


def test_text_beside_a_refusal_stays_the_content() -> None:
    whole = convert_reply(MIXED, source="openai_responses", target="openai").body["choices"][0]
    assert (whole["message"]["content"], whole["message"]["refusal"]) == ("Well. ", NO)
    message, reason = chat_message(translate_streamed(MIXED, "openai"))
    assert (message, reason) == (whole["message"], whole["finish_reason"])


@pytest.mark.parametrize(("target", "word"), [("anthropic", "refusal"), ("gemini", "SAFETY")])
def test_clients_without_a_refusal_field_get_their_own_stop_reason(target: str, word: str) -> None:
    whole = convert_reply(REFUSED, source="openai_responses", target=target)
    assert NO in json.dumps(whole.body)
    assert word in json.dumps(whole.body)
    assert f'"{word}"'.encode() in translate_streamed(REFUSED, target)


def test_a_client_of_mistral_has_no_such_field_and_gets_the_words() -> None:
    choice = convert_reply(REFUSED, source="openai_responses", target="mistral").body["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == (NO, "content_filter")
    message, reason = chat_message(translate_streamed(REFUSED, "mistral"))
    assert (message["content"], "refusal" in message, reason) == (NO, False, "content_filter")


def test_a_filter_without_a_refusal_is_still_a_filter_for_chat() -> None:
    body: dict[str, Any] = {"id": "m1", "type": "message", "role": "assistant", "model": "m"}
    body["content"] = [{"type": "text", "text": NO}]
    body |= {"stop_reason": "refusal", "usage": {"input_tokens": 1, "output_tokens": 1}}
    choice = convert_reply(body, source="anthropic", target="openai").body["choices"][0]
    assert (choice["finish_reason"], choice["message"]["content"]) == ("content_filter", NO)
