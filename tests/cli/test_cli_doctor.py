"""`toolglot doctor`: what it says is wrong is wrong, what it says to do helps, and looking changes nothing."""

from __future__ import annotations

import asyncio
import io
import socket
import sqlite3
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest

from support.cli.commands import Cli, Ended, command
from support.gateway.served_gateway import gateway
from support.hostile.hostile_upstream import hostile, once, whole
from toolglot.cli.commands.doctor import _Progress, _show
from toolglot.cli.screen.terminal import TerminalPage
from toolglot.gateway.config.agent_limits import agent_settings
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.installed_clients import is_same, version_of
from toolglot.gateway.config.settings import parse_config
from toolglot.gateway.observability.checkup import (
    CheckResult,
    _check_clock,
    _check_disk,
    _check_status,
    _size,
    check_keys,
    check_packages,
    check_upstreams,
)
from toolglot.profiles.rules import ContextRules
from toolglot.simulator import serve
from toolglot.simulator.serving import Server
from toolglot.store import SqliteStore
from toolglot.store.schema import MIGRATIONS

KEY = "sk-simulated-0123456789abcdef"
VERSION_1 = """
PRAGMA application_id = 1953460076;
CREATE TABLE kept (
    kind TEXT NOT NULL, client TEXT NOT NULL, key TEXT NOT NULL, until REAL NOT NULL, value BLOB NOT NULL
);
CREATE UNIQUE INDEX kept_by_name ON kept (kind, client, key);
PRAGMA user_version = 1;
"""


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """In a folder of its own, with nothing of the machine's to be seen."""
    for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "TOOLGLOT_CONFIG", "CODEX_HOME", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("SIMULATED_KEY", KEY)
    return Cli(tmp_path, monkeypatch, capsys)


@pytest.fixture(scope="module")
def simulated() -> Iterator[Server]:
    with serve() as server:
        yield server


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        port: int = sock.getsockname()[1]
    return port


def write(cli: Cli, upstreams: str = "", settings: str = "", port: int = 0) -> None:
    cli.write("toolglot.toml", f'[gateway]\nport = {port}\nstore = "s.db"\n{settings}\n{upstreams}')


def upstream(name: str, url: str, provider: str = "") -> str:
    own = f'provider = "{provider}"\n' if provider else 'auth = "bearer"\n'
    return f'[upstreams.{name}]\n{own}url = "{url}"\nkey_env = "SIMULATED_KEY"\n'


def doctor(cli: Cli, *words: str) -> Ended:
    ended = cli("doctor", "--format", "json", *words)
    assert KEY not in ended.out + ended.err
    assert ended.json["ok"] == (ended.code == 0)
    return ended


def check_texts(ended: Ended, part: str, state: str) -> list[str]:
    checks: list[dict[str, Any]] = ended.json["checks"]
    return [
        f"{check['said']} → {check.get('todo', '')}"
        for check in checks
        if (check["part"], check["state"]) == (part, state)
    ]


def test_a_gateway_that_is_well(cli: Cli, simulated: Server) -> None:
    asyncio.run(SqliteStore(cli.folder / "s.db").close())
    names = ("anthropic", "openai", "gemini", "mistral", "ollama")
    write(cli, "\n".join(upstream(name, simulated.url(name), name) for name in names), port=free_port())
    ended = doctor(cli)
    assert ended.code == 0, ended.out
    (store, disk) = check_texts(ended, "store", "ok")
    assert f"s.db, version {len(MIGRATIONS)}," in store
    assert "written and read in" in store
    assert "free on its disk" in disk
    assert [line.partition(":")[0] for line in check_texts(ended, "upstreams", "ok")] == [*names]
    assert all("lists" in line for line in check_texts(ended, "upstreams", "ok"))
    assert len(check_texts(ended, "keys", "ok")) == len(names)
    assert "key from $SIMULATED_KEY" in check_texts(ended, "keys", "ok")[0]
    assert check_texts(ended, "clock", "ok")
    assert check_texts(ended, "port", "ok")[0].endswith("is free → ")
    assert check_texts(ended, "clients", "ok") == ["not installed: Claude Code, Codex, Gemini CLI, opencode → "]
    page = cli("doctor")
    assert page.code == 0
    assert page.out.startswith("configuration\n  ok    read: toolglot.toml\n")
    assert "nothing failed" in page.out.splitlines()[-1]
    assert KEY not in page.out


