"""Refusals of prompts that are too long: recognised in the words of every provider, whole and inside of streams."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot import profiles
from toolglot.conversation import Failure
from toolglot.conversation.events import Failed, Started
from toolglot.protocols.base import codec
from toolglot.protocols.errors.kinds import kind_of
from toolglot.protocols.errors.overflow import OverflowCounts, counts_of, reply_counts_of
from toolglot.translate.streams import StreamTranslator

WORDS = [
    # Anthropic, also on Vertex AI
    ("prompt is too long: 213462 tokens > 200000 maximum", (213462, 200000)),
    ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", None),
    # OpenAI, DeepSeek, vLLM, OpenRouter
    (
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130021 tokens.",
        (130021, 128000),
    ),
    (
        "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (132000 in …).",
        (140000, 131072),
    ),
    (
        "This endpoint's maximum context length is 163840 tokens. However, you requested about 1200000 tokens.",
        (1200000, 163840),
    ),
    (
        "This model's maximum context length is 32768 tokens. However, your request has 40000 input tokens.",
        (40000, 32768),
    ),
    ("The decoder prompt (length 40000) is longer than the maximum model length of 32768.", (40000, 32768)),
    ("Your input exceeds the context window of this model. Please adjust your input and try again.", None),
    # Gemini
    ("The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", (1196265, 1048575)),
    ("The input token count exceeds the maximum number of tokens allowed 1048576.", None),
    (
        "Unable to submit request because the input token count is 40000 but model only supports up to 32768.",
        (40000, 32768),
    ),
    # Mistral, xAI, Kimi, Cohere, Groq, Qwen, GLM, MiniMax
    (
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        (40000, 32768),
    ),
    ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", (537812, 131072)),
    ("Invalid request: Your request exceeded model token limit: 262144 (requested: 291351)", (291351, 262144)),
    (
        "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292.",
        (4292, 4081),
    ),
    ("Please reduce the length of the messages or completion.", None),
    ("<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 129024]", None),
    ("Prompt exceeds max length", None),
    ("invalid params, context window exceeds limit (2013)", None),
    # Bedrock, Ollama, llama.cpp, LM Studio, SGLang, TGI, GitHub Copilot, LiteLLM, Azure
    ("Input is too long for requested model.", None),
    ("The model returned the following errors: Input is too long for requested model.", None),
    ("prompt too long; exceeded max context length by 120 tokens", None),
    (
        "the request exceeds the available context size, try increasing it",
        None,
    ),
    ("request (41203 tokens) exceeds the available context size (32768 tokens), try increasing it", (41203, 32768)),
    ("tokens to keep from the initial prompt is greater than the context length", None),
    ("Input length 40000 tokens is longer than the model's context length (32768 tokens).", (40000, 32768)),
    ("`inputs` tokens + `max_new_tokens` must be <= 8193", None),
    ("prompt token count of 70000 exceeds the limit of 64000", (70000, 64000)),
    ("litellm.ContextWindowExceededError: AnthropicException", None),
    ("Tokens in request more than max tokens allowed", None),
]
"""From the messages that Claude Code 2.1.326 and pi-ai recognise, and from the providers' own errors."""


@pytest.mark.parametrize(("message", "counts"), WORDS)
def test_the_words_of_a_provider_are_recognised_with_their_numbers(
    message: str, counts: tuple[int, int] | None
) -> None:
    for status in (400, 413, 422):
        assert kind_of(status, ("invalid_request_error",), message) == "context_overflow"
    assert kind_of(None, (), message) == "context_overflow"  # inside of a stream
    assert counts_of(message) == (OverflowCounts(*counts) if counts is not None else None)


