"""`toolglot explain`: rules, who demands them, and examples that are really linted and repaired."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.cli.commands import Cli
from toolglot import lint, profiles
from toolglot.cli.commands.explain import _model_for, describe_value
from toolglot.cli.files.rule_examples import conversations
from toolglot.profiles import KEYS
from toolglot.profiles.rule_index import all_rules, default_of, description_of


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


def test_a_rule_is_explained_with_value_words_source_and_confidence(cli: Cli) -> None:
    ended = cli("explain", "mistral-id-nine")
    assert ended.code == 0
    rule = profiles.get("mistral").origin("ids.pattern")
    for part in (
        rule.value,
        rule.error,
        rule.source,
        "documented: the provider says so",
        "Pattern that a whole id must match",
    ):
        assert part in ended.out
    assert "bedrock-id-charset" in ended.out, "others that demand the same are listed"
    assert "lint: $.messages[1].tool_calls[0]: Tool call id was call_abcd" in ended.out
    assert '-          "id": "call_abcd",' in ended.out


def test_the_example_is_one_that_the_referee_refuses_and_repair_mends(cli: Cli) -> None:
    for rule in ("anthropic-result-complete", "gemini-name-length", "bedrock-id-charset", "mistral-id-length"):
        example = cli("explain", rule, "--format", "json").json["example"]
        assert rule in {found.rule for found in lint(example["body"], example["target"])}
        assert example["is_mended"]
        assert rule not in {found.rule for found in lint(example["repaired"], example["target"])}


def test_a_key_is_explained_with_everybody_who_demands_it(cli: Cli) -> None:
    ended = cli("explain", "results.complete", "--format", "json")
    assert ended.json["key"] == "results.complete"
    assert ended.json["default"] is True
    values = {entry["target"]: entry["value"] for entry in ended.json["enforced_by"]}
    assert values == {
        name: profiles.get(name).results.complete
        for name in profiles.names()
        if "results.complete" in profiles.get(name).origins
    }
    assert "No result" in str(ended.json["example"]["repaired"])


def test_a_default_a_fact_and_the_shape_are_explained_too(cli: Cli) -> None:
    assert "key         ids.max_length" in cli("explain", "default:ids.max_length").out
    fact = profiles.get("mistral").facts[0]
    ended = cli("explain", fact.id)
    assert ended.code == 0
    assert fact.source in ended.out
    assert cli("explain", fact.id, "--format", "json").json["description"] == fact.text
    assert "does not follow the protocol" in " ".join(cli("explain", "shape").out.split())


def test_a_rule_of_some_models_names_them(cli: Cli) -> None:
    named = next(named for named in all_rules() if named.match)
    ended = cli("explain", named.entry.id)
    assert ended.code == 0
    assert "(models that match " in " ".join(ended.out.split())


def test_a_rule_that_nothing_breaks_says_that_there_is_no_example(cli: Cli) -> None:
    ended = cli("explain", "anthropic-id-style")
    assert ended.code == 0
    assert ended.out.endswith("There is no built-in example for this rule.\n")
    assert cli("explain", "anthropic-id-style", "--format", "json").json["example"] is None


def test_an_example_that_is_large_is_cut(cli: Cli) -> None:
    ended = cli("explain", "tools.max_count")
    assert "more lines)" in ended.out


def test_an_unknown_rule_is_an_error_with_a_suggestion(cli: Cli) -> None:
    ended = cli("explain", "mistral-id-nin")
    assert ended.code == 2
    assert "unknown rule 'mistral-id-nin'\n  hint: did you mean mistral-id-nine" in ended.err
    assert "toolglot explain --list shows all rules" in cli("explain", "qqqqqqqq").err
    assert cli("explain").code == 2


def test_the_list_has_every_rule_or_those_of_a_target(cli: Cli) -> None:
    everything = cli("explain", "--list", "--format", "json").json
    assert len(everything) == len(all_rules())
    mistral = cli("explain", "--list", "--for", "mistral@mistral-large-latest").out
    assert mistral.startswith("RULE")
    assert "mistral-id-nine" in mistral
    assert "anthropic-" not in mistral
    assert cli("explain", "--list", "--for", "nobody").code == 2


def test_rules_of_the_users_own_are_explained(cli: Cli) -> None:
    cli.write("my.toml", '[profiles.ours]\nextends = "openai"\n[profiles.ours.rules]\n"ids.max_length" = 9\n')
    ended = cli("explain", "user:ids.max_length", "--profiles", "my.toml")
    assert ended.code == 0
    assert "your own profile says so" in ended.out
    assert "Example: a request that ours refuses" in ended.out


def test_every_key_has_a_description_and_a_default() -> None:
    bare = profiles.get("bare", overrides=profiles.Overrides('[profiles.bare]\ntitle = "Says nothing"'))
    for key in KEYS:
        assert description_of(key).endswith(".")
        group, field = key.split(".")
        assert default_of(key) == getattr(getattr(bare, group), field)


def test_every_example_conversation_can_be_made() -> None:
    assert len(list(conversations())) > 100


@pytest.mark.parametrize(
    ("match", "model"),
    [("voxtral", "voxtral"), ("^(claude-3|x)", "claude-3"), (r"qwen3\.5", "qwen3.5"), ("[ab]+", ""), ("", "")],
)
def test_a_models_name_is_read_off_a_plain_pattern(match: str, model: str) -> None:
    assert _model_for(match) == model


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "null"), (True, "yes"), (False, "no"), ((), "(none)"), (("a", "b"), "a, b"), ("", '""'), (9, "9")],
)
def test_values_are_written_for_people(value: object, text: str) -> None:
    assert describe_value(value) == text


def test_long_values_are_cut() -> None:
    assert len(describe_value("x" * 500)) < 100


def test_what_a_target_was_seen_to_take_is_explained_with_its_recording(cli: Cli) -> None:
    printed = " ".join(cli("explain", "openai-call-object-only").out.split())
    assert (
        "accepts no: the target is known to accept this; requests written for it are checked against this instead"
        in printed
    )
    assert "source recorded: tmc/langchaingo" in printed
    assert "ITS OWN REQUESTS" in printed
    assert "No example: requests that were written for openai are not checked against this value." in printed


def test_an_assumed_rule_says_who_is_held_to_it(cli: Cli) -> None:
    printed = " ".join(cli("explain", "mistral-turn-first").out.split())
    assert "assumed only for requests from other protocols" in printed
    assert "mistral mistral-turn-first guess user not checked" in printed
    assert "ITS OWN REQUESTS" not in cli("explain", "ids.fixed_length").out
