"""Requests of the Mistral SDK, which speaks Chat Completions with parts of its own."""

from __future__ import annotations

from typing import Any, Final

from mistralai.client import Mistral
from mistralai.client import models as m

from sdk.recording import Sdk, named
from sdk.samples import ANSWER, HARD_TEXT, NESTED, PNG, WAV, WEATHER

MODEL: Final = "mistral-large-latest"
QUESTION: Final[Any] = m.UserMessage(content="What is the weather in Köln?")
TOOL: Final = m.Tool(function=m.Function(name="get_weather", description="The weather", parameters=WEATHER))
CALLS: Final[Any] = m.AssistantMessage(
    content="",
    tool_calls=[
        m.ToolCall(id="abcdefghi", function=m.FunctionCall(name="get_weather", arguments='{"city": "Köln"}')),
        m.ToolCall(id="abcdefghj", index=1, function=m.FunctionCall(name="get_weather", arguments={"days": 1.0})),
    ],
)
RESULTS: Final[list[Any]] = [
    m.ToolMessage(content="7 °C", tool_call_id="abcdefghi", name="get_weather"),
    m.ToolMessage(content=[m.TextChunk(text="Error: no city")], tool_call_id="abcdefghj", name="get_weather"),
]


def plain(client: Mistral) -> object:
    return client.chat.complete(model=MODEL, messages=[QUESTION])


def system_and_sampling(client: Mistral) -> object:
    messages: list[Any] = [m.SystemMessage(content=HARD_TEXT), m.UserMessage(content=HARD_TEXT)]
    return client.chat.complete(
        model=MODEL,
        messages=messages,
        temperature=1.0,
        top_p=1e-7,
        max_tokens=64,
        random_seed=7,
        stop=["END"],
        presence_penalty=0.0,
        frequency_penalty=None,
        safe_prompt=False,
        n=1,
        metadata={"trace": [1, 1.0, None]},
    )


def media(client: Mistral) -> object:
    return client.chat.complete(
        model=MODEL,
        messages=[
            m.UserMessage(
                content=[
                    m.TextChunk(text="Compare."),
                    m.ImageURLChunk(image_url=f"data:image/png;base64,{PNG}"),
                    m.ImageURLChunk(image_url=m.ImageURL(url="https://example.com/a.png", detail="low")),
                    m.DocumentURLChunk(document_url="https://example.com/a.pdf", document_name="a.pdf"),
                    m.AudioChunk(input_audio=WAV),
                    m.AudioChunk(input_audio="https://example.com/a.wav"),
                    m.FileChunk(file_id="00edaf84-95b0-45db-8f83-f71138491f23"),
                    m.ReferenceChunk(reference_ids=[1, 2]),
                ]
            )
        ],
    )


def tools(client: Mistral) -> object:
    query = m.Tool(function=m.Function(name="query", parameters=NESTED, strict=True))
    return client.chat.complete(
        model=MODEL, messages=[QUESTION], tools=[TOOL, query], tool_choice="any", parallel_tool_calls=False
    )


def choice_named(client: Mistral) -> object:
    choice = m.ToolChoice(function=m.FunctionName(name="get_weather"))
    return client.chat.complete(model=MODEL, messages=[QUESTION], tools=[TOOL], tool_choice=choice)


def history(client: Mistral) -> object:
    return client.chat.complete(model=MODEL, messages=[QUESTION, CALLS, *RESULTS], tools=[TOOL])


def thinking_replayed(client: Mistral) -> object:
    thought = m.ThinkChunk(thinking=[m.TextChunk(text="Two cities.")], closed=True)
    return client.chat.complete(
        model="magistral-medium-latest",
        messages=[
            QUESTION,
            m.AssistantMessage(content=[thought, m.TextChunk(text="7 °C")]),
            m.UserMessage(content="And now?"),
            m.AssistantMessage(content="It is", prefix=True),
        ],
        prompt_mode="reasoning",
        reasoning_effort="high",
    )


def structured(client: Mistral) -> object:
    schema = m.JSONSchema(name="answer", schema_definition=ANSWER, strict=True)
    return client.chat.complete(
        model=MODEL, messages=[QUESTION], response_format=m.ResponseFormat(type="json_schema", json_schema=schema)
    )


def stream(client: Mistral) -> None:
    with client.chat.stream(model=MODEL, messages=[QUESTION, CALLS, *RESULTS], tools=[TOOL]):
        pass


SDK: Final = Sdk(
    "mistral",
    "openai_chat",
    "mistralai",
    lambda url: Mistral(api_key="key", server_url=url),
    named(
        *(plain, system_and_sampling, media, tools, choice_named, history, thinking_replayed, structured, stream),
    ),
)
