"""Names are strict (law 14): a name that is not known is one error with the closest names, wherever it is written."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import toolglot
from toolglot import (
    Attempt,
    Conversation,
    History,
    InputError,
    Issuer,
    ReplyParser,
    Session,
    StreamReader,
    StreamTranslator,
    Text,
    TextToolStream,
    ToolCall,
    ToolResult,
    Turn,
    UnknownNameError,
    profiles,
)
from toolglot.cli.main import main
from toolglot.gateway.config.settings import read_config
from toolglot.runtime.session.models import ProviderModels

REQUEST = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}
REPLY = {
    "choices": [{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "id": "1",
    "model": "m",
}
CONVERSATION = Conversation((Turn("user", (Text("Hi"),)),))
BOX = profiles.Overrides('[profiles.my-box]\nextends = "openai_compatible"\n')


def read_then_render(name: str) -> object:
    return toolglot.read_request(REQUEST, source="openai").for_target(name)


ENTRIES: dict[str, Callable[[str], object]] = {
    "profiles.get": profiles.get,
    "lint": lambda name: toolglot.lint(REQUEST, name),
    "convert source": lambda name: toolglot.convert(REQUEST, source=name, target="openai"),
    "convert target": lambda name: toolglot.convert(REQUEST, source="openai", target=name, model="m"),
    "convert_reply source": lambda name: toolglot.convert_reply(REPLY, source=name, target="openai"),
    "convert_reply target": lambda name: toolglot.convert_reply(REPLY, source="openai", target=name),
    "convert_error source": lambda name: toolglot.convert_error(500, None, source=name, target="openai"),
    "convert_error target": lambda name: toolglot.convert_error(500, None, source="openai", target=name),
    "error_for": lambda name: toolglot.error_for(InputError("no"), target=name),
    "repair": lambda name: toolglot.repair(REQUEST, target=name),
    "read_request": lambda name: toolglot.read_request(REQUEST, source=name),
    "for_target": read_then_render,
    "request_for": lambda name: toolglot.request_for(CONVERSATION, target=name, model="m"),
    "StreamTranslator source": lambda name: StreamTranslator(source=name, target="openai"),
    "StreamTranslator target": lambda name: StreamTranslator(source="openai", target=name),
    "StreamReader source": lambda name: StreamReader(source=name),
    "StreamReader target": lambda name: StreamReader(source="openai", target=name),
    "get_parser": toolglot.get_parser,
    "ReplyParser": ReplyParser,
    "schema translator": lambda name: toolglot.SchemaTranslator().to_provider_format([], name),
    "History": lambda name: History(provider=name),
    "History.append": lambda name: History().append(Turn("assistant", (Text("Hi"),)), provider=name),
    "History.begin_turn": lambda name: History().begin_turn(name),
    "History.switch": lambda name: History().switch(name),
    "Attempt": lambda name: Attempt(History(), provider=name),
}
"""Every way to give toolglot the name of a provider, a protocol or a target."""
SPEAKS_CHAT = {"convert source", "convert_reply source", "read_request", "repair"}
"""Those whose body is one of Chat Completions."""


@pytest.mark.parametrize("entry", ENTRIES)
def test_an_unknown_name_is_one_error_with_the_closest_name_at_every_entry_point(entry: str) -> None:
    with pytest.raises(UnknownNameError, match="'mistrall'; did you mean 'mistral'") as caught:
        ENTRIES[entry]("mistrall")
    assert caught.value.name == "mistrall"
    assert caught.value.suggestions[0] == "mistral"
    assert "anthropic" in caught.value.hint
    assert "openai_compatible" in caught.value.hint


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("spelling", ["Mistral", "MISTRALAI", " open-router ", "OpenAI-Compatible", "nvidia"])
def test_aliases_and_case_are_accepted_at_every_entry_point(entry: str, spelling: str) -> None:
    ENTRIES[entry](spelling)


@pytest.mark.parametrize("entry", sorted({*ENTRIES} - SPEAKS_CHAT))
@pytest.mark.parametrize("spelling", ["Claude", "google", "AWS-Bedrock", "Responses", "co.here"])
def test_aliases_of_other_protocols_are_accepted_too(entry: str, spelling: str) -> None:
    ENTRIES[entry](spelling)


def test_the_message_is_the_whole_story() -> None:
    with pytest.raises(UnknownNameError) as caught:
        toolglot.lint({}, "antropic")
    text = str(caught.value)
    assert text.startswith("unknown target 'antropic'; did you mean 'anthropic'? (known: anthropic, azure, bedrock")
    assert text.endswith("for any other host, openai_compatible or a profile of your own)")


def test_a_name_that_looks_like_none_gets_no_guess() -> None:
    with pytest.raises(UnknownNameError) as caught:
        toolglot.convert(REQUEST, source="openai", target="qqqqqqqq")
    assert caught.value.message == "unknown target 'qqqqqqqq'"
    assert caught.value.suggestions == ()


def test_an_alias_that_is_close_suggests_the_target_that_it_means() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'kimi'"):
        profiles.get("moonshott")


def test_the_error_crosses_processes_and_quotes_little() -> None:
    with pytest.raises(UnknownNameError) as caught:
        profiles.get("x" * 500)
    again = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert (str(again), again.name, again.suggestions) == (str(caught.value), "x" * 80, ())
    assert len(str(again)) < 600


@pytest.mark.parametrize("name", sorted({*profiles.names(), *profiles.aliases()}))
def test_every_name_and_alias_has_a_profile_in_any_case(name: str) -> None:
    spelled = name.upper().replace("_", "-")
    assert profiles.get(name) is profiles.get(spelled)
    assert profiles.get(name).name in profiles.names()


# --- profiles of one's own --------------------------------------------------------------------------


@pytest.mark.parametrize("spelling", ["my-box", "My_Box", "MY BOX"])
def test_a_profile_of_ones_own_is_a_known_name(spelling: str) -> None:
    out = toolglot.convert(REQUEST, source="openai", target=spelling, model="m", overrides=BOX)
    assert out.target.name == "my-box"
    assert toolglot.lint(out.body, spelling, overrides=BOX) == ()
    assert StreamTranslator(source=spelling, target="openai", overrides=BOX).feed(b"") == b""
    assert History(provider=spelling, overrides=BOX).target == "my-box"


def test_a_profile_of_ones_own_is_suggested() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'my-box'") as caught:
        toolglot.repair(REQUEST, target="my-bix", overrides=BOX)
    assert "my-box" in caught.value.hint


# --- dialects, ids, sessions ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "read",
    [
        lambda name: toolglot.parse_text("x", dialect=name),
        lambda name: TextToolStream(dialect=name),
        lambda name: toolglot.to_prompt([], (), dialect=name),
        lambda name: toolglot.write_calls([ToolCall("1", "f", {})], dialect=name),
    ],
)
def test_an_unknown_dialect_is_the_same_error(read: Callable[[str], object]) -> None:
    with pytest.raises(UnknownNameError, match="unknown dialect 'hermess'; did you mean 'hermes'"):
        read("hermess")
    read("Hermes")


def test_auto_is_a_dialect_in_any_case() -> None:
    assert toolglot.parse_text("x", dialect="AUTO").text == "x"


def test_an_unknown_form_of_ids_is_the_same_error() -> None:
    with pytest.raises(UnknownNameError, match="unknown id form 'antropic'; did you mean 'anthropic'"):
        toolglot.ids.translate("call_a", to="antropic")
    assert toolglot.ids.translate("call_a", to="Claude") == "toolu_a"


def test_an_unknown_model_of_a_session_is_the_same_error() -> None:
    with pytest.raises(UnknownNameError, match="unknown model 'opnai/gpt-5'; did you mean 'openai/gpt-5'"):
        ProviderModels({}).find("opnai/gpt-5")


async def test_a_session_says_so_before_anything_is_sent() -> None:
    with pytest.raises(UnknownNameError, match="unknown model 'opnai/gpt-5'"):
        async with Session(model="opnai/gpt-5"):
            pass


# --- configuration and command line -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[upstreams.mistrall]\nkey_env = "K"', "unknown provider 'mistrall'; did you mean 'mistral'"),
        ('[upstreams.a]\nprovider = "opnai"', "unknown provider 'opnai'; did you mean 'openai'"),
        ('[upstreams.a]\nurl = "http://127.0.0.1:1/v1"\ntarget = "vlm"', "unknown profile 'vlm'; did you mean 'vllm'"),
    ],
)
def test_an_unknown_name_in_a_configuration_is_the_same_error_with_its_line(
    text: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "toolglot.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(UnknownNameError, match=message) as caught:
        read_config(file, {"HOME": str(tmp_path)})
    assert "toolglot.toml:" in caught.value.path


@pytest.mark.parametrize(
    "arguments",
    [
        ["convert", "FILE", "--to", "mistrall"],
        ["convert", "FILE", "--to", "openai", "--from", "mistrall"],
        ["lint", "FILE", "--for", "mistrall"],
        ["repair", "FILE", "--for", "mistrall"],
        ["switch-report", "FILE", "--to", "mistrall"],
        ["explain", "--list", "--for", "mistrall"],
        ["probe", "http://127.0.0.1:9/v1", "--diff", "mistrall"],
    ],
)
def test_an_unknown_name_on_the_command_line_is_exit_code_2_with_the_hint(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(REQUEST), encoding="utf-8")
    code = main([str(file) if each == "FILE" else each for each in arguments])
    stderr = capsys.readouterr().err
    assert code == 2
    assert "'mistrall'; did you mean 'mistral'?" in stderr
    assert "known: anthropic" in stderr


def test_an_unknown_dialect_on_the_command_line_is_exit_code_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "printed.txt"
    file.write_text("x", encoding="utf-8")
    assert main(["parse", str(file), "--dialect", "hermess"]) == 2
    assert "did you mean 'hermes'?" in capsys.readouterr().err


# --- what was stored --------------------------------------------------------------------------------

OLD = Issuer("a-provider-of-last-year", model="m-1")
STORED = Conversation(
    (
        Turn("user", (Text("Read a"),)),
        Turn("assistant", (ToolCall("call_1", "read", {"path": "a"}),), issuer=OLD),
        Turn("tool", (ToolResult("call_1", "printed"),)),
    )
)


def test_a_conversation_that_was_stored_under_a_name_no_longer_known_loads_and_goes_on() -> None:
    history = History(toolglot.load(toolglot.dump(STORED)))
    assert history.turns[1].issuer == OLD
    out = toolglot.request_for(history, target="anthropic", model="claude-opus-4-6")
    assert "printed" in json.dumps(out.body)
    assert toolglot.lint(out.body, "anthropic") == ()


def test_a_history_goes_on_under_the_name_that_its_turns_have() -> None:
    history = History(STORED)
    history.begin_turn(OLD.provider).finish()
    fork = history.fork()
    assert (history.target, fork.target) == (OLD.provider, OLD.provider)
    with pytest.raises(UnknownNameError):
        history.begin_turn("another-provider-of-last-year")


def test_a_call_that_was_stored_under_a_name_no_longer_known_keeps_its_id() -> None:
    fields: dict[str, Any] = {"raw_id": "call_1", "tool_name": "read", "turn_key": "t", "call_index": 0}
    assert toolglot.ids.canonical("a-provider-of-last-year", **fields) == "hist_tool_dPaE3DLy5ESEn-2FYBy22zMG"
