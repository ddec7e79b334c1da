"""The tokens of an image: from the size in the first bytes of its file, by the formula that its provider publishes.

Law: only the head of the file is decoded, and the result is always a number: `UNKNOWN_IMAGE` if the size cannot be read
(an address, a file id, another format, a corrupt file).
"""

from __future__ import annotations

import binascii
import math
import re
import struct
from collections.abc import Callable
from typing import Final

from toolglot.conversation import Media

UNKNOWN_IMAGE: Final = 1_200
"""About a picture of 1,000 by 1,000 pixels: the formulas below give between 630 and 1,296."""

HEAD_CHARACTERS: Final = 262_144
"""Base64 that is decoded; a JPEG may have that much metadata before its size."""

MAX_SIDE: Final = 65_535

BYTES_A_TOKEN: Final = {"document": 25, "file": 25, "audio": 500, "video": 500}
"""For other media, by size: a page of a PDF is about 50 kB and 2,000 tokens; audio is 32 tokens a second and video 263
(Gemini), at 128 kbit/s and 1 Mbit/s. Very rough, and outside the bound that is tested for text."""

UNKNOWN_MEDIA: Final = 2_000
"""A document, audio or video that is not in the request itself."""

Size = tuple[int, int]


def media_tokens(media: Media, model: str = "") -> int:
    data = _inline(media)
    if media.kind == "image":
        size = image_size(data) if data else None
        return UNKNOWN_IMAGE if size is None else formula_of(model)(*size)
    return math.ceil(len(data) * 3 / 4 / BYTES_A_TOKEN[media.kind]) if data else UNKNOWN_MEDIA


def _inline(media: Media) -> str:
    if media.data:
        return media.data
    if media.url and media.url[:5].lower() == "data:":
        return media.url[media.url.find(",", 0, 1_000) + 1 :]
    return ""


# --- sizes --------------------------------------------------------------------------------------------


def image_size(data: str) -> Size | None:
    """Width and height of a base64 PNG, JPEG, GIF or WebP; None for everything else."""
    head = _decode(data[:HEAD_CHARACTERS])
    for magic, read in _READERS:
        if head.startswith(magic):
            try:
                width, height = read(head)
            except (struct.error, IndexError, ValueError):
                return None
            return (width, height) if 0 < width <= MAX_SIDE and 0 < height <= MAX_SIDE else None
    return None


def _decode(data: str) -> bytes:
    plain = data.translate(_PLAIN_BASE64)
    try:
        return binascii.a2b_base64(plain[: len(plain) // 4 * 4])
    except ValueError:  # corrupt, or not ASCII
        return b""


_PLAIN_BASE64: Final = str.maketrans({"-": "+", "_": "/", "\n": None, "\r": None, " ": None})


def _png(head: bytes) -> Size:
    width, height = struct.unpack_from(">II", head, 16)
    return width, height


def _gif(head: bytes) -> Size:
    width, height = struct.unpack_from("<HH", head, 6)
    return width, height


def _jpeg(head: bytes) -> Size:
    """Segment after segment up to the one that starts a frame (C0 to CF, without C4, C8 and CC)."""
    at = 2
    while True:
        while head[at + 1] == 0xFF:  # padding
            at += 1
        marker = head[at + 1]
        if head[at] != 0xFF:
            raise ValueError("no marker where one must be")
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack_from(">HH", head, at + 5)
            return width, height
        (length,) = struct.unpack_from(">H", head, at + 2)
        at += 2 + max(2, length)


def _webp(head: bytes) -> Size:
    form = head[12:16]
    if head[8:12] != b"WEBP":
        raise ValueError("another RIFF file")
    if form == b"VP8 ":
        width, height = struct.unpack_from("<HH", head, 26)
        return width & 0x3FFF, height & 0x3FFF
    if form == b"VP8L":
        (bits,) = struct.unpack_from("<I", head, 21)
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8X" and len(head) >= 30:
        return int.from_bytes(head[24:27], "little") + 1, int.from_bytes(head[27:30], "little") + 1
    raise ValueError("another WebP")


_READERS: Final[tuple[tuple[bytes, Callable[[bytes], Size]], ...]] = (
    (b"\x89PNG\r\n\x1a\n", _png),
    (b"\xff\xd8", _jpeg),
    (b"GIF8", _gif),
    (b"RIFF", _webp),
)


# --- formulas -----------------------------------------------------------------------------------------


def _fit(width: float, height: float, max_side: float) -> tuple[float, float]:
    scale = min(1.0, max_side / max(width, height))
    return width * scale, height * scale


def _patches(width: float, height: float, side: int, max_patches: int) -> int:
    """How many squares of `side` pixels cover the image, once it is so small that `max_patches` are enough."""
    count = math.ceil(width / side) * math.ceil(height / side)
    return min(count, max_patches)


def claude_image(width: int, height: int) -> int:
    """Patches of 28 pixels, at most 1,568 on the longer side and 1,568 patches. Qwen-VL and Mistral use the same
    squares, so this is also the formula for unknown models."""
    return _patches(*_fit(width, height, 1_568), side=28, max_patches=1_568)


def large_claude_image(width: int, height: int) -> int:
    """Claude Opus 4.7 and later: 2,576 pixels, 4,784 patches."""
    return _patches(*_fit(width, height, 2_576), side=28, max_patches=4_784)


def _tiles(width: int, height: int, base: int, each: int) -> int:
    """Squares of 512 pixels, once the image fits into 2,048 by 2,048 and its shorter side into 768."""
    wide, high = _fit(width, height, 2_048)
    scale = min(1.0, 768 / min(wide, high))
    return base + each * math.ceil(wide * scale / 512) * math.ceil(high * scale / 512)


def openai_tiles(width: int, height: int) -> int:
    """GPT-4o, GPT-4.1, o1, o3 at high detail."""
    return _tiles(width, height, base=85, each=170)


def gpt_5_tiles(width: int, height: int) -> int:
    return _tiles(width, height, base=70, each=140)


def openai_patches(width: int, height: int) -> int:
    """Later OpenAI models: patches of 32 pixels, at most 2,500, each 1.2 tokens."""
    return math.ceil(_patches(*_fit(width, height, 2_048), side=32, max_patches=2_500) * 1.2)


def gemini_tiles(width: int, height: int) -> int:
    """Up to Gemini 2.5: 258 for a small image, otherwise 258 for each square of 768 pixels."""
    if width <= 384 and height <= 384:
        return 258
    return 258 * math.ceil(width / 768) * math.ceil(height / 768)


def gemini_image(width: int, height: int) -> int:  # noqa: ARG001  every formula takes a size
    """Gemini 3 and later: the budget of the default resolution, whatever the size."""
    return 1_120


Formula = Callable[[int, int], int]

FORMULAS: Final[tuple[tuple[re.Pattern[str], Formula], ...]] = (
    (re.compile(r"gemini-[12]\b"), gemini_tiles),
    (re.compile(r"gemini"), gemini_image),
    (re.compile(r"gpt-4|\bo[13]\b"), openai_tiles),
    (re.compile(r"gpt-5(?![.\d]|-mini|-nano)"), gpt_5_tiles),
    (re.compile(r"gpt-|\bo\d\b|codex"), openai_patches),
    (re.compile(r"claude-(?:opus-4-[789]|[a-z]+-[5-9])"), large_claude_image),
)


def formula_of(model: str) -> Formula:
    name = model[:200].lower()
    return next((formula for pattern, formula in FORMULAS if pattern.search(name)), claude_image)
