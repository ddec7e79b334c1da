"""Conversations that a trainer could learn from, with texts that the forms in text find hard."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from toolglot.conversation import Conversation, Text, Thinking, ToolCall, ToolResult, ToolSpec, Turn

texts = st.sampled_from(
    [
        *("hello", "go on", "a\nb", "é", " x ", "\n", "<think>x</think>y", "</think>", "<tool_call>", "</tool_call>"),
        *('<tool_call>\n{"name": "a", "arguments": {}}\n</tool_call>', "<tools>[]</tools>", "<image>", "Action: f"),
        *(
            '{"name": "f", "content": "x"}',
            "[f(a=1)]",
            "\n</tool_response>\n<tool_response>\n",
            "USER: x",
            "<|im_end|>",
        ),
        *("Error: no", "null", "[]", "<tool_response>\n{}\n</tool_response>", "a\n\nb <tools> c\n\nd"),
    ]
)
names = st.sampled_from(["read", "write", "List Files", "a/b"])
values = st.recursive(
    st.sampled_from([None, True, 1, 1.0, -3, 2.5, "x", "it's", '"', "</tool_call>", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b c"]), inner, max_size=2),
    max_leaves=5,
)
arguments = st.dictionaries(st.sampled_from(["path", "n", "name", "arguments"]), values, max_size=3)
tools = st.lists(
    st.builds(
        ToolSpec,
        names,
        st.none() | texts,
        st.none() | st.just({"type": "object", "properties": {"path": {"type": "string"}}}),
    ),
    max_size=2,
    unique_by=lambda tool: tool.name,
).map(tuple)


@st.composite
def conversations(draw: st.DrawFn, *, system: bool = True) -> Conversation:
    """A user and a model in turn; the model may call, and what it called is answered, but for the last calls."""
    turns: list[Turn] = []
    count = 0
    if system and draw(st.booleans()):
        turns.append(Turn("system", (Text(draw(texts)),)))
    for _ in range(draw(st.integers(1, 3))):
        turns.append(Turn("user", (Text(draw(texts)),)))
        for _ in range(draw(st.integers(0, 2))):
            made = [draw(names) for _ in range(draw(st.integers(1, 3)))]
            calls = [ToolCall(f"call_{count + n}", name, draw(arguments)) for n, name in enumerate(made)]
            count += len(calls)
            turns.append(Turn("assistant", (*draw(spoken()), *calls)))
            results = [ToolResult(call.id, draw(texts), name=call.name, is_complete=True) for call in calls]
            turns.append(Turn("tool", tuple(results)))
        turns.append(Turn("assistant", (*draw(spoken()), Text(draw(texts)))))
    if count and draw(st.booleans()):
        turns[-1] = Turn("assistant", (ToolCall(f"call_{count}", draw(names), draw(arguments)),))
    return Conversation(tuple(turns), draw(tools))


@st.composite
def spoken(draw: st.DrawFn) -> tuple[Any, ...]:
    """What a model says before it calls or answers."""
    blocks: list[Any] = [Thinking(draw(texts))] if draw(st.booleans()) else []
    return (*blocks, Text(draw(texts))) if draw(st.booleans()) else tuple(blocks)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=12,
)
"""Any JSON."""
