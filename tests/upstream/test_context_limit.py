"""The lower bound of a conversation's tokens: never more than any vocabulary counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolglot
from support.gateway.token_corpus import CORPUS
from toolglot.conversation import Conversation, Text, Turn
from toolglot.conversation.token_estimates import count_words
from toolglot.conversation.values import ToolResult
from toolglot.gateway.endpoints.text_tokens import DEFAULT_VOCABULARY, VOCABULARIES, count_texts
from toolglot.profiles import Overrides
from toolglot.upstream.context_limit import may_overflow, min_tokens, overflow_of

pytest.importorskip("splintr")

NAMES = (DEFAULT_VOCABULARY, *(name for _, name in VOCABULARIES))


def conversation(*texts: str) -> Conversation:
    return Conversation(turns=tuple(Turn(role="user", blocks=(Text(text),)) for text in texts))


@pytest.mark.parametrize("vocabulary", NAMES)
@pytest.mark.parametrize("kind", CORPUS)
def test_the_bound_is_below_the_count_of_every_vocabulary(kind: str, vocabulary: str) -> None:
    texts = [text[:20_000] for text in CORPUS[kind][:10]]
    assert min_tokens(conversation(*texts)) < count_texts(texts, by=vocabulary)


@pytest.mark.law
@given(st.text(alphabet="ab -_.\n\t|é中", max_size=200), st.sampled_from(NAMES))
def test_the_bound_of_any_text_is_not_above_the_count(text: str, vocabulary: str) -> None:
    assert min_tokens(conversation(text)) <= count_texts([text], by=vocabulary)


@pytest.mark.law
@given(st.text())
def test_words_are_what_white_space_separates(text: str) -> None:
    ascii_only = text.encode("ascii", errors="replace").decode()
    spaces = ascii_only.translate(dict.fromkeys(range(28, 32), " "))  # which `split` takes for white space
    assert count_words(spaces) == len(spaces.split())
    assert count_words(text) >= 0


def test_texts_and_results_count_and_media_do_not() -> None:
    long = "word " * 8
    turns = (
        Turn(role="user", blocks=(Text(long),)),
        Turn(
            role="tool", blocks=(ToolResult(call_id="a", content=long), ToolResult(call_id="b", content=(Text(long),)))
        ),
    )
    assert min_tokens(Conversation(turns=turns)) == 18


def test_a_request_of_few_bytes_is_not_counted() -> None:
    overrides = Overrides('[profiles.openai.rules]\n"context.window" = 1000\n')
    for words, may in ((100, False), (1_000, True)):
        body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "word " * words}]}
        out = toolglot.convert(body, source="openai", target="openai", overrides=overrides)
        assert may_overflow(out) is may
    assert overflow_of(out) is None  # 750 tokens at least
    body = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "word " * 1_400}]}
    failure = overflow_of(toolglot.convert(body, source="openai", target="openai", overrides=overrides))
    assert failure is not None
    assert failure.kind == "context_overflow"
    assert "at least 1050 tokens, more than the 1000 that gpt-4.1 takes" in failure.message
