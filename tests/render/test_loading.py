"""Tools that are loaded later: what is declared when, and what the turns say about it."""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from support.conversations.broken_conversations import SOURCES, TARGETS, grown_conversations
from support.law_examples import MANY
from toolglot import (
    Conversation,
    Issuer,
    Options,
    Policy,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolChange,
    ToolReference,
    ToolResult,
    ToolSpec,
    Turn,
    convert,
    lint,
    profiles,
)
from toolglot.render import Rendered, render
from toolglot.render.tools.definitions import STUB
from toolglot.render.tools.loading import ADDED, FOUND, MISSING, REMOVED

SCHEMA: Final[dict[str, Any]] = {"type": "object", "properties": {"path": {"type": "string"}}}
SEARCH: Final = ToolSpec("ToolSearch", "Finds tools.", SCHEMA)
RECORD: Final = ToolSpec("mcp__files__record", "Records a text.\nIn a file.", SCHEMA, deferred=True)
MAIL: Final = ToolSpec("mcp__files__mail", "Sends a mail.", SCHEMA, deferred=True)
READ: Final = ToolSpec("Read", "Reads a file.", SCHEMA)
PLACEHOLDER: Final = ToolSpec("DeferredToolPlaceholder", "Never call it.", {"type": "object"}, deferred=True)
TOOLS: Final = (SEARCH, PLACEHOLDER, MAIL, RECORD, READ)

BEDROCK: Final = ("bedrock", "anthropic.claude-sonnet-4-5")
LACKING: Final = [
    ("openai", "gpt-4.1"),
    ("gemini", "gemini-3-pro"),
    ("mistral", "mistral-large-latest"),
    BEDROCK,
    ("cohere", "command-a-03-2025"),
    ("ollama", "qwen3"),
    ("deepseek", "deepseek-chat"),
]
"""Targets that have nothing for tools that are loaded later."""


def user_turn(text: str = "Do it.") -> Turn:
    return Turn("user", (Text(text),))


def search(number: int, *found: ToolReference) -> tuple[Turn, Turn]:
    id = f"toolu_{number}"
    return (
        Turn("assistant", (ToolCall(id, "ToolSearch", {"path": "x"}),)),
        Turn("user", (ToolResult(id, found, is_complete=True),)),
    )


def rendered(
    turns: tuple[Turn, ...],
    tools: tuple[ToolSpec, ...] = TOOLS,
    target: tuple[str, str] = LACKING[0],
    *,
    policy: Policy | None = None,
    source: str = "anthropic",
) -> Rendered:
    conversation = Conversation(turns, tools, model=target[1])
    return render(conversation, profiles.get(*target), source=profiles.get(source), policy=policy or Policy())


def names(made: Rendered) -> list[str]:
    return [tool.name for tool in made.conversation.tools]


def last_result(made: Rendered) -> str:
    return [result.text for turn in made.conversation.turns for result in turn.results][-1]


@pytest.mark.parametrize("target", LACKING)
def test_a_tool_that_is_not_loaded_is_not_declared(target: tuple[str, str]) -> None:
    made = rendered((user_turn(),), target=target)
    assert names(made) == ["ToolSearch", "Read"]
    assert [entry.action for entry in made.entries if "not loaded" in entry.reason] == ["deferred"]


@pytest.mark.parametrize("target", LACKING)
def test_what_a_search_found_is_declared_behind_the_others_and_named_in_its_result(target: tuple[str, str]) -> None:
    turns = (
        user_turn(),
        *search(1, ToolReference("mcp__files__record")),
        *search(2, ToolReference("mcp__files__mail")),
    )
    made = rendered(turns, target=target)
    assert names(made) == ["ToolSearch", "Read", "mcp__files__record", "mcp__files__mail"]
    results = [result.text for turn in made.conversation.turns for result in turn.results]
    assert results == [
        f"{FOUND}\n- mcp__files__record: Records a text.",
        f"{FOUND}\n- mcp__files__mail: Sends a mail.",
    ]
    assert not any(tool.deferred for tool in made.conversation.tools)
    assert {entry.action for entry in made.entries if "search found" in entry.reason} == {"converted"}


