"""Requests of the OpenAI SDK, Chat Completions."""

from __future__ import annotations

from typing import Final

from openai import OpenAI
from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam

from sdk.recording import Sdk, named
from sdk.samples import ANSWER, BIG, HARD_TEXT, NESTED, PDF, PNG, WAV, WEATHER

MODEL: Final = "gpt-4.1"
QUESTION: Final[ChatCompletionMessageParam] = {"role": "user", "content": "What is the weather in Köln?"}
TOOL: Final[ChatCompletionFunctionToolParam] = {
    "type": "function",
    "function": {"name": "get_weather", "description": "The weather", "parameters": WEATHER},
}
HISTORY: Final[list[ChatCompletionMessageParam]] = [
    {"role": "system", "content": "Be brief."},
    QUESTION,
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "call_A",
                "type": "function",
                "function": {"name": "get_weather", "arguments": '{"city": "K\\u00f6ln", "days": 1e0}'},
            },
            {"id": "call_B", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}},
            {"id": "call_C", "type": "custom", "custom": {"name": "patch", "input": "*** Begin\n+ä"}},
        ],
    },
    {"role": "tool", "tool_call_id": "call_A", "content": "7 °C"},
    {"role": "tool", "tool_call_id": "call_B", "content": [{"type": "text", "text": "Error: no city"}]},
    {"role": "tool", "tool_call_id": "call_C", "content": ""},
]


def plain(client: OpenAI) -> object:
    return client.chat.completions.create(model=MODEL, messages=[QUESTION])


def roles(client: OpenAI) -> object:
    return client.chat.completions.create(
        model=MODEL,
        messages=[
            {"role": "developer", "content": "Be brief.", "name": "policy"},
            {"role": "system", "content": [{"type": "text", "text": "Be kind."}, {"type": "text", "text": HARD_TEXT}]},
            {"role": "user", "content": HARD_TEXT, "name": "ana"},
            {"role": "assistant", "content": [{"type": "text", "text": "Hello"}], "name": "bot"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
            {"role": "assistant", "content": None, "refusal": "I cannot."},
            {"role": "user", "content": ""},
        ],
    )


def media(client: OpenAI) -> object:
    return client.chat.completions.create(
        model=MODEL,
        messages=[
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "Compare."},
                    {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}", "detail": "low"}},
                    {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}},
                    {"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}},
                    {"type": "input_audio", "input_audio": {"data": WAV, "format": "mp3"}},
                    {
                        "type": "file",
                        "file": {"filename": "a.pdf", "file_data": f"data:application/pdf;base64,{PDF}"},
                    },
                    {"type": "file", "file": {"file_id": "file-1"}},
                ],
            }
        ],
    )


def tools_of_every_kind(client: OpenAI) -> object:
    return client.chat.completions.create(
        model=MODEL,
        messages=[QUESTION],
        tools=[
            {"type": "function", "function": {**TOOL["function"], "strict": True}},
            {"type": "function", "function": {"name": "query", "parameters": NESTED, "strict": None}},
            {"type": "function", "function": {"name": "no_arguments"}},
            {"type": "custom", "custom": {"name": "free", "description": "Anything", "format": {"type": "text"}}},
            {
                "type": "custom",
                "custom": {
                    "name": "patch",
                    "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": 'start: "a"+'}},
                },
            },
        ],
        parallel_tool_calls=True,
    )


def choice_required(client: OpenAI) -> object:
    return client.chat.completions.create(model=MODEL, messages=[QUESTION], tools=[TOOL], tool_choice="required")


def choice_none(client: OpenAI) -> object:
    return client.chat.completions.create(model=MODEL, messages=[QUESTION], tools=[TOOL], tool_choice="none")


def choice_auto(client: OpenAI) -> object:
    return client.chat.completions.create(
        model=MODEL, messages=[QUESTION], tools=[TOOL], tool_choice="auto", parallel_tool_calls=False
    )


def choice_named(client: OpenAI) -> object:
    return client.chat.completions.create(
        model=MODEL,
        messages=[QUESTION],
        tools=[TOOL],
        tool_choice={"type": "function", "function": {"name": "get_weather"}},
    )


def choice_custom(client: OpenAI) -> object:
    return client.chat.completions.create(
        model=MODEL,
        messages=[QUESTION],
        tools=[{"type": "custom", "custom": {"name": "patch"}}],
        tool_choice={"type": "custom", "custom": {"name": "patch"}},
    )


