"""Finding the protocol of a body: right on what the SDKs send, silent where the body does not tell."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolglot.protocols.base import names, records
from toolglot.protocols.request_detection import detect, examine

FIELDS = sorted({name for record in records() for name in record.request_marks.fields})
RECORDED = sorted(Path(__file__).parents[1].glob("recordings/*/*.request.json"))


def of(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def plain(model: str | None = None, **fields: Any) -> dict[str, Any]:
    named = {} if model is None else {"model": model}
    return {**named, "messages": [{"role": "user", "content": "Hello"}], **fields}


def test_no_recorded_request_is_taken_for_another_protocol() -> None:
    wrong = [path.name for path in RECORDED if detect(of(path)) not in (None, path.parent.name)]
    assert wrong == []


def test_at_least_95_percent_of_recorded_requests_are_recognised() -> None:
    assert len(RECORDED) >= 140
    assert sum(detect(of(path)) == path.parent.name for path in RECORDED) / len(RECORDED) >= 0.95


def test_a_request_that_is_not_recognised_says_what_it_could_be() -> None:
    for path in RECORDED:
        found = examine(of(path))
        assert path.parent.name in found.candidates
        assert found.by == ("" if found.protocol is None else "structure" if len(found.candidates) == 1 else "model")


def test_all_protocols_are_found_by_structure_alone() -> None:
    found = Counter(examine(of(path)).protocol for path in RECORDED if examine(of(path)).by == "structure")
    assert set(found) == set(names())


@pytest.mark.parametrize(
    ("body", "protocol"),
    [
        (plain(), None),
        (plain("qwen3"), None),
        (plain("gpt-4.1"), "openai_chat"),
        (plain("meta-llama/llama-3.3-70b:free"), "openai_chat"),
        (plain("hf.co/some/model:Q4"), None),
        (plain("llama3.2:3b"), "ollama"),
        (plain("command-a-03-2025"), "cohere"),
        (plain("claude-opus-4-5", max_tokens=9), "anthropic"),
        (plain("claude-opus-4-5"), None),
        (plain("claude-opus-4-5", stream_options={}), "openai_chat"),
        (plain("claude-opus-4-5", tools=[{"type": "function", "function": {"name": "a"}}]), "openai_chat"),
        (plain("claude-opus-4-5", think=True, keep_alive=1), "ollama"),
        (plain("m" * 300), None),
        (plain(3), None),  # type: ignore[arg-type]
        (plain("qwen3", max_tokens=9, temperature=1), "openai_chat"),
        (plain("gpt-4.1", k=3), "cohere"),
    ],
)
def test_the_plainest_bodies_are_decided_by_the_models_name_or_not_at_all(
    body: dict[str, Any], protocol: str | None
) -> None:
    assert detect(body) == protocol


@pytest.mark.parametrize("body", [None, [], "x", {}, {"model": "gpt-4.1"}, {"messages": "Hello"}, {"tools": []}])
def test_what_is_no_request_has_no_protocol(body: object) -> None:
    assert examine(body).protocol is None
    assert examine(body).candidates == ()


@pytest.mark.parametrize(
    "body",
    [
        {"contents": [], "input": "Hello"},
        {"contents": [], "messages": []},
        plain("gpt-4.1", options={}, stop="x"),
        plain("gpt-4.1", system="Be brief.", stop="x"),
    ],
)
def test_marks_that_exclude_each_other_leave_nothing(body: dict[str, Any]) -> None:
    assert examine(body).protocol is None
    assert examine(body).candidates == ()


def message(role: str = "assistant", **fields: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": "Hello"}, {"role": role, **fields}]}


@pytest.mark.parametrize(
    ("body", "candidates"),
    [
        (message(content=[{"type": "tool_use"}]), ("anthropic",)),
        (message(content=[{"type": "web_search_tool_result"}]), ("anthropic",)),
        (message(content=[{"type": "thinking", "thinking": [{}]}]), ("openai_chat",)),
        (message(content=[{"type": "thinking", "thinking": "", "signature": "x"}]), ("anthropic",)),
        (message(content=[{"type": "thinking", "thinking": ""}]), ("anthropic", "openai_chat", "cohere")),
        (message(content=[{"type": "document", "document": {}}]), ("cohere",)),
        (message(content=[{"type": "document", "source": {}}]), ("anthropic",)),
        (message(content=[{"type": "new_kind"}]), ("anthropic", "openai_chat", "cohere")),
        (message(content=[{"one": 1, "two": 2}]), ("anthropic", "openai_chat", "cohere")),
        ({"messages": [{"role": "user", "content": [{"text": "Hello"}]}]}, ("bedrock",)),
        (message(content=None), ("openai_chat", "cohere", "ollama")),
        (message(tool_calls=[{"function": {"name": "a", "arguments": {}}}]), ("ollama",)),
        (message(tool_calls=[{"id": "1", "function": {"name": "a", "arguments": {}}}]), ("openai_chat", "ollama")),
        (message(tool_calls=[{"id": "1", "function": {"name": "a"}}]), ("openai_chat", "cohere", "ollama")),
        (message(tool_calls=[{"id": "1", "custom": {"name": "a"}}]), ("openai_chat", "cohere")),
        (message("developer", content="x"), ("openai_chat",)),
        (message("system", content="x"), ("anthropic", "openai_chat", "cohere", "ollama")),
        (plain(tool_choice="REQUIRED"), ("cohere",)),
        (plain(tool_choice="odd"), ("anthropic", "openai_chat", "cohere", "ollama")),
        (plain(tool_choice={"type": "tool", "name": "a"}), ("anthropic",)),
        (plain(tool_choice={"type": "odd"}), ("anthropic", "openai_chat", "cohere", "ollama")),
        (plain(tools=[{"type": "bash_20250124", "name": "bash"}]), ("anthropic",)),
        (plain(tools=[{"type": "custom", "custom": {}}]), ("openai_chat",)),
        (plain(tools=[{"odd": 1}]), ("anthropic", "openai_chat", "cohere", "ollama")),
        (plain(system="x"), ("anthropic",)),
        ({"messages": [], "system": [{"text": "x"}]}, ("bedrock",)),
        ({"messages": [], "system": [{"type": "text", "text": "x"}]}, ("anthropic",)),
    ],
)
def test_every_mark_leaves_the_protocols_that_have_it(body: dict[str, Any], candidates: tuple[str, ...]) -> None:
    assert examine(body).candidates == candidates


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["role", "type", "content", "function", "tool_calls", "text", "id"]), inner)
    ),
    max_leaves=12,
)


@pytest.mark.law
@given(
    st.dictionaries(st.sampled_from([*FIELDS, "messages", "tools", "tool_choice", "input", "contents", "model"]), JSON)
)
def test_law_no_body_makes_it_raise_and_the_answer_is_a_candidate(body: dict[str, Any]) -> None:
    found = examine(body)
    assert found.protocol is None or found.protocol in found.candidates
    assert found == examine(json.loads(json.dumps(body)))
