"""What a soak asks and is to be answered: both sides of the gateway read it from the user's own words.

    «Go on. <<{"m":"mk-1-0-3-2","r":[2,1,0],"f":[["429"],[],[]],"n":4,"v":true}>>»

A prompt carries its plan: a marker that no other has, how many calls each round makes, what goes wrong on the first
tries of each round, how many results the conversation had before, and whether thinking must have come back. So the
upstream needs no memory of its own, and the client knows the only right answer. Law: everything follows from the plan.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from msgspec import Struct

_PLAN: Final = re.compile(r"<<(\{.*?\})>>")
MARKER: Final = re.compile(r"mk-[0-9a-z]+-\d+-\d+-\d+")
RESULT: Final = re.compile(r"(mk-[0-9a-z]+-\d+-\d+-\d+) result (\d+) (\d+);")
NOTE: Final = 'naïve 日本 "quoted" \\ </tool_call> \n\t🙂'
"""What the arguments of a call hold besides: things that are easily spoiled."""

BEFORE: Final = ("429,retry_after=0.1", "503", "529", "500", "timeout,seconds=9")
"""What goes wrong instead of an answer."""
MIDDLE: Final = ("reset,after=1", "reset,after=4", "no_end", "error_event,after=0", "error_event,after=3",
                 "malformed_event,after=2", "slow_drip,seconds=9")  # fmt: skip
"""What breaks an answer that has begun."""
SPOILT: Final = ("truncated_call", "malformed_arguments", "empty")
"""What makes another answer of it."""
HARMLESS: Final = ("wrong_stop", "index_zero", "no_index", "repeated_names", "empty_ids", "slow_drip,seconds=0.0005")
"""What is to make no difference."""


class Plan(Struct, frozen=True):
    """One turn of a user, and all that follows until the next."""

    m: str
    """The marker: mk-SEED-LOOP-CONVERSATION-TURN."""
    r: tuple[int, ...]
    """Calls of each round; the last is 0, and a round of words only."""
    f: tuple[tuple[str, ...], ...]
    """By round: what goes wrong with the first tries."""
    n: int = 0
    """Results of all turns before."""
    v: bool = False
    """Every answer before must have its thinking, as its provider signed it."""

    def words(self) -> str:
        """What the user says."""
        fields = {"m": self.m, "r": self.r, "f": self.f, "n": self.n, "v": self.v}
        return f"Go on. <<{json.dumps(fields, separators=(',', ':'))}>>"

    def round_of(self, results: int) -> int | None:
        """The round that is due when so many results are there; None: there can be no such number."""
        count = 0
        for place, calls in enumerate(self.r):
            if count == results:
                return place
            count += calls
        return None

    def arguments(self, step: int, place: int) -> dict[str, Any]:
        return {"marker": self.m, "round": step, "place": place, "note": NOTE}

    def answer(self, step: int) -> str:
        return f"{self.m} round {step}: as you say. {NOTE}"

    def thinking(self, step: int) -> str:
        return f"Thinking of {self.m} in round {step}."

    def result(self, step: int, place: int, filler: int = 0) -> str:
        return f"{self.m} result {step} {place}; {'lorem ipsum ' * (filler // 12)}"


def plan_in(said: str) -> Plan | None:
    """The plan in the words of a user."""
    found = _PLAN.search(said)
    if found is None:
        return None
    fields = json.loads(found[1])
    faults = tuple(tuple(some) for some in fields["f"])
    return Plan(fields["m"], tuple(fields["r"]), faults, fields["n"], fields["v"])


def stem(marker: str) -> str:
    """The conversation of a marker."""
    return marker.rpartition("-")[0]


def tool_names(is_odd: bool) -> tuple[str, str]:
    """The tools of a conversation; a provider may not take the odd name, and must not notice."""
    return ("probe", "files/read" if is_odd else "look_up")


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "marker": {"type": "string"},
        "round": {"type": "integer", "minimum": 0},
        "place": {"type": "integer"},
        "note": {"type": "string"},
    },
    "required": ["marker", "round", "place"],
}