@pytest.mark.parametrize(("message", "counts"), WORDS)
def test_claude_code_reads_the_numbers_where_there_are_some(message: str, counts: tuple[int, int] | None) -> None:
    status, body = codec("anthropic").errors.encode(Failure("context_overflow", message))
    text = body["error"]["message"]
    assert (status, body["error"]["type"]) == (400, "invalid_request_error")
    assert text.startswith("input length and `max_tokens`" if reply_counts_of(message) else "prompt is too long")
    assert message in text  # nothing of the provider's own words is lost
    if counts is not None:
        assert text.startswith(f"prompt is too long: {counts[0]} tokens > {counts[1]} maximum")


_REQUESTED = "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens"
_TOO_LARGE = (
    "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 131072"
)
REPLIES = [
    ("input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", (190000, 20000, 200000)),
    (f"{_REQUESTED} (108000 in the messages, 32000 in the completion).", (108000, 32000, 131072)),
    (f"{_REQUESTED} (108000 of text input, 32000 in the output).", (108000, 32000, 131072)),
    (f"{_TOO_LARGE} tokens and your request has 108000 input tokens.", (108000, 32000, 131072)),
]


@pytest.mark.parametrize(("message", "counts"), REPLIES)
def test_claude_code_is_to_ask_for_a_shorter_reply_if_only_that_does_not_fit(
    message: str, counts: tuple[int, int, int]
) -> None:
    """It reads the three numbers, and sends the same conversation with a smaller max_tokens."""
    assert kind_of(400, (), message) == "context_overflow"
    assert reply_counts_of(message) == counts
    status, body = codec("anthropic").errors.encode(Failure("context_overflow", message))
    text = body["error"]["message"]
    assert status == 400
    assert text.startswith(
        f"input length and `max_tokens` exceed context limit: {counts[0]} + {counts[1]} > {counts[2]}"
    )
    assert "prompt is too long" not in text
    assert message in text


def test_a_prompt_that_does_not_fit_by_itself_is_too_long_whatever_the_reply() -> None:
    message = f"{_REQUESTED} (132000 in the messages, 8000 in the completion)."
    assert reply_counts_of(message) is None
    _, body = codec("anthropic").errors.encode(Failure("context_overflow", message))
    assert body["error"]["message"].startswith("prompt is too long: 140000 tokens > 131072 maximum")


STREAMED = ["anthropic", "openai", "openai_responses", "gemini", "bedrock", "cohere", "ollama"]


@pytest.mark.parametrize("target", STREAMED)
@pytest.mark.parametrize("source", STREAMED)
def test_a_refusal_inside_of_a_stream_reaches_the_client_as_its_own(source: str, target: str) -> None:
    protocols = [profiles.get(name).protocol for name in (source, target)]
    failure = Failure("context_overflow", "prompt is too long: 9000 tokens > 8000 maximum", 400)
    written = codec(protocols[0]).stream.Encoder().write([Started(model="m"), Failed(failure)])
    translator = StreamTranslator(source=source, target=target)
    data = translator.feed(written) + translator.finish()
    reader = codec(protocols[1]).stream
    decoder, framer = reader.Decoder(), reader.framer()
    events: list[Any] = [event for frame in [*framer.feed(data), *framer.finish()] for event in decoder.read(frame)]
    events += decoder.finish()
    failed = [event.failure for event in events if isinstance(event, Failed)]
    assert [found.kind for found in failed] == ["context_overflow"]
    if protocols[1].startswith("openai"):
        assert b"context_length_exceeded" in data
    if protocols[1] == "anthropic":
        assert b"prompt is too long: 9000 tokens > 8000 maximum" in data


@pytest.mark.law
@given(st.text(max_size=300))
def test_any_text_is_searched_without_an_error(message: str) -> None:
    counts, reply = counts_of(message), reply_counts_of(message)
    assert counts is None or counts.tokens > counts.window
    assert reply is None or reply.input < reply.window


def test_numbers_that_contradict_the_refusal_are_not_passed_on() -> None:
    assert counts_of("prompt is too long: 100 tokens > 200000 maximum") is None
    assert counts_of("prompt is too long: 1,213,462 tokens > 1,000,000 maximum") == (1213462, 1000000)
