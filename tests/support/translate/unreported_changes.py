"""What a conversion changed and did not report."""

from __future__ import annotations

import json

from support.translate.reply_bodies import MARKS
from support.translate.reply_reading import ReadReply
from toolglot.conversation.report import Report

NAMES = {"openai_chat": "openai"}


WORDS = {
    "text": ("text", "server tool"),
    "thinking": ("thinking",),
    "stop": ("ended", "stop reason", "cannot be run"),
    "model": ("model",),
    "media": ("image",),
    "calls": ("call", "arguments"),
    "input": ("usage", "input tokens"),
    "output": ("usage", "output tokens"),
    "cached": ("cache read tokens",),
    "written": ("cache write tokens",),
    "reasoning": ("reasoning tokens",),
}
"""One of these words is in the entry that reports a difference."""


def differences(sent: ReadReply, got: ReadReply) -> list[str]:
    """In what two readings differ. A client's ids have its protocol's form: they need only be as many as the calls."""
    found = [name for name in ("text", "thinking", "stop", "media") if getattr(sent, name) != getattr(got, name)]
    if sent.model and got.model and sent.model != got.model:
        found.append("model")
    calls = [[(call.name, json.dumps(call.arguments, sort_keys=True)) for call in one.calls] for one in (sent, got)]
    has_odd_ids = len({call.id for call in got.calls if call.id}) not in (0, len(got.calls))
    if calls[0] != calls[1] or (has_odd_ids and sent.calls != got.calls):
        found.append("calls")
    for name in sent.counts._fields:
        one, other = getattr(sent.counts, name), getattr(got.counts, name)
        if (one or 0) != (other or 0) or (one is None and name in ("input", "output") and other is not None):
            found.append(name)
    return found


def unreported(sent: ReadReply, got: ReadReply, written: str, original: str, report: Report) -> list[str]:
    lines = [str(entry) for entry in report]
    missing = [
        name for name in differences(sent, got) if not any(word in line for line in lines for word in WORDS[name])
    ]
    missing += [mark for mark in MARKS if mark in original and mark not in written and not lines]
    return missing


def target_of(protocol: str) -> str:
    return NAMES.get(protocol, protocol)