def test_upstreams_that_are_not_well_are_distinguished(cli: Cli) -> None:
    ways = {"passed": once(whole(b'{"error": "no"}', 401))}
    lost = {"passed": once(whole(b"nothing", 404))}
    busy = {"passed": once(whole(b"{}", 429))}
    down = {"passed": once(whole(b"{}", 500))}
    with hostile(ways) as keyless, hostile(lost) as elsewhere, hostile(busy) as much, hostile(down) as broken:
        addresses = {"keyless": keyless.url, "elsewhere": elsewhere.url, "much": much.url, "broken": broken.url}
        addresses |= {"dead": f"http://127.0.0.1:{free_port()}/v1", "unknown": "https://no-such-host.invalid/v1"}
        write(cli, "\n".join(upstream(name, url) for name, url in addresses.items()))
        ended = doctor(cli)
    assert ended.code == 1
    failed, warned = check_texts(ended, "upstreams", "fail"), check_texts(ended, "upstreams", "warn")
    assert failed[0].startswith("keyless: does not accept the key (status 401) → check that $SIMULATED_KEY")
    assert "dead (127.0.0.1:" in failed[1]
    assert "refused → check that it is running" in failed[1]
    assert failed[2].startswith("unknown (no-such-host.invalid) cannot be reached")
    assert "name server" in failed[2]
    assert [line.split(" → ")[1] for line in warned] == [
        "if requests fail too, check its url",
        "try again later",
        "try again, or check its status page",
    ]
    quiet = doctor(cli, "--no-network")
    assert quiet.code == 0
    assert check_texts(quiet, "upstreams", "ok") == ["not checked (--no-network) → "]


def test_an_upstream_that_says_nothing_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        text = ConfigText("x.toml", f'[gateway]\nstore = "off"\n[upstreams.silent]\nurl = "{url}"')
        config = parse_config(text, {"HOME": "/nowhere"})
        done: list[str] = []
        (found,) = asyncio.run(check_upstreams(config, done.append, seconds=0.2))
    assert (found.state, done) == ("fail", ["silent"])
    assert "no response in time" in found.message


def test_an_upstream_without_a_list_is_tried_with_a_connection(cli: Cli, simulated: Server) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    tables = [
        f'[upstreams.{name}]\nprovider = "bedrock"\nurl = "{url}"\nkey_env = "SIMULATED_KEY"\nauth = "bearer"\n'
        for name, url in (("aws", simulated.url("bedrock")), ("gone", dead))
    ]
    write(cli, "\n".join(tables))
    ended = doctor(cli)
    assert "accepts connections" in check_texts(ended, "upstreams", "ok")[0]
    assert "gone: " in check_texts(ended, "upstreams", "fail")[0]


def test_a_configuration_that_is_wrong_is_reported_with_its_line(cli: Cli) -> None:
    cli.write("toolglot.toml", "[gateway]\nprot = 8400\n")
    ended = doctor(cli)
    assert ended.code == 1
    (wrong,) = check_texts(ended, "configuration", "fail")
    assert wrong.startswith("toolglot.toml:2: gateway.prot: ")
    assert "port" in wrong
    assert check_texts(ended, "packages", "ok"), "what does not depend on it is looked at all the same"
    write(cli, '[upstreams.openai]\nkey_env = "NOT_SET_ANYWHERE"')
    (wrong,) = check_texts(doctor(cli), "configuration", "fail")
    assert "'NOT_SET_ANYWHERE' is not set in the environment" in wrong
    write(cli)
    (wrong,) = check_texts(doctor(cli), "configuration", "fail")
    assert "there is no upstream" in wrong
    write(cli, settings='simulate = true\nmiddleware = ["no_such_module:Name"]')
    (wrong,) = check_texts(doctor(cli), "configuration", "fail")
    assert "no_such_module" in wrong
    write(cli, settings='simulate = true\nclient_keys = ["store"]\nmiddleware = ["collections:OrderedDict"]')
    ended = doctor(cli)
    assert "middleware: 1 step can be loaded → " in check_texts(ended, "configuration", "ok")
    assert "those of `toolglot keys` → " in check_texts(ended, "configuration", "ok")
    assert (
        "there is no upstream, so no real model answers; only names that begin with simulated/ are simulated"
        in (check_texts(ended, "configuration", "warn")[-1])
    )


