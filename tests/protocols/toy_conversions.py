"""Run in a folder with the toy protocol and a profile: what goes through it, as JSON. See test_toy_protocol.py."""

from __future__ import annotations

import json
import sys
from typing import Any

import toolglot
from toolglot.protocols import base


def main() -> None:
    base.register("toy_lines")
    mine = toolglot.profiles.read_overrides("profiles.toml")
    cases: dict[str, Any] = json.load(sys.stdin)
    done: dict[str, Any] = {}
    for name, (body, source, target) in cases["requests"].items():
        done[name] = toolglot.convert(body, source=source, target=target, model="m", overrides=mine).body
    for name, (body, source, target) in cases["replies"].items():
        done[name] = toolglot.convert_reply(body, source=source, target=target, overrides=mine).body
    for name, (text, source, target) in cases["streams"].items():
        translator = toolglot.StreamTranslator(source=source, target=target, overrides=mine)
        done[name] = (translator.feed(text.encode()) + translator.finish()).decode()
    for name, (status, body, source, target) in cases["errors"].items():
        out = toolglot.convert_error(status, body, source=source, target=target, overrides=mine)
        done[name] = [out.status, out.body]
    for name, (body, protocol) in cases["fragments"].items():
        calls = [block for block in base.codec(protocol).read_fragment(body) if isinstance(block, toolglot.ToolCall)]
        done[name] = [[call.name, call.arguments] for call in calls]
    for name, (body, source, target) in cases["malformed"].items():
        try:
            toolglot.convert(body, source=source, target=target, model="m", overrides=mine)
        except toolglot.InputError as error:
            done[name] = str(error)
    try:
        toolglot.lint(cases["linted"], "toys", overrides=mine)
    except toolglot.InputError as error:
        done["linted"] = str(error)
    json.dump(done, sys.stdout)


main()
