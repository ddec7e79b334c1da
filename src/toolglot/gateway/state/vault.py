"""The vault: stores what a provider signed or encrypted, and the client's protocol cannot carry, until it is needed.

    await vault.keep(client, conversation, original, reply, issuer)             # after a reply
    await vault.recall(client, conversation, source, target, destination)       # before the next request

The key of a model's turn is a hash of the conversation up to it, so that the client's own history finds it again. If
the client has cut or rewritten earlier turns, it is found by the id of its first call, if that is unique, or by its
first signature, if the client carries that. Of the turn only opaque parts are kept, and the lengths of what the client
has.

Laws: what one client key put in, no other gets out. A turn that the client has changed gets nothing back except what
belongs to a single call. What comes back carries its issuer, so that the renderer sends it only there (law 12).
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

from toolglot.conversation import (
    Block,
    Conversation,
    Extra,
    Form,
    Issuer,
    Reply,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    Turn,
)
from toolglot.conversation.canonical_json import VERSION
from toolglot.conversation.forms import read_form
from toolglot.conversation.report import Entry
from toolglot.conversation.version_1 import upgrade
from toolglot.gateway.http.offloading import WorkOffloader, at_once
from toolglot.profiles import Profile
from toolglot.protocols.base import get
from toolglot.store import RowStore

KIND: Final = "vault"
MAX_REMEMBERED: Final = 16 * 1024 * 1024
"""Bytes of turns that are kept in memory too, so that a conversation that goes on does not read the disk."""
ENTRY_BYTES: Final = 1_000
"""Bytes of a turn in memory beyond those on disk: its objects and keys."""
MAX_REFUSED: Final = 10_000
MAX_KEYS: Final = 5_000
"""Keys of one call to the store."""
MAX_BYTES: Final = 1_000_000
"""Bytes of one turn. A longer one is not kept."""
_MEANINGLESS: Final = frozenset({"id", "status", "index"})
"""Fields of a provider that mean nothing without the rest. Streams have no `index`: it is the position of a call."""


class KeptText(Struct, frozen=True, array_like=True, tag="t"):
    length: int
    signature: str | None = None
    extra: Extra | None = None
    form: Form | None = None


class KeptCall(Struct, frozen=True, array_like=True, tag="c"):
    id: str
    """The client's id."""
    native_id: str
    signature: str | None = None
    extra: Extra | None = None
    form: Form | None = None


class KeptThinking(Struct, frozen=True, array_like=True, tag="k"):
    block: Thinking


class KeptTurn(Struct, frozen=True):
    """A model's turn as its provider wants it back."""

    issuer: Issuer
    text_hash: bytes = msgspec.field(name="said")
    """Stored under its old name."""
    blocks: tuple[KeptText | KeptCall | KeptThinking, ...]
    version: int = 1
    """The version of the serialised form (`canonical_json.VERSION`) that its blocks are in."""


REREAD_SECONDS: Final = 600.0
"""Seconds after which a turn from the store is read again."""
_NOTHING: Final[tuple[KeptTurn | None, int, float]] = (None, 0, 0.0)
_ENCODER: Final = msgspec.msgpack.Encoder()
_DECODER: Final = msgspec.msgpack.Decoder(KeptTurn, dec_hook=read_form)


def _read(data: bytes) -> KeptTurn:
    turn = _DECODER.decode(data)
    return turn if turn.version >= VERSION else upgrade(turn)


