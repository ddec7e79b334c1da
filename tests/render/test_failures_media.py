"""Failures of class G: what is in results, as clients send it: media, names, nothing, broken text, server tools."""

from __future__ import annotations

import json
from typing import Any

import pytest

from support.conversations.broken_conversations import TARGETS
from support.protocols.scripted_requests import PIXEL, PROTOCOLS, A, R, U, call, exchange, request_body
from support.translate.conversion_checks import (
    CLAUDE,
    GEMINI,
    GPT,
    NOVA,
    Fields,
    Target,
    assert_accepted,
    assert_forwarded,
    assert_reported,
    convert_checked,
    every_target,
    parts_of,
    protocol_of,
)
from toolglot import convert, lint, profiles

# --- G1 -----------------------------------------------------------------------------------------------


def with_image(source: str, index: int, count: int = 2) -> Fields:
    """Parallel calls, one of whose results holds a text and an image."""
    body = request_body(source, U("go"), *exchange(count), U("so?"))
    if source == "anthropic":
        image: Fields = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}}
        block = body["messages"][2]["content"][index]
        block["content"] = [{"type": "text", "text": block["content"]}, image]
    elif source == "bedrock":
        block = body["messages"][2]["content"][index]["toolResult"]
        block["content"].append({"image": {"format": "png", "source": {"bytes": PIXEL}}})
    else:
        item = body["input"][1 + count + index]
        image = {"type": "input_image", "image_url": f"data:image/png;base64,{PIXEL}", "detail": "auto"}
        item["output"] = [{"type": "input_text", "text": item["output"]}, image]
    return body


@every_target
@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("source", ["anthropic", "bedrock", "openai_responses"])
def test_G1_an_image_in_a_result_is_shown_where_the_target_looks(target: Target, source: str, index: int) -> None:
    out = convert_checked(with_image(source, index), source, target)
    parts = parts_of(out, target)
    rules = profiles.get(*target)
    assert f"printed c{index}" in parts.results[index].text
    if "image" in rules.results.media:
        assert PIXEL in json.dumps(parts.results[index].value)
    elif "image" in rules.turns.media:
        (shown,) = parts.of("media")
        assert PIXEL in json.dumps(shown.value)
        assert shown.speaker == "user"
        last = max(number for number, one in enumerate(parts) if one.kind == "result")
        assert list(parts).index(shown) > last
        assert "shown after the tool results" in parts.results[index].text
        assert_reported(out, "moved behind the results", action="moved", fault="loss")
    else:
        assert PIXEL not in out.data.decode()
        assert "cannot be shown" in parts.results[index].text
        assert_reported(out, "a line of text replaced it", action="converted", fault="loss")


def test_G1_the_fixture_tool_tool_user_with_the_image() -> None:
    body = with_image("anthropic", 0)
    body["messages"][2]["content"].pop()
    messages = convert_checked(body, "anthropic", GPT).body["messages"]
    assert [message["role"] for message in messages] == ["user", "assistant", "tool", "tool", "user"]
    assert messages[-1]["content"][-1]["type"] == "image_url"


@pytest.mark.parametrize("count", [2, 6])
def test_G1_an_image_of_the_first_of_many_results_comes_after_all_of_them(count: int) -> None:
    out = convert_checked(with_image("anthropic", 0, count), "anthropic", GPT)
    parts = parts_of(out, GPT)
    assert parts.shape[: 1 + 2 * count] == ["U", *["C"] * count, *["R"] * count]
    assert "M" in parts.shape[1 + 2 * count :]


def test_G1_native_images_in_results_are_forwarded() -> None:
    assert_forwarded({**with_image("anthropic", 1), "model": CLAUDE[1]}, CLAUDE)


# --- G2, G3 -------------------------------------------------------------------------------------------


@every_target
@pytest.mark.parametrize("source", ["openai_chat", "anthropic", "openai_responses", "bedrock"])
def test_G2_a_result_has_the_name_of_its_call_where_the_target_wants_one(target: Target, source: str) -> None:
    calls = A(call("c1", "read"), call("c2", "write"), call("c3", "search"))
    out = convert_checked(request_body(source, U(), calls, R("c3"), R("c1"), R("c2"), U("on")), source, target)
    parts = parts_of(out, target)
    names = {made.id: made.name for made in parts.calls}
    for result in parts.results:
        if profiles.get(*target).results.name == "required":
            assert result.name == names[result.id]
        else:
            assert result.name in ("", names[result.id])


def test_G2_a_name_that_is_wrong_is_the_name_of_the_call() -> None:
    body = request_body("openai_chat", U(), A(call("c1", "read")), R("c1"), U("on"))
    body["messages"][2]["name"] = "something_else"
    (result,) = parts_of(convert_checked(body, "openai_chat", GEMINI), GEMINI).results
    assert result.name == "read"


