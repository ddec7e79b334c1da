"""What a protocol says about conversations that grow too long: the record that its `context.py` has as `CONTEXT`."""

from __future__ import annotations

import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from toolglot.conversation import Compaction, Conversation, Form, StopReason, Usage
from toolglot.conversation.context_requests import AppliedEdit, ContextRequest
from toolglot.protocols.fields.reading import Fields


class CompactedUsage(typing.Protocol):
    def __call__(self, usage: Usage | None, summarised: Usage, *, goes_on: bool) -> Usage: ...


class CompactedBody(typing.Protocol):
    def __call__(
        self, request: Mapping[str, Any], block: Compaction, usage: Fields, *, id: str, created: int
    ) -> Fields: ...


class ContextForm(Struct, frozen=True, kw_only=True):
    """How requests say what is to be done to a long conversation, and what replies say of it."""

    read: Callable[[Conversation], ContextRequest | None]
    """What a request wants; None: nothing."""
    without: Callable[[Conversation], Conversation]
    """The request without those wishes."""
    usage: CompactedUsage
    """The counts of a reply that begins with a compaction. `goes_on`: it does not end with it."""
    reply_fields: Callable[[Sequence[AppliedEdit]], Fields] | None = None
    """The fields of a reply that say which edits were made; None: there are none."""
    stop: StopReason = "stop"
    stop_form: Form | None = None
    """How a reply ends that is a compaction and nothing else."""
    usage_is_total: bool = False
    """Whether those counts include the compaction's."""
    shows_summary: bool = False
    """Whether clients send back the summary of a compaction in words."""
    keeps_prompts: bool = False
    """Whether the messages of users before a compaction still count."""
    compact_path: str = ""
    """The path at a provider that does nothing but compact; empty: there is none."""
    compacted_body: CompactedBody | None = None
    """The reply of that path."""
