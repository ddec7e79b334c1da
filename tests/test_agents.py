"""Real coding agents: Claude Code, Codex and Gemini CLI, at the simulator and through the gateway to every upstream.

The model is scripted, the agent is not: its own tools write the files that prove that the calls arrived. Law: whatever
stands behind the gateway, the tools really run, parallel calls too, the last words arrive, and the strict simulator
refuses nothing.
"""

from __future__ import annotations

import base64
import binascii
import json
import struct
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from msgspec.structs import replace

from support.coding_agents import KEY, AgentRun, Runner, run, run_claude, run_codex, run_gemini, started_with
from support.gateway.served_gateway import Served, gateway
from toolglot.gateway import Gateway, Upstreams, running
from toolglot.gateway.config.settings import config_from_environment
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.simulator import RecordedRequest, Server, Simulator, serve
from toolglot.simulator.simulated_upstreams import PREFACE

pytestmark = pytest.mark.agents

PROMPT: Final = "Write the proof files."
DONE: Final = "All three files are written."
PROOFS: Final = ("one.txt", "two.txt", "three.txt")


class Agent(NamedTuple):
    """A coding agent: the address that it is configured with, and how it names its tools."""

    name: str
    run: Runner
    provider: str
    """Whose protocol it speaks."""
    base: str
    """What it expects at the end of the gateway's address."""
    shell: str
    command: Callable[[str], dict[str, Any]]
    home: str
    """The upstream that speaks its protocol."""

    def writes(self, name: str) -> dict[str, Any]:
        """The call that makes it write a file."""
        return {"name": self.shell, "arguments": self.command(f"echo proof > {name}")}


CLAUDE: Final = Agent("Claude Code", run_claude, "anthropic", "", "Bash", lambda line: {"command": line}, "anthropic")
CODEX: Final = Agent(
    "Codex", run_codex, "openai", "/v1", "exec_command", lambda line: {"cmd": line}, "openai_responses"
)
GEMINI: Final = Agent(
    "Gemini CLI", run_gemini, "gemini", "", "run_shell_command", lambda line: {"command": line}, "gemini"
)
AGENTS: Final = (CLAUDE, CODEX, GEMINI)
MODELS: Final = {
    "anthropic": "claude-opus-5",
    "openai_chat": "gpt-4.1",
    "openai_responses": "gpt-5.5",
    "gemini": "gemini-3-pro",
    "mistral": "mistral-large-latest",
    "deepseek": "deepseek-reasoner",
    "kimi": "kimi-k2.5",
}
"""The model behind the gateway, by upstream."""

THINKING: Final = frozenset({"anthropic", "openai_responses", "gemini", "deepseek", "kimi"})
THOUGHTS: Final = ("First the first.", "Now both at once.", "That is all.")
LONGEST_STAND_IN: Final = 40
"""Characters: signatures are longer."""


def of_agent(agent: Agent) -> str:
    return agent.name.replace(" ", "")


@pytest.fixture
def simulated() -> Iterator[Server]:
    with serve() as server:
        yield server


