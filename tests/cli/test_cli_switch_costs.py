"""`toolglot switch-report` shows what a switch costs once, because the conversation is in no prompt cache there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.cli.commands import Cli, claude
from toolglot.gateway.endpoints.token_counts import estimate
from toolglot.translate.requests import read_request

LONG = "Some words of a long conversation. " * 4000


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.setenv("HOME", str(tmp_path))
    return Cli(tmp_path, monkeypatch, capsys)


def long(first: str = "Hello", *more: str, model: str = "claude-opus-5") -> dict[str, Any]:
    """A request of a conversation that begins with `first`."""
    turns = [{"role": "user", "content": first}]
    for text in (LONG, *more):
        turns += [{"role": "assistant", "content": text}, {"role": "user", "content": "Go on"}]
    return {**claude(), "model": model, "messages": turns}


def tokens(body: dict[str, Any], model: str) -> int:
    return estimate(read_request(body, source="anthropic").conversation, model=model)


def test_the_cost_is_that_of_the_estimated_tokens(cli: Cli) -> None:
    cli.write("request.json", long())
    report = cli("switch-report", "request.json", "--to", "openai@gpt-5.5", "--format", "json").json
    there, here = tokens(long(), "gpt-5.5"), tokens(long(), "claude-opus-5")
    assert there > 20_000
    assert report["cost"] == {
        "conversations": 1,
        "estimated_tokens_read_again": there,
        "is_cached_now": True,
        "uncached_usd": pytest.approx(there * 5e-6),
        "written_usd": None,
        "cached_now_usd": pytest.approx(here * 0.5e-6),
        "more_usd": pytest.approx(there * 5e-6 - here * 0.5e-6),
    }


def test_each_of_several_targets_has_its_own_report_and_cost(cli: Cli) -> None:
    cli.write("request.json", long())
    to = "openai@gpt-5.5, anthropic@claude-haiku-4-5,openai@gpt-5-nano,mistral@unheard-of,openai@gpt-5.5"
    ended = cli("switch-report", "request.json", "--to", to)
    assert ended.code == 0
    assert ended.out.count("Moving 1 request to ") == 4
    lines = [line.split() for line in ended.out.splitlines()]
    table = lines[lines.index(["TARGET", "READ", "AGAIN", "UNCACHED", "WRITTEN", "CACHED", "NOW", "MORE"]) + 1 :]
    rows = {line[0]: line[1:] for line in table[: table.index([])]}
    legend = ("READ AGAIN", "UNCACHED", "WRITTEN", "CACHED NOW", "MORE")
    assert all(f"\n{column}: " in ended.out for column in legend)
    there, here = tokens(long(), "gpt-5.5"), tokens(long(), "claude-opus-5") * 0.5e-6
    cached = f"${here:.4f}"
    assert rows["openai@gpt-5.5"] == [
        f"~{there:,}",
        f"${there * 5e-6:.4f}",
        "-",
        cached,
        f"+${there * 5e-6 - here:.4f}",
    ]
    haiku = rows["anthropic@claude-haiku-4-5"]
    assert haiku[2] == f"${tokens(long(), 'claude-haiku-4-5') * 1.25e-6:.4f}", "writing costs a quarter more"
    assert rows["openai@gpt-5-nano"][-1].startswith("-$"), "cheaper at once"
    assert rows["mistral@unheard-of"][1] == rows["mistral@unheard-of"][-1] == "unknown"
    body = cli("switch-report", "request.json", "--to", to, "--format", "json").json
    assert [each["target"] for each in body["targets"]] == list(rows)
    assert [each["cost"]["more_usd"] is None for each in body["targets"]] == [False, False, False, True]


def test_only_the_last_request_of_a_conversation_counts(cli: Cli) -> None:
    cli.write("lines.jsonl", [long(), long("Hello", LONG), long("Another"), "{"])
    ended = cli("switch-report", "lines.jsonl", "--to", "openai@gpt-5.5", "--format", "json")
    assert ended.code == 1, "one cannot move"
    cost = ended.json["cost"]
    assert cost["conversations"] == 2
    assert cost["estimated_tokens_read_again"] == sum(
        tokens(body, "gpt-5.5") for body in (long("Hello", LONG), long("Another"))
    )
    assert "for 2 conversations (estimates)" in cli("switch-report", "lines.jsonl", "--to", "openai@gpt-5.5").out


def test_a_short_conversation_is_in_no_cache_and_one_that_stays_costs_nothing(cli: Cli) -> None:
    cli.write("request.json", claude())
    assert "(uncached)" in cli("switch-report", "request.json", "--to", "openai@gpt-5.5").out
    assert "costs once" not in cli("switch-report", "request.json", "--to", "anthropic").out
    stays = cli("switch-report", "request.json", "--to", "anthropic@claude-opus-4-5", "--format", "json").json
    assert stays["cost"] is None


def test_the_price_of_a_model_that_the_request_does_not_name_is_unknown(cli: Cli) -> None:
    cli.write("request.json", {"contents": [{"role": "user", "parts": [{"text": "Hello"}]}]})
    cost = cli("switch-report", "request.json", "--to", "openai@gpt-5.5", "--format", "json").json["cost"]
    assert (cost["cached_now_usd"], cost["more_usd"]) == (None, None)
    assert cost["uncached_usd"] > 0


def test_no_target_at_all_is_an_error(cli: Cli) -> None:
    cli.write("request.json", claude())
    ended = cli("switch-report", "request.json", "--to", " , ")
    assert ended.code == 2
    assert "target" in ended.err


def test_a_request_is_shown_for_the_protocol_that_the_gateway_would_use(cli: Cli) -> None:
    tool = {"name": "ls", "description": "List files", "input_schema": {"type": "object", "properties": {}}}
    cli.write("request.json", {**claude(), "tools": [tool]})
    ended = cli("switch-report", "request.json", "--to", "openai@gpt-5.5")
    assert (ended.code, "refused" in ended.out) == (0, False)
    assert "1 request shown for openai_responses, which the gateway would use too" in ended.out
    assert "costs once" in ended.out
    (sent_as,) = cli("switch-report", "request.json", "--to", "openai@gpt-5.5", "--format", "json").json["sent_as"]
    assert (sent_as["target"], sent_as["requests"]) == ("openai_responses", 1)
    refused = cli("convert", "request.json", "--to", "openai@gpt-5.5")
    assert (refused.code, refused.out) == (1, "")
    assert "--to openai_responses@gpt-5.5" in refused.err
    assert cli("convert", "request.json", "--to", "openai_responses@gpt-5.5").code == 0


def test_a_model_that_the_target_does_not_have_has_no_price_there(cli: Cli) -> None:
    cli.write("request.json", long())
    ended = cli("switch-report", "request.json", "--to", "openai")
    assert "openai does not have the model 'claude-opus-5'" in ended.out
    assert "--to openai@NAME" in " ".join(ended.out.split())
    cost = cli("switch-report", "request.json", "--to", "openai", "--format", "json").json["cost"]
    assert (cost["uncached_usd"], cost["written_usd"], cost["more_usd"]) == (None, None, None)
    assert cost["cached_now_usd"] > 0


def test_names_of_bedrock_have_the_price_of_their_model(cli: Cli) -> None:
    cli.write("request.json", long())
    to = "bedrock,bedrock@anthropic.claude-opus-5-v1:0"
    plain, named = cli("switch-report", "request.json", "--to", to, "--format", "json").json["targets"]
    assert plain["cost"]["uncached_usd"] == named["cost"]["uncached_usd"] > 0
