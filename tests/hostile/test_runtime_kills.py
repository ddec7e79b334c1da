"""kill -9 at any moment: no committed turn is lost, nothing that ran is run again, and the session goes on to its end.

Every process but the last is killed: from outside after a time, or by itself right before or after a commit or a thing
that a tool did. `kill_target.py` says what each one checks when it takes the session over.
"""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path
from typing import Any

import pytest

from support.hostile.kill_target import CALLS, STEPS, WORDS, lines_of
from support.hostile.killed_sessions import MOST_RUNS, Forks, made
from support.store import servers

pytestmark = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="processes are forked and killed as Linux does it"
)

RANDOM_KILLS = 60
"""Of each of the two seeds, with SQLite; the moments are some 120 more."""
SERVER_KILLS = 20


def finished(forks: Forks, folder: Path, **order: Any) -> None:
    """The next process is left alone, and does all that is left."""
    assert not forks.run(folder, **order).was_killed
    done = [lines_of(folder / name) for name in ("effects", "commits")]
    assert not forks.run(folder, **order).was_killed
    assert [lines_of(folder / name) for name in ("effects", "commits")] == done, "there was something left to do"


def test_a_session_that_is_left_alone_does_all_of_its_work(forks: Forks, folder: Path) -> None:
    finished(forks, folder)
    assert len(lines_of(folder / "effects")) == len(WORDS) * STEPS * CALLS


@pytest.mark.parametrize("half", [0, 1])
def test_killed_right_before_and_after_each_commit_and_each_tool_and_again_while_it_is_taken_over(
    half: int, forks: Forks, folder: Path
) -> None:
    moments = forks.run(made(folder / "whole")).moments
    assert moments > 50
    for moment in range(1 + half, moments, 2):  # how many there are varies a little: commits take what waits
        copy = made(folder / str(moment))
        forks.run(copy, die_at=moment)
        forks.run(copy, die_at=1 + moment % 9)
        finished(forks, copy)
    assert forks.kills >= 50


@pytest.mark.parametrize("seed", [1, 2])
def test_killed_at_random_times(seed: int, forks: Forks, folder: Path) -> None:
    killed_at_random(forks, folder, random.Random(seed), RANDOM_KILLS)  # noqa: S311 - a draw that can be repeated


@pytest.mark.parametrize("server", ["postgres", "redis"])
def test_killed_at_random_times_with_a_store_on_a_server(server: str, forks: Forks, folder: Path) -> None:
    url_of = servers.postgres_url if server == "postgres" else servers.redis_url
    draw = random.Random(server)  # noqa: S311 - a draw that can be repeated
    killed_at_random(forks, folder, draw, SERVER_KILLS, url_of=url_of)


def killed_at_random(
    forks: Forks, folder: Path, draw: random.Random, kills: int, url_of: Any = lambda _folder: ""
) -> None:
    """Sessions, one after the other, each killed until it is done, until there were so many kills."""
    folders = (made(folder / str(number)) for number in range(10 * kills))
    length = min(forks.run(copy, store=url_of(copy)).seconds for copy in itertools.islice(folders, 3))
    for copy in folders:
        store = url_of(copy)
        for _ in range(MOST_RUNS):
            if not forks.run(copy, store=store, kill_after=draw.uniform(0, length)).was_killed:
                break
        finished(forks, copy, store=store)
        if forks.kills >= kills:
            return
    pytest.fail(f"only {forks.kills} kills")
