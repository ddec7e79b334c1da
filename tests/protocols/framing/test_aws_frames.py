"""Frames of the AWS event stream, against those of botocore."""

from __future__ import annotations

import struct
import uuid
import zlib
from typing import Any

import pytest
from botocore.eventstream import EventStreamBuffer
from hypothesis import given
from hypothesis import strategies as st

from support.conversations.strategies import texts
from toolglot.errors import InputError, LimitError
from toolglot.protocols.framing.aws_frames import (
    AwsFramer,
    event_headers,
    event_message,
    message,
    read_headers,
    text_headers,
)
from toolglot.protocols.framing.text_frames import Frame


def header(name: str, kind: int, value: bytes) -> bytes:
    """A header, built by the description of the format alone."""
    return bytes([len(name)]) + name.encode() + bytes([kind]) + value


ID = uuid.UUID("12345678-1234-5678-1234-567812345678")
EVERY_TYPE = b"".join(
    [
        header("true", 0, b""),
        header("false", 1, b""),
        header("byte", 2, b"\xff"),
        header("short", 3, struct.pack(">h", -2)),
        header("int", 4, struct.pack(">i", -3)),
        header("long", 5, struct.pack(">q", -4)),
        header("bytes", 6, b"\x00\x02hi"),
        header("string", 7, b"\x00\x03\xc3\xa4!"),
        header("time", 8, struct.pack(">q", 1_700_000_000_000)),
        header("uuid", 9, ID.bytes),
    ]
)
TWO = event_message("messageStart", {"role": "assistant"}) + event_message("messageStop", {"stopReason": "end_turn"})


def frames_of(data: bytes, piece: int = 0) -> list[Frame]:
    framer = AwsFramer()
    step = piece or len(data) or 1
    found = [frame for at in range(0, len(data), step) for frame in framer.feed(data[at : at + step])]
    return found + framer.finish()


def read_with_botocore(data: bytes) -> list[Any]:
    buffer = EventStreamBuffer()
    buffer.add_data(data)
    return list(buffer)


def test_a_message_of_the_documentation_is_read() -> None:
    """The lengths and checksums are computed here from the description, not by the writer."""
    headers = header(":event-type", 7, b"\x00\x01e") + header(":message-type", 7, b"\x00\x05event")
    prelude = struct.pack(">II", 16 + len(headers) + 2, len(headers))
    start = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + b"{}"
    data = start + struct.pack(">I", zlib.crc32(start))
    assert frames_of(data) == [Frame(b"{}", "e", data)]
    assert message(headers, b"{}") == data
    assert read_with_botocore(data)[0].payload == b"{}"


def test_every_type_of_header_is_read_as_botocore_reads_it() -> None:
    headers = read_headers(EVERY_TYPE)
    assert headers == {
        "true": True,
        "false": False,
        "byte": -1,
        "short": -2,
        "int": -3,
        "long": -4,
        "bytes": b"hi",
        "string": "ä!",
        "time": 1_700_000_000_000,
        "uuid": ID,
    }
    (theirs,) = read_with_botocore(message(EVERY_TYPE, b""))
    assert theirs.headers == {**headers, "uuid": ID.bytes}


def test_of_a_header_that_comes_twice_the_first_counts() -> None:
    assert read_headers(text_headers({"a": "1"}) + text_headers({"a": "2"})) == {"a": "1"}


def test_headers_that_end_too_early_are_refused() -> None:
    whole = read_headers(EVERY_TYPE)
    ends = 0
    for cut in range(1, len(EVERY_TYPE)):
        try:
            found = read_headers(EVERY_TYPE[:cut])
        except InputError:
            continue
        ends += 1
        assert found == dict(list(whole.items())[:ends])
    assert ends == len(whole) - 1


def test_a_header_of_an_unknown_type_is_refused() -> None:
    with pytest.raises(InputError, match="unknown type 10"):
        read_headers(header("a", 10, b""))


@pytest.mark.parametrize("piece", range(1, len(TWO) + 1))
def test_however_the_bytes_are_cut_the_frames_are_the_same(piece: int) -> None:
    found = frames_of(TWO, piece)
    assert [(frame.name, frame.data) for frame in found] == [
        ("messageStart", b'{"role":"assistant"}'),
        ("messageStop", b'{"stopReason":"end_turn"}'),
    ]
    assert b"".join(frame.raw for frame in found) == TWO