EMPTY: dict[str, list[Any]] = {"anthropic": [[], "", [{"type": "text", "text": ""}]], "bedrock": [[], [{"text": ""}]]}


@every_target
@pytest.mark.parametrize("source", EMPTY)
@pytest.mark.parametrize("failed", [True, False])
def test_G3_an_empty_result_gets_a_text_where_one_is_required(target: Target, source: str, *, failed: bool) -> None:
    for content in EMPTY[source]:
        body = request_body(source, U(), A(call("c1")), R("c1", "x", failed=failed), U("on"))
        block = body["messages"][2]["content"][0]
        (block if source == "anthropic" else block["toolResult"])["content"] = content
        (result,) = parts_of(convert_checked(body, source, target), target).results
        rules = profiles.get(*target).as_known().results
        if not (rules.empty_error if failed else rules.empty):
            assert result.text.strip()


def test_G3_the_fixture_of_bedrock() -> None:
    body = request_body("bedrock", U(), A(call("c1")), R("c1", None, failed=True), model=NOVA[1])
    assert any("cannot be empty" in str(found) for found in lint(body, *NOVA))
    out = convert_checked(body, "bedrock", NOVA)
    result = out.body["messages"][2]["content"][0]["toolResult"]
    assert result["content"][0]["text"]
    assert result["status"] == "error"
    assert_reported(out, "a placeholder was added", action="replaced", fault="loss")


# --- G4 -----------------------------------------------------------------------------------------------

BROKEN = ["\ud83d", "a\udc00b", "\x00", "ok \ud83d\ude00", "\ufeff", "\u2028"]


@every_target
@pytest.mark.parametrize("text", BROKEN, ids=ascii)
def test_G4_half_characters_in_results_arguments_and_words_become_whole_text(target: Target, text: str) -> None:
    for source in PROTOCOLS:
        made = A(call("c1", "read", {"path": text, text + "key": 1}))
        body = request_body(source, U(f"go {text}"), made, R("c1", f"printed {text}"), U("on"))
        data = json.dumps(body).encode()
        out = convert(data, source=source, target=target[0], model=target[1])
        assert_accepted(out, target)
        out.data.decode()
        parts = parts_of(out, target)
        assert not any(0xD800 <= ord(letter) <= 0xDFFF for letter in json.dumps(list(parts), ensure_ascii=False))
        assert "printed" in parts.results[0].text


def test_G4_valid_text_is_forwarded() -> None:
    assert_forwarded(
        request_body("anthropic", U("go 😀 \u2028"), *exchange(1, prefix="toolu_"), model=CLAUDE[1]), CLAUDE
    )


# --- G5 -----------------------------------------------------------------------------------------------

SEARCH: Fields = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "weather"}}
FOUND: Fields = {
    "type": "web_search_tool_result",
    "tool_use_id": "srvtoolu_1",
    "content": [
        {
            "type": "web_search_result",
            "url": "https://example.org",
            "title": "Sunny",
            "encrypted_content": "c2VjcmV0",
            "page_age": None,
        }
    ],
}


def search_body(*blocks: Fields) -> Fields:
    body = request_body("anthropic", U("weather?"), model=CLAUDE[1], tools=())
    content = [*blocks, {"type": "text", "text": "It is sunny."}]
    body["messages"] += [{"role": "assistant", "content": content}, {"role": "user", "content": "thanks"}]
    return body


def test_G5_a_native_server_tool_and_its_result_are_forwarded() -> None:
    body = {**search_body(SEARCH, FOUND), "tools": [{"type": "web_search_20250305", "name": "web_search"}]}
    assert_forwarded(body, CLAUDE)


ELSEWHERE = [target for target in TARGETS if protocol_of(target) != "anthropic"]


@pytest.mark.parametrize("target", ELSEWHERE, ids=["/".join(target) for target in ELSEWHERE])
def test_G5_elsewhere_a_server_tool_is_text_without_what_only_its_issuer_reads(target: Target) -> None:
    out = convert_checked(search_body(SEARCH, FOUND), "anthropic", target)
    parts = parts_of(out, target)
    assert parts.calls == parts.results == []
    assert "Sunny" in parts.everything
    assert "weather" in parts.everything
    assert "c2VjcmV0" not in out.data.decode()
    assert_reported(out, "of a server tool of anthropic became text", action="converted", fault="loss")


@pytest.mark.parametrize("target", ELSEWHERE, ids=["/".join(target) for target in ELSEWHERE])
@pytest.mark.parametrize("half", [SEARCH, FOUND], ids=["call", "result"])
def test_G5_half_a_pair_is_text_elsewhere_too(target: Target, half: Fields) -> None:
    parts = parts_of(convert_checked(search_body(half), "anthropic", target), target)
    assert "It is sunny." in parts.everything
    assert parts.calls == []
