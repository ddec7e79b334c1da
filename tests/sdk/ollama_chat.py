"""Requests of the Ollama SDK."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import ollama

from sdk.recording import Sdk, named
from sdk.samples import ANSWER, HARD_TEXT, PNG_BYTES, WEATHER

MODEL: Final = "qwen3"
QUESTION: Final = ollama.Message(role="user", content="What is the weather in Köln?")
TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather", "parameters": WEATHER},
}
HISTORY: Final[list[ollama.Message]] = [
    ollama.Message(role="system", content="Be brief."),
    QUESTION,
    ollama.Message(
        role="assistant",
        content="",
        thinking="Two cities.",
        tool_calls=[
            ollama.Message.ToolCall(
                function=ollama.Message.ToolCall.Function(name="get_weather", arguments={"city": "Köln", "days": 1.0})
            ),
            ollama.Message.ToolCall(function=ollama.Message.ToolCall.Function(name="get_weather", arguments={})),
        ],
    ),
    ollama.Message(role="tool", content="7 °C", tool_name="get_weather"),
    ollama.Message(role="tool", content="Error: no city", tool_name="get_weather"),
]


def plain(client: ollama.Client) -> object:
    return client.chat(MODEL, [QUESTION])


def system_and_unicode(client: ollama.Client) -> object:
    return client.chat(MODEL, [{"role": "system", "content": HARD_TEXT}, {"role": "user", "content": HARD_TEXT}])


def images(client: ollama.Client) -> object:
    image = ollama.Image(value=PNG_BYTES)
    return client.chat(MODEL, [ollama.Message(role="user", content="Compare.", images=[image, image])])


def tools(client: ollama.Client) -> object:
    return client.chat(MODEL, [QUESTION], tools=[TOOL, ollama.Tool(function=ollama.Tool.Function(name="no_arguments"))])


def tools_python(client: ollama.Client) -> object:
    def add(a: int, b: float) -> float:
        """Add two numbers.

        Args:
          a: the first
          b: the second
        """
        return a + b

    return client.chat(MODEL, [QUESTION], tools=[add])


def history(client: ollama.Client) -> object:
    return client.chat(MODEL, HISTORY, tools=[TOOL])


def result_with_image(client: ollama.Client) -> object:
    result = ollama.Message(role="tool", content="the map", tool_name="map", images=[ollama.Image(value=PNG_BYTES)])
    return client.chat(MODEL, [*HISTORY[:3], result])


def think_on(client: ollama.Client) -> object:
    return client.chat(MODEL, [QUESTION], think=True)


def think_off(client: ollama.Client) -> object:
    return client.chat(MODEL, [QUESTION], think=False)


def think_level(client: ollama.Client) -> object:
    return client.chat("gpt-oss", [QUESTION], think="high")


def structured(client: ollama.Client) -> object:
    return client.chat(MODEL, [QUESTION], format=ANSWER)


def json_mode(client: ollama.Client) -> object:
    return client.chat(MODEL, [QUESTION], format="json", keep_alive="5m")


def sampling(client: ollama.Client) -> object:
    options = ollama.Options(
        temperature=1.0,
        top_p=1e-7,
        top_k=40,
        num_predict=64,
        seed=7,
        stop=["END"],
        presence_penalty=0.0,
        frequency_penalty=0.5,
        num_ctx=8192,
        mirostat_tau=5.0,
    )
    return client.chat(MODEL, [QUESTION], options=options, keep_alive=0)


def sampling_as_dictionary(client: ollama.Client) -> object:
    return client.chat(
        MODEL,
        [QUESTION],
        options={"num_predict": -1, "min_p": 0.0, "new_setting": [1, 1.0]},
        logprobs=True,
        top_logprobs=2,
    )


def continued(client: ollama.Client) -> object:
    return client.chat(MODEL, [QUESTION, ollama.Message(role="assistant", content="It is")])


def stream(client: ollama.Client) -> None:
    list(client.chat(MODEL, HISTORY, tools=[TOOL], stream=True))


@contextmanager
def _open(url: str) -> Iterator[ollama.Client]:
    client = ollama.Client(url)
    with client._client:
        yield client


SDK: Final = Sdk(
    "ollama",
    "ollama",
    "ollama",
    _open,
    named(
        *(plain, system_and_unicode, images, tools, tools_python, history, result_with_image, think_on, think_off),
        *(think_level, structured, json_mode, sampling, sampling_as_dictionary, continued, stream),
    ),
)
