"""`toolglot demo`: a conversation that five simulated providers refuse, and that they accept through toolglot."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import pytest

from support.cli.commands import Cli, command
from support.cli.terminal import in_terminal
from toolglot.cli.commands import demo
from toolglot.cli.commands.demo import PROVIDERS, Demo, DemoProvider
from toolglot.cli.screen.terminal import TerminalPage

COLORS = re.compile(r"\x1b\[[0-9;]*m")
REFUSALS = {
    "Anthropic": "`tool_use` ids were found without `tool_result` blocks",
    "OpenAI": "No tool output found for function call toolu_",
    "Gemini": "number of function response parts is equal to the number of function call parts",
    "Mistral": "but must be a-z, A-Z, 0-9, with a length of 9.",
    "Bedrock": "Expected toolResult blocks at messages.2.content",
}


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


def words(text: str) -> str:
    """Without colours and line breaks."""
    return " ".join(COLORS.sub("", text).split())


def of_provider(provider: DemoProvider) -> str:
    return provider.target


@pytest.mark.parametrize("provider", PROVIDERS, ids=of_provider)
def test_a_provider_refuses_the_conversation_in_its_own_words_and_accepts_it_through_toolglot(
    provider: DemoProvider,
) -> None:
    refused = Demo().send_as_it_is(provider)
    assert refused.status == 400
    assert REFUSALS[provider.title] in refused.message
    assert refused.violations > 0
    accepted = Demo().send_through_toolglot(provider)
    assert (accepted.status, accepted.message) == (200, "")
    assert "the cancelled call has a result: 'Cancelled by the user.'" in accepted.changes
    assert any(change.startswith("ids: functions.read_file:0 -> ") for change in accepted.changes)


def test_signed_thinking_goes_back_to_its_own_model_only() -> None:
    unchanged = "the signed thinking goes back to its own model unchanged"
    kept = [provider.target for provider in PROVIDERS if unchanged in Demo().send_through_toolglot(provider).changes]
    assert kept == ["anthropic"]


def test_piped_it_is_plain_text_at_once_and_ends_with_0() -> None:
    ended = command("demo")
    assert (ended.code, ended.err) == (0, "")
    assert "\x1b" not in ended.out
    assert ended.out.count("✗ 400") == ended.out.count("✓ 200") == 5
    assert "Refused by 5 of 5 as it is. Accepted by 5 of 5 through toolglot." in ended.out
    assert all(refusal in words(ended.out) for refusal in REFUSALS.values())
    assert max(map(len, ended.out.splitlines())) <= 120


def test_a_provider_that_does_not_accept_makes_it_end_with_1(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = DemoProvider("Nobody", "mistral", "mistral-large-latest", "/mistral/v1/no-such-path")
    monkeypatch.setattr(demo, "PROVIDERS", (*PROVIDERS[:2], broken))
    ended = cli("demo")
    assert ended.code == 1
    assert "Accepted by 2 of 3 through toolglot." in ended.out
    assert cli("demo", "--json").json["accepted"] == 2


def test_as_json_it_says_the_same(cli: Cli) -> None:
    ended = cli("demo", "--json")
    assert ended.code == 0
    record = ended.json
    assert record["accepted"] == 5
    assert [trial["status"] for trial in record["as_it_is"]] == [400] * 5
    assert [trial["status"] for trial in record["through_toolglot"]] == [200] * 5
    assert all(trial["changes"] for trial in record["through_toolglot"])
    assert json.dumps(record) == json.dumps(cli("demo", "--json").json)


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    class Narrow(TerminalPage):
        @property
        def width(self) -> int:
            return width

    stream = io.StringIO()
    demo.show(Demo(), Narrow(stream, "always"), lambda _seconds: None)
    text = COLORS.sub("", stream.getvalue())
    assert max(map(len, text.splitlines())) <= width
    letters = "".join(text.split())  # an id that is too long for a narrow terminal is broken
    assert all("".join(refusal.split()) in letters for refusal in REFUSALS.values())


def test_on_a_terminal_it_is_paced_for_reading_about_half_a_minute() -> None:
    """The pauses are counted, not waited for."""

    class Usual(TerminalPage):
        @property
        def width(self) -> int:
            return 80

    pauses: list[float] = []
    demo.show(Demo(), Usual(io.StringIO(), "never"), pauses.append)
    assert 20 < sum(pauses) < 40
    assert max(pauses) <= demo.PART_SECONDS


def test_fast_on_a_terminal_has_colours_unless_they_are_not_wanted(tmp_path: Path) -> None:
    with in_terminal("demo", "--fast", cwd=tmp_path) as screen:
        screen.expect("Accepted by 5 of 5")
        assert screen.ended() == 0
        assert "✗ 400" in COLORS.sub("", screen.text)
    assert "\x1b[" not in command("demo", NO_COLOR="1").out
    assert "\x1b[" in command("demo", "--color", "always").out


def test_a_terminal_that_has_no_check_marks_gets_words() -> None:
    ended = command("demo", PYTHONIOENCODING="ascii")
    assert ended.code == 0
    assert ended.out.count("no 400") == ended.out.count("ok 200") == 5
    assert "\\u" not in ended.out
