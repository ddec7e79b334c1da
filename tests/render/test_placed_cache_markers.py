"""Cache markers are placed for clients whose protocol has none, where they pay, and for nobody else."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.law_examples import MANY
from toolglot import Policy, convert, lint, profiles, repair, request_for
from toolglot.conversation import Conversation, Text, Turn
from toolglot.conversation.token_estimates import CountedTokens, count_words
from toolglot.conversation.tool_memory import ToolMemory
from toolglot.history.history import History
from toolglot.translate.requests import read_request

Fields = dict[str, Any]

LONG = "You are a careful assistant who reads files. " * 300
CLAUDE = ("anthropic", "claude-opus-5")
BEDROCK = ("bedrock", "anthropic.claude-opus-5-v1:0")
NOVA = ("bedrock", "amazon.nova-pro-v1:0")
OPENROUTER = ("openrouter", "anthropic/claude-opus-5")
VERTEX = ("vertex_claude", "claude-opus-5")
TARGETS = (CLAUDE, BEDROCK, NOVA, OPENROUTER, VERTEX)
FUNCTION = {"name": "f", "description": "Reads.", "parameters": {"type": "object", "properties": {}}}
MARKS = (b"cache_control", b"cachePoint")


def chat(steps: int, *, system: str = LONG, calls: int = 1) -> Fields:
    """A conversation of Chat Completions after some steps of an agent."""
    messages: list[Fields] = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": "Read all files."})
    for step in range(steps):
        ids = [f"call_{step}_{index}" for index in range(calls)]
        function = {"name": "f", "arguments": "{}"}
        called = [{"id": id, "type": "function", "function": function} for id in ids]
        messages.append({"role": "assistant", "content": None, "tool_calls": called})
        messages += [{"role": "tool", "tool_call_id": id, "content": f"The file of {id}. " * 4} for id in ids]
    return {"model": "gpt-4.1", "messages": messages, "tools": [{"type": "function", "function": FUNCTION}]}


def sent(body: Fields, target: tuple[str, str], **settings: Any) -> Any:
    return convert(msgspec.json.encode(body), source="openai", target=target[0], model=target[1], **settings)


def count_marks(data: bytes) -> int:
    return sum(data.count(b'"%b":{' % mark) for mark in MARKS)


def plain(value: Any) -> Any:
    """A body without cache markers, and with every text alone in its list as a string."""
    if isinstance(value, list):
        found = [plain(item) for item in value if not (isinstance(item, dict) and item.keys() == {"cachePoint"})]
        is_text = len(found) == 1 and isinstance(found[0], dict) and found[0].keys() == {"type", "text"}
        return found[0]["text"] if is_text else found
    if not isinstance(value, dict):
        return value
    return {key: plain(item) for key, item in value.items() if key != "cache_control"}


# --- laws -------------------------------------------------------------------------------------------


@pytest.mark.law
@MANY
@given(
    st.integers(0, 5),
    st.integers(1, 3),
    st.sampled_from(["", "Be brief.", LONG, LONG[:8000]]),
    st.sampled_from(TARGETS),
    st.booleans(),
)
def test_laws_1_5_7_and_10_hold_for_placed_markers(
    steps: int, calls: int, system: str, target: tuple[str, str], is_followed: bool
) -> None:
    body = chat(steps, system=system, calls=calls)
    if is_followed:
        body["messages"] += [{"role": "assistant", "content": "Done."}, {"role": "user", "content": "And now?"}]
    out, bare = sent(body, target), sent(body, target, policy=Policy(cache_markers="carry"))
    rules = profiles.get(*target).cache
    assert lint(out.body, target[0], model=target[1]) == ()
    assert count_marks(out.data) <= rules.max_markers
    assert count_marks(bare.data) == 0
    assert plain(out.body) == plain(bare.body), "nothing but markers is added"
    assert repair(out.data, target=target[0], model=target[1]).data == out.data
    entries = [entry for entry in out.report if "cache markers at" in entry.reason]
    assert len(entries) == bool(count_marks(out.data))
    assert all((entry.action, entry.gravity) == ("added", "housekeeping") for entry in entries)
    if not steps and not is_followed:
        assert count_marks(out.data) == 0, "the first request may be the only one"
    earlier = plain(sent(chat(max(steps - 1, 0), system=system, calls=calls), target).body["messages"])
    assert plain(out.body["messages"])[: len(earlier)] == earlier


@given(st.text(), st.integers(0, 50))
def test_the_count_that_stops_early_is_never_more_than_all_words(text: str, wanted: int) -> None:
    if CountedTokens(wanted).add(text):
        assert count_words(text) * 3 // 4 >= wanted - 1 or wanted == 0


# --- where ------------------------------------------------------------------------------------------


def test_tools_the_system_prompt_and_both_ends_are_marked() -> None:
    described = {**FUNCTION, "description": LONG}
    body = sent({**chat(2), "tools": [{"type": "function", "function": described}]}, BEDROCK).body
    assert "cachePoint" in body["toolConfig"]["tools"][-1]
    assert "cachePoint" in body["system"][-1]
    ends = [[at for at, block in enumerate(each["content"]) if "cachePoint" in block] for each in body["messages"]]
    assert ends == [[], [], [1], [], [1]]


def test_the_tools_alone_are_too_short_and_only_the_rest_is_marked() -> None:
    body = sent(chat(2), CLAUDE).body
    assert "cache_control" not in body["tools"][-1]
    assert "cache_control" in body["system"][-1]


def test_a_short_prompt_is_not_marked() -> None:
    assert count_marks(sent(chat(3, system="Be brief."), CLAUDE).data) == 0


def test_a_step_longer_than_the_lookback_still_finds_what_was_written_before() -> None:
    before, after = sent(chat(1, calls=15), CLAUDE).body, sent(chat(2, calls=15), CLAUDE).body
    end = len(before["messages"]) - 1
    assert "cache_control" in before["messages"][end]["content"][-1]
    assert after["messages"][end] == before["messages"][end]


# --- for whom ---------------------------------------------------------------------------------------


def test_a_client_that_sets_a_marker_decides_itself() -> None:
    body = chat(2)
    body["messages"][0]["content"] = [{"type": "text", "text": LONG, "cache_control": {"type": "ephemeral"}}]
    assert count_marks(sent(body, CLAUDE).data) == 1


def test_a_client_whose_protocol_has_markers_decides_itself() -> None:
    carry = Policy(cache_markers="carry")
    claude = sent(chat(2), CLAUDE, policy=carry).data
    assert convert(claude, source="anthropic", target="anthropic").data is claude
    assert count_marks(convert(claude, source="anthropic", target=BEDROCK[0], model=BEDROCK[1]).data) == 0
    assert count_marks(convert(claude, source="anthropic", target=VERTEX[0], model=VERTEX[1]).data) == 0
    bedrock = sent(chat(2), BEDROCK, policy=carry).data
    assert count_marks(convert(bedrock, source="bedrock", target=CLAUDE[0], model=CLAUDE[1]).data) == 0


@pytest.mark.parametrize("model", ["openai/gpt-5", "google/gemini-2.5-pro", "anthropic/claude-opus-5"])
def test_a_client_of_openrouter_is_left_alone(model: str) -> None:
    data = msgspec.json.encode({**chat(2), "model": model})
    assert convert(data, source="openrouter", target="openrouter").data == data


@pytest.mark.parametrize("source", ["gemini", "openai_responses"])
def test_clients_of_other_protocols_get_markers(source: str) -> None:
    body = convert(chat(2), source="openai", target=source, model="gpt-5.5" if source != "gemini" else "gemini-2.5-pro")
    out = convert(body.data, source=source, target=CLAUDE[0], model=CLAUDE[1])
    assert count_marks(out.data) == 3


def test_a_history_of_the_library_gets_markers() -> None:
    history = History()
    history.append(Turn("system", (Text(LONG),)))
    for role, text in (("user", "Hi"), ("assistant", "Hello."), ("user", "What is up?")):
        history.append(Turn(role, (Text(text),)))  # type: ignore[arg-type]
    assert count_marks(request_for(history, target=CLAUDE[0], model=CLAUDE[1]).data) == 3
    turns = Conversation((Turn("user", (Text(LONG),)),))
    assert count_marks(request_for(turns, target=CLAUDE[0], model=CLAUDE[1]).data) == 0


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("is_marked", [False, True])
def test_law_15_remembered_tools_are_marked_like_others(target: tuple[str, str], *, is_marked: bool) -> None:
    """A gateway remembers tools: the second and the third request find them, marked, as the first left them."""
    tools: list[Fields] = [
        {"type": "function", "function": {**FUNCTION, "name": name, "description": LONG, "x_new": 1}} for name in "fg"
    ]
    if is_marked:
        tools[1]["cache_control"] = {"type": "ephemeral"}
    memory = ToolMemory()
    for steps in (0, 1, 2, 3):
        body = {"tools": tools, **{key: value for key, value in chat(steps).items() if key != "tools"}}
        data = msgspec.json.encode(body)
        known = read_request(data, source="openai", memory=memory).for_target(target[0], model=target[1])
        fresh = convert(data, source="openai", target=target[0], model=target[1])
        assert known.data == fresh.data
        assert known.report.entries == fresh.report.entries
        takes_tools = "tools" in profiles.get(*target).cache.positions
        assert (count_marks(fresh.data) > 0) == (takes_tools if is_marked else steps > 0)