def test_a_store_of_an_older_version_is_reported_and_left_as_it_is(cli: Cli) -> None:
    with sqlite3.connect(cli.folder / "s.db") as old:
        old.executescript(VERSION_1)
    old.close()
    before = (cli.folder / "s.db").read_bytes()
    write(cli, settings="simulate = true")
    (warned,) = check_texts(doctor(cli), "store", "warn")
    assert f"has version 1; the next start migrates it to {len(MIGRATIONS)} → make a copy first" in warned
    assert (cli.folder / "s.db").read_bytes() == before


def test_a_store_that_cannot_be_used_is_reported(cli: Cli) -> None:
    write(cli, settings="simulate = true")
    assert "does not exist yet" in check_texts(doctor(cli), "store", "ok")[0]
    assert not (cli.folder / "s.db").exists()
    cli.write("s.db", b"no database\n" * 100)
    (wrong,) = check_texts(doctor(cli), "store", "fail")
    assert "cannot read file" in wrong
    (cli.folder / "s.db").unlink()
    with sqlite3.connect(cli.folder / "s.db") as other:
        other.execute("CREATE TABLE bookmarks (url)")
    other.close()
    (wrong,) = check_texts(doctor(cli), "store", "fail")
    assert "another program" in wrong
    cli.write("toolglot.toml", '[gateway]\nstore = "off"\nsimulate = true')
    assert "workers share nothing" in check_texts(doctor(cli), "store", "warn")[0]
    cli.write("toolglot.toml", '[gateway]\nstore = "here/s.db"\nsimulate = true')
    cli.monkeypatch.setattr("os.access", lambda *_: False)  # root may write everywhere
    assert f"cannot be created → make {cli.folder} writable" in check_texts(doctor(cli), "store", "fail")[0]


def test_a_port_that_is_taken_is_distinguished_by_who_has_it(cli: Cli, simulated: Server) -> None:
    with gateway(None, settings="simulate = true") as served:
        write(cli, settings="simulate = true", port=int(served.url.rpartition(":")[2]))
        ended = doctor(cli)
        assert "toolglot 0.1.0 is serving there" in check_texts(ended, "port", "ok")[0]
        assert ended.code == 0
    write(cli, settings="simulate = true", port=int(simulated.root.rpartition(":")[2]))
    assert "another program uses it" in check_texts(doctor(cli), "port", "fail")[0]
    cli.write("toolglot.toml", '[gateway]\nhost = "127.0.0.1"\nport = 0\nsimulate = true')
    assert check_texts(doctor(cli), "port", "ok") == ["any free port → "]


def test_clients_are_found_with_where_they_are_pointed(cli: Cli) -> None:
    for name, text in (
        ("claude", "2.1.3 (Claude Code)"),
        ("codex", "codex-cli 0.166.0"),
        ("gemini", "hm"),
        ("opencode", "1.2"),
    ):
        program = cli.folder / "bin" / name
        program.write_text(f"#!/bin/sh\necho '{text}'\n")
        program.chmod(0o755)
    port = free_port()
    write(cli, settings="simulate = true", port=port)
    root = f"http://127.0.0.1:{port}"
    ended = doctor(cli, "--no-network")
    lines = check_texts(ended, "clients", "warn")
    assert lines[0] == (
        f"Claude Code 2.1.3 uses its own provider → to use this gateway: "
        f"ANTHROPIC_BASE_URL={root} ANTHROPIC_API_KEY=any claude"
    )
    assert f'base_url = "{root}/v1"' in lines[1]
    assert lines[2].startswith("Gemini CLI uses its own provider")
    assert f'"baseURL": "{root}/v1", "apiKey": "any"' in lines[3]
    assert ended.code == 0, "a client that is not pointed here is no failure"

    for folder in (".claude", ".codex", ".gemini", ".config/opencode"):
        (cli.folder / folder).mkdir(parents=True)
    cli.write(".claude/settings.json", {"env": {"ANTHROPIC_BASE_URL": f"http://localhost:{port}"}})
    toml = f'model_provider = "tg"\n[model_providers.tg]\nbase_url = "{root}/v1"\n'
    cli.write(".codex/config.toml", toml)
    cli.write(".gemini/.env", f'A=1\nGOOGLE_GEMINI_BASE_URL="{root}"\n')
    cli.write(".config/opencode/opencode.json", {"provider": {"x": {"options": {"baseURL": f"{root}/v1"}}}})
    pointed = check_texts(doctor(cli, "--no-network"), "clients", "ok")
    assert [line.rpartition(" is pointed here")[0] for line in pointed] == [
        "Claude Code 2.1.3",
        "Codex 0.166.0",
        "Gemini CLI",
        "opencode 1.2",
    ]
    cli.monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://user:secret@elsewhere.example/v1")
    cli.write(".codex/config.toml", "this is = not [toml")
    cli.write(".config/opencode/opencode.json", "[]")
    lines = check_texts(doctor(cli, "--no-network"), "clients", "warn")
    assert lines[0].startswith("Claude Code 2.1.3 is pointed at elsewhere.example → ")
    assert [line.split(" →")[0] for line in lines[1:]] == [
        "Codex 0.166.0 uses its own provider",
        "opencode 1.2 uses its own provider",
    ]


