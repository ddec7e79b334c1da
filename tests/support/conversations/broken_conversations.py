"""Conversations with everything that goes wrong in the wild, for the laws of the renderer.

No field of these is one protocol's own (`extra`), and no opaque block is the target's: what a client says in its own
provider's words goes home as it came, and is not the renderer's to judge.
"""

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
    OutputFormat,
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
)

TARGETS = [
    ("anthropic", "claude-sonnet-4-5"),
    ("anthropic", "claude-sonnet-4-6"),
    ("anthropic", "claude-opus-5-5"),
    ("azure", "gpt-4.1"),
    ("bedrock", "anthropic.claude-sonnet-4-5"),
    ("bedrock", "meta.llama3-1-70b-instruct"),
    ("cerebras", "qwen-3-32b"),
    ("cohere", "command-a-03-2025"),
    ("deepseek", "deepseek-chat"),
    ("deepseek", "deepseek-reasoner"),
    ("gemini", "gemini-2.5-pro"),
    ("gemini", "gemini-3-pro"),
    ("glm", "glm-4.6"),
    ("groq", "llama-3.3-70b-versatile"),
    ("kimi", "kimi-k2-0905-preview"),
    ("kimi", "kimi-k2.5"),
    ("llamacpp", "local"),
    ("minimax", "MiniMax-M2"),
    ("mistral", "mistral-large-latest"),
    ("ollama", "qwen3"),
    ("openai", "gpt-4.1"),
    ("openai_responses", "gpt-5.2"),
    ("openai_responses", "gpt-5.5"),
    ("openrouter", "anthropic/claude-sonnet-4.5"),
    ("qwen", "qwen-max"),
    ("vertex", "gemini-3-pro"),
    ("vllm", "local"),
    ("xai", "grok-4"),
    ("openai_compatible", "m"),
    ("openai_compatible", "moonshotai/Kimi-K2-Instruct"),
    ("openai_compatible", "mistral-small-3-2-24b-instruct"),
]
"""Every target, with models that have demands of their own, and a host that no profile describes."""

SOURCES = ["anthropic", "openai", "openai_responses", "gemini", "kimi", "mistral", "bedrock"]

words = st.sampled_from(["hello", "go on", "done", "a\nb", "é", " x ", "", " ", "\n"])
raw_ids = st.sampled_from(
    [
        *("call_0", "call_1", "toolu_a", "call_a", "fc_a", "functions.read:0", "functions.read:1", "", " ", "7"),
        *("call_x|fc_y", "hist_tool_abc", "hist_tool_functions.read:0", "call_a__thought__c2ln", "abcdefghi"),
        "call_" + "x" * 450,
    ]
)
tool_names = st.sampled_from(["read", "write", "files/read", "a" * 70, "3d", ""])
arguments = st.sampled_from([None, {}, {"path": "a"}, {"n": [1, {"deep": None}]}])
raw_inputs = st.sampled_from([None, None, "", '{"path": ', "[1]", "free text"])
issuers = st.sampled_from([*SOURCES, "nobody"]).map(Issuer)

images = st.builds(Media, st.just("image"), st.just("image/png"), data=st.just("iVBORw0KGgo="))
MEDIA = [
    Media("document", "application/pdf", data="JVBERi0=", name="a.pdf"),
    Media("file", "application/pdf", data="JVBERi0="),
    Media("audio", "audio/wav", data="UklGRg=="),
    Media("video", "video/mp4", data="AAAA"),
    Media("image", "image/png", url="https://example.org/a.png"),
    Media("image", "", data="iVBORw0KGgo="),
    Media("file", file_id="file_1"),
]
media = images | st.sampled_from(MEDIA)
texts = st.builds(Text, words, st.sampled_from([None, None, "c2ln"]))
signatures = st.sampled_from([None, None, "c2ln"])
thoughts = st.one_of(
    st.builds(Thinking, words, st.sampled_from([None, "", "c2ln"])),
    st.builds(Thinking, redacted=st.just("b3BhcXVl")),
)
"""As Anthropic says it; what else a protocol knows thinking by is in its own fields."""
foreign = st.one_of(
    st.builds(Compaction, st.none(), st.none() | st.just("gAAAA"), st.just("elsewhere")),
    st.builds(Opaque, st.just("elsewhere"), st.just({"type": "odd", "text": "said"}), st.just("odd")),
    st.builds(
        ServerTool,
        st.just("elsewhere"),
        st.sampled_from(["call", "result"]),
        st.just({"query": "q", "encrypted_content": "x"}),
        st.just("web_search"),
    ),
)
calls = st.builds(
    ToolCall,
    raw_ids,
    tool_names,
    arguments,
    type=st.sampled_from(["function", "function", "function", "custom"]),
    raw_input=raw_inputs,
    signature=st.sampled_from([None, None, "c2ln"]),
    namespace=st.sampled_from([None, None, None, "files"]),
)
schemas = st.sampled_from([None, {"type": "object", "properties": {"path": {"type": "string"}}}])
definitions = st.builds(
    ToolSpec,
    tool_names.filter(bool),
    st.sampled_from([None, "", "Reads.\nAnd more."]),
    schemas,
    namespace=st.sampled_from([None, None, "files"]),
    deferred=st.booleans(),
)


