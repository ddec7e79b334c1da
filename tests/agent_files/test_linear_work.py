"""Law 9: reading, checking and healing are linear in the file, also where every turn of it is broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.agent_files.sessions import (
    answer,
    claude_record,
    codex_call,
    codex_message,
    codex_meta,
    codex_output,
    gemini_call,
    gemini_header,
    gemini_message,
    home_in,
    place,
    use,
    write_file,
)
from support.counted_work import is_linear
from toolglot import agent_files


def claude_turns(count: int) -> list[dict[str, Any]]:
    """In every turn, one of two calls has no result, and a result has no call."""
    lines = [claude_record(0, "user", "What is here?")]
    for number in range(1, 3 * count, 3):
        calls = [use(f"toolu_{number}"), use(f"toolu_{number}b")]
        results = [answer(f"toolu_{number}"), answer(f"toolu_{number}x")]
        lines.append(claude_record(number, "assistant", calls))
        lines.append(claude_record(number + 1, "user", results))
        lines.append(claude_record(number + 2, "assistant", [{"type": "text", "text": "So."}]))
    return lines


def codex_turns(count: int) -> list[dict[str, Any]]:
    lines = [codex_meta()]
    for _ in range(count):
        lines += [codex_message("user", "And?"), codex_call("call_1"), codex_output("call_1"), codex_output("call_x")]
    return lines


def gemini_turns(count: int) -> list[dict[str, Any]]:
    lines = [gemini_header(), gemini_message(0, "user", "What is here?")]
    return lines + [
        gemini_message(number, "gemini", "So.", gemini_call(f"c{number}", "ls", None)) for number in range(1, count)
    ]


TURNS: dict[str, Callable[[int], list[dict[str, Any]]]] = {
    "claude_code": claude_turns,
    "codex": codex_turns,
    "gemini_cli": gemini_turns,
}


@pytest.mark.parametrize("agent", TURNS)
@pytest.mark.parametrize("action", [agent_files.read, agent_files.check, agent_files.heal_file])
def test_work_grows_with_the_file_and_no_faster(agent: str, action: Callable[[Path], object], tmp_path: Path) -> None:
    def work(count: int) -> Callable[[], object]:
        path = write_file(place(agent, home_in(tmp_path / str(count))), TURNS[agent](count))
        agent_files.detect(path)
        return lambda: action(path)

    assert is_linear(work, 20)
