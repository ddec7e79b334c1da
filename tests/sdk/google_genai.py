"""Requests of the Google Gen AI SDK."""

from __future__ import annotations

import base64
from typing import Final

from google import genai
from google.genai import types

from sdk.recording import Sdk, named
from sdk.samples import ANSWER, HARD_TEXT, NESTED, PDF_BYTES, PNG_BYTES, SIGNATURE, WEATHER

MODEL: Final = "gemini-3-pro"
QUESTION: Final = "What is the weather in Köln?"
SIGNED: Final = base64.b64decode(SIGNATURE)
TOOL: Final = types.Tool(
    function_declarations=[
        types.FunctionDeclaration(name="get_weather", description="The weather", parameters_json_schema=WEATHER)
    ]
)
HISTORY: Final[list[types.ContentUnionDict]] = [
    types.Content(role="user", parts=[types.Part(text=QUESTION)]),
    types.Content(
        role="model",
        parts=[
            types.Part(text="Two cities.", thought=True),
            types.Part(text="Let me look.", thought_signature=SIGNED),
            types.Part(
                function_call=types.FunctionCall(id="fc_1", name="get_weather", args={"city": "Köln", "days": 1.0}),
                thought_signature=SIGNED,
            ),
            types.Part(function_call=types.FunctionCall(name="get_weather", args={})),
            types.Part(function_call=types.FunctionCall(name="ping")),
        ],
    ),
    types.Content(
        role="user",
        parts=[
            types.Part(
                function_response=types.FunctionResponse(id="fc_1", name="get_weather", response={"output": "7 °C"})
            ),
            types.Part(function_response=types.FunctionResponse(name="get_weather", response={"error": "no city"})),
            types.Part(function_response=types.FunctionResponse(name="ping", response={"a": 1, "b": [1.0, None]})),
        ],
    ),
]


def plain(client: genai.Client) -> object:
    return client.models.generate_content(model=MODEL, contents=QUESTION)


def system(client: genai.Client) -> object:
    contents: list[types.PartUnionDict] = [HARD_TEXT, "And this."]
    return client.models.generate_content(
        model=MODEL,
        contents=contents,
        config=types.GenerateContentConfig(system_instruction=["Be brief.", HARD_TEXT]),
    )


def media(client: genai.Client) -> object:
    contents: list[types.PartUnionDict] = [
        types.Part.from_bytes(data=PNG_BYTES, mime_type="image/png"),
        types.Part.from_uri(file_uri="https://example.com/files/1", mime_type="application/pdf"),
        types.Part.from_bytes(data=PDF_BYTES, mime_type="application/pdf"),
        types.Part(inline_data=types.Blob(data=b"RIFF", mime_type="audio/wav")),
        types.Part(
            file_data=types.FileData(file_uri="https://example.com/v", mime_type="video/mp4"),
            video_metadata=types.VideoMetadata(start_offset="1s", fps=1.0),
        ),
        "Compare.",
    ]
    return client.models.generate_content(
        model=MODEL,
        contents=contents,
        config=types.GenerateContentConfig(media_resolution=types.MediaResolution.MEDIA_RESOLUTION_LOW),
    )


def tools_json_schema(client: genai.Client) -> object:
    query = types.FunctionDeclaration(name="query", parameters_json_schema=NESTED, response_json_schema=ANSWER)
    return client.models.generate_content(
        model=MODEL,
        contents=QUESTION,
        config=types.GenerateContentConfig(tools=[TOOL, types.Tool(function_declarations=[query])]),
    )


