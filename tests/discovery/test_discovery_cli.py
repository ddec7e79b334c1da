"""`toolglot probe`: what it writes, shows, compares and refuses, and how it ends."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.cli.commands import Cli, Ended
from support.gateway.served_gateway import gateway
from support.simulator.discoveries import HARD, TOOLS, VARIANTS
from toolglot import profiles
from toolglot.cli.screen.probe_progress import ProgressLines, Silent, Table, progress_on
from toolglot.cli.screen.terminal import TerminalPage
from toolglot.discovery import PROBES, Finding, ProbeOutcome
from toolglot.gateway.config.settings import read_config
from toolglot.simulator import serve
from toolglot.simulator.serving import Server

KEY = "sk-simulated-0123456789abcdef"
QUICK = ("--only", "request", "--protocol", "openai_chat")


@pytest.fixture(scope="module")
def simulated() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.setenv("BOX_KEY", KEY)
    for name in ("OPENAI_API_KEY", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return Cli(tmp_path, monkeypatch, capsys)


def probe(cli: Cli, url: str, *words: str) -> Ended:
    ended = cli("probe", url, *words)
    assert KEY not in ended.out + ended.err
    return ended


# --- what comes of it -------------------------------------------------------------------------------


def test_a_whole_discovery_writes_a_profile_that_serve_loads_and_a_report(cli: Cli, simulated: Server) -> None:
    words = ("--key-env", "BOX_KEY", "--protocol", "openai_chat", "-o", "box.toml", "--report", "box.md")
    ended = probe(cli, simulated.url("mistral"), "--name", "box", *words)
    assert ended.code == 0, ended.err
    assert "speaks openai_chat" in ended.out
    assert "ids have exactly 9 characters → ids are rewritten in that form" in ended.out
    assert "ids.length               ids.max_length 9" in ended.err  # a line for each probe, where there is no terminal
    written = (cli.folder / "box.toml").read_text()
    assert KEY not in written
    config = read_config("box.toml", {"BOX_KEY": KEY, "HOME": str(cli.folder)})
    assert config.upstreams["box"].target == "box"
    profile = profiles.get("box", "mistral-large-latest", overrides=config.overrides)
    assert (profile.name, profile.ids.style, profile.ids.fixed_length) == ("box", "fixed", 9)
    assert profile.origin("ids.style").error.startswith("Tool call id was")
    assert profile.origin("ids.style").confidence == "observed"
    page = (cli.folder / "box.md").read_text()
    assert KEY not in page
    for heading in ("## Tools", "## What it refuses", "## What works\n", "## Evidence"):
        assert heading in page
    again = probe(cli, simulated.url("mistral"), *QUICK, "--key-env", "BOX_KEY", "--diff", "box.toml")
    assert again.code == 0, again.out
    assert "matches the profile box" in again.out


def test_json_holds_all_of_it_and_stderr_can_be_silent(cli: Cli, simulated: Server) -> None:
    ended = probe(cli, simulated.url("openai"), *QUICK, "--key-env", "BOX_KEY", "--json", "-q")
    assert (ended.code, ended.err) == (0, "")
    body = ended.json
    assert {"provider", "sdk", "tooling", "findings", "probes", "evidence", "spent", "departures"} <= body.keys()
    assert body["sdk"] == {
        "protocol": "openai_chat",
        "base_url": simulated.url("openai"),
        "auth": "bearer",
        "package": "openai",
        "streaming": None,
    }
    assert body["tooling"].keys() >= {"format", "example", "parser", "quirks", "schema_style"}
    assert body["departures"] is None


def test_a_departure_from_a_profile_ends_with_one(cli: Cli, simulated: Server) -> None:
    words = ("--key-env", "BOX_KEY", "--protocol", "openai_chat", "--only", "ids", "-q")
    same = probe(cli, simulated.url("mistral"), *words, "--diff", "mistral")
    assert same.code == 0, same.out
    assert "matches the profile mistral" in same.out
    other = probe(cli, simulated.url("mistral"), *words, "--diff", "openai", "--report", "r.md")
    assert other.code == 1
    assert "differs from the profile openai in" in other.out
    assert "ids.max_length" in other.out
    assert "## Against `openai`" in (cli.folder / "r.md").read_text()
    departures = probe(cli, simulated.url("mistral"), *words, "--diff", "openai", "--json").json["departures"]
    assert {one["key"] for one in departures} >= {"ids.max_length", "ids.pattern", "ids.unique_in"}
    assert all(one["evidence"] for one in departures)


def test_a_profile_of_ones_own_can_be_compared_with(cli: Cli, simulated: Server) -> None:
    cli.write("own.toml", '[profiles.box]\nextends = "openai"\n[profiles.box.rules]\n"ids.max_length" = 64\n')
    words = ("--key-env", "BOX_KEY", "--protocol", "openai_chat", "--only", "ids.length", "-q")
    ended = probe(cli, simulated.url("openai"), *words, "--diff", "box", "--profiles", "own.toml")
    assert ended.code == 1
    assert "ids.max_length  64       40" in ended.out


def test_headers_are_sent_and_their_values_kept_secret(cli: Cli, simulated: Server) -> None:
    cli.monkeypatch.setenv("TEAM", "secret-team-value")
    words = ("--header", "x-team:env:TEAM", "--header", "x-plain: yes-it-is-plain", "--json", "-q")
    ended = probe(cli, simulated.url("openai"), *QUICK, "--key-env", "BOX_KEY", *words)
    assert ended.code == 0
    assert "secret-team-value" not in ended.out
    sent = simulated.requests[-1].headers
    assert (sent["x-team"], sent["x-plain"]) == ("secret-team-value", "yes-it-is-plain")


# --- before anything is sent ------------------------------------------------------------------------


def test_a_dry_run_prints_every_probe_and_sends_nothing(cli: Cli) -> None:
    ended = probe(cli, "http://127.0.0.1:9/v1", "--dry-run")
    assert ended.code == 0
    for name in (probe.name for probe in PROBES if probe.is_for("openai_chat")):
        assert f"\n{name} " in ended.out
    assert "at most" in ended.out
    assert "unknown cost" in ended.out
    priced = probe(cli, "http://127.0.0.1:9/v1", "--dry-run", "--model", "gpt-4.1", "--protocol", "openai_chat")
    assert "by the price list for gpt-4.1" in priced.out
    plan = probe(cli, "http://127.0.0.1:9/v1", "--dry-run", "--json", "--only", "ids", "--model", "gpt-4.1").json
    assert plan["requests"] == sum(one["requests"] for one in plan["probes"])
    assert float(plan["cost_usd"]) > 0
    assert {one["group"] for one in plan["probes"]} == {"endpoint", "request", "ids"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ftp://box",), "expected an address with http://"),
        (("http://127.0.0.1:9", "--key-env", "NO_SUCH_KEY"), "NO_SUCH_KEY is not set"),
        (("http://127.0.0.1:9", "--header", "no colon"), "expected NAME:VALUE"),
        (("http://127.0.0.1:9", "--header", "x:env:NO_SUCH"), "NO_SUCH is not set"),
        (("http://127.0.0.1:9", "--only", "everything"), "unknown probe 'everything'"),
        (("http://127.0.0.1:9", "--diff", "nobody"), "unknown profile 'nobody'"),
        (("http://127.0.0.1:9", "--max-requests", "0"), "--max-requests: expected an integer from 1"),
        (("http://127.0.0.1:9", "--timeout", "0"), "--timeout: expected seconds"),
        (("http://127.0.0.1:9", "-o", "there"), "file already exists"),
        (("http://127.0.0.1:9", "--diff", "two.toml"), "the file defines 2 profiles"),
        (("http://127.0.0.1:9", "--protocol", "soap"), "invalid choice"),
    ],
)
def test_what_is_used_wrongly_is_reported_before_anything_is_sent(
    cli: Cli, words: tuple[str, ...], message: str
) -> None:
    cli.write("there", b"x")
    cli.write("two.toml", '[profiles.a]\nextends = "openai"\n[profiles.b]\nextends = "openai"\n')
    ended = probe(cli, *words)
    assert ended.code == 2
    assert message in ended.err


def test_an_unreachable_endpoint_ends_with_one_and_says_why(cli: Cli) -> None:
    ended = probe(cli, "http://127.0.0.1:9/v1", "-q", "-o", "box.toml", "--report", "box.md")
    assert ended.code == 1
    assert "no protocol works" in ended.out
    assert not (cli.folder / "box.toml").exists()
    assert "Not complete" in (cli.folder / "box.md").read_text()


def test_a_budget_that_is_used_up_is_reported(cli: Cli, simulated: Server) -> None:
    words = ("--key-env", "BOX_KEY", "--protocol", "openai_chat", "--max-requests", "9", "-o", "box.toml", "-q")
    ended = probe(cli, simulated.url("openai"), *words)
    assert ended.code == 1
    assert "the budget of 9 requests is used up" in ended.out
    assert "# Not complete: the budget of 9 requests is used up." in (cli.folder / "box.toml").read_text()


def test_a_key_that_is_not_accepted_is_reported(cli: Cli) -> None:
    with serve({"keys": ["another"]}) as server:
        ended = probe(cli, server.url("openai"), "--key-env", "BOX_KEY", "--protocol", "openai_chat", "-q")
    assert ended.code == 1
    assert "Incorrect API key provided" in ended.out


# --- an opinion -------------------------------------------------------------------------------------


def test_a_model_can_be_called_for_its_opinion(cli: Cli) -> None:
    opinion = {"format": "json", "example": "{}", "schema_requirements": ["an object"], "quirks": ["none"]}
    rules = [{"when": {"contains": '"records"'}, "reply": {"text": f"Here it is: {json.dumps(opinion)}"}}]
    with serve({"rules": rules}) as server:
        words = (
            "--ask",
            "openai/gpt-4.1",
            "--ask-url",
            server.url("openai"),
            "--report",
            "box.md",
            "--only",
            "replies",
        )
        cli.monkeypatch.setenv("OPENAI_API_KEY", KEY)
        ended = probe(cli, server.url("openai"), "--key-env", "BOX_KEY", "--protocol", "openai_chat", "-q", *words)
    assert ended.code == 0, ended.err
    assert "opinion of openai/gpt-4.1 (informative only)" in ended.out
    assert "schema: an object" in ended.out
    assert "## Opinion" in (cli.folder / "box.md").read_text()


@pytest.mark.parametrize(("who", "code"), [("nobody/m", 2), ("openai", 2), ("openai/gpt-4.1", 0)])
def test_an_opinion_that_cannot_be_had_is_reported(cli: Cli, simulated: Server, who: str, code: int) -> None:
    words = ("--ask", who, "--ask-url", "http://127.0.0.1:9")
    ended = probe(cli, simulated.url("openai"), *QUICK, "--key-env", "BOX_KEY", "-q", *words)
    assert ended.code == code
    assert ("expected a provider and its model" in ended.err) if code else ("openai (127.0.0.1:9)" in ended.out)


# --- an end by hand ---------------------------------------------------------------------------------


def test_ctrl_c_writes_what_was_found(tmp_path: Path) -> None:
    rules = [{"when": {"tool": "get_weather"}, "fault": "timeout,seconds=60"}]
    with serve({"rules": rules}) as server:
        words = ["probe", server.url("openai"), "--protocol", "openai_chat", "--key-env", "BOX_KEY"]
        words += ["-o", "box.toml", "--report", "box.md"]
        process = subprocess.Popen(
            [sys.executable, "-m", "toolglot", *words],
            cwd=tmp_path,
            env={**os.environ, "BOX_KEY": KEY},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("endpoint.dialogue"):
                break
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "incomplete: interrupted" in out
    assert "# Not complete: interrupted." in (tmp_path / "box.toml").read_text()
    assert "endpoint.dialogue" in (tmp_path / "box.md").read_text()


# --- progress ---------------------------------------------------------------------------------------


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


PROBED = ProbeOutcome(probe="ids.length", group="ids", question="how long an id may be", outcome="found", requests=4)
FOUND = [Finding(probe="ids.length", key="ids.max_length", value=40, quirk="short [bold]ids[/bold] \x1b[2J")]


def test_on_a_terminal_a_table_is_drawn_without_what_an_endpoint_slips_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "120")
    screen = Screen()
    with progress_on(TerminalPage(screen, "auto"), PROBES, quiet=False) as shown:
        assert isinstance(shown, Table)
        shown.on_start(next(probe for probe in PROBES if probe.name == "ids.length"))
        shown.on_end(PROBED, FOUND)
        shown.on_end(ProbeOutcome(probe="ids.twice", group="ids", question="", outcome="found", requests=1), [])
    drawn = screen.getvalue()
    assert "2/8" in drawn
    assert "[bold]ids[/bold] \\x1b[2J" in drawn
    assert "\x1b[2J" not in drawn


def test_without_rich_it_is_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setitem(sys.modules, "rich.live", None)
    with progress_on(TerminalPage(Screen(), "never"), PROBES, quiet=False) as shown:
        assert type(shown) is ProgressLines


@pytest.mark.parametrize(("terminal", "quiet", "term", "kind"), [
    (True, True, "xterm", Silent), (False, False, "xterm", ProgressLines), (True, False, "dumb", ProgressLines),
])  # fmt: skip
def test_elsewhere_it_is_lines_or_nothing(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, quiet: bool, term: str, kind: type[Any]
) -> None:
    monkeypatch.setenv("TERM", term)
    screen = Screen() if terminal else io.StringIO()
    with progress_on(TerminalPage(screen, "never"), PROBES, quiet=quiet) as shown:
        assert type(shown) is kind
        shown.on_start(PROBES[0])
        shown.on_end(PROBED, FOUND)
        shown.on_end(ProbeOutcome(probe="a", group="ids", question="", outcome="unclear", reason="odd \x1b[2J"), [])
        shown.on_end(ProbeOutcome(probe="b", group="ids", question="", outcome="skipped", reason="not for x"), [])
    lines = screen.getvalue().splitlines()
    assert lines == (
        []
        if quiet
        else ["ids.length               ids.max_length 40", "a                        unclear: odd \\x1b[2J"]
    )


# --- through the gateway ----------------------------------------------------------------------------


def test_an_unknown_variant_serves_any_client_through_the_gateway_with_the_found_profile(cli: Cli) -> None:
    variant = VARIANTS[0]
    with serve(variant.simulator()) as server:
        words = ("--key-env", "BOX_KEY", "--protocol", "openai_chat", "--model", "m", "--name", "box", "-q")
        assert probe(cli, server.url(variant.provider), *words, "-o", "box.toml").code == 0
        found = (cli.folder / "box.toml").read_text()
        body = {"model": "box/m", "messages": HARD[1], "tools": TOOLS, "max_tokens": 64}
        with gateway(None, upstreams=found, environ={"BOX_KEY": KEY}) as served:
            assert posted(f"{served.url}/v1/chat/completions", body) == 200
        assert server.requests[-1].status == 200
        unknown = f'[upstreams.box]\nurl = "{server.url(variant.provider)}"\nkey_env = "BOX_KEY"\ntarget = "groq"\n'
        with gateway(None, upstreams=unknown, environ={"BOX_KEY": KEY}) as served:
            # what it was not known to demand
            assert posted(f"{served.url}/v1/chat/completions", body) == 400


def posted(url: str, body: dict[str, Any]) -> int:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"content-type": "application/json"})  # noqa: S310
    try:
        with urllib.request.urlopen(request) as answered:  # noqa: S310
            assert json.load(answered)["choices"][0]["message"]["role"] == "assistant"
            status: int = answered.status
            return status
    except urllib.error.HTTPError as error:
        with error:
            return error.code
