"""Work that leaves the event loop: by how much there is to do, and never two threads on the same thing."""

from __future__ import annotations

import asyncio
import threading

import pytest

from support.counted_work import steps_of
from support.translate.many_faults import FAULTS
from support.waiting import HANG_SECONDS
from toolglot.conversation.report import Entry, count_gravities, order_by_gravity
from toolglot.gateway.http.offloading import HUGE, LARGE, ON_LOOP, count_values_of, run
from toolglot.gateway.observability.report_counts import (
    MAX_KINDS,
    CountedEntries,
    EntryCounts,
    count_entries,
    entry_counts,
)


@pytest.mark.parametrize(
    ("values", "size", "leaves"),
    [(0, 0, False), (ON_LOOP, LARGE, False), (ON_LOOP + 1, 10, True), (0, LARGE + 1, True), (HUGE + 1, 10, True)],
)
def test_what_there_is_to_do_decides_where_it_is_done(values: int, size: int, leaves: bool) -> None:
    async def where() -> str:
        return await run(values, size, lambda: threading.current_thread().name)

    name = asyncio.run(where())
    assert (name != threading.current_thread().name) == leaves
    assert name.startswith("huge") == (values > HUGE)


def test_what_goes_wrong_in_a_thread_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        asyncio.run(run(ON_LOOP + 1, 0, lambda: 1 // 0))


def test_who_is_cancelled_goes_on_when_its_thread_has_ended() -> None:
    begun, may_end = threading.Event(), threading.Event()
    ended: list[str] = []

    def work() -> None:
        begun.set()
        assert may_end.wait(HANG_SECONDS)
        ended.append("thread")

    async def ask() -> None:
        try:
            await run(ON_LOOP + 1, 0, work)
        finally:
            ended.append("task")

    async def cancel_twice() -> None:
        task = asyncio.create_task(ask())
        await asyncio.to_thread(begun.wait, HANG_SECONDS)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0)
        assert not task.done()
        may_end.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel_twice())
    assert ended == ["thread", "task"]


def test_values_are_counted_no_further_than_needed() -> None:
    assert count_values_of({"a": [1, {"b": []}], "c": "[]"}) == 6
    assert count_values_of([0] * (ON_LOOP - 1)) == ON_LOOP
    for much in ([0] * ON_LOOP, [[0] * 10_000_000] * 1_000):
        assert count_values_of(much) == ON_LOOP + 1
        assert steps_of(lambda much=much: count_values_of(much)) < 3 * ON_LOOP  # type: ignore[misc]
    circle: list[object] = []
    circle.append(circle)
    assert count_values_of(circle) == ON_LOOP + 1
    source, body_with = FAULTS["A6 outputs without a call id"]
    assert source == "openai_responses"
    assert count_values_of(body_with(10)) >= 10


def entries(count: int) -> tuple[Entry, ...]:
    actions = ("dropped", "converted", "replaced", "assumed")
    return tuple(
        Entry(action=actions[n % 4], reason=f"because (rule-{n % 7}) of it", fault="canonical")  # type: ignore[arg-type]
        for n in range(count)
    )


@pytest.mark.parametrize("count", [0, 1, 5, 1000])
def test_a_tally_says_what_the_entries_say(count: int) -> None:
    made = entries(count)
    kept = count_entries(made)
    assert kept == made
    assert (type(kept) is CountedEntries) == (count == 1000)
    counts = entry_counts(kept)
    assert counts.gravities == count_gravities(made)
    assert [*counts.gravities] == [*count_gravities(made)]
    assert counts.gravest == order_by_gravity(made)[:3]
    assert sum(counts.kinds.values()) == count


def test_kinds_of_changes_are_bounded() -> None:
    many = tuple(Entry(action="dropped", reason=f"it (name-{n})", fault="canonical") for n in range(MAX_KINDS * 2))
    counts = EntryCounts(many)
    assert len(counts.kinds) == MAX_KINDS + 1
    assert sum(counts.kinds.values()) == len(many)