@pytest.fixture
def work(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


# --- what every agent is to do ----------------------------------------------------------------------


def loop(agent: Agent) -> list[dict[str, Any]]:
    """A call, then two at once, then the last words; thinking before each."""
    one, two, three = map(agent.writes, PROOFS)
    steps = (
        (0, {"text": "One.", "thinking": THOUGHTS[0], "calls": [one]}),
        (1, {"thinking": THOUGHTS[1], "calls": [two, three]}),
        (3, {"thinking": THOUGHTS[2], "text": DONE}),
    )
    return [{"when": {"tool": agent.shell, "results": results}, "reply": reply} for results, reply in steps]


def model_requests(simulated: Server) -> list[RecordedRequest]:
    """The requests of agents to a model; some first look whether a server is there."""
    return [request for request in simulated.requests if request.method == "POST"]


def check_accepted(simulated: Server, run: AgentRun) -> None:
    refused = [
        (request.path, request.rule, request.error) for request in model_requests(simulated) if request.status != 200
    ]
    assert refused == [], run.output()
    assert simulated.unused() == [], run.output()


def check_loop(simulated: Server, run: AgentRun, work: Path) -> None:
    check_accepted(simulated, run)
    assert {path.name for path in work.iterdir()} == set(PROOFS), run.output()
    assert (run.text, run.exit) == (DONE, 0), run.output()
    assert len(model_requests(simulated)) == 3, run.output()


def check_way(upstream: str, simulated: Server, served: Served, run: AgentRun) -> None:
    """Everything went by the gateway, to that upstream."""
    assert {record.response.status for record in served.records} == {200}, run.output()
    assert {record.route.upstream for record in served.records if record.request.method == "POST"} == {upstream}, (
        run.output()
    )
    assert {request.model for request in model_requests(simulated)} == {MODELS[upstream]}


def check_thinking(upstream: str, simulated: Server) -> None:
    """What the model thought before its calls came back to it, signed where it signs."""
    assert len(thoughts(model_requests(simulated)[-1].body)) == (2 if upstream in THINKING else 0)


def thoughts(value: Any) -> list[str]:
    """Thinking and signatures in a body, in the words of any provider; no stand-ins."""
    if isinstance(value, list):
        return [found for part in value for found in thoughts(part)]
    if not isinstance(value, Mapping):
        return []
    own = [value.get(name) for name in ("signature", "encrypted_content", "thoughtSignature", "reasoning_content")]
    found = [text for text in own if isinstance(text, str) and (text in THOUGHTS or len(text) > LONGEST_STAND_IN)]
    return found + [text for part in value.values() for text in thoughts(part)]


def to_upstream(upstream: str, model: str = "") -> dict[str, str]:
    """Whatever the agent asks for, it gets the model of that upstream."""
    goal = f"{upstream}/{model or MODELS[upstream]}"
    return dict.fromkeys(("claude-*", "gpt-*", "gemini-*", "*"), goal)


# --- the tool loop ----------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", AGENTS, ids=of_agent)
def test_an_agent_works_at_the_simulator_itself(agent: Agent, simulated: Server, work: Path) -> None:
    simulated.script(rules=loop(agent))
    check_loop(simulated, agent.run(simulated.url(agent.provider), PROMPT, work), work)


@pytest.mark.parametrize("upstream", MODELS)
@pytest.mark.parametrize("agent", AGENTS, ids=of_agent)
def test_an_agent_works_through_the_gateway(agent: Agent, upstream: str, simulated: Server, work: Path) -> None:
    simulated.script(rules=loop(agent))
    named = {"model": MODELS[upstream]} if upstream == agent.home else {}
    with gateway(simulated, models=to_upstream(upstream)) as served:
        run = agent.run(served.url + agent.base, PROMPT, work, **named)
    check_loop(simulated, run, work)
    check_way(upstream, simulated, served, run)
    check_thinking(upstream, simulated)


ALIASES: Final = {CLAUDE: "claude-sonnet-4-5", CODEX: "gpt-5.4", GEMINI: "gemini-2.5-flash"}


@pytest.mark.parametrize("agent", AGENTS, ids=of_agent)
def test_thinking_comes_home_where_the_agent_knows_the_model_by_another_name(
    agent: Agent, simulated: Server, work: Path
) -> None:
    simulated.script(rules=loop(agent))
    with gateway(simulated, models=to_upstream(agent.home)) as served:
        run = agent.run(served.url + agent.base, PROMPT, work, model=ALIASES[agent])
    check_loop(simulated, run, work)
    check_thinking(agent.home, simulated)


@pytest.mark.parametrize("agent", AGENTS, ids=of_agent)
def test_an_agent_works_with_nothing_configured_and_replies_that_name_a_simulated_model(
    agent: Agent, work: Path
) -> None:
    simulator = Simulator({"rules": loop(agent)})
    found = config_from_environment({"HOME": "/nowhere"})
    config = replace(found, gateway=replace(found.gateway, store=":memory:", log="off"))
    upstreams = Upstreams(config, simulator=simulator)
    with running(Gateway(config, upstreams=upstreams, request_log=RequestLog(max_remembered=100, form="off"))) as url:
        run = agent.run(url + agent.base, PROMPT, work)
    assert {path.name for path in work.iterdir()} == set(PROOFS), run.output()
    assert (run.text, run.exit) == (DONE, 0), run.output()
    assert {request.status for request in simulator.requests} == {200}, run.output()


def test_claude_code_asks_for_a_model_of_another_provider_by_its_name(simulated: Server, work: Path) -> None:
    simulated.script(rules=loop(CLAUDE))
    with gateway(simulated) as served:
        run = run_claude(served.url, PROMPT, work, model="gpt-4o")
    check_loop(simulated, run, work)
    assert {request.model for request in model_requests(simulated)} == {"gpt-4o"}


CLOUDS: Final = {
    "bedrock": {
        "CLAUDE_CODE_USE_BEDROCK": "1",
        "ANTHROPIC_BEDROCK_BASE_URL": "{url}",
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
    },
    "vertex": {
        "CLAUDE_CODE_USE_VERTEX": "1",
        "ANTHROPIC_VERTEX_BASE_URL": "{url}/v1",
        "CLOUD_ML_REGION": "global",
        "ANTHROPIC_VERTEX_PROJECT_ID": "p",
        "CLAUDE_CODE_SKIP_VERTEX_AUTH": "1",
    },
}


@pytest.mark.parametrize("upstream", ["anthropic", "openai_chat", "gemini"])
@pytest.mark.parametrize("cloud", CLOUDS)
def test_claude_code_works_where_it_believes_to_be_in_a_cloud(
    cloud: str, upstream: str, simulated: Server, work: Path
) -> None:
    simulated.script(rules=loop(CLAUDE))
    with gateway(simulated, models={**to_upstream(upstream), "us.*": f"{upstream}/{MODELS[upstream]}"}) as served:
        variables = {name: value.format(url=served.url) for name, value in CLOUDS[cloud].items()}
        run = run_claude("", PROMPT, work, cloud=variables)
    check_accepted(simulated, run)
    assert {path.name for path in work.iterdir()} == set(PROOFS), run.output()
    assert (run.text, run.exit) == (DONE, 0), run.output()


NOTES: Final = Path(__file__).parent / "mcp_servers" / "notes.py"
RECORD: Final = "mcp__notes__record"
"""A tool that Claude Code defers: the model has to find it first."""


@pytest.mark.parametrize("upstream", MODELS)
def test_claude_code_loads_a_deferred_tool_and_runs_it_on_every_upstream(
    upstream: str, simulated: Server, work: Path, tmp_path: Path
) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"notes": {"command": sys.executable, "args": [str(NOTES)]}}}))
    search = {"name": "ToolSearch", "arguments": {"query": f"select:{RECORD}", "max_results": 5}}
    record = {"name": RECORD, "arguments": {"path": "proof.txt", "text": "recorded by a tool that was found"}}
    simulated.script(
        rules=[
            {"when": {"tool": "ToolSearch"}, "times": 1, "reply": {"calls": [search]}},
            {"when": {"tool": RECORD}, "times": 1, "reply": {"calls": [record]}},
            {"reply": {"text": DONE}},
        ]
    )
    model = MODELS[upstream] if upstream == CLAUDE.home else ""
    with gateway(simulated, models=to_upstream(upstream)) as served:
        extra = ("--mcp-config", str(config), "--dangerously-skip-permissions")
        run = run_claude(served.url, PROMPT, work, model=model, extra=extra)
    check_accepted(simulated, run)
    assert (work / "proof.txt").read_text() == "recorded by a tool that was found", run.output()
    assert (run.text, run.exit) == (DONE, 0), run.output()
    first, second, third = map(json.dumps, [request.body for request in model_requests(simulated)])
    if upstream != CLAUDE.home:
        assert "DeferredToolPlaceholder" not in first + second + third
        assert f"You can call them from now on:\\n- {RECORD}: Does a record." in second
    assert "Does a record." not in first
    assert "Does a lookup." not in first + second + third


