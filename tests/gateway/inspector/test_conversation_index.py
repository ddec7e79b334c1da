"""Which requests are one conversation, and which one continues which."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from support.counted_work import steps_of
from toolglot.gateway.inspector.conversation_index import ConversationIndex, Place, RequestFacts, facts_of


def facts(*messages: str, system: str = "be nice", session: str = "", marked: int | None = None) -> RequestFacts:
    """The facts of a request whose messages alternate between user and assistant."""
    listed: list[dict[str, Any]] = []
    for index, text in enumerate(messages):
        block: dict[str, Any] = {"type": "text", "text": text}
        if index == marked:
            block["cache_control"] = {"type": "ephemeral"}
        listed.append({"role": "assistant" if index % 2 else "user", "content": [block]})
    body = {"model": "claude-opus-5", "max_tokens": 9, "system": system, "messages": listed}
    return facts_of(json.dumps(body), source="anthropic", session=session)


def add(index: ConversationIndex, id: str, *messages: str, client: str = "a", **fields: Any) -> Place:
    return index.add(id, client, facts(*messages, **fields))


def test_a_request_that_continues_another_is_of_its_conversation() -> None:
    index = ConversationIndex()
    first = add(index, "1", "hello")
    second = add(index, "2", "hello", "hi", "and now?")
    third = add(index, "3", "hello", "hi", "and now?", "this", "and then?")
    assert first.conversation == second.conversation == third.conversation
    assert (first.parent, second.parent, third.parent) == (None, "1", "2")
    assert (first.turns, third.turns, third.title) == (2, 6, "hello")


def test_a_rewind_branches_off_where_it_goes_back_to() -> None:
    index = ConversationIndex()
    add(index, "1", "hello")
    add(index, "2", "hello", "hi", "left")
    add(index, "3", "hello", "hi", "left", "ok", "more")
    branch = add(index, "4", "hello", "hi", "right")
    assert branch.parent == "1"
    assert branch.conversation == add(index, "5", "hello", "hi", "left", "ok", "more", "x", "y").conversation


def test_a_history_that_was_changed_is_compared_with_the_last_request() -> None:
    index = ConversationIndex()
    add(index, "1", "hello", session="s")
    add(index, "2", "hello", "hi", "go on", session="s")
    grown = add(index, "3", "hello", "HI", "go on", "yes", "more", session="s")
    assert (grown.parent, grown.compared) == ("1", "2")
    begun = add(index, "4", "hello, it is 10:01", "HI", "go on", "yes", "more", "x", "y", session="s")
    assert (begun.parent, begun.compared) == (None, "3")


def test_a_rewind_and_a_subagent_are_compared_with_their_own_beginning() -> None:
    index = ConversationIndex()
    add(index, "1", "hello", session="s")
    add(index, "2", "hello", "hi", "left", "ok", "more", session="s")
    assert add(index, "3", "hello", "hi", "right", session="s").compared == "1"
    assert add(index, "4", "search", system="a subagent", session="s").compared is None
    assert add(index, "5", "hello", "hi", "left", "ok", "more", "so", "on", session="s").compared == "2"


def test_something_else_is_a_conversation_of_its_own() -> None:
    index = ConversationIndex()
    assert add(index, "1", "hello").conversation != add(index, "2", "something else").conversation
    assert add(index, "3", "hello", system="another agent").conversation != add(index, "4", "hello").conversation


def test_a_system_prompt_with_the_time_does_not_end_a_conversation() -> None:
    index = ConversationIndex()
    first = add(index, "1", "hello", "hi", "go on", system="It is 10:01.")
    second = add(index, "2", "hello", "hi", "go on", "yes", "more", system="It is 10:02.")
    assert (second.conversation, second.parent) == (first.conversation, "1")


def test_the_first_request_is_found_again_whatever_its_system_prompt_was() -> None:
    index = ConversationIndex()
    first = add(index, "1", "hello", system="it is 10:00")
    second = add(index, "2", "hello", "hi", "go on", system="it is 10:01")
    assert (second.conversation, second.parent, second.compared) == (first.conversation, "1", "1")
    # Nobody has answered the second "hello" yet, so what continues the first one is no part of it.
    other = add(index, "3", "hello", system="be brief")
    assert other.conversation != first.conversation
    assert (
        add(index, "4", "hello", "hi", "go on", "yes", "more", system="it is 10:02").conversation == first.conversation
    )
    index.keep_only(["2", "4"])
    assert add(index, "5", "hello", "ho", "?", system="it is 10:03").conversation not in (None, other.conversation)
    assert add(index, "6", "hello", "ho", "?", client="b", system="it is 10:03").parent is None


def test_what_a_request_is_about_is_its_last_turn() -> None:
    assert facts("hello", "hi", "and now?").latest == "and now?"
    call = {"type": "tool_use", "id": "t1", "name": "read_file", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "x"}
    turns = [("user", "look"), ("assistant", [call]), ("user", [result])]
    body = {"model": "claude-opus-5", "max_tokens": 9, "messages": [{"role": r, "content": c} for r, c in turns]}
    assert facts_of(json.dumps(body), source="anthropic").latest == "result of read_file"
    body["messages"] = []
    assert facts_of(json.dumps(body), source="anthropic").latest == ""


def test_a_cache_marker_that_moves_changes_nothing() -> None:
    index = ConversationIndex()
    add(index, "1", "hello", "hi", "go on", marked=2)
    assert add(index, "2", "hello", "hi", "go on", "yes", "more", marked=4).parent == "1"


def test_a_session_is_one_conversation_whatever_is_in_it() -> None:
    index = ConversationIndex()
    first = add(index, "1", "hello", session="s1")
    subagent = add(index, "2", "search for it", system="a subagent", session="s1")
    other = add(index, "3", "hello", session="s2")
    assert first.conversation == subagent.conversation != other.conversation
    assert subagent.parent is None


def test_the_session_in_a_body_counts() -> None:
    body = {"model": "m", "input": "hello", "prompt_cache_key": "thread-7"}
    assert facts_of(json.dumps(body), source="openai_responses").session == "thread-7"


def test_clients_never_share_a_conversation() -> None:
    index = ConversationIndex()
    own = add(index, "1", "hello", client="a")
    other = add(index, "2", "hello", "hi", "go on", client="b")
    with_session = [add(index, f"s{client}", "x", session="s", client=client).conversation for client in "ab"]
    assert own.conversation != other.conversation
    assert other.parent is None
    assert len({*with_session}) == 2


def test_what_is_forgotten_is_no_parent_and_takes_no_room() -> None:
    index = ConversationIndex()
    add(index, "1", "hello")
    add(index, "2", "hello", "hi", "go on")
    add(index, "3", "other")
    index.keep_only({"2"})
    assert index.place("1") is None
    assert add(index, "4", "hello", "hi", "go on", "yes", "more").parent == "2"
    index.keep_only(set())
    assert len(index) == 0
    assert not any(getattr(index, name) for name in ("_places", "_known", "_by_prefix", "_ends", "_ended"))


def test_a_body_that_cannot_be_read_belongs_nowhere() -> None:
    index = ConversationIndex()
    for number, body in enumerate(("not JSON", "[]", '{"messages": 3}', "[" * 100_000)):
        assert index.add(str(number), "a", facts_of(body, source="anthropic")).conversation is None


def test_half_a_surrogate_pair_is_no_obstacle() -> None:
    index = ConversationIndex()
    body = '{"model": "m", "messages": [{"role": "user", "content": "\\ud800 hello"}]}'
    assert index.add("1", "a", facts_of(body, source="openai_chat")).conversation


def test_words_of_programs_are_no_title() -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "<system-reminder>x</system-reminder>"}]},
            {"role": "user", "content": "  fix   the\nbug  "},
        ],
    }
    assert facts_of(json.dumps(body), source="openai_chat").title == "fix the bug"


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=8), st.integers(0, 7))
def test_the_parent_is_the_longest_request_that_is_a_beginning(texts: list[str], cut: int) -> None:
    index = ConversationIndex()
    prefix = texts[: 1 + cut % len(texts)]
    add(index, "prefix", *prefix)
    place = add(index, "whole", *texts)
    assert place.parent == "prefix"


def test_the_work_is_linear() -> None:
    def calls(count: int) -> int:
        texts = [f"text {number}" for number in range(count)]
        return steps_of(lambda: add(ConversationIndex(), "1", *texts))

    assert calls(400) < 4.5 * calls(100)