@st.composite
def references(draw: st.DrawFn) -> ToolReference:
    """A tool that was found or changed: by its name, or defined on the spot."""
    if draw(st.integers(0, 2)):
        return ToolReference(draw(tool_names), draw(st.sampled_from([None, None, "files"])))
    tool = draw(definitions)
    return ToolReference(tool.name, tool.namespace, tool)


changes = st.builds(
    ToolChange, st.lists(references(), max_size=2).map(tuple), st.lists(references(), max_size=2).map(tuple)
)
searched = st.builds(
    ServerTool,
    st.just("elsewhere"),
    st.just("result"),
    st.just({"found": []}),
    st.just("tool_search"),
    loaded=st.lists(references(), max_size=2).map(tuple),
)
contents = st.one_of(
    st.none(),
    words,
    st.lists(st.one_of(st.builds(Text, words), images, media), max_size=3).map(tuple),
    st.lists(references(), min_size=1, max_size=2).map(tuple),
    st.lists(st.one_of(st.builds(Text, words), references()), max_size=3).map(tuple),
)
results = st.builds(
    ToolResult,
    raw_ids,
    contents,
    is_error=st.booleans(),
    name=tool_names | st.just(""),
    is_complete=st.sampled_from([True, True, None, False]),
    error=st.sampled_from([None, None, "boom"]),
    status=st.sampled_from([None, None, None, "cancelled", "complete"]),
)


def turns_of(role: str, blocks: st.SearchStrategy[Any], size: int = 4) -> st.SearchStrategy[Turn]:
    return st.builds(Turn, st.just(role), st.lists(blocks, max_size=size).map(tuple), issuer=issuers | st.none())


turns = st.one_of(
    turns_of("user", texts),
    turns_of("user", st.one_of(texts, media)),
    turns_of("user", st.one_of(results, texts)),
    turns_of("tool", results),
    turns_of("assistant", st.one_of(texts, thoughts)),
    turns_of("assistant", st.one_of(calls, texts, thoughts), 6),
    turns_of("system", texts, 2),
    turns_of("developer", texts, 2),
    turns_of("system", st.one_of(changes, texts), 2),
    turns_of("tool", st.one_of(results, texts, calls, thoughts, media)),
    turns_of("system", st.one_of(texts, results, calls, thoughts, media)),
    turns_of("developer", st.one_of(texts, results, calls, thoughts, media)),
    turns_of("assistant", st.one_of(calls, results, texts, thoughts, foreign, media)),
    turns_of("user", st.one_of(calls, results, texts, thoughts, foreign, media, changes, references())),
    turns_of("assistant", st.one_of(calls, texts, searched, changes)),
    turns_of("tool", st.one_of(results, changes, references())),
)


@st.composite
def exchanges(draw: st.DrawFn) -> list[Turn]:
    """Calls and their results, with one thing or another gone wrong."""
    ids = draw(st.lists(raw_ids, min_size=1, max_size=6))
    issuer = draw(issuers)
    made = [ToolCall(id, draw(tool_names), {"path": str(number)}) for number, id in enumerate(ids)]
    before = draw(st.lists(st.one_of(texts, thoughts), max_size=2))
    calling = Turn("assistant", (*before, *made), issuer=issuer)
    answered = [
        ToolResult(call.id, draw(contents), is_complete=True, is_error=draw(st.booleans()))
        for call in made
        if draw(st.integers(0, 5))
    ]
    if draw(st.booleans()):
        answered = draw(st.permutations(answered))
    answered += draw(st.lists(results, max_size=1))
    between = draw(st.lists(turns, max_size=1))
    if draw(st.booleans()):
        return [calling, *between, *(Turn("tool", (result,)) for result in answered)]
    words_beside = draw(st.lists(texts, max_size=2))
    beside: tuple[Any, ...] = (*words_beside, *answered) if draw(st.booleans()) else (*answered, *words_beside)
    return [calling, *between, Turn("user", beside)]