def test_claude_code_learns_that_no_upstream_of_the_gateway_can_search_the_web(simulated: Server, work: Path) -> None:
    """Its search is a request of its own, with a tool that only Anthropic runs: an answer would be made up.

    The tool for it is one of those that the model has to find first.
    """
    found = {"name": "ToolSearch", "arguments": {"query": "select:WebSearch"}}
    search = {"name": "WebSearch", "arguments": {"query": "cats"}}
    simulated.script(
        rules=[
            {"when": {"tool": "ToolSearch"}, "times": 1, "reply": {"calls": [found]}},
            {"when": {"tool": "WebSearch"}, "times": 1, "reply": {"calls": [search]}},
            {"when": {"tool": "WebSearch"}, "reply": {"text": "I could not search."}},
        ]
    )
    with gateway(simulated, models=to_upstream("openai_chat")) as served:
        run = run_claude(served.url, "Search for cats.", work, extra=["--allowedTools", "WebSearch"])
    check_accepted(simulated, run)
    assert run.text == "I could not search.", run.output()
    statuses = [record.response.status for record in served.records if record.request.method == "POST"]
    assert statuses == [200, 200, 400, 400, 200], run.output()  # it asks for the search a second time
    assert "OpenAI Chat Completions cannot" in str(model_requests(simulated)[-1].body["messages"][-1])


