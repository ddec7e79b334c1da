"""The prompt caches of simulated providers: which part of a prompt is read from a cache, and which is written to one.

    caches = PromptCaches()
    caches.use(blocks, profile.cache, CacheScope("key", "claude-opus-5"), now=0.0)  # CacheUse(0, 1200)

`protocols/` says in which order a provider reads a request; the rules are the group `cache` of its profile:

- `style = "markers"`: a marker writes the prompt up to it. It reads the longest entry that ends at its block or at most
  `lookback` blocks earlier, counting its own.
- `style = "automatic"`: every prompt is written, and the longest known beginning is read, in steps of `step_tokens`;
  without such steps, in whole blocks.

A prefix shorter than `min_tokens` is neither read nor written. Each use starts the time to live of an entry anew.
Caches belong to a key and a model, and to the conversation that a cache key or an affinity header names.
Law: no clock, and bounded memory: the entries used longest ago are dropped first.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from toolglot.jsontext import compact
from toolglot.profiles.rules import CacheRules

Section = Literal["tools", "system", "messages", "results"]

MAX_ENTRIES: Final = 50_000
_CHARACTERS_PER_TOKEN: Final = 4
_SECONDS: Final = {"m": 60, "h": 3600}


class PromptBlock(Struct, frozen=True, kw_only=True):
    """A piece of a prompt, in the order in which the provider reads it."""

    section: Section
    text: str
    """Its content, without markers. Its length is what it costs."""
    context: str = ""
    """What else must be the same for the cache to be read from here on: the role, and settings that the provider puts
    before this block."""
    marker: str | None = None
    """The time to live of the marker on it; empty: the marker has none; None: no marker."""


class CacheScope(Struct, frozen=True):
    """Whose cache it is."""

    account: str
    model: str
    conversation: str = ""
    """The cache key or the affinity header of the request."""


class CacheUse(Struct, frozen=True):
    """Tokens that came from a cache, and tokens that went into one."""

    read: int = 0
    written: int = 0


class _Prefix(Struct, frozen=True):
    digest: bytes
    tokens: int
    block: int
    """The index of the last block that it has something of."""


class _Entry(Struct, frozen=True):
    expires: float | None
    ttl: int | None


class PromptCaches:
    """All caches of a simulator."""

    def __init__(self, max_entries: int = MAX_ENTRIES) -> None:
        self._max_entries = max_entries
        self._entries: OrderedDict[bytes, _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def use(self, blocks: Sequence[PromptBlock], rules: CacheRules, scope: CacheScope, now: float) -> CacheUse:
        """Read and write the caches for one request."""
        if rules.style == "none" or not blocks:
            return CacheUse()
        step = rules.step_tokens if rules.style == "automatic" else 0
        prefixes = [prefix for prefix in _prefixes(blocks, scope, step) if prefix.tokens >= rules.min_tokens]
        if rules.style == "automatic":
            return self._use_automatic(prefixes, rules, now)
        return self._use_markers(prefixes, blocks, rules, now)

    def _use_automatic(self, prefixes: Sequence[_Prefix], rules: CacheRules, now: float) -> CacheUse:
        read = 0
        for prefix in prefixes:
            if not self._has(prefix, now):
                break
            read = prefix.tokens
        for prefix in prefixes:
            self._keep(prefix, rules.default_ttl_seconds, now)
        return CacheUse(read=read)

    def _use_markers(
        self, prefixes: Sequence[_Prefix], blocks: Sequence[PromptBlock], rules: CacheRules, now: float
    ) -> CacheUse:
        marked = [
            (index, prefix)
            for index, prefix in enumerate(prefixes)
            if blocks[prefix.block].marker is not None and blocks[prefix.block].section in rules.positions
        ]
        read = 0
        for index, _ in marked:
            first = 0 if rules.lookback is None else max(index - rules.lookback + 1, 0)
            found = next((prefix for prefix in reversed(prefixes[first : index + 1]) if self._has(prefix, now)), None)
            if found is not None:
                self._refresh(found, now)
                read = max(read, found.tokens)
        for _, prefix in marked:
            self._keep(prefix, _seconds(blocks[prefix.block].marker or "", rules), now)
        last = marked[-1][1].tokens if marked else 0
        return CacheUse(read=read, written=max(last - read, 0))

    def _has(self, prefix: _Prefix, now: float) -> bool:
        entry = self._entries.get(prefix.digest)
        return entry is not None and (entry.expires is None or now < entry.expires)

    def _refresh(self, prefix: _Prefix, now: float) -> None:
        self._keep(prefix, self._entries[prefix.digest].ttl, now)

    def _keep(self, prefix: _Prefix, ttl: int | None, now: float) -> None:
        self._entries[prefix.digest] = _Entry(None if ttl is None else now + ttl, ttl)
        self._entries.move_to_end(prefix.digest)
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)


def _seconds(ttl: str, rules: CacheRules) -> int | None:
    """The time to live that a marker asks for, if the provider has it; else the usual one."""
    return int(ttl[:-1]) * _SECONDS[ttl[-1]] if ttl in rules.ttls else rules.default_ttl_seconds


def _prefixes(blocks: Sequence[PromptBlock], scope: CacheScope, step_tokens: int) -> Iterator[_Prefix]:
    """The beginnings of a prompt that can be cached: after each step, or after each block if there are no steps."""
    hasher = hashlib.sha256(repr((scope.account, scope.model, scope.conversation)).encode("utf-8", "surrogatepass"))
    step, size = step_tokens * _CHARACTERS_PER_TOKEN, 0
    for index, block in enumerate(blocks):
        hasher.update(f"\0{block.section} {block.context}\0".encode("utf-8", "surrogatepass"))
        start = 0
        while step and len(block.text) - start >= (missing := step - size % step):
            hasher.update(block.text[start : start + missing].encode("utf-8", "surrogatepass"))
            start, size = start + missing, size + missing
            yield _Prefix(hasher.digest(), size // _CHARACTERS_PER_TOKEN, index)
        hasher.update(block.text[start:].encode("utf-8", "surrogatepass"))
        size += len(block.text) - start
        if not step:
            yield _Prefix(hasher.digest(), size // _CHARACTERS_PER_TOKEN, index)


# --- reading the blocks of a request ----------------------------------------------------------------


def plain_block(section: Section, value: Any, context: str = "", marker: str | None = None) -> PromptBlock:
    """A JSON value as a block. The order of its keys counts, as providers write it into the prompt."""
    return PromptBlock(section=section, text=compact(value), context=context, marker=marker)


def marked_block(section: Section, value: Any, context: str = "") -> PromptBlock:
    """A block with the markers that are fields `cache_control` in it, which are no part of the prompt."""
    markers: list[str] = []
    plain = _without_markers(value, markers)
    return plain_block(section, plain, context, markers[-1] if markers else None)


def in_message(message: dict[str, Any], blocks: list[PromptBlock]) -> list[PromptBlock]:
    """The blocks of a message; what is around its content counts with the first."""
    around = compact({**message, "content": []})
    return [replace(block, text=around + block.text) if not at else block for at, block in enumerate(blocks)]


def _without_markers(value: Any, markers: list[str]) -> Any:
    if not isinstance(value, dict):
        return value
    plain = {key: item for key, item in value.items() if key != "cache_control"}
    if isinstance(plain.get("content"), list):
        plain["content"] = [_without_markers(part, markers) for part in plain["content"]]
    if value.get("cache_control") is not None:
        markers.append(ttl_of(value["cache_control"]))
    return plain


def ttl_of(marker: Any) -> str:
    """The time to live that a marker asks for; empty: none."""
    ttl = marker.get("ttl") if isinstance(marker, dict) else None
    return ttl if isinstance(ttl, str) else ""


def as_list(value: Any) -> list[Any]:
    """The items of a list; one for anything else; none for null."""
    return value if isinstance(value, list) else [] if value is None else [value]
