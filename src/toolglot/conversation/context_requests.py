"""What a request wants to be done to a conversation that grows too long, whatever its protocol.

Read from a request by its protocol (`protocols/context_form.py`), a provider of which would do it itself. Law: values
only.
"""

from __future__ import annotations

from toolglot.conversation.values import Value


class CompactionRequest(Value, frozen=True):
    """A summary is to stand for the conversation so far.

    trigger_tokens: only if the conversation has more tokens than this; None: in any case.
    instructions: how to summarise, in the client's words; empty: ours.
    stops_after: the reply is the summary alone, and the model does not go on.
    """

    trigger_tokens: int | None = None
    instructions: str = ""
    stops_after: bool = False


class ClearResults(Value, frozen=True):
    """Old results of tools are to be replaced by a short text.

    kind: what the protocol calls it.
    trigger_tokens, trigger_calls: only if the conversation has more tokens, or more calls; None: no such limit.
    keep: how many of the last calls keep their results.
    at_least: only if this many tokens are freed.
    excluded: tools whose results stay.
    inputs: whether the arguments of those calls are cleared too: of all tools, or of these.
    """

    kind: str
    trigger_tokens: int | None = None
    trigger_calls: int | None = None
    keep: int = 3
    at_least: int = 0
    excluded: frozenset[str] = frozenset()
    inputs: bool | frozenset[str] = False


class ClearThinking(Value, frozen=True):
    """Old thinking is to be left out.

    kind: what the protocol calls it.
    keep: how many of the last turns with thinking keep it; None: all.
    """

    kind: str
    keep: int | None = 1


ContextEdit = ClearResults | ClearThinking


class ContextRequest(Value, frozen=True):
    """All that a request wants to be done to its conversation.

    unknown: kinds that toolglot does not know.
    """

    compaction: CompactionRequest | None = None
    edits: tuple[ContextEdit, ...] = ()
    unknown: tuple[str, ...] = ()


class AppliedEdit(Value, frozen=True):
    """What an edit did.

    kind: what the protocol calls it.
    cleared: how many calls, or turns with thinking, were cleared.
    tokens: about how many tokens that freed.
    """

    kind: str
    cleared: int
    tokens: int
    is_thinking: bool = False