# --- without a key and without a script -------------------------------------------------------------


@pytest.mark.parametrize("prompt", ["read a.txt", "What is in a.txt?"])
@pytest.mark.parametrize("agent", AGENTS, ids=of_agent)
def test_an_agent_reads_a_file_with_nothing_configured(agent: Agent, prompt: str, work: Path) -> None:
    """As after `make serve` on a fresh clone: the simulated model picks the agent's own tool and tells what it read."""
    (work / "a.txt").write_text("the first line\nthe second line\n", encoding="utf-8")
    config = config_from_environment({"HOME": str(work), "XDG_STATE_HOME": str(work.parent / "state")})
    with running(Gateway(config, request_log=RequestLog(max_remembered=10, form="off"))) as url:
        run = agent.run(url + agent.base, prompt, work)
    assert run.exit == 0, run.output()
    assert run.text.endswith("a.txt says: the first line\nthe second line"), run.output()


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "mistral/mistral-large-latest", "gemini/gemini-3-pro"])
def test_claude_code_reads_a_file_with_any_simulated_model(model: str, work: Path) -> None:
    """It puts a list of its agents behind the prompt, and speaks of a working directory before it names it."""
    (work / "a.txt").write_text("the first line\n", encoding="utf-8")
    config = config_from_environment({"HOME": str(work), "XDG_STATE_HOME": str(work.parent / "state")})
    with running(Gateway(config, request_log=RequestLog(max_remembered=10, form="off"))) as url:
        run = run_claude(url, "read a.txt", work, model=model)
    assert run.exit == 0, run.output()
    assert run.text == f"{PREFACE}a.txt says: the first line", run.output()


@pytest.mark.parametrize("model", ["claude-sonnet-4-5", "mistral/mistral-large-latest"])
def test_claude_code_writes_a_file_with_any_simulated_model(model: str, work: Path) -> None:
    config = config_from_environment({"HOME": str(work), "XDG_STATE_HOME": str(work.parent / "state")})
    with running(Gateway(config, request_log=RequestLog(max_remembered=10, form="off"))) as url:
        run = run_claude(url, "Write hello into c.txt", work, model=model)
    assert (work / "c.txt").read_text(encoding="utf-8") == "hello", run.output()
    assert "] Write: " in run.text, run.output()


# --- Codex's own kinds of tools ---------------------------------------------------------------------

BEFORE: Final = "first\nsecond\nthird\n"
PATCH: Final = """\
*** Begin Patch
*** Update File: poem.txt
@@
 first
-second
+"2nd" \\ é
 third
*** End Patch
"""
PATCHED: Final = "The file is patched."


@pytest.mark.parametrize("upstream", MODELS)  # OpenAI's own protocols have free-text tools, the others functions
def test_codex_patches_a_file_with_its_free_text_tool(upstream: str, simulated: Server, work: Path) -> None:
    (work / "poem.txt").write_text(BEFORE, encoding="utf-8")
    arguments: str | dict[str, str] = PATCH if upstream.startswith("openai") else {"input": PATCH}
    patch = {"name": "apply_patch", "arguments": arguments}
    simulated.script(
        rules=[
            {"when": {"results": 0}, "reply": {"calls": [patch]}},
            {"when": {"results": 1}, "reply": {"text": PATCHED}},
        ]
    )
    with gateway(simulated, models=to_upstream(upstream)) as served:
        run = run_codex(served.url + "/v1", "Patch the file.", work)
    check_accepted(simulated, run)
    assert (work / "poem.txt").read_text(encoding="utf-8") == 'first\n"2nd" \\ é\nthird\n', run.output()
    assert run.text == PATCHED, run.output()