def test_the_text_names_a_tool_as_the_model_knows_it() -> None:
    long = replace(RECORD, name="mcp__" + "a" * 80)
    made = rendered((user_turn(), *search(1, ToolReference(long.name))), (SEARCH, long))
    emitted = names(made)[-1]
    assert len(emitted) <= 64
    assert f"- {emitted}: " in last_result(made)
    call = made.tools.original_call(ToolCall("call_1", emitted, {}))
    assert call.name == long.name


def test_a_reference_to_a_tool_that_is_not_declared_is_reported_as_missing() -> None:
    made = rendered((user_turn(), *search(1, ToolReference("gone"), ToolReference("mcp__files__mail"))))
    assert last_result(made) == f"{FOUND}\n- mcp__files__mail: Sends a mail.\n{MISSING} gone"
    assert names(made) == ["ToolSearch", "Read", "mcp__files__mail"]


def test_a_tool_that_the_history_calls_is_declared() -> None:
    called = Turn("assistant", (ToolCall("toolu_1", "mcp__files__mail", {"path": "a"}),))
    answered = Turn("user", (ToolResult("toolu_1", "sent", is_complete=True),))
    made = rendered((user_turn(), called, answered))
    assert names(made) == ["ToolSearch", "Read", "mcp__files__mail"]


def test_a_prompt_adds_tools_by_name_and_by_definition() -> None:
    inline = ToolSpec("translate", "Translates.", SCHEMA)
    change = ToolChange((ToolReference("mcp__files__mail"), ToolReference("translate", definition=inline)))
    made = rendered((user_turn(), Turn("system", (change,)), Turn("assistant", (Text("Yes."),)), user_turn("And now?")))
    assert names(made) == ["ToolSearch", "Read", "mcp__files__mail", "translate"]
    text = "\n".join(turn.text for turn in made.conversation.turns)
    assert f"{ADDED}\n- mcp__files__mail: Sends a mail.\n- translate: Translates." in text


def test_a_tool_that_is_removed_stays_declared_and_the_text_says_so() -> None:
    change = ToolChange(removed=(ToolReference("Read"),))
    turns = (user_turn(), Turn("assistant", (Text("Yes."),)), user_turn("Go on."), Turn("system", (change,)))
    made = rendered(turns)
    assert names(made) == ["ToolSearch", "Read"]
    assert f"{REMOVED} Read" in "\n".join(turn.text for turn in made.conversation.turns)
    assert any("change of the tools" in entry.reason for entry in made.entries)


@pytest.mark.parametrize("target", LACKING)
def test_tools_that_are_added_before_everything_else_are_declared_and_no_words_are_needed(
    target: tuple[str, str],
) -> None:
    change = ToolChange((ToolReference("mcp__files__mail"),))
    made = rendered((Turn("system", (change,)), user_turn()), target=target)
    assert names(made) == ["ToolSearch", "Read", "mcp__files__mail"]
    assert all(ADDED not in turn.text for turn in made.conversation.turns)
    assert any("declared with the others" in entry.reason for entry in made.entries)
    removal = ToolChange(removed=(ToolReference("Read"),))
    with_words = rendered((Turn("system", (change, removal)), user_turn()), target=target)
    assert REMOVED in with_words.conversation.turns[0].text


def test_a_policy_declares_all_tools_from_the_start() -> None:
    policy = Policy(deferred_tools="start")
    made = rendered((user_turn(), *search(1, ToolReference("mcp__files__record"))), policy=policy)
    assert names(made) == ["ToolSearch", "mcp__files__mail", "mcp__files__record", "Read"]
    assert last_result(made) == f"{FOUND}\n- mcp__files__record: Records a text."
    assert [entry.fault for entry in made.entries if "from the start" in entry.reason] == ["policy"]


def test_a_search_that_only_another_provider_runs_leaves_all_tools_declared() -> None:
    hosted = ToolSpec("x", type="tool_search_tool_bm25_20251119", issuer=Issuer("anthropic"), is_search=True)
    found = ServerTool("anthropic", "result", {"tools": []}, "tool_search", loaded=(ToolReference("mcp__files__mail"),))
    made = rendered((user_turn(), Turn("assistant", (found, Text("Found."))), user_turn("Go on.")), (hosted, *TOOLS))
    assert names(made) == ["ToolSearch", "mcp__files__mail", "mcp__files__record", "Read"]
    assert any("no search for tools" in entry.reason for entry in made.entries)


