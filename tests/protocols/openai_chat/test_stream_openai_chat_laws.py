"""Calls of Chat Completions streams in any mixture of the habits of hosts that leaves no doubt: exactly these come out.

Each host has one way to say which call a piece belongs to, and some of the habits that go with it. Mixtures that could
mean two things (equal calls without ids and indexes, say) are not made.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.protocols.streams.openai_chat import DONE, Fields, ReadChunks, call, calls, chunk
from toolglot.protocols.framing import json_end
from toolglot.protocols.framing.json_end import ObjectEnd

END = (chunk({}, "tool_calls"), DONE)


def read_to_end(*chunks: Any) -> ReadChunks:
    return ReadChunks([*chunks, *END])


NAMES = ("read", "read_file", "aa", "edit_existing_file", "f")
values = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.text('a"{}[]\\ä \n', max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab{", max_size=2), inner, max_size=3),
    max_leaves=6,
)
arguments = st.dictionaries(st.text('ab}{"', max_size=3), values, max_size=3)


@st.composite
def pieces_of(
    draw: st.DrawFn, index: Any, id: str | None, name: str, text: str, quirks: frozenset[str]
) -> list[Fields]:
    """One call in pieces, with the quirks of its host."""
    marks = sorted(draw(st.sets(st.integers(1, max(1, len(text) - 1)), max_size=5)))
    parts = [text[start:end] for start, end in itertools.pairwise([0, *marks, len(text)])]
    if "twice" in quirks and text != "{}":
        parts = [*parts, *parts]
    if "empty first" in quirks:
        parts = ["{}", *parts]
    names: list[Any] = [name]
    if "split name" in quirks and name == "edit_existing_file":
        names = ["edit_ex", "isting_file"]
    heads = [call(index, id, part, "") for part in names]
    if "late id" in quirks and id is not None:
        heads = [*[call(index, None, part, "") for part in names], call(index, id)]
    blank = draw(st.sampled_from([None, ""])) if "empties" in quirks else None
    more = [call(index, blank, blank, part) for part in parts]
    if "repeats" in quirks:
        more = [call(index, id, name, part) for part in parts]
    if "ids" in quirks:
        more = [{**piece, "id": id} for piece in more]
    if "name last" in quirks:
        return [*[{**piece, "id": id} if id else piece for piece in more[:1]], *more[1:], heads[0]]
    if "whole" in quirks:
        return [call(index, id, name, text)]
    return [*heads, *more]


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Fields], list[tuple[str, str, Any]]]:
    """A stream of some calls, by a host of one kind, and the calls."""
    wanted = draw(st.lists(st.tuples(st.sampled_from(NAMES), arguments), min_size=1, max_size=4))
    host = draw(st.sampled_from(["indexed", "indexed without ids", "index 0", "no index", "nothing"]))
    optional = ["empties", "whole", "split name"]
    if host in ("indexed", "indexed without ids"):
        optional += ["repeats", "name last"]
    if host == "indexed":
        optional += ["late id"]
    if host in ("index 0", "no index"):
        optional += ["repeats"]
    quirks = draw(st.frozensets(st.sampled_from(optional)))
    if quirks & {"repeats", "name last", "whole"}:
        quirks -= {"split name", "late id"}
    in_turns = host != "nothing" and draw(st.booleans())
    if in_turns and host in ("index 0", "no index"):
        quirks = (quirks - {"split name", "empties"}) | {"ids"}
    if not in_turns and host != "nothing" and "name last" not in quirks:
        quirks |= draw(st.frozensets(st.sampled_from(["empty first", "twice"])))
    if host == "nothing":
        wanted = [one for at, one in enumerate(wanted) if at == 0 or one[0] != wanted[at - 1][0]]
    first, step = draw(st.integers(0, 3)), draw(st.integers(1, 3))
    lines, expected = [], []
    for at, (name, value) in enumerate(wanted):
        index = first + at * step if host.startswith("indexed") else 0 if host == "index 0" else None
        id = None if host in ("indexed without ids", "nothing") else f"call_{at}"
        lines.append(draw(pieces_of(index, id, name, json.dumps(value), quirks)))
        expected.append((id or "", name, value))
    return draw(in_chunks(lines, in_turns=in_turns, is_indexed=host == "indexed")), expected


@st.composite
def in_chunks(draw: st.DrawFn, lines: list[list[Fields]], *, in_turns: bool, is_indexed: bool) -> list[Fields]:
    pieces: list[Fields] = []
    left = [list(line) for line in lines]
    while any(left):
        open_lines = [line for line in left if line]
        pieces.append((draw(st.sampled_from(open_lines)) if in_turns else open_lines[0]).pop(0))
    chunks: list[list[Fields]] = []
    for piece in pieces:
        if chunks and is_indexed and draw(st.booleans()):
            chunks[-1].append(piece)
        else:
            chunks.append([piece])
    return [calls(*listed) for listed in chunks]


@pytest.mark.law
@given(streams())
def test_calls_are_never_merged_or_taken_apart(made: tuple[list[Fields], list[tuple[str, str, Any]]]) -> None:
    chunks, expected = made
    stream = ReadChunks([*chunks, *END], NAMES)
    found = [(block.id, block.name, block.arguments) for block in stream.accumulator.calls]
    assert sorted(found, key=repr) == sorted(expected, key=repr), stream.problems
    assert stream.reply.stop == "tool_calls"
    assert stream.accumulator.cut == ()


@pytest.mark.law
@given(streams())
def test_chunks_mean_the_same_whether_or_not_they_are_like_the_one_before(
    made: tuple[list[Fields], list[tuple[str, str, Any]]],
) -> None:
    """Chunks of one shape are read by their string alone (`stream_shapes.py`); no two of the padded ones have one."""
    chunks = [
        chunk({"role": "assistant", "content": "Hel"}),
        chunk({"content": "lo"}),
        chunk({"content": "!"}),
        *made[0],
    ]
    written = [json.dumps(one, ensure_ascii=False, separators=(",", ":")) for one in (*chunks, END[0])]
    padded = [f"{' ' * number}{text}" for number, text in enumerate(written)]
    assert ReadChunks([*written, DONE], NAMES).events == ReadChunks([*padded, DONE], NAMES).events


def test_the_end_of_arguments_is_looked_for_in_linear_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every character is looked at no more than once, also where each piece has a brace."""
    looked = 0
    original = ObjectEnd.look

    def counted(self: ObjectEnd, text: str) -> int | None:
        nonlocal looked
        looked += len(text)
        return original(self, text)

    monkeypatch.setattr(json_end.ObjectEnd, "look", counted)
    nested = '{"a":[' + ",".join(['{"b":"}{"}'] * 2000) + "]}"
    plain = json.dumps({"a": "x" * 20_000})
    for text, limit in ((nested, 2 * len(nested)), (plain, len(plain) + 8)):
        looked = 0
        pieces = [calls(call(0, arguments=text[at : at + 4])) for at in range(0, len(text), 4)]
        stream = read_to_end(calls(call(0, "a", "f", "")), *pieces)
        assert stream.calls == [("f", json.loads(text))]
        assert looked <= limit