class Vault:
    """The opaque parts of turns, for all clients."""

    def __init__(self, store: RowStore | None, *, seconds: float, clock: Callable[[], float] = time.time) -> None:
        self._store = store
        self._seconds = seconds
        self._clock = clock
        self._recent: OrderedDict[tuple[str, str], tuple[KeptTurn, int, float]] = OrderedDict()
        self._recent_size = 0
        self._refused: OrderedDict[tuple[str, str], Issuer] = OrderedDict()
        self.hits: int = 0
        """Turns of models that were found in the vault."""
        self.misses: int = 0
        """Turns of models that were not."""

    def is_needed(self, source: Profile, target: Profile, *, is_renamed: bool = False) -> bool:
        """Whether a client of the source cannot send back something that the target wants.

        is_renamed: the client has another name for the model. Then its history does not show who made a turn.
        """
        if target.reasoning.carrier == "none":
            return False
        return is_renamed or source.protocol != target.protocol or not get(source.protocol).returns_opaque

    # --- before a request ---------------------------------------------------------------------------

    def may_recall(self, conversation: Conversation, source: Profile, target: Profile, destination: Issuer) -> bool:
        """Whether `recall` may change something."""
        if self._refused:
            return True
        return self.is_needed(source, target, is_renamed=conversation.model != destination.model)

    async def recall(
        self,
        client: str,
        conversation: Conversation,
        source: Profile,
        target: Profile,
        destination: Issuer,
        offload: WorkOffloader = at_once,
    ) -> tuple[Conversation, list[Entry]]:
        """The conversation with what was kept of its turns, and without what this provider has refused before."""
        needs_vault = self.is_needed(source, target, is_renamed=conversation.model != destination.model)
        if not needs_vault and not self._refused:
            return conversation, []
        keys = await offload(lambda: dict(keys_of(conversation.turns)))
        refused = {index for index, (key, *_) in keys.items() if self._refused.get((client, key)) == destination}
        wanted = {index: some for index, some in keys.items() if index not in refused} if needs_vault else {}
        entries: list[Entry] = []
        if wanted:
            mark = _issuer_mark(destination)
            wanted = {index: tuple([key + mark for key in some]) for index, some in wanted.items()}
            found = await self._find(client, [key for some in wanted.values() for key in some])
            kept = {index: next((found[key] for key in some if key in found), None) for index, some in wanted.items()}
            hits = len(kept) - [*kept.values()].count(None)
            self.hits, self.misses = self.hits + hits, self.misses + len(kept) - hits
            conversation, entries = _restore(conversation, kept)
        if refused:
            conversation, dropped = without_opaque(conversation, refused)
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
        for at in range(0, len(unknown), MAX_KEYS):
            for key, data in (await self._store.find(KIND, client, unknown[at : at + MAX_KEYS])).items():
                try:
                    found[key] = _read(data)
                except msgspec.MsgspecError:
                    continue  # written by another version
                self._remember(client, key, found[key], len(data), now + REREAD_SECONDS)
        return found

    def _remember(self, client: str, key: str, turn: KeptTurn, size: int, until: float) -> None:
        size += ENTRY_BYTES
        self._recent_size += size - self._recent.pop((client, key), _NOTHING)[1]
        self._recent[client, key] = (turn, size, until)
        while self._recent_size > MAX_REMEMBERED:
            self._recent_size -= self._recent.popitem(last=False)[1][1]

    # --- after a reply ------------------------------------------------------------------------------

    async def keep(
        self,
        client: str,
        conversation: Conversation,
        original: Reply,
        reply: Reply,
        issuer: Issuer,
        offload: WorkOffloader = at_once,
    ) -> bool:
        """Keep what the client will not send back of a reply. Returns whether there was anything.

        original: the reply as the provider sent it; reply: as the client got it.
        """
        turn = _keep_opaque(original.turn, reply.turn, issuer)
        if turn is None:
            return False
        try:
            data = _ENCODER.encode(turn)
        except OverflowError:  # a number that is too large: the turn is not kept, like a long one
            return False
        if len(data) > MAX_BYTES:
            return False
        mark = _issuer_mark(issuer)
        keys = [key + mark for key in await offload(lambda: keys_after(conversation.turns, reply.turn))]
        until = self._clock() + self._seconds
        for key in keys:
            self._remember(client, key, turn, len(data), until)
        if self._store is not None:
            await self._store.keep(KIND, client, dict.fromkeys(keys, data), until=until)
        return True

    # --- refused ------------------------------------------------------------------------------------

    def mark_refused(self, client: str, conversation: Conversation, destination: Issuer) -> None:
        """The provider refuses the opaque parts of these turns: from now on they are sent there without."""
        for _, (key, *_) in keys_of(conversation.turns):
            self._refused[client, key] = destination
            self._refused.move_to_end((client, key))
        while len(self._refused) > MAX_REFUSED:
            self._refused.popitem(last=False)


# --- keys -------------------------------------------------------------------------------------------