def test_anthropic_keeps_a_tool_deferred_that_a_foreign_result_defines() -> None:
    """Deferred tools are no part of what caches and preserved thinking depend on (anthropic-tools-deferred)."""
    defined = ToolReference("record", "files", ToolSpec("record", "Records.", SCHEMA, namespace="files", deferred=True))
    turns = (user_turn(), *search(1, defined))
    made = rendered(turns, (SEARCH,), ("anthropic", "claude-opus-5-5"), source="openai_responses")
    assert [(tool.name, tool.deferred) for tool in made.conversation.tools] == [
        ("ToolSearch", False),
        ("files__record", True),
    ]
    assert [result.content for turn in made.conversation.turns for result in turn.results] == [
        (ToolReference("files__record"),)
    ]


NEW_RESPONSES: Final = ("openai_responses", "gpt-5.5")
"""It takes tools that the input defines."""


def joined(made: Rendered) -> list[list[str]]:
    """The names of the tools that each turn defines."""
    changes = [block for turn in made.conversation.turns for block in turn.blocks if isinstance(block, ToolChange)]
    return [[tool.definition.name for tool in change.added if tool.definition is not None] for change in changes]


def test_responses_gets_a_tool_where_it_was_loaded_and_keeps_its_list_of_tools() -> None:
    """The list of tools begins the prompt: a change of it is a change of all that the provider has cached."""
    turns = (
        user_turn(),
        *search(1, ToolReference("mcp__files__record")),
        *search(2, ToolReference("mcp__files__mail"), ToolReference("mcp__files__record")),
    )
    sent = [rendered(turns[:length], target=NEW_RESPONSES) for length in (1, 3, 5)]
    assert [names(made) for made in sent] == [["ToolSearch", "Read"]] * 3
    assert [joined(made) for made in sent] == [
        [],
        [["mcp__files__record"]],
        [["mcp__files__record"], ["mcp__files__mail"]],
    ]
    roles = [turn.role for turn in sent[-1].conversation.turns]
    assert roles == ["user", "assistant", "user", "developer", "assistant", "user", "developer"]
    reasons = [entry.reason for entry in sent[-1].entries]
    assert any("defined where they were loaded" in reason for reason in reasons)
    assert not any("behind the others" in reason for reason in reasons)


def test_older_models_of_responses_get_a_loaded_tool_in_their_list() -> None:
    made = rendered(
        (user_turn(), *search(1, ToolReference("mcp__files__mail"))), target=("openai_responses", "gpt-4.1")
    )
    assert (names(made), joined(made)) == (["ToolSearch", "Read", "mcp__files__mail"], [])


def test_a_tool_that_joins_is_lowered_named_and_restored_like_any_other() -> None:
    long = replace(RECORD, name="mcp__" + "ä" * 80)
    made = rendered((user_turn(), *search(1, ToolReference(long.name))), (SEARCH, long), NEW_RESPONSES)
    ((emitted,),) = joined(made)
    assert f"- {emitted}: " in last_result(made)
    assert made.tools.original_call(ToolCall("call_1", emitted, {})).name == long.name


def test_a_tool_that_was_called_before_it_was_found_is_declared() -> None:
    made = rendered(
        (user_turn(), *called(MAIL.name), *search(2, ToolReference(MAIL.name), ToolReference(RECORD.name))),
        target=NEW_RESPONSES,
    )
    assert (names(made), joined(made)) == (["ToolSearch", "Read", MAIL.name], [[RECORD.name]])


@pytest.mark.parametrize("target", [*LACKING, NEW_RESPONSES])
def test_a_placeholder_is_never_offered_even_if_a_search_finds_it(target: tuple[str, str]) -> None:
    made = rendered((user_turn(), *search(1, ToolReference(PLACEHOLDER.name))), target=target)
    assert (names(made), joined(made)) == (["ToolSearch", "Read"], [])
    assert last_result(made) == f"{MISSING} {PLACEHOLDER.name}"