transcripts = st.lists(st.one_of(turns.map(lambda turn: [turn]), exchanges()), min_size=1, max_size=5).map(
    lambda runs: tuple(turn for run in runs for turn in run)
)

SCHEMAS: list[dict[str, Any] | None] = [
    None,
    {},
    {"type": "object"},
    {"type": "object", "properties": {"path": {"type": "string", "format": "uri"}}, "required": ["path"]},
    {"anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"type": "object"}]},
    {"type": "object", "properties": {"t": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"type": ["string", "null"]}}},
]
tools = st.lists(
    st.builds(
        ToolSpec,
        tool_names.filter(bool),
        st.sampled_from([None, "", "Reads."]),
        st.sampled_from(SCHEMAS),
        type=st.sampled_from(["function", "function", "function", "custom"]),
        strict=st.sampled_from([None, False, True]),
        namespace=st.sampled_from([None, None, "files"]),
        deferred=st.sampled_from([False, False, True]),
    ),
    max_size=4,
    unique_by=lambda tool: (tool.namespace, tool.name),
).map(tuple)
options = st.builds(
    Options,
    st.builds(
        Sampling,
        max_tokens=st.sampled_from([None, 1, 4096]),
        temperature=st.sampled_from([None, 0.5]),
        top_k=st.sampled_from([None, 5]),
        seed=st.sampled_from([None, 7]),
        stop=st.sampled_from([(), ("END",)]),
    ),
    st.none()
    | st.builds(
        Reasoning,
        st.sampled_from([None, "off", "on", "adaptive", "between_tools"]),
        st.sampled_from([None, "low", "max", "odd"]),
        st.sampled_from([None, 2048]),
    ),
    st.none()
    | st.builds(
        ToolChoice, st.sampled_from(["auto", "none", "required"]), parallel=st.sampled_from([None, True, False])
    )
    | st.builds(ToolChoice, st.sampled_from(["named", "allowed"]), st.just(("read",))),
    st.sampled_from(
        [None, OutputFormat("json"), OutputFormat("json_schema", "a", {"type": "object", "properties": {}})]
    ),
    user=st.sampled_from([None, "u1"]),
)
conversations = st.builds(Conversation, transcripts, tools, options)


@st.composite
def grown_conversations(draw: st.DrawFn) -> Conversation:
    """A conversation as it grows turn by turn, over several providers: every call is answered before the next turn."""
    turns: list[Turn] = draw(st.lists(turns_of("system", texts, 2), max_size=1))
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        turns.append(Turn("user", (Text(f"question {number}"), *draw(st.lists(media, max_size=1)))))
        for _ in range(draw(st.integers(0, 2))):
            issuer = draw(issuers)
            before = draw(st.lists(st.one_of(texts, thoughts), max_size=2))
            made = []
            for _ in range(draw(st.integers(1, 3))):
                number += 1
                prefix = draw(st.sampled_from(["call_", "toolu_", "functions.read:", "abcdefg", ""]))
                made.append(
                    ToolCall(f"{prefix}{number:02}", draw(tool_names), {"n": number}, signature=draw(signatures))
                )
            turns.append(Turn("assistant", (*before, *made), issuer=issuer))
            answers = [
                ToolResult(call.id, draw(contents), is_complete=True, is_error=draw(st.booleans())) for call in made
            ]
            if draw(st.booleans()):
                answers = draw(st.permutations(answers))
            if draw(st.booleans()):
                turns += [Turn("tool", (answer,)) for answer in answers]
            else:
                turns.append(Turn("user", (*answers, *draw(st.lists(texts, max_size=1)))))
        turns.append(
            Turn("assistant", (*draw(st.lists(thoughts, max_size=1)), Text(f"answer {number}")), issuer=draw(issuers))
        )
    return Conversation((*turns, Turn("user", (Text("and now?"),))), draw(tools), draw(options))
