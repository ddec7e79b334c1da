"""Generated bodies of the Gemini generateContent protocol, in camelCase and in snake_case."""

from __future__ import annotations

import re
from typing import Any

from hypothesis import strategies as st

from support.conversations.strategies import json_objects, json_values, texts
from support.protocols.strategies.wire_objects import Fields, counts, numbers, wire_object

odd_fields = st.dictionaries(
    st.sampled_from(["~snake", "~parts", "~inner", "~~x", "~tools", "~mode", "future_field"]),
    json_values,
    max_size=2,
)


@st.composite
def gemini_object(
    draw: st.DrawFn, always: dict[str, st.SearchStrategy[Any]], sometimes: dict[str, st.SearchStrategy[Any]]
) -> Fields:
    """A wire object, some of its fields in snake_case; now and then a field in both spellings."""
    fields = draw(wire_object(always, sometimes))
    if draw(st.integers(0, 5)) == 0:
        for key, value in draw(odd_fields).items():
            if key not in always and key not in sometimes:
                fields[key] = value
    if draw(st.integers(0, 2)) == 0:
        for key in list(fields):
            snake = re.sub("[A-Z]", lambda found: f"_{found[0].lower()}", key)
            choice = draw(st.integers(0, 8))
            if snake != key and choice < 5:
                fields[snake] = fields.pop(key)
            elif snake != key and choice == 5:
                fields[snake] = draw(json_values)
    return fields


def part(always: dict[str, Any], sometimes: dict[str, Any] | None = None) -> st.SearchStrategy[Fields]:
    signed = {"thoughtSignature": texts, "thought": st.booleans(), "partMetadata": json_objects}
    return gemini_object(always, {**signed, **(sometimes or {})})


one_output = st.builds(
    lambda key, value: {key: value}, st.sampled_from(["output", "result", "error", "content"]), texts | json_values
)
responses = one_output | json_objects
inline = gemini_object(
    {"data": st.sampled_from(["aGk=", "aGk", "k-M_", "k-M_aA", "k+M/", "k+M_", "a", "a-", "=-", ""]) | texts},
    {
        "mimeType": st.sampled_from(
            ["image/png", "audio/wav", "video/mp4", "application/pdf", "text/plain", "a/b", ""]
        ),
        "displayName": texts,
    },
)
gemini_inline = part({"inlineData": inline}, {"videoMetadata": json_objects, "text": st.none()})
gemini_file = part({"fileData": gemini_object({"fileUri": texts}, {"mimeType": texts, "displayName": texts})})
result_parts = st.lists(gemini_inline | gemini_file | part({"later": json_values}) | part({"text": texts}), max_size=2)
gemini_calls = part({"functionCall": gemini_object({"name": texts}, {"id": texts, "args": json_objects})})
gemini_parts = st.one_of(
    part({"text": texts}),
    part({"text": texts, "thought": st.just(True)}),
    gemini_calls,
    part(
        {
            "functionResponse": gemini_object(
                {"response": responses},
                {"id": texts, "name": texts, "parts": result_parts, "willContinue": st.booleans()},
            )
        }
    ),
    part({"functionResponse": gemini_object({"name": texts}, {"response": responses, "parts": result_parts})}),
    gemini_inline,
    gemini_file,
    part({"executableCode": gemini_object({"language": texts, "code": texts}, {"id": texts})}),
    part({"codeExecutionResult": gemini_object({"outcome": texts}, {"output": texts})}),
    part({"toolCall": gemini_object({"toolType": texts}, {"id": texts, "args": json_objects})}),
    part({"toolResponse": json_values}),
    part({"later": json_values}),
    part({"text": texts, "functionCall": gemini_object({"name": texts}, {})}),
)
part_lists = st.lists(gemini_parts, max_size=3) | gemini_parts
gemini_contents = st.one_of(
    gemini_object({"role": st.sampled_from(["user", "model", "function"]), "parts": part_lists}, {}),
    gemini_object({}, {"role": st.sampled_from(["user", "model", ""]), "parts": part_lists}),
)
gemini_declarations = st.one_of(
    gemini_object(
        {"name": texts},
        {
            "description": texts,
            "parameters": json_objects,
            "parametersJsonSchema": json_values,
            "response": json_objects,
            "behavior": texts,
        },
    ),
    gemini_object({"name": texts, "parametersJsonSchema": json_objects}, {"description": texts}),
)
gemini_tools = gemini_object(
    {},
    {
        "functionDeclarations": st.lists(gemini_declarations, max_size=3),
        "googleSearch": json_objects,
        "codeExecution": st.just({}),
        "urlContext": json_values,
    },
)
whole = counts | st.integers(0, 50).map(float)
thinking_configs = gemini_object(
    {},
    {
        "thinkingBudget": st.sampled_from([0, -1, 0.0, -1.0, -7]) | whole,
        "thinkingLevel": st.sampled_from(["LOW", "high", "Medium", "", "straße"]),
        "includeThoughts": st.booleans(),
    },
)
gemini_configs = gemini_object(
    {},
    {
        "temperature": numbers,
        "topP": numbers,
        "topK": whole,
        "maxOutputTokens": whole,
        "stopSequences": st.lists(texts, max_size=2),
        "seed": whole,
        "presencePenalty": numbers,
        "frequencyPenalty": numbers,
        "thinkingConfig": thinking_configs,
        "responseMimeType": st.sampled_from(["application/json", "text/plain", "text/x.enum", ""]),
        "responseSchema": json_objects,
        "responseJsonSchema": json_values,
        "candidateCount": counts,
        "responseModalities": st.lists(texts, max_size=1),
    },
)
gemini_requests = gemini_object(
    {"contents": st.lists(gemini_contents, max_size=4) | gemini_contents},
    {
        "systemInstruction": gemini_object({}, {"role": texts, "parts": part_lists}),
        "tools": st.lists(gemini_tools, max_size=3) | gemini_tools,
        "toolConfig": gemini_object(
            {},
            {
                "functionCallingConfig": gemini_object(
                    {},
                    {
                        "mode": st.sampled_from(["AUTO", "ANY", "any", "NONE", "VALIDATED", "LATER", ""]),
                        "allowedFunctionNames": st.lists(texts, max_size=3),
                    },
                ),
                "retrievalConfig": json_objects,
                "includeServerSideToolInvocations": st.booleans(),
            },
        ),
        "generationConfig": gemini_configs,
        "safetySettings": st.lists(json_objects, max_size=1),
        "cachedContent": texts,
        "labels": json_objects,
        "model": texts,
    },
)
gemini_candidates = gemini_object(
    {},
    {
        "content": gemini_object({}, {"role": st.sampled_from(["model", "model", "user", ""]), "parts": part_lists}),
        "finishReason": st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY", "MALFORMED_FUNCTION_CALL", "LATER", ""]),
        "index": counts,
        "safetyRatings": st.lists(json_objects, max_size=1),
        "groundingMetadata": json_objects,
    },
)
gemini_replies = gemini_object(
    {},
    {
        "candidates": st.lists(gemini_candidates, min_size=1, max_size=2) | st.lists(gemini_candidates, max_size=1),
        "promptFeedback": gemini_object({}, {"blockReason": texts}),
        "usageMetadata": gemini_object(
            {},
            {
                "promptTokenCount": counts,
                "candidatesTokenCount": st.integers(0, 3),
                "thoughtsTokenCount": st.integers(0, 3),
                "cachedContentTokenCount": counts,
                "totalTokenCount": counts,
                "promptTokensDetails": st.lists(json_objects, max_size=1),
            },
        ),
        "modelVersion": texts,
        "responseId": texts,
    },
)