def test_a_policy_that_declares_all_from_the_start_lets_none_join() -> None:
    turns = (user_turn(), *search(1, ToolReference(MAIL.name)))
    made = rendered(turns, target=NEW_RESPONSES, policy=Policy(deferred_tools="start"))
    assert (names(made), joined(made)) == (["ToolSearch", MAIL.name, RECORD.name, "Read"], [])


def test_not_all_tools_stay_deferred() -> None:
    made = rendered((user_turn(),), (MAIL, RECORD), ("anthropic", "claude-opus-5-5"))
    assert [tool.deferred for tool in made.conversation.tools] == [False, False]
    assert any("not all tools" in entry.reason for entry in made.entries)


# --- as Claude Code writes it -----------------------------------------------------------------------

BODY: Final[dict[str, Any]] = {
    "model": "claude-opus-5-5",
    "max_tokens": 1000,
    "tools": [
        {"name": "ToolSearch", "description": "Finds.", "input_schema": SCHEMA, "defer_loading": False},
        {"name": "DeferredToolPlaceholder", "input_schema": {"type": "object"}, "defer_loading": True},
        {"name": "mail", "description": "Mails.", "input_schema": SCHEMA, "defer_loading": True},
        {"name": "record", "description": "Records.", "input_schema": SCHEMA, "defer_loading": True},
    ],
    "messages": [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "ToolSearch", "input": {}}]},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result",
                    "tool_use_id": "toolu_1",
                    "content": [{"type": "tool_reference", "tool_name": "record"}],
                },
                {"type": "text", "text": "Tool loaded."},
            ],
        },
        {
            "role": "system",
            "content": [
                {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "mail"}},
                {
                    "type": "tool_addition",
                    "tool": {"type": "tool_definition", "definition": {"name": "now", "input_schema": SCHEMA}},
                },
                {"type": "tool_removal", "tool": {"type": "tool_reference", "name": "record"}},
            ],
        },
    ],
}


def test_a_request_to_its_own_provider_leaves_as_it_came() -> None:
    data = msgspec.json.encode(BODY)
    assert lint(data, "anthropic", "claude-opus-5-5") == ()
    out = convert(data, source="anthropic", target="anthropic", model="claude-opus-5-5")
    assert out.data is data
    assert list(out.report) == []


def test_responses_gets_items_of_tools_and_takes_them_for_its_own() -> None:
    out = convert(msgspec.json.encode(BODY), source="anthropic", target="openai_responses", model="gpt-5.5")
    assert [tool["name"] for tool in out.body["tools"]] == ["ToolSearch"]
    items = [item for item in out.body["input"] if item["type"] == "additional_tools"]
    assert [[tool["name"] for tool in item["tools"]] for item in items] == [["record"], ["mail", "now"]]
    assert {item["role"] for item in items} == {"developer"}
    assert lint(out.data, "openai_responses", "gpt-5.5") == ()
    again = convert(out.data, source="openai_responses", target="openai_responses", model="gpt-5.5")
    assert again.data is out.data


def test_another_provider_gets_what_is_loaded() -> None:
    out = convert(msgspec.json.encode(BODY), source="anthropic", target="openai", model="gpt-4.1")
    assert [tool["function"]["name"] for tool in out.body["tools"]] == ["ToolSearch", "record", "mail", "now"]
    assert all("defer_loading" not in tool for tool in out.body["tools"])
    assert out.body["messages"][2]["content"] == f"{FOUND}\n- record: Records."
    assert out.body["messages"][-1] == {
        "role": "system",
        "content": [
            {"type": "text", "text": f"{ADDED}\n- mail: Mails."},
            {"type": "text", "text": f"{ADDED}\n- now"},
            {"type": "text", "text": f"{REMOVED} record"},
        ],
    }


# --- a search that the provider runs ----------------------------------------------------------------

HOSTED: Final[dict[str, Any]] = {
    "model": "claude-opus-5-5",
    "max_tokens": 1000,
    "tools": [
        {"type": "tool_search_tool_regex_20251119", "name": "tool_search_tool_regex"},
        {"name": "mail", "description": "Mails.", "input_schema": SCHEMA, "defer_loading": True},
    ],
    "messages": [{"role": "user", "content": "Mail it."}],
}
HOSTED_BY_OPENAI: Final[dict[str, Any]] = {
    "model": "gpt-5.5",
    "tools": [
        {"type": "tool_search"},
        {"type": "function", "name": "mail", "description": "Mails.", "parameters": SCHEMA, "defer_loading": True},
    ],
    "input": "Mail it.",
}


