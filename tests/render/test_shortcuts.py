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

from support.conversations.broken_conversations import (
    SOURCES,
    TARGETS,
    conversations,
    grown_conversations,
    turns,
    words,
)
from support.law_examples import MANY
from toolglot import Conversation, Issuer, Media, RefusedError, Text, Thinking, ToolCall, ToolResult, Turn, profiles
from toolglot.conversation import Block
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


@st.composite
def nearly_plain_conversations(draw: st.DrawFn) -> Conversation:
    """Exchanges in order, most of which the fast path takes; in some, one turn is another than it should be."""
    made: list[Turn] = [Turn("system", (Text("Be brief."),))] if draw(st.booleans()) else []
    for number in range(draw(st.integers(1, 3))):
        made.append(Turn("user", (Text(f"Look {number}."),)))
        ids = [f"toolu_{number}{index}" for index in range(draw(st.integers(0, 2)))]
        has_text, has_more, are_together = not ids or draw(st.booleans()), draw(st.booleans()), draw(st.booleans())
        texts = [Text("Yes.")] if has_text else []
        made.append(Turn("assistant", (*texts, *[ToolCall(id, "read", {"path": id}) for id in ids])))
        answers = [ToolResult(id, f"seen by {id}", is_complete=True) for id in ids]
        if ids and are_together:
            made.append(Turn("user", (*answers, *([Text("And?")] if has_more else []))))
        else:
            made += [Turn("tool", (answer,)) for answer in answers]
        if ids:
            made.append(Turn("assistant", (Text("Done."),)))
    made.append(Turn("user", (Text("Thanks."),)))
    change = draw(st.sampled_from(["none", "none", "turn", "words", "extra turn"]))
    position = draw(st.integers(0, len(made) - 1))
    if change == "turn":
        made[position] = draw(turns)
    elif change == "extra turn":
        made.insert(position, draw(turns))
    elif change == "words":
        changed = [_reworded(block, draw(words)) for block in made[position].blocks]
        made[position] = replace(made[position], blocks=tuple(changed))
    return Conversation(tuple(made))


def _reworded(block: Block, text: str) -> Block:
    if isinstance(block, ToolResult):
        return replace(block, content=text)
    return replace(block, text=text) if isinstance(block, Text) else block


law_conversations = st.one_of(conversations, grown_conversations(), nearly_plain_conversations())


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
@given(law_conversations, targets, sources)
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


def test_law_5_numbers_of_calls_do_not_depend_on_how_results_are_matched() -> None:
    """The id of the second call is taken by the first, so that it gets another number; the third call keeps its own."""
    calls = [
        ToolCall("functions.read:1", "read", {}),
        ToolCall("toolu_2", "read", {}),
        ToolCall("toolu_3", "write", {}),
    ]
    issuers = [Issuer("kimi"), None, None]
    made = [Turn("user", (Text("Go."),))]
    for call, issuer in zip(calls, issuers, strict=True):
        made += [Turn("assistant", (call,), issuer=issuer), Turn("tool", (ToolResult(call.id, "x", is_complete=True),))]
    kimi = ("kimi", "kimi-k2-0905-preview")
    assert_the_same_without_shortcuts(Conversation(tuple(made)), kimi, "anthropic")
    short = rendered(Conversation(tuple(made)), kimi, "anthropic", shortcuts=True)
    assert isinstance(short, Rendered)
    assert short.seen_ids().calls == ("functions.read:1", "functions.read:2", "functions.write:2")


class CautiousFacts(TurnFacts):
    """Facts by which every pass has to look for itself."""

    def __init__(self, turns: tuple[Turn, ...]) -> None:
        super().__init__(turns)
        self.kinds |= {Thinking, Media}
        self.has_tool_blocks = self.has_signatures = self.has_blanks = self.is_mixed = True
        self.prompts += 1


@pytest.mark.law
@MANY
@given(law_conversations, targets, sources)
def test_a_pass_that_the_facts_excuse_has_nothing_to_do(
    conversation: Conversation, target: Target, source: str
) -> None:
    profile, origin = profiles.get(*target), profiles.get(source)
    issued = [replace(turn, issuer=turn.issuer or Issuer(source)) for turn in conversation.turns]
    taken = Intake([]).take_all(issued)
    for fit in TURN_PASSES:
        ctx, cautious = (RenderContext(profile, DEFAULT_POLICY, origin) for _ in range(2))
        cautious.use_facts(CautiousFacts(taken))
        fitted = fit(taken, ctx)
        assert fit(taken, cautious) == fitted
        assert cautious.entries == ctx.entries
        taken = fitted
