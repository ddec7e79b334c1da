"""Generated bodies of Ollama's chat protocol."""

from __future__ import annotations

from hypothesis import strategies as st

from support.conversations.strategies import json_objects, json_values, texts
from support.protocols.strategies.wire_objects import counts, numbers, wire_object

images = st.lists(st.just("aGk="), max_size=2)
ollama_calls = wire_object(
    {"function": wire_object({"name": texts, "arguments": json_objects}, {"index": counts, "description": texts})},
    {"id": texts, "type": st.just("function")},
)
message_fields = {
    "content": texts,
    "thinking": texts,
    "images": images,
    "tool_calls": st.lists(ollama_calls, max_size=2),
    "tool_name": texts,
    "tool_call_id": texts,
}
ollama_messages = wire_object({"role": st.sampled_from(["system", "user", "assistant", "tool"])}, message_fields)
ollama_tools = st.one_of(
    wire_object(
        {"function": wire_object({"name": texts}, {"description": texts, "parameters": json_objects})},
        {"type": st.just("function"), "items": json_values},
    ),
    wire_object({"type": st.just("later")}, {"function": json_values}),
)
ollama_requests = wire_object(
    {"messages": st.lists(ollama_messages, max_size=4)},
    {
        "model": texts,
        "tools": st.lists(ollama_tools, max_size=2),
        "stream": st.booleans(),
        "think": st.booleans() | texts | st.sampled_from(["low", "high"]),
        "format": st.just("json") | texts | json_objects,
        "options": wire_object(
            {},
            {
                "temperature": numbers,
                "top_p": numbers,
                "top_k": numbers,
                "num_predict": numbers | st.just(-1),
                "stop": st.lists(texts, max_size=2),
                "seed": numbers,
                "presence_penalty": numbers,
                "frequency_penalty": numbers,
                "num_ctx": counts,
            },
        ),
        "keep_alive": texts | counts,
    },
)
ollama_replies = wire_object(
    {"model": texts, "message": wire_object({"role": st.just("assistant")}, message_fields), "done": st.booleans()},
    {
        "created_at": texts,
        "done_reason": st.sampled_from(["stop", "length", "load"]),
        "prompt_eval_count": counts,
        "eval_count": counts,
        "total_duration": counts,
    },
)
