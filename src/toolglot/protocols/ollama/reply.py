"""Replies of Ollama's chat protocol, both ways."""

from __future__ import annotations

from typing import Final

from toolglot.conversation import Reply, StopReason, Turn, Usage
from toolglot.protocols.fields.media import without_media
from toolglot.protocols.fields.reading import (
    Fields,
    from_root,
    leftover,
    one_of,
    optional,
    read_required,
    required,
    with_extra,
)
from toolglot.protocols.fields.stop_reason import meant_by
from toolglot.protocols.ollama.form import PROTOCOL, OllamaReply
from toolglot.protocols.ollama.messages import read_message, write_message

_BODY = frozenset({"model", "message", "done", "done_reason", "prompt_eval_count", "eval_count"})

_STOPS: Final[dict[str, StopReason]] = {"stop": "stop", "length": "length"}
_CUT: Final = ("length", "error")
"""Why a reply is not whole. There is one word for both."""


@from_root
def decode(body: Fields) -> Reply:
    """A reply's body. The stop reason is derived from the calls in it; the form keeps the original."""
    turn = read_required(body, "message", _read_message)
    done, reason = required(body, "done", bool), optional(body, "done_reason", str)
    return Reply(
        turn,
        stop_of(reason, done=done, has_calls=bool(turn.calls)),
        _read_usage(body),
        model=required(body, "model", str),
        extra=leftover(body, _BODY, PROTOCOL),
        form=OllamaReply(done, reason),
    )


def _read_message(fields: Fields) -> Turn:
    return one_of(fields, "role", {"assistant": read_message})(fields)


def stop_of(reason: str | None, *, done: bool, has_calls: bool) -> StopReason | None:
    """The stop reason, by the content of the reply rather than by `done_reason`."""
    return meant_by(reason or "stop", _STOPS, has_calls=has_calls) if done else None


def _read_usage(body: Fields) -> Usage | None:
    read, written = optional(body, "prompt_eval_count", int), optional(body, "eval_count", int)
    return None if read is None and written is None else Usage(read, written)


def encode(reply: Reply) -> Fields:
    """A reply as a body that an Ollama client reads."""
    form = reply.form if type(reply.form) is OllamaReply else None
    done, reason = (form.done, form.done_reason) if form is not None else (None, None)
    turn = reply.turn if done is not None else without_media(reply.turn)
    body: Fields = {"model": reply.model, "message": write_message(turn)}
    if done is None or stop_of(reason, done=done, has_calls=bool(reply.turn.calls)) != reply.stop:
        done = reply.stop is not None
        reason = ("length" if reply.stop in _CUT else "stop") if done else None
    body["done"] = done
    if reason is not None:
        body["done_reason"] = reason
    counts = reply.usage or Usage()
    if counts.input_tokens is not None:
        body["prompt_eval_count"] = counts.input_tokens
    if counts.output_tokens is not None:
        body["eval_count"] = counts.output_tokens
    return with_extra(body, reply.extra, PROTOCOL)
