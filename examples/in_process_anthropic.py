"""Anthropic's SDK on another provider's model, without a server, in an asyncio program: two tool loops at once.

    python examples/in_process_anthropic.py                               # on GPT
    python examples/in_process_anthropic.py gemini/gemini-3-pro

With the provider's key in the environment (or a toolglot.toml) that provider answers; without one, a simulated model
does, offline.
"""

import asyncio
import sys
from typing import Any

import anthropic

import toolglot

TOOL: Any = {
    "name": "get_weather",
    "description": "The weather in a city.",
    "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
}


async def get_weather(city: str) -> str:
    return f"7 degrees and rain in {city}"


async def answer(client: anthropic.AsyncAnthropic, model: str, question: str) -> str:
    """Send the question, run the tools that the model calls, and return its answer."""
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        reply = await client.messages.create(model=model, max_tokens=1000, messages=messages, tools=[TOOL])
        messages.append({"role": "assistant", "content": [block.to_dict() for block in reply.content]})
        calls = [block for block in reply.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in reply.content if block.type == "text")
        results = [
            {"type": "tool_result", "tool_use_id": call.id, "content": await get_weather(str(call.input["city"]))}
            for call in calls
        ]
        messages.append({"role": "user", "content": results})


async def main(model: str) -> None:
    async with anthropic.AsyncAnthropic(api_key="any", http_client=toolglot.async_client()) as client:
        questions = [f"What is the weather in {city}? Use get_weather." for city in ("Bonn", "Ulm")]
        answers = await asyncio.gather(*(answer(client, model, question) for question in questions))
    for question, text in zip(questions, answers, strict=True):
        print(f"{question}\n  {text}")
        assert "7 degrees" in text


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "openai/gpt-5.5"))
