"""Which requests belong to one conversation, and which request continues which.

    facts = facts_of(body, source="anthropic", session="")       # in a thread: it reads the body
    place = index.add("tg_…", client, facts)                     # Place(conversation="c_…", parent="tg_…")

    what the client sends                          what becomes of it
    its own name of a session                      the requests with this name are one conversation
    the messages of an earlier request, and more   the same conversation; the earlier request is the parent
    the same up to an earlier turn (a rewind)      the same; the parent is the request that ended there, if there is one
    the first message of an earlier request, and   the same, if nothing has continued that one yet: a system prompt with
    an answer to it, with another system prompt    the time in it is a reason to look at both, not to part them
    something else                                 a conversation of its own

Turns are compared by what they say: cache markers and other fields of one protocol do not count, and a system prompt
only while there is nothing but the first message.

Laws: never on the way of a request: only when somebody looks at it. Linear in the turns of a request; what is
remembered grows with the turns that are new. Clients never share a conversation.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterator
from typing import Any, Final

from msgspec import Struct

from toolglot.conversation import Conversation, Text, ToolResult, Turn
from toolglot.errors import ToolglotError
from toolglot.gateway.routing.cache_keys import session_of
from toolglot.history.turn_keys import identity
from toolglot.masking import mask
from toolglot.profiles import Overrides
from toolglot.translate.converted import profile_named
from toolglot.translate.requests import read_request

MAX_TITLE: Final = 120
_MAX_READ: Final = 4_000
"""Characters of a text in which the title is looked for."""
_MAX_BLOCKS: Final = 50
"""Blocks of the last turn that are looked at."""
_MAX_BACK: Final = 8
"""Turns in which the calls of the last results are looked for."""
_DIGEST: Final = 12
"""Bytes of a hash."""
MIN_SHARED: Final = 2
"""Turns that a request must share with another, to be of its conversation whatever the system prompt is."""


class RequestFacts(Struct, frozen=True):
    """What a body says of its conversation."""

    session: str = ""
    """What the client calls it."""
    system: bytes = b""
    """The hash of the system prompts."""
    prefixes: tuple[bytes, ...] = ()
    """The hash of the first turn, of the first two, and so on; without system prompts."""
    turns: int | None = None
    title: str = ""
    """The first words of the user."""
    latest: str = ""
    """What the last turn says."""


class Place(Struct, frozen=True):
    """Where a request belongs."""

    conversation: str | None = None
    parent: str | None = None
    """The request that it continues."""
    turns: int | None = None
    title: str = ""
    latest: str = ""
    compared: str | None = None
    """The request that its prompt is compared with: its parent, or the last one before it if that was changed in its
    middle."""


NOWHERE: Final = Place()


def facts_of(body: bytes | str, *, source: str, session: str = "", overrides: Overrides | None = None) -> RequestFacts:
    """What a body says of its conversation. Of one that cannot be read, nothing but the session in its headers.

    session: what the headers call it.
    """
    try:
        conversation = read_request(body, source=source, overrides=overrides).conversation
        headers = {"x-session-id": session} if session else {}
        named = session_of(headers, conversation, profile_named(source, "", overrides, "source"))
    except (ToolglotError, RecursionError):
        return RequestFacts(session)
    system = hashlib.blake2b(digest_size=_DIGEST)
    said = hashlib.blake2b(digest_size=_DIGEST)
    prefixes = []
    for turn in conversation.turns:
        if turn.role == "system":
            system.update(turn_bytes(turn))
            continue
        said.update(turn_bytes(turn))
        prefixes.append(said.digest())
    title, latest = mask(title_of(conversation)), mask(latest_of(conversation))
    return RequestFacts(named, system.digest(), tuple(prefixes), len(conversation.turns), title, latest)


def turn_bytes(turn: Turn) -> bytes:
    """What a turn says, as bytes that are equal for equal turns."""
    try:
        said = identity(turn)
    except (ValueError, TypeError, RecursionError):  # such as half a surrogate pair
        said = repr(turn.blocks).encode("utf-8", "surrogatepass")
    return b"%d:%b" % (len(said), said)


def title_of(conversation: Conversation) -> str:
    """The first words of the user; those of programs, which are in angle brackets, only if there are no others."""
    texts = [*_user_texts(conversation)]
    return _in_short(next((text for text in texts if not text.startswith("<")), texts[0] if texts else ""))


def latest_of(conversation: Conversation) -> str:
    """What the model is to answer: the text of the last turn, or whose results are in it."""
    blocks = conversation.turns[-1].blocks[-_MAX_BLOCKS:] if conversation.turns else ()
    texts = [block.text[:_MAX_READ].strip() for block in blocks if isinstance(block, Text) and block.text.strip()]
    results = [block for block in blocks if isinstance(block, ToolResult)]
    own = [text for text in texts if not text.startswith("<")]
    if own or not results:
        return _in_short(next(iter(own or texts), ""))
    names = _names_of_calls(conversation, {result.call_id for result in results})
    return _in_short(
        "result of " + ", ".join([result.name or names.get(result.call_id, "a call") for result in results])
    )


def _names_of_calls(conversation: Conversation, ids: Collection[str]) -> dict[str, str]:
    """The names of calls, if they are in one of the last turns."""
    found: dict[str, str] = {}
    for turn in conversation.turns[-_MAX_BACK:]:
        found |= {call.id: call.name for call in turn.calls if call.id in ids}
    return found


def _in_short(text: str) -> str:
    short = " ".join(text[:_MAX_READ].split())
    return short if len(short) <= MAX_TITLE else f"{short[: MAX_TITLE - 1]}…"


def _user_texts(conversation: Conversation) -> Iterator[str]:
    """The texts of the first turns of the user."""
    left = 20
    for turn in conversation.turns:
        if turn.role != "user":
            continue
        for block in turn.blocks:
            if isinstance(block, Text) and block.text.strip():
                yield block.text[:_MAX_READ].strip()
            left -= 1
            if not left:
                return


class _KnownConversation:
    """A conversation, the requests of it that are remembered, and the prefixes that lead to it."""

    __slots__ = ("latest", "prefixes", "requests")

    def __init__(self) -> None:
        self.latest: dict[bytes, tuple[str, int]] = {}
        """The last request that began with a message, or had a system prompt, and its number of turns."""
        self.requests: set[str] = set()
        self.prefixes: list[bytes] = []


class ConversationIndex:
    """The conversations of all requests that are remembered."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        """By request."""
        self._known: dict[str, _KnownConversation] = {}
        """By conversation."""
        self._by_prefix: dict[bytes, str] = {}
        """The conversation of a prefix, or of a first message with its system prompt."""
        self._ends: dict[tuple[str, bytes], str] = {}
        """The last request of a conversation that ends with a prefix."""
        self._ended: dict[str, tuple[str, bytes]] = {}
        self._openings: dict[bytes, str] = {}
        """The last request of nothing but a first message, while nothing continues it."""

    def __len__(self) -> int:
        return len(self._places)

    def place(self, id: str) -> Place | None:
        """Where a request belongs; None: it was not added."""
        return self._places.get(id)

    def requests(self, conversation: str) -> Collection[str]:
        """The requests of a conversation."""
        known = self._known.get(conversation)
        return known.requests if known is not None else ()

    def add(self, id: str, client: str, facts: RequestFacts) -> Place:
        """Add a request, after all that came before it."""
        found = self._places.get(id)
        if found is not None:
            return found
        own = [_of_client(client, prefix) for prefix in facts.prefixes]
        first = [_of_client(client, facts.system + facts.prefixes[0])] if facts.prefixes else []
        name = self._conversation(client, facts, own, first)
        if name is None:
            place = Place(None, None, facts.turns, facts.title, facts.latest)
        else:
            known = self._known.setdefault(name, _KnownConversation())
            parent = next((self._ends[name, end] for end in reversed(own) if (name, end) in self._ends), None)
            for prefix in (*first, *own[MIN_SHARED - 1 :]):
                if prefix not in self._by_prefix:
                    self._by_prefix[prefix] = name
                    known.prefixes.append(prefix)
            known.requests.add(id)
            self._note_opening(id, own)
            if own:
                self._ends[name, own[-1]] = id
                self._ended[id] = (name, own[-1])
            compared = self._compared(known, parent, facts)
            place = Place(name, parent, facts.turns, facts.title, facts.latest, compared)
            for beginning in _beginnings(facts):
                known.latest[beginning] = (id, facts.turns or 0)
        self._places[id] = place
        return place

    def _compared(self, known: _KnownConversation, parent: str | None, facts: RequestFacts) -> str | None:
        """The request whose prompt this one should begin with. An agent that changes its history has another one than
        its parent: the last one before it, unless that had more turns, which is a rewind."""
        before = next((known.latest[each] for each in _beginnings(facts) if each in known.latest), None)
        if before is None or before[1] > (facts.turns or 0):
            return parent
        place = self._places.get(parent) if parent is not None else None
        return before[0] if place is None or (place.turns or 0) < before[1] else parent

    def _conversation(self, client: str, facts: RequestFacts, own: list[bytes], first: list[bytes]) -> str | None:
        """The name of a conversation, known or new; None: there is nothing to know it by."""
        if facts.session:
            return _name(_of_client(client, facts.session.encode("utf-8", "surrogatepass")))
        for prefix in (*reversed(own[MIN_SHARED - 1 :]), *first):
            known = self._by_prefix.get(prefix)
            if known is not None:
                return known
        opening = self._places.get(self._openings.get(own[0], "")) if len(own) > 1 else None
        if opening is not None:
            return opening.conversation
        return _name(first[0]) if first else None

    def _note_opening(self, id: str, own: list[bytes]) -> None:
        """Remember a request of one message, until another one continues it."""
        if len(own) == 1:
            self._openings[own[0]] = id
        elif own:
            self._openings.pop(own[0], None)

    def keep_only(self, ids: Collection[str]) -> None:
        """Forget all other requests."""
        gone = [id for id in self._places if id not in ids]
        for id in gone:
            place = self._places.pop(id)
            end = self._ended.pop(id, None)
            if end is not None and self._ends.get(end) == id:
                del self._ends[end]
            if end is not None and self._openings.get(end[1]) == id:
                del self._openings[end[1]]
            known = self._known.get(place.conversation or "")
            if known is None:
                continue
            known.requests.discard(id)
            if not known.requests:
                for prefix in known.prefixes:
                    del self._by_prefix[prefix]
                del self._known[place.conversation or ""]


def _beginnings(facts: RequestFacts) -> tuple[bytes, ...]:
    """What requests of one agent have in common: the first message, or else the system prompt."""
    return (*facts.prefixes[:1], b"system" + facts.system) if facts.prefixes else ()


def _of_client(client: str, data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST, key=client.encode()[:64]).digest()


def _name(digest: bytes) -> str:
    return f"c_{digest.hex()}"


def placed(row: dict[str, Any], place: Place | None) -> dict[str, Any]:
    """A row with its place."""
    if place is None:
        return row
    return {
        **row,
        "conversation": place.conversation,
        "parent": place.parent,
        "turns": place.turns,
        "title": place.title or None,
        "latest": place.latest or None,
    }
