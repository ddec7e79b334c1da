"""Files of rows through the local engine: the same bytes however many processes there are and whatever dies."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import pickle
import signal
import subprocess
import sys
from collections import UserDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.bulk.made_files import hash_of, read_lines, sharegpt_rows, write_lines
from support.bulk.samples import ANTHROPIC, OPENAI, SAMPLES
from support.long_form import IS_LONG
from support.runs.soak_counts import KILLS
from support.waiting import wait_until
from toolglot import InputError
from toolglot.bulk import BulkOptions
from toolglot.bulk.engine.assembly import RunSummary
from toolglot.bulk.engine.plan import make_plan
from toolglot.bulk.engine.run import convert_files
from toolglot.bulk.engine.shard import part_name
from toolglot.bulk.engine.table_function import TableFunction

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.feather")
pytest.importorskip("pyarrow.parquet")  # an attribute of pyarrow only once it is imported

SMALL = 20_000
"""Bytes of a shard, so that a small file has several."""
KILLED_RUNS = 8 if IS_LONG else 2


def convert(path: Path, output: Path | str, **settings: Any) -> RunSummary:
    settings = {"target": "openai", "processes": 1, "shard_bytes": SMALL, **settings}
    return convert_files([path], output, **settings)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    broken = ["{", "[1]", "", '{"conversations": []}']
    return write_lines(tmp_path / "in.jsonl", [*sharegpt_rows(150), *broken, *sharegpt_rows(150)])


@pytest.mark.parametrize("ending", [".jsonl", ".jsonl.gz", ".jsonl.zst", ".parquet", ".arrow", "/"])
def test_the_output_is_the_same_with_any_number_of_processes(rows: Path, tmp_path: Path, ending: str) -> None:
    hashes = set()
    for processes in (1, 2, 3) if IS_LONG or ending == ".jsonl" else (1, 2):
        out = tmp_path / f"out{processes}{ending.removesuffix('/')}"
        summary = convert(rows, f"{out}{'/' if ending == '/' else ''}", target="messages", processes=processes)
        hashes.add(hash_of(out))
        assert (summary.rows, summary.counts["converted"], summary.lost) == (303, 300, 3)
    assert len(hashes) == 1


def test_the_output_does_not_depend_on_the_shards(tmp_path: Path) -> None:
    rows = write_lines(tmp_path / "in.jsonl", [*sharegpt_rows(30), "{", *sharegpt_rows(30)])
    for size in (700, 5_000, 10**9):
        convert(rows, tmp_path / f"{size}.jsonl", shard_bytes=size)
    assert len({hash_of(tmp_path / f"{size}.jsonl") for size in (700, 5_000, 10**9)}) == 1


def test_rows_that_are_set_aside_are_kept_with_their_number_and_reason(rows: Path, tmp_path: Path) -> None:
    summary = convert(rows, tmp_path / "out.jsonl", shard_bytes=3_000)
    aside = read_lines(tmp_path / "out.jsonl.set-aside.jsonl")
    assert [(entry["row"], entry["line"]) for entry in aside] == [
        (150, "{"),
        (151, "[1]"),
        (152, '{"conversations": []}'),
    ]
    assert all(entry["reason"] and entry["file"] == str(rows) for entry in aside)
    assert sum(summary.reasons.values()) == 3
    assert json.loads((tmp_path / "out.jsonl.summary.json").read_text())["counts"]["set_aside"] == 3


def test_changes_are_in_a_column_where_the_form_allows_one_and_otherwise_in_a_file(tmp_path: Path) -> None:
    row = {**SAMPLES["xlam"], "extra": 1}
    source = write_lines(tmp_path / "in.jsonl", [row, row])
    convert(source, tmp_path / "a.jsonl", target="messages")
    assert all("JSON Schema" in " ".join(made["toolglot_changes"]) for made in read_lines(tmp_path / "a.jsonl"))
    assert {made["extra"] for made in read_lines(tmp_path / "a.jsonl")} == {1}
    assert not (tmp_path / "a.jsonl.changes.jsonl").exists()
    convert(source, tmp_path / "b.jsonl", target="openai")
    assert [entry["row"] for entry in read_lines(tmp_path / "b.jsonl.changes.jsonl")] == [0, 1]


def test_existing_output_is_not_overwritten(rows: Path, tmp_path: Path) -> None:
    (tmp_path / "out.jsonl").write_text("mine")
    with pytest.raises(InputError, match="already exists"):
        convert(rows, tmp_path / "out.jsonl")
    assert (tmp_path / "out.jsonl").read_text() == "mine"
    convert(rows, tmp_path / "out.jsonl", force=True)
    assert len(read_lines(tmp_path / "out.jsonl")) == 300
    convert(rows, f"{tmp_path}/parts/")
    with pytest.raises(InputError, match="already exists"):
        convert(rows, f"{tmp_path}/parts/")
    (tmp_path / "parts" / "mine.txt").write_text("mine")
    convert(rows, f"{tmp_path}/parts/", force=True)
    assert (tmp_path / "parts" / "mine.txt").read_text() == "mine"


def stop_after(count: int) -> Any:
    """A progress that ends a run when so many batches are done."""
    seen = 0

    def progress(_rows: int, _bytes: int) -> None:
        nonlocal seen
        seen += 1
        if seen == count:
            raise KeyboardInterrupt

    return progress


def test_a_run_that_was_stopped_goes_on_and_does_nothing_twice(rows: Path, tmp_path: Path) -> None:
    convert(rows, tmp_path / "whole.jsonl")
    with pytest.raises(KeyboardInterrupt):
        convert(rows, tmp_path / "out.jsonl", progress=stop_after(3))
    work = tmp_path / "out.jsonl.work"
    done = {path.name: path.stat().st_mtime_ns for path in (work / "done").iterdir()}
    assert len(done) == 2
    with pytest.raises(InputError, match="another run was stopped here"):
        convert(rows, tmp_path / "out.jsonl", target="messages")
    parts = {path.name: path.stat().st_ino for path in work.glob("part-*")}
    seen: list[int] = []
    with pytest.raises(KeyboardInterrupt):
        convert(rows, tmp_path / "out.jsonl", progress=stop_after(4))
    assert {name: (work / name).stat().st_ino for name in parts} == parts
    convert(rows, tmp_path / "out.jsonl", progress=lambda count, _: seen.append(count))
    assert sum(seen) == 303
    assert hash_of(tmp_path / "out.jsonl") == hash_of(tmp_path / "whole.jsonl")
    assert not work.exists()


def test_a_part_that_was_damaged_is_made_again(rows: Path, tmp_path: Path) -> None:
    convert(rows, tmp_path / "whole.jsonl")
    with pytest.raises(KeyboardInterrupt):
        convert(rows, tmp_path / "out.jsonl", progress=stop_after(3))
    damaged = next((tmp_path / "out.jsonl.work").glob("part-*"))
    damaged.write_bytes(damaged.read_bytes()[:-7] + b"damaged")
    convert(rows, tmp_path / "out.jsonl")
    assert hash_of(tmp_path / "out.jsonl") == hash_of(tmp_path / "whole.jsonl")


def test_an_input_that_changed_since_a_run_began_is_refused(rows: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        convert(rows, tmp_path / "out.jsonl", progress=stop_after(2))
    write_lines(rows, sharegpt_rows(9))
    with pytest.raises(InputError, match="another run was stopped here"):
        convert(rows, tmp_path / "out.jsonl")
    assert convert(rows, tmp_path / "out.jsonl", force=True).rows == 9


def test_a_run_that_was_killed_goes_on_to_the_same_bytes(
    tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """kill -9 of the process and of its workers, at whatever they are doing, again and again."""
    source = write_lines(tmp_path / "in.jsonl", sharegpt_rows(750 * KILLED_RUNS))
    convert(source, tmp_path / "whole.jsonl")
    out = tmp_path / "out.jsonl"
    code = (
        "import sys; from toolglot.bulk.engine.run import convert_files\n"
        f"convert_files([{str(source)!r}], {str(out)!r}, target='openai', processes=2, shard_bytes={SMALL})"
    )
    done = tmp_path / "out.jsonl.work" / "done"
    for kill in range(1, KILLED_RUNS + 1):
        process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
        wait_until(lambda kill=kill: done.is_dir() and len(list(done.iterdir())) >= kill)  # type: ignore[misc]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert not out.exists()
    record_property(KILLS, KILLED_RUNS)
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
    assert hash_of(out) == hash_of(tmp_path / "whole.jsonl")


def worker_pids() -> list[int]:
    """The workers that this process has started, which are its only children with this module."""
    found = []
    for thread in Path(f"/proc/{os.getpid()}/task").iterdir():
        for pid in (thread / "children").read_text().split():
            with contextlib.suppress(OSError):
                if b"toolglot.bulk.engine.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    found.append(int(pid))
    return found


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="it looks for processes in /proc")
def test_a_worker_that_is_killed_costs_nothing_but_its_shard(
    rows: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    often = 3 if IS_LONG else 10
    convert(rows, tmp_path / "whole.jsonl", shard_bytes=5_000)
    killed: list[int] = []
    seen = 0

    def kill_one(_rows: int, _bytes: int) -> None:
        nonlocal seen
        seen += 1
        pids = worker_pids()
        if seen % often == 0 and pids:
            killed.append(pids[len(killed) % len(pids)])
            os.kill(killed[-1], signal.SIGKILL)

    summary = convert(rows, tmp_path / "out.jsonl", processes=2, shard_bytes=5_000, progress=kill_one)
    assert summary.rows == 303
    assert len(set(killed)) >= (5 if IS_LONG else 2)
    record_property(KILLS, len(set(killed)))
    assert hash_of(tmp_path / "out.jsonl") == hash_of(tmp_path / "whole.jsonl")


def test_an_error_of_a_shard_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl.gz").write_bytes(gzip.compress(b'{"messages": [{"role": "user", "content": "a"}]}\n')[:-9])
    with pytest.raises(InputError, match="cannot read file"):
        convert(tmp_path / "in.jsonl.gz", tmp_path / "out.jsonl", source="messages")


# --- forms of files ---------------------------------------------------------------------------------


def test_parquet_keeps_tools_apart_that_share_a_name_of_a_parameter(tmp_path: Path) -> None:
    """Arrow would merge the two into one struct with a parameter of two types."""
    rows = []
    for kind in ("string", "integer"):
        tool = {"name": "f", "parameters": {"type": "object", "properties": {"time": {"type": kind}, kind: {}}}}
        rows.append({**OPENAI, "tools": [{"type": "function", "function": tool}]})
    source = write_lines(tmp_path / "in.jsonl", rows)
    for columns in ("json", "struct"):
        convert(source, tmp_path / f"{columns}.parquet", columns=columns)
        convert(tmp_path / f"{columns}.parquet", tmp_path / f"{columns}.jsonl")
        assert [row["tools"] for row in read_lines(tmp_path / f"{columns}.jsonl")] == [row["tools"] for row in rows]


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_columns_that_no_row_uses_are_left_out(tmp_path: Path, ending: str) -> None:
    def names(rows: list[Any], name: str, **settings: Any) -> list[str]:
        source = write_lines(tmp_path / f"{name}.jsonl", rows)
        out = tmp_path / f"{name}{ending}"
        convert(source, out, source="openai", target="messages", **settings)
        read = pyarrow.parquet.read_table if ending == ".parquet" else pyarrow.feather.read_table
        table = read(out)
        assert table.num_rows == len(rows)
        return list(table.column_names)

    assert names([OPENAI] * 3, "one") == ["messages", "tools"]
    late = [*[OPENAI] * 30, {**OPENAI, "note": 1}]
    assert names(late, "many", shard_bytes=1_000) == ["messages", "tools", "columns"]


def test_a_table_without_rows_has_all_columns(tmp_path: Path) -> None:
    convert(write_lines(tmp_path / "in.jsonl", ["{"]), tmp_path / "out.parquet", source="openai")
    assert pyarrow.parquet.read_table(tmp_path / "out.parquet").column_names[:2] == ["functions", "messages"]


def test_a_table_with_structs_of_others_is_read(tmp_path: Path) -> None:
    table = pyarrow.Table.from_pylist([{**OPENAI, "note": "x"}, {"messages": OPENAI["messages"][:1], "note": None}])
    pyarrow.parquet.write_table(table, tmp_path / "in.parquet")
    summary = convert(tmp_path / "in.parquet", tmp_path / "out.jsonl", target="messages", source="messages")
    assert summary.counts["converted"] == 2
    assert "null" not in (tmp_path / "out.jsonl").read_text().replace('"content":null', "")


def test_row_groups_of_parquet_are_shards(tmp_path: Path) -> None:
    table = pyarrow.Table.from_pylist([{"query": f"q{n}", "tools": "[]", "answers": "[]"} for n in range(100)])
    pyarrow.parquet.write_table(table, tmp_path / "in.parquet", row_group_size=10)
    plan = make_plan(
        [str(tmp_path / "in.parquet")],
        source="auto",
        target="openai",
        options=BulkOptions(),
        output="lines",
        shard_bytes=1,
    )
    assert (len(plan.shards), plan.source) == (10, "xlam")
    summary = convert(tmp_path / "in.parquet", tmp_path / "out.jsonl", shard_bytes=1, processes=2)
    assert [row["messages"][0]["content"] for row in read_lines(tmp_path / "out.jsonl")] == [
        f"q{n}" for n in range(100)
    ]
    assert summary.rows == 100


def test_a_json_list_of_rows_is_read(tmp_path: Path) -> None:
    (tmp_path / "in.json").write_text(json.dumps(sharegpt_rows(20), indent=2))
    assert convert(tmp_path / "in.json", tmp_path / "out.jsonl").counts["converted"] == 20
    (tmp_path / "cut.json").write_text(json.dumps(sharegpt_rows(20))[:-5])
    with pytest.raises(InputError, match="ends before it is complete"):
        convert(tmp_path / "cut.json", tmp_path / "other.jsonl")


def test_traces_are_not_cut_by_shards(tmp_path: Path) -> None:
    lines: list[Any] = []
    for number in range(30):
        header, *rest = SAMPLES["session-trace"]["trace"]
        lines += [{**header, "id": f"s-{number}"}, *rest]
    source = write_lines(tmp_path / "in.jsonl", lines)
    for size in (100, 1_000, 10**6):
        assert convert(source, tmp_path / f"{size}.jsonl", target="session-trace", shard_bytes=size).rows == 30
    assert len({hash_of(tmp_path / f"{size}.jsonl") for size in (100, 1_000, 10**6)}) == 1
    again = read_lines(tmp_path / "100.jsonl")
    assert [line["id"] for line in again if line["type"] == "session"] == [f"s-{number}" for number in range(30)]


def test_a_file_that_says_nothing_of_its_content_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.bin").write_bytes(b"x")
    with pytest.raises(InputError, match="cannot tell what the file holds"):
        convert(tmp_path / "in.bin", tmp_path / "out.jsonl")
    with pytest.raises(InputError, match="cannot tell what to write"):
        convert(write_lines(tmp_path / "in.jsonl", sharegpt_rows(1)), tmp_path / "out.bin")


def test_what_fsspec_opens_is_read(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://rows/in.jsonl", "wb") as stream:
        stream.write(b"".join(json.dumps(row).encode() + b"\n" for row in sharegpt_rows(50)))
    summary = convert_files(["memory://rows/in.jsonl"], tmp_path / "out.jsonl", target="openai", processes=1)
    assert summary.counts["converted"] == 50


# --- options over a whole run -----------------------------------------------------------------------


def growing(count: int) -> list[dict[str, Any]]:
    """Requests of a conversation that grows, as a gateway captures them."""
    messages = ANTHROPIC["messages"] * count
    return [{**ANTHROPIC, "messages": messages[: 3 * n]} for n in range(1, count + 1)]


@pytest.mark.parametrize("processes", [1, 2])
def test_captures_of_a_growing_conversation_become_one_row(tmp_path: Path, processes: int) -> None:
    other = {**ANTHROPIC, "messages": [{"role": "user", "content": "Another"}]}
    source = write_lines(tmp_path / "in.jsonl", [*growing(6), other, other])
    summary = convert(
        source,
        tmp_path / "out.jsonl",
        target="messages",
        options=BulkOptions(dedupe_prefix=True),
        processes=processes,
        shard_bytes=1_500,
    )
    assert (summary.counts["converted"], summary.counts["merged"]) == (2, 6)
    made = read_lines(tmp_path / "out.jsonl")
    assert [len(row["messages"]) for row in made] == [24, 1]
    assert set(summary.reasons) == {
        "merged: a longer row begins with all of its turns",
        "merged: an earlier row has the same turns",
    }


def test_a_limit_reads_the_first_rows(rows: Path, tmp_path: Path) -> None:
    summary = convert(rows, tmp_path / "out.jsonl", limit=151, shard_bytes=5_000)
    assert (summary.rows, summary.lost) == (151, 1)


def test_images_become_files(tmp_path: Path) -> None:
    url = "data:image/png;base64,iVBORw0KGgo="
    content = [{"type": "text", "text": "See"}, {"type": "image_url", "image_url": {"url": url}}]
    row = {"messages": [{"role": "user", "content": content}, {"role": "assistant", "content": "Yes"}]}
    source = write_lines(tmp_path / "in.jsonl", [row, row])
    convert(source, tmp_path / "out.jsonl", target="swift", source="messages", options=BulkOptions(images="file"))
    (image,) = (tmp_path / "images").iterdir()
    assert [made["images"] for made in read_lines(tmp_path / "out.jsonl")] == [[f"images/{image.name}"]] * 2
    assert image.read_bytes().startswith(b"\x89PNG")


def test_the_function_for_tables_loses_no_row() -> None:
    rows = [*sharegpt_rows(2), {"id": 9, "conversations": [], "system": "", "tools": ""}]
    function = pickle.loads(pickle.dumps(TableFunction(target="openai", source="sharegpt")))  # noqa: S301
    table = function(pyarrow.Table.from_pylist(rows))
    assert table.schema == function.schema
    assert table.num_rows == 3
    *made, error = table.to_pylist()
    assert [json.loads(row["messages"])[-1]["content"] for row in made] == ["There is a.txt."] * 2
    assert "expected a list of turns" in error["toolglot_error"]
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    for mapping in (columns, UserDict(columns)):  # datasets.map hands over a mapping that is no dictionary
        assert function(mapping) == table.to_pydict()
    batches = list(function.batches(pyarrow.Table.from_pylist(rows).to_batches()))
    assert sum(batch.num_rows for batch in batches) == 3


def test_the_name_of_a_part_says_where_it_belongs() -> None:
    plan = make_plan([], source="openai", target="openai", options=BulkOptions(), output="zstd")
    assert part_name(plan, 0) == "part-00000-of-00000.jsonl.zst"
