"""Replies of the toy protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolglot.conversation import Reply, StopReason, Usage

from .lines import read_line, write_lines

STOPS: Final[Mapping[str, StopReason]] = {"done": "stop", "calls": "tool_calls", "full": "length"}
ENDS: Final = {stop: end for end, stop in STOPS.items()}


def decode(body: dict[str, Any]) -> Reply:
    return Reply(read_line(body["line"]), STOPS[body["end"]], usage_of(body), model=body.get("model", ""))


def encode(reply: Reply) -> dict[str, Any]:
    lines = write_lines(reply.turn) or [{"who": "model", "text": ""}]
    return {"model": reply.model, "line": lines[0], **ending(reply.stop, reply.usage)}


def usage_of(body: dict[str, Any]) -> Usage | None:
    cost = body.get("cost")
    return Usage(cost["in"], cost["out"]) if cost else None


def ending(stop: StopReason | None, usage: Usage | None) -> dict[str, Any]:
    end: dict[str, Any] = {"end": ENDS.get(stop or "stop", "done")}
    if usage is not None:
        end["cost"] = {"in": usage.input_tokens, "out": usage.output_tokens}
    return end
