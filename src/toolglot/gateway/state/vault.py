"""The vault: what a provider signed or encrypted and the client's protocol cannot carry, kept until it is needed.

    vault.keep(client, received, out, said, told)       # after a reply
    await vault.recall(client, received, target, home)   # before the next request

A model's turn is known by a hash of everything that was said up to it, so that the client's own history finds it again;
and by the id of its first call, where that is one of a kind, so that it is found when what came before was cut. Of the
turn only what is opaque is kept, and the lengths of what the client has.

Laws: what one client key put in, no other gets out. A turn that the client has changed gets nothing back but what is
bound to a single call. What comes back carries its issuer, so that the renderer sends it there and nowhere else (12).
"""

from __future__ import annotations

import hashlib
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Block, Conversation, Extra, Issuer, Reply, Text, Thinking, ToolCall, ToolResult, Turn
from toolglot.conversation.report import Entry
from toolglot.gateway.http.offloading import WorkOffloader, at_once
from toolglot.profiles import Profile
from toolglot.protocols.base import get
from toolglot.store import Store

KIND: Final = "vault"
MOST_REMEMBERED: Final = 16 * 1024 * 1024
"""Bytes of turns that are kept in memory besides, so that a conversation that goes on costs no look at the disk."""
HELD: Final = 1_000
"""Bytes that a remembered turn takes beyond those that it has on disk: its objects and its keys."""
MOST_SPOILED: Final = 10_000
AT_ONCE: Final = 5_000
"""Keys that the store is asked for in one call."""
MOST_BYTES: Final = 1_000_000
"""Of one turn. One whose thinking is longer is not kept."""
_DULL: Final = frozenset({"id", "status"})
"""Fields of a provider's own that say nothing without the rest."""


class KeptText(Struct, frozen=True, array_like=True, tag="t"):
    length: int
    signature: str | None = None
    extra: Extra | None = None


class KeptCall(Struct, frozen=True, array_like=True, tag="c"):
    id: str
    """As the client knows it."""
    native_id: str
    signature: str | None = None
    extra: Extra | None = None


class KeptThinking(Struct, frozen=True, array_like=True, tag="k"):
    block: Thinking


class KeptTurn(Struct, frozen=True):
    """A model's turn as its provider wants it back."""

    issuer: Issuer
    said: bytes
    """A hash of its words."""
    blocks: tuple[KeptText | KeptCall | KeptThinking, ...]


LOOK_AGAIN: Final = 600.0
"""Seconds after which what came from the store is looked up there again."""
_NOTHING: Final[tuple[KeptTurn | None, int, float]] = (None, 0, 0.0)
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(KeptTurn)


