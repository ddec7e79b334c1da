"""Replies of the toy protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from toolglot.conversation import Reply, StopReason, Usage
from toolglot.protocols.fields.reading import from_root, held_or_none, one_of, optional, read_required, required

from .lines import read_line, write_lines

STOPS: Final[Mapping[str, StopReason]] = {"done": "stop", "calls": "tool_calls", "full": "length"}
ENDS: Final = {stop: end for end, stop in STOPS.items()}


@from_root
def decode(body: dict[str, Any]) -> Reply:
    turn, stop = read_required(body, "line", read_line), one_of(body, "end", STOPS)
    return Reply(turn, stop, usage_of(body), model=optional(body, "model", str) or "")


def encode(reply: Reply) -> dict[str, Any]:
    lines = write_lines(reply.turn) or [{"who": "model", "text": ""}]
    return {"model": reply.model, "line": lines[0], **ending(reply.stop, reply.usage)}


def usage_of(body: dict[str, Any]) -> Usage | None:
    return held_or_none(body, "cost", lambda cost: Usage(required(cost, "in", int), required(cost, "out", int)))


def ending(stop: StopReason | None, usage: Usage | None) -> dict[str, Any]:
    end: dict[str, Any] = {"end": ENDS.get(stop or "stop", "done")}
    if usage is not None:
        end["cost"] = {"in": usage.input_tokens, "out": usage.output_tokens}
    return end
