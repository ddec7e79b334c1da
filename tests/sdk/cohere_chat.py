"""Requests of the Cohere SDK, version 2 of its chat."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import cohere
import httpx

from sdk.recording import Sdk, named
from sdk.samples import ANSWER, HARD_TEXT, NESTED, PNG, WEATHER

MODEL: Final = "command-a-03-2025"
QUESTION: Final = cohere.UserChatMessageV2(content="What is the weather in Köln?")
TOOL: Final = cohere.ToolV2(
    type="function",
    function=cohere.ToolV2Function(name="get_weather", description="The weather", parameters=WEATHER),
)
HISTORY: Final[list[Any]] = [
    cohere.SystemChatMessageV2(content="Be brief."),
    QUESTION,
    cohere.AssistantChatMessageV2(
        tool_plan="I look at two cities.",
        tool_calls=[
            cohere.ToolCallV2(
                id="get_weather_a",
                function=cohere.ToolCallV2Function(name="get_weather", arguments='{"city": "K\\u00f6ln"}'),
            ),
            cohere.ToolCallV2(
                id="get_weather_b",
                function=cohere.ToolCallV2Function(name="get_weather", arguments='{"days":1.0}'),
            ),
        ],
    ),
    cohere.ToolChatMessageV2(tool_call_id="get_weather_a", content="7 °C"),
    cohere.ToolChatMessageV2(
        tool_call_id="get_weather_b",
        content=[
            cohere.DocumentToolContent(document=cohere.Document(data={"error": "no city", "n": 1.0}, id="doc_1")),
            cohere.TextToolContent(text="and text"),
        ],
    ),
]


def plain(client: cohere.ClientV2) -> object:
    return client.chat(model=MODEL, messages=[QUESTION])


def system_and_unicode(client: cohere.ClientV2) -> object:
    return client.chat(
        model=MODEL,
        messages=[
            cohere.SystemChatMessageV2(content=[cohere.TextSystemMessageV2ContentOneItem(text=HARD_TEXT)]),
            cohere.UserChatMessageV2(content=HARD_TEXT),
        ],
    )


def media(client: cohere.ClientV2) -> object:
    return client.chat(
        model=MODEL,
        messages=[
            cohere.UserChatMessageV2(
                content=[
                    cohere.TextContent(text="Compare."),
                    cohere.ImageUrlContent(image_url=cohere.ImageUrl(url=f"data:image/png;base64,{PNG}", detail="low")),
                    cohere.ImageUrlContent(image_url=cohere.ImageUrl(url="https://example.com/a.png")),
                ]
            )
        ],
    )


def tools(client: cohere.ClientV2) -> object:
    query = cohere.ToolV2(type="function", function=cohere.ToolV2Function(name="query", parameters=NESTED))
    return client.chat(model=MODEL, messages=[QUESTION], tools=[TOOL, query], strict_tools=True)


def choice_required(client: cohere.ClientV2) -> object:
    return client.chat(model=MODEL, messages=[QUESTION], tools=[TOOL], tool_choice="REQUIRED")


def choice_none(client: cohere.ClientV2) -> object:
    return client.chat(model=MODEL, messages=[QUESTION], tools=[TOOL], tool_choice="NONE")


def history(client: cohere.ClientV2) -> object:
    return client.chat(model=MODEL, messages=HISTORY, tools=[TOOL])


def thinking_replayed(client: cohere.ClientV2) -> object:
    return client.chat(
        model="command-a-reasoning-08-2025",
        messages=[
            QUESTION,
            cohere.AssistantChatMessageV2(
                content=[
                    cohere.ThinkingAssistantMessageV2ContentOneItem(thinking="Two cities."),
                    cohere.TextAssistantMessageV2ContentOneItem(text="7 °C"),
                ],
                citations=[
                    cohere.Citation(
                        start=0,
                        end=4,
                        text="7 °C",
                        type="TEXT_CONTENT",
                        sources=[cohere.ToolSource(id="get_weather_a:0", tool_output={"t": 7})],
                    )
                ],
            ),
            cohere.UserChatMessageV2(content="And now?"),
        ],
        thinking=cohere.Thinking(type="enabled", token_budget=1024),
    )


def thinking_off(client: cohere.ClientV2) -> object:
    return client.chat(model=MODEL, messages=[QUESTION], thinking=cohere.Thinking(type="disabled"))


def documents(client: cohere.ClientV2) -> object:
    return client.chat(
        model=MODEL,
        messages=[QUESTION],
        documents=["a plain one", cohere.Document(data={"title": "Köln", "n": 1.0}, id="d2")],
        citation_options=cohere.CitationOptions(mode="ACCURATE"),
    )


def structured(client: cohere.ClientV2) -> object:
    return client.chat(
        model=MODEL, messages=[QUESTION], response_format=cohere.JsonObjectResponseFormatV2(json_schema=ANSWER)
    )


def text_format(client: cohere.ClientV2) -> object:
    return client.chat(model=MODEL, messages=[QUESTION], response_format=cohere.TextResponseFormatV2())


def sampling(client: cohere.ClientV2) -> object:
    return client.chat(
        model=MODEL,
        messages=[QUESTION],
        temperature=1.0,
        p=1e-7,
        k=40,
        seed=7,
        max_tokens=64,
        stop_sequences=["END"],
        presence_penalty=0.0,
        frequency_penalty=0.5,
        logprobs=True,
        safety_mode="CONTEXTUAL",
        priority=1,
    )


def unknown_fields(client: cohere.ClientV2) -> object:
    return client.chat(
        model=MODEL,
        messages=[QUESTION],
        request_options={"additional_body_parameters": {"new_field": [1, 1.0, None], "raw_prompting": False}},
    )


def stream(client: cohere.ClientV2) -> None:
    list(client.chat_stream(model=MODEL, messages=HISTORY, tools=[TOOL]))


@contextmanager
def _open(url: str) -> Iterator[cohere.ClientV2]:
    with httpx.Client() as connection:
        yield cohere.ClientV2(
            api_key="key", base_url=url, httpx_client=connection, log_warning_experimental_features=False
        )


SDK: Final = Sdk(
    "cohere",
    "cohere",
    "cohere",
    _open,
    named(
        *(plain, system_and_unicode, media, tools, choice_required, choice_none, history, thinking_replayed),
        *(thinking_off, documents, structured, text_format, sampling, unknown_fields, stream),
    ),
)
