"""Compactions for targets that cannot read them: a summary stands for the turns before it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.strategies import compactions, json_objects, raw_ids, results, texts
from toolglot import Compaction, Conversation, Text, ToolCall, ToolResult, Turn, convert, lint, request_for
from toolglot.conversation.compactions import SUMMARY_HEAD
from toolglot.policy import DEFAULT_POLICY
from toolglot.profiles import get
from toolglot.render import render
from toolglot.render.content.compaction import turns_in_effect

FOREIGN = ("openai", "gemini", "mistral", "bedrock", "cohere", "ollama")
SUMMARY = "The user wants to rename main.py; it was read."
BEFORE: list[dict[str, Any]] = [
    {"role": "user", "content": "Rename main.py"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "m"}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "print(1)"}]},
]


def messages(**compaction: Any) -> dict[str, Any]:
    """An Anthropic client's request after a compaction, with all that it still has."""
    block = {"type": "compaction", **compaction}
    return {
        "model": "claude-opus-4-6",
        "max_tokens": 100,
        "system": "Be brief.",
        "messages": [
            *BEFORE,
            {"role": "assistant", "content": [block, {"type": "text", "text": "Done."}]},
            {"role": "user", "content": "And now?"},
        ],
    }


def items(data: str) -> dict[str, Any]:
    """A Responses client's request after a compaction."""
    return {
        "model": "gpt-5.5",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Rename main.py"},
            {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "print(1)"},
            {"type": "compaction", "id": "cmp_1", "encrypted_content": data},
            {"role": "user", "content": "And now?"},
        ],
    }


@pytest.mark.parametrize("target", FOREIGN)
def test_a_summary_stands_for_the_messages_before_it(target: str) -> None:
    out = convert(messages(content=SUMMARY), source="anthropic", target=target, model="m")
    sent = out.data.decode()
    assert SUMMARY in sent
    assert SUMMARY_HEAD in sent
    assert "And now?" in sent
    assert "Done." in sent
    assert "Be brief." in sent
    assert "print(1)" not in sent
    assert "toolu_1" not in sent
    assert not lint(out.body, target=target, model="m")
    assert any("3 turns before it" in entry.reason for entry in out.report.entries)


def test_the_provider_of_a_compaction_gets_it_as_it_came() -> None:
    body = messages(content=SUMMARY, encrypted_content="x", signature="s")
    out = convert(body, source="anthropic", target="anthropic")
    assert out.body == body
    assert not out.report.entries
    responses = items("gAAAA")
    assert convert(responses, source="openai_responses", target="openai_responses").body == responses


@pytest.mark.parametrize("target", ["anthropic", *FOREIGN])
def test_a_compaction_that_only_its_provider_can_read_is_a_reported_loss_and_the_rest_stays(target: str) -> None:
    out = convert(items("gAAAA"), source="openai_responses", target=target, model="m")
    sent = out.data.decode()
    assert "gAAAA" not in sent
    assert "Rename main.py" in sent
    assert "print(1)" in sent
    (entry,) = [entry for entry in out.report.entries if "compaction" in entry.reason]
    assert entry.gravity == "loss"
    assert entry.action == "dropped"


def test_a_compaction_of_ours_is_sent_to_no_provider() -> None:
    out = convert(items("toolglot.compaction.1"), source="openai_responses", target="openai_responses")
    assert "toolglot.compaction" not in out.data.decode()
    assert any(entry.gravity == "loss" for entry in out.report.entries)
    mine = messages(content=SUMMARY, encrypted_content="toolglot.compaction.1")
    sent = convert(mine, source="anthropic", target="anthropic").data.decode()
    assert "toolglot.compaction" not in sent
    assert SUMMARY in sent
    assert "print(1)" not in sent


@pytest.mark.parametrize("content", [None, "", " "])
def test_a_failed_compaction_stands_for_nothing(content: str | None) -> None:
    out = convert(messages(content=content), source="anthropic", target="openai", model="m")
    assert "print(1)" in out.data.decode()
    (entry,) = [entry for entry in out.report.entries if "compaction" in entry.reason]
    assert entry.gravity == "housekeeping"


def test_prompts_before_a_compaction_stay_where_its_protocol_keeps_them() -> None:
    read = Compaction(SUMMARY, "toolglot.compaction.1", "openai_responses", keeps_prompts=True)
    turns = (
        Turn("user", (Text("Rename main.py"),)),
        Turn("assistant", (ToolCall("call_1", "read", {}),)),
        Turn("tool", (ToolResult("call_1", "print(1)"),)),
        Turn("assistant", (read, Text("Done."))),
        Turn("user", (Text("And now?"),)),
    )
    rendered = render(Conversation(turns), get("gemini"), policy=DEFAULT_POLICY)
    sent = [(turn.role, turn.text) for turn in rendered.conversation.turns]
    assert [role for role, _ in sent] == ["user", "user", "assistant", "user"]
    assert sent[0][1] == "Rename main.py"
    assert SUMMARY in sent[1][1]
    assert sent[2][1] == "Done."
    assert [turn.role for turn in turns_in_effect(turns)] == ["user", "assistant", "user"]


named_calls = st.builds(ToolCall, raw_ids, st.sampled_from(["read", "write"]), json_objects)


@pytest.mark.law
@given(
    st.lists(
        st.lists(compactions | st.builds(Text, texts) | named_calls | results, min_size=1, max_size=3),
        min_size=1,
        max_size=6,
    ),
    st.sampled_from(FOREIGN),
)
def test_law_1_histories_with_compactions_are_valid_and_have_their_last_summary(
    blocks: list[list[Any]], target: str
) -> None:
    turns = tuple(Turn("assistant" if at % 2 else "user", tuple(some)) for at, some in enumerate(blocks))
    out = request_for(Conversation((*turns, Turn("user", (Text("go on"),)))), target=target, model="m")
    left = [block for turn in out.rendered.conversation.turns for block in turn.blocks]
    assert not any(isinstance(block, Compaction) for block in left)
    assert not lint(out.body, target=target, model="m")
    written = [block.summary or "" for some in blocks for block in some if isinstance(block, Compaction)]
    summaries = [summary for summary in written if summary.strip()]
    if summaries:
        assert summaries[-1] in "".join(turn.text for turn in out.rendered.conversation.turns)


@pytest.mark.law
@given(st.lists(st.builds(Text, texts.filter(str.strip)), min_size=1, max_size=5), st.sampled_from(FOREIGN))
def test_law_5_what_follows_a_summary_does_not_change_what_was_sent(words: list[Text], target: str) -> None:
    head = (Turn("user", (Text("Rename"),)), Turn("assistant", (Compaction(SUMMARY, protocol="anthropic"),)))
    said = [(Turn("assistant", (word,)), Turn("user", (word,))) for word in words]
    shorter = (*head, *(turn for pair in said[:-1] for turn in pair))
    longer = (*head, *(turn for pair in said for turn in pair))
    sent = [
        render(Conversation(turns), get(target), policy=DEFAULT_POLICY).conversation.turns
        for turns in (shorter, longer)
    ]
    assert [(turn.role, turn.blocks) for turn in sent[1][: len(sent[0])]] == [
        (turn.role, turn.blocks) for turn in sent[0]
    ]
