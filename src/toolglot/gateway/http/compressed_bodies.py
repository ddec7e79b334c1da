"""Request bodies that a client compressed: gzip, deflate and zstd.

Law: no more is decompressed than a body may be large, and the memory for it is counted as it grows. A zstd window is at
most 8 MiB, as RFC 9659 has it for HTTP.
"""

from __future__ import annotations

import asyncio
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from toolglot.errors import InputError, how_to_install
from toolglot.gateway.http.requests import ClientRequest, Hold, ignore_size, refusal, refuse_large

if sys.version_info >= (3, 14) and not TYPE_CHECKING:
    from compression import zstd
else:
    try:
        from backports import zstd
    except ImportError:
        missing = "the gateway needs backports.zstd, which is not installed"
        raise InputError(missing, path="", hint=how_to_install("gateway")) from None

_PIECE_BYTES: Final = 1024 * 1024
_ZSTD_OPTIONS: Final[Mapping[int, int]] = {zstd.DecompressionParameter.window_log_max: 23}


class _CorruptError(Exception):
    """The body is not of its encoding. Its argument says why, if that is known."""


def _pieces(reader: zlib._Decompress | zstd.ZstdDecompressor, data: bytes) -> Iterator[bytes]:
    rest = data
    while not reader.eof:
        try:
            piece = reader.decompress(rest, _PIECE_BYTES)
        except (zlib.error, zstd.ZstdError):
            raise _CorruptError from None
        if isinstance(reader, zstd.ZstdDecompressor):  # it keeps what it has not read yet
            rest, is_empty = b"", reader.needs_input
        else:
            rest = reader.unconsumed_tail
            is_empty = not rest
        if not piece and is_empty and not reader.eof:
            raise _CorruptError("ends too early")
        yield piece
    if reader.unused_data:
        raise _CorruptError("is followed by something: send it in one part")


_READERS: Final[dict[str, Callable[[], zlib._Decompress | zstd.ZstdDecompressor]]] = {
    "gzip": partial(zlib.decompressobj, 31),
    "x-gzip": partial(zlib.decompressobj, 31),
    "deflate": partial(zlib.decompressobj, 15),
    "zstd": partial(zstd.ZstdDecompressor, options=_ZSTD_OPTIONS),
}


async def read_body(request: ClientRequest, max_bytes: int) -> bytes:
    """The whole body of a request, decompressed."""
    data = await request.read(max_bytes)
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding in ("", "identity"):
        return data
    return await asyncio.to_thread(decompress_body, data, encoding, max_bytes, request.hold)


def decompress_body(data: bytes, encoding: str, max_bytes: int, hold: Hold = ignore_size) -> bytes:
    """Decompress a body, no further than it may be large. `hold` is called with the size of each piece."""
    make_reader = _READERS.get(encoding)
    if make_reader is None:
        known = ", ".join(_READERS)
        raise refusal("bad_request", f"unknown content-encoding {encoding[:40]!r}; send {known} or none", 415)
    pieces: list[bytes] = []
    size = 0
    try:
        for piece in _pieces(make_reader(), data):
            size += len(piece)
            refuse_large(size, max_bytes)
            hold(len(piece))
            pieces.append(piece)
    except _CorruptError as error:
        why = (
            f"the {encoding} body {error}"
            if error.args
            else f"the body is not {encoding}, as its content-encoding says"
        )
        raise refusal("bad_request", why) from None
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)
