"""What a run writes: never over its input or over others' files, and whole or not at all when it is stopped."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.bulk.made_files import hash_of, read_lines, sharegpt_rows, write_lines
from support.waiting import wait_until
from toolglot import InputError
from toolglot.bulk import BulkOptions
from toolglot.bulk.engine.assembly import RunSummary
from toolglot.bulk.engine.run import convert_files


def convert(path: Path, output: Path | str, **settings: Any) -> RunSummary:
    return convert_files([path], output, **{"target": "openai", "processes": 1, **settings})


def command(source: Path, output: Path, *words: str) -> list[str]:
    first = [sys.executable, "-m", "toolglot", "bulk", "convert", str(source), "--to", "openai", "-o", str(output)]
    return [*first, "--processes", "2", "--shard-bytes", "20000", *words]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "in.jsonl", sharegpt_rows(200))


def test_the_output_is_never_the_input(rows: Path, tmp_path: Path) -> None:
    before = hash_of(rows)
    (tmp_path / "link.jsonl").symlink_to(rows)
    folder = tmp_path / "parts"
    convert(rows, f"{folder}/", target="messages")
    for source, output in ((rows, rows), (rows, tmp_path / "link.jsonl"), (folder, f"{folder}/"), (folder, folder)):
        with pytest.raises(InputError, match="also the input"):
            convert(source, output, force=True)
    assert hash_of(rows) == before
    assert len(list(folder.glob("part-*"))) == 1


def test_an_error_of_the_input_leaves_the_old_output(rows: Path, tmp_path: Path) -> None:
    convert(rows, f"{tmp_path}/parts/")
    with pytest.raises(InputError, match="no such file"):
        convert(tmp_path / "none.jsonl", f"{tmp_path}/parts/", force=True)
    assert len(list((tmp_path / "parts").glob("part-*"))) == 1


def test_side_files_of_others_are_not_overwritten(rows: Path, tmp_path: Path) -> None:
    for name in ("out.jsonl.changes.jsonl", "out.jsonl.set-aside.jsonl", "out.jsonl.summary.json"):
        (tmp_path / name).write_text("mine")
        with pytest.raises(InputError, match="already exists"):
            convert(rows, tmp_path / "out.jsonl")
        assert (tmp_path / name).read_text() == "mine"
        (tmp_path / name).unlink()
    assert convert(rows, tmp_path / "out.jsonl").rows == 200


def test_what_a_run_wrote_besides_its_rows_is_no_input_of_the_next(rows: Path, tmp_path: Path) -> None:
    lines = [*rows.read_text().splitlines(), "{", json.dumps({"conversations": []})]
    rows.write_text("\n".join(lines) + "\n")
    convert(rows, f"{tmp_path}/parts/")
    assert {path.name for path in (tmp_path / "parts").iterdir()} > {"summary.json", "set-aside.jsonl", "changes.jsonl"}
    assert convert(tmp_path / "parts", tmp_path / "out.jsonl").counts["converted"] == 200
    folder = tmp_path / "files"
    folder.mkdir()
    convert(rows, folder / "a.jsonl")
    (folder / "summary.json").write_text(json.dumps(sharegpt_rows(1)))  # of somebody else
    assert convert(folder, tmp_path / "b.jsonl", source="messages").rows == 201


def test_an_unfinished_run_is_no_input(rows: Path, tmp_path: Path) -> None:
    def stop(_rows: int, _bytes: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        convert(rows, f"{tmp_path}/parts/", progress=stop)
    with pytest.raises(InputError, match="not complete"):
        convert(tmp_path / "parts", tmp_path / "out.jsonl")
    with pytest.raises(KeyboardInterrupt):
        convert(rows, tmp_path / "b.jsonl", progress=stop)
    assert (tmp_path / "b.jsonl.work").is_dir()
    (tmp_path / "parts").rename(tmp_path / ".parts")
    assert convert(tmp_path, tmp_path.with_name("outside.jsonl"), force=True).rows == 200


def test_a_disk_that_is_full_is_an_error_and_the_run_goes_on_later(rows: Path, tmp_path: Path) -> None:
    """The system refuses to let a file grow, as it does when there is no room."""
    convert(rows, tmp_path / "whole.jsonl", shard_bytes=20_000)
    out = tmp_path / "out.jsonl"
    limited = subprocess.run(
        command(rows, out),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000)),
        capture_output=True,
        text=True,
    )
    assert limited.returncode == 2
    assert "cannot write" in limited.stderr
    assert "start the same command again" in limited.stderr
    assert "Traceback" not in limited.stderr
    assert not out.exists()
    assert subprocess.run(command(rows, out, "--quiet")).returncode == 0
    assert hash_of(out) == hash_of(tmp_path / "whole.jsonl")


def test_an_interrupt_ends_the_run_and_its_workers_and_the_run_goes_on(tmp_path: Path) -> None:
    source = write_lines(tmp_path / "in.jsonl", sharegpt_rows(6_000))
    out = tmp_path / "out.jsonl"
    done = tmp_path / "out.jsonl.work" / "done"
    process = subprocess.Popen(command(source, out), stderr=subprocess.PIPE, text=True, start_new_session=True)
    wait_until(lambda: done.is_dir() and any(done.iterdir()))
    process.send_signal(signal.SIGINT)
    _, said = process.communicate()
    assert process.returncode == 130
    assert "start the same command again" in said
    assert "Traceback" not in said
    assert not out.exists()
    finished = {path.name: path.stat().st_ino for path in done.iterdir()}
    assert subprocess.run(command(source, out, "--quiet")).returncode == 0
    assert finished
    assert len(read_lines(out)) == 6_000


def test_a_limit_counts_only_its_rows_also_when_rows_are_merged(tmp_path: Path) -> None:
    rows = sharegpt_rows(100)
    source = write_lines(tmp_path / "in.jsonl", [*rows, *rows])
    options = BulkOptions(dedupe_prefix=True)
    for size in (3_000, 10**9):
        summary = convert(source, tmp_path / f"{size}.jsonl", limit=150, options=options, shard_bytes=size)
        assert (summary.rows, summary.counts["converted"], summary.counts["merged"]) == (150, 100, 50)


def test_a_row_with_many_turns_becomes_many_rows(tmp_path: Path) -> None:
    messages = [{"role": role, "content": f"{role} {n}"} for n in range(100) for role in ("user", "assistant")]
    source = write_lines(tmp_path / "in.jsonl", [{"messages": messages}] * 30)
    summary = convert(source, tmp_path / "out.jsonl", options=BulkOptions(split="turns"))
    assert (summary.counts["converted"], summary.counts["outputs"]) == (30, 3_000)
    assert [len(row["messages"]) for row in read_lines(tmp_path / "out.jsonl")[:100]] == list(range(2, 201, 2))
