"""Ids of tool calls: canonical ones, the seeds' prefix functions, and projection into a target's style.

Three things that must not be mixed up:

- `to_openai`, `to_history`, `to_anthropic`, `to_responses` and `translate` swap prefixes. They are pure,
  total and literal, and not injective (`toolu_a` and `call_a` meet). Rendering never uses them.
- `canonical` names a call once, when it is added to a history.
- `Projection` assigns every canonical id of one render an id that the target accepts.

Laws: `canonical` depends on its arguments alone. A projection is injective, assigns call and result the
same id, and depends only on earlier calls, so ids stay the same as a conversation grows.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Final, Literal, get_args

from msgspec.structs import replace

from toolglot.conversation.values import ToolCall
from toolglot.errors import InputError, ProfileError, quote, unknown_name
from toolglot.limits import MAX_NUMERIC_ID
from toolglot.profiles import MAX_NAME, Profile, resolve

__all__ = [
    "Policy",
    "Projection",
    "canonical",
    "is_canonical",
    "mint",
    "to_anthropic",
    "to_history",
    "to_openai",
    "to_responses",
    "translate",
]

HISTORY_PREFIX: Final = "hist_tool_"
CHAT_PREFIX: Final = "call_"
ANTHROPIC_PREFIX: Final = "toolu_"
RESPONSES_PREFIX: Final = "fc_"
PREFIXES: Final = (HISTORY_PREFIX, CHAT_PREFIX, ANTHROPIC_PREFIX, RESPONSES_PREFIX)
_BARE: Final = frozenset(PREFIXES)
_BY_HEAD: Final = {prefix.partition("_")[0]: prefix for prefix in PREFIXES}

SMUGGLED_MARK: Final = "__thought__"
"""Some proxies hide a Gemini signature in an id, behind this mark."""

_CANONICAL_SUFFIX = re.compile(r"[A-Za-z0-9_-]{1,32}")
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

# --- prefixes, as the seeds write them --------------------------------------------------------------


def to_openai(id: str) -> str:
    """Seed 000: any id with the prefix `call_`."""
    return _swap(id, CHAT_PREFIX, (HISTORY_PREFIX, ANTHROPIC_PREFIX))


def to_history(id: str) -> str:
    """Seed 000: any id with the prefix `hist_tool_`."""
    return _swap(id, HISTORY_PREFIX, (CHAT_PREFIX, ANTHROPIC_PREFIX))


def to_anthropic(id: str) -> str:
    """Seeds 001 and 002: any id with the prefix `toolu_`."""
    return _swap(id, ANTHROPIC_PREFIX, (HISTORY_PREFIX, CHAT_PREFIX, RESPONSES_PREFIX))


def to_responses(id: str) -> str:
    """Seed 002: any id with the prefix `fc_`."""
    return _swap(id, RESPONSES_PREFIX, (CHAT_PREFIX, ANTHROPIC_PREFIX))


_TRANSLATE_TO: Final = {
    **{prefix: prefix for prefix in PREFIXES},
    "history": HISTORY_PREFIX,
    "openai": CHAT_PREFIX,
    "anthropic": ANTHROPIC_PREFIX,
    "openai_responses": RESPONSES_PREFIX,
}


def translate(id: str, *, to: str) -> str:
    """Swap any known prefix for another: the full matrix of `hist_tool_ call_ toolu_ fc_`.

    `to` is one of these prefixes, or `history`, `openai`, `anthropic`, `openai_responses`.
    """
    if not isinstance(to, str):
        raise InputError(f"expected a string, got {quote(to)}", path="to")
    prefix = _TRANSLATE_TO.get(to) or _TRANSLATE_TO.get(resolve(to))
    if prefix is None:
        raise unknown_name("id form", to, _TRANSLATE_TO, path="to")
    return _swap(id, prefix, PREFIXES)


def prefix_of(id: str) -> str:
    """The known prefix that an id has; empty: none."""
    prefix = _BY_HEAD.get(id.partition("_")[0], "")
    return prefix if id.startswith(prefix) else ""


def are_alike(id: str, other: str) -> bool:
    """Whether two ids differ in their known prefixes at most."""
    return id[len(prefix_of(id)) :] == other[len(prefix_of(other)) :]


def _swap(id: str, prefix: str, others: tuple[str, ...]) -> str:
    if not isinstance(id, str):
        raise InputError(f"expected a string, got {quote(id)}", path="id")
    if id.startswith(prefix):
        return id
    for other in others:
        if id.startswith(other):
            return prefix + id[len(other) :]
    return prefix + id


# --- canonical ids ----------------------------------------------------------------------------------


def is_canonical(id: str) -> bool:
    """Whether an id is one that a history may keep as it is."""
    return id.startswith(HISTORY_PREFIX) and bool(_CANONICAL_SUFFIX.fullmatch(id, len(HISTORY_PREFIX)))


def canonical(provider: str, raw_id: str | int | None, tool_name: str | None, turn_key: str, call_index: int) -> str:
    """The canonical id of a call; an id that is canonical already is returned as it is.

    `provider` is the one that made the call, even if another gets the conversation later. Its name is hashed and not
    looked up, so that calls that were stored under a name of before keep their ids. A missing raw id or name is None.
    """
    if isinstance(raw_id, str):
        if raw_id.startswith(HISTORY_PREFIX) and is_canonical(raw_id):
            return raw_id
    elif isinstance(raw_id, int):
        if abs(raw_id) > MAX_NUMERIC_ID:
            raise InputError("a number with too many digits for an id", path="raw_id", hint="a string")
    elif raw_id is not None:
        raise InputError(f"expected a string or None, got {quote(raw_id)}", path="raw_id")
    if tool_name is not None and not isinstance(tool_name, str):
        raise InputError(f"expected a string or None, got {quote(tool_name)}", path="tool_name")
    return mint(provider, raw_id, tool_name, turn_key, call_index)


def mint(provider: str, raw_id: str | int | None, tool_name: str | None, turn_key: str, call_index: int) -> str:
    """A canonical id from the five fields, also where the raw id looks canonical."""
    if call_index.__class__ is not int or call_index < 0:
        raise InputError("expected a whole number from 0", path="call_index")
    if provider.__class__ is not str or turn_key.__class__ is not str:
        _refuse_other_types(provider=provider, turn_key=turn_key)
    name = _hashed_name(provider)
    key = f"{name}|{'' if raw_id is None else raw_id}|{tool_name or ''}|{turn_key}|{call_index}"
    if key.count("|") != 4:
        fields = (name, "" if raw_id is None else raw_id, tool_name or "", turn_key, call_index)
        key = "|" + "|".join(f"{len(_bytes(str(field)))}:{field}" for field in fields)
    try:
        digest = sha256(key.encode()).digest()
    except UnicodeEncodeError:
        digest = sha256(_bytes(key)).digest()
    return HISTORY_PREFIX + b2a_base64(digest[:18], newline=False).translate(_URL_SAFE).decode("ascii")


def _refuse_other_types(**fields: object) -> None:
    """Refuses the first of these fields that is not a string."""
    for field, value in fields.items():
        if not isinstance(value, str):
            raise InputError(f"expected a string, got {quote(value)}", path=field)


@lru_cache(maxsize=1024)
def _hashed_name(provider: str) -> str:
    if not provider.strip() or len(provider) > MAX_NAME:
        raise InputError("expected the provider that made the call", path="provider")
    return resolve(provider)


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


# --- projection -------------------------------------------------------------------------------------

Policy = Literal["reversible", "canonical"]
Digest = Callable[[bytes], bytes]

SALTS: Final = 64
"""How often a colliding id is hashed again before ids are counted up instead."""

MAX_STEPS: Final = 100_000
"""How far ids are counted up; only a pattern that almost no id matches needs more."""

HASH_LENGTH: Final = 24


_POLICIES: Final = get_args(Policy)
_compiled = lru_cache(maxsize=256)(re.compile)
_CLASS: Final = re.compile(r"(\\S|\[[^\\\[\]]+\])\+")
"""A pattern of any number of characters of one class: strings match it one by one if they match it joined."""


@lru_cache(maxsize=256)
def _is_of_class(pattern: str) -> bool:
    return _CLASS.fullmatch(pattern) is not None


def _sha256(data: bytes) -> bytes:
    return sha256(data).digest()


def _base62(number: int, length: int) -> str:
    digits = []
    for _ in range(length):
        number, digit = divmod(number, 62)
        digits.append(_BASE62[digit])
    return "".join(digits)


class Projection:
    """The ids of one render: canonical id → an id that the target accepts.

    Calls are added in the order of the conversation. Each gets the first of these that is legal and
    free: (1) the id that the target itself gave the call; (2) under the policy
    `reversible`, the raw id with its known prefix swapped, or as it is if it has none; (3) the
    target's style over the canonical suffix; (4) a salted hash, counted up as a last resort.
    """

    def __init__(
        self,
        profile: Profile,
        *,
        policy: Policy = "reversible",
        prefix: str | None = None,
        digest: Digest = _sha256,
        canonical_id: Callable[[str], str] | None = None,
        issuer: str = "",
        keeps_legal: bool = True,
    ) -> None:
        """`canonical_id` returns the canonical id of a call that has its native id, which `issuer` made.

        keeps_legal: False for ids that must be distinct beyond this projection, as those of a reply must be: some hosts
        start to number calls again in each.
        """
        if not isinstance(profile, Profile):
            raise InputError(f"expected a Profile, got {quote(profile)}", path="profile", hint="profiles.get(name)")
        if policy not in _POLICIES:
            raise InputError(f"expected reversible or canonical, got {quote(policy)}", path="policy")
        rules = profile.ids
        self._target = profile.name
        self._swaps_prefixes = policy == "reversible" and rules.style == "prefixed"
        self._keeps_legal = policy == "reversible" and keeps_legal
        self._style = rules.style
        self._is_written = rules.written
        self._prefix = rules.prefix if prefix is None else prefix
        self._max_length = rules.max_length
        self._fixed_length = rules.fixed_length
        self._min_length = (
            rules.fixed_length if rules.style == "fixed" and rules.max_length <= rules.fixed_length else 0
        )
        self._legal = _compiled(rules.pattern)
        self._digest = digest
        self._canonical_id = canonical_id
        self._is_native_issuer = bool(issuer) and resolve(issuer) == self._target
        self._emitted: dict[str, str] = {}
        self._canonical: dict[str, str] = {}
        self._number_after: dict[int, int] = {}
        self._next_ordinal = 0
        self._next_free_ordinal = 0
        """For a call whose own number is taken. It does not move the numbers of the calls that follow (law 5)."""

    @property
    def format(self) -> str:
        """The id format chosen, for the report."""
        if not self._is_written:
            return "none"
        if self._style == "ordinal":
            return "functions.{name}:{n}"
        if self._style == "fixed":
            return f"{self._fixed_length} alphanumerics"
        return f"{self._prefix}…"

    @property
    def prefix(self) -> str:
        """How new ids begin."""
        return self._prefix

    def adopt(self, ids: Iterable[str]) -> bool:
        """Use the target's own ids as they are, if all of them are legal; otherwise change nothing."""
        if not self._is_native_issuer or self._style == "ordinal" or self._emitted:
            return False
        emitted = {id: id for id in ids}
        if not self._are_legal(emitted):
            return False
        self._emitted = emitted
        self._canonical = emitted.copy()
        return True

    def swap(self, ids: Sequence[str]) -> Mapping[str, str] | None:
        """Swap the prefixes of foreign ids, if that is legal for all of them: the same as `add` for each, at once."""
        if self._is_native_issuer or not self._swaps_prefixes or self._emitted or self._canonical_id is None:
            return None
        first = prefix_of(ids[0]) if ids else ""
        has_one = len([id for id in ids if id.startswith(first)]) == len(ids)
        prefixes = [first] * len(ids) if has_one else list(map(prefix_of, ids))
        if "" in prefixes or SMUGGLED_MARK in " ".join(ids):
            return None
        new = self._prefix
        emitted = {id: new + id[len(prefix) :] for id, prefix in zip(ids, prefixes, strict=True)}
        back = dict(zip(emitted.values(), emitted, strict=True))
        if len(back) != len(ids) or not _BARE.isdisjoint(emitted):
            return None
        if not self._are_legal(back):
            return None
        self._emitted, self._canonical = emitted, back
        return emitted

    def _are_legal(self, ids: Collection[str]) -> bool:
        lengths = set(map(len, ids))
        if lengths and (max(lengths) > self._max_length or min(lengths) < self._min_length):
            return False
        if len(ids) > 1 and "" not in ids and _is_of_class(self._legal.pattern):
            return self._legal.fullmatch("".join(ids)) is not None
        return all(map(self._legal.fullmatch, ids))

    def add(self, call: ToolCall, *, name: str | None = None) -> str:
        """The emitted id of a call. `name` is the tool's name as rendered, where it was renamed."""
        known = self._emitted.get(call.id)
        if known is not None:
            return known
        emitted = self._first_free(call, call.name if name is None else name)
        self._emitted[call.id] = emitted
        self._canonical[emitted] = call.id
        return emitted

    def __getitem__(self, canonical_id: str) -> str:
        return self._emitted[canonical_id]

    def __contains__(self, canonical_id: object) -> bool:
        return canonical_id in self._emitted

    def __len__(self) -> int:
        return len(self._emitted)

    def canonical_of(self, emitted: str) -> str | None:
        """The call that an emitted id means; None for an id that this render did not assign."""
        return self._canonical.get(emitted)

    def _first_free(self, call: ToolCall, name: str) -> str:
        native = self._native(call) or self._reversible(call) or self._legal_as_it_is(call)
        if native is not None:
            if self._style == "ordinal":
                self._count_ordinal(call)
            return native
        if self._style == "ordinal":
            return self._ordinal(call, name)
        if self._canonical_id is not None:
            call = replace(call, id=self._canonical_id(call.id))
        styled = self._styled(call)
        if styled is not None and self._is_free(styled):
            return styled
        return self._hashed(call)

    def _is_free(self, id: str) -> bool:
        return id not in self._canonical and self._is_legal(id)

    def _is_legal(self, id: str) -> bool:
        return self._min_length <= len(id) <= self._max_length and self._legal.fullmatch(id) is not None

    def _native(self, call: ToolCall) -> str | None:
        origin = call.metadata
        if origin is None:
            return call.id if self._is_native_issuer and self._is_free(call.id) else None
        if origin.raw_id is None or origin.issuer is None:
            return None
        is_native = resolve(origin.issuer.provider) == self._target
        return origin.raw_id if is_native and self._is_free(origin.raw_id) else None

    def _raw(self, call: ToolCall) -> str | None:
        """The id under which the call came."""
        return call.metadata.raw_id if call.metadata is not None else call.id if self._canonical_id else None

    def _legal_as_it_is(self, call: ToolCall) -> str | None:
        """A foreign id that the target accepts, that no earlier call has, and that has no provider's prefix."""
        raw = self._raw(call)
        if raw is None or not self._keeps_legal or prefix_of(raw) or SMUGGLED_MARK in raw:
            return None
        return raw if self._is_free(raw) else None

    def _reversible(self, call: ToolCall) -> str | None:
        raw = self._raw(call)
        if raw is None or not self._swaps_prefixes or SMUGGLED_MARK in raw:
            return None
        prefix = prefix_of(raw)
        if not prefix or len(raw) == len(prefix):
            return None
        swapped = self._prefix + raw[len(prefix) :]
        return swapped if self._is_free(swapped) else None

    def _styled(self, call: ToolCall) -> str | None:
        if self._style == "fixed":
            return self._hash(call.id, self._fixed_length)
        return self._prefix + call.id[len(HISTORY_PREFIX) :] if is_canonical(call.id) else None

    def _hashed(self, call: ToolCall) -> str:
        if self._style == "fixed":
            prefix, length = "", self._fixed_length
        else:
            length = min(HASH_LENGTH, self._max_length - len(self._prefix))
            prefix = self._prefix if length >= 9 else ""
            length = length if prefix else min(HASH_LENGTH, self._max_length)
        any_legal = False
        for salt in range(SALTS):
            candidate = prefix + self._hash(f"{call.id}|{salt}", length)
            if self._is_free(candidate):
                return candidate
            any_legal = any_legal or self._is_legal(candidate)
        if not any_legal:
            raise self._no_legal_id()
        return self._count_up(self._number(call.id), prefix, length)

    def _count_up(self, number: int, prefix: str, length: int) -> str:
        """The first free id from a number on. Numbers that were passed are not tried again."""
        passed: list[int] = []
        for _ in range(MAX_STEPS):
            candidate = prefix + _base62(number, length)
            is_free = number not in self._number_after and self._is_free(candidate)
            passed.append(number)
            number = self._number_after.get(number, number + 1)
            if is_free:
                self._number_after.update(dict.fromkeys(passed, number))
                return candidate
        raise self._no_legal_id()

    def _no_legal_id(self) -> ProfileError:
        return ProfileError(
            f"no free id of style {self._style!r} matches the pattern {self._legal.pattern!r}",
            path=f"{self._target}: ids.pattern",
            hint="change ids.style, ids.prefix or ids.pattern",
        )

    def _number(self, text: str) -> int:
        return int.from_bytes(self._digest(_bytes(text)), "big")

    def _hash(self, text: str, length: int) -> str:
        return _base62(self._number(text), length)

    def _count_ordinal(self, call: ToolCall) -> int:
        """The call's number in the conversation, and no lower than any before it where it has none."""
        recorded = call.metadata.ordinal if call.metadata is not None else None
        ordinal = self._next_ordinal if recorded is None else recorded
        self._next_ordinal = max(self._next_ordinal, ordinal + 1)
        return ordinal

    def _ordinal(self, call: ToolCall, name: str) -> str:
        ordinal = self._count_ordinal(call)
        if not self._is_legal(f"functions.{name}:{ordinal}"):
            name = "tool_" + self._hash(name, 8)
        candidate = f"functions.{name}:{ordinal}"
        while candidate in self._canonical:
            free = max(self._next_free_ordinal, self._next_ordinal)
            candidate = f"functions.{name}:{free}"
            self._next_free_ordinal = free + 1
        if not self._is_legal(candidate):
            raise self._no_legal_id()
        return candidate
