"""The Gemini generateContent protocol: lossless in both directions, and strict about types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from support.protocols.body_laws import same_json, without_form
from support.protocols.strategies.wire_objects import Fields
from toolglot import InputError, Text, Thinking, ToolCall, ToolResult, Turn, profiles
from toolglot.conversation import (
    Conversation,
    Issuer,
    Media,
    Opaque,
    Options,
    OutputFormat,
    Reasoning,
    Reply,
    Sampling,
    ServerTool,
    ToolChoice,
    ToolSpec,
)
from toolglot.protocols.gemini import reply, request


def comes_back_or_is_refused(codec: Callable[[Fields], object], body: Any) -> bool:
    """A body that is read comes back as it was; one that is not is refused with a path. Nothing else happens."""
    try:
        return same_json(codec(body), body)
    except InputError as error:
        return error.path.startswith("$")


# --- what requests mean -----------------------------------------------------------------------------


def blocks_of(*parts: Fields) -> list[Any]:
    (turn,) = request.decode({"contents": [{"role": "user", "parts": list(parts)}]}).turns
    return [without_form(block) for block in turn.blocks]


def options_of(**fields: Any) -> Options:
    return request.decode({"contents": [], **fields}).options


def test_decoding_a_request() -> None:
    body: Fields = {
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "contents": [
            {"role": "user", "parts": [{"text": "hi"}]},
            {"role": "model", "parts": [{"functionCall": {"id": "c1", "name": "f", "args": {"a": 1}}}]},
            {"role": "function", "parts": [{"functionResponse": {"id": "c1", "name": "f", "response": {}}}]},
            {"parts": {"text": "bye"}},
        ],
        "tools": [
            {"functionDeclarations": [{"name": "f", "description": "d", "parameters": {"type": "OBJECT"}}]},
            {"functionDeclarations": [{"name": "g", "parametersJsonSchema": {"type": "object"}}], "google_search": {}},
        ],
        "generationConfig": {
            "temperature": 1,
            "topP": 0.5,
            "topK": 40.0,
            "maxOutputTokens": 9,
            "stopSequences": ["END"],
            "seed": 7,
            "presencePenalty": 0.1,
            "frequencyPenalty": 0.2,
            "candidateCount": 1,
        },
    }
    found = request.decode(body)
    assert [(turn.role, turn.text) for turn in found.turns] == [
        ("system", "be brief"),
        ("user", "hi"),
        ("assistant", ""),
        ("tool", ""),
        ("user", "bye"),
    ]
    assert found.turns[2].calls == (ToolCall("c1", "f", {"a": 1}),)
    search = Opaque("gemini", {"googleSearch": {}}, "googleSearch")
    assert [without_form(tool) for tool in found.tools] == [
        ToolSpec("f", "d", {"type": "OBJECT"}),
        ToolSpec("g", None, {"type": "object"}),
        ToolSpec("googleSearch", type="googleSearch", issuer=Issuer("gemini"), opaque=search),
    ]
    assert found.options.sampling == Sampling(9, 1, 0.5, 40, ("END",), 7, 0.1, 0.2)
    assert found.model == ""
    assert same_json(request.encode(found), body)


@pytest.mark.parametrize(
    ("part", "block"),
    [
        ({"text": "a", "thoughtSignature": "s"}, Text("a", "s")),
        ({"text": "a", "thought_signature": "s"}, Text("a", "s")),
        ({"text": "a", "thought": False}, Text("a")),
        ({"text": "a", "thought": True, "thoughtSignature": "s"}, Thinking("a", "s")),
        ({"functionCall": {"name": "f"}, "thoughtSignature": "s"}, ToolCall("", "f", {}, signature="s")),
        ({"function_call": {"id": "1", "name": "f", "args": {"x": 1}}}, ToolCall("1", "f", {"x": 1})),
        ({"inlineData": {"mimeType": "image/png", "data": "aGk="}}, Media("image", "image/png", data="aGk=")),
        ({"inline_data": {"mime_type": "audio/wav", "data": "aGk="}}, Media("audio", "audio/wav", data="aGk=")),
        ({"inlineData": {"mimeType": "application/pdf", "data": ""}}, Media("document", "application/pdf", data="")),
        ({"fileData": {"fileUri": "u", "displayName": "n"}}, Media("file", url="u", name="n")),
        (
            {"executableCode": {"code": "1", "id": "e1"}},
            ServerTool("gemini", "call", {"executableCode": {"code": "1", "id": "e1"}}, "code_execution", "e1"),
        ),
        (
            {"tool_response": {"tool_type": "GOOGLE_SEARCH", "id": 3}},
            ServerTool("gemini", "result", {"tool_response": {"tool_type": "GOOGLE_SEARCH", "id": 3}}, "GOOGLE_SEARCH"),
        ),
        ({"toolCall": {"toolType": 1}}, ServerTool("gemini", "call", {"toolCall": {"toolType": 1}})),
        ({"later": 1}, Opaque("gemini", {"later": 1}, "later")),
        ({}, Opaque("gemini", {})),
    ],
)
def test_decoding_a_part(part: Fields, block: object) -> None:
    assert blocks_of(part) == [block]


@pytest.mark.parametrize(
    ("response", "content", "is_error"),
    [
        ({"output": "x"}, "x", False),
        ({"result": "x"}, "x", False),
        ({"error": "x"}, "x", True),
        ({"error": {"code": 1}}, '{"error":{"code":1}}', True),
        ({"output": {"a": 1}}, '{"output":{"a":1}}', False),
        ({"output": "x", "more": 1.0}, '{"output":"x","more":1.0}', False),
        ({"answer": "é"}, '{"answer":"é"}', False),
        ({}, "{}", False),
    ],
)
def test_a_response_is_text_for_everyone_else(response: Fields, content: str, is_error: bool) -> None:
    part = {"functionResponse": {"id": "c", "name": "f", "response": response}}
    expected = ToolResult("c", content, is_error=is_error, name="f", is_complete=True, result=response)
    assert blocks_of(part) == [expected]


def test_media_of_a_response_is_content_too() -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": "aGk="}}
    (found,) = blocks_of({"functionResponse": {"name": "f", "response": {"output": "x"}, "parts": [image]}})
    assert found.content == (Text("x"), Media("image", "image/png", data="aGk="))
    (found,) = blocks_of({"functionResponse": {"name": "f", "response": {"a": 1}, "parts": [image, {"later": 1}]}})
    assert found.content == (
        Text('{"a":1}'),
        Media("image", "image/png", data="aGk="),
        Opaque("gemini", {"later": 1}, "later"),
    )
    (found,) = blocks_of({"functionResponse": {"name": "f"}})
    assert found.content is None


@pytest.mark.parametrize(
    ("data", "standard"),
    [
        ("aGk=", "aGk="),
        ("k-M_", "k+M/"),
        ("k-M_aA", "k+M/aA=="),
        ("aGk", "aGk="),
        ("k+M_", "k+M_"),
        ("-", "+"),
        ("", ""),
    ],
)
def test_data_is_read_in_the_alphabet_that_others_want_and_comes_back_in_its_own(data: str, standard: str) -> None:
    image = {"inlineData": {"mimeType": "image/png", "data": data}}
    body = content(image, {"functionResponse": {"name": "f", "response": {"output": ""}, "parts": [image]}})
    found = request.decode(body)
    assert same_json(request.encode(found), body)
    media, result = found.turns[0].blocks
    assert isinstance(result, ToolResult)
    assert isinstance(result.content, tuple)
    for part in (media, result.content[1]):
        assert isinstance(part, Media)
        assert part.data == standard


def test_a_response_that_is_nested_too_deeply_is_refused_with_its_path() -> None:
    response: Fields = {}
    for _ in range(100_000):
        response = {"a": response}
    with pytest.raises(InputError, match=r"^\$\.contents\[0\]\.parts\[0\]\.functionResponse: nested too deeply"):
        request.decode(content({"functionResponse": {"name": "f", "response": response}}))
    while response:  # from the outside in: to free it all at once is what Python has a limit for
        response = response.pop("a", {})


def test_a_content_that_was_changed_is_written_instead_of_the_response() -> None:
    whole = ToolResult("c", "long text", name="f", result={"output": "long text"})
    short = ToolResult("c", "short", name="f", result={"output": "long text"})
    written = request.encode(Conversation((Turn("tool", (whole, short)),)))["contents"][0]["parts"]
    assert [part["functionResponse"]["response"] for part in written] == [{"output": "long text"}, {"output": "short"}]


@pytest.mark.parametrize(
    ("config", "choice"),
    [
        ({"mode": "AUTO"}, ToolChoice("auto")),
        ({"mode": "NONE"}, ToolChoice("none")),
        ({"mode": "ANY"}, ToolChoice("required")),
        ({"mode": "any", "allowed_function_names": ["f"]}, ToolChoice("named", ("f",))),
        ({"mode": "ANY", "allowedFunctionNames": ["f", "g"]}, ToolChoice("required", ("f", "g"))),
        ({"mode": "VALIDATED", "allowedFunctionNames": ["f"]}, ToolChoice("allowed", ("f",))),
        ({"mode": "validated", "allowedFunctionNames": ["f", "g"]}, ToolChoice("allowed", ("f", "g"))),
        ({"mode": "VALIDATED"}, ToolChoice("auto")),
        ({"mode": "AUTO", "allowedFunctionNames": ["f"]}, ToolChoice("auto")),
        ({"mode": "LATER"}, ToolChoice("auto")),
        ({}, ToolChoice("auto")),
    ],
)
def test_decoding_a_tool_choice(config: Fields, choice: ToolChoice) -> None:
    body = {"contents": [], "tool_config": {"function_calling_config": config}}
    found = request.decode(body)
    assert without_form(found.options.tool_choice) == choice
    assert same_json(request.encode(found), body)


@pytest.mark.parametrize(
    ("config", "reasoning"),
    [
        ({"thinkingBudget": 0}, Reasoning("off")),
        ({"thinkingBudget": -1}, Reasoning("adaptive")),
        ({"thinkingBudget": 512, "includeThoughts": True}, Reasoning("on", None, 512, "auto")),
        ({"thinking_level": "HIGH", "includeThoughts": False}, Reasoning(effort="high")),
        ({"thinkingLevel": "low"}, Reasoning(effort="low")),
        ({"thinkingBudget": 5, "thinkingLevel": "low"}, Reasoning("on", None, 5)),
        ({}, Reasoning()),
    ],
)
def test_decoding_a_thinking_config(config: Fields, reasoning: Reasoning) -> None:
    assert without_form(options_of(generationConfig={"thinkingConfig": config}).reasoning) == reasoning


@pytest.mark.parametrize(
    ("config", "output"),
    [
        ({"responseMimeType": "application/json"}, OutputFormat("json")),
        ({"responseMimeType": "text/plain"}, OutputFormat("text")),
        ({"responseSchema": {"type": "OBJECT"}}, OutputFormat("json_schema", schema={"type": "OBJECT"})),
        (
            {"response_mime_type": "application/json", "responseJsonSchema": {"type": "object"}},
            OutputFormat("json_schema", schema={"type": "object"}),
        ),
        ({"responseMimeType": "application/json", "responseJsonSchema": True}, OutputFormat("json")),
    ],
)
def test_decoding_an_output_format(config: Fields, output: OutputFormat) -> None:
    assert without_form(options_of(generationConfig=config).output) == output


# --- what others made -------------------------------------------------------------------------------


def test_a_conversation_made_elsewhere_is_written() -> None:
    made = Conversation(
        (
            Turn("system", (Text("a"),)),
            Turn("developer", (Text("b"),)),
            Turn("user", (Media("image", "image/png", data="aGk=", name="n"), Media("file", file_id="f1"))),
            Turn(
                "assistant",
                (
                    Thinking("hm"),
                    Thinking(redacted="xx"),
                    ServerTool("anthropic", "call", {}),
                    Opaque("openai_chat", {}),
                    ToolCall("c1", "f", signature="s"),
                    ToolCall("", "g", {"a": 1}),
                ),
            ),
            Turn("tool", (ToolResult("c1", (Text("x"), Text("y")), name="f"), ToolResult("", "no", is_error=True))),
            Turn("system", (Text("mid"),)),
        ),
        (
            ToolSpec("f", "d", {"type": "object"}),
            ToolSpec("web_search", type="web_search_20250305", issuer=Issuer("anthropic")),
            ToolSpec("g"),
        ),
        Options(Sampling(max_tokens=5, top_k=4), tool_choice=ToolChoice("allowed", ("f", "g"))),
        "claude",
    )
    assert request.encode(made) == {
        "systemInstruction": {"parts": [{"text": "a"}, {"text": "b"}]},
        "contents": [
            {
                "role": "user",
                "parts": [
                    {"inlineData": {"mimeType": "image/png", "data": "aGk="}},
                    {"fileData": {"fileUri": "f1"}},
                ],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "hm", "thought": True},
                    {"functionCall": {"id": "c1", "name": "f", "args": {}}, "thoughtSignature": "s"},
                    {"functionCall": {"name": "g", "args": {"a": 1}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "c1", "name": "f", "response": {"output": "x\ny"}}},
                    {"functionResponse": {"name": "", "response": {"error": "no"}}},
                ],
            },
            {"role": "user", "parts": [{"text": "mid"}]},
        ],
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "f", "description": "d", "parametersJsonSchema": {"type": "object"}},
                    {"name": "g"},
                ]
            }
        ],
        "toolConfig": {"functionCallingConfig": {"mode": "VALIDATED", "allowedFunctionNames": ["f", "g"]}},
        "generationConfig": {"topK": 4, "maxOutputTokens": 5},
    }


@pytest.mark.parametrize(
    ("result", "response"),
    [
        (ToolResult("c"), {"output": ""}),
        (ToolResult("c", error="boom", is_error=True), {"error": "boom"}),
        (ToolResult("c", result={"a": 1}), {"a": 1}),
        (ToolResult("c", result={"a": 1}, is_error=True), {"error": {"a": 1}}),
        (ToolResult("c", result=[1]), {"output": [1]}),
        (ToolResult("c", "x", result={"a": 1}), {"output": "x"}),
        (ToolResult("c", (Media("image", data="aGk="),)), {"output": ""}),
        (ToolResult("c", (Media("image", data="aGk="),), result={"a": 1}), {"a": 1}),
    ],
)
def test_a_result_made_elsewhere_is_an_object(result: ToolResult, response: Fields) -> None:
    (part,) = request.encode(Conversation((Turn("tool", (result,)),)))["contents"][0]["parts"]
    assert part["functionResponse"]["response"] == response


def test_media_of_a_result_made_elsewhere_goes_into_its_parts() -> None:
    result = ToolResult("c", (Text("x"), Media("image", "image/png", data="aGk="), Opaque("anthropic", {})), name="f")
    (part,) = request.encode(Conversation((Turn("tool", (result,)),)))["contents"][0]["parts"]
    assert part["functionResponse"] == {
        "id": "c",
        "name": "f",
        "response": {"output": "x"},
        "parts": [{"inlineData": {"mimeType": "image/png", "data": "aGk="}}],
    }


@pytest.mark.parametrize(
    ("options", "config"),
    [
        (Options(reasoning=Reasoning("off", "high")), {"thinkingConfig": {"thinkingBudget": 0}}),
        (Options(reasoning=Reasoning("on", "high", 9)), {"thinkingConfig": {"thinkingBudget": 9}}),
        (Options(reasoning=Reasoning("adaptive", "high")), {"thinkingConfig": {"thinkingLevel": "HIGH"}}),
        (Options(reasoning=Reasoning("adaptive")), {"thinkingConfig": {"thinkingBudget": -1}}),
        (Options(reasoning=Reasoning(summary="auto")), {"thinkingConfig": {"includeThoughts": True}}),
        (Options(reasoning=Reasoning("on")), None),
        (Options(output=OutputFormat("text")), None),
        (Options(output=OutputFormat("json")), {"responseMimeType": "application/json"}),
        (
            Options(output=OutputFormat("json_schema", schema={"type": "object"})),
            {"responseMimeType": "application/json", "responseJsonSchema": {"type": "object"}},
        ),
    ],
)
def test_options_made_elsewhere_are_written(options: Options, config: Fields | None) -> None:
    assert request.encode(Conversation(options=options)).get("generationConfig") == config


@pytest.mark.parametrize(
    ("field", "parameters", "output"),
    [
        ("parameters", "parameters", "responseSchema"),
        ("parametersJsonSchema", "parametersJsonSchema", "responseJsonSchema"),
        (None, "parametersJsonSchema", "responseJsonSchema"),
    ],
)
def test_the_profile_decides_on_the_field_of_a_foreign_schema(field: str | None, parameters: str, output: str) -> None:
    profile = profiles.get("gemini")
    if field is not None:
        profile = replace(profile, schema=replace(profile.schema, field=field))
    schema = {"type": "object"}
    made = Conversation((), (ToolSpec("f", None, schema),), Options(output=OutputFormat("json_schema", None, schema)))
    body = request.encode(made, profile if field is not None else None)
    assert body["tools"] == [{"functionDeclarations": [{"name": "f", parameters: schema}]}]
    assert body["generationConfig"] == {"responseMimeType": "application/json", output: schema}


@pytest.mark.parametrize("parameters", ["parameters", "parametersJsonSchema"])
@pytest.mark.parametrize("output", ["responseSchema", "responseJsonSchema"])
@pytest.mark.parametrize("field", ["parameters", "parametersJsonSchema"])
def test_law_3_a_native_schema_stays_in_its_field_whatever_the_profile(
    parameters: str, output: str, field: str
) -> None:
    profile = profiles.get("gemini")
    body: Fields = {
        "contents": [],
        "tools": [{"functionDeclarations": [{"name": "f", parameters: {"type": "object"}}]}],
        "generationConfig": {output: {"type": "object"}, "responseMimeType": "application/json"},
    }
    there = replace(profile, schema=replace(profile.schema, field=field))
    assert same_json(request.encode(request.decode(body), there), body)


def test_an_image_by_address_is_written_as_a_file_with_its_type() -> None:
    turn = Turn("user", (Media("image", "image/png", url="https://example.invalid/a.png"),))
    (written,) = request.encode(Conversation((turn,)))["contents"][0]["parts"]
    assert written == {"fileData": {"mimeType": "image/png", "fileUri": "https://example.invalid/a.png"}}


def test_E8_a_free_text_call_from_elsewhere_is_one_argument() -> None:
    turn = Turn("assistant", (ToolCall("c", "patch", type="custom", raw_input='+"x"'),))
    call = {"id": "c", "name": "patch", "args": {"input": '+"x"'}}
    assert request.encode(Conversation((turn,)))["contents"][0]["parts"] == [{"functionCall": call}]
    assert reply.encode(Reply(turn, "tool_calls"))["candidates"][0]["content"]["parts"] == [{"functionCall": call}]


def test_law_12_a_client_gets_signatures_of_gemini_only() -> None:
    thought = {"text": "hm", "thought": True, "thoughtSignature": "c2ln"}
    body = {"candidates": [{"content": {"role": "model", "parts": [thought]}}]}
    assert reply.encode(reply.decode(body)) == body
    for signature in ("c2ln", "sig-1"):
        made = Reply(Turn("assistant", (Thinking("hm", signature),)))
        (part,) = reply.encode(made)["candidates"][0]["content"]["parts"]
        assert part == {"text": "hm", "thought": True}


def test_what_was_changed_after_reading_is_written_as_it_is_now() -> None:
    body: Fields = {
        "contents": {"role": "user", "parts": {"text": "a"}},
        "tools": [{"functionDeclarations": [{"name": "f"}], "googleSearch": None}, {"urlContext": {}}],
        "toolConfig": {"functionCallingConfig": {"mode": "VALIDATED"}},
        "generationConfig": {"topK": 4.0, "thinkingConfig": {"thinkingLevel": "low"}},
    }
    found = request.decode(body)
    choice, reasoning = found.options.tool_choice, found.options.reasoning
    assert choice is not None
    assert reasoning is not None
    (turn,) = found.turns
    changed = Conversation(
        (Turn("user", (*turn.blocks, Text("b")), extra=turn.extra, form=turn.form), Turn("user", (Text("c"),))),
        found.tools[1:],
        Options(
            Sampling(top_k=5),
            Reasoning(effort="high", extra=reasoning.extra, form=reasoning.form),
            ToolChoice("none", extra=choice.extra, form=choice.form),
        ),
        extra=found.extra,
        form=found.form,
    )
    assert request.encode(changed) == {
        "contents": [
            {"role": "user", "parts": [{"text": "a"}, {"text": "b"}]},
            {"role": "user", "parts": [{"text": "c"}]},
        ],
        "tools": [{"urlContext": {}}],
        "toolConfig": {"functionCallingConfig": {"mode": "NONE"}},
        "generationConfig": {"topK": 5, "thinkingConfig": {"thinkingLevel": "HIGH"}},
    }


def test_what_was_taken_out_after_reading_stays_out() -> None:
    body: Fields = {
        "contents": [{"role": "user", "parts": [{"text": "a", "thought_signature": "s"}]}],
        "tools": [{"function_declarations": [{"name": "f"}], "google_search": {}}],
    }
    found = request.decode(body)
    text = found.turns[0].blocks[0]
    changed = Conversation(
        (Turn("user", (Text("a", extra=text.extra, form=text.form),)),),
        found.tools[1:],
        extra=found.extra,
        form=found.form,
    )
    assert request.encode(changed) == {
        "contents": [{"role": "user", "parts": [{"text": "a"}]}],
        "tools": [{"google_search": {}}],
    }
    assert "tools" not in request.encode(Conversation(found.turns, extra=found.extra, form=found.form))


def content(*parts: Any) -> Fields:
    return {"contents": [{"role": "user", "parts": list(parts)}]}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, r"^\$\.contents: expected an array, but the field is missing"),
        ({"contents": "hi"}, r"^\$\.contents: expected an array, got a string"),
        ({"contents": ["hi"]}, r"^\$\.contents\[0\]: expected an object, got a string"),
        ({"contents": [{"role": "robot"}]}, r"^\$\.contents\[0\]\.role: expected one of user, model, function, got"),
        ({"contents": [{"role": 1}]}, r"^\$\.contents\[0\]\.role: expected a string, got a whole number"),
        ({"contents": [{"parts": "x"}]}, r"^\$\.contents\[0\]\.parts: expected an array, got a string"),
        (content(None), r"^\$\.contents\[0\]\.parts\[0\]: expected an object, got null"),
        (content({"text": 1}), r"^\$\.contents\[0\]\.parts\[0\]\.text: expected a string"),
        (content({"text": "", "thought": 1}), r"parts\[0\]\.thought: expected true or false"),
        (content({"text": "", "thoughtSignature": 1}), r"parts\[0\]\.thoughtSignature: expected a string"),
        (content({"functionCall": "f"}), r"parts\[0\]\.functionCall: expected an object, got a string"),
        (content({"functionCall": {}}), r"parts\[0\]\.functionCall\.name: expected a string, but the field is missing"),
        (content({"functionCall": {"name": "f", "args": "{}"}}), r"\.functionCall\.args: expected an object"),
        (content({"functionResponse": {"response": "x"}}), r"\.functionResponse\.response: expected an object"),
        (content({"functionResponse": {"parts": [1]}}), r"\.functionResponse\.parts\[0\]: expected an object"),
        (content({"inlineData": {"data": 1}}), r"parts\[0\]\.inlineData\.data: expected a string"),
        (content({"fileData": {"mimeType": "a/b"}}), r"parts\[0\]\.fileData\.fileUri: .* missing"),
        ({"contents": [], "systemInstruction": "x"}, r"^\$\.systemInstruction: expected an object, got a string"),
        ({"contents": [], "systemInstruction": {"parts": 1}}, r"^\$\.systemInstruction\.parts: expected an array"),
        ({"contents": [], "tools": 1}, r"^\$\.tools: expected an array"),
        ({"contents": [], "tools": [1]}, r"^\$\.tools\[0\]: expected an object"),
        (
            {"contents": [], "tools": [{"functionDeclarations": "f"}]},
            r"^\$\.tools\[0\]\.functionDeclarations: expected",
        ),
        (
            {"contents": [], "tools": [{"functionDeclarations": [{"name": 1}]}]},
            r"^\$\.tools\[0\]\.functionDeclarations\[0\]\.name: expected a string",
        ),
        ({"contents": [], "toolConfig": 1}, r"^\$\.toolConfig: expected an object"),
        ({"contents": [], "toolConfig": {"functionCallingConfig": 1}}, r"^\$\.toolConfig\.functionCallingConfig: exp"),
        (
            {"contents": [], "toolConfig": {"functionCallingConfig": {"allowedFunctionNames": [1]}}},
            r"^\$\.toolConfig\.functionCallingConfig\.allowedFunctionNames\[0\]: expected a string",
        ),
        ({"contents": [], "generationConfig": 1}, r"^\$\.generationConfig: expected an object"),
        ({"contents": [], "generationConfig": {"topK": 1.5}}, r"^\$\.generationConfig\.topK: expected a whole number"),
        ({"contents": [], "generationConfig": {"seed": 1e300}}, r"^\$\.generationConfig\.seed: expected a whole"),
        ({"contents": [], "generationConfig": {"topP": "1"}}, r"^\$\.generationConfig\.topP: expected a number"),
        ({"contents": [], "generationConfig": {"responseSchema": 1}}, r"^\$\.generationConfig\.responseSchema: "),
        (
            {"contents": [], "generationConfig": {"thinkingConfig": {"thinkingLevel": 1}}},
            r"^\$\.generationConfig\.thinkingConfig\.thinkingLevel: expected a string",
        ),
    ],
)
def test_a_field_of_the_wrong_type_is_refused_with_its_path(body: Fields, message: str) -> None:
    with pytest.raises(InputError, match=message):
        request.decode(body)