def test_the_search_of_anthropic_becomes_that_of_openai() -> None:
    data = msgspec.json.encode(HOSTED)
    out = convert(data, source="anthropic", target="openai_responses", model="gpt-5.5")
    search, mail = out.body["tools"]
    assert search == {"type": "tool_search"}
    assert (mail["name"], mail["defer_loading"]) == ("mail", True)
    assert convert(data, source="anthropic", target="anthropic", model="claude-opus-5-5").data is data


def test_the_search_of_openai_becomes_that_of_anthropic() -> None:
    data = msgspec.json.encode(HOSTED_BY_OPENAI)
    out = convert(data, source="openai_responses", target="anthropic", model="claude-opus-5-5")
    search, mail = out.body["tools"]
    assert search == {"type": "tool_search_tool_bm25_20251119", "name": "tool_search_tool_bm25"}
    assert (mail["name"], mail["defer_loading"]) == ("mail", True)
    assert convert(data, source="openai_responses", target="openai_responses", model="gpt-5.5").data is data


@pytest.mark.parametrize(("body", "source"), [(HOSTED, "anthropic"), (HOSTED_BY_OPENAI, "openai_responses")])
def test_a_target_without_a_search_gets_all_tools(body: dict[str, Any], source: str) -> None:
    out = convert(msgspec.json.encode(body), source=source, target="openai", model="gpt-4.1")
    assert [tool["function"]["name"] for tool in out.body["tools"]] == ["mail"]
    assert any("no search for tools" in entry.reason for entry in out.report)


# --- laws -------------------------------------------------------------------------------------------


ONLY_READ: Final = (ToolSpec("read", strict=False, deferred=True),)
"""All tools of these are deferred."""


def called(name: str, *found: ToolReference, namespace: str | None = None) -> tuple[Turn, Turn]:
    """A call, and its result that loads tools."""
    call = ToolCall(f"call_{name}", name, {}, namespace=namespace)
    return Turn("assistant", (call,)), Turn("user", (ToolResult(call.id, found or "done", is_complete=True),))


def grown(*rounds: tuple[Turn, Turn], tools: tuple[ToolSpec, ...] = ONLY_READ) -> Conversation:
    return Conversation((user_turn(), *(turn for pair in rounds for turn in pair)), tools)


@pytest.mark.law
@MANY
@given(grown_conversations(), st.sampled_from(TARGETS), st.sampled_from(SOURCES))
@example(  # declared from the start, since not all tools may be deferred, and defined again
    grown(called("read", ToolReference("read", definition=ToolSpec("read")))), TARGETS[0], "anthropic"
)
@example(  # called, so that it is declared, and then referenced
    grown(called("read", ToolReference("read")), tools=(*ONLY_READ, READ)), TARGETS[0], "openai"
)
@example(  # a stub stands for a tool that is called, then a tool is loaded, and one more is called
    grown(called("write"), called("search", ToolReference("read")), called("3d")), BEDROCK, "anthropic"
)
@example(  # the tool of a stub is defined
    grown(called("a"), called("write"), called("search", ToolReference("a", definition=ToolSpec("a", "A.")))),
    BEDROCK,
    "anthropic",
)
def test_law_5_a_longer_history_only_adds_tools_at_the_end(
    conversation: Conversation, target: tuple[str, str], source: str
) -> None:
    """Only a stub changes later, at its position: once its tool is loaded, the model must see how to call it."""
    profile = profiles.get(*target)
    conversation = replace(conversation, options=Options(), model=target[1])
    shorter: list[ToolSpec] = []
    for length in range(1, len(conversation.turns) + 1):
        part = replace(conversation, turns=conversation.turns[:length])
        made = render(part, profile, source=profiles.get(source))
        declared = [tool for tool in made.conversation.tools if not tool.deferred]
        if not profile.tools.namespaces:  # a tool of a namespace joins the others of its namespace
            assert len(declared) >= len(shorter)
            for before, now in zip(shorter, declared, strict=False):
                assert before.name == now.name if before.description == STUB else before == now
        shorter = declared


