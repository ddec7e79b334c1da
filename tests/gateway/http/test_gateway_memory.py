"""What a gateway does about the memory of its process."""

from __future__ import annotations

import subprocess
import sys

import pytest

from toolglot.gateway.http.memory import SETTINGS, return_memory_early

FRAGMENTS = """
import os, sys
from toolglot.gateway.http.memory import return_memory_early
if sys.argv[1] == "set":
    assert return_memory_early({})

def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

large = bytearray(400_000)
del large
kept = []
before = held()
for _ in range(2):                      # large bodies, and between them something small that stays
    bodies = []
    for _ in range(300):
        bodies.append(bytearray(b"x") * 300_000)
        kept.append(bytearray(10_000))
    del bodies
print(held() - before - sum(map(len, kept)))
"""


def grown(how: str) -> int:
    """Bytes that a process holds more after large bodies came and went."""
    run = subprocess.run(
        [sys.executable, "-c", FRAGMENTS, how], capture_output=True, text=True, timeout=120, check=True
    )
    return int(run.stdout)


class Library:
    def __init__(self, answer: int) -> None:
        self.answer = answer
        self.set: dict[int, int] = {}

    def mallopt(self, name: int, value: int) -> int:
        self.set[name] = value
        return self.answer


def test_the_allocator_is_set_once_and_what_it_says_counts() -> None:
    library = Library(1)
    assert return_memory_early({"HOME": "/"}, library)
    assert library.set == SETTINGS
    assert not return_memory_early({}, Library(0))


@pytest.mark.parametrize("name", ["MALLOC_ARENA_MAX", "GLIBC_TUNABLES", "LD_PRELOAD"])
def test_who_has_set_it_already_is_not_overruled(name: str) -> None:
    library = Library(1)
    assert not return_memory_early({name: "1"}, library)
    assert not library.set


def test_where_there_is_no_such_allocator_nothing_happens() -> None:
    assert not return_memory_early({}, object())


@pytest.mark.skipif(not return_memory_early({}), reason="the allocator is not glibc's")
def test_what_large_bodies_took_is_released() -> None:
    assert grown("set") < 8_000_000
