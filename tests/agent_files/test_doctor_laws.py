"""Files that are broken at random: the doctor never raises, loses no result, and a healed file is stable.

`lost` are the words of results that the agent would have sent before and does not after: there are none.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.agent_files.faults import FAULTS
from support.agent_files.sessions import IDS, home_in, minimal, place
from toolglot import InputError, agent_files

Breakage = tuple[str, int, int]

breakages = st.lists(
    st.tuples(
        st.sampled_from(
            ["cut", "drop", "swap", "repeat", "blank", "id", "parent", "join", "garbage", "field", "null", "bytes"]
        ),
        st.integers(0, 40),
        st.integers(0, 40),
    ),
    min_size=1,
    max_size=6,
)
_FIELDS = ("uuid", "parentUuid", "message", "payload", "type", "content", "toolCalls", "id", "ordinal", "timestamp")


def longer(agent: str) -> list[dict[str, Any]]:
    """A file with the lines of several turns."""
    lines = minimal(agent)
    if agent == "codex":
        return [*lines, *copy.deepcopy(lines[2:])]
    return lines


def broken(agent: str, changes: list[Breakage]) -> bytes:
    lines = [json.dumps(line).encode() + b"\n" for line in longer(agent)]
    kinds = {kind for kind, _, _ in changes}
    for kind, first, second in changes:
        if not lines:
            break
        if agent == "gemini_cli" and kind in ("field", "null") and kinds & {"join", "repeat"}:
            continue  # a later line replaces an earlier one: one that says less, and can be read again, counts
        at, other = first % len(lines), second % len(lines)
        if kind == "cut":
            lines[at] = lines[at][: second * len(lines[at]) // 41] + b"\n" * (second % 2)
        elif kind == "drop":
            del lines[at]
        elif kind == "swap":
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == "repeat":
            lines.insert(other, lines[at])
        elif kind == "blank":
            lines.insert(at, b"\n")
        elif kind == "join":
            lines[at] = lines[at].rstrip(b"\n")
        elif kind == "garbage":
            lines.insert(
                at, [b"\0\0\0\n", b"{\n", b"[1]\n", b'{"a": \xff}\n', b"nonsense\n", b'"\\ud800"\n'][second % 6]
            )
        elif kind == "bytes":
            lines[at] = lines[at].replace(b"e", b"\xff", second % 3)
        else:
            lines[at] = _with_field(lines, at, other, kind, first + second)
    return b"".join(lines)


def _with_field(lines: list[bytes], at: int, other: int, kind: str, number: int) -> bytes:
    try:
        value, donor = json.loads(lines[at]), json.loads(lines[other])
    except ValueError:
        return lines[at]
    if not isinstance(value, dict) or not isinstance(donor, dict):
        return lines[at]
    name = _FIELDS[number % len(_FIELDS)]
    if kind == "id" and "uuid" in donor:
        value["uuid"] = donor["uuid"]
    elif kind == "parent" and "uuid" in donor:
        value["parentUuid"] = donor["uuid"]
    elif kind == "field" and name in value:
        value[name] = donor.get(name, [[], {}, "x", 7][number % 4])
    elif kind == "null" and name in value:
        value[name] = None
    return json.dumps(value).encode() + b"\n"


def written(agent: str, data: bytes, folder: Path) -> Path:
    path = place(agent, home_in(folder))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def pairs(path: Path, agent: str) -> set[str]:
    """The words of the results that have a call."""
    turns = agent_files.read(path, agent=agent).conversation.turns
    calls = {call.id for turn in turns for call in turn.calls}
    return {result.text for turn in turns for result in turn.results if result.call_id in calls and not result.is_error}


@pytest.mark.law
@pytest.mark.parametrize("agent", IDS)
@given(changes=breakages)
@settings(max_examples=150)
def test_a_broken_file_is_read_checked_and_healed_without_an_error_and_stays_healed(
    agent: str, changes: list[Breakage], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(agent, broken(agent, changes), tmp_path_factory.mktemp("home"))
    before = path.read_bytes()
    kept = pairs(path, agent)
    agent_files.check(path, agent=agent)
    for holes in (False, True):
        path.write_bytes(before)
        healed = agent_files.heal_file(path, agent=agent, closes_holes=holes)
        assert len([each for each in healed.left if not each.only_if_asked]) <= len(healed.faults) + 1
        path.write_bytes(b"".join(healed.after))
        if not holes:
            assert kept <= pairs(path, agent)
        again = agent_files.heal_file(path, agent=agent, closes_holes=holes)
        assert not again.is_changed
        if any(each.kind == "not-healed" for each in healed.left):
            continue  # every fix would lose a result; this is said
        assert [each for each in again.faults if each.fix and (holes or not each.only_if_asked)] == []


@pytest.mark.law
@pytest.mark.parametrize("agent", IDS)
@given(data=st.binary(max_size=300))
@settings(max_examples=100)
def test_bytes_are_a_session_or_a_named_error(
    agent: str, data: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = written(agent, data, tmp_path_factory.mktemp("home"))
    agent_files.check(path, agent=agent)
    agent_files.read(path, agent=agent)
    list(agent_files.find(agent, home=home_in(path.parents[5 if agent == "codex" else 3])))
    with pytest.raises(InputError):
        agent_files.read(path.with_name("missing.jsonl"))


def test_the_table_of_faults_has_those_of_every_agent() -> None:
    assert {fault.agent for fault in FAULTS} == {*IDS}
    assert len({fault.id for fault in FAULTS}) == len(FAULTS)
