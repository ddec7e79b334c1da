"""The frames of a WebSocket (RFC 6455, with permessage-deflate), read and written by `websockets`. It does no I/O.

    frames = SocketFrames(max_bytes)
    headers = frames.accept(path, headers)      # of the response with status 101
    messages = frames.feed(data)                # whole text messages
    connection.write(frames.take_output())      # after each call

`websockets` is the library whose parser bounds what it decompresses, which `wsproto` does not. No other file imports
it.

Laws: the messages are the same however their bytes are cut and fragmented. A client that breaks the protocol, sends
binary data, invalid UTF-8 or more than `max_bytes` gets a close with the code for it, and no more is read. Compression
keeps no state between messages, so that an idle connection costs little.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

from websockets.datastructures import Headers as LibraryHeaders
from websockets.extensions.base import Extension
from websockets.extensions.permessage_deflate import PerMessageDeflate, ServerPerMessageDeflateFactory
from websockets.frames import CTRL_OPCODES, DATA_OPCODES, Frame, Opcode
from websockets.http11 import Request
from websockets.protocol import OPEN, SEND_EOF
from websockets.server import ServerProtocol
from websockets.typing import ExtensionParameter

from toolglot.gateway.http.requests import Headers, refusal
from toolglot.gateway.http.web_sockets import INVALID_TEXT, POLICY, UNSUPPORTED

MIN_COMPRESSED: Final = 1024
"""Bytes from which on a message is compressed: below, it takes more time than it saves."""
MAX_CONTROL_FRAMES: Final = 256
"""Pings and pongs in the bytes of one `feed`."""
MAX_REASON: Final = 123
"""Bytes of the reason of a close."""

_SILENT: Final = logging.getLogger("toolglot.websockets")
_SILENT.addHandler(logging.NullHandler())
_SILENT.propagate = False
_HANDSHAKE: Final = ("connection", "upgrade", "sec-websocket-key", "sec-websocket-version", "sec-websocket-extensions")


class _LongMessages(PerMessageDeflate):
    """Compression of long messages only."""

    def encode(self, frame: Frame) -> Frame:
        return frame if len(frame.data) < MIN_COMPRESSED else super().encode(frame)


class _Compression(ServerPerMessageDeflateFactory):
    """How compression is agreed on."""

    def __init__(self) -> None:
        super().__init__(server_no_context_takeover=True, client_no_context_takeover=True)

    def process_request_params(
        self, params: Sequence[ExtensionParameter], accepted_extensions: Sequence[Extension]
    ) -> tuple[list[ExtensionParameter], PerMessageDeflate]:
        agreed, own = super().process_request_params(params, accepted_extensions)
        windows = own.remote_max_window_bits, own.local_max_window_bits
        return agreed, _LongMessages(own.remote_no_context_takeover, own.local_no_context_takeover, *windows)


class SocketFrames:
    """The frames of one WebSocket of a client."""

    def __init__(self, max_bytes: int) -> None:
        self._protocol = ServerProtocol(extensions=[_Compression()], state=OPEN, max_size=max_bytes, logger=_SILENT)
        self._fragments = bytearray()

    @property
    def is_open(self) -> bool:
        """Neither side has closed it."""
        return self._protocol.state is OPEN

    @property
    def is_compressed(self) -> bool:
        """Messages may be compressed."""
        return bool(self._protocol.extensions)

    @property
    def held(self) -> int:
        """Bytes of a message that is not complete."""
        return len(self._protocol.reader.buffer) + len(self._fragments)

    def accept(self, path: str, headers: Headers) -> dict[str, str]:
        """The headers of the response that accepts a handshake. One that is malformed is refused."""
        own = LibraryHeaders([(name, headers[name]) for name in _HANDSHAKE if name in headers])
        response = self._protocol.accept(Request(path, own))
        if response.status_code != 101:
            message = f"not a WebSocket handshake: {self._protocol.handshake_exc}"
            raise refusal("bad_request", message, response.status_code)
        return {name.lower(): value for name, value in response.headers.raw_items() if name != "Date"}

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are complete now."""
        self._protocol.receive_data(data)
        messages: list[bytes] = []
        control = 0
        for frame in self._protocol.events_received():
            if not isinstance(frame, Frame):
                continue
            if frame.opcode in CTRL_OPCODES:
                control += 1
            elif frame.opcode in DATA_OPCODES and (message := self._add(frame)) is not None:
                messages.append(message)
        if control > MAX_CONTROL_FRAMES:
            self.fail(POLICY, "too many pings")
        return messages

    def _add(self, frame: Frame) -> bytes | None:
        """The message that a frame completes."""
        if frame.opcode is Opcode.BINARY:
            self.fail(UNSUPPORTED, "messages must be text")
        if not self.is_open and self._protocol.close_rcvd is None:
            return None
        if not frame.fin or self._fragments:
            self._fragments += frame.data
        if not frame.fin:
            return None
        message = bytes(self._fragments) if self._fragments else bytes(frame.data)
        self._fragments = bytearray()
        try:
            message.decode()
        except UnicodeDecodeError:
            self.fail(INVALID_TEXT, "messages must be valid UTF-8")
            return None
        return message

    def end(self) -> None:
        """The client has sent everything."""
        self._protocol.receive_eof()

    def send(self, text: bytes) -> None:
        if self.is_open:
            self._protocol.send_text(text)

    def ping(self) -> None:
        if self.is_open:
            self._protocol.send_ping(b"")

    def close(self, code: int, reason: str = "") -> None:
        """Begin to close it: the client closes too, and then the connection ends."""
        if self.is_open:
            self._protocol.send_close(code, _short(reason))

    def fail(self, code: int, reason: str) -> None:
        """Close it without reading any more."""
        if self.is_open:
            self._protocol.fail(code, _short(reason))

    def take_output(self) -> tuple[list[bytes], bool]:
        """Bytes to write, and whether they are the last."""
        output = self._protocol.data_to_send()
        is_last = SEND_EOF in output
        return [data for data in output if data != SEND_EOF], is_last


def _short(reason: str) -> str:
    return reason.encode()[:MAX_REASON].decode(errors="ignore")
