"""The prompts of a soak and the right replies to them: both sides of the gateway read the plan in the user's message.

    «Go on. <<{"m":"mk-1-0-3-2","r":[2,1,0],"f":[["429"],[],[]],"n":4,"v":true}>>»

A prompt carries its plan: a unique marker, how many calls each round makes, the faults of the first attempts of each
round, how many results the conversation had before, and whether thinking must have come back. So the upstream needs no
memory of its own, and the client knows the only right reply. Law: everything follows from the plan.
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
"""Part of the arguments of each call: characters that are easily corrupted."""

BEFORE: Final = ("429,retry_after=0.1", "503", "529", "500", "timeout,seconds=9")
"""Faults instead of a reply."""
MIDDLE: Final = ("reset,after=1", "reset,after=4", "no_end", "error_event,after=0", "error_event,after=3",
                 "malformed_event,after=2", "slow_drip,seconds=9")  # fmt: skip
"""Faults that break a reply that has begun."""
CHANGED: Final = ("truncated_call", "malformed_arguments", "empty")
"""Faults that change the content of a reply."""
HARMLESS: Final = ("wrong_stop", "index_zero", "no_index", "repeated_names", "empty_ids", "slow_drip,seconds=0.0005")
"""Faults that must make no difference."""


class Plan(Struct, frozen=True):
    """One turn of a user, and all that follows until the next."""

    m: str
    """The marker: mk-SEED-LOOP-CONVERSATION-TURN."""
    r: tuple[int, ...]
    """Calls of each round; the last round has 0, and text only."""
    f: tuple[tuple[str, ...], ...]
    """By round: the faults of the first attempts."""
    n: int = 0
    """Results of all turns before."""
    v: bool = False
    """Every earlier reply must have its thinking, as its provider signed it."""

    def prompt(self) -> str:
        """The user's message."""
        fields = {"m": self.m, "r": self.r, "f": self.f, "n": self.n, "v": self.v}
        return f"Go on. <<{json.dumps(fields, separators=(',', ':'))}>>"

    def round_of(self, results: int) -> int | None:
        """The round that comes after so many results; None: no round does."""
        count = 0
        for step, calls in enumerate(self.r):
            if count == results:
                return step
            count += calls
        return None

    def arguments(self, step: int, index: int) -> dict[str, Any]:
        return {"marker": self.m, "round": step, "index": index, "note": NOTE}

    def text(self, step: int) -> str:
        return f"{self.m} round {step}: as you say. {NOTE}"

    def thinking(self, step: int) -> str:
        return f"Thinking of {self.m} in round {step}."

    def result(self, step: int, index: int, filler: int = 0) -> str:
        return f"{self.m} result {step} {index}; {'lorem ipsum ' * (filler // 12)}"


def plan_in(prompt: str) -> Plan | None:
    """The plan in a user's message."""
    found = _PLAN.search(prompt)
    if found is None:
        return None
    fields = json.loads(found[1])
    faults = tuple(tuple(some) for some in fields["f"])
    return Plan(fields["m"], tuple(fields["r"]), faults, fields["n"], fields["v"])


def stem(marker: str) -> str:
    """The conversation of a marker."""
    return marker.rpartition("-")[0]


def tool_names(is_odd: bool) -> tuple[str, str]:
    """The tools of a conversation; a provider may refuse the odd name, so that it has to be renamed."""
    return ("probe", "files/read" if is_odd else "look_up")


SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "marker": {"type": "string"},
        "round": {"type": "integer", "minimum": 0},
        "index": {"type": "integer"},
        "note": {"type": "string"},
    },
    "required": ["marker", "round", "index"],
}
