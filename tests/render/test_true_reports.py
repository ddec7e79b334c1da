"""Reports say what is true, once, and so that one thing can be told from another."""

from __future__ import annotations

from typing import Any

import pytest

from toolglot import History, Text, Thinking, Turn, convert, request_for
from toolglot.conversation import Issuer
from toolglot.conversation.report import Entry, join_alike
from toolglot.profiles import Overrides

Fields = dict[str, Any]
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": ""}


def claude(*content: Fields, tools: list[Fields] | None = None) -> Fields:
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [*content, {"type": "text", "text": "Hello."}]},
        {"role": "user", "content": "And now?"},
    ]
    return {"model": "m", "max_tokens": 9, "messages": messages, **({"tools": tools} if tools else {})}


@pytest.mark.parametrize(
    ("target", "model", "words"),
    [
        ("openai", "gpt-4.1", "thinking is not sent to a model that takes none"),
        ("gemini", "gemini-2.5-pro", "thinking that the target did not sign is refused"),
    ],
)
def test_thinking_that_may_be_the_targets_own_is_not_called_that_of_another(
    target: str, model: str, words: str
) -> None:
    out = convert(claude(THOUGHT), source="anthropic", target=target, model=model)
    assert words in str(out.report)
    assert "another model" not in str(out.report)


def test_thinking_whose_model_is_known_to_be_another_is_called_so() -> None:
    history = History()
    history.extend([Turn("user", (Text("Hi"),))])
    issuer = Issuer("anthropic", model="claude-sonnet-4-5")
    history.extend([Turn("assistant", (Thinking("Hm.", "s"), Text("Hello.")), issuer=issuer)])
    history.extend([Turn("user", (Text("And now?"),))])
    out = request_for(history, target="gemini", model="gemini-2.5-pro")
    assert "thinking of another model is refused" in str(out.report)


def tool(name: str) -> Fields:
    schema = {"type": "object", "additionalProperties": False, "properties": {"a": {"type": "string", "format": "uri"}}}
    return {"name": name, "description": "d", "input_schema": schema}


def test_what_is_lowered_in_many_tools_is_one_entry_that_lists_where() -> None:
    names = [f"mcp__server__tool_{number}" for number in range(60)]
    out = convert(claude(tools=list(map(tool, names))), source="anthropic", target="gemini", model="gemini-2.5-pro")
    lowered = [entry for entry in out.report.entries if entry.action == "lowered"]
    assert len(lowered) == 2
    assert all(entry.path == "$.tools" and "(60 times: " in entry.reason for entry in lowered)
    assert all(names[0] in entry.reason and entry.reason.endswith("and 40 more)") for entry in lowered)


def test_what_is_lowered_once_has_its_own_path() -> None:
    out = convert(claude(tools=[tool("look")]), source="anthropic", target="gemini", model="gemini-2.5-pro")
    lowered = [entry for entry in out.report.entries if entry.action == "lowered"]
    assert [entry.path for entry in lowered] == [
        "$.tools['look'].properties.a.format",
        "$.tools['look'].additionalProperties",
    ]


def test_entries_that_differ_in_more_than_their_path_stay_apart() -> None:
    first, second = (Entry(action="lowered", reason=reason, fault="loss", path="$.a") for reason in ("x", "y"))
    assert join_alike([first, second, first], "$") == [
        Entry(action="lowered", reason="x (2 times: $.a, $.a)", fault="loss", path="$"),
        second,
    ]


def dropped(names: list[str]) -> str:
    overrides = Overrides("[profiles.gemini.rules]\n'tools.max_count' = 1\n")
    tools = [tool("kept"), *map(tool, names)]
    out = convert(claude(tools=tools), source="anthropic", target="gemini", model="gemini-2.5-pro", overrides=overrides)
    return next(str(entry) for entry in out.report.entries if "accepts at most" in entry.reason)


def test_dropped_tools_with_the_same_beginning_can_be_told_apart() -> None:
    common = "mcp__a_rather_long_name_of_a_server__and_group__"
    shown = dropped([f"{common}read_file", f"{common}write_file"])
    assert "read_file" in shown
    assert "write_file" in shown


def test_dropped_tools_with_the_same_beginning_and_end_are_written_in_full() -> None:
    names = [f"{'a' * 20}{middle}{'b' * 35}" for middle in ("one", "two")]
    shown = dropped(names)
    assert all(name in shown for name in names)
