"""Which protocol a whole reply is written in, by the fields that only its replies have.

Used where a reply cannot be read as what the caller says that it is. Law: nothing is raised, and the work is bounded by
the fields of the body.
"""

from __future__ import annotations

from typing import Any, Final

from toolglot.protocols.fields.reading import Fields

_MARKS: Final = (
    ("gemini", {"candidates": list, "promptFeedback": dict, "usageMetadata": dict}),
    ("openai_chat", {"choices": list}),
    ("openai_responses", {"output": list}),
    ("bedrock", {"output": dict, "stopReason": str}),
    ("anthropic", {"stop_reason": str, "content": list, "completion": str}),
    ("ollama", {"done": bool, "eval_count": int, "done_reason": str}),
    ("cohere", {"message": dict, "finish_reason": str}),
)
"""The protocols, each with fields of which any is a mark of it unless one before has the body."""


def protocol_of_reply(body: Fields) -> str | None:
    """The protocol that a reply seems to be of; None where it does not tell."""
    for protocol, marks in _MARKS:
        if any(_is(body.get(name), kind) for name, kind in marks.items()):
            return protocol
    return None


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind)
