"""The files of the inspector's page, and the headers that keep it to itself.

    found = page_file("index.html", if_none_match)
    found.status, found.headers, found.data

Laws: a closed list: only files that are in the folder of the page, by names that were listed, never by a path that was
put together. The page may load nothing but its own files, may not be framed, and runs no script that is written into
it.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from pathlib import Path
from typing import Final

from msgspec import Struct

FOLDER: Final = Path(__file__).with_name("page")
INDEX: Final = "index.html"
TYPES: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".json": "application/json",
    ".txt": "text/plain; charset=utf-8",
}
"""Which files are served, and their content types."""
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data: blob:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
SAFETY: Final = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
"""Headers of everything that the inspector serves."""


class PageFile(Struct, frozen=True):
    """A file as it is served."""

    status: int
    headers: dict[str, str]
    data: bytes


def page_names() -> dict[str, Path]:
    """The files of the page, by their names in it: `app.js`, `vendor/preact.js`."""
    return {
        path.relative_to(FOLDER).as_posix(): path
        for path in sorted(FOLDER.rglob("*"))
        if path.suffix in TYPES and path.is_file() and not path.is_symlink()
    }


def page_file(name: str, if_none_match: str = "") -> PageFile | None:
    """A file of the page; None: there is none of this name."""
    path = page_names().get(name)
    if path is None:
        return None
    found = path.stat()
    data, tag = _read(path, found.st_mtime_ns, found.st_size)
    headers = {**SAFETY, "content-type": TYPES[path.suffix], "etag": tag, "cache-control": "no-cache"}
    if tag in [each.strip() for each in if_none_match.split(",")]:
        return PageFile(304, headers, b"")
    return PageFile(200, headers, data)


@lru_cache(maxsize=128)
def _read(path: Path, _changed: int, _size: int) -> tuple[bytes, str]:
    data = path.read_bytes()
    return data, f'"{hashlib.sha256(data).hexdigest()[:32]}"'
