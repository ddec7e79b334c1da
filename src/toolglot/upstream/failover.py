"""Failover: whether the next upstream or model is called after one has failed, and how that is reported.

The order is that of the route (`routing/load_balancing.py`), or the model of a session and its `fallback`.

Law: a switch never happens inside a turn. Once the client has seen some of a reply, its failure is reported as such.
"""

from __future__ import annotations

from toolglot.conversation import Failure
from toolglot.conversation.report import Entry


def may_fail_over(failure: Failure) -> bool:
    """Whether another upstream may answer. What one provider's filter refused is not sent to another provider."""
    return failure.kind != "content_filter"


def failover_entry(before: str, after: str, reason: str, target: str) -> Entry:
    """The report's entry for a switch to `after`."""
    message = f"{before} did not answer ({reason}); {after} was called instead"
    return Entry(action="replaced", reason=message, fault="policy", target=target)
