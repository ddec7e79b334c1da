"""Replies of Ollama's chat protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Reply, StopReason, Usage
from toolglot.errors import InputError
from toolglot.wire.ollama.messages import PROTOCOL, read_message, write_message
from toolglot.wire.reading import Fields, inside, leftover, note, noted, one_of, optional, required, restored
from toolglot.wire.stop_reason import derived

_BODY = frozenset({"model", "message", "done", "done_reason", "prompt_eval_count", "eval_count"})

_STOPS: Final[dict[str, StopReason]] = {"stop": "stop", "length": "length"}


def decode(body: Fields) -> Reply:
    """A reply's body. Why it ended is derived from the calls that are in it; what it said is kept."""
    try:
        message = required(body, "message", dict)
        try:
            one_of(message, "role", {"assistant": True})
            turn = read_message(message)
        except InputError as error:
            raise inside(error, ".message") from None
        done, said = required(body, "done", bool), optional(body, "done_reason", str)
        return Reply(
            turn,
            stop_of(said, done=done, has_calls=bool(turn.calls)),
            _read_usage(body),
            model=required(body, "model", str),
            extra=noted(leftover(body, _BODY, PROTOCOL), PROTOCOL, done=done, done_reason=said),
        )
    except InputError as error:
        raise inside(error, "$") from None


def stop_of(said: str | None, *, done: bool, has_calls: bool) -> StopReason | None:
    """Why a reply ended, by what is in it rather than by what it says."""
    if not done:
        return None
    reason = _STOPS.get(said or "stop", "stop")
    return derived(reason, has_calls=has_calls)


def _read_usage(body: Fields) -> Usage | None:
    read, written = optional(body, "prompt_eval_count", int), optional(body, "eval_count", int)
    return None if read is None and written is None else Usage(read, written)


def encode(reply: Reply) -> Fields:
    """A reply as a body that an Ollama client reads."""
    body: Fields = {"model": reply.model, "message": write_message(reply.turn)}
    done, said = note(reply.extra, PROTOCOL, "done"), note(reply.extra, PROTOCOL, "done_reason")
    if done is None or stop_of(said, done=done, has_calls=bool(reply.turn.calls)) != reply.stop:
        done = reply.stop is not None
        said = ("length" if reply.stop == "length" else "stop") if done else None
    body["done"] = done
    if said is not None:
        body["done_reason"] = said
    counts = reply.usage or Usage()
    if counts.input_tokens is not None:
        body["prompt_eval_count"] = counts.input_tokens
    if counts.output_tokens is not None:
        body["eval_count"] = counts.output_tokens
    return restored(body, reply.extra, PROTOCOL)