class Vault:
    """What is kept for all clients."""

    def __init__(self, store: Store | None, *, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock
        self._recent: OrderedDict[tuple[str, str], tuple[KeptTurn, int, float]] = OrderedDict()
        self._recent_size = 0
        self._spoiled: OrderedDict[tuple[str, str], Issuer] = OrderedDict()
        self.hits: int = 0
        self.misses: int = 0
        """Turns of models for which something was kept, and those for which nothing was."""

    def serves(self, source: Profile, target: Profile, *, is_renamed: bool = False) -> bool:
        """Whether there is something between these two that the client cannot bring back.

        is_renamed: the client knows the model by another name. Then it cannot be told from what it brings who made it.
        """
        if target.reasoning.carrier == "none":
            return False
        return is_renamed or source.protocol != target.protocol or not get(source.protocol).returns_opaque

    # --- before a request ---------------------------------------------------------------------------

    def may_recall(self, conversation: Conversation, source: Profile, target: Profile, home: Issuer) -> bool:
        """Whether `recall` may have something to give or to take."""
        if self._spoiled:
            return True
        return self.serves(source, target, is_renamed=conversation.model != home.model)

    async def recall(
        self,
        client: str,
        conversation: Conversation,
        source: Profile,
        target: Profile,
        home: Issuer,
        apart: WorkOffloader = at_once,
    ) -> tuple[Conversation, list[Entry]]:
        """The conversation with what was kept of its turns, and without what this provider has refused before."""
        serves = self.serves(source, target, is_renamed=conversation.model != home.model)
        if not serves and not self._spoiled:
            return conversation, []
        keys = await apart(lambda: dict(keys_of(conversation.turns)))
        spoiled = {place for place, (key, *_) in keys.items() if self._spoiled.get((client, key)) == home}
        wanted = {place: some for place, some in keys.items() if place not in spoiled} if serves else {}
        entries: list[Entry] = []
        if wanted:
            mark = _mark_of(home)
            wanted = {place: tuple([key + mark for key in some]) for place, some in wanted.items()}
            found = await self._find(client, [key for some in wanted.values() for key in some])
            kept = {place: next((found[key] for key in some if key in found), None) for place, some in wanted.items()}
            hits = len(kept) - [*kept.values()].count(None)
            self.hits, self.misses = self.hits + hits, self.misses + len(kept) - hits
            conversation, entries = _restored(conversation, kept)
        if spoiled:
            conversation, dropped = without_opaque(conversation, spoiled)
            entries += dropped
        return conversation, entries

    async def _find(self, client: str, keys: Sequence[str]) -> dict[str, KeptTurn]:
        found: dict[str, KeptTurn] = {}
        unknown: list[str] = []
        now = self._clock()
        for key in keys:
            turn, _, until = self._recent.get((client, key), _NOTHING)
            if turn is not None and until > now:
                found[key] = turn
            else:
                unknown.append(key)
        if self._store is None:
            return found
        for at in range(0, len(unknown), AT_ONCE):
            for key, data in (await self._store.find(KIND, client, unknown[at : at + AT_ONCE])).items():
                try:
                    found[key] = _DECODER.decode(data)
                except msgspec.MsgspecError:
                    continue  # of another version: as if it had not been kept
                self._remember(client, key, found[key], len(data), now + LOOK_AGAIN)
        return found

    def _remember(self, client: str, key: str, turn: KeptTurn, size: int, until: float) -> None:
        size += HELD
        self._recent_size += size - self._recent.pop((client, key), _NOTHING)[1]
        self._recent[client, key] = (turn, size, until)
        while self._recent_size > MOST_REMEMBERED:
            self._recent_size -= self._recent.popitem(last=False)[1][1]

    # --- after a reply ------------------------------------------------------------------------------

    async def keep(
        self, client: str, asked: Conversation, said: Reply, told: Reply, issuer: Issuer, apart: WorkOffloader = at_once
    ) -> bool:
        """Keep what the client will not bring back of a reply; whether there was anything.

        said: the reply in the provider's own words; told: as the client got it.
        """
        turn = _kept(said.turn, told.turn, issuer)
        if turn is None:
            return False
        try:
            data = _ENCODER.encode(turn)
        except OverflowError:  # a number that only its provider could have meant: the turn is not kept, as a large one
            return False
        if len(data) > MOST_BYTES:
            return False
        mark = _mark_of(issuer)
        keys = [key + mark for key in await apart(lambda: keys_after(asked.turns, told.turn))]
        until = self._clock() + self._seconds
        for key in keys:
            self._remember(client, key, turn, len(data), until)
        if self._store is not None:
            await self._store.keep(KIND, client, dict.fromkeys(keys, data), until=until)
        return True

    # --- what was refused ---------------------------------------------------------------------------

    def spoil(self, client: str, conversation: Conversation, home: Issuer) -> None:
        """The provider refuses what these turns hold of its own: they go there without it from now on."""
        for _, (key, *_) in keys_of(conversation.turns):
            self._spoiled[client, key] = home
            self._spoiled.move_to_end((client, key))
        while len(self._spoiled) > MOST_SPOILED:
            self._spoiled.popitem(last=False)


# --- keys -------------------------------------------------------------------------------------------


def keys_of(turns: Sequence[Turn]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The place of each of the model's turns, and its keys, the surest first."""
    hashed = _Prefix()
    for place, turn in enumerate(turns):
        hashed.add(turn)
        if turn.role == "assistant":
            yield place, (hashed.key, *_call_keys(turn))


def keys_after(turns: Sequence[Turn], answer: Turn) -> tuple[str, ...]:
    """The keys of the turn that answers these."""
    hashed = _Prefix()
    for turn in (*turns, answer):
        hashed.add(turn)
    return (hashed.key, *_call_keys(answer))


def _mark_of(issuer: Issuer) -> str:
    """What tells the turns of one provider from those of others that said the same."""
    said = f"{issuer.provider}\0{issuer.endpoint}\0{issuer.account}"
    return "@" + hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()


def _call_keys(turn: Turn) -> tuple[str, ...]:
    """The key of a turn by its first call, unless other conversations may have a call of that id too."""
    first = next((block for block in turn.blocks if isinstance(block, ToolCall)), None)
    return (_call_key(first),) if first is not None and _ONE_OF_A_KIND.fullmatch(first.id) else ()


_ONE_OF_A_KIND: Final = re.compile(r"(?!functions\.)(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z]{0,16}[_-]?[A-Za-z0-9_-]{9,}")
"""Ids that were made by chance or from a hash, not counted up."""


def _call_key(call: ToolCall) -> str:
    return (
        "call:"
        + hashlib.blake2b(f"{call.id}\0{call.name}".encode("utf-8", "surrogatepass"), digest_size=18).hexdigest()
    )


class _Prefix:
    """A hash of what can be seen of a conversation so far, whoever writes it down and in which protocol."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=18)

    def add(self, turn: Turn) -> None:
        if turn.role in ("system", "developer"):
            return
        said = ["assistant" if turn.role == "assistant" else "user"]
        for block in turn.blocks:
            if isinstance(block, Text):
                said.append(block.text.strip())
            elif isinstance(block, ToolCall):
                said.append(f"\1{block.name}")
            elif isinstance(block, ToolResult):
                said.append(f"\2{block.text.strip()}")
        self._hash.update("\0".join([word for word in said if word]).encode("utf-8", "surrogatepass"))

    @property
    def key(self) -> str:
        return "said:" + self._hash.hexdigest()


# --- what is kept of a turn -------------------------------------------------------------------------


def _said(turn: Turn) -> bytes:
    return hashlib.blake2b(_words(turn).encode("utf-8", "surrogatepass"), digest_size=18).digest()


def _words(turn: Turn) -> str:
    return turn.text


def _kept(said: Turn, told: Turn, issuer: Issuer) -> KeptTurn | None:
    """What the provider wants back of a turn; None where the client has all of it."""
    if len(said.calls) != len(told.calls) or said.text != told.text or not any(map(_is_opaque, said.blocks)):
        return None
    client_ids = iter([call.id for call in told.calls])
    blocks: list[KeptText | KeptCall | KeptThinking] = []
    for block in said.blocks:
        if isinstance(block, Text):
            blocks.append(KeptText(len(block.text), block.signature, block.extra))
        elif isinstance(block, ToolCall):
            blocks.append(KeptCall(next(client_ids), block.id, block.signature, block.extra))
        elif isinstance(block, Thinking):
            blocks.append(KeptThinking(block))
    return KeptTurn(issuer, _said(told), tuple(blocks))


def _is_opaque(block: Block) -> bool:
    if isinstance(block, Thinking):
        return True
    if not isinstance(block, Text | ToolCall):
        return False
    own: set[str] = {key for fields in (block.extra or {}).values() for key in fields}
    return block.signature is not None or not own <= _DULL


def _restored(conversation: Conversation, kept: Mapping[int, KeptTurn | None]) -> tuple[Conversation, list[Entry]]:
    turns = list(conversation.turns)
    taken = {call.id for turn in turns for call in turn.calls}
    renamed: dict[str, str] = {}
    count = 0
    for place, turn in kept.items():
        blocks = _rebuilt(turns[place], turn, taken, renamed) if turn is not None else None
        if turn is not None and blocks is not None:
            turns[place] = replace(turns[place], blocks=blocks, issuer=turn.issuer)
            count += 1
    if not count:
        return conversation, []
    if renamed:
        turns = [_with_renamed_results(turn, renamed) for turn in turns]
    reason = f"what the provider signed or encrypted was put back into {count} of its turns"
    return replace(conversation, turns=tuple(turns)), [Entry(action="added", reason=reason, fault="policy")]


def _rebuilt(turn: Turn, kept: KeptTurn, taken: set[str], renamed: dict[str, str]) -> tuple[Block, ...] | None:
    """The blocks of a turn as its provider knows them; None where the client has changed what it said."""
    calls = iter(turn.calls)
    known = [block for block in kept.blocks if isinstance(block, KeptCall)]
    text = _words(turn)
    if not _are_the_same(turn.calls, known) or _said(turn) != kept.said:
        return None
    if any(not isinstance(block, Text | Thinking | ToolCall) for block in turn.blocks):
        return None
    extras = next((block.extra for block in turn.blocks if isinstance(block, Text)), None)
    blocks: list[Block] = []
    at = 0
    for block in kept.blocks:
        if isinstance(block, KeptThinking):
            blocks.append(block.block)
        elif isinstance(block, KeptText):
            words, at = text[at : at + block.length], at + block.length
            blocks.append(Text(words, block.signature, _joined(extras, block.extra)))
        else:
            blocks.append(_rebuilt_call(next(calls), block, taken, renamed))
    return tuple(blocks)


def _are_the_same(calls: Sequence[ToolCall], known: Sequence[KeptCall]) -> bool:
    """Whether these are the calls that were kept. One without an id may have been given one by the client."""
    if len(calls) != len(known):
        return False
    return all(call.id == kept.id or not kept.id for call, kept in zip(calls, known, strict=True))


def _rebuilt_call(call: ToolCall, kept: KeptCall, taken: set[str], renamed: dict[str, str]) -> ToolCall:
    """A call under the provider's own id for it, unless another call has that."""
    id = call.id
    if kept.native_id.strip() and kept.native_id != call.id and kept.native_id not in taken:
        id = renamed[call.id] = kept.native_id
        taken.add(id)
    return replace(call, id=id, signature=kept.signature, extra=_joined(call.extra, kept.extra))


def _joined(one: Extra | None, other: Extra | None) -> Extra | None:
    return {**(one or {}), **other} if other else one


def _with_renamed_results(turn: Turn, renamed: dict[str, str]) -> Turn:
    if not any(result.call_id in renamed for result in turn.results):
        return turn
    blocks: list[Any] = [
        replace(block, call_id=renamed[block.call_id])
        if isinstance(block, ToolResult) and block.call_id in renamed
        else block
        for block in turn.blocks
    ]
    return replace(turn, blocks=tuple(blocks))


def without_opaque(conversation: Conversation, places: set[int] | None = None) -> tuple[Conversation, list[Entry]]:
    """The conversation without what only a provider can read, in these turns or in all."""
    turns = list(conversation.turns)
    count = 0
    for place, turn in enumerate(turns):
        if turn.role != "assistant" or (places is not None and place not in places):
            continue
        blocks = tuple([_bare(block) for block in turn.blocks if not isinstance(block, Thinking)])
        if blocks != turn.blocks:
            turns[place] = replace(turn, blocks=blocks)
            count += 1
    if not count:
        return conversation, []
    reason = f"thinking and signatures that the provider refused were left out of {count} turns"
    entry = Entry(action="dropped", reason=reason, fault="canonical")
    return replace(conversation, turns=tuple(turns)), [entry]


def _bare(block: Block) -> Block:
    if not isinstance(block, Text | ToolCall) or (block.signature is None and block.extra is None):
        return block
    return replace(block, signature=None, extra=None)