def keys_of(turns: Sequence[Turn]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """The index of each of the model's turns, and its keys, the most certain first."""
    prefix = _PrefixHash()
    for index, turn in enumerate(turns):
        prefix.add(turn)
        if turn.role == "assistant":
            yield index, (prefix.key, *_own_keys(turn))


def keys_after(turns: Sequence[Turn], reply: Turn) -> tuple[str, ...]:
    """The keys of the turn that replies to these."""
    prefix = _PrefixHash()
    for turn in (*turns, reply):
        prefix.add(turn)
    return (prefix.key, *_own_keys(reply))


def _issuer_mark(issuer: Issuer) -> str:
    """A mark that separates equal turns of different providers."""
    issued_by = f"{issuer.provider}\0{issuer.endpoint}\0{issuer.account}"
    return "@" + hashlib.blake2b(issued_by.encode("utf-8", "surrogatepass"), digest_size=9).hexdigest()


def _own_keys(turn: Turn) -> Iterator[str]:
    """The keys of a turn by what no other conversation has: the id of its first call, its first signature."""
    first = next(iter(turn.calls), None)
    if first is not None and _UNIQUE_ID.fullmatch(first.id):
        yield "call:" + _hash_words(first.id, first.name)
    if signature := next(filter(None, map(_signature_of, turn.blocks)), None):
        # With the names of its calls, because those of Gemini have no ids that show whether they are the same.
        yield "signature:" + _hash_words(signature, *[call.name for call in turn.calls])


MIN_SIGNATURE: Final = 41
"""Characters. What stands for a missing signature (`reasoning.foreign_marks`) is shorter, and many turns have it."""


def _signature_of(block: Block) -> str | None:
    signature = block.signature if isinstance(block, Text | Thinking | ToolCall) else None
    if not signature and isinstance(block, Thinking):
        signature = block.redacted
    return signature if signature and len(signature) >= MIN_SIGNATURE else None


_UNIQUE_ID: Final = re.compile(r"(?!functions\.)(?=.*[0-9])(?=.*[A-Za-z])[A-Za-z]{0,16}[_-]?[A-Za-z0-9_-]{9,}")
"""Ids that are random or a hash, not a counter."""


def _hash_words(*words: str) -> str:
    return hashlib.blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=18).hexdigest()


_PREFIX_KEY: Final = "said:"
"""Stored under its old name."""


class _PrefixHash:
    """A hash of the visible part of a conversation so far, the same in every protocol."""

    def __init__(self) -> None:
        self._hash = hashlib.blake2b(digest_size=18)

    def add(self, turn: Turn) -> None:
        if turn.role in ("system", "developer"):
            return
        parts = ["assistant" if turn.role == "assistant" else "user"]
        for block in turn.blocks:
            if isinstance(block, Text):
                parts.append(block.text.strip())
            elif isinstance(block, ToolCall):
                parts.append(f"\1{block.name}")
            elif isinstance(block, ToolResult):
                parts.append(f"\2{block.text.strip()}")
        self._hash.update("\0".join([part for part in parts if part]).encode("utf-8", "surrogatepass"))

    @property
    def key(self) -> str:
        return _PREFIX_KEY + self._hash.hexdigest()


# --- what is kept of a turn -------------------------------------------------------------------------


def _text_hash(turn: Turn) -> bytes:
    return hashlib.blake2b(turn.text.encode("utf-8", "surrogatepass"), digest_size=18).digest()


def _keep_opaque(original: Turn, reply: Turn, issuer: Issuer) -> KeptTurn | None:
    """What the provider wants back of a turn; None: the client has all of it."""
    is_same = len(original.calls) == len(reply.calls) and original.text == reply.text
    if not is_same:
        return None
    # The provider's prompt cache has the calls under its own ids.
    is_renamed = any(own.id != call.id for own, call in zip(original.calls, reply.calls, strict=True))
    if not is_renamed and not any(map(_is_opaque, original.blocks)):
        return None
    client_ids = iter([call.id for call in reply.calls])
    blocks: list[KeptText | KeptCall | KeptThinking] = []
    for block in original.blocks:
        if isinstance(block, Text):
            blocks.append(KeptText(len(block.text), block.signature, block.extra, block.form))
        elif isinstance(block, ToolCall):
            blocks.append(KeptCall(next(client_ids), block.id, block.signature, block.extra, block.form))
        elif isinstance(block, Thinking):
            blocks.append(KeptThinking(block))
    return KeptTurn(issuer, _text_hash(reply), tuple(blocks), VERSION)


def with_opaque(original: Turn, reply: Turn, issuer: Issuer) -> Turn:
    """A turn under the client's names, with what its provider signed, for the next request to that provider."""
    kept = _keep_opaque(original, reply, issuer)
    blocks = _restore_blocks(reply, kept, set(), {}) if kept is not None else None
    return replace(reply, blocks=blocks or reply.blocks, issuer=issuer)


def _is_opaque(block: Block) -> bool:
    if isinstance(block, Thinking):
        return True
    if not isinstance(block, Text | ToolCall):
        return False
    if block.form is not None:
        return True
    own: set[str] = {key for fields in (block.extra or {}).values() for key in fields}
    return block.signature is not None or not own <= _MEANINGLESS