def test_what_leads_to_the_gateway_is_known_as_such() -> None:
    root = "http://127.0.0.1:8400"
    assert all(
        is_same(address, root) for address in (root, f"{root}/v1", "http://localhost:8400/", "http://[::1]:8400")
    )
    others = ("", "http://127.0.0.1:8401", "https://127.0.0.1:8400", "http://x:8400", "http://[", "http://a:b")
    assert not any(is_same(address, root) for address in others)


MODELS = """
[upstreams.kimi]
key_env = "SIMULATED_KEY"
[upstreams.groq]
key_env = "SIMULATED_KEY"
[upstreams.box]
provider = "vllm"
[models]
opus = "kimi/kimi-k2.5"
sonnet = "kimi/kimi-k2.5"
"gpt-*" = "groq/llama-3.3-70b-versatile"
local = "box/m"
any = "kimi/*"
"""


def test_what_to_set_in_each_agent_is_printed_for_the_models_of_the_configuration(cli: Cli) -> None:
    cli.write("toolglot.toml", MODELS)
    shown = cli("doctor", "--no-network", "--color=never").out
    models = shown[shown.index("\nmodels\n") :].splitlines()
    assert "  ok    opus, sonnet → kimi/kimi-k2.5: 262,144 tokens. Set in the agents that use it:" in models
    assert "        Codex        model_context_window = 262144, model_auto_compact_token_limit = 235929" in models
    claude = [line for line in models if "Claude Code" in line]
    assert claude[0].split() == [
        *("Claude", "Code", "CLAUDE_CODE_MAX_CONTEXT_TOKENS=262144", "CLAUDE_CODE_AUTO_COMPACT_WINDOW=262144")
    ]
    assert claude[1].endswith("CLAUDE_CODE_AUTO_COMPACT_WINDOW=131072 CLAUDE_CODE_MAX_OUTPUT_TOKENS=32768")
    assert any(
        line.endswith('"models": {"NAME": {"limit": {"context": 131072, "input": 131072, "output": 32768}}}')
        for line in models
    )
    assert "  ok    local → box/m: its context window is not known" in models
    assert '        → if you know it, set "context.window" in [profiles.vllm.rules]' in models
    assert "kimi/*" not in shown


def test_the_lines_to_copy_are_in_the_json_too(cli: Cli) -> None:
    cli.write("toolglot.toml", MODELS)
    checks = cli("doctor", "--no-network", "--format", "json").json["checks"]
    first = next(check for check in checks if check["part"] == "models")
    assert [line.split("  ")[0] for line in first["details"]] == ["Claude Code", "Codex", "Gemini CLI", "opencode"]


def test_settings_that_an_agent_would_refuse_are_left_out() -> None:
    small = list(agent_settings(ContextRules(window=32_768), "m"))
    assert "AUTO_COMPACT_WINDOW" not in small[0]  # at least 100,000
    assert '"output": 8192' in small[-1]
    assert not any(line.startswith("Gemini CLI") for line in agent_settings(ContextRules(window=2_000_000), "m"))
    assert list(agent_settings(ContextRules(), "m")) == []


def test_a_clock_that_is_off_is_reported() -> None:
    assert [_check_clock(skew).state for skew in (0.5, -20, 40, -90, 4000)] == ["ok", "ok", "warn", "warn", "fail"]
    late = formatdate(time.time() - 1000, usegmt=True)
    way = once(whole(b"{}", 200, f"date: {late}\r\n"))
    with hostile({"passed": way}) as provider:
        text = ConfigText("x.toml", f'[gateway]\nstore = "off"\n[upstreams.late]\nurl = "{provider.url}"')
        found = asyncio.run(check_upstreams(parse_config(text, {"HOME": "/nowhere"}), lambda _: None))
    assert found[-1].part == "clock"
    assert found[-1].state == "fail"
    assert "s ahead of the upstreams' clocks" in found[-1].message


