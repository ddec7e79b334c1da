"""Law 1 for unreadable media: data that is not base64, unusable URLs, nothing at all."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolglot
from toolglot.conversation import Conversation, Media, Text, ToolCall, ToolResult, Turn
from toolglot.render.content.media_faults import (
    fault_of,
    has_type,
    is_base64,
    scheme_of,
    standard_base64,
    with_standard_base64,
)

TARGETS = {
    "openai": "gpt-4.1",
    "openai_responses": "gpt-4.1",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-3-pro",
    "bedrock": "anthropic.claude-sonnet-4-5",
    "mistral": "mistral-large-latest",
    "cohere": "command-a-03-2025",
    "ollama": "qwen3",
}
PNG = "iVBORw0KGgo="

UNREADABLE = [
    Media("image", "image/png", data="not base64\x00"),
    Media("image", "image/png", data="ä"),
    Media("image", "image/png", data=""),
    Media("image", "image/png", data="A"),
    Media("image"),
    Media("image", url="file:///etc/passwd"),
    Media("image", url=""),
    Media("document", "application/pdf", data="%PDF-1.7"),
]
UNTYPED = [Media("image", "", data="AAAA"), Media("image", "x", data="AAAA"), Media("document", data="AAAA")]
READABLE = [
    Media("image", "image/png", data=PNG),
    Media("image", data=PNG),
    Media("image", "image/*", data=PNG),
    Media("image", "image/png", data="_-8"),
    Media("image", "image/png", data="aG\nk="),
    Media("image", url="https://example.com/a.png"),
    Media("image", url="https://example.com/a"),
]


def conversation_with(media: Media) -> Conversation:
    """A conversation in which a user and a tool show it."""
    return Conversation(
        (
            Turn("user", (Text("Look at this."), media)),
            Turn("assistant", (ToolCall("c1", "shot", {}),)),
            Turn("tool", (ToolResult("c1", (Text("shown"), media), name="shot", status="complete"),)),
        )
    )


@pytest.mark.law
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("media", [*UNREADABLE, *UNTYPED, *READABLE], ids=repr)
def test_no_target_refuses_a_request_for_its_media(target: str, media: Media) -> None:
    sent = toolglot.request_for(conversation_with(media), target=target, model=TARGETS[target])
    assert toolglot.lint(sent.body, target=target, model=TARGETS[target]) == ()


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("media", UNREADABLE, ids=repr)
def test_unreadable_media_become_a_line_of_text_and_are_reported(target: str, media: Media) -> None:
    sent = toolglot.request_for(conversation_with(media), target=target, model=TARGETS[target])
    assert "it cannot be shown here" in str(sent.body)
    assert any("a line of text replaced it" in entry.reason for entry in sent.report.entries)


def of_chat(url: str) -> dict[str, Any]:
    parts = [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": url}}]
    return {"model": "m", "messages": [{"role": "user", "content": parts}]}


@pytest.mark.parametrize("url", ["data:image/png;base64,%%%", "file:///etc/passwd", "data:,x", "nowhere"])
@pytest.mark.parametrize("target", ["anthropic", "gemini", "bedrock", "openai_responses"])
def test_what_a_client_sends_is_held_to_the_same(url: str, target: str) -> None:
    made = toolglot.convert(of_chat(url), source="openai", target=target, model=TARGETS[target])
    assert toolglot.lint(made.body, target=target, model=TARGETS[target]) == ()
    assert "it cannot be shown here" in str(made.body)


def test_native_media_stay_as_they_are_unless_the_provider_refuses_them() -> None:
    for url in ("data:image/png;base64,%%%", "file:///etc/passwd"):
        assert toolglot.convert(of_chat(url), source="openai", target="openai", model="m").body == of_chat(url)
    for data, is_kept in (("_-8", True), ("aGk", True), ("%%%", False), ("a Gk=", False)):
        part = {"inlineData": {"mimeType": "image/png", "data": data}}
        body = {"contents": [{"role": "user", "parts": [{"text": "look"}, part]}]}
        made = toolglot.convert(body, source="gemini", target="gemini", model="gemini-3-pro")
        assert toolglot.lint(made.body, target="gemini", model="gemini-3-pro") == ()
        assert (made.body == body) is is_kept
        assert ("cannot be shown" in str(made.body)) is (data == "%%%")


def test_an_address_that_only_its_own_provider_opens_goes_only_there() -> None:
    media = Media("image", "image/png", url="gs://bucket/a.png")
    assert fault_of(media)
    assert "gs://bucket" in str(
        toolglot.request_for(conversation_with(media), target="gemini", model="gemini-3-pro").body
    )
    sent = toolglot.request_for(conversation_with(media), target="anthropic", model="claude-sonnet-4-5")
    assert "it cannot be shown here" in str(sent.body)


@pytest.mark.law
@given(st.binary(max_size=40), st.booleans(), st.booleans(), st.integers(0, 40))
def test_base64_in_any_form_is_read_and_written_in_the_standard_one(
    data: bytes, is_for_urls: bool, is_padded: bool, at: int
) -> None:
    plain = base64.b64encode(data).decode()
    written = (base64.urlsafe_b64encode(data) if is_for_urls else base64.b64encode(data)).decode()
    written = written if is_padded else written.rstrip("=")
    assert is_base64(written)
    assert standard_base64(written) == plain
    assert standard_base64(written[:at] + "\r\n" + written[at:]) == plain
    assert standard_base64(written[:at] + "%" + written[at:]) is None
    assert standard_base64(plain) is plain


@pytest.mark.law
@given(st.text(alphabet="ABab01+/-_= \n%ä", max_size=12))
def test_what_is_taken_for_base64_can_be_decoded(data: str) -> None:
    found = standard_base64(data)
    if found is not None:
        base64.b64decode(found, validate=True)
    assert found is not None or not is_base64(data)


def test_types_and_schemes_are_read_from_what_is_written() -> None:
    assert [scheme_of(url) for url in ("HTTPS://a", "gs://b", "a/b:c", "", "1:a")] == ["https", "gs", "", "", ""]
    assert [
        has_type(Media("image", media_type))
        for media_type in ("image/png", "text/plain; charset=utf-8", "", "x", "a/*")
    ] == [
        True,
        True,
        False,
        False,
        False,
    ]
    by_id = Media("file", file_id="file-1")
    assert with_standard_base64(by_id) is by_id
    assert fault_of(by_id) == ""