EVERYWHERE: Final = {
    **MODELS,
    "bedrock": "anthropic.claude-sonnet-4-5-v1:0",
    "cohere": "command-a-03-2025",
    "ollama": "qwen3",
}
MCP_SERVER: Final = Path(__file__).parent / "mcp_servers" / "every_kind.py"
WITH_MCP: Final = [
    *("-c", f"mcp_servers.kinds.command={json.dumps(sys.executable)}"),
    *("-c", f"mcp_servers.kinds.args={json.dumps([str(MCP_SERVER)])}"),
    *("-c", "mcp_servers.kinds.required=true"),  # otherwise the first request does not wait for its tools
]
FOUND: Final = "I found it and called it."


@pytest.mark.parametrize("upstream", EVERYWHERE)
def test_codex_searches_for_a_tool_of_an_mcp_server_and_calls_it(upstream: str, simulated: Server, work: Path) -> None:
    """The tools of MCP servers are deferred: the model sees one from the time on that a search found it."""
    is_own = upstream == "openai_responses"
    name = "echo" if is_own else "mcp__kinds__echo"
    search = {"name": "tool_search", "arguments": {"query": "echo says it again"}}
    echo = {"name": name, "arguments": {"text": "over", "times": 3}}
    simulated.script(
        rules=[
            {"when": {"tool": "tool_search", "results": 0}, "reply": {"calls": [search]}},
            {"when": {"tool": name, "results": 1}, "reply": {"calls": [echo]}},
            {"when": {"tool": name, "results": 2}, "reply": {"text": FOUND}},
        ]
    )
    with gateway(simulated, models=to_upstream(upstream, EVERYWHERE[upstream])) as served:
        run = run_codex(served.url + "/v1", "Say it again.", work, extra=WITH_MCP)
    check_accepted(simulated, run)
    assert run.text == FOUND, run.output()
    first, second, third = (str(request.body) for request in model_requests(simulated))
    assert "overoverover" in third, run.output()
    assert "Says it again." not in first, run.output()
    says = {"openai_responses": "tool_search_output", "anthropic": "tool_reference"}
    assert says.get(upstream, f"- {name}: Says it again.") in second, run.output()


def run_script(upstream: str, script: str) -> dict[str, Any]:
    """The call of the tool that runs JavaScript, which has Codex's other tools; it is free text, in a namespace."""
    arguments: str | dict[str, str] = script if upstream.startswith("openai") else {"input": script}
    return {"name": "exec" if upstream == "openai_responses" else "functions__exec", "arguments": arguments}


@pytest.mark.parametrize("upstream", EVERYWHERE)
def test_codex_has_its_tools_where_it_sends_them_as_an_item_of_the_input(
    upstream: str, simulated: Server, work: Path
) -> None:
    """For its newest models Codex sends no `tools`, but an item `additional_tools`."""
    script = 'text(await tools.exec_command({"cmd": "echo proof > one.txt"}))'
    simulated.script(
        rules=[
            {"when": {"results": 0}, "reply": {"calls": [run_script(upstream, script)]}},
            {"when": {"results": 1}, "reply": {"text": DONE}},
        ]
    )
    own = "gpt-6-sol" if upstream == "openai_responses" else EVERYWHERE[upstream]
    with gateway(simulated, models=to_upstream(upstream, own)) as served:
        run = run_codex(served.url + "/v1", PROMPT, work, model="gpt-6-sol")
    check_accepted(simulated, run)
    assert (run.text, run.exit) == (DONE, 0), run.output()
    assert (work / "one.txt").read_text(encoding="utf-8") == "proof\n", run.output()
    assert {record.response.status for record in served.records} == {200}, run.output()


