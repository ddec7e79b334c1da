"""The simulator as an app, on a port, as a command, and as a fixture of other people's tests."""

from __future__ import annotations

import asyncio
import copy
import json
import os
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from support.cli.commands import Cli
from support.schema.strategies import JSON
from support.simulator.asgi_client import ask, request
from support.simulator.good_requests import BODIES, MODELS
from toolglot.errors import InputError
from toolglot.simulator import FAULTS, PROVIDERS, Server, Simulator, app, serve
from toolglot.simulator.scripts.text_calls import DIALECTS

pytest_plugins = ["toolglot.simulator.pytest_plugin"]

CHAT: dict[str, Any] = {"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi"}]}


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(tmp_path, monkeypatch, capsys)


# --- the app ----------------------------------------------------------------------------------------


def test_requests_are_recorded_without_their_keys() -> None:
    simulator = Simulator()
    ask(simulator, "openai", CHAT)
    ask(simulator, "anthropic", {**CHAT, "surprise": 1})
    first, second = simulator.requests
    assert (first.method, first.path, first.status) == ("POST", "/openai/v1/chat/completions", 200)
    assert (first.provider, first.model, first.body) == ("openai", "gpt-4.1", CHAT)
    assert first.headers["authorization"] == "***"
    assert second.status == 400
    assert second.rule
    assert second.error
    simulator.reset()
    assert simulator.requests == []


def test_only_so_many_requests_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    simulator = Simulator()
    monkeypatch.setattr(app, "MAX_RECORDED", 3)
    for _ in range(5):
        ask(simulator, "openai", CHAT)
    assert len(simulator.requests) == 3
    monkeypatch.setattr(app, "MAX_RECORDED_BYTES", 10)
    ask(simulator, "openai", CHAT)
    assert len(simulator.requests) == 1


def test_the_root_names_the_providers() -> None:
    answered = request(Simulator(), "/", method="GET")
    assert all(f"/{name}" in answered.data.decode() for name in PROVIDERS)


def test_only_http_is_served() -> None:
    with pytest.raises(InputError, match="expected an HTTP request"):
        asyncio.run(Simulator()({"type": "websocket"}, None, None))  # type: ignore[arg-type]


def test_a_request_that_never_arrives_is_abandoned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "UPLOAD_TIMEOUT", 0.01)
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        await asyncio.Event().wait()
        raise AssertionError("nothing comes")

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "path": "/v1/messages", "method": "POST", "headers": []}
    asyncio.run(Simulator()(scope, receive, send))
    assert sent == []


def test_a_pace_is_kept_between_events_and_a_client_that_leaves_ends_it() -> None:
    simulator = Simulator({"pace": 0.001, "chunk": 2})
    body = {**CHAT, "stream": True}
    headers = {"authorization": "Bearer key"}
    whole = request(simulator, "/v1/chat/completions", body, headers=headers)
    left = request(simulator, "/v1/chat/completions", body, headers=headers, leaves=True)
    assert whole.data.endswith(b"data: [DONE]\n\n")
    assert len(left.pieces) < len(whole.pieces)


def test_faults_on_order_are_bounded() -> None:
    simulator = Simulator()
    for times in (0, 10_001):
        with pytest.raises(InputError, match="expected a number from 1 to 10000"):
            simulator.fault("500", times=times)
    with pytest.raises(InputError, match="expected a number from 1 to 10000, got 'many'"):
        simulator.fault("500", times="many")  # type: ignore[arg-type]


# --- on a port --------------------------------------------------------------------------------------


def test_a_server_answers_on_its_own_port_and_stops() -> None:
    with serve(Simulator({"rules": [{"reply": {"text": "Hello"}}]})) as server:
        with urllib.request.urlopen(server.root) as answered:  # noqa: S310
            assert b"toolglot simulator" in answered.read()
        host, port = server.root.removeprefix("http://").split(":")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), timeout=120).close()


def test_a_port_that_is_taken_is_reported() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InputError, match=f"cannot listen on 127.0.0.1:{port}"), serve(port=port):
            pass


@pytest.mark.parametrize("port", ["80", 1.5, -1, True])
def test_a_port_is_a_number(port: Any) -> None:
    with pytest.raises(InputError, match="invalid port"), serve(port=port):
        pass