def test_exceptions_are_distinguished_by_their_name() -> None:
    thrown = event_message("throttlingException", {"message": "slow"}, is_exception=True)
    assert frames_of(thrown) == [Frame(b'{"message":"slow"}', "!throttlingException", thrown)]
    headers = {":message-type": "error", ":error-code": "InternalError", ":error-message": "broke"}
    (error,) = frames_of(message(text_headers(headers), b""))
    assert (error.name, error.data) == ("!InternalError", b'{"message":"broke"}')
    odd = header(":message-type", 7, b"\x00\x05event") + header(":event-type", 0, b"")
    assert frames_of(message(odd, b"x"))[0].name == ""


def test_many_kinds_of_headers_are_read_all_the_same() -> None:
    data = b"".join(message(event_headers(f"e{number}"), b"{}") for number in range(100)) * 2
    assert [frame.name for frame in frames_of(data)] == [f"e{number}" for number in range(100)] * 2


@pytest.mark.parametrize("position", range(len(TWO) // 2))
def test_a_flipped_bit_is_noticed(position: int) -> None:
    data = bytearray(TWO)
    data[position] ^= 1
    with pytest.raises(InputError, match="CRC"):
        frames_of(bytes(data))


def feed_all(framer: AwsFramer, data: bytes, piece: int, names: list[str]) -> None:
    for at in range(0, len(data) + piece, piece):
        names += [frame.name for frame in framer.feed(data[at : at + piece])]


def test_frames_before_a_bad_one_are_handed_over_however_the_bytes_are_cut() -> None:
    data = TWO + b"x" * 20
    for piece in (len(data), 1, 7):
        framer, names = AwsFramer(), list[str]()
        with pytest.raises(InputError, match="not an AWS event stream"):
            feed_all(framer, data, piece, names)
        assert names == ["messageStart", "messageStop"]
        with pytest.raises(InputError):
            framer.feed(TWO)
        with pytest.raises(InputError):
            framer.finish()


def prelude(length: int, headers: int) -> bytes:
    start = struct.pack(">II", length, headers)
    return start + struct.pack(">I", zlib.crc32(start))


@pytest.mark.parametrize(("length", "headers"), [(0, 0), (15, 0), (20, 5), (20, 2**32 - 1)])
def test_lengths_that_make_no_sense_are_refused(length: int, headers: int) -> None:
    with pytest.raises(InputError, match="make no sense"):
        AwsFramer().feed(prelude(length, headers))


@pytest.mark.parametrize(("length", "headers"), [(2**32 - 1, 0), (2**24 + 1, 0), (2**20, 2**17 + 1)])
def test_messages_that_are_too_long_are_refused_before_they_come(length: int, headers: int) -> None:
    with pytest.raises(LimitError, match="limit"):
        AwsFramer().feed(prelude(length, headers))


def test_an_incomplete_frame_yields_nothing() -> None:
    assert frames_of(TWO[:-1])[-1].name == "messageStart"
    assert frames_of(b"") == []


@pytest.mark.law
@given(st.lists(st.tuples(st.dictionaries(texts, texts, max_size=3), st.binary(max_size=50)), max_size=4))
def test_botocore_reads_what_is_written(messages: list[tuple[dict[str, str], bytes]]) -> None:
    data = b"".join(message(text_headers(headers), payload) for headers, payload in messages)
    assert [(found.headers, found.payload) for found in read_with_botocore(data)] == messages
    assert b"".join(frame.raw for frame in frames_of(data, 5)) == data


@pytest.mark.law
@given(st.binary(max_size=200), st.integers(1, 30))
def test_arbitrary_bytes_are_refused_or_wait(data: bytes, piece: int) -> None:
    try:
        found = frames_of(data, piece)
    except InputError:
        return
    assert found == []


@pytest.mark.law
@given(st.binary(max_size=60))
def test_arbitrary_headers_are_read_or_refused(data: bytes) -> None:
    try:
        found = read_headers(data)
    except InputError:
        return
    assert bool(found) == bool(data)