def _restore(conversation: Conversation, kept: Mapping[int, KeptTurn | None]) -> tuple[Conversation, list[Entry]]:
    turns = list(conversation.turns)
    taken = {call.id for turn in turns for call in turn.calls}
    renamed: dict[str, str] = {}
    counts = dict.fromkeys((_SIGNED, _THOUGHT, _NATIVE), 0)
    is_restored = False
    for index, turn in kept.items():
        blocks = _restore_blocks(turns[index], turn, taken, renamed) if turn is not None else None
        if turn is not None and blocks is not None:
            counts[_restored_kind(turn)] += blocks != turns[index].blocks
            turns[index] = replace(turns[index], blocks=blocks, issuer=turn.issuer)
            is_restored = True
    if not is_restored:
        return conversation, []
    if renamed:
        turns = [_with_renamed_results(turn, renamed) for turn in turns]
    entries = [
        Entry(action="added", reason=f"{what} put back into {count} of its turns", fault="policy")
        for what, count in counts.items()
        if count
    ]
    return replace(conversation, turns=tuple(turns)), entries


_SIGNED: Final = "what the provider signed or encrypted was"
_THOUGHT: Final = "the model's own thinking was"
_NATIVE: Final = "ids and fields of the provider were"


def _restored_kind(kept: KeptTurn) -> str:
    """What a turn gets back."""
    if any(_is_signed(block) for block in kept.blocks):
        return _SIGNED
    return _THOUGHT if any(isinstance(block, KeptThinking) for block in kept.blocks) else _NATIVE


def _is_signed(kept: KeptText | KeptCall | KeptThinking) -> bool:
    if isinstance(kept, KeptThinking):
        return bool(kept.block.signature or kept.block.redacted)
    return bool(kept.signature)


def _restore_blocks(turn: Turn, kept: KeptTurn, taken: set[str], renamed: dict[str, str]) -> tuple[Block, ...] | None:
    """The blocks of a turn as its provider knows them; None: the client has changed its text."""
    calls = iter(turn.calls)
    known = [block for block in kept.blocks if isinstance(block, KeptCall)]
    text = turn.text
    if not _same_calls(turn.calls, known) or _text_hash(turn) != kept.text_hash:
        return None
    if any(not isinstance(block, Text | Thinking | ToolCall) for block in turn.blocks):
        return None
    first = next((block for block in turn.blocks if isinstance(block, Text)), Text(""))
    blocks: list[Block] = []
    at = 0
    for block in kept.blocks:
        if isinstance(block, KeptThinking):
            blocks.append(block.block)
        elif isinstance(block, KeptText):
            part, at = text[at : at + block.length], at + block.length
            extra, form = _merge_extra(first.extra, block.extra), block.form or first.form
            blocks.append(Text(part, block.signature, extra, form, is_refusal=first.is_refusal))
        else:
            blocks.append(_restore_call(next(calls), block, taken, renamed))
    return tuple(blocks)


def _same_calls(calls: Sequence[ToolCall], known: Sequence[KeptCall]) -> bool:
    """Whether these are the calls that were kept.

    The client may have set the id of one that had none. It may also send no ids, as clients of Gemini do: such a turn
    was found by the whole conversation up to it, which includes the names of its calls.
    """
    if len(calls) != len(known):
        return False
    return all(call.id == kept.id or not kept.id or not call.id for call, kept in zip(calls, known, strict=True))


def _restore_call(call: ToolCall, kept: KeptCall, taken: set[str], renamed: dict[str, str]) -> ToolCall:
    """A call with the provider's own id, unless another call has it.

    One without an id stays without: its result has none either, and their order pairs them.
    """
    id = call.id
    if id and kept.native_id.strip() and kept.native_id != call.id and kept.native_id not in taken:
        id = renamed[call.id] = kept.native_id
        taken.add(id)
    extra, form = _merge_extra(call.extra, kept.extra), kept.form or call.form
    return replace(call, id=id, signature=kept.signature, extra=extra, form=form)


def _merge_extra(one: Extra | None, other: Extra | None) -> Extra | None:
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


def without_opaque(conversation: Conversation, indexes: set[int] | None = None) -> tuple[Conversation, list[Entry]]:
    """The conversation without opaque parts, in these turns or in all."""
    turns = list(conversation.turns)
    count = 0
    for index, turn in enumerate(turns):
        if turn.role != "assistant" or (indexes is not None and index not in indexes):
            continue
        blocks = tuple([_without_signature(block) for block in turn.blocks if not isinstance(block, Thinking)])
        if blocks != turn.blocks:
            turns[index] = replace(turn, blocks=blocks)
            count += 1
    if not count:
        return conversation, []
    reason = f"thinking and signatures that the provider refused were left out of {count} turns"
    entry = Entry(action="dropped", reason=reason, fault="canonical")
    return replace(conversation, turns=tuple(turns)), [entry]


def _without_signature(block: Block) -> Block:
    if not isinstance(block, Text | ToolCall) or (
        block.signature is None and block.extra is None and block.form is None
    ):
        return block
    return replace(block, signature=None, extra=None, form=None)
