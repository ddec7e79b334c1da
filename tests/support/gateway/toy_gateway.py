"""Serves the toy protocol by a gateway that was imported, and called, before the protocol was registered.

Prints the status before, and the status and the reply after. Run by test_gateway_registered_protocol.py.
"""

from __future__ import annotations

import http.client
import json
import sys
from typing import Any

from toolglot.gateway import Gateway, running
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.settings import parse_config
from toolglot.protocols import base

CONFIG = """
[gateway]
log = "off"
store = "off"
simulate = true
[profiles.toys]
protocol = "toy_lines"
"""
BODY = {"model": "simulated/openai/gpt-5.5", "lines": [{"who": "user", "text": "hello"}]}


def call(url: str, method: str, path: str) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    connection.request(method, path, json.dumps(BODY) if method == "POST" else None)
    response = connection.getresponse()
    return response.status, json.loads(response.read())


def gateway(text: str) -> Gateway:
    return Gateway(parse_config(ConfigText("toy.toml", text), {"HOME": "/nowhere"}))


with running(gateway(CONFIG.partition("[profiles")[0])) as url:
    before, _ = call(url, "POST", "/say")
base.register("toy_lines")
with running(gateway(CONFIG)) as url:
    after, reply = call(url, "POST", "/say")
    _, document = call(url, "GET", "/openapi.json")
with running(gateway(CONFIG.partition("[profiles")[0])) as url:
    unconfigured, error = call(url, "POST", "/say")
found = {"before": before, "after": after, "reply": reply, "described": "/say" in document["paths"]}
json.dump({**found, "unconfigured": unconfigured, "error": error}, sys.stdout)
