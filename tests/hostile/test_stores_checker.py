"""The checker of the attacks on stores finds each violation that is planted, and nothing in what is as it should be."""

from __future__ import annotations

import pytest

from support.hostile.store_checker import TOKENS, Read, Seen, Step, violations

FIRST = Step("ann", "c1", 1, "stored", 200, ("mk-c1-1",), ("mk-c1-1",), tokens=TOKENS, id="resp_1")
SECOND = Step(
    "ann", "c1", 2, "continued", 200, ("mk-c1-1", "mk-c1-2"), ("mk-c1-1", "mk-c1-2"), tokens=TOKENS, id="resp_2"
)
SIGNED = Step("bob", "c2", 1, "plain", 200, ("mk-c2-1",), ("mk-c2-1",), tokens=TOKENS)
RECALLED_MARKS = ("mk-c2-1", "sg-c2-1", "mk-c2-2")
RECALLED = Step("bob", "c2", 2, "recalled", 200, RECALLED_MARKS, RECALLED_MARKS, tokens=TOKENS)
UNSIGNED = RECALLED._replace(seen=("mk-c2-1", "mk-c2-2"))
STEPS = (FIRST, SECOND, SIGNED, RECALLED)
OWN = Read("resp_1", "ann", True, 200, ("mk-c1-1",))
OTHERS = Read("resp_1", "bob", False, 404, ())
TWO = {"ann": 2 * TOKENS, "bob": 2 * TOKENS}
GOOD = Seen(STEPS, (OWN, OTHERS), TWO, open_requests={"gateway0": 0.0}, logs=('{"event":"start"}',))
AWAY = '{"error":{"message":"the gateway\'s store, which this request needs, cannot be used now"}}'
FAILED = SECOND._replace(status=503, seen=(), error=AWAY, tokens=0, is_disturbed=True, id="")
CUT = SECOND._replace(status=0, seen=(), tokens=0, is_disturbed=True, is_killed=True, id="")
NOT_FOUND = '{"error":{"code":"previous_response_not_found"}}'
MISSING = SECOND._replace(status=400, seen=(), error=NOT_FOUND, tokens=0, id="")


def with_step(old: Step, new: Step) -> Seen:
    return GOOD._replace(steps=[new if step is old else step for step in STEPS], tokens={})


PLANTED = {
    "another's marker": (with_step(SECOND, SECOND._replace(seen=("mk-c2-1", "mk-c1-2"))), "cross-talk"),
    "another's signature": (
        with_step(RECALLED, RECALLED._replace(seen=("mk-c2-1", "sg-c9-1", "mk-c2-2"))),
        "cross-talk",
    ),
    "an earlier turn is missing": (with_step(SECOND, SECOND._replace(seen=("mk-c1-2",))), "state is lost"),
    "an earlier turn is missing in a fault": (
        with_step(SECOND, SECOND._replace(seen=("mk-c1-2",), is_disturbed=True)),
        "state is lost",
    ),
    "a signature is missing": (with_step(RECALLED, UNSIGNED), "state is lost"),
    "a word is missing in a fault": (
        with_step(RECALLED, RECALLED._replace(seen=("mk-c2-2",), is_disturbed=True)),
        "state is lost",
    ),
    "a 503 without a fault": (with_step(SECOND, FAILED._replace(is_disturbed=False)), "nothing is done to it"),
    "a 503 that names nothing": (with_step(SECOND, FAILED._replace(error="busy")), "does not say"),
    "a plain request fails": (
        with_step(SIGNED, SIGNED._replace(status=503, seen=(), error=AWAY, is_disturbed=True)),
        "needs no store",
    ),
    "a 500": (with_step(SIGNED, SIGNED._replace(status=500, seen=(), is_disturbed=True)), "no fault"),
    "no answer without a kill": (with_step(SECOND, CUT._replace(is_killed=False)), "no gateway was killed"),
    "what was kept is not found": (with_step(SECOND, MISSING), "not found"),
    "a kept response is lost": (GOOD._replace(reads=[OWN._replace(status=404, seen=())]), "is lost"),
    "a kept response has changed": (GOOD._replace(reads=[OWN._replace(seen=("mk-c1-2",))]), "is read with"),
    "another reads it": (GOOD._replace(reads=[OTHERS._replace(status=200)]), "cross-talk"),
    "counted twice": (GOOD._replace(tokens=TWO | {"ann": 3 * TOKENS}), "counted twice"),
    "counted twice with a kill": (GOOD._replace(tokens=TWO | {"ann": 3 * TOKENS}, is_killed=True), "counted twice"),
    "not counted": (GOOD._replace(tokens=TWO | {"bob": TOKENS}), "usage of bob is lost"),
    "left open": (GOOD._replace(open_requests={"gateway0": 1.0}), "without requests"),
    "a traceback": (GOOD._replace(logs=["Traceback (most recent call last)"]), "failed inside"),
}
ALLOWED = {
    "all is well": GOOD,
    "a 503 that names the store, in a fault": with_step(SECOND, FAILED),
    "a signature that was not kept in a fault": GOOD._replace(
        steps=[FIRST, SECOND, SIGNED._replace(is_disturbed=True), UNSIGNED]
    ),
    "a signature that cannot be read in a fault": with_step(RECALLED, UNSIGNED._replace(is_disturbed=True)),
    "no answer of a gateway that was killed": with_step(SECOND, CUT),
    "not found, and kept in a fault": GOOD._replace(
        steps=[FIRST._replace(is_disturbed=True), MISSING, SIGNED, RECALLED], reads=[OTHERS], tokens={}
    ),
    "counted by a gateway that was killed": GOOD._replace(
        steps=[FIRST, CUT, SIGNED, RECALLED], tokens=TWO, reads=[], is_killed=True
    ),
    "not counted by a gateway that was killed": GOOD._replace(tokens=TWO | {"bob": TOKENS}, is_killed=True),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_violation_is_found(name: str) -> None:
    seen, expected = PLANTED[name]
    found = violations(seen)
    assert len(found) == 1, found
    assert expected in found[0]


@pytest.mark.parametrize("name", ALLOWED)
def test_what_a_fault_explains_is_no_violation(name: str) -> None:
    assert violations(ALLOWED[name]) == []