@pytest.mark.parametrize("upstream", ["anthropic", "openai_chat", "openai_responses", "gemini", "mistral"])
def test_codex_sends_messages_between_its_agents(upstream: str, simulated: Server, work: Path) -> None:
    """An `agent_message` is what another agent says: the model of any provider reads it, and never as its own words."""
    spawn = "spawn_agent" if upstream == "openai_responses" else "collaboration__spawn_agent"
    wait = "wait_agent" if upstream == "openai_responses" else "collaboration__wait_agent"
    task = {"name": spawn, "arguments": {"task_name": "child", "message": CHILD, "fork_turns": "none"}}
    script = 'text(await tools.exec_command({"cmd": "echo proof > child.txt"}))'
    steps: list[tuple[str, int, dict[str, Any]]] = [
        (CHILD, 0, {"calls": [run_script(upstream, script)]}),
        (CHILD, 1, {"text": "The child is done."}),
        (PROMPT, 0, {"calls": [task]}),
        (PROMPT, 1, {"calls": [{"name": wait, "arguments": {}}]}),
    ]
    rules = [{"when": {"contains": said, "results": results}, "reply": reply} for said, results, reply in steps]
    simulated.script(rules=[*rules, {"reply": {"text": DONE}}])
    own = "gpt-6-sol" if upstream == "openai_responses" else MODELS[upstream]
    with gateway(simulated, models=to_upstream(upstream, own)) as served:
        run = run_codex(served.url + "/v1", PROMPT, work, model="gpt-6-sol")
    assert {request.status for request in model_requests(simulated)} == {200}, run.output()
    assert [path.name for path in work.iterdir()] == ["child.txt"], run.output()
    assert run.text == DONE, run.output()


CHILD: Final = "Write the child's file."
WAITS: Final = "timeout 200 sh -c 'until test -f child.txt; do sleep 0.02; done'"


@pytest.mark.parametrize("upstream", ["anthropic", "openai_chat", "openai_responses", "gemini", "mistral"])
def test_codex_starts_a_second_agent_with_a_tool_of_a_namespace(upstream: str, simulated: Server, work: Path) -> None:
    """When the second one is done, the first gets a message as the user, at any time: the last rule is for that."""
    name = "spawn_agent" if upstream == "openai_responses" else "multi_agent_v1__spawn_agent"
    spawn = {"name": name, "arguments": {"message": CHILD}}
    wait = {"name": CODEX.shell, "arguments": {"cmd": WAITS, "yield_time_ms": 20_000}}
    steps = ((CHILD, 0, [CODEX.writes("child.txt")]), (PROMPT, 0, [spawn]), (PROMPT, 1, [wait]))
    rules = [
        {"when": {"contains": prompt, "results": results}, "reply": {"calls": calls}}
        for prompt, results, calls in steps
    ]
    simulated.script(rules=[*rules, {"reply": {"text": DONE}}])
    with gateway(simulated, models=to_upstream(upstream)) as served:
        run = run_codex(served.url + "/v1", PROMPT, work, model="a-model-that-codex-does-not-know")
    assert {request.status for request in model_requests(simulated)} == {200}, run.output()
    assert [path.name for path in work.iterdir()] == ["child.txt"], run.output()
    assert run.text == DONE, run.output()


@pytest.mark.parametrize("upstream", ["anthropic", "openai_chat", "openai_responses", "gemini", "mistral"])
def test_codex_runs_its_loop_over_one_websocket(upstream: str, simulated: Server, work: Path) -> None:
    """It warms up first, and then sends only what is new: the gateway has the conversation."""
    simulated.script(rules=loop(CODEX))
    with gateway(simulated, models=to_upstream(upstream)) as served:
        extra = ["-c", "model_providers.tested.supports_websockets=true"]
        run = run_codex(served.url + "/v1", PROMPT, work, extra=extra)
    check_loop(simulated, run, work)
    assert [record.response.status for record in served.records] == [101, 200, 200, 200, 200], run.output()
    assert {record.route.upstream for record in served.records[1:]} == {upstream}
    check_thinking(upstream, simulated)


