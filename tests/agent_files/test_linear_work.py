"""Law 9: reading, checking and healing are linear in the file, also where every turn of it is broken."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.agent_files.sessions import (
    TIME,
    answer,
    claude_record,
    codex_call,
    codex_message,
    codex_meta,
    codex_output,
    copilot_done,
    copilot_events,
    gemini_call,
    gemini_header,
    gemini_message,
    home_in,
    minimal,
    pi_entry,
    pi_result,
    pi_use,
    place,
    qwen_answer,
    qwen_record,
    qwen_use,
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


def qwen_turns(count: int) -> list[dict[str, Any]]:
    lines = [qwen_record(0, "user", {"text": "What is here?"})]
    for number in range(1, 2 * count, 2):
        lines.append(qwen_record(number, "assistant", qwen_use(f"c{number}"), model="qwen3"))
        lines.append(qwen_record(number + 1, "tool_result", qwen_answer(f"c{number}")))
    return lines


def pi_turns(count: int) -> list[dict[str, Any]]:
    """A summary after every answer: only the last counts."""
    lines: list[dict[str, Any]] = [minimal("pi")[0], pi_entry(0, "user", {"type": "text", "text": "What is here?"})]
    for number in range(1, 3 * count, 3):
        lines.append(pi_entry(number, "assistant", pi_use(f"toolu_{number}")))
        lines.append(pi_result(number + 1, f"toolu_{number}"))
        about = {"id": f"aaaa{number + 2:04}", "parentId": f"aaaa{number + 1:04}", "timestamp": TIME}
        lines.append({"type": "compaction", **about, "summary": "S", "firstKeptEntryId": "aaaa0000"})
    return lines


def copilot_turns(count: int) -> list[dict[str, Any]]:
    """Results without calls."""
    return [*copilot_events(), *(copilot_done(number, f"toolu_x{number}") for number in range(8, count))]


def gemini_rewinds(count: int) -> list[dict[str, Any]]:
    """Messages, and then a rewind for each of them."""
    said = [gemini_message(number, "user", "And?") for number in range(count)]
    return [gemini_header(), *said, *({"$rewindTo": f"m{number}"} for number in range(count - 1, 0, -1))]


TURNS: dict[str, tuple[str, Callable[[int], list[dict[str, Any]]]]] = {
    "claude_code": ("claude_code", claude_turns),
    "codex": ("codex", codex_turns),
    "gemini_cli": ("gemini_cli", gemini_turns),
    "gemini_cli, rewinds": ("gemini_cli", gemini_rewinds),
    "qwen_code": ("qwen_code", qwen_turns),
    "pi": ("pi", pi_turns),
    "copilot_cli": ("copilot_cli", copilot_turns),
}


def handed_over(path: Path) -> object:
    session = agent_files.read(path)
    target = "claude" if session.agent == "codex" else "codex"
    return agent_files.write(
        session.conversation, target, home=home_in(path.parent), directory="/", source=session.agent, dry_run=True
    )


@pytest.mark.parametrize("name", TURNS)
@pytest.mark.parametrize("action", [agent_files.read, agent_files.check, agent_files.heal_file, handed_over])
def test_work_grows_with_the_file_and_no_faster(name: str, action: Callable[[Path], object], tmp_path: Path) -> None:
    agent, turns = TURNS[name]

    def work(count: int) -> Callable[[], object]:
        path = write_file(place(agent, home_in(tmp_path / str(count))), turns(count))
        agent_files.detect(path)
        return lambda: action(path)

    assert is_linear(work, 20)
