"""MCP servers from a configuration file, and their tools on the way to each provider."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_servers.serving import EVERY_KIND, ask
from toolglot import InputError, lint, request_for
from toolglot.conversation import Conversation, Text, ToolSpec, Turn
from toolglot.runtime.mcp.config import servers_from
from toolglot.runtime.mcp.naming import SyncedTools, legal_name
from toolglot.runtime.mcp.servers import McpServers
from toolglot.runtime.tools.toolbox import Tool, ToolBox


async def test_servers_come_from_a_file_with_variables_filled_in(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    table = {
        "kinds": {
            "type": "stdio",
            "command": "${PYTHON}",
            "args": ["${SCRIPT:-" + EVERY_KIND + "}"],
            "env": {"TOKEN": "${env:TOKEN}"},
            "cwd": str(tmp_path),
            "autoApprove": [],
        },
        "off": {"command": "false", "disabled": True},
    }
    file.write_text(json.dumps({"mcpServers": table}), "utf-8")
    servers = servers_from(file, environ={"PYTHON": sys.executable, "TOKEN": "a-token"}, timeout=20)
    assert [server.name for server in servers] == ["kinds"]
    async with servers as box:
        assert "TOKEN" in str((await ask(box, "environment")).content).split()
        for target in ("anthropic", "openai", "gemini", "mistral"):
            conversation = Conversation((Turn("user", (Text("?"),)),), box.specs)
            request = request_for(conversation, target=target, model=MODELS[target])
            assert lint(request.body, target=target) == ()


MODELS = {
    "anthropic": "claude-sonnet-4-5",
    "openai": "gpt-4.1",
    "gemini": "gemini-3-pro",
    "mistral": "mistral-large-latest",
}


def test_an_address_with_headers_and_the_tables_of_other_clients_are_read() -> None:
    entry = {"type": "http", "url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${KEY}"}}
    servers = servers_from({"servers": {"docs": entry}}, environ={"HOST": "example.com", "KEY": "a-long-key"})
    (server,) = servers
    assert server.name == "docs"
    assert "a-long-key" not in repr(server) + repr(vars(server))


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ([], r"\$: there are no MCP servers"),
        ({"mcpServers": []}, r"\$: there are no MCP servers"),
        ({"mcpServers": {"a": 1}}, r"\$\.mcpServers\.a: expected an object"),
        ({"mcpServers": {"a": {}}}, r"\$\.mcpServers\.a: expected a command or a url"),
        ({"mcpServers": {"a": {"command": 1}}}, r"\$\.mcpServers\.a\.command: expected a string"),
        ({"mcpServers": {"a": {"command": "x", "args": "y"}}}, r"a\.args: expected a list"),
        ({"mcpServers": {"a": {"command": "x", "env": []}}}, "^$"),
        ({"mcpServers": {"a": {"command": "x", "env": ["y"]}}}, r"a\.env: expected an object"),
        ({"mcpServers": {"a": {"command": "x", "env": {"K": 1}}}}, r"a\.env\.K: expected a string"),
        ({"mcpServers": {"a": {"command": "${NOT_THERE}"}}}, "the environment variable NOT_THERE is not set"),
        ({"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}, r"a\.type: the transport 'sse' is not supported"),
        ({"mcpServers": {"a": {"url": "x"}}}, "begins with http"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused_with_its_path(config: Any, message: str) -> None:
    if message == "^$":  # nothing is set, in another way
        assert len(servers_from(config, environ={})) == 1
        return
    with pytest.raises(InputError, match=message):
        servers_from(config, environ={})


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read file .*: No such file"):
        servers_from(tmp_path / "none.json")
    (tmp_path / "large.json").write_bytes(b" " * 1_000_001)
    with pytest.raises(InputError, match="1000000"):
        servers_from(str(tmp_path / "large.json"))


async def test_no_servers_are_a_box_without_tools() -> None:
    async with McpServers([]) as box:
        assert len(box) == 0


# --- names ------------------------------------------------------------------------------------------


@pytest.mark.law
@given(st.lists(st.tuples(st.sampled_from(["a", "b b", "ä"]), st.text(min_size=1, max_size=90)), unique=True))
def test_names_are_legal_distinct_and_lead_back(listed: list[tuple[str, str]]) -> None:
    box = ToolBox()
    for server in dict.fromkeys(server for server, _ in listed):
        tools = [Tool(spec=ToolSpec(name)) for owner, name in listed if owner == server]
        joined = SyncedTools(box, server, "auto")
        assert joined.sync(tools) == []
        names = [held.name for held in box]
        assert joined.sync(tools) == []
        assert [held.name for held in box] == names
        assert {name: joined.original(name) for name in names if joined.original(name)}.values()
        originals = [joined.original(name) for name in names]
        assert {name for name in originals if name is not None} == {tool.name for tool in tools}
    assert len(box) == len(listed)
    assert all(legal_name(held.name) == held.name for held in box)