def test_the_built_in_provider_of_codex_uses_a_websocket(simulated: Server, work: Path) -> None:
    simulated.script(rules=loop(CODEX))
    with gateway(simulated, models=to_upstream("anthropic")) as served:
        extra = ["-c", 'model_provider="openai"', "-c", f'openai_base_url="{served.url}/v1"']
        run = run_codex(served.url + "/v1", PROMPT, work, extra=extra, environment={"OPENAI_API_KEY": KEY})
    check_loop(simulated, run, work)
    kinds = [(record.request.method, record.response.status) for record in served.records]
    assert ("GET", 101) in kinds, run.output()
    assert kinds.count(("POST", 200)) == 4, run.output()


def test_codex_goes_on_over_http_where_websockets_are_off(simulated: Server, work: Path) -> None:
    simulated.script(rules=loop(CODEX))
    with gateway(simulated, models=to_upstream("openai_responses"), settings="websocket_minutes = 0") as served:
        extra = ["-c", "model_providers.tested.supports_websockets=true"]
        run = run_codex(served.url + "/v1", PROMPT, work, extra=extra)
    check_loop(simulated, run, work)
    assert [record.response.status for record in served.records] == [426, 200, 200, 200], run.output()


# --- images in results ------------------------------------------------------------------------------


def picture() -> bytes:
    """A small red PNG."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", 16, 16, 8, 2, 0, 0, 0)
    rows = (b"\0" + b"\xff\0\0" * 16) * 16
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def images(value: Any) -> list[bytes]:
    """The images of a body, wherever they stand: agents may write them anew, so only their kind is looked at."""
    if isinstance(value, Mapping):
        return [image for part in value.values() for image in images(part)]
    if isinstance(value, list):
        return [image for part in value for image in images(part)]
    if not isinstance(value, str) or len(value) < 64:
        return []
    text = value.partition(";base64,")[2] or value
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return []
    return [data] if data.startswith((b"\x89PNG", b"\xff\xd8\xff", b"RIFF")) else []


SEEING: Final = {
    (CLAUDE, "Read", "file_path"): ("anthropic", "openai_chat", "openai_responses", "gemini", "mistral", "kimi"),
    (CODEX, "view_image", "path"): ("anthropic", "openai_chat", "openai_responses", "gemini"),
    (GEMINI, "read_file", "file_path"): ("anthropic", "openai_chat", "openai_responses"),
}
SEEN: Final = [(*how, upstream) for how, upstreams in SEEING.items() for upstream in upstreams]


@pytest.mark.parametrize(
    ("agent", "tool", "argument", "upstream"), SEEN, ids=[f"{of_agent(seen[0])}-{seen[3]}" for seen in SEEN]
)
def test_an_image_that_an_agent_reads_arrives_at_the_model(
    agent: Agent, tool: str, argument: str, upstream: str, simulated: Server, work: Path
) -> None:
    (work / "red.png").write_bytes(picture())
    look = {"name": tool, "arguments": {argument: str(work / "red.png")}}
    simulated.script(
        rules=[
            {"when": {"tool": tool}, "times": 1, "reply": {"calls": [look]}},
            {"when": {"tool": tool}, "reply": {"text": "It is red."}},
        ]
    )
    with gateway(simulated, models=to_upstream(upstream)) as served:
        run = agent.run(served.url + agent.base, "Look at red.png", work)
    check_accepted(simulated, run)
    assert run.text == "It is red.", run.output()
    assert len(images(model_requests(simulated)[-1].body)) == 1, run.output()


# --- runs as such -----------------------------------------------------------------------------------


def test_an_agent_that_is_not_installed_is_skipped_by_its_name() -> None:
    with pytest.raises(pytest.skip.Exception, match=r"Some Agent: .*npm install"):
        started_with("Some Agent", "no/such/program.js")


def test_without_node_an_agent_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(pytest.skip.Exception, match=r"Codex: there is no node here; install Node\.js"):
        started_with("Codex", "@openai/codex/bin/codex.js")


def test_a_run_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    exit_, stdout, stderr = run(["sh", "-c", "echo begun; sleep 3600"], tmp_path, tmp_path, {}, longest=5)
    assert (exit_, stdout, stderr) == (-9, "begun\n", "\nended after 5 s")


def test_a_run_does_not_wait_for_what_it_left_behind(tmp_path: Path) -> None:
    assert run(["sh", "-c", "sleep 3600 & echo done"], tmp_path, tmp_path, {}, longest=120) == (0, "done\n", "")
