"""What it costs that cache markers were placed: the price of a write against that of a read.

    report.add(cost_of_markers(prices.of(model, upstream), target))

Law: an unknown price is said to be unknown.
"""

from __future__ import annotations

from toolglot.conversation.report import Entry
from toolglot.profiles import Profile
from toolglot.upstream.prices import Price


def cost_of_markers(price: Price | None, target: Profile) -> Entry:
    """A report entry on what the cache markers that were placed cost, and what they save."""
    if price is None:
        cost = f"the price of {target.model[:80] or target.name} is not known"
    else:
        written = price.input if price.cache_write is None else price.cache_write
        read = price.input if price.cache_read is None else price.cache_read
        cost = (
            f"a million tokens cost {_dollars(written)} when they are written to the cache, and {_dollars(read)} each "
            f"time that they are read from it, instead of {_dollars(price.input)}"
        )
    return Entry(
        action="added",
        reason=f"the cost of the cache markers: {cost}",
        fault="policy",
        path="$",
        target=target.name,
        gravity="housekeeping",
    )


def _dollars(amount: object) -> str:
    return f"${amount}"
