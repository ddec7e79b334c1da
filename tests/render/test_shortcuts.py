"""What saves work changes nothing: each shortcut against the plain path, on the conversations of the laws.

The shortcuts are the fast path, well-formed turns (`render(shortcuts=False)` tries neither) and the facts by which a
pass knows that it has nothing to do. Chunks of streams: `tests/protocols/openai_chat/test_stream_openai_chat_laws.py`.
"""

from __future__ import annotations

from typing import Final

import msgspec
import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from broken_conversations import SOURCES, TARGETS, conversations, grown_conversations
from many_examples import MANY
from toolglot import Conversation, Issuer, Media, RefusedError, Text, Thinking, ToolCall, ToolResult, Turn, profiles
from toolglot.history.intake import Intake
from toolglot.policy import DEFAULT_POLICY
from toolglot.protocols.base import codec
from toolglot.render import Rendered, render
from toolglot.render.context import RenderContext
from toolglot.render.fast_path import plain_turns
from toolglot.render.rendering import TURN_PASSES
from toolglot.render.turn_facts import TurnFacts

Target = tuple[str, str]
targets = st.sampled_from(TARGETS)
sources = st.sampled_from(SOURCES)

PLAIN: Final = Conversation(
    (
        Turn("system", (Text("Be brief."),)),
        Turn("user", (Text("Look."),)),
        Turn("assistant", (Text("Yes."), ToolCall("toolu_1", "look", {"at": 1}))),
        Turn("user", (ToolResult("toolu_1", "seen", is_complete=True),)),
        Turn("assistant", (Text("Done."),)),
        Turn("user", (Text("Thanks."),)),
    )
)
"""What no pass has to change for most targets."""


def rendered(conversation: Conversation, target: Target, source: str, *, shortcuts: bool) -> Rendered | str:
    profile = profiles.get(*target)
    try:
        return render(replace(conversation, model=target[1]), profile, source=profiles.get(source), shortcuts=shortcuts)
    except RefusedError as refused:
        return str(refused)


def body(made: Rendered, target: Target) -> bytes:
    profile = profiles.get(*target)
    return msgspec.json.encode(codec(profile.protocol).request.encode(made.conversation, profile))


def is_on_the_fast_path(conversation: Conversation, target: Target, source: str) -> bool:
    ctx = RenderContext(profiles.get(*target), DEFAULT_POLICY, profiles.get(source))
    return plain_turns(conversation.turns, conversation.options, ctx) is not None


def assert_the_same_without_shortcuts(conversation: Conversation, target: Target, source: str) -> None:
    short = rendered(conversation, target, source, shortcuts=True)
    plain = rendered(conversation, target, source, shortcuts=False)
    if isinstance(short, str) or isinstance(plain, str):
        assert short == plain
        return
    assert body(short, target) == body(plain, target)
    assert short.entries == plain.entries
    assert short.seen_ids() == plain.seen_ids()


@pytest.mark.law
@MANY
@given(conversations | grown_conversations(), targets, sources)
@example(PLAIN, ("anthropic", "claude-sonnet-4-5"), "anthropic")
@example(PLAIN, ("openai", "gpt-4.1"), "anthropic")
def test_a_render_is_the_same_without_its_shortcuts(conversation: Conversation, target: Target, source: str) -> None:
    event("on the fast path" if is_on_the_fast_path(conversation, target, source) else "through the passes")
    assert_the_same_without_shortcuts(conversation, target, source)


def test_a_plain_conversation_is_on_the_fast_path() -> None:
    assert is_on_the_fast_path(PLAIN, ("openai", "gpt-4.1"), "anthropic")
    assert is_on_the_fast_path(PLAIN, ("anthropic", "claude-sonnet-4-5"), "anthropic")
    unanswered = replace(PLAIN, turns=PLAIN.turns[:3])
    assert not is_on_the_fast_path(unanswered, ("openai", "gpt-4.1"), "anthropic")


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target[0])
def test_a_plain_conversation_is_the_same_without_shortcuts_for_every_target(target: Target) -> None:
    assert_the_same_without_shortcuts(PLAIN, target, "anthropic")


class CautiousFacts(TurnFacts):
    """Facts by which every pass has to look for itself."""

    def __init__(self, turns: tuple[Turn, ...]) -> None:
        super().__init__(turns)
        self.kinds |= {Thinking, Media}
        self.has_calls = self.has_signatures = self.has_blanks = self.is_mixed = True
        self.prompts += 1


@pytest.mark.law
@MANY
@given(conversations | grown_conversations(), targets, sources)
def test_a_pass_that_the_facts_excuse_has_nothing_to_do(
    conversation: Conversation, target: Target, source: str
) -> None:
    profile, origin = profiles.get(*target), profiles.get(source)
    issued = [replace(turn, issuer=turn.issuer or Issuer(source)) for turn in conversation.turns]
    turns = Intake([]).take_all(issued)
    for fit in TURN_PASSES:
        ctx, cautious = (RenderContext(profile, DEFAULT_POLICY, origin) for _ in range(2))
        cautious.use_facts(CautiousFacts(turns))
        fitted = fit(turns, ctx)
        assert fit(turns, cautious) == fitted
        assert cautious.entries == ctx.entries
        turns = fitted
