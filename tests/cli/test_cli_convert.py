"""`toolglot convert` and `toolglot switch-report`: files of requests for another provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.cli.commands import Cli, chat, claude, command
from toolglot import convert, lint


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


SERVED = {**claude(), "tools": [{"type": "web_search_20250305", "name": "web_search"}]}
"""A request with a tool that only Anthropic runs."""


def test_one_json_file_gives_the_json_that_the_library_gives(cli: Cli) -> None:
    cli.write("request.json", claude())
    ended = cli("convert", "request.json", "--to", "openai", "--model", "gpt-4.1")
    assert ended.code == 0
    assert ended.json == convert(claude(), source="anthropic", target="openai", model="gpt-4.1").body
    assert ended.out.startswith('{\n  "')
    assert ended.err.startswith("1 request converted to openai@gpt-4.1: ")


def test_what_was_on_one_line_stays_on_one_line(cli: Cli) -> None:
    cli.write("request.json", claude(), indent=None)
    assert cli("convert", "request.json", "--to", "openai@gpt-4.1").out.count("\n") == 1


def test_law_3_what_needs_no_change_comes_back_byte_for_byte(cli: Cli) -> None:
    odd = b'{ "max_tokens":64, "temperature": 1.0e0,\n"model" : "claude-opus-4-5", '
    odd += b'"messages":[{"role":"user","content":"\\u00f6"}]}'
    cli.write("request.json", odd)
    ended = cli("convert", "request.json", "--from", "anthropic", "--to", "anthropic")
    assert ended.out.encode() == odd
    assert "1 left as it was" in ended.err


def test_jsonl_gives_jsonl_and_a_bad_line_does_not_stop_the_rest(cli: Cli) -> None:
    cli.write("lines.jsonl", [claude(), "{oops", SERVED, {"odd": 1}, claude()])
    ended = cli("convert", "lines.jsonl", "--to", "openai@gpt-4.1", "-o", "out.jsonl", "--report", "report.json")
    assert ended.code == 1
    assert len((cli.folder / "out.jsonl").read_text().splitlines()) == 2
    assert "3 requests could not be converted: lines.jsonl:2, lines.jsonl:3, lines.jsonl:4" in ended.err
    assert "error: lines.jsonl:2:2: not JSON" in ended.err
    assert "error: lines.jsonl:3: " in ended.err
    report = cli.read("report.json")
    assert [entry["line"] for entry in report] == [1, 2, 3, 4, 5]
    assert ["error" in entry for entry in report] == [False, True, True, True, False]
    assert report[0]["target"] == "openai@gpt-4.1"
    assert {"entries", "ids", "model", "source"} <= set(report[0])


def test_many_failures_are_counted_and_not_all_listed(cli: Cli) -> None:
    cli.write("lines.jsonl", ["{"] * 25)
    ended = cli("convert", "lines.jsonl", "--to", "openai")
    assert "lines.jsonl:20 and 5 more" in ended.err


def test_several_files_give_one_line_each(cli: Cli) -> None:
    cli.write("a.json", claude())
    cli.write("b.json", chat())
    cli.write("c.jsonl", [claude()])
    ended = cli("convert", "a.json", "b.json", "c.jsonl", "--to", "gemini@gemini-2.5-pro")
    assert ended.code == 0
    assert [set(json.loads(line)) >= {"contents"} for line in ended.out.splitlines()] == [True] * 3


def test_several_files_that_need_no_change_are_one_line_each_too(cli: Cli) -> None:
    cli.write("a.json", claude())
    cli.write("b.json", b"\xef\xbb\xbf" + json.dumps(claude()).encode())
    ended = cli("convert", "a.json", "b.json", "--to", "anthropic@claude-opus-4-5")
    assert [json.loads(line) for line in ended.out.splitlines()] == [claude()] * 2


def test_a_server_tool_is_refused_or_dropped_as_requested(cli: Cli) -> None:
    cli.write("request.json", SERVED)
    refused = cli("convert", "request.json", "--to", "openai@gpt-4.1", "-o", "out.json")
    assert refused.code == 1
    assert not (cli.folder / "out.json").exists()
    assert "error: request.json: " in refused.err
    dropped = cli("convert", "request.json", "--to", "openai@gpt-4.1", "--server-tools", "drop")
    assert dropped.code == 0
    assert not dropped.json.get("tools")


def test_a_refusal_among_several_files_leaves_the_others(cli: Cli) -> None:
    cli.write("a.json", SERVED)
    cli.write("b.json", claude())
    ended = cli("convert", "a.json", "b.json", "--to", "openai@gpt-4.1")
    assert ended.code == 1
    assert ended.out.count("\n") == 1


def test_an_ambiguous_body_needs_from(cli: Cli) -> None:
    body = {"model": "qwen3", "messages": [{"role": "user", "content": "Hello"}]}
    cli.write("request.json", body)
    ended = cli("convert", "request.json", "--to", "anthropic")
    assert ended.code == 2
    assert (
        "ambiguous protocol: could be anthropic or openai_chat or cohere or ollama\n  hint: choose one with --from"
        in ended.err
    )
    assert cli("convert", "request.json", "--from", "ollama", "--to", "anthropic").code == 0


def test_a_protocol_that_only_the_models_name_decides_is_reported_once(cli: Cli) -> None:
    cli.write("lines.jsonl", [chat(), chat()])
    ended = cli("convert", "lines.jsonl", "--to", "anthropic@claude-opus-4-6")
    assert ended.err.count("assuming openai_chat, from the model's name") == 1
    assert cli("convert", "lines.jsonl", "--to", "anthropic@claude-opus-4-6", "-q").err == ""


def test_an_existing_file_is_replaced_only_with_force(cli: Cli) -> None:
    cli.write("request.json", claude())
    cli.write("out.json", "mine")
    ended = cli("convert", "request.json", "--to", "openai@gpt-4.1", "-o", "out.json")
    assert ended.code == 2
    assert "error: out.json: file already exists" in ended.err
    assert (cli.folder / "out.json").read_text() == "mine"
    assert cli("convert", "request.json", "--to", "openai@gpt-4.1", "-o", "out.json", "--force").code == 0
    assert "messages" in cli.read("out.json")
    assert cli("convert", "request.json", "--to", "openai@gpt-4.1", "--report", "out.json").code == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.json", "--to", "openai"], "none.json: no such file"),
        (["request.json", "none.json", "--to", "openai"], "none.json: no such file"),
        ([".", "--to", "openai"], ".: is a directory"),
        (["a\0b", "--to", "openai"], "cannot read file: "),
        (["/proc/self/mem", "--to", "openai"], "/proc/self/mem: cannot read file"),
        (["request.json", "--to", "openai", "-o", "."], ".: is a directory"),
        (["request.json", "--to", "opennai"], "unknown target 'opennai'"),
        (["request.json", "--from", "zzz", "--to", "openai"], "--from: unknown target 'zzz'"),
        (["request.json", "--to", "openai@a", "--model", "b"], "two models: 'a' and 'b'"),
        (["request.json", "--to", "openai", "--report", "-"], "cannot write the report to stdout"),
        (["request.json", "--to", "openai", "-o", "none/out.json"], "none/out.json: cannot write file"),
        (["empty.json", "--to", "openai"], "empty.json: file is empty"),
        (["list.json", "--to", "openai"], "expected a JSON object, got a list"),
        (["text.json", "--to", "openai"], "expected a JSON object, got 'x'"),
        (["deep.json", "--to", "openai"], "deep.json: "),
        (["latin.json", "--to", "openai"], "not UTF-8"),
    ],
)
def test_every_mistake_is_reported_and_ends_with_2(cli: Cli, words: list[str], message: str) -> None:
    cli.write("request.json", claude())
    cli.write("empty.json", " \n\n")
    cli.write("list.json", "[\n{}\n]")
    cli.write("text.json", '"x"')
    cli.write("deep.json", "[" * 300 + "]" * 300)
    cli.write("latin.json", b'{"model":\n"\xff"}')
    ended = cli("convert", *words)
    assert ended.code == 2
    assert message in ended.err
    assert ended.out == ""
    assert "Traceback" not in ended.err


def test_stdin_and_pipes_in_a_real_process() -> None:
    lines = b"\n".join([json.dumps(claude()).encode()] * 2)
    ended = command("convert", "-", "--to", "openai@gpt-4.1", stdin=lines)
    assert ended.code == 0
    assert ended.out.count("\n") == 2
    assert "\x1b" not in ended.out + ended.err


@pytest.mark.parametrize(
    ("data", "count"),
    [
        (b"\n\n{%s}\n\n", 1),
        (b"{%s}\n\n{%s}", 2),
        (b"{\n%s\n}", 1),
        (b"\xef\xbb\xbf{%s}\n{%s}\n", 2),
    ],
)
def test_stdin_is_json_or_jsonl_by_its_first_line(cli: Cli, data: bytes, count: int) -> None:
    inner = json.dumps(claude()).encode()[1:-1]
    ended = cli("convert", "-", "--to", "openai@gpt-4.1", stdin=data.replace(b"%s", inner))
    assert ended.code == 0
    assert ended.err.startswith(f"{count} request")


def test_what_is_converted_is_accepted(cli: Cli) -> None:
    cli.write("request.json", chat(answered=False))
    for target in ("anthropic", "gemini", "bedrock", "cohere", "ollama", "openai_responses"):
        ended = cli("convert", "request.json", "--from", "mistral", "--to", f"{target}@m")
        assert lint(ended.json, target) == ()


# --- switch-report ----------------------------------------------------------------------------------


def test_the_switch_report_groups_changes_by_fault_and_kind(cli: Cli) -> None:
    cli.write("lines.jsonl", [chat(answered=False), chat(answered=False), chat()])
    ended = cli("switch-report", "lines.jsonl", "--from", "mistral", "--to", "anthropic@claude-opus-4-5")
    assert ended.code == 0
    assert "Moving 3 requests to anthropic@claude-opus-4-5" in ended.out
    assert "FAULT" in ended.out
    assert "weather has no result; a synthetic one was added (2 times)" in " ".join(ended.out.split())
    assert "canonical: the conversation was already broken" in ended.out
    assert "3 of 3 requests can move" in ended.out


def test_the_switch_report_as_json_counts_what_the_library_reports(cli: Cli) -> None:
    cli.write("request.json", chat(answered=False))
    ended = cli("switch-report", "request.json", "--from", "mistral", "--to", "gemini", "--format", "json")
    report = convert(chat(answered=False), source="mistral", target="gemini").report
    assert sum(group["count"] for group in ended.json["groups"]) == len(report)
    assert {(group["fault"], group["action"]) for group in ended.json["groups"]} == {
        (entry.fault, entry.action) for entry in report
    }
    gravities = [group["gravity"] for group in ended.json["groups"]]
    assert gravities == sorted(gravities, key=["loss", "change", "housekeeping"].index)
    assert ended.json["gravities"] == {
        gravity: sum(entry.gravity == gravity for entry in report) for gravity in ("loss", "change", "housekeeping")
    }


def test_the_switch_report_counts_housekeeping_and_lists_it_on_request(cli: Cli) -> None:
    cli.write("request.json", {**claude(), "metadata": {"user_id": "u"}, "service_tier": "auto", "top_k": 3})
    ended = cli("switch-report", "request.json", "--to", "openai@gpt-4.1")
    assert "service_tier" not in ended.out
    assert "loss" in ended.out
    assert "housekeeping (--all lists the housekeeping)" in ended.out
    everything = cli("switch-report", "request.json", "--to", "openai@gpt-4.1", "--all")
    assert "service_tier" in everything.out
    assert "--all" not in everything.out


def test_a_conversion_names_what_is_lost_and_counts_the_rest(cli: Cli) -> None:
    cli.write("request.json", {**claude(), "service_tier": "auto", "top_k": 3})
    ended = cli("convert", "request.json", "--to", "openai@gpt-4.1")
    assert "1 loss" in ended.err
    assert "1 housekeeping (--report FILE lists them)" in ended.err
    assert "--report" not in cli("convert", "request.json", "--to", "openai@gpt-4.1", "--report", "changes.json").err
    assert "lost: $.top_k" in " ".join(ended.err.split())
    assert "service_tier" not in ended.err


def test_a_repair_shows_losses_first_and_folds_housekeeping(cli: Cli) -> None:
    empty = {"role": "assistant", "content": [{"type": "text", "text": ""}, {"type": "text", "text": "Hello."}]}
    body = {
        "model": "claude-opus-4-7",
        "max_tokens": 9,
        "temperature": 0.5,
        "messages": [{"role": "user", "content": "Hi"}, empty, {"role": "user", "content": "Go on"}],
    }
    cli.write("request.json", body)
    ended = cli("repair", "request.json", "--for", "anthropic@claude-opus-4-7")
    assert "1 loss, 1 housekeeping" in ended.err
    assert "loss: dropped $.temperature" in ended.err
    assert "1 housekeeping (use --all to show)" in ended.err
    assert "an empty text" not in ended.err
    everything = cli("repair", "request.json", "--for", "anthropic@claude-opus-4-7", "--all").err
    assert everything.index("loss: dropped") < everything.index("housekeeping: dropped")


def test_the_switch_report_names_what_cannot_move(cli: Cli) -> None:
    cli.write("lines.jsonl", [SERVED, claude(), "{"])
    ended = cli("switch-report", "lines.jsonl", "--to", "openai@gpt-4.1")
    assert ended.code == 1
    assert "refused: lines.jsonl:1" in ended.out
    assert "1 of 3 requests can move" in ended.out
    as_json = cli("switch-report", "lines.jsonl", "--to", "openai@gpt-4.1", "--format", "json").json
    assert [refused["where"] for refused in as_json["refused"]] == ["lines.jsonl:1", "lines.jsonl:3"]


def test_a_switch_that_changes_nothing_says_so(cli: Cli) -> None:
    cli.write("request.json", claude())
    ended = cli("switch-report", "request.json", "--to", "anthropic@claude-opus-4-5")
    assert ended.out == (
        "Moving 1 request to anthropic@claude-opus-4-5\n\n"
        "1 of 1 request can move, 1 without any change; 0 things are lost\n"
    )


def test_many_reasons_are_cut_short(cli: Cli) -> None:
    tools: list[Any] = [
        {"name": f"tool/{number}", "description": "x", "input_schema": {"type": "object", "properties": {}}}
        for number in range(6)
    ]
    cli.write("request.json", {**claude(), "tools": tools})
    ended = cli("switch-report", "request.json", "--to", "openai@gpt-4.1")
    assert "3 more reasons" in " ".join(ended.out.split())


def test_what_placed_cache_markers_cost_is_in_the_report(cli: Cli) -> None:
    body = chat(model="gpt-4.1")
    body["messages"].insert(0, {"role": "system", "content": "You read files. " * 800})
    cli.write("request.json", body)
    ended = cli("convert", "request.json", "--to", "anthropic@claude-opus-5", "--report", "report.json")
    assert ended.code == 0
    assert "cache_control" in ended.out
    assert "cost $6.25 when they are written to the cache" in str(cli.read("report.json"))
