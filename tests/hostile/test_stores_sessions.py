"""Sessions on PostgreSQL and Redis whose server is killed, or its answers lost: no turn is lost, nothing runs twice.

A session whose store fails ends; the next process takes it over, checks it (`kill_target.py`) and goes on. The answers
to its commits are lost, one at a time, and the server is killed at drawn moments.
"""

from __future__ import annotations

import random
import signal
import threading
from pathlib import Path

import pytest

from support.hostile.kill_target import CALLS, STEPS, STORE_FAILED, WORDS, lines_of
from support.hostile.killed_sessions import Forks, made
from support.hostile.store_faults import SERVERS, url_of
from support.hostile.store_proxy import StoreProxy

COMMITS = {"postgres": b"COMMIT", "redis": b"EVALSHA"}
"""What the server is sent when it is to write for good; Redis also on request."""
EVERY = 5
"""So many commits are between two whose answer is lost."""
MOST_RUNS = 20
DATABASE_KILLS = 2
MOST_TRIES = 20


def finish(forks: Forks, folder: Path, url: str) -> int:
    """Processes take the session over until its work is done; how many the store failed."""
    for failed in range(MOST_RUNS):
        if forks.run(folder, store=url, may_fail=True).code == 0:
            effects = lines_of(folder / "effects")
            assert len(effects) <= len(WORDS) * STEPS * CALLS
            return failed
    pytest.fail(f"not done after {MOST_RUNS} processes")


@pytest.mark.parametrize("kind", COMMITS)
def test_a_session_goes_on_when_the_answer_to_any_of_its_commits_is_lost(kind: str, forks: Forks, folder: Path) -> None:
    with StoreProxy(SERVERS[kind]().port) as proxy:
        losses = 0
        for number in range(0, 200, EVERY):
            copy = made(folder / str(number))
            proxy.lose_answer_to(COMMITS[kind], after=number)
            finish(forks, copy, url_of(kind, copy, proxy.port))
            if not proxy.lost:
                break
            losses += 1
        assert losses >= 5


@pytest.mark.parametrize("kind", COMMITS)
def test_a_session_goes_on_when_its_server_was_killed_at_any_moment(kind: str, forks: Forks, folder: Path) -> None:
    draw = random.Random(kind)  # noqa: S311 - a draw that can be repeated
    server = SERVERS[kind]()
    copy = made(folder / "alone")
    length = forks.run(copy, store=url_of(kind, copy, server.port)).seconds
    failed = 0
    for number in range(MOST_TRIES):
        if failed >= DATABASE_KILLS:
            return
        copy = made(folder / str(number))
        url = url_of(kind, copy, server.port)
        killing = threading.Timer(draw.uniform(0.1, 0.8) * length, server.end, (signal.SIGKILL,))
        killing.start()
        outcome = forks.run(copy, store=url, may_fail=True)
        killing.join()
        server.start()
        failed += outcome.code == STORE_FAILED
        finish(forks, copy, url)
    pytest.fail(f"the server was killed {MOST_TRIES} times, and only {failed} sessions noticed")
