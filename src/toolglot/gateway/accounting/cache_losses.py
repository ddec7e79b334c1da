"""What it costs that a conversation is not read from the prompt cache any more: after a failover, a switch, a repair.

    loss = watch.note(key, CacheUse(…), prices)     # after each reply with token counts; None: nothing was lost
    record.reply.lose(loss); record.reply.add(loss.entry)

The last reply of a conversation says how much of it was in the cache: what it read and what it wrote. If the next one
reads less, the difference was paid for again. Why is known from what changed between the two. Of two that run at once,
the later one is not compared.

Laws: nothing that is sent depends on it (law 15). It takes a hash and a look-up for each request, and a bounded memory
for each process: what is forgotten, or was served by another process, is not reported. Only the providers' own counts
are compared. A client key sees nothing of the conversations of another.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final, Literal

from msgspec import Struct

from toolglot.conversation import Conversation
from toolglot.conversation.report import Entry
from toolglot.gateway.observability.report_counts import MANY, entry_counts
from toolglot.upstream.prices import MILLION, Prices, dollars
from toolglot.upstream.routing.load_balancing import first_message

MAX_CONVERSATIONS: Final = 10_000
"""Conversations that are remembered, about 500 bytes each; the one that was used last is forgotten last."""
MIN_LOST: Final = 1024
"""Fewer tokens are not reported: providers cache in steps, and most cache no prompt that is shorter."""
MIN_SHARE: Final = 10
"""Less than a tenth of what was cached is not reported: the end of a prompt is often written another way."""
_HOUR: Final = 3600
_MAX_NAME: Final = 2_000
_MAX_MODEL: Final = 100
_NANO: Final = 1_000_000_000

WatchKey = tuple[str, int]
"""The client, and a hash of the conversation's name that is valid in this process."""
Cause = Literal["upstream", "model", "repair", "expired", "other"]
CAUSES: Final[Mapping[Cause, str]] = {
    "upstream": "another upstream served the request before",
    "model": "another model served the request before",
    "repair": "the beginning of the conversation was repaired, and in the request before it was not",
    "expired": "the request before was longer ago than the cache keeps a prompt",
    "other": "the beginning of the prompt is another one, or the provider dropped it from its cache",
}
"""Why cached tokens were read again."""


class CacheUse(Struct, frozen=True, kw_only=True):
    """What the reply to one request says of the cache, and what may matter for the next."""

    upstream: str
    model: str
    is_simulated: bool = False
    turns: int
    """Turns of the conversation."""
    counts: Mapping[str, int]
    """Tokens, by the names of `Usage`."""
    entries: tuple[Entry, ...] = ()
    """What was changed in the request."""
    ttl_seconds: int | None = None
    """How long the cache keeps a prompt; None: not known."""
    seconds: float = 0.0
    """How long ago the request began."""


class CacheLoss(Struct, frozen=True):
    """Tokens that were in a cache and were read again."""

    tokens: int
    cause: Cause
    price: Decimal | None
    """What they cost now, in dollars; None: the price is not known."""
    cached_price: Decimal | None
    """What they would have cost from the cache, at the upstream where it is."""
    place: str
    """Where they were cached: `upstream/model`."""
    detail: str = ""

    @property
    def extra(self) -> int:
        """How much more was paid, in billionths of a dollar; 0 if it was not more, or is not known."""
        if self.price is None or self.cached_price is None:
            return 0
        return max(round((self.price - self.cached_price) * _NANO), 0)

    @property
    def entry(self) -> Entry:
        """The entry of the report."""
        reason = f"{self.tokens:,} tokens that {self.place} had cached were not read from its cache: "
        reason += CAUSES[self.cause]
        reason += f" ({self.detail})" if self.detail else ""
        if self.price is not None and self.cached_price is not None:
            reason += f"; they cost {dollars(self.price)} instead of {dollars(self.cached_price)}"
        return Entry(action="uncached", reason=reason, fault="policy", path="$.usage", gravity="housekeeping")


class _Seen(Struct, frozen=True, gc=False):
    """What is remembered of the last request of a conversation."""

    upstream: str
    model: str
    turns: int
    cached: int
    """Tokens that were in the cache after it."""
    input: int
    began: float
    at: float
    """When the reply was there."""
    ttl_seconds: int | None
    actions: frozenset[str]
    repairs: int
    """Changes in turns."""


