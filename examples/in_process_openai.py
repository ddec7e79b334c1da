"""OpenAI's SDK on another provider's model, without a server: a tool loop with streamed replies.

    python examples/in_process_openai.py                                  # on Claude
    python examples/in_process_openai.py mistral/mistral-large-latest

With the provider's key in the environment (or a toolglot.toml) that provider answers; without one, a simulated model
does, offline.
"""

import json
import sys
from typing import Any

import openai

import toolglot

TOOL: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}


def get_weather(city: str) -> str:
    return f"7 degrees and rain in {city}"


def answer(client: openai.OpenAI, model: str, question: str) -> str:
    """Send the question, run the tools that the model calls, and print the answer as it comes."""
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        with client.chat.completions.stream(model=model, messages=messages, tools=[TOOL]) as events:
            for event in events:
                if event.type == "content.delta":
                    print(event.delta, end="", flush=True)
            message = events.get_final_completion().choices[0].message
        if not message.tool_calls:
            print()
            return message.content or ""
        messages.append(message.to_dict())
        for call in message.tool_calls:
            result = get_weather(**json.loads(call.function.arguments))
            print(f"[{call.function.name} {call.function.arguments}: {result}]")
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


if __name__ == "__main__":
    chosen = sys.argv[1] if len(sys.argv) > 1 else "anthropic/claude-sonnet-4-5"
    with openai.OpenAI(api_key="any", http_client=toolglot.client()) as own:
        assert "7 degrees" in answer(own, chosen, "What is the weather in Bonn? Use get_weather.")
