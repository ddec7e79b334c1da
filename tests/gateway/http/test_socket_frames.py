"""The frames of WebSockets: the same messages however they are cut, and a close with the right code for the rest."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.client import ClientProtocol
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
from websockets.frames import Close, Frame, Opcode
from websockets.protocol import OPEN
from websockets.uri import parse_uri

from toolglot.gateway.http.requests import GatewayRefusal
from toolglot.gateway.http.socket_frames import MAX_CONTROL_FRAMES, MIN_COMPRESSED, SocketFrames

MAX = 4096
HANDSHAKE = {
    "connection": "keep-alive, Upgrade",
    "upgrade": "websocket",
    "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
    "sec-websocket-version": "13",
}
DEFLATE = "permessage-deflate; client_max_window_bits"


def opened(extensions: str = "", max_bytes: int = MAX) -> SocketFrames:
    frames = SocketFrames(max_bytes)
    frames.accept("/v1/responses", {**HANDSHAKE, **({"sec-websocket-extensions": extensions} if extensions else {})})
    return frames


MASK = b"\x01\x80\x7f\xff"


def masked(opcode: Opcode, data: bytes, *, fin: bool = True, rsv1: bool = False) -> bytes:
    """A frame as a client sends it, written without the library."""
    first = opcode | (0x80 if fin else 0) | (0x40 if rsv1 else 0)
    size = struct.pack("!B", 0x80 | len(data)) if len(data) < 126 else struct.pack("!BQ", 0xFF, len(data))
    return bytes([first]) + size + MASK + bytes(byte ^ MASK[index % 4] for index, byte in enumerate(data))


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return (packer.compress(data) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]


def close_code(frames: SocketFrames) -> int:
    """The code of the close that the client gets; everything before it is dropped."""
    client = ClientProtocol(parse_uri("ws://x/"), state=OPEN, max_size=None)
    client.extensions = [
        ClientPerMessageDeflateFactory().process_response_params(
            [("server_no_context_takeover", None), ("client_no_context_takeover", None)], []
        )
    ]
    output, is_last = frames.take_output()
    client.receive_data(b"".join(output))
    closes = [frame for frame in client.events_received() if isinstance(frame, Frame) and frame.opcode is Opcode.CLOSE]
    assert is_last
    assert not frames.is_open
    return Close.parse(bytes(closes[0].data)).code


def test_the_handshake_is_answered_as_the_standard_says() -> None:
    headers = SocketFrames(MAX).accept("/", {**HANDSHAKE, "sec-websocket-extensions": DEFLATE})
    assert headers["sec-websocket-accept"] == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="
    assert headers["sec-websocket-extensions"].startswith("permessage-deflate; server_no_context_takeover")
    assert (headers["upgrade"], headers["connection"]) == ("websocket", "Upgrade")


@pytest.mark.parametrize(
    "wrong",
    [
        {"sec-websocket-key": "AAAA"},
        {"sec-websocket-version": "8"},
        {"connection": "keep-alive"},
        {"upgrade": "h2c"},
        {"sec-websocket-extensions": "permessage-deflate; server_max_window_bits=99;;"},
    ],
)
def test_a_handshake_that_is_malformed_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(GatewayRefusal) as refused:
        SocketFrames(MAX).accept("/", {**HANDSHAKE, **wrong})
    assert refused.value.failure.status in (400, 426)


def test_an_extension_that_is_not_known_is_not_used() -> None:
    headers = SocketFrames(MAX).accept("/", {**HANDSHAKE, "sec-websocket-extensions": "x-other; a=1"})
    assert "sec-websocket-extensions" not in headers


MESSAGES = st.lists(
    st.tuples(st.text(max_size=40) | st.just("x" * 1500), st.booleans(), st.lists(st.integers(0, 1500), max_size=4)),
    max_size=5,
)


@pytest.mark.law
@given(messages=MESSAGES, cuts=st.lists(st.integers(0, 9000), max_size=12), pings=st.booleans())
def test_law_8_messages_are_the_same_however_they_are_cut_fragmented_and_compressed(
    messages: list[tuple[str, bool, list[int]]], cuts: list[int], pings: bool
) -> None:
    data = b""
    for text, is_packed, splits in messages:
        payload = deflated(text.encode()) if is_packed else text.encode()
        points = sorted({0, *(at for at in splits if at < len(payload))})
        parts = [payload[at:end] for at, end in zip(points, [*points[1:], len(payload)], strict=True)]
        for index, part in enumerate(parts):
            opcode = Opcode.TEXT if index == 0 else Opcode.CONT
            data += masked(opcode, part, fin=index + 1 == len(parts), rsv1=is_packed and index == 0)
            data += masked(Opcode.PING, b"?") if pings else b""
    frames = opened(DEFLATE)
    found: list[bytes] = []
    points = sorted({0, *(at for at in cuts if at < len(data))})
    for at, end in zip(points, [*points[1:], len(data)], strict=True):
        found += frames.feed(data[at:end])
    assert [message.decode() for message in found] == [text for text, _, _ in messages]
    assert frames.is_open
    assert frames.held == 0


@pytest.mark.law
@given(st.lists(st.text(max_size=20) | st.text(min_size=MIN_COMPRESSED, max_size=MIN_COMPRESSED + 9), max_size=4))
def test_what_is_sent_arrives_as_it_was_compressed_or_not(texts: list[str]) -> None:
    frames = opened(DEFLATE)
    for text in texts:
        frames.send(text.encode())
    client = ClientProtocol(parse_uri("ws://x/"), state=OPEN, max_size=None)
    client.extensions = [
        ClientPerMessageDeflateFactory().process_response_params(
            [("server_no_context_takeover", None), ("client_no_context_takeover", None)], []
        )
    ]
    client.receive_data(b"".join(frames.take_output()[0]))
    got = [frame for frame in client.events_received() if isinstance(frame, Frame)]
    assert [bytes(frame.data).decode() for frame in got] == texts


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (Frame(Opcode.TEXT, b"{}").serialize(mask=False), 1002),
        (masked(Opcode.CONT, b"{}"), 1002),
        (masked(Opcode.TEXT, b"a", fin=False) + masked(Opcode.TEXT, b"b"), 1002),
        (b"\xa1" + masked(Opcode.TEXT, b"{}")[1:], 1002),
        (b"\x83" + masked(Opcode.TEXT, b"{}")[1:], 1002),
        (masked(Opcode.PING, b"", fin=False), 1002),
        (masked(Opcode.PING, b"x" * 126), 1002),
        (masked(Opcode.BINARY, b"{}"), 1003),
        (masked(Opcode.BINARY, b"{", fin=False), 1003),
        (masked(Opcode.TEXT, b"\xff\xfe"), 1007),
        (masked(Opcode.TEXT, b"\xe2\x82", fin=False) + masked(Opcode.CONT, b"\x28"), 1007),
        (masked(Opcode.TEXT, b"x" * (MAX + 1)), 1009),
        (b"\x81\xff" + struct.pack("!Q", 1 << 62) + b"mask", 1009),
        (b"".join(masked(Opcode.TEXT if not at else Opcode.CONT, b"x" * 999, fin=False) for at in range(9)), 1009),
        (masked(Opcode.TEXT, deflated(b"x" * 50_000_000), rsv1=True), 1009),
        (masked(Opcode.TEXT, b"not deflated at all", rsv1=True), 1002),
        (masked(Opcode.PING, b"") * (MAX_CONTROL_FRAMES + 1), 1008),
        (masked(Opcode.PONG, b"") * (MAX_CONTROL_FRAMES + 1), 1008),
        (masked(Opcode.CLOSE, struct.pack("!H", 1000)), 1000),
        (masked(Opcode.CLOSE, struct.pack("!H", 999)), 1002),
        (masked(Opcode.CLOSE, b"\x03"), 1002),
    ],
)
def test_what_breaks_the_protocol_ends_it_with_the_code_for_that(data: bytes, code: int) -> None:
    frames = opened(DEFLATE)
    assert frames.feed(data) == []
    assert close_code(frames) == code
    assert frames.feed(masked(Opcode.TEXT, b"{}")) == []  # nothing more is read


def test_characters_that_are_cut_by_fragments_are_whole() -> None:
    frames = opened()
    euro = "€".encode()
    assert frames.feed(masked(Opcode.TEXT, euro[:1], fin=False) + masked(Opcode.CONT, euro[1:])) == [euro]


def test_fragments_of_one_byte_hold_no_more_than_their_bytes() -> None:
    frames = opened(max_bytes=100_000)
    frames.feed(masked(Opcode.TEXT, b"x", fin=False))
    for _ in range(999):
        frames.feed(masked(Opcode.CONT, b"x", fin=False))
    assert frames.held == 1000