class CacheWatch:
    """Remembers what was cached of each conversation."""

    def __init__(
        self, *, max_conversations: int = MAX_CONVERSATIONS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._max = max_conversations
        self._clock = clock
        self._seen: OrderedDict[WatchKey, _Seen] = OrderedDict()

    def __len__(self) -> int:
        return len(self._seen)

    def forget(self, key: WatchKey) -> None:
        """Forget a conversation: what was cached of it is not known."""
        self._seen.pop(key, None)

    def note(self, key: WatchKey, use: CacheUse, prices: Prices) -> CacheLoss | None:
        """Remember what a reply says, and return what was lost since the reply before."""
        now = self._clock()
        began = now - use.seconds
        before = self._seen.pop(key, None)
        read, written = use.counts.get("cache_read_tokens", 0), use.counts.get("cache_write_tokens", 0)
        loss, cached = None, read + written
        if before is not None and began < before.at and before.upstream == use.upstream and before.model == use.model:
            cached = max(cached, before.cached)  # both ran at once: neither could read what the other wrote
        elif before is not None and before.turns <= use.turns:
            lost = before.cached - read
            if lost >= MIN_LOST and lost * MIN_SHARE >= before.cached:
                loss = _loss(before, use, lost, began, prices)
        actions, repairs = _changes(use.entries, use.turns)
        hour = bool(use.counts.get("cache_write_1h_tokens"))
        self._seen[key] = _Seen(
            use.upstream,
            use.model[:_MAX_MODEL],
            use.turns,
            cached,
            use.counts.get("input_tokens", 0),
            began,
            now,
            max(_HOUR, use.ttl_seconds or 0) if hour else use.ttl_seconds,
            actions,
            repairs,
        )
        if len(self._seen) > self._max:
            self._seen.popitem(last=False)
        return loss


def watch_key(client: str, session: str, conversation: Conversation) -> WatchKey:
    """What a conversation is known by: a client may have several at once under the name of one session."""
    return client, hash((session[:_MAX_NAME], first_message(conversation)[:_MAX_NAME]))


def _loss(before: _Seen, use: CacheUse, lost: int, began: float, prices: Prices) -> CacheLoss:
    cause, detail = _cause(before, use, began)
    place = f"{before.upstream}/{before.model}"
    if use.is_simulated:
        return CacheLoss(lost, cause, None, None, place, detail)
    here, there = prices.of(use.model, use.upstream), prices.of(before.model, before.upstream)
    price = cached_price = None
    if here is not None and there is not None:
        rates = here.rates_for(use.counts.get("input_tokens", 0))
        written = min(lost, use.counts.get("cache_write_tokens", 0))
        hour = min(written, use.counts.get("cache_write_1h_tokens", 0))
        price = (lost - written) * rates.input + (written - hour) * rates.write_rate + hour * rates.write_rate_1h
        price /= MILLION
        cached_price = lost * there.rates_for(before.input).read_rate / MILLION
    return CacheLoss(lost, cause, price, cached_price, place, detail)


def _cause(before: _Seen, use: CacheUse, began: float) -> tuple[Cause, str]:
    """Why the cache was not read, as far as the gateway knows."""
    if before.upstream != use.upstream:
        return "upstream", ""
    if before.model != use.model[:_MAX_MODEL]:
        return "model", ""
    actions, repairs = _changes(use.entries, before.turns)
    new = sorted(actions - before.actions)
    if new or repairs > before.repairs:
        return "repair", f"what was done: {', '.join(new)}" if new else ""
    if before.ttl_seconds is not None and began - before.began > before.ttl_seconds:  # each use starts it anew
        return "expired", f"{began - before.began:.0f} s, it keeps it {before.ttl_seconds} s"
    return "other", ""


def _changes(entries: tuple[Entry, ...], turns: int) -> tuple[frozenset[str], int]:
    """The kinds of changes of a request, and how many there are in its first turns, as far as they are few."""
    if not entries:
        return _NO_ACTIONS, 0
    if len(entries) > MANY:
        return frozenset(action for action, gravity, _ in entry_counts(entries).kinds if gravity != "housekeeping"), 0
    changes = [entry for entry in entries if entry.gravity != "housekeeping"]
    in_turns = sum(entry.turn is not None and entry.turn < turns for entry in changes)
    return frozenset([entry.action for entry in changes]), in_turns


_NO_ACTIONS: Final[frozenset[str]] = frozenset()