def tools_schema(client: genai.Client) -> object:
    schema = types.Schema(
        type=types.Type.OBJECT,
        properties={
            "city": types.Schema(type=types.Type.STRING, description="Ort", min_length=1),
            "unit": types.Schema(type=types.Type.STRING, enum=["c", "f"], nullable=True),
            "days": types.Schema(any_of=[types.Schema(type=types.Type.INTEGER, minimum=1.0)]),
        },
        required=["city"],
        property_ordering=["city", "unit", "days"],
    )
    return client.models.generate_content(
        model=MODEL,
        contents=QUESTION,
        config=types.GenerateContentConfig(
            tools=[
                types.Tool(
                    function_declarations=[
                        types.FunctionDeclaration(name="get_weather", description="d", parameters=schema),
                        types.FunctionDeclaration(name="no_arguments"),
                    ]
                )
            ]
        ),
    )


def tools_hosted(client: genai.Client) -> object:
    return client.models.generate_content(
        model=MODEL,
        contents=QUESTION,
        config=types.GenerateContentConfig(
            tools=[
                types.Tool(google_search=types.GoogleSearch()),
                types.Tool(code_execution=types.ToolCodeExecution()),
                types.Tool(url_context=types.UrlContext()),
                types.Tool(file_search=types.FileSearch(file_search_store_names=["fileSearchStores/1"], top_k=3)),
                types.Tool(computer_use=types.ComputerUse(environment=types.Environment.ENVIRONMENT_BROWSER)),
                types.Tool(google_maps=types.GoogleMaps()),
                TOOL,
            ],
            tool_config=types.ToolConfig(include_server_side_tool_invocations=True),
        ),
    )


def tools_python(client: genai.Client) -> object:
    def add(a: int, b: float = 1.0) -> float:
        """Add two numbers."""
        return a + b

    return client.models.generate_content(
        model=MODEL,
        contents=QUESTION,
        config=types.GenerateContentConfig(
            tools=[add], automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True)
        ),
    )


def _choice(client: genai.Client, mode: str, names: list[str] | None = None) -> object:
    choice = types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode(mode), allowed_function_names=names)
    config = types.GenerateContentConfig(tools=[TOOL], tool_config=types.ToolConfig(function_calling_config=choice))
    return client.models.generate_content(model=MODEL, contents=QUESTION, config=config)


def choice_auto(client: genai.Client) -> object:
    return _choice(client, "AUTO")


def choice_any(client: genai.Client) -> object:
    return _choice(client, "ANY")


def choice_none(client: genai.Client) -> object:
    return _choice(client, "NONE")


def choice_named(client: genai.Client) -> object:
    return _choice(client, "ANY", ["get_weather"])


def choice_validated(client: genai.Client) -> object:
    return _choice(client, "VALIDATED", ["get_weather", "query"])


def history(client: genai.Client) -> object:
    return client.models.generate_content(
        model=MODEL, contents=HISTORY, config=types.GenerateContentConfig(tools=[TOOL])
    )


def results_with_media(client: genai.Client) -> object:
    blob = types.FunctionResponseBlob(mime_type="image/png", data=PNG_BYTES, display_name="map.png")
    result = types.FunctionResponse(
        id="fc_1",
        name="map",
        response={"output": "the map", "image": {"$ref": "map.png"}},
        parts=[types.FunctionResponsePart(inline_data=blob)],
    )
    return client.models.generate_content(
        model=MODEL,
        contents=[
            types.UserContent(parts=[types.Part(text="Show it")]),
            types.ModelContent(parts=[types.Part(function_call=types.FunctionCall(id="fc_1", name="map", args={}))]),
            types.UserContent(parts=[types.Part(function_response=result)]),
        ],
    )


def server_tools_replayed(client: genai.Client) -> object:
    return client.models.generate_content(
        model=MODEL,
        contents=[
            types.UserContent(parts=[types.Part(text="Compute")]),
            types.ModelContent(
                parts=[
                    types.Part(
                        executable_code=types.ExecutableCode(code="print(1)", language=types.Language.PYTHON),
                        thought_signature=SIGNED,
                    ),
                    types.Part(
                        code_execution_result=types.CodeExecutionResult(outcome=types.Outcome.OUTCOME_OK, output="1\n")
                    ),
                    types.Part(
                        tool_call=types.ToolCall(
                            id="tc_1", tool_type=types.ToolType.GOOGLE_SEARCH_WEB, args={"query": "Köln"}
                        ),
                        thought_signature=SIGNED,
                    ),
                    types.Part(
                        tool_response=types.ToolResponse(
                            id="tc_1", tool_type=types.ToolType.GOOGLE_SEARCH_WEB, response={"results": []}
                        )
                    ),
                    types.Part(text="1"),
                ]
            ),
            types.UserContent(parts=[types.Part(text="Thanks")]),
        ],
        config=types.GenerateContentConfig(tools=[types.Tool(code_execution=types.ToolCodeExecution())]),
    )


