"""`toolglot bulk`: conversions, counts and checks of many rows, with their exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from support.bulk.made_files import sharegpt_rows
from support.bulk.samples import ANTHROPIC, OPENAI, SAMPLES
from support.cli.commands import Cli
from toolglot import profiles
from toolglot.cli.commands.bulk import progress_line

ROWS = sharegpt_rows(5)


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


def test_rows_are_converted_and_the_format_is_detected(cli: Cli) -> None:
    cli.write("in.jsonl", ROWS)
    ended = cli("bulk", "convert", "in.jsonl", "--to", "openai", "-o", "out.jsonl", "--processes", "1")
    assert (ended.code, ended.out) == (0, "")
    assert "5 rows of sharegpt → 5 rows of openai in out.jsonl" in ended.err
    assert "format detected: sharegpt (95 % sure)" in ended.err
    assert json.loads((cli.folder / "out.jsonl.summary.json").read_text())["detected"]["confidence"] == 0.95
    rows = [json.loads(line) for line in (cli.folder / "out.jsonl").read_text().splitlines()]
    assert [message["role"] for message in rows[0]["messages"]] == ["user", "assistant", "tool", "tool", "assistant"]


def test_rows_that_are_lost_are_exit_code_1_unless_that_is_accepted(cli: Cli) -> None:
    cli.write("in.jsonl", [*ROWS, "{"])
    words = ("bulk", "convert", "in.jsonl", "--to", "messages", "--from", "sharegpt", "--processes", "1")
    ended = cli(*words, "-o", "a.jsonl")
    assert ended.code == 1
    assert "1 set aside" in ended.err
    assert "see a.jsonl.set-aside.jsonl" in ended.err
    assert cli(*words, "-o", "b.jsonl", "--allow-lost").code == 0


def test_existing_output_is_not_overwritten(cli: Cli) -> None:
    cli.write("in.jsonl", ROWS)
    cli.write("out.jsonl", b"mine")
    words = ("bulk", "convert", "in.jsonl", "--to", "messages", "-o", "out.jsonl", "--processes", "1")
    ended = cli(*words)
    assert (ended.code, "--force" in ended.err) == (2, True)
    assert (cli.folder / "out.jsonl").read_bytes() == b"mine"
    assert cli(*words, "--force", "--quiet") == (0, "", "")


def test_a_preview_writes_nothing(cli: Cli) -> None:
    cli.write("in.jsonl", [SAMPLES["xlam"]])
    ended = cli("bulk", "convert", "in.jsonl", "--to", "messages", "--preview")
    assert ended.code == 0
    assert json.loads(ended.out)["messages"][0] == {"role": "user", "content": "What is here?"}
    assert "JSON Schema" in ended.err
    assert [path.name for path in cli.folder.iterdir()] == ["in.jsonl"]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (
            ["convert", "in.jsonl", "--to", "opnai", "-o", "x.jsonl"],
            "--to: unknown format 'opnai'; did you mean 'openai'?",
        ),
        (["convert", "in.jsonl", "--to", "glaive", "-o", "x.jsonl"], "cannot be written"),
        (["convert", "in.jsonl", "--to", "openai"], "-o out.jsonl"),
        (["convert", "in.jsonl", "--to", "openai", "-o", "x.bin"], "cannot tell what to write"),
        (["convert", "no.jsonl", "--to", "openai", "-o", "x.jsonl"], "no such file"),
        (["convert", "in.jsonl", "--to", "openai", "-o", "x.jsonl", "--column", "a"], "NAME=KNOWN"),
        (["convert", "odd.jsonl", "--to", "openai", "-o", "x.jsonl"], "--from"),
        (["lint", "in.jsonl", "--for", "mistrall"], "did you mean 'mistral'"),
        (["stats", "in.jsonl", "--from", "swfit"], "--from: unknown format 'swfit'; did you mean 'swift'?"),
    ],
)
def test_wrong_usage_is_exit_code_2_with_a_hint(cli: Cli, words: list[str], hint: str) -> None:
    cli.write("in.jsonl", ROWS)
    cli.write("odd.jsonl", [{"a": 1}, {"b": 2}])
    ended = cli("bulk", *words)
    assert ended.code == 2
    assert hint in ended.err
    assert not (cli.folder / "x.jsonl").exists()


def test_stats_count_calls_by_tool(cli: Cli) -> None:
    cli.write("in.jsonl", [*ROWS, "{"])
    found = cli("bulk", "stats", "in.jsonl", "--from", "sharegpt", "--format", "json").json
    assert found["calls"] == [{"tool": "ls", "calls": 10, "failures": 0}]
    assert found["rows"]["set_aside"] == 1
    text = cli("bulk", "stats", "in.jsonl", "--from", "sharegpt").out
    assert "TOOL" in text
    assert "█" in text


def test_stats_leave_out_empty_groups_at_both_ends(cli: Cli) -> None:
    cli.write("in.jsonl", [OPENAI])
    ended = cli("bulk", "stats", "in.jsonl")
    assert ended.out.count("up to ") == 2
    assert "more" not in ended.out


def test_every_action_has_examples_and_exit_codes(cli: Cli) -> None:
    for action in ("convert", "stats", "lint", "formats"):
        shown = cli("bulk", action, "--help").out
        assert "examples:\n  toolglot bulk" in shown
        assert "exit codes: " in shown


def test_stats_are_drawn_and_names_of_rows_cannot_change_the_drawing(cli: Cli) -> None:
    bad = json.loads(json.dumps(OPENAI).replace('"ls"', '"<script>&\\u001b[2J"'))
    cli.write("in.jsonl", [OPENAI, bad, "{"])
    ended = cli("bulk", "stats", "in.jsonl", "--from", "openai", "--plot", "out.svg")
    assert ended.code == 0
    drawing = (cli.folder / "out.svg").read_text()
    root = ElementTree.fromstring(drawing)  # noqa: S314 - it was made here
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "<script>&\ufffd[2J" in texts
    assert "set aside" in texts
    assert cli("bulk", "stats", "in.jsonl", "--from", "openai", "--plot", "out.svg").code == 2
    assert "CLASS OF FAULT" in ended.out
    assert "openai" not in ended.err


def test_stats_count_providers_and_models(cli: Cli) -> None:
    cli.write("in.jsonl", [ANTHROPIC, ANTHROPIC])
    ended = cli("bulk", "stats", "in.jsonl", "--format", "json")
    assert ended.json["providers"] == {"anthropic": 2}
    assert list(ended.json["models"].values()) == [2]
    assert "format detected: request:anthropic" in ended.err


def test_lint_names_the_row_and_the_rule(cli: Cli) -> None:
    bad = json.loads(json.dumps(OPENAI).replace('"ls"', '"list files"'))
    cli.write("in.jsonl", [OPENAI, "", bad])
    ended = cli("bulk", "lint", "in.jsonl", "--for", "openai")
    assert ended.code == 1
    assert ended.out.startswith("in.jsonl:3: ")
    assert len(ended.out.splitlines()) == 1
    assert "openai-name-charset" in ended.out
    listed = cli("bulk", "lint", "in.jsonl", "--for", "openai", "--format", "json").out.splitlines()
    assert [json.loads(line)["row"] for line in listed] == [1]
    cli.write("list.json", json.dumps([bad], indent=1))
    both = cli("bulk", "lint", "in.jsonl", "list.json", "--for", "openai")
    assert [line.partition(" $")[0] for line in both.out.splitlines()] == ["in.jsonl:3:", "list.json: row 0:"]
    cli.write("good.jsonl", [OPENAI])
    assert cli("bulk", "lint", "good.jsonl", "--for", "openai").code == 0


def test_a_row_without_the_column_of_its_format_is_set_aside_with_a_hint(cli: Cli) -> None:
    cli.write("in.jsonl", [{"chat": [], "id": 1}])
    words = ("bulk", "convert", "in.jsonl", "--from", "sharegpt", "--to", "messages")
    ended = cli(*words, "-o", str(cli.folder / "out") + "/")
    said = " ".join(ended.err.split())
    assert "the column 'conversations' is missing; the row has: chat, id" in said
    assert "--column NAME=conversations" in said
    assert f"see {cli.folder / 'out' / 'set-aside.jsonl'}" in said


def test_a_row_of_another_format_is_set_aside_with_its_name(cli: Cli) -> None:
    cli.write("in.jsonl", [*ROWS, OPENAI])
    ended = cli("bulk", "convert", "in.jsonl", "--to", "messages", "-o", "out.jsonl")
    said = " ".join(ended.err.split())
    assert (ended.code, "once: set aside: " in said, "the row looks like openai" in said) == (1, True, True)


def test_files_that_are_empty_missing_or_damaged_are_named_as_that(cli: Cli) -> None:
    for name, content in (("empty.jsonl", b""), ("cut.parquet", b"PAR1 and no more")):
        (cli.folder / name).write_bytes(content)
    for name, message, hint in (
        ("empty.jsonl", "empty.jsonl: file is empty", "no rows"),
        ("nofile", "nofile: no such file", "check the path"),
        ("nofile.jsonl", "nofile.jsonl: no such file", "check the path"),
        ("cut.parquet", "cut.parquet: cannot read file", "it is damaged"),
    ):
        ended = cli("bulk", "stats", name)
        assert (ended.code, message in ended.err, hint in ended.err) == (2, True, True), ended.err
    ended = cli("bulk", "convert", "empty.jsonl", "--from", "openai", "--to", "messages", "-o", "out.jsonl")
    assert ended.err.splitlines()[1:] == ["  the input has no rows"]


def test_nothing_is_reported_about_ids_that_the_rows_do_not_have(cli: Cli) -> None:
    lines = [
        {"from": "human", "value": "What is here?"},
        {"from": "function_call", "value": json.dumps([{"name": name, "arguments": {}} for name in "ab"])},
        {"from": "observation", "value": "x\n</tool_response>\n<tool_response>\ny"},
        {"from": "gpt", "value": "x and y."},
    ]
    tools = [{"name": name, "parameters": {"type": "object", "properties": {}}} for name in "ab"]
    cli.write("rows.jsonl", [{"conversations": lines, "tools": json.dumps(tools)}])
    for target in profiles.names():
        ended = cli("bulk", "lint", "rows.jsonl", "--for", target, "-q")
        assert "call00001" not in ended.out
    assert cli("bulk", "lint", "rows.jsonl", "--for", "mistral", "-q") == (0, "", "")
    for form in ("sharegpt", "messages"):
        ended = cli("bulk", "convert", "rows.jsonl", "--to", form, "--validate", "mistral", "--preview", "-q")
        assert "toolglot_violations" not in ended.out


def test_the_formats_are_listed(cli: Cli) -> None:
    ended = cli("bulk", "formats")
    assert all(f"\n{name} " in ended.out for name in ("openai", "messages", "sharegpt", "glaive", "text:DIALECT"))


def test_a_progress_line_has_rows_rate_share_and_time_left() -> None:
    assert progress_line(1_200_000, 50_000_000, 200_000_000, 10.0) == "1,200,000 rows · 5 MB/s · 25 % · 0:00:30 left"
    assert progress_line(1, 0, 0, 0.0) == "1 row · 0 MB/s"


def test_captures_of_a_growing_conversation_are_one_row(cli: Cli) -> None:
    rows = [
        {"toolglot_capture": 1, "protocol": "anthropic", "request": json.dumps({**ANTHROPIC, "messages": turns})}
        for turns in (ANTHROPIC["messages"][:1], ANTHROPIC["messages"])
    ]
    cli.write("in.jsonl", rows)
    words = ("bulk", "convert", "in.jsonl", "--to", "messages", "-o", "out.jsonl", "--dedupe", "prefix")
    ended = cli(*words, "--processes", "1")
    assert ended.code == 0
    assert "1 merged" in ended.err
