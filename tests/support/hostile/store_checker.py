"""The checker of the attacks on stores: what clients, the upstream and the store saw, and what of it must not be.

Every turn of every conversation has a marker of its own (`mk-CONVERSATION-TURN`), every signed thought a signature of
its own (`sg-CONVERSATION-TURN`). The upstream repeats what it saw of them, in order: so an answer says which state its
request was made from. `test_stores_checker.py` plants each violation and sees it found.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

MARKER = re.compile(r"\b(?:mk|sg)-[a-z0-9]+-[0-9]+\b")


def marks_in(text: str) -> tuple[str, ...]:
    """The markers of a text, each once, in their order."""
    return tuple(dict.fromkeys(MARKER.findall(text)))


class Step(NamedTuple):
    """One request of a client, and what came of it."""

    client: str
    conversation: str
    turn: int
    kind: str
    """plain: needs no store; stored: its answer is to be kept; continued: needs what was kept; recalled: is better with
    what was kept; limited: the key has a budget."""
    status: int
    """0: no answer came, which only a gateway that was killed explains."""
    expected: tuple[str, ...]
    seen: tuple[str, ...] = ()
    error: str = ""
    """What an error says."""
    tokens: int = 0
    is_disturbed: bool = False
    """Whether the store, or a gateway, was disturbed between the request and its answer."""
    is_killed: bool = False
    """Whether a gateway was killed in that time."""
    id: str = ""
    """Of a stored response."""
    begun: float = 0.0
    ended: float = 0.0
    """When, in seconds since 1970, as the gateways log it."""


class Read(NamedTuple):
    """What came of a look at a stored response when all is well again."""

    id: str
    client: str
    is_owner: bool
    status: int
    seen: tuple[str, ...]


class Seen(NamedTuple):
    """All that there is to judge."""

    steps: Sequence[Step]
    reads: Sequence[Read] = ()
    tokens: Mapping[str, int] = {}
    """Tokens by client, as the store has them in the end."""
    is_killed: bool = False
    """Whether gateways were killed: what they counted in their last second is gone with them."""
    open_requests: Mapping[str, float] = {}
    """What each gateway says is under way, without requests."""
    logs: Sequence[str] = ()
    """What the gateways logged."""


def violations(seen: Seen) -> list[str]:
    """Everything that must not be; empty: nothing is wrong."""
    found = [*_steps(seen.steps), *_reads(seen), *_usage(seen)]
    found += [f"{name} is {count:g} without requests" for name, count in seen.open_requests.items() if count]
    found += [f"a gateway failed inside: {line[:500]}" for line in seen.logs if "Traceback" in line]
    return found


def _steps(steps: Sequence[Step]) -> Iterable[str]:
    by_turn = {(step.conversation, step.turn): step for step in steps}
    for step in steps:
        where = f"{step.kind} {step.conversation}-{step.turn} of {step.client}"
        before = by_turn.get((step.conversation, step.turn - 1))
        foreign = [mark for mark in step.seen if mark.split("-")[1] != step.conversation]
        if foreign:
            yield f"cross-talk: {where} saw {foreign}"
        elif step.status == 200 and step.seen != step.expected and not _may_lack(step, by_turn):
            yield f"state is lost: {where} saw {step.seen}, not {step.expected}"
        elif step.status != 200:
            why = _why_not(step, before)
            if why:
                yield f"{where} got {step.status}: {why}: {step.error[:300]}"


def _may_lack(step: Step, by_turn: Mapping[tuple[str, int], Step]) -> bool:
    """What is only better with the store goes on while that fails, without what cannot be read or was not kept."""
    if step.kind != "recalled":
        return False
    lacking = [mark for mark in step.expected if mark not in step.seen]
    if not all(mark.startswith("sg-") for mark in lacking):
        return False
    signed = [by_turn[step.conversation, int(mark.rpartition("-")[2])] for mark in lacking]
    was_disturbed = step.is_disturbed or all(each.is_disturbed for each in signed)
    return was_disturbed and step.seen == tuple(mark for mark in step.expected if mark not in lacking)


def _why_not(step: Step, before: Step | None) -> str:
    """What is wrong with an error; empty: it is as it should be."""
    if step.status == 0:
        return "" if step.is_killed else "no answer, and no gateway was killed"
    if step.status == 404 or (step.status == 400 and "previous_response_not_found" in step.error):
        was_kept = before is not None and before.status == 200 and not before.is_disturbed
        return "what was kept is not found" if was_kept else ""
    if step.status != 503:
        return "an error that no fault of a store explains"
    if not step.is_disturbed:
        return "the store fails though nothing is done to it"
    if step.kind not in ("continued", "limited"):
        return "a request that needs no store fails with it"
    return "" if "store" in step.error else "it does not say that the store fails"


def _reads(seen: Seen) -> Iterable[str]:
    kept = {step.id: step for step in seen.steps if step.id and step.status == 200}
    for read in seen.reads:
        step = kept[read.id]
        if not read.is_owner and read.status != 404:
            yield f"cross-talk: {read.client} reads {read.id} of {step.client}: {read.status}"
        if read.is_owner and read.status == 200 and read.seen != step.seen:
            yield f"{read.id} was kept with {step.seen} and is read with {read.seen}"
        if read.is_owner and read.status != 200 and not step.is_disturbed:
            yield f"a kept response is lost: {read.id} of {step.client}: {read.status}"


def _usage(seen: Seen) -> Iterable[str]:
    answered, unsure = Counter[str](), Counter[str]()
    for step in seen.steps:
        answered[step.client] += step.tokens
        unsure[step.client] += TOKENS if step.status == 0 else 0
    for client, stored in seen.tokens.items():
        if stored > answered[client] + unsure[client]:
            yield f"usage of {client} is counted twice: {stored} tokens are stored, {answered[client]} were used"
        if stored < answered[client] and not seen.is_killed:
            yield f"usage of {client} is lost: {stored} tokens are stored, {answered[client]} were used"


TOKENS = 18
"""Of every answer of the upstream."""
