"""`toolglot repair`: the repaired body, the diff, the reasons, and files that are never lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.cli.commands import Cli, chat, claude
from toolglot import lint, repair
from toolglot.cli.files.conversion import FAULTS
from toolglot.cli.screen.diff import MAX_SHOWN, diff_lines


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


BROKEN = chat(answered=False)
SERVED = {**claude(), "tools": [{"type": "web_search_20250305", "name": "web_search"}]}


def test_the_repaired_body_goes_to_stdout_and_the_reasons_to_stderr(cli: Cli) -> None:
    cli.write("request.json", BROKEN)
    ended = cli("repair", "request.json", "--for", "mistral")
    assert ended.code == 0
    assert ended.json == repair(BROKEN, target="mistral").body
    assert lint(ended.json, "mistral") == ()
    assert "--- request.json\n+++ request.json (repaired)\n@@ -" in ended.err
    assert '-          "id": "call_abcd",\n+          "id": "' in ended.err
    assert (
        "weather has no result; a synthetic one was added\n  canonical: the conversation was already broken\n"
        in ended.err
    )
    assert ended.err.endswith("repaired: 1 of 1 request\n")


def test_a_body_that_is_accepted_comes_back_byte_for_byte(cli: Cli) -> None:
    data = json.dumps(claude(), indent=7) + "\n"
    cli.write("request.json", data)
    ended = cli("repair", "request.json", "--for", "anthropic")
    assert ended == (0, data, "nothing to repair\n")


def test_without_for_it_is_repaired_for_the_provider_of_its_protocol(cli: Cli) -> None:
    cli.write("request.json", claude({"type": "tool_result", "tool_use_id": "x", "content": "7"}))
    ended = cli("repair", "request.json")
    assert ended.code == 0
    assert lint(ended.json, "anthropic") == ()
    cli.write("request.json", {"messages": []})
    ended = cli("repair", "request.json")
    assert ended.code == 2
    assert "choose one with --for" in ended.err


def test_in_place_keeps_what_was_there_and_its_permissions(cli: Cli) -> None:
    cli.write("request.json", BROKEN)
    before = (cli.folder / "request.json").read_bytes()
    (cli.folder / "request.json").chmod(0o640)
    ended = cli("repair", "request.json", "--for", "mistral", "--in-place")
    assert (ended.code, ended.out) == (0, "")
    assert (cli.folder / "request.json.bak").read_bytes() == before
    assert lint(cli.read("request.json"), "mistral") == ()
    assert (cli.folder / "request.json").stat().st_mode & 0o777 == 0o640
    assert "the original is request.json.bak" in ended.err
    assert sorted(path.name for path in cli.folder.iterdir()) == ["request.json", "request.json.bak"]


def test_in_place_changes_nothing_where_nothing_is_to_do(cli: Cli) -> None:
    cli.write("request.json", claude())
    before = (cli.folder / "request.json").read_bytes()
    ended = cli("repair", "request.json", "--for", "anthropic", "--in-place")
    assert ended.code == 0
    assert (cli.folder / "request.json").read_bytes() == before
    assert [path.name for path in cli.folder.iterdir()] == ["request.json"]


def test_in_place_leaves_a_link_a_link(cli: Cli) -> None:
    cli.write("real.json", BROKEN)
    (cli.folder / "link.json").symlink_to("real.json")
    assert cli("repair", "link.json", "--for", "mistral", "--in-place", "-q").code == 0
    assert (cli.folder / "link.json").is_symlink()
    assert lint(cli.read("real.json"), "mistral") == ()


def test_an_existing_backup_is_never_lost_without_force(cli: Cli) -> None:
    cli.write("request.json", BROKEN)
    cli.write("request.json.bak", "older")
    before = (cli.folder / "request.json").read_bytes()
    ended = cli("repair", "request.json", "--for", "mistral", "--in-place")
    assert ended.code == 2
    assert "error: request.json.bak: file already exists" in ended.err
    assert (cli.folder / "request.json").read_bytes() == before
    assert (cli.folder / "request.json.bak").read_text() == "older"
    assert cli("repair", "request.json", "--for", "mistral", "--in-place", "--force").code == 0
    assert (cli.folder / "request.json.bak").read_bytes() == before


def test_an_existing_output_is_never_lost_without_force(cli: Cli) -> None:
    cli.write("request.json", BROKEN)
    cli.write("out.json", "mine")
    assert cli("repair", "request.json", "--for", "mistral", "-o", "out.json").code == 2
    assert (cli.folder / "out.json").read_text() == "mine"
    assert cli("repair", "request.json", "--for", "mistral", "-o", "new.json").code == 0
    assert lint(cli.read("new.json"), "mistral") == ()


def test_check_writes_nothing_and_says_whether_something_would_change(cli: Cli) -> None:
    cli.write("broken.json", BROKEN)
    cli.write("good.json", claude())
    ended = cli("repair", "broken.json", "--for", "mistral", "--check", "--in-place")
    assert (ended.code, ended.out) == (1, "")
    assert "would be repaired: 1 of 1 request" in ended.err
    assert cli("repair", "good.json", "--check") == (0, "", "nothing to repair\n")
    assert sorted(path.name for path in cli.folder.iterdir()) == ["broken.json", "good.json"]


def test_jsonl_is_repaired_line_by_line_and_a_bad_line_stays_as_it_was(cli: Cli) -> None:
    cli.write("lines.jsonl", [chat("abcdefghi"), "{oops", BROKEN])
    ended = cli("repair", "lines.jsonl", "--for", "mistral")
    assert ended.code == 1
    lines = ended.out.splitlines()
    assert lines[:2] == [json.dumps(chat("abcdefghi")), "{oops"]
    assert lint(lines[2], "mistral") == ()
    assert "repaired: 1 of 3 requests\nnot repaired: 1 request\n" in ended.err


def test_many_diffs_are_not_all_shown(cli: Cli) -> None:
    cli.write("lines.jsonl", [BROKEN] * 22)
    ended = cli("repair", "lines.jsonl", "--for", "mistral")
    assert ended.err.count("--- lines.jsonl:") == 20
    assert "… and 2 more requests" in ended.err


def test_a_request_that_cannot_be_repaired_writes_nothing(cli: Cli) -> None:
    cli.write("request.json", {"model": "gpt-4.1", "messages": []})
    ended = cli("repair", "request.json", "--for", "openai", "-o", "out.json")
    assert ended.code == 1
    assert "error: request.json: " in ended.err
    assert "not repaired: 1 request" in ended.err
    assert not (cli.folder / "out.json").exists()
    before = (cli.folder / "request.json").read_bytes()
    assert cli("repair", "request.json", "--for", "openai", "--in-place").code == 1
    assert (cli.folder / "request.json").read_bytes() == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-", "--in-place"], "--in-place: stdin cannot be replaced"),
        (["request.json", "--in-place", "-o", "x"], "--in-place: cannot be used with --output"),
        (["request.json", "--for", "mistral,groq"], "unknown target 'mistral,groq'"),
        (["none/request.json", "--for", "mistral", "--in-place"], "cannot write file"),
    ],
)
def test_every_mistake_is_reported(cli: Cli, words: list[str], message: str) -> None:
    cli.write("request.json", BROKEN)
    ended = cli("repair", *words)
    assert ended.code == 2
    assert message in ended.err


def test_every_fault_class_is_explained() -> None:
    from typing import get_args  # noqa: PLC0415

    from toolglot.conversation.report import Fault  # noqa: PLC0415

    assert set(FAULTS) == set(get_args(Fault))


def test_the_diff_of_equal_bodies_is_empty_and_of_huge_ones_bounded() -> None:
    assert diff_lines({"a": 1}, {"a": 1}, "x") == []
    (line,) = diff_lines(list(range(5_000)), list(range(9_000, 1_000, -1)), "x")
    assert "too many to compare" in line
    many = diff_lines({"a": list(range(1_000))}, {"a": list(range(1_000, 2_000))}, "x")
    assert len(many) == MAX_SHOWN + 1


def test_the_diff_of_a_small_change_in_a_huge_body_has_the_lines_of_the_whole() -> None:
    old = list(range(50_000))
    new = [*old[:40_000], "new", *old[40_000:]]
    lines = diff_lines(old, new, "x")
    assert lines[2] == "@@ -39999,6 +39999,7 @@"
    assert '+  "new",' in lines


def test_a_backup_that_is_there_does_not_matter_where_nothing_changes(cli: Cli) -> None:
    cli.write("request.json", claude())
    cli.write("request.json.bak", "older")
    before = (cli.folder / "request.json").read_bytes()
    assert cli("repair", "request.json", "--for", "anthropic", "--in-place") == (0, "", "nothing to repair\n")
    assert (cli.folder / "request.json").read_bytes() == before
    assert (cli.folder / "request.json.bak").read_text() == "older"


@pytest.mark.parametrize("ending", [b"\n", b"\r\n"])
def test_lines_that_need_no_repair_stay_as_they_are(cli: Cli, ending: bytes) -> None:
    good = b' {"model" : "mistral-large-latest", "top_p": 0.50, "messages": [{"role":"user","content":"\\u00e4"}]}\t'
    broken = b'{"max_tokens":7 , ' + json.dumps(BROKEN).encode()[1:]
    before = [b"\xef\xbb\xbf", good, ending, ending, b" ", ending]
    after = [ending, b"{oops", ending, ending, good, ending, ending, b" "]
    cli.write("lines.jsonl", b"".join([*before, broken, *after]))
    assert cli("repair", "lines.jsonl", "--for", "mistral", "--in-place", "-q").code == 1
    repaired = (cli.folder / "lines.jsonl").read_bytes()
    assert repaired.startswith(b"".join([*before, b'{"max_tokens":7 , ']))
    assert repaired.endswith(b"".join(after))
    assert lint(repaired[len(b"".join(before)) : -len(b"".join(after))], "mistral") == ()


def test_a_repair_changes_the_lines_that_it_repairs_and_no_others(cli: Cli) -> None:
    request = chat("call_abcd")
    request["temperature"] = 0.5
    text = json.dumps(request, indent=4).replace("0.5", "5.0e-1").replace('"parameters": {', '"parameters":   {')
    cli.write("request.json", text)
    assert cli("repair", "request.json", "--for", "mistral", "--in-place", "-q").code == 0
    old, new = text.splitlines(), (cli.folder / "request.json").read_text().splitlines()
    assert len(old) == len(new)
    changed = [(before, after) for before, after in zip(old, new, strict=True) if before != after]
    assert [before.strip().split(":")[0] for before, _ in changed] == ['"id"', '"tool_call_id"']
    assert lint(cli.read("request.json"), "mistral") == ()


def test_a_model_of_another_provider_cannot_be_repaired_away(cli: Cli) -> None:
    cli.write("request.json", {**BROKEN, "model": "gpt-4.1"})
    before = (cli.folder / "request.json").read_bytes()
    ended = cli("repair", "request.json", "--for", "mistral", "--in-place")
    assert ended.code == 2
    assert "mistral does not have the model 'gpt-4.1', which belongs to another provider" in ended.err
    assert "choose one of its models: --for mistral@NAME" in ended.err
    assert (cli.folder / "request.json").read_bytes() == before
    ended = cli("repair", "request.json", "--for", "mistral@mistral-large-latest", "--in-place", "-q")
    assert ended.code == 0
    assert lint(cli.read("request.json"), "mistral") == ()


def test_a_body_of_another_protocol_than_the_named_one_is_refused_with_a_hint(cli: Cli) -> None:
    cli.write("request.json", {"model": "gpt-5", "input": "Hi"})
    ended = cli("repair", "request.json", "--for", "openai")
    message = " ".join(ended.err.split())
    assert ended.code == 1
    assert "this looks like openai_responses: use --for openai_responses, or toolglot convert --to" in message
    ended = cli("convert", "request.json", "--from", "openai", "--to", "gemini@gemini-3-pro")
    assert "this looks like openai_responses: use --from openai_responses" in " ".join(ended.err.split())


def test_the_diff_shows_what_is_written_and_no_other_order_of_fields(cli: Cli) -> None:
    call = {"id": "call_too_long", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
    messages = [
        {"content": "Hi", "role": "user"},
        {"tool_calls": [call], "content": "", "role": "assistant"},
        {"name": "weather", "content": "7", "tool_call_id": "call_too_long", "role": "tool"},
    ]
    cli.write("request.json", {"messages": messages, "model": "mistral-large-latest"})
    ended = cli("repair", "request.json", "--for", "mistral")
    assert ended.code == 0
    changed = [line for line in ended.err.splitlines() if line.startswith(("+ ", "- "))]
    assert len(changed) == 4
    assert all("id" in line for line in changed)
