"""The paths of a provider's other services, which the gateway passes through: which run a model, which store something.

    paths = get("openai_chat").passed
    paths.match("files/file-1/content")       # (the collection "files", ["file-1", "content"])
    paths.model_call("images/edits")          # a match: it runs a model, and stores nothing

Paths are those below the version, without escapes. A path that is not described here can be anything: it is passed
through only if all clients may see all of the provider's data.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, Literal

from msgspec import Struct

SEGMENT: Final = re.compile(r"[A-Za-z0-9_.:~@-]{1,300}")
"""A part of a path that every server reads in the same way."""


class StoredCollection(Struct, frozen=True):
    """Objects that a provider stores, such as files."""

    path: str
    """`*` is any one part."""
    runs_model: bool = False
    """Whether creating an object runs a model, or is for one."""
    batch: Literal["", "file", "inline"] = ""
    """Where the requests of a batch are: in a file that was uploaded, or in the request that creates it."""
    holds_requests: bool = False
    """Whether objects may be files with the requests of a batch."""


class PassedPaths(Struct, frozen=True, kw_only=True):
    """The paths of a provider's other services, below its version."""

    stateless: str = ""
    """A regular expression: POSTs that run a model and store nothing; the group `model` is the model in the path."""
    starting: str = ""
    """The same for POSTs that start something, whose object is in one of the collections."""
    collections: tuple[StoredCollection, ...] = ()
    references: frozenset[str] = frozenset()
    """Fields of requests, and names in queries, that name stored objects."""
    results: frozenset[str] = frozenset()
    """Fields of a stored object with the ids of objects that its provider made for it."""
    cursor: str = "after"
    """The name in a query of the object after which a list begins."""
    is_named_by_path: bool = False
    """Whether an object's id is its path, in the field `name`; otherwise it is a string of its own, in `id`."""

    def match(self, path: str) -> tuple[StoredCollection, list[str]] | None:
        """The collection that a path leads to, and the rest of the path; None: to none."""
        parts = path.split("/")
        if not all(SEGMENT.fullmatch(part) for part in parts):
            return None
        found = [each for each in self.collections if _begins(parts, each.path.split("/"))]
        if not found:
            return None
        chosen = max(found, key=lambda each: each.path.count("/"))
        return chosen, parts[chosen.path.count("/") + 1 :]

    def object_id(self, path: str) -> str:
        """The id of the object that a path leads to; empty: to none."""
        found = self.match(path)
        if found is None or not found[1]:
            return ""
        if not self.is_named_by_path:
            return found[1][0]
        parts = path.split("/")[: found[0].path.count("/") + 2]
        return "/".join(parts).partition(":")[0]

    def model_call(self, path: str) -> re.Match[str] | None:
        """The match of a path where a POST runs a model and stores nothing."""
        return _compiled(self.stateless).fullmatch(path) if self.stateless else None

    def start(self, path: str) -> re.Match[str] | None:
        """The match of a path where a POST starts something."""
        return _compiled(self.starting).fullmatch(path) if self.starting else None


def _begins(parts: list[str], pattern: list[str]) -> bool:
    return len(parts) >= len(pattern) and all(own in ("*", part) for part, own in zip(parts, pattern, strict=False))


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
