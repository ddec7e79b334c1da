"""SIGKILL of a gateway at any moment: what it acknowledged is kept, nothing is executed twice, keys stay apart.

The checker is tested first: each thing that must not be is planted into a run that was right, and must be found.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.hostile.gateway_kills import Acknowledged, KilledGateway, Seen, find_violations

KILLS = int(os.environ.get("HOSTILE_KILLS", "2"))
SEED = int(os.environ.get("HOSTILE_SEED", "1"))

A = Acknowledged("CLIENT_A", "mk-a", "mk-a", "resp_a")
B = Acknowledged("CLIENT_B", "mk-b", "mk-b", "resp_b")
READ = {
    ("CLIENT_A", "resp_a"): "mk-a",
    ("CLIENT_B", "resp_a"): None,
    ("CLIENT_A", "resp_b"): None,
    ("CLIENT_B", "resp_b"): "mk-b",
}
RIGHT = Seen(frozenset({"mk-a", "mk-b", "mk-c"}), (A, B), ("mk-a", "mk-b", "mk-c"), READ)

PLANTED = {
    "lost": RIGHT._replace(read_back={**READ, ("CLIENT_A", "resp_a"): None}),
    "changed": RIGHT._replace(read_back={**READ, ("CLIENT_B", "resp_b"): "mk-a"}),
    "cross-talk: CLIENT_B reads": RIGHT._replace(read_back={**READ, ("CLIENT_B", "resp_a"): "mk-a"}),
    "cross-talk: mk-b was answered": RIGHT._replace(acknowledged=(A, B._replace(text="mk-a"))),
    "executed twice": RIGHT._replace(upstream=("mk-a", "mk-b", "mk-a")),
    "invented": RIGHT._replace(upstream=("mk-a", "mk-b", "mk-x")),
    "the same id twice": RIGHT._replace(acknowledged=(A, B, B)),
    "unchecked": RIGHT._replace(read_back={}),
}


def test_the_checker_finds_nothing_in_a_run_that_was_right() -> None:
    assert find_violations(RIGHT) == []


@pytest.mark.parametrize("words", PLANTED)
def test_the_checker_finds_what_was_planted(words: str) -> None:
    found = find_violations(PLANTED[words])
    assert found
    assert all(each.startswith(words) for each in found), found


def test_a_gateway_that_is_killed_keeps_what_it_acknowledged_and_executes_nothing_twice(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    run = KilledGateway(tmp_path, seed=SEED)
    run.until(KILLS)
    record_property("kills", run.kills)
    assert run.kills == KILLS
    seen = run.seen()
    assert len(seen.acknowledged) >= KILLS
    assert find_violations(seen) == [], f"HOSTILE_SEED={SEED} HOSTILE_KILLS={KILLS} repeats it"
