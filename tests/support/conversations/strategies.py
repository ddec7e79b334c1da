"""Generated conversations: what any client or provider might send, the broken things included."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from toolglot import (
    Compaction,
    Conversation,
    Issuer,
    Media,
    Opaque,
    Options,
    Reasoning,
    Sampling,
    ServerTool,
    Text,
    Thinking,
    ToolCall,
    ToolChange,
    ToolChoice,
    ToolReference,
    ToolResult,
    ToolSpec,
    Turn,
    TurnMetadata,
)

PROVIDERS = ("openai", "anthropic", "gemini", "kimi", "mistral", "bedrock")

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)
extras = st.none() | st.dictionaries(st.sampled_from(["anthropic", "openai_chat"]), json_objects, max_size=1)

raw_ids = st.sampled_from(
    [
        *(
            "call_0",
            "call_1",
            "toolu_a",
            "call_a",
            "fc_a",
            "functions.read:0",
            "functions.read:1",
            "",
            " ",
            "7",
        ),
        *("call_x|fc_y", "hist_tool_abc", "hist_tool_functions.read:0", "call_a__thought__c2ln"),
    ]
)
tool_names = st.sampled_from(["read", "write", ""])
text_blocks = st.builds(Text, texts, extra=extras)
media_blocks = st.builds(Media, st.sampled_from(["image", "document", "audio"]), data=st.just("aGk="))
opaque_blocks = st.builds(Opaque, st.just("anthropic"), json_values, st.just("unheard_of"))
calls = st.builds(
    ToolCall,
    raw_ids,
    tool_names,
    st.none() | json_objects,
    raw_input=st.none() | texts,
    namespace=st.none() | tool_names,
)
tool_specs = st.builds(
    ToolSpec,
    tool_names,
    st.none() | texts,
    st.none() | json_objects,
    strict=st.none() | st.booleans(),
    deferred=st.booleans(),
)
tool_references = st.builds(ToolReference, tool_names, st.none() | tool_names, st.none() | tool_specs)
tool_changes = st.builds(
    ToolChange, st.lists(tool_references, max_size=2).map(tuple), st.lists(tool_references, max_size=1).map(tuple)
)
results = st.builds(
    ToolResult,
    raw_ids,
    st.none() | texts | st.lists(text_blocks | media_blocks | tool_references, max_size=2).map(tuple),
    is_error=st.booleans(),
    name=tool_names,
    is_complete=st.none() | st.booleans(),
    error=st.none() | st.just("boom"),
    result=json_values,
    status=st.sampled_from([None, None, None, "cancelled", "complete"]),
    synthetic=st.none() | st.just("interrupted"),
    executed_arguments=st.none() | json_objects,
)
compactions = st.builds(
    Compaction,
    st.none() | texts,
    st.none() | st.sampled_from(["gAAAA", "toolglot.compaction.1"]),
    st.sampled_from(["anthropic", "openai_responses"]),
    keeps_prompts=st.booleans(),
)
other_blocks = st.one_of(
    text_blocks,
    media_blocks,
    opaque_blocks,
    st.builds(Thinking, texts, st.none() | texts, st.none() | texts),
    st.builds(ServerTool, st.just("anthropic"), st.sampled_from(["call", "result"]), json_values),
    tool_changes,
    compactions,
)


def turns_of(blocks: st.SearchStrategy[Any]) -> st.SearchStrategy[Turn]:
    return st.builds(
        Turn,
        st.sampled_from(["user", "assistant", "tool", "system"]),
        st.lists(blocks, max_size=4).map(tuple),
        issuer=st.builds(Issuer, st.sampled_from(PROVIDERS)),
        metadata=st.builds(TurnMetadata, notes=st.none() | json_objects),
        extra=extras,
    )


turns = turns_of(st.one_of(calls, results, other_blocks))
"""Any turn: calls and results where they are not expected."""

plain_turns = st.one_of(
    turns_of(st.one_of(calls, text_blocks)),
    turns_of(results),
    turns_of(text_blocks),
)
transcripts = st.lists(st.one_of(plain_turns, turns), max_size=10)

conversations = st.builds(
    Conversation,
    transcripts.map(tuple),
    st.lists(tool_specs, max_size=2).map(tuple),
    st.builds(
        Options,
        st.builds(Sampling, max_tokens=st.none() | st.integers(1, 10), stop=st.lists(texts, max_size=2).map(tuple)),
        st.none() | st.builds(Reasoning, st.sampled_from(["off", "on", "adaptive"])),
        st.none() | st.builds(ToolChoice, st.sampled_from(["auto", "required"]), parallel=st.none() | st.booleans()),
    ),
    texts,
    extras,
)