def test_a_script_can_be_served_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "script.json"
    path.write_text('{"rules": [{"fault": 500}]}', "utf-8")
    for script in ({"rules": [{"fault": 500}]}, path, str(path)):
        with serve(script) as server:
            assert ask(server.simulator, "openai", CHAT).status == 500


def test_addresses_are_those_that_sdks_use(toolglot_simulator: Server) -> None:
    root = toolglot_simulator.root
    assert toolglot_simulator.url("openai") == f"{root}/openai/v1"
    assert toolglot_simulator.url("anthropic") == f"{root}/anthropic"
    with pytest.raises(InputError, match="unknown provider 'nobody'"):
        toolglot_simulator.url("nobody")


def test_without_uvicorn_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(InputError, match="needs uvicorn") as found, serve():
        pass
    assert "pip install '.[simulator]'" in found.value.hint


# --- the fixture ------------------------------------------------------------------------------------


def test_the_fixture_forgets_between_tests_first(toolglot_simulator: Server) -> None:
    toolglot_simulator.script(rules=[{"fault": "500"}])
    toolglot_simulator.fault("429")
    with urllib.request.urlopen(f"{toolglot_simulator.root}/api/version"):  # noqa: S310
        pass
    assert len(toolglot_simulator.requests) == 1


def test_the_fixture_forgets_between_tests_second(toolglot_simulator: Server) -> None:
    assert toolglot_simulator.requests == []
    assert ask(toolglot_simulator.simulator, "openai", CHAT).status == 200


# --- the command ------------------------------------------------------------------------------------


def test_the_command_serves_and_ends_with_control_c(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"rules": [{"reply": {"text": "Scripted"}}]}', "utf-8")
    command = [sys.executable, "-m", "toolglot", "simulate", "--script", str(script), "--fault", "500", "--key", "k"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        root = process.stdout.readline().strip()
        with urllib.request.urlopen(root) as answered:  # noqa: S310
            assert answered.status == 200
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate(timeout=120)
    assert process.returncode == 0, printed
    assert f"anthropic  {root}/anthropic" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--script", "nothing.json"], "cannot read file"),
        (["--fault", "nothing"], "unknown fault"),
        (["--fault", "reset,seconds=1"], "--fault: the fault reset has no option 'seconds'"),
        (["--chunk", "0"], "--chunk: expected a number from 1"),
        (["--pace", "-1"], "--pace: expected a number from 0 to 60"),
        (["--bytes", "-1"], "--bytes: expected a number from 0"),
        (["--key", ""], "--key: expected a key that is not empty"),
        (["--host", ""], "--host: expected an address"),
        (["--host", "192.0.2.1"], "--host: cannot listen on '192.0.2.1'"),
        (["--host", "a\0b"], "--host: cannot listen on"),
        (["--port", "99999"], "--port: invalid port 99999"),
        (["--port", "x"], "invalid int value"),
    ],
)
def test_wrong_options_end_with_2(cli: Cli, words: list[str], message: str) -> None:
    ended = cli("simulate", *words)
    assert ended.code == 2
    assert message in ended.err


class _Stopped:
    """A server that has nothing to do."""

    def __init__(self) -> None:
        self.ports: list[int] = []

    def run(self, sockets: list[socket.socket]) -> None:
        self.ports = [sock.getsockname()[1] for sock in sockets]
        raise KeyboardInterrupt


ORDERED = """\
POST /openai/v1/chat/completions 503 fault 503 (injected)
POST /openai/v1/chat/completions 200 rules[0], fault wrong_stop
POST /openai/v1/chat/completions 200 default script
POST /openai/v1/chat/completions 401 refused: You didn't provide an API key.
POST /openai/v1/chat/completions 400 refused: openai-"""


