"""MCP servers that do what they must not, by hand: `python hostile.py KIND`. They speak lines of JSON over stdio."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

KIND = sys.argv[1]
LISTED: list[str | None] = []
SCHEMA: dict[str, Any] = {"type": "object", "properties": {}}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def tool(name: str, **more: Any) -> dict[str, Any]:
    return {"name": name, "description": "A tool.", "inputSchema": SCHEMA, **more}


def pages(cursor: str | None) -> dict[str, Any]:
    if KIND == "many_tools":
        return {"tools": [tool(f"t{number}") for number in range(100_000)]}
    if KIND == "endless_pages":
        return {"tools": [], "nextCursor": str(int(cursor or 0) + 1)}
    if KIND == "giant_schema":
        giant = {"type": "object", "properties": {f"p{number}": {"type": "string"} for number in range(20_000)}}
        return {"tools": [{**tool("giant"), "inputSchema": giant}, tool("small")]}
    if KIND == "same_names":
        return {"tools": [tool("one"), tool("one"), tool("")]}
    LISTED.append(cursor)
    if KIND == "no_list" or (KIND == "breaks" and len(LISTED) > 1):
        return {"tools": "none"}
    return {"tools": [tool("ask")]}


def answer(request: dict[str, Any]) -> dict[str, Any]:
    method, params = request["method"], request.get("params") or {}
    if method == "initialize":
        if KIND == "slow_start":
            time.sleep(60)
        information = {"name": "hostile", "version": "1"}
        version = params["protocolVersion"]
        return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": information}}
    if method == "tools/list":
        return {"result": pages(params.get("cursor"))}
    if method == "tools/call":
        return call()
    return {"error": {"code": -32601, "message": "Method not found"}}


def call() -> dict[str, Any]:
    if KIND == "endless_line":
        while True:
            sys.stdout.write("x" * 65_536)
    if KIND == "hangs_up":
        os.close(0)
        say({"method": "notifications/message", "params": {"level": "info", "data": "hung up"}})
        time.sleep(60)
    if KIND == "no_result":
        return {"result": {"content": 7}}
    if KIND == "error_with_secret":
        return {"error": {"code": -32000 - 1, "message": "bad key " + os.environ["SECRET"]}}
    return {"result": {"content": [{"type": "text", "text": "ok"}]}}


def main() -> None:
    if KIND == "exit":
        sys.exit("no key " + os.environ.get("SECRET", ""))
    if KIND == "noise":
        while True:
            sys.stdout.write("not a message\n")
    if KIND == "chatty":
        sys.stdout.write("starting...\n\n[]\n{}\n" + "[" * 100_000 + "\n")
        sys.stderr.write("e" * 100_000 + "\nlast\n")
    if KIND == "deaf":
        time.sleep(60)
    for line in sys.stdin:
        request = json.loads(line)
        if "id" in request:
            say({"id": request["id"], **answer(request)})
            if KIND in ("storm", "breaks"):
                for _ in range(2_000 if KIND == "storm" else 1):
                    say({"method": "notifications/tools/list_changed"})


main()
