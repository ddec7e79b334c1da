"""Remembered requests: an agent sends its whole history with every turn, so what was read of it once is not read again.

    memory = RequestMemory(max_bytes=64 * 1024 * 1024)
    read_request(body, source="anthropic", memory=memory.of(client))

A body is the text before its turns, the items of its turns, and the text behind them. The longest beginning of a body
that an earlier one had, byte for byte, is taken from the memory as parsed items and turns. Only the rest is parsed and
decoded. The text behind the turns (tools, settings) may be another one, and so may the last turns, as of a client that
moves its cache markers.

Laws: with a memory, without it, and after anything was forgotten, a request is read alike (law 15). A client never gets
what another one sent. What is remembered is bounded in bytes, in age and in the number of sessions. Only bodies that
can be read in one way are remembered: without repeated keys, and without anything that had to be repaired.
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from toolglot.conversation import Conversation, Turn
from toolglot.conversation.tool_memory import SplitBody, ToolMemory
from toolglot.conversation.turn_memo import TurnMemo
from toolglot.errors import InputError
from toolglot.jsontext import (
    count_marks,
    count_values,
    ensure_memory,
    has_duplicate_keys,
    refuse_deep,
    refuse_many_values,
)
from toolglot.limits import Limits
from toolglot.policy import Policy
from toolglot.profiles import Profile
from toolglot.protocols.base import codec, get
from toolglot.protocols.lenient.mixed_forms import has_mixed_forms
from toolglot.translate.request_reading import decode_request, decode_split_request

Fields = dict[str, Any]

MAX_BYTES: Final = 64 * 1024 * 1024
MAX_SESSIONS: Final = 32
"""How many requests of one client are remembered in one protocol. Each is compared with a new one."""
MAX_AGE_SECONDS: Final = 1800.0
MIN_BYTES: Final = 2_048
"""Shorter bodies are read faster than they are compared."""
COST: Final = 4
"""How much memory a body takes, in multiples of its own length: its bytes, its strings, and what they become."""
VALUE_BYTES: Final = 192
"""How much each of its JSON values takes besides, as a value and as a part of a turn: many small ones take more memory
than a long text."""

_decode: Final = msgspec.json.Decoder().decode
_read_fields: Final = msgspec.json.Decoder(dict[str, Raw]).decode
_read_items: Final = msgspec.json.Decoder(list[Raw]).decode
_SPACE: Final = b" \t\r\n"
_SHORT: Final = 512
"""Values of texts up to this length are counted roughly."""
_PLACEHOLDER: Final = 7_401_236_598_012_347_651
_PLACEHOLDER_TEXT: Final = b"%d" % _PLACEHOLDER
"""Replaces the items that are known before the rest is parsed: an integer, which can be written in one way only."""


class KnownRequest(Struct, frozen=True, eq=False):
    """A request in pieces. A part is one item, or several that are read together, with the comma before it."""

    head: bytes
    """The text up to the bracket that opens the list of turns, with it."""
    texts: tuple[bytes, ...]
    items: tuple[Fields, ...]
    turns: tuple[Turn, ...]
    item_ends: tuple[int, ...]
    """For each part, how many items there are up to its end."""
    turn_ends: tuple[int, ...]
    tail: bytes
    """The text from the bracket that closes the list."""
    fields: Fields
    """All fields of the body; the list of turns is empty."""
    frame: Conversation
    """The conversation without the turns of the list: prompts in fields of their own, tools, settings."""
    memo: TurnMemo
    """What became of its turns."""
    marks: tuple[int, ...]
    """For each part, how many JSON values there are up to its end at the most (`jsontext.count_marks`)."""
    sizes: tuple[int, ...]
    """For each part, how much memory all takes up to its end, estimated."""
    tail_marks: int
    tail_size: int
    used: float = 0.0
    """When it was used last."""

    @property
    def size(self) -> int:
        """How much memory it takes, estimated."""
        return self.sizes[-1] + self.tail_size


class ReadBody(Struct, frozen=True):
    """What was read of a body."""

    fields: Fields
    conversation: Conversation
    known_bytes: int
    """How much of the body was remembered."""
    memo: TurnMemo


class NewText(Struct, frozen=True):
    """What is new in a body."""

    text: bytes
    is_plain: bool
    """Whether what is known was rendered before without a change of its turns."""
    known_blocks: int
    """How many blocks there are in the turns that are known."""


class Match(Struct, frozen=True):
    """The part of a body that a remembered request has too."""

    known: KnownRequest
    parts: int
    end: int
    """The offset in the body behind these parts."""

    def stop(self, body: bytes) -> int | None:
        """The offset in the body of what it has in common with the end of the known request; None: nothing."""
        stop = len(body) - len(self.known.tail)
        return stop if stop >= self.end and body.endswith(self.known.tail) else None


class RequestMemory:
    """The last requests of all clients, and their tools."""

    def __init__(
        self,
        *,
        max_bytes: Callable[[], int] = lambda: MAX_BYTES,
        max_age_seconds: float = MAX_AGE_SECONDS,
        min_bytes: int = MIN_BYTES,
        clock: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.tools: ToolMemory = ToolMemory()
        self.size: int = 0
        """Bytes that the remembered requests take, estimated."""
        self.known_bytes: int = 0
        """Bytes of requests that were known, since the start."""
        self.new_bytes: int = 0
        self._max_bytes = max_bytes
        self.min_bytes = min_bytes
        self._max_age_seconds = max_age_seconds
        self._clock = clock
        self._clients: dict[tuple[str, str], OrderedDict[int, KnownRequest]] = {}
        self._order: OrderedDict[int, tuple[str, str]] = OrderedDict()
        self._plain: set[int] = set()
        """The requests that were rendered without a change of their turns."""
        self._next = 0
        self._lock = threading.Lock()
        """Large requests are read in threads."""

    @property
    def is_used(self) -> bool:
        """Whether requests are remembered; otherwise only tools are."""
        return self._max_bytes() > 0

    def of(self, client: str) -> ClientRequests:
        """The memory of one client."""
        return ClientRequests(self, client)

    def count(self, *, known: int, new: int) -> None:
        """Count bytes that were known and bytes that were read."""
        with self._lock:
            self.known_bytes += known
            self.new_bytes += new

    def requests_of(self, key: tuple[str, str]) -> list[tuple[int, KnownRequest]]:
        """The remembered requests of a client in a protocol, the latest first."""
        with self._lock:
            self._drop_old()
            return list(reversed(self._clients.get(key, {}).items()))

    def keep(self, key: tuple[str, str], request: KnownRequest, replaced: int | None) -> int | None:
        """Remember a request, maybe instead of the one that it continues. Returns its number, if it is remembered."""
        max_bytes = self._max_bytes()
        if request.size * 4 > max_bytes:
            return None  # one session may not displace all others
        with self._lock:
            if replaced is not None:
                self._forget(replaced)
            number, self._next = self._next, self._next + 1
            own = self._clients.setdefault(key, OrderedDict())
            own[number] = replace(request, used=self._clock())
            self._order[number] = key
            self.size += request.size
            if len(own) > MAX_SESSIONS:
                self._forget(next(iter(own)))
            while self.size > max_bytes:
                self._forget(next(iter(self._order)))
        return number

    def note_plain(self, number: int) -> None:
        """Note that the request with this number was rendered without any change of its turns."""
        with self._lock:
            if number in self._order:
                self._plain.add(number)

    def is_plain(self, number: int) -> bool:
        return number in self._plain

    def forget(self, client: str | None = None) -> None:
        """Forget the requests of a client; None: those of all clients, and their tools."""
        with self._lock:
            for number, (owner, _) in list(self._order.items()):
                if client is None or owner == client:
                    self._forget(number)
            if client is None:
                self.tools = ToolMemory()

    def _drop_old(self) -> None:
        since, max_bytes = self._clock() - self._max_age_seconds, self._max_bytes()
        while self._order:
            number = next(iter(self._order))
            if self._clients[self._order[number]][number].used >= since and self.size <= max_bytes:
                return
            self._forget(number)

    def _forget(self, number: int) -> None:
        key = self._order.pop(number, None)
        if key is None:
            return
        self._plain.discard(number)
        own = self._clients[key]
        self.size -= own.pop(number).size
        if not own:
            del self._clients[key]


class ClientRequests:
    """What is remembered of one client, for one of its requests."""

    def __init__(self, memory: RequestMemory, client: str) -> None:
        self._memory = memory
        self._client = client
        self._found: tuple[bytes, _Found | None] | None = None
        """What the last body was found to have in common with a known request."""
        self._kept: int | None = None
        """The number of the request, once it is remembered."""
        self.memo: TurnMemo | None = None
        """What became of the turns of the request that was remembered."""

    @property
    def tools(self) -> ToolMemory:
        return self._memory.tools

    def new_text(self, body: bytes, protocol: str) -> NewText | None:
        """What of a body has to be read; None: the whole body."""
        found = self._find(body, protocol)
        if found is None:
            return None
        match, number = found
        blocks = sum([len(turn.blocks) for turn in match.known.turns])
        return NewText(body[match.end : match.stop(body)], self._memory.is_plain(number), blocks)

    def count_values(self, body: bytes, protocol: str) -> int | None:
        """How many JSON values a body has at the most (`jsontext.count_marks`): what is known was counted before. None
        if nothing is known of it."""
        found = self._find(body, protocol)
        if found is None:
            return None
        match = found[0]
        known, stop = match.known, match.stop(body)
        tail = known.tail_marks if stop is not None else 0
        return known.marks[match.parts - 1] + count_marks(body[match.end : stop]) + tail

    def drop_body(self) -> None:
        """Forget the body that was compared last."""
        self._found = self.memo = None

    def note_plain(self) -> None:
        """Note that the request was rendered without any change of its turns."""
        if self._kept is not None:
            self._memory.note_plain(self._kept)

    def _find(self, body: bytes, protocol: str) -> _Found | None:
        """The known request that has most in common with a body, and its number."""
        if self._found is not None and self._found[0] is body:
            return self._found[1]
        best: _Found | None = None
        if codec(protocol).turn_parts is not None and len(body) >= self._memory.min_bytes:
            for number, known in self._memory.requests_of((self._client, protocol)):
                match = _match(body, known)
                if match is not None and (best is None or match.end > best[0].end):
                    best = (match, number)
        self._found = (body, best)
        return best

    def read(self, body: bytes, source: Profile, policy: Policy, limits: Limits) -> ReadBody | None:
        """Read a body, as far as possible from memory; None if it has to be read as a whole."""
        found = self._find(body, source.protocol) if len(body) <= limits.max_bytes else None
        if found is None:
            return None
        match, number = found
        refuse_many_values(body, limits, "$")
        try:
            ensure_memory(body)
            read, request = _Continuation(body, match, source, policy, limits, self.tools).read()
        except _NotContinuedError:
            return None
        except (ValueError, RecursionError, InputError):
            return None  # the careful reader of the whole body reports what is wrong
        self._memory.count(known=read.known_bytes, new=len(body) - read.known_bytes)
        # A request that goes on where this one ended replaces it; one that goes another way does not.
        is_continued = match.parts >= len(match.known.texts) - _MOVED_PARTS
        replaced = number if is_continued else None
        self._kept = self._memory.keep((self._client, source.protocol), request, replaced)
        return read

    def remember(self, body: bytes, fields: Fields, conversation: Conversation, source: Profile) -> bool:
        """Remember a body that was read as a whole and needed no repair. Returns whether it is known that no object of
        it has a key twice."""
        is_long = self._memory.is_used and len(body) >= self._memory.min_bytes
        if not is_long or codec(source.protocol).turn_parts is None:
            return False
        self._memory.count(known=0, new=len(body))
        if has_duplicate_keys(body, fields):
            return False
        try:
            ensure_memory(body)
            request = _split(body, fields, conversation, source)
        except (ValueError, RecursionError, InputError):
            return True
        if request is not None:
            self._kept = self._memory.keep((self._client, source.protocol), request, None)
            self.memo = request.memo
        return True


_Found = tuple["Match", int]

_MOVED_PARTS: Final = 3
"""How many parts at the end of a request may be changed in the next one: clients move cache markers and reminders."""


class _NotContinuedError(Exception):
    """The body has to be read as a whole."""


def _match(body: bytes, known: KnownRequest) -> Match | None:
    """What a body and a known request have in common, if that is at least one part."""
    if not body.startswith(known.head):
        return None
    end, parts = len(known.head), 0
    for text in known.texts:
        if not body.startswith(text, end):
            break
        end += len(text)
        parts += 1
    return Match(known, parts, end) if parts else None


class _Continuation:
    """Reads the rest of a body whose beginning is known."""

    def __init__(
        self, body: bytes, match: Match, source: Profile, policy: Policy, limits: Limits, tools: ToolMemory
    ) -> None:
        self._body = body
        self._match = match
        self._source = source
        self._policy = policy
        self._limits = limits
        self._tools = tools
        self._turns = get(source.protocol).turns

    def read(self) -> tuple[ReadBody, KnownRequest]:
        end, stop = self._match.end, self._match.stop(self._body)
        if stop is not None:
            try:
                return self._read_turns(self._body[end:stop])
            except msgspec.DecodeError:
                pass  # the tail is a part of a longer one
        return self._read_all_behind()

    def _read_turns(self, text: bytes) -> tuple[ReadBody, KnownRequest]:
        """Read a body of which only turns are new."""
        known = self._match.known
        comma = text.lstrip(_SPACE)
        if comma and not comma.startswith(b","):
            raise _NotContinuedError
        listed = b"[" + comma[1:] + b"]"
        items = _decode(listed)
        if comma and not items:
            raise _NotContinuedError
        refuse_deep(self._body, [items], self._limits, "$")  # as deep as they are in the body
        if has_duplicate_keys(listed, items):
            raise _NotContinuedError
        turns = self._decode_items(items)
        texts = _texts_of(comma[1:], _read_items(listed), b",")
        return self._joined(items, turns, texts, known.tail, known.fields, known.frame)

    def _decode_items(self, items: list[Fields]) -> tuple[Turn, ...]:
        if not items:
            return ()
        conversation, fixes = decode_request({self._turns: items}, self._source, self._policy)
        if fixes:
            raise _NotContinuedError
        return conversation.turns

    def _read_all_behind(self) -> tuple[ReadBody, KnownRequest]:
        """Read a body that has another text behind its turns too."""
        head, name = self._match.known.head, self._turns
        rest = self._body[self._match.end :]
        short = b"".join((head, _PLACEHOLDER_TEXT, rest))
        if short.count(_PLACEHOLDER_TEXT) > 1:
            raise _NotContinuedError
        split: SplitBody | None = None
        if get(self._source.protocol).has_separate_tools:
            split = self._tools.split(short, self._source.protocol)
        fields: Fields = _decode(short) if split is None else split.fields
        items = fields.get(name) if type(fields) is dict else None
        if type(items) is not list or not items or type(items[0]) is not int or items[0] != _PLACEHOLDER:
            raise _NotContinuedError
        del items[0]
        refuse_deep(short, fields, self._limits, "$")
        parts = _read_fields(short)
        raw = bytes(parts[name])
        start = len(head) - 1
        if not short.startswith(raw, start):
            raise _NotContinuedError
        if has_duplicate_keys(short, {**fields, name: [_PLACEHOLDER, *items]}):
            raise _NotContinuedError
        # An empty list of turns may be read otherwise, so one part that is known is read again with what is new.
        known, last = self._match.known, self._match.parts - 1
        before = (0, *known.item_ends)[last], (0, *known.turn_ends)[last]
        items[:0] = known.items[before[0] : known.item_ends[last]]
        if split is None:
            conversation, fixes = decode_request(fields, self._source, self._policy)
        else:
            conversation, fixes = decode_split_request(split, self._source, self._policy)
        if fixes:
            raise _NotContinuedError
        items = items[known.item_ends[last] - before[0] :]
        turns = self._decode_items(items)
        count = len(conversation.turns) - len(turns) - (known.turn_ends[last] - before[1])
        frame = replace(conversation, turns=conversation.turns[:count])
        between = raw[1:-1].removeprefix(_PLACEHOLDER_TEXT).lstrip(_SPACE)
        texts = _texts_of(between[1:], _read_items(b"[" + between[1:] + b"]"), b",")
        tail = short[start + len(raw) - 1 :]
        return self._joined(items, turns, texts, tail, {**fields, name: []}, frame)

    def _joined(
        self,
        items: list[Fields],
        turns: tuple[Turn, ...],
        texts: list[bytes],
        tail: bytes,
        fields: Fields,
        frame: Conversation,
    ) -> tuple[ReadBody, KnownRequest]:
        """What is known and what is new as one body, and as what is remembered of it."""
        known, parts = self._match.known, self._match.parts
        old_items, old_turns = known.items, known.turns
        if parts < len(known.texts):
            old_items, old_turns = old_items[: known.item_ends[parts - 1]], old_turns[: known.turn_ends[parts - 1]]
        new = _parts_of(items, turns, texts, self._source.protocol)
        memo = known.memo
        if parts < len(known.texts) or frame is not known.frame:
            memo = memo.only((*frame.turns, *old_turns))
        is_tail_known = tail is known.tail
        whole = {**fields, self._turns: [*old_items, *items]}
        conversation = replace(frame, turns=(*frame.turns, *old_turns, *turns))
        if has_mixed_forms(conversation, self._source.protocol):
            raise _NotContinuedError
        read = ReadBody(whole, conversation, self._match.end, memo)
        request = KnownRequest(
            known.head,
            (*known.texts[:parts], *new.texts),
            (*old_items, *new.items),
            (*old_turns, *new.turns),
            (*known.item_ends[:parts], *[len(old_items) + end for end in new.item_ends]),
            (*known.turn_ends[:parts], *[len(old_turns) + end for end in new.turn_ends]),
            tail,
            fields,
            frame,
            memo,
            (*known.marks[:parts], *_marks_of(new.texts, known.marks[parts - 1])),
            (*known.sizes[:parts], *_sizes_of(new.texts, known.sizes[parts - 1])),
            known.tail_marks if is_tail_known else count_marks(tail),
            known.tail_size if is_tail_known else _size_of(tail),
        )
        return read, request


class _Parts(Struct, frozen=True):
    """The parts of a list of turns, as `KnownRequest` has them."""

    texts: tuple[bytes, ...]
    items: tuple[Fields, ...]
    turns: tuple[Turn, ...]
    item_ends: tuple[int, ...]
    turn_ends: tuple[int, ...]


_NO_PARTS: Final = _Parts((), (), (), (), ())


def _parts_of(items: Sequence[Fields], turns: tuple[Turn, ...], texts: list[bytes], protocol: str) -> _Parts:
    """The new items that can be remembered: as many from the beginning as are read alike by themselves."""
    find = codec(protocol).turn_parts
    lengths = find(items, turns) if find is not None else None
    if not lengths or len(texts) != len(items):
        return _NO_PARTS
    item_ends = tuple(accumulate(length for length, _ in lengths))
    turn_ends = tuple(accumulate(count for _, count in lengths))
    starts = (0, *item_ends)
    joined = tuple([b"".join(texts[start:end]) for start, end in zip(starts, item_ends, strict=False)])
    return _Parts(joined, tuple(items[: item_ends[-1]]), turns[: turn_ends[-1]], item_ends, turn_ends)


def _texts_of(text: bytes, raws: Sequence[Raw], before: bytes) -> list[bytes]:
    """The text of each item of a list, with what precedes it; empty if that cannot be told.

    text: begins with the items.
    before: what precedes the first: a comma, unless it is the first of all.
    """
    texts: list[bytes] = []
    start = 0
    for raw in raws:
        opens, item = text.find(b"{", start), bytes(raw)
        gap = text[start:opens]
        if not text.startswith(item, opens) or gap.strip(_SPACE) != (b"," if texts else b""):
            return []  # not an object
        stop = opens + len(item)
        texts.append(text[start:stop] if texts else before + text[:stop])
        start = stop
    return texts


def _marks_of(texts: Sequence[bytes], before: int) -> tuple[int, ...]:
    """How many JSON values there are at the most up to the end of each part."""
    return tuple(accumulate(map(count_marks, texts), initial=before))[1:]


def _sizes_of(texts: Sequence[bytes], before: int) -> tuple[int, ...]:
    """How much memory all takes up to the end of each part, estimated."""
    return tuple(accumulate(map(_size_of, texts), initial=before))[1:]


def _size_of(text: bytes) -> int:
    """How much memory is taken by what a text becomes, estimated."""
    values = count_marks(text)
    if len(text) > _SHORT and values * VALUE_BYTES > len(text):  # those in strings may be most of them
        values = count_values(text, values)
    return COST * len(text) + VALUE_BYTES * values


@cache
def _items_reader(field: str) -> Callable[[bytes], list[Raw]]:
    """Reads the texts of the items of a field, and skips all other fields."""
    listed: Any = msgspec.defstruct("Listed", [("items", list[Raw])], rename={"items": field})
    read = msgspec.json.Decoder(listed).decode

    def read_raws(body: bytes) -> list[Raw]:
        raws: list[Raw] = read(body).items
        return raws

    return read_raws


def _split(body: bytes, fields: Fields, conversation: Conversation, source: Profile) -> KnownRequest | None:
    """A body that was read as a whole, in its pieces; None if they cannot be told apart."""
    name = get(source.protocol).turns
    items = fields.get(name)
    if type(items) is not list or not items:
        return None
    raws = _items_reader(name)(body)
    first = bytes(raws[0])
    opens = re.finditer(rb'"%b"[ \t\r\n]*:[ \t\r\n]*\[[ \t\r\n]*' % name.encode(), body)
    start = next((found.end() for found in opens if body.startswith(first, found.end())), None)
    if start is None:
        return None
    start = body.rindex(b"[", 0, start) + 1
    head = body[:start]
    frame_fields = _decode(head + b"]}")  # shows that the list is a field of the outermost object
    if type(frame_fields) is not dict or frame_fields.get(name) != [] or [*frame_fields][-1] != name:
        return None
    bare = {key: value for key, value in fields.items() if key != get(source.protocol).tools_path[0]} | {name: []}
    turns_start = len(codec(source.protocol).request.decode(bare).turns)
    turns = conversation.turns[turns_start:]
    texts = _texts_of(body[start:], raws, b"")
    parts = _parts_of(items, turns, texts, source.protocol)
    if not parts.texts:
        return None
    stop = start + sum(map(len, texts))
    tail = body[stop:].lstrip(_SPACE)
    if not tail.startswith(b"]"):
        return None
    frame = replace(conversation, turns=conversation.turns[:turns_start])
    return KnownRequest(
        head,
        parts.texts,
        parts.items,
        parts.turns,
        parts.item_ends,
        parts.turn_ends,
        tail,
        {**fields, name: []},
        frame,
        TurnMemo(),
        _marks_of(parts.texts, count_marks(head)),
        _sizes_of(parts.texts, _size_of(head)),
        count_marks(tail),
        _size_of(tail),
    )