def thinking_budget(client: genai.Client) -> object:
    config = types.ThinkingConfig(include_thoughts=True, thinking_budget=1024)
    return client.models.generate_content(
        model=MODEL, contents=QUESTION, config=types.GenerateContentConfig(thinking_config=config)
    )


def thinking_level(client: genai.Client) -> object:
    config = types.ThinkingConfig(include_thoughts=False, thinking_level=types.ThinkingLevel.LOW)
    return client.models.generate_content(
        model=MODEL, contents=QUESTION, config=types.GenerateContentConfig(thinking_config=config)
    )


def thinking_off(client: genai.Client) -> object:
    return client.models.generate_content(
        model=MODEL,
        contents=QUESTION,
        config=types.GenerateContentConfig(thinking_config=types.ThinkingConfig(thinking_budget=0)),
    )


def structured(client: genai.Client) -> object:
    return client.models.generate_content(
        model=MODEL,
        contents=QUESTION,
        config=types.GenerateContentConfig(response_mime_type="application/json", response_json_schema=ANSWER),
    )


def structured_by_schema(client: genai.Client) -> object:
    schema = types.Schema(type=types.Type.OBJECT, properties={"answer": types.Schema(type=types.Type.STRING)})
    return client.models.generate_content(
        model=MODEL,
        contents=QUESTION,
        config=types.GenerateContentConfig(response_mime_type="application/json", response_schema=schema),
    )


def sampling(client: genai.Client) -> object:
    return client.models.generate_content(
        model=MODEL,
        contents=QUESTION,
        config=types.GenerateContentConfig(
            temperature=1.0,
            top_p=1e-7,
            top_k=40,
            max_output_tokens=64,
            stop_sequences=["END"],
            seed=7,
            presence_penalty=0.0,
            frequency_penalty=-0.5,
            candidate_count=1,
            response_logprobs=True,
            logprobs=2,
            response_modalities=["TEXT"],
            cached_content="cachedContents/1",
            safety_settings=[
                types.SafetySetting(
                    category=types.HarmCategory.HARM_CATEGORY_HARASSMENT,
                    threshold=types.HarmBlockThreshold.BLOCK_ONLY_HIGH,
                )
            ],
        ),
    )


def unknown_fields(client: genai.Client) -> object:
    extra = {"newField": [1, 1.0, None], "generationConfig": {"newSetting": {"a": 1e-7}}}
    return client.models.generate_content(
        model=MODEL,
        contents=QUESTION,
        config=types.GenerateContentConfig(http_options=types.HttpOptions(extra_body=extra)),
    )


def stream(client: genai.Client) -> None:
    config = types.GenerateContentConfig(tools=[TOOL], system_instruction=HARD_TEXT)
    list(client.models.generate_content_stream(model=MODEL, contents=HISTORY, config=config))


SDK: Final = Sdk(
    "genai",
    "gemini",
    "google-genai",
    lambda url: genai.Client(api_key="key", vertexai=False, http_options=types.HttpOptions(base_url=url)),
    named(
        *(plain, system, media, tools_json_schema, tools_schema, tools_hosted, tools_python, choice_auto, choice_any),
        *(choice_none, choice_named, choice_validated, history, results_with_media, server_tools_replayed),
        *(thinking_budget, thinking_level, thinking_off, structured, structured_by_schema, sampling),
        *(unknown_fields, stream),
    ),
)