def test_a_stub_stays_in_front_of_what_is_loaded_and_gives_way_to_its_own_tool() -> None:
    found = ToolReference("write", definition=ToolSpec("write", "Writes.", SCHEMA))
    conversation = grown(called("write"), called("search", ToolReference("read")), called("find", found))
    seen = []
    for length in (3, 5, 7):
        made = rendered(conversation.turns[:length], ONLY_READ, BEDROCK)
        seen.append([(tool.name, tool.description == STUB) for tool in made.conversation.tools])
    assert seen == [
        [("write", True)],
        [("write", True), ("search", True), ("read", False)],
        [("write", False), ("search", True), ("read", False)],
    ]


def test_an_empty_namespace_is_none() -> None:
    turns = grown(called("write"), called("write", namespace="")).turns
    assert names(rendered(turns, (), BEDROCK)) == ["write"]
    deferred = (READ, replace(MAIL, namespace=""))
    assert names(rendered((user_turn(), *search(1, ToolReference(MAIL.name))), deferred)) == ["Read", MAIL.name]
    assert names(rendered((user_turn(),), (READ, replace(READ, namespace="")))) == ["Read"]


def test_a_change_that_leads_because_the_turns_before_it_are_gone_becomes_text() -> None:
    """The `system` of Anthropic holds text alone."""
    hidden = Turn("assistant", (Thinking(redacted="b3BhcXVl"),), issuer=Issuer("anthropic"))
    change = ToolChange((ToolReference("translate", definition=ToolSpec("translate", "Translates.", SCHEMA)),))
    target = ("anthropic", "claude-sonnet-4-5")
    made = rendered((hidden, Turn("system", (change,)), user_turn()), (READ,), target)
    assert [turn.text for turn in made.conversation.turns] == [f"{ADDED}\n- translate: Translates.", "Do it."]
    assert names(made) == ["Read", "translate"]
    assert any("became text" in entry.reason for entry in made.entries)


EMPTY_NAMESPACE: dict[str, Any] = {"type": "namespace", "name": "files", "description": "Files.", "tools": []}


@pytest.mark.parametrize("target", [("anthropic", "claude-opus-5"), *LACKING])
def test_a_namespace_without_tools_is_no_tool_that_was_found(target: tuple[str, str]) -> None:
    call = {"type": "tool_search_call", "call_id": "call_1", "execution": "client", "arguments": {"query": "x"}}
    found = {**call, "type": "tool_search_output", "status": "completed", "tools": [EMPTY_NAMESPACE]}
    del found["arguments"]
    items = [{"role": "user", "content": "Look."}, call, found]
    out = convert(
        {"model": "m", "input": items, "tools": []}, source="openai_responses", target=target[0], model=target[1]
    )
    assert not lint(out.body, target=target[0], model=target[1])
    assert f"{MISSING} files" in json.dumps(out.body)


def test_a_namespace_without_tools_does_not_stand_in_for_those_that_the_history_calls() -> None:
    call = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}
    items = [
        {"role": "user", "content": "Look."},
        call,
        {"type": "function_call_output", "call_id": "call_1", "output": "x"},
    ]
    body = {"model": "m", "input": items, "tools": [EMPTY_NAMESPACE]}
    name, model = BEDROCK
    out = convert(body, source="openai_responses", target=name, model=model)
    assert not lint(out.body, target=name, model=model)
    assert [tool["toolSpec"]["name"] for tool in out.body["toolConfig"]["tools"]] == ["read"]
    assert [entry.action for entry in out.report.entries if "'files' is an empty one" in entry.reason] == ["dropped"]


def test_an_orphan_result_that_found_tools_says_so_in_text() -> None:
    reference = {"type": "tool_reference", "tool_name": "read"}
    result = {"type": "tool_result", "tool_use_id": "toolu_gone", "content": [reference]}
    body = {
        "model": "claude-sonnet-4-5",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": [result, {"type": "text", "text": "go on"}]}],
        "tools": [{"name": "read", "description": "Reads.", "input_schema": {"type": "object"}}],
    }
    out = convert(body, source="anthropic", target="anthropic", model="claude-sonnet-4-5")
    assert "These tools were found: read." in out.body["messages"][0]["content"][0]["text"]
    assert any("that a search found" in entry.reason for entry in out.report.entries)
