"""The laws of the renderer, on conversations in which everything goes wrong, for every target.

Every law is held against every conversation: making one takes longer than judging it. A conversation that a law does
not stand up to is shown with the law in whose function the assertion failed.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.conversations.broken_conversations import SOURCES, TARGETS, conversations, grown_conversations
from support.law_examples import MANY
from toolglot import (
    Conversation,
    Issuer,
    Ledger,
    Options,
    Reasoning,
    RefusedError,
    Sampling,
    Text,
    Thinking,
    ToolCall,
    ToolChange,
    ToolChoice,
    ToolReference,
    ToolResult,
    ToolSpec,
    Turn,
    convert,
    lint,
    profiles,
    repair,
)
from toolglot.history.intake import Intake
from toolglot.protocols.base import codec
from toolglot.render import Rendered, render

pytestmark = pytest.mark.law

SEEN_ONLY = {"assumed", "matched", "canonicalised"}
"""Actions in the report of an unchanged request: how it was understood."""

Target = tuple[str, str]
targets = st.sampled_from(TARGETS)
sources = st.sampled_from(SOURCES)


def render_or_none(conversation: Conversation, target: Target, source: str) -> Rendered | None:
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


def with_marks(conversation: Conversation) -> Conversation:
    """The conversation with a unique mark in every text and every result that is not blank."""
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
    """The id of a call in the request, by its canonical id or, where nothing had to be paired, by its native one."""
    native = call.metadata.raw_id if call.metadata is not None else None
    return made.ids[call.id if call.id in made.ids else native or ""]


def texts_of(result: ToolResult | None) -> list[str]:
    """The texts of a result, part by part; a render may put words between."""
    content = result.content if result is not None else None
    texts = [content] if isinstance(content, str) else [part.text for part in content or () if isinstance(part, Text)]
    return [text for text in texts if text.strip()]


def all_texts(turns: tuple[Turn, ...]) -> list[str]:
    words = [block.text for turn in turns for block in turn.blocks if isinstance(block, Text)]
    return words + [text for turn in turns for result in turn.results for text in texts_of(result)]


# --- laws -------------------------------------------------------------------------------------------


class Case:
    """A conversation that was rendered for a target."""

    def __init__(self, conversation: Conversation, target: Target, source: str, made: Rendered) -> None:
        self.conversation = conversation
        self.target = target
        self.source = source
        self.made = made
        self.turns = made.conversation.turns
        self.body = body_of(made, target)
        self.data = msgspec.json.encode(self.body)

    @property
    def ledger(self) -> Ledger:
        """Every call with its result, as a history has them."""
        issuer = Issuer(self.source)
        issued = [turn if turn.issuer else replace(turn, issuer=issuer) for turn in self.conversation.turns]
        return Ledger.of(Intake([]).take_all(issued))


def law_1_what_is_rendered_the_referee_accepts(case: Case) -> None:
    assert [str(violation) for violation in lint(case.body, *case.target)] == [], case.data


def law_2_every_real_result_stays_with_its_call_and_no_text_is_lost(case: Case) -> None:
    marks = with_marks(case.conversation)
    made = render_or_none(marks, case.target, case.source)
    assert made is not None
    answers = {result.call_id: result.text for turn in made.conversation.turns for result in turn.results}
    for interaction in Case(marks, case.target, case.source, made).ledger:
        for text in texts_of(interaction.result):
            assert text in answers[emitted_id(interaction.call, made)]
    everything = "\n".join(all_texts(made.conversation.turns))
    for text in all_texts(marks.turns):
        if text.strip():
            assert text.strip() in everything or text in everything


def law_3_what_its_provider_accepts_is_forwarded_byte_for_byte(case: Case) -> None:
    for written in (json.dumps(case.body, indent=1), json.dumps(case.body, ensure_ascii=False, sort_keys=True)):
        data = written.encode()
        out = repair(data, target=case.target[0], model=case.target[1])
        assert out.data is data, str(out.report)
        assert {entry.action for entry in out.report} <= SEEN_ONLY, str(out.report)


def law_4_the_same_conversation_is_rendered_the_same(case: Case) -> None:
    again = render_or_none(case.conversation, case.target, case.source)
    assert again is not None
    assert msgspec.json.encode(body_of(again, case.target)) == case.data
    assert again.entries == case.made.entries


def law_6_calls_have_ids_of_their_own_and_results_the_ids_of_their_calls(case: Case) -> None:
    ids = [call.id for turn in case.turns for call in turn.calls]
    assert len(ids) == len(set(ids))
    assert sorted(result.call_id for turn in case.turns for result in turn.results) == sorted(ids)


def laws_6_and_11_a_call_stays_as_the_model_wrote_it_and_comes_back_under_its_own_name(case: Case) -> None:
    emitted = {call.id: call for turn in case.turns for call in turn.calls}
    for interaction in case.ledger:
        call = interaction.call
        sent = emitted[emitted_id(call, case.made)]
        back = case.made.tools.original_call(sent)
        assert (back.namespace, back.name) == (call.namespace, call.name)
        if call.type == "function" and call.arguments is not None:
            assert sent.arguments == call.arguments
        else:
            assert (call.raw_input or "").strip() in f"{sent.raw_input}{sent.arguments}"


def law_7_what_was_rendered_is_rendered_as_it_is(case: Case) -> None:
    name, model = case.target
    assert convert(case.data, source=name, target=name, model=model).data == case.data


def law_10_every_change_of_a_native_request_is_reported(case: Case) -> None:
    made = render_or_none(case.conversation, case.target, case.target[0])
    if made is not None and not made.entries:
        profile = profiles.get(*case.target)
        original = replace(case.conversation, model=case.target[1])
        assert body_of(made, case.target) == codec(profile.protocol).request.encode(original, profile)


def law_10_every_report_lists_the_ids_of_calls_and_results(case: Case) -> None:
    ids = case.made.seen_ids()
    assert list(ids.calls) == [call.id for turn in case.turns for call in turn.calls]
    assert list(ids.results) == [result.call_id for turn in case.turns for result in turn.results]
    assert len(set(ids.canonical)) == len(ids.calls)
    assert all(id.startswith("hist_tool_") for id in ids.canonical)
    assert ids.format


def law_12_what_only_its_issuer_can_read_goes_to_no_one_else(case: Case) -> None:
    signed = tuple(replace(turn, issuer=Issuer("nobody")) for turn in case.conversation.turns)
    made = render_or_none(replace(case.conversation, turns=signed), case.target, case.source)
    for turn in made.conversation.turns if made is not None else ():
        for block in turn.blocks:
            if isinstance(block, Thinking):
                assert block.signature is None
                assert block.redacted is None
            if isinstance(block, Text):
                assert block.signature is None
            if isinstance(block, ToolCall):
                assert block.signature in (None, profiles.get(*case.target).reasoning.placeholder)


LAWS: tuple[Callable[[Case], None], ...] = (
    law_1_what_is_rendered_the_referee_accepts,
    law_2_every_real_result_stays_with_its_call_and_no_text_is_lost,
    law_3_what_its_provider_accepts_is_forwarded_byte_for_byte,
    law_4_the_same_conversation_is_rendered_the_same,
    law_6_calls_have_ids_of_their_own_and_results_the_ids_of_their_calls,
    laws_6_and_11_a_call_stays_as_the_model_wrote_it_and_comes_back_under_its_own_name,
    law_7_what_was_rendered_is_rendered_as_it_is,
    law_10_every_change_of_a_native_request_is_reported,
    law_10_every_report_lists_the_ids_of_calls_and_results,
    law_12_what_only_its_issuer_can_read_goes_to_no_one_else,
)


@MANY
@given(conversations, targets, sources)
@example(  # a change of the tools that leads because the turn before it is gone
    Conversation(
        (
            Turn("assistant", (Thinking(redacted="b3BhcXVl"),), issuer=Issuer("anthropic")),
            Turn("system", (ToolChange((ToolReference("read", definition=ToolSpec("read")),)),)),
        )
    ),
    ("anthropic", "claude-sonnet-4-5"),
    "anthropic",
)
@example(  # the result of a function defines a tool, which only that of a search does in Responses
    Conversation(
        (
            Turn("assistant", (ToolCall("call_0", "read", {}),)),
            Turn("user", (ToolResult("call_0", (ToolReference("read", definition=ToolSpec("read")),)),)),
        ),
        options=Options(tool_choice=ToolChoice("auto")),
    ),
    ("openai_responses", "gpt-5.2"),
    "openai_responses",
)
@example(  # a budget that switches thinking on
    Conversation(
        (Turn("user", (Text("hello"),)),),
        options=Options(Sampling(max_tokens=4096), Reasoning(budget_tokens=2048)),
    ),
    ("anthropic", "claude-sonnet-4-5"),
    "anthropic",
)
def test_laws_1_to_4_6_7_and_10_to_12_hold_for_whatever_is_rendered(
    conversation: Conversation, target: Target, source: str
) -> None:
    made = render_or_none(conversation, target, source)
    if made is not None:
        case = Case(conversation, target, source, made)
        for law in LAWS:
            law(case)


@MANY
@given(grown_conversations(), targets, sources)
def test_law_5_a_longer_history_begins_with_what_was_sent_before(
    conversation: Conversation, target: Target, source: str
) -> None:
    whole = render_or_none(conversation, target, source)
    assert whole is not None
    longer = list(map(msgspec.json.encode, messages_of(body_of(whole, target))))
    for length in range(1, len(conversation.turns)):
        if conversation.turns[length - 1].role == "assistant" or conversation.turns[length].role != "assistant":
            continue
        prefix = render_or_none(replace(conversation, turns=conversation.turns[:length]), target, source)
        assert prefix is not None
        sent = list(map(msgspec.json.encode, messages_of(body_of(prefix, target))))
        if longer[: len(sent)] != sent:  # the one repair of the tail that goes with the user's next words
            assert profiles.get(*target).reasoning.placeholder_on == "first_call"
            sent = without_placeholders_in_the_open_step(sent, profiles.get(*target))
        assert longer[: len(sent)] == sent


def without_placeholders_in_the_open_step(messages: list[bytes], profile: profiles.Profile) -> list[bytes]:
    """Gemini contents without what was put on unsigned calls since the user's last text, so that they are accepted."""
    contents = [msgspec.json.decode(message) for message in messages]
    last = max(
        index
        for index, content in enumerate(contents)
        if content["role"] == "user" and any("functionResponse" not in part for part in content["parts"])
    )
    for part in (part for content in contents[last:] for part in content["parts"]):
        if "functionCall" in part and part.get("thoughtSignature") == profile.reasoning.placeholder:
            del part["thoughtSignature"]
    return [msgspec.json.encode(content) for content in contents]
