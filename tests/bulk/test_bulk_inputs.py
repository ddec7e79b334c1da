"""What is read: session files of agents, lists and documents of JSON, values of tables, and what is damaged."""

from __future__ import annotations

import gzip
import json
from base64 import b64decode
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from support.agent_files.sessions import PNG, full_conversation, home_in, minimal, place, write_file
from support.bulk.made_files import read_lines, sharegpt_rows, write_lines
from support.bulk.samples import ATIF
from toolglot import InputError, agent_files, bulk
from toolglot.bulk.engine.assembly import RunSummary
from toolglot.bulk.engine.json_values import split_values
from toolglot.bulk.engine.run import convert_files

MESSAGES = [{"role": "user", "content": "What is here?"}, {"role": "assistant", "content": "A file."}]


def convert(path: Path | str, output: Path, **settings: Any) -> RunSummary:
    return convert_files([path], output, **{"target": "messages", "processes": 1, **settings})


# --- session files of agents ------------------------------------------------------------------------


@pytest.mark.parametrize("agent", agent_files.writers())
def test_a_session_file_of_an_agent_is_a_row(agent: str, tmp_path: Path) -> None:
    home = home_in(tmp_path / "home")
    written = agent_files.write(full_conversation(), agent, directory="/home/me/proj", home=home)
    summary = convert(written.path, tmp_path / "out.jsonl")
    assert (summary.source, summary.counts["converted"]) == ("agent-session", 1)
    (row,) = read_lines(tmp_path / "out.jsonl")
    expected = agent_files.read(written.path).conversation
    called = [call["function"]["name"] for message in row["messages"] for call in message.get("tool_calls", ())]
    assert called == [call.name for turn in expected.turns for call in turn.calls]
    assert len([message for message in row["messages"] if message["role"] == "tool"]) >= len(called)


def test_a_folder_of_sessions_is_one_run_and_a_file_that_is_none_is_set_aside(tmp_path: Path) -> None:
    folder = tmp_path / "sessions"
    for agent in ("claude_code", "codex"):
        write_file(folder / f"{agent}.jsonl", minimal(agent))
    (folder / "other.jsonl").write_text("not a session\n")
    summary = convert(folder, tmp_path / "out.jsonl")
    assert (summary.counts["converted"], summary.lost) == (2, 1)
    (aside,) = read_lines(tmp_path / "out.jsonl.set-aside.jsonl")
    assert (aside["row"], aside["file"], aside["line"]) == (2, str(folder / "other.jsonl"), None)
    assert "not a session file" in aside["reason"]


def test_all_sessions_of_an_agent_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = home_in(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for agent in ("claude_code", "codex"):
        write_file(place(agent, home), minimal(agent))
    assert convert("agent:codex", tmp_path / "codex.jsonl").rows == 1
    assert convert("agent:all", tmp_path / "all.jsonl", target="atif").rows == 2
    with pytest.raises(InputError, match="no sessions"):
        convert("agent:pi", tmp_path / "pi.jsonl")


def test_the_file_of_a_subagent_is_its_conversation(tmp_path: Path) -> None:
    records = [{**record, "isSidechain": True} for record in minimal("claude_code")]
    source = write_lines(tmp_path / "agent.jsonl", records)
    assert convert(source, tmp_path / "out.jsonl").counts["converted"] == 1


# --- lists and documents of JSON --------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1_000])
@pytest.mark.parametrize("head", ["", "\ufeff", " \n"])
def test_every_value_of_a_list_is_a_row_however_it_is_cut(size: int, head: str) -> None:
    items = [{"a": 'x"]}{[\\'}, "a, [b", 1, {}, None, [1, [2]], "", -2.5, True, [], {"b": "\\\\"}]
    data = (head + json.dumps(items, indent=1)).encode()
    pieces = (data[start : start + size] for start in range(0, len(data), size))
    assert [json.loads(item) for item in split_values(pieces)] == items


def test_what_is_no_object_in_a_list_is_set_aside(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(["x", {"messages": MESSAGES}, 1, {"messages": MESSAGES}]) + "more")
    summary = convert(tmp_path / "in.json", tmp_path / "out.jsonl", source="messages")
    assert (summary.rows, summary.counts["converted"], summary.lost) == (5, 2, 3)
    aside = read_lines(tmp_path / "out.jsonl.set-aside.jsonl")
    assert [(entry["row"], entry["line"]) for entry in aside] == [(0, '"x"'), (2, "1"), (4, "more")]


def test_a_list_may_be_compressed_and_have_any_name(tmp_path: Path) -> None:
    data = json.dumps(sharegpt_rows(20)).encode()
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(data))
    (tmp_path / "b.jsonl").write_bytes(data)
    for name in ("a.json.gz", "b.jsonl"):
        assert convert(tmp_path / name, tmp_path / f"{name}.out.jsonl").counts["converted"] == 20