def test_packages_that_are_missing_are_reported_with_what_they_would_give() -> None:
    none = {finding.message: finding for finding in check_packages(lambda _: "")}
    (failed,) = [finding for finding in none.values() if finding.state == "fail"]
    assert failed == CheckResult(
        "packages",
        "fail",
        "not installed: msgspec, jiter, jsonschema-rs, uvicorn, aiohttp",
        "pip install '.[gateway]' in a clone of toolglot",
    )
    assert none["uvloop is not installed: it provides a faster event loop"].state == "warn"
    assert (
        none["opentelemetry-sdk is not installed, and only needed for traces"].todo
        == "if you want that: pip install '.[otel]' in a clone of toolglot"
    )
    assert {finding.state for finding in check_packages()} == {"ok"}


def test_small_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert [_size(count) for count in (5, 12_345, 45_600_000, 7.71e10)] == ["5 bytes", "12 kB", "46 MB", "77.1 GB"]
    assert _check_status("x", 403, 0, "1 ms", "").todo == "set key_env to its key"
    for free, state in ((10**12, "ok"), (5 * 10**8, "warn"), (10**6, "fail")):
        monkeypatch.setattr("shutil.disk_usage", lambda _, free=free: type("Usage", (), {"free": free}))
        assert _check_disk(tmp_path / "s.db").state == state


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_who_is_waited_for_is_shown_on_a_terminal_and_wiped_away() -> None:
    screen = Screen()
    progress = _Progress(TerminalPage(screen, "never"))
    progress.begin("anthropic", "openai")
    progress.end("anthropic")
    progress.end("openai")
    wipe = "\r\x1b[K"
    assert screen.getvalue() == f"{wipe}waiting for anthropic, openai …{wipe}waiting for openai …{wipe}"
    _Progress(TerminalPage(io.StringIO(), "never")).begin("x")


def test_a_long_finding_is_wrapped_beside_its_state() -> None:
    page = io.StringIO()
    _show([CheckResult("part", "fail", "word " * 40, "do this")], TerminalPage(page, "never"))
    lines = page.getvalue().splitlines()
    assert lines[0] == "part"
    assert lines[1].startswith("  fail  word")
    assert lines[2].startswith("        word")
    assert lines[3] == "        → do this"
    assert lines[-1] == "1 failed, 0 warnings, 0 ok"


def test_keys_of_aws_and_no_key_at_all_are_reported() -> None:
    text = '[gateway]\nstore = "off"\n[upstreams.bedrock]\n[upstreams.box]\nurl = "http://127.0.0.1:9/v1"'
    environ = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "s" * 30, "AWS_REGION": "us-east-1"}
    found = check_keys(parse_config(ConfigText("x.toml", text), environ))
    assert [finding.message for finding in found] == [
        "bedrock: signed with the AWS credentials of the environment",
        "box: no key, and none is needed",
    ]


def test_a_program_that_cannot_be_run_has_no_version(tmp_path: Path) -> None:
    (tmp_path / "broken").write_text("#!/no/such/interpreter\n")
    (tmp_path / "broken").chmod(0o755)
    assert asyncio.run(version_of(str(tmp_path / "broken"), {})) == ""


def test_programs_that_end_at_once_are_waited_for_without_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    program = tmp_path / "quick"
    program.write_text("#!/bin/sh\necho 1.2.3\n")
    program.chmod(0o755)

    async def run() -> list[str]:
        return [
            each for _ in range(10) for each in await asyncio.gather(*(version_of(str(program), {}) for _ in range(4)))
        ]

    assert set(asyncio.run(run())) == {"1.2.3"}
    assert caplog.messages == []


def test_the_command_itself(tmp_path: Path) -> None:
    ended = command(
        "doctor", "--no-network", cwd=tmp_path, HOME=str(tmp_path), PATH="/usr/bin:/bin", TOOLGLOT_CONFIG=""
    )
    assert ended.code == 0, ended.out
    assert ended.err == "", "progress is for terminals"
