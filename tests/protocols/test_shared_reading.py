"""What the codecs share: argument text, failed results, data URLs, nested reads."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given

from support.conversations.strategies import json_objects, json_values, texts
from toolglot import InputError, Text, ToolResult
from toolglot.conversation import Media
from toolglot.jsontext import compact
from toolglot.protocols.fields.argument_text import read_arguments, read_object
from toolglot.protocols.fields.failed_result import content_with_error, text_of
from toolglot.protocols.fields.media import audio_format, audio_type, audio_type_of, data_url, read_data_url
from toolglot.protocols.fields.reading import (
    Fields,
    each_by_type,
    from_root,
    held_or_none,
    read_required,
    require_all,
    required,
)


@pytest.mark.law
@given(json_values)
def test_compact_text_is_the_same_value_without_spaces(value: Any) -> None:
    text = compact(value)
    assert json.dumps(json.loads(text)) == json.dumps(value)
    assert compact(json.loads(text)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"é": "☃", "n": [1, 1.0]}, '{"é":"☃","n":[1,1.0]}'),
        (2**70, "1180591620717411303424"),
        (1e16, "1e16"),
        ({"half": "\ud800"}, '{"half":"\ud800"}'),
    ],
)
def test_compact_text_keeps_letters_and_numbers(value: Any, text: str) -> None:
    assert compact(value) == text


@pytest.mark.law
@given(json_objects)
def test_an_object_needs_no_text_beside_it_only_if_it_is_written_the_same(value: Fields) -> None:
    for text in (compact(value), json.dumps(value, indent=1)):
        for read in (read_object, read_arguments):
            found, raw = read(text)[:2]
            assert found == value
            assert (compact(found) if raw is None else raw) == text


DEEP = '{"a":' * 190 + "1" + "}" * 190


@pytest.mark.parametrize("text", ["[]", "null", '{"a":', "x", DEEP, '{"a":1e400}'])
def test_text_that_is_no_object_stays_text(text: str) -> None:
    assert read_object(text) == (None, text)


def test_what_some_hosts_write_for_arguments_is_read_but_kept() -> None:
    assert read_arguments("") == ({}, "", ("a blank string means no arguments",))
    assert read_arguments('"{}"') == ({}, '"{}"', ("the whole value was JSON text in a JSON string",))
    assert read_object('"{}"') == (None, '"{}"')
    assert read_arguments(DEEP) == (None, DEEP, ())


PICTURE = Media("image", url="u")


@pytest.mark.parametrize(
    ("result", "content"),
    [
        (ToolResult("c", "x"), "x"),
        (ToolResult("c", error="x"), None),
        (ToolResult("c", "x", is_error=True), "Error: x"),
        (ToolResult("c", "Error:x", is_error=True), "Error:x"),
        (ToolResult("c", "", is_error=True), "Error:"),
        (ToolResult("c", "", is_error=True, error="boom"), "Error: boom"),
        (ToolResult("c", is_error=True), "Error:"),
        (ToolResult("c", (), is_error=True), (Text("Error:"),)),
        (ToolResult("c", (PICTURE,), is_error=True, error="boom"), (Text("Error: boom"), PICTURE)),
        (ToolResult("c", (PICTURE, Text("x"), Text("y")), is_error=True), (PICTURE, Text("Error: x"), Text("y"))),
        (ToolResult("c", (Text("x", extra={"a": {}}),), is_error=True), (Text("Error: x", extra={"a": {}}),)),
    ],
)
def test_a_failed_result_is_marked_in_its_first_text(result: ToolResult, content: Any) -> None:
    assert content_with_error(result) == content


def test_the_text_of_content_is_one_string() -> None:
    assert [text_of(content) for content in (None, "x", (Text("x"), PICTURE, Text("y")))] == ["", "x", "x\ny"]


@pytest.mark.law
@given(texts, texts)
def test_an_address_that_holds_data_comes_back_as_the_same_address(media_type: str, data: str) -> None:
    found = read_data_url(data_url(media_type, data))
    assert found is None or data_url(*found) == data_url(media_type, data)


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("data:image/png;base64,aGk=", ("image/png", "aGk=")),
        ("data:text/plain;charset=utf-8;base64,aGk=", ("text/plain;charset=utf-8", "aGk=")),
        ("data:;base64,aGk=", None),
        ("data:text/plain,hi;base64,x", None),
        ("data:text/plain,hi", None),
        ("https://example.invalid/;base64,x", None),
    ],
)
def test_only_an_address_with_a_media_type_and_base64_holds_data(url: str, found: tuple[str, str] | None) -> None:
    assert read_data_url(url) == found


@pytest.mark.parametrize("media_type", ["audio/wav", "audio/x-wav", "audio/wave", "audio/vnd.wave"])
def test_all_names_of_a_format_are_one(media_type: str) -> None:
    assert audio_format(media_type) == "wav"


def test_formats_have_media_types() -> None:
    assert [(audio_type(name), audio_format(audio_type(name))) for name in ("mp3", "wav", "flac")] == [
        ("audio/mpeg", "mp3"),
        ("audio/wav", "wav"),
        ("audio/flac", "flac"),
    ]


def test_an_error_inside_of_an_object_has_the_whole_path() -> None:
    @from_root
    def read(body: Fields) -> str | None:
        return read_required(body, "a", lambda a: held_or_none(a, "b", lambda b: required(b, "c", str)))

    assert read({"a": {"b": None}}) is None
    assert read({"a": {"b": {"c": "x"}}}) == "x"
    for body, path in (({"a": {"b": {"c": 1}}}, "$.a.b.c"), ({"a": {"b": []}}, "$.a.b"), ({}, "$.a")):
        with pytest.raises(InputError) as caught:
            read(body)
        assert caught.value.path == path


def _refuse(fields: Fields) -> str:
    return required(fields, "type", str)


def test_objects_of_a_list_are_read_by_their_types() -> None:
    readers = {"a": lambda fields: required(fields, "x", str)}
    assert each_by_type([{"type": "a", "x": "1"}, {"type": "b"}], readers, _refuse, ".l") == ["1", "b"]
    for item, path in (
        ({"type": "a"}, ".l[1].x"),
        ({}, ".l[1].type"),
        ({"type": []}, ".l[1].type"),
        ("a", ".l[1]"),
        (None, ".l[1]"),
        ([1], ".l[1]"),
    ):
        with pytest.raises(InputError) as caught:
            each_by_type([{"type": "b"}, item], readers, _refuse, ".l")
        assert caught.value.path == path


def test_the_first_field_that_is_wrong_is_named() -> None:
    kinds = {"a": str, "b": dict}
    assert [require_all(fields, kinds).path for fields in ({}, {"a": "x"}, {"a": "x", "b": []})] == [".a", ".b", ".b"]
    with pytest.raises(AssertionError):
        require_all({"a": "x", "b": {}}, kinds)


@pytest.mark.parametrize(
    ("start", "media_type"),
    [
        ("UklGRiQ", "audio/wav"),
        ("SUQzBAA", "audio/mpeg"),
        ("//uQxAA", "audio/mpeg"),
        ("T2dnUwA", "audio/ogg"),
        ("", ""),
    ],
)
def test_the_type_of_audio_is_known_by_its_first_bytes(start: str, media_type: str) -> None:
    assert audio_type_of(start) == media_type