def test_a_document_of_several_lines_is_a_row(tmp_path: Path) -> None:
    (tmp_path / "trajectory.json").write_text(json.dumps(ATIF, indent=2))
    summary = convert(tmp_path / "trajectory.json", tmp_path / "out.jsonl")
    assert (summary.source, summary.counts["converted"]) == ("atif", 1)
    (tmp_path / "two.json").write_text(json.dumps(ATIF, indent=2) + "\n" + json.dumps(ATIF, indent=2))
    assert convert(tmp_path / "two.json", tmp_path / "two.jsonl").counts["converted"] == 2


# --- what is too large, damaged, or not JSON --------------------------------------------------------


def test_a_line_that_is_too_long_is_set_aside_and_the_others_are_not(tmp_path: Path) -> None:
    good = json.dumps({"messages": MESSAGES}).encode() + b"\n"
    with (tmp_path / "in.jsonl").open("wb") as stream:
        stream.write(good)
        for _ in range(65):
            stream.write(b"x" * (1024 * 1024))
        stream.write(b"\n" + good)
    for size in (1 << 30, 1 << 24):
        summary = convert(tmp_path / "in.jsonl", tmp_path / f"{size}.jsonl", source="messages", shard_bytes=size)
        assert (summary.rows, summary.counts["converted"]) == (3, 2)
        (aside,) = read_lines(tmp_path / f"{size}.jsonl.set-aside.jsonl")
        assert (aside["row"], aside["line"]) == (1, None)
        assert f"at byte {len(good)} is longer" in aside["reason"]


def test_a_damaged_table_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"messages": [json.dumps(MESSAGES)]}), tmp_path / "good.parquet")
    (tmp_path / "in.parquet").write_bytes((tmp_path / "good.parquet").read_bytes()[:-9])
    with pytest.raises(InputError, match="cannot read file") as caught:
        convert(tmp_path / "in.parquet", tmp_path / "out.jsonl", source="messages")
    assert caught.value.path.endswith("in.parquet")