def choice_allowed(client: OpenAI) -> object:
    return client.chat.completions.create(
        model=MODEL,
        messages=[QUESTION],
        tools=[TOOL],
        tool_choice={
            "type": "allowed_tools",
            "allowed_tools": {"mode": "required", "tools": [{"type": "function", "function": {"name": "get_weather"}}]},
        },
    )


def history(client: OpenAI) -> object:
    return client.chat.completions.create(model=MODEL, messages=HISTORY, tools=[TOOL])


def history_with_odd_arguments(client: OpenAI) -> object:
    odd = ["", "not json", "[1]", '{"a":1e-7,"b":1.0,"c":9007199254740993}', '{"a":1,"a":2}', '"{\\"city\\":1}"']
    return client.chat.completions.create(
        model=MODEL,
        messages=[
            QUESTION,
            {
                "role": "assistant",
                "content": "One moment.",
                "tool_calls": [
                    {"id": f"call_{at}", "type": "function", "function": {"name": "f", "arguments": written}}
                    for at, written in enumerate(odd)
                ],
            },
            *[result_of(f"call_{at}") for at in range(len(odd))],
        ],
    )


def functions_of_old(client: OpenAI) -> object:
    return client.chat.completions.create(
        model=MODEL,
        messages=[
            QUESTION,
            {"role": "assistant", "content": None, "function_call": {"name": "get_weather", "arguments": "{}"}},
            {"role": "function", "name": "get_weather", "content": "7 °C"},
        ],
        functions=[{"name": "get_weather", "parameters": WEATHER}],
        function_call={"name": "get_weather"},
    )


def structured(client: OpenAI) -> object:
    return client.chat.completions.create(
        model=MODEL,
        messages=[QUESTION],
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "answer", "description": "An answer", "schema": ANSWER, "strict": True},
        },
    )


def json_mode(client: OpenAI) -> object:
    return client.chat.completions.create(model=MODEL, messages=[QUESTION], response_format={"type": "json_object"})


def sampling(client: OpenAI) -> object:
    return client.chat.completions.create(
        model=MODEL,
        messages=[QUESTION],
        temperature=1.0,
        top_p=1e-7,
        presence_penalty=0,
        frequency_penalty=-0.5,
        max_completion_tokens=64,
        seed=BIG,
        stop=["END", "\n"],
        n=1,
        logprobs=True,
        top_logprobs=2,
        logit_bias={"50256": -100},
        user="ana",
    )


def reasoning(client: OpenAI) -> object:
    return client.chat.completions.create(
        model="gpt-5",
        messages=[QUESTION],
        reasoning_effort="high",
        verbosity="low",
        max_tokens=64,
        stop="END",
        metadata={"trace": "t1"},
        store=False,
        service_tier="flex",
        prompt_cache_key="k",
        safety_identifier="s",
    )


def hosted(client: OpenAI) -> object:
    return client.chat.completions.create(
        model=MODEL,
        messages=[QUESTION],
        web_search_options={
            "search_context_size": "low",
            "user_location": {"type": "approximate", "approximate": {"city": "Köln"}},
        },
        modalities=["text", "audio"],
        audio={"voice": "alloy", "format": "wav"},
        prediction={"type": "content", "content": "It is"},
    )


def audio_replayed(client: OpenAI) -> object:
    return client.chat.completions.create(
        model=MODEL,
        messages=[QUESTION, {"role": "assistant", "audio": {"id": "audio_1"}}, {"role": "user", "content": "Again"}],
    )


def unknown_fields(client: OpenAI) -> object:
    return client.chat.completions.create(
        model=MODEL,
        messages=[QUESTION],
        temperature=None,
        stop=None,
        extra_body={"chat_template_kwargs": {"thinking": False, "n": [1, 1.0, None]}, "top_k": 40, "min_p": 0.0},
    )


def stream(client: OpenAI) -> None:
    client.chat.completions.create(
        model=MODEL, messages=[QUESTION], stream=True, stream_options={"include_usage": True}
    ).close()


def result_of(call_id: str) -> ChatCompletionMessageParam:
    return {"role": "tool", "tool_call_id": call_id, "content": "ok"}


SDK: Final = Sdk(
    "openai",
    "openai_chat",
    "openai",
    lambda url: OpenAI(api_key="key", base_url=f"{url}/v1", max_retries=0),
    named(
        *(plain, roles, media, tools_of_every_kind, choice_required, choice_none, choice_auto, choice_named),
        *(choice_custom, choice_allowed, history, history_with_odd_arguments, functions_of_old, structured),
        *(json_mode, sampling, reasoning, hosted, audio_replayed, unknown_fields, stream),
    ),
)
