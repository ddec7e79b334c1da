"""The laws of the renderer, on conversations in which everything goes wrong, for every target."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from broken_conversations import SOURCES, TARGETS, conversations, grown_conversations
from toolglot import (
    Conversation,
    Issuer,
    Ledger,
    RefusedError,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
    convert,
    lint,
    profiles,
)
from toolglot.intake import Intake
from toolglot.render import Rendered, render
from toolglot.wire.codecs import codec

pytestmark = pytest.mark.law
MANY = settings(
    max_examples=max(2000, settings().max_examples),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)

Target = tuple[str, str]
targets = st.sampled_from(TARGETS)
sources = st.sampled_from(SOURCES)


def rendered(conversation: Conversation, target: Target, source: str) -> Rendered | None:
    name, model = target
    try:
        return render(replace(conversation, model=model), profiles.get(name, model), source=profiles.get(source))
    except RefusedError as refused:
        event(f"refused: {type(refused).__name__}")
        return None


def body_of(made: Rendered, target: Target) -> dict[str, Any]:
    profile = profiles.get(*target)
    return codec(profile.protocol).request.encode(made.conversation, profile)


def messages_of(body: dict[str, Any]) -> list[Any]:
    found: Any = next((body[key] for key in ("messages", "contents", "input") if key in body), [])
    return found if isinstance(found, list) else [found]


def marked(conversation: Conversation) -> Conversation:
    """The conversation with a word of its own in every text and every result that says something."""
    numbers = iter(range(10_000))

    def mark(text: str) -> str:
        return f"{text}<{next(numbers)}>" if text.strip() else text

    def mark_block(block: Any) -> Any:
        if isinstance(block, Text):
            return replace(block, text=mark(block.text))
        if isinstance(block, ToolResult) and isinstance(block.content, str):
            return replace(block, content=mark(block.content))
        if isinstance(block, ToolResult) and isinstance(block.content, tuple):
            return replace(block, content=tuple(map(mark_block, block.content)))
        return block

    turns = tuple(replace(turn, blocks=tuple(map(mark_block, turn.blocks))) for turn in conversation.turns)
    return replace(conversation, turns=turns)


def emitted_id(call: ToolCall, made: Rendered) -> str:
    """The id that a call was given, by its canonical id or, where nothing had to be paired, by its native one."""
    native = call.metadata.raw_id if call.metadata is not None else None
    return made.ids[call.id if call.id in made.ids else native or ""]


def texts_of(result: ToolResult | None) -> list[str]:
    """What a result says, part by part; a render may put words between."""
    content = result.content if result is not None else None
    texts = [content] if isinstance(content, str) else [part.text for part in content or () if isinstance(part, Text)]
    return [text for text in texts if text.strip()]


def said(turns: tuple[Turn, ...]) -> list[str]:
    words = [block.text for turn in turns for block in turn.blocks if isinstance(block, Text)]
    return words + [text for turn in turns for result in turn.results for text in texts_of(result)]


# --- laws -------------------------------------------------------------------------------------------


@MANY
@given(conversations, targets, sources)
def test_law_1_what_is_rendered_the_referee_accepts(conversation: Conversation, target: Target, source: str) -> None:
    made = rendered(conversation, target, source)
    if made is not None:
        body = body_of(made, target)
        assert [str(violation) for violation in lint(body, *target)] == [], msgspec.json.encode(body)


@MANY
@given(conversations, targets, sources)
def test_law_2_every_real_result_stays_with_its_call_and_nothing_that_was_said_is_lost(
    conversation: Conversation, target: Target, source: str
) -> None:
    conversation = marked(conversation)
    made = rendered(conversation, target, source)
    if made is None:
        return
    issued = [turn if turn.issuer else replace(turn, issuer=Issuer(source)) for turn in conversation.turns]
    taken = Intake([]).take_all(issued)
    answers = {result.call_id: result.text for turn in made.conversation.turns for result in turn.results}
    for interaction in Ledger.of(taken):
        for text in texts_of(interaction.result):
            assert text in answers[emitted_id(interaction.call, made)]
    everything = "\n".join(said(made.conversation.turns))
    for text in said(conversation.turns):
        if text.strip():
            assert text.strip() in everything or text in everything


@MANY
@given(conversations, targets, sources)
def test_law_4_the_same_conversation_is_rendered_the_same(
    conversation: Conversation, target: Target, source: str
) -> None:
    first, second = rendered(conversation, target, source), rendered(conversation, target, source)
    assert (first is None) == (second is None)
    if first is not None and second is not None:
        assert msgspec.json.encode(body_of(first, target)) == msgspec.json.encode(body_of(second, target))
        assert first.entries == second.entries


@MANY
@given(grown_conversations(), targets, sources)
def test_law_5_a_longer_history_begins_with_what_was_sent_before(
    conversation: Conversation, target: Target, source: str
) -> None:
    whole = rendered(conversation, target, source)
    assert whole is not None
    longer = list(map(msgspec.json.encode, messages_of(body_of(whole, target))))
    for length in range(1, len(conversation.turns)):
        if conversation.turns[length - 1].role == "assistant" or conversation.turns[length].role != "assistant":
            continue
        prefix = rendered(replace(conversation, turns=conversation.turns[:length]), target, source)
        assert prefix is not None
        sent = list(map(msgspec.json.encode, messages_of(body_of(prefix, target))))
        assert longer[: len(sent)] == sent


@MANY
@given(conversations, targets, sources)
def test_law_6_calls_have_ids_of_their_own_and_results_the_ids_of_their_calls(
    conversation: Conversation, target: Target, source: str
) -> None:
    made = rendered(conversation, target, source)
    if made is not None:
        turns = made.conversation.turns
        ids = [call.id for turn in turns for call in turn.calls]
        assert len(ids) == len(set(ids))
        assert sorted(result.call_id for turn in turns for result in turn.results) == sorted(ids)


@MANY
@given(conversations, targets, sources)
def test_law_7_what_was_rendered_is_rendered_as_it_is(conversation: Conversation, target: Target, source: str) -> None:
    made = rendered(conversation, target, source)
    if made is not None:
        data = msgspec.json.encode(body_of(made, target))
        assert convert(data, source=target[0], target=target[0], model=target[1]).data == data


@MANY
@given(conversations, targets)
def test_law_10_whatever_is_changed_at_home_is_told(conversation: Conversation, target: Target) -> None:
    made = rendered(conversation, target, target[0])
    if made is not None and not made.entries:
        home = codec(profiles.get(*target).protocol).request.encode(
            replace(conversation, model=target[1]), profiles.get(*target)
        )
        assert body_of(made, target) == home


@MANY
@given(conversations, targets, sources)
def test_law_12_what_only_its_issuer_can_read_goes_to_nobody_else(
    conversation: Conversation, target: Target, source: str
) -> None:
    signed = tuple(replace(turn, issuer=Issuer("nobody")) for turn in conversation.turns)
    made = rendered(replace(conversation, turns=signed), target, source)
    if made is None:
        return
    for turn in made.conversation.turns:
        for block in turn.blocks:
            if isinstance(block, Thinking):
                assert block.signature is None
                assert block.redacted is None
            if isinstance(block, Text):
                assert block.signature is None
            if isinstance(block, ToolCall):
                assert block.signature in (None, profiles.get(*target).reasoning.placeholder)
