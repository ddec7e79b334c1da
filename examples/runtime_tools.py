"""Tools from a function, a definition and an MCP server, in one toolbox, in the form of any provider."""

import asyncio
import sys
from typing import Any, Literal

from toolglot import Conversation, Text, Turn, request_for
from toolglot.runtime import McpServer, ToolBox, ToolContext, ToolError, define, tool

SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("clock", log_level="CRITICAL")
server.add_tool(lambda zone: f"noon in {zone}", name="time", description="What time it is.")
server.run("stdio")
"""


@tool(side_effects=False)
def weather(city: str, unit: Literal["c", "f"] = "c") -> dict[str, Any]:
    """The weather in a city.

    Args:
        city: Its name, in English.
        unit: Celsius or Fahrenheit.
    """
    return {"city": city, "temperature": 21.5 if unit == "c" else 70.7}


async def main() -> None:
    search = define({"name": "search", "inputSchema": {"type": "object"}}, lambda arguments: [*arguments])
    box = ToolBox([weather, search])
    clock = McpServer.stdio(sys.executable, ["-c", SERVER], name="clock", names="always")
    async with clock:
        clock.join(box)
        for target, model in (("anthropic", "claude-sonnet-4-5"), ("gemini", "gemini-3-pro")):
            conversation = Conversation((Turn("user", (Text("Hello"),)),), box.specs)
            print(target, request_for(conversation, target=target, model=model).body["tools"])
        for name, arguments in (
            ("weather", {"city": "Oslo"}),
            ("weather", {"city": 7}),
            ("search", {"query": "tea"}),
            ("clock__time", {"zone": "Oslo"}),
        ):
            found = box.find(name)
            assert found is not None
            assert found.run is not None
            try:
                print(name, await found.run(arguments, ToolContext()))
            except ToolError as error:
                print(name, "failed:", error)


asyncio.run(main())
