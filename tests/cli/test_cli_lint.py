"""`toolglot lint`: refusals with their line and path, in three formats."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from support.cli.commands import Cli, chat, claude, command
from toolglot import lint, profiles


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


def test_a_refusal_is_reported_in_the_providers_words_with_path_and_line(cli: Cli) -> None:
    cli.write("request.json", chat())
    ended = cli("lint", "request.json", "--for", "mistral")
    assert ended.code == 1
    assert "request.json:12:9: mistral refuses: Tool call id was call_abcd but must be a-z" in ended.out
    assert "$.messages[1].tool_calls[0]  [mistral-id-nine] documented, provider's wording" in ended.out
    assert "  12 |         {\n     |         ^\n" in ended.out
    assert "hint: give call and result the same new id" in ended.out
    assert ended.err == "1 refusal in 1 of 1 request (mistral 1)\n"


def test_a_request_that_is_accepted_ends_with_0(cli: Cli) -> None:
    cli.write("request.json", chat("abcdefghi"))
    ended = cli("lint", "request.json", "--for", "mistral")
    assert ended == (0, "", "no refusals in 1 request\n")


@pytest.mark.parametrize(
    ("id_", "rule"),
    [
        ("call_zz", "mistral-id-length"),
        ("call_abcd", "mistral-id-nine"),
        ("call_too_long", "mistral-id-length"),
        ("a" * 2_000, "mistral-id-length"),
    ],
)
def test_one_bad_id_is_one_finding_whatever_is_wrong_with_it(cli: Cli, id_: str, rule: str) -> None:
    cli.write("request.json", chat(id_))
    ended = cli("lint", "request.json", "--for", "mistral", "--format", "json")
    assert [found["rule"] for found in ended.json["violations"]] == [rule]
    assert ended.err.startswith("1 refusal in")


def test_the_length_of_an_id_is_found_where_a_profile_of_ones_own_takes_every_character(cli: Cli) -> None:
    cli.write("my.toml", '[profiles.mistral.rules]\n"ids.pattern" = ".+"\n')
    cli.write("request.json", chat("call_too_long"))
    ended = cli("lint", "request.json", "--for", "mistral", "--profiles", "my.toml", "--format", "json")
    assert [found["rule"] for found in ended.json["violations"]] == ["mistral-id-length"]


def test_a_lone_reasoning_item_is_one_finding_in_the_words_for_it(cli: Cli) -> None:
    thought = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"}
    cli.write("request.json", {"model": "gpt-5", "input": [{"role": "user", "content": "Go."}, thought]})
    ended = cli("lint", "request.json", "--format", "json")
    (found,) = ended.json["violations"]
    assert found["rule"] == "openai-responses-reasoning-ends-turn"
    assert found["message"].endswith("without its required following item.")


def test_the_mark_stands_below_the_value_in_a_long_line(cli: Cli) -> None:
    cli.write("request.json", chat(), indent=None)
    ended = cli("lint", "request.json", "--for", "mistral")
    source, marks = ended.out.splitlines()[2:4]
    assert source.startswith("  1 | …")
    assert source.endswith("…")
    assert source[marks.index("^") :].startswith('{"id": "call_abcd"')


def test_several_targets_are_each_checked_with_their_model(cli: Cli) -> None:
    cli.write("request.json", chat())
    ended = cli("lint", "request.json", "--for", "mistral@voxtral-small, openai@gpt-4.1", "--format", "json")
    assert {found["target"] for found in ended.json["violations"]} == {"mistral"}
    assert ended.json["summary"]["by_target"] == {"mistral": 1}


def test_without_for_the_provider_of_the_protocol_is_checked(cli: Cli) -> None:
    cli.write("request.json", claude({"type": "tool_result", "tool_use_id": "x", "content": ""}))
    ended = cli("lint", "request.json")
    assert ended.code == 1
    assert "anthropic refuses" in ended.out


def test_for_all_checks_every_provider_of_the_protocol(cli: Cli) -> None:
    cli.write("request.json", chat(answered=False))
    ended = cli("lint", "request.json", "--for", "all", "--format", "json")
    checked = {found["target"] for found in ended.json["violations"]}
    assert {"openai", "mistral", "groq", "deepseek"} <= checked
    assert all(profiles.get(name).protocol == "openai_chat" for name in checked)
    assert "assuming openai_chat, from the model's name" in ended.err


def test_a_body_of_another_protocol_is_named_as_such_once(cli: Cli) -> None:
    cli.write("lines.jsonl", [claude({"type": "tool_use", "id": "x", "name": "y", "input": {}})] * 3)
    ended = cli("lint", "lines.jsonl", "--for", "openai")
    assert ended.code == 1
    assert ended.err.count("note: ") == 1
    message = " ".join(ended.err.split())
    assert (
        "looks like anthropic, but openai speaks openai_chat; convert it with toolglot convert --to openai" in message
    )
    assert "note: " not in cli("lint", "lines.jsonl", "--for", "openai", "-q").err


def test_a_refused_body_whose_model_speaks_for_another_protocol_is_named_as_such(cli: Cli) -> None:
    plain = {"model": "gpt-4.1", "max_tokens": 5, "messages": [{"role": "user", "content": "Hi"}]}
    cli.write("plain.json", plain | {"frequency_penalty": 0.1})
    ended = cli("lint", "plain.json", "--for", "anthropic", "--format", "json")
    (note,) = ended.json["notes"]
    assert note.startswith("plain.json looks like openai_chat, but anthropic speaks anthropic")
    cli.write("own.json", plain | {"model": "claude-opus-5"})
    assert cli("lint", "own.json", "--for", "anthropic", "--format", "json").json["notes"] == []


def test_every_line_of_jsonl_is_a_request_with_its_line_number(cli: Cli) -> None:
    cli.write("lines.jsonl", [chat("abcdefghi"), "", chat(), "{oops", "[1]", {"odd": 1}])
    ended = cli("lint", "lines.jsonl", "--for", "mistral", "--format", "json")
    assert ended.code == 1
    assert {found["line"] for found in ended.json["violations"]} == {3, 6}
    assert [failed["where"] for failed in ended.json["failed"]] == ["lines.jsonl:4", "lines.jsonl:5"]
    assert "error: lines.jsonl:4:2: not JSON" in ended.err
    assert "2 lines could not be checked" in ended.err
    assert ended.json["summary"]["requests"] == 3


def test_a_line_without_a_protocol_does_not_stop_the_rest(cli: Cli) -> None:
    cli.write("lines.jsonl", [{"odd": 1}, claude()])
    ended = cli("lint", "lines.jsonl")
    assert ended.code == 1
    assert "lines.jsonl:1: not a request of any known protocol" in ended.err
    assert "no refusals in 1 request" in ended.err


def test_a_file_that_cannot_be_read_ends_with_2_after_the_others(cli: Cli) -> None:
    cli.write("good.json", claude())
    ended = cli("lint", "none.json", "good.json", "--for", "anthropic")
    assert ended.code == 2
    assert "error: none.json: no such file\n  hint: check the path" in ended.err
    assert "no refusals in 1 request" in ended.err
    assert cli("lint", "none.json").code == 2


def test_positions_count_lines_of_the_file_and_characters_after_a_byte_order_mark(cli: Cli) -> None:
    body = json.dumps(chat(), indent=1, ensure_ascii=False)
    cli.write("request.json", b"\xef\xbb\xbf\n" + body.encode())
    plain = cli("lint", "request.json", "--for", "mistral", "--format", "json").json["violations"][0]
    text = (cli.folder / "request.json").read_text("utf-8-sig").split("\n")
    assert text[plain["line"] - 1][plain["column"] - 1] == "{"
    assert text[plain["line"]].strip() == '"id": "call_abcd",'


def test_json_has_all_that_the_library_says(cli: Cli) -> None:
    cli.write("request.json", chat())
    (found,) = cli("lint", "request.json", "--for", "mistral", "--format", "json").json["violations"]
    (violation,) = lint(chat(), "mistral")
    assert {name: found[name] for name in violation.__struct_fields__} == {
        name: getattr(violation, name) for name in violation.__struct_fields__
    }
    assert (found["file"], found["line"], found["end_line"]) == ("request.json", 12, 19)


def test_defaults_holds_the_request_to_more(cli: Cli) -> None:
    cli.write("request.json", {**chat("abcdefghi"), "user": "ana"})
    assert cli("lint", "request.json", "--for", "qwen").code == 0
    ended = cli("lint", "request.json", "--for", "qwen", "--defaults", "--format", "json")
    assert ended.code == 1
    assert {found["confidence"] for found in ended.json["violations"]} == {"default"}


def test_profiles_of_the_users_own_are_checked(cli: Cli) -> None:
    cli.write("my.toml", '[profiles.ours]\nextends = "openai"\n[profiles.ours.rules]\n"ids.max_length" = 9\n')
    cli.write("request.json", chat("call_abcdefgh", model="gpt-4.1"))
    ended = cli("lint", "request.json", "--for", "ours", "--profiles", "my.toml", "--format", "sarif")
    assert ended.code == 1
    (rule,) = ended.json["runs"][0]["tool"]["driver"]["rules"]
    assert rule["id"] == "user:ids.max_length"
    assert cli("lint", "request.json", "--for", "ours").code == 2
    assert "cannot read file" in cli("lint", "request.json", "--for", "ours", "--profiles", "none.toml").err


SARIF = {
    "type": "object",
    "required": ["version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "$schema": {"type": "string", "format": "uri"},
        "runs": {"type": "array", "items": {"$ref": "#/$defs/run"}},
    },
    "$defs": {
        "text": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}},
        "level": {"enum": ["none", "note", "warning", "error"]},
        "run": {
            "type": "object",
            "required": ["tool", "results"],
            "additionalProperties": False,
            "properties": {
                "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                "results": {"type": "array", "items": {"$ref": "#/$defs/result"}},
                "tool": {
                    "type": "object",
                    "required": ["driver"],
                    "properties": {
                        "driver": {
                            "type": "object",
                            "required": ["name", "rules"],
                            "properties": {"rules": {"type": "array", "items": {"$ref": "#/$defs/rule"}}},
                        }
                    },
                },
            },
        },
        "rule": {
            "type": "object",
            "required": ["id", "shortDescription", "fullDescription", "help"],
            "properties": {
                "id": {"type": "string"},
                "shortDescription": {"$ref": "#/$defs/text"},
                "fullDescription": {"$ref": "#/$defs/text"},
                "help": {"$ref": "#/$defs/text"},
                "defaultConfiguration": {"properties": {"level": {"$ref": "#/$defs/level"}}},
            },
        },
        "result": {
            "type": "object",
            "required": ["message", "ruleId", "ruleIndex", "locations", "level"],
            "properties": {
                "message": {"$ref": "#/$defs/text"},
                "level": {"$ref": "#/$defs/level"},
                "ruleIndex": {"type": "integer", "minimum": 0},
                "locations": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/location"}},
            },
        },
        "location": {
            "type": "object",
            "required": ["physicalLocation"],
            "properties": {
                "physicalLocation": {
                    "required": ["artifactLocation", "region"],
                    "properties": {
                        "artifactLocation": {
                            "required": ["uri"],
                            "properties": {"uri": {"type": "string", "format": "uri-reference"}},
                        },
                        "region": {
                            "required": ["startLine", "startColumn"],
                            "additionalProperties": False,
                            "properties": {
                                name: {"type": "integer", "minimum": 1}
                                for name in ("startLine", "startColumn", "endLine", "endColumn")
                            },
                        },
                    },
                }
            },
        },
    },
}


@pytest.mark.parametrize(
    ("body", "target"),
    [
        (chat(answered=False), "mistral,groq,openai"),
        ({"messages": 3}, "openai"),
        ({"contents": [{"role": "user", "parts": [{"functionResponse": {}}]}]}, "gemini"),
        (claude({"type": "tool_result", "tool_use_id": "x"}), "anthropic,cohere"),
    ],
)
def test_sarif_is_as_the_standard_wants_it(cli: Cli, body: dict[str, Any], target: str) -> None:
    cli.write("my request.json", body)
    ended = cli("lint", "my request.json", "--for", target, "--format", "sarif")
    assert ended.code == 1
    jsonschema_rs.validate(SARIF, ended.json, validate_formats=True)
    (run,) = ended.json["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(rules)
    for result in run["results"]:
        rule = rules[result["ruleIndex"]]
        assert rule["id"] == result["ruleId"]
        assert rule["properties"]["source"] in rule["help"]["text"]
        assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "my%20request.json"


def test_sarif_of_nothing_is_an_empty_run(cli: Cli) -> None:
    cli.write("request.json", claude())
    ended = cli("lint", "request.json", "--format", "sarif")
    jsonschema_rs.validate(SARIF, ended.json)
    assert ended.code == 0
    assert ended.json["runs"][0]["results"] == []


def test_stdin_is_read_in_a_real_process() -> None:
    ended = command("lint", "-", "--for", "mistral", "--color", "always", stdin=json.dumps(chat()).encode())
    assert ended.code == 1
    assert ended.out.startswith("\x1b[1m<stdin>:1:")


def test_no_secret_and_no_control_character_reaches_the_terminal(cli: Cli) -> None:
    secret = "sk-ant-api03-" + "abcdefgh" * 2
    cli.write("request.json", chat(f"{secret}\x1b[31m"), indent=None)
    for format in ("text", "json", "sarif"):
        ended = cli("lint", "request.json", "--for", "mistral", "--format", format)
        assert ended.code == 1
        assert secret not in ended.out + ended.err
        assert "\x1b" not in ended.out + ended.err
