"""Findings and replies for the tests of discovery."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from toolglot.discovery import (
    DiscoveryResult,
    Finding,
    ProviderInfo,
    SdkInfo,
    ToolingInfo,
)
from toolglot.discovery.endpoint_client import ProbeRequest
from toolglot.discovery.parsed_reply import ParsedReply, parse_response
from toolglot.discovery.secret_masking import Secrets

YES, NO = ParsedReply(name="r1", status=200, verdict="accepted"), ParsedReply(name="r2", status=400, verdict="refused")


def words(names: Sequence[str]) -> ProbeRequest:
    return ProbeRequest(body={"names": list(names)}, about="")


GOOD = {
    "id": "c",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}],
}


def stream(*chunks: Any, done: bool = True) -> ParsedReply:
    data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks)
    data += b"data: [DONE]\n\n" if done else b""
    return replace(
        parse_response("openai_chat", 200, {"content-type": "text/event-stream"}, data, Secrets(), stream=True),
        name="r",
    )


def result_of(*findings: Finding, **more: Any) -> DiscoveryResult:
    fields: dict[str, Any] = {
        "provider": ProviderInfo(name="box", url="http://box/v1", protocols=("openai_chat",), model="m"),
        "sdk": SdkInfo(protocol="openai_chat", base_url="http://box/v1", auth="bearer", package="openai"),
        "tooling": ToolingInfo(format="json"),
        "findings": findings,
        "base": "openai_compatible",
    }
    return DiscoveryResult(**{**fields, **more})


def one_of(key: str, value: Any, **more: Any) -> Finding:
    return Finding(probe=key, key=key, value=value, evidence=("r1",), **more)