def test_the_command_prints_each_request_in_a_line_without_keys_and_bodies(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    class _SendsRequests:
        """A server that asks for itself."""

        def __init__(self, simulator: Simulator) -> None:
            self.simulator = simulator

        def run(self, sockets: list[socket.socket]) -> None:
            assert sockets
            for _ in range(3):
                ask(self.simulator, "openai", CHAT, authorization="Bearer sk-secret1234567890")
            request(self.simulator, "/openai/v1/chat/completions", CHAT)
            ask(self.simulator, "openai", {**CHAT, "tool_choice": "required"})
            request(self.simulator, "/", method="HEAD")

    monkeypatch.setattr("toolglot.cli.commands.simulate.server_of", _SendsRequests)
    (cli.folder / "s.json").write_text(
        '{"rules": [{"times": 1, "reply": {"text": "Hello"}}, {"when": {"turn": 9}, "fault": 500},'
        ' {"when": {"turn": 9}, "fault": 500}]}',
        "utf-8",
    )
    words = ("simulate", "--script", "s.json", "--fault", "503", "--fault", "wrong_stop")
    printed = cli(*words).err
    lines = printed.splitlines()[-6:]
    assert all(line.startswith(start) for line, start in zip(lines, [*ORDERED.splitlines(), "HEAD / 200"], strict=True))
    assert all(line.endswith(" ms") for line in lines)
    assert "note: rules[2] is never reached: rules[1] before it matches the same requests" in printed
    assert "secret" not in printed
    assert cli(*words, "-q").err == ""


@pytest.mark.parametrize(("host", "shown"), [("127.0.0.1", "127.0.0.1"), ("::1", "[::1]")])
def test_the_command_says_where_it_listens(cli: Cli, monkeypatch: pytest.MonkeyPatch, host: str, shown: str) -> None:
    if host == "::1" and not (socket.has_ipv6 and os.path.exists("/proc/net/if_inet6")):  # noqa: PTH110
        pytest.skip("no IPv6 here")
    stopped = _Stopped()
    monkeypatch.setattr("toolglot.cli.commands.simulate.server_of", lambda _simulator: stopped)
    ended = cli("simulate", "--host", host, "--seed", "3", "--pace", "0.1", "--bytes", "7", "-q")
    assert ended == (0, f"http://{shown}:{stopped.ports[0]}\n", "")
    assert "also" in cli("simulate").err


def test_the_page_of_the_simulator_runs() -> None:
    text = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text("utf-8")
    blocks = [part.split("```")[0] for part in text.split("```python\n")[1:]]
    done = subprocess.run([sys.executable, "-W", "error", "-c", "\n".join(blocks)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "200\n"), done.stderr


def test_the_page_of_the_simulator_names_every_fault_and_provider() -> None:
    text = (Path(__file__).parents[2] / "docs" / "simulator.md").read_text("utf-8")
    assert all(f"`{name}`" in text for name in (*FAULTS, *DIALECTS))
    assert all(name in text.lower() for name in PROVIDERS)


# --- whatever comes ---------------------------------------------------------------------------------

HOSTILE = JSON | st.sampled_from([10**40, -(10**40), 1e308, "\ud800", "\x00", [[[[]]]], {"": None}])


@pytest.mark.law
@given(st.sampled_from(sorted(BODIES)), st.data())
def test_law_no_body_makes_the_simulator_raise(provider: str, data: st.DataObject) -> None:
    body = copy.deepcopy(BODIES[provider])
    keys = st.sampled_from(
        [*body, "stream", "system", "thinking", "input", "messages", "contents", "previous_response_id"]
    )
    for key in data.draw(st.lists(keys, max_size=3)):
        body[key] = data.draw(HOSTILE)
    answered = ask(Simulator(), provider, json.dumps(body).encode(), model=MODELS.get(provider, ""))
    assert answered.status in (200, 400, 422)


@pytest.mark.law
@given(st.sampled_from(sorted(BODIES)), st.binary(max_size=50))
def test_law_no_bytes_make_the_simulator_raise(provider: str, data: bytes) -> None:
    assert ask(Simulator(), provider, data, model=MODELS.get(provider, "")).status in (400, 422)


@pytest.mark.law
@given(st.text(st.characters(codec="latin-1", exclude_characters="\r\n"), max_size=40))
def test_law_no_order_makes_the_simulator_raise(order: str) -> None:
    assert ask(Simulator(), "openai", CHAT, order=order).status in (200, 400)


def test_numbers_and_texts_that_are_hard_to_write_come_through() -> None:
    use = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"n": 10**40, "t": "\ud83d"}}
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "7 \ud83d"}
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    body = {**BODIES["anthropic"], "messages": messages}
    for stream in (False, True):
        answered = ask(Simulator(), "anthropic", {**body, "stream": stream})
        assert answered.status == 200, answered.data


def test_a_body_that_nests_too_deeply_is_refused() -> None:
    deep = b'{"messages":' + b"[" * 500 + b"]" * 500 + b"}"
    assert ask(Simulator(), "anthropic", deep).status == 400