def test_an_input_without_rows_is_told_from_one_whose_form_is_unclear(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(b"\n \n")
    with pytest.raises(InputError, match="no rows"):
        convert(tmp_path / "in.jsonl", tmp_path / "out.jsonl")
    assert convert(tmp_path / "in.jsonl", tmp_path / "out.jsonl", source="messages").rows == 0


def test_values_of_tables_that_json_does_not_have_are_kept(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = {
        "messages": [json.dumps(MESSAGES)],
        "at": [datetime(2026, 1, 2, tzinfo=UTC)],
        "cost": [Decimal("1.230")],
        "data": [b"\xff\x00"],
        "score": [float("nan")],
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "in.parquet")
    summary = convert(tmp_path / "in.parquet", tmp_path / "out.jsonl")
    (row,) = read_lines(tmp_path / "out.jsonl")
    assert (row["at"], row["cost"]) == ("2026-01-02T00:00:00+00:00", "1.230")
    assert row["data"] == "data:application/octet-stream;base64,/wA="
    assert row["score"] is None
    assert any("not finite" in reason for reason in row["toolglot_changes"])
    assert summary.counts["changed"] == 1


@pytest.mark.parametrize(
    "content", ["<image>What is it?", [{"type": "image"}, {"type": "text", "text": "What is it?"}]]
)
def test_images_of_a_column_are_in_the_turns_that_they_belong_to(content: Any) -> None:
    image = {"bytes": b64decode(PNG), "path": "a.png"}
    row = {"messages": [{"role": "user", "content": content}, MESSAGES[1]], "images": [image]}
    made = bulk.convert_batch([row], source="messages", target="openai").rows[0]
    parts = made["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["image_url", "text"]
    assert parts[0]["image_url"]["url"] == f"data:image/png;base64,{PNG}"


@pytest.mark.parametrize("source", ["messages", "swift"])
def test_images_that_no_text_refers_to_are_kept_and_reported(source: str) -> None:
    row = {"messages": MESSAGES, "images": ["https://x/a.png"]}
    batch = bulk.convert_batch([row], source=source, target="openai")
    assert batch.rows[0]["messages"][0]["content"][0]["image_url"]["url"] == "https://x/a.png"
    assert batch.reports[0].is_changed


def test_a_key_that_is_there_twice_is_reported() -> None:
    line = b'{"messages": [{"role": "user", "content": "a", "content": "b"}, {"role": "assistant", "content": "c"}]}'
    batch = bulk.convert_batch([line], source="messages", target="openai")
    assert batch.rows[0]["messages"][0]["content"] == "b"
    assert any("twice" in entry.reason or "more than once" in entry.reason for entry in batch.reports[0].entries)


def test_two_columns_for_one_name_are_not_guessed_at() -> None:
    options = bulk.BulkOptions(columns=(("dialog", "messages"),))
    batch = bulk.convert_batch(
        [{"messages": [], "dialog": MESSAGES}], source="messages", target="openai", options=options
    )
    assert "same name" in batch.reports[0].reason


@pytest.mark.parametrize("target", ["vertex", "bedrock", "session-trace", "sharegpt", "hermes", "atif"])
def test_a_form_that_cannot_say_what_is_trained_on_reports_that(target: str) -> None:
    row = {"messages": [MESSAGES[0], {**MESSAGES[1], "weight": 0}, *MESSAGES]}
    (report,) = bulk.convert_batch([row], source="openai", target=target).reports
    assert any("trained on" in entry.reason for entry in report.entries)


def test_the_prompt_of_a_completion_is_not_trained_on() -> None:
    row = {"prompt": [*MESSAGES, MESSAGES[0]], "completion": [MESSAGES[1]]}
    made = bulk.convert_batch([row], source="messages", target="text:hermes").rows[0]
    assert [made["text"][start:end] for start, end in made["spans"]] == ["A file.<|im_end|>"]


def test_values_of_numpy_are_those_of_json() -> None:
    numpy = pytest.importorskip("numpy")
    row = {"messages": numpy.array(MESSAGES, dtype=object), "n": numpy.int64(3), "x": numpy.float32(0.5)}
    (report,) = (batch := bulk.convert_batch([row], source="messages", target="messages")).reports
    assert (batch.rows[0]["n"], batch.rows[0]["x"], report.entries) == (3, 0.5, ())


# --- progress ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".json", ".parquet"])
def test_the_bytes_of_the_progress_are_those_of_the_plan(tmp_path: Path, ending: str) -> None:
    rows = write_lines(tmp_path / "rows.jsonl", sharegpt_rows(3_000))
    source = rows.with_name(f"in{ending}")
    if ending == ".json":
        source.write_text(json.dumps(read_lines(rows)))
    else:
        convert(rows, source, target="sharegpt")
    seen: list[tuple[int, int]] = []
    totals: list[int] = []
    started: Callable[[Any, int], object] = lambda _plan, total: totals.append(total)  # noqa: E731
    convert(source, tmp_path / "out.jsonl", progress=lambda *done: seen.append(done), started=started)
    assert sum(count for count, _ in seen) == 3_000
    assert sum(size for _, size in seen) == totals[0]
    assert all(size >= 0 for _, size in seen)
