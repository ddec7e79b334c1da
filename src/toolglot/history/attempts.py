"""Attempts to get a reply, of which only one becomes part of the history.

    attempt = toolglot.Attempt(history, provider="openai")
    attempt.add(reader.feed(piece))
    attempt.commit()             # or attempt.discard("the provider was overloaded")
    attempt.interrupt("Cancelled by the user.")     # end it here, so that its text so far can be committed

An attempt that fails may have shown half a reply, and calls. None of it is history: a second attempt starts from what
was committed before, its calls are run once, and the report says what the failed one showed.

    open ──commit()───▶ committed   the turn is in the history
         ──discard()──▶ discarded   nothing of it is
"""

from __future__ import annotations

from collections.abc import Iterable
from io import StringIO
from types import TracebackType
from typing import Final, Literal

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Extra, Form, Issuer, Reply, Text, ToolCall, Turn, TurnMetadata
from toolglot.conversation.events import Accumulator, BlockEnded, BlockStarted, Event, TextDelta, ThinkingDelta
from toolglot.conversation.reply_events import of_reply
from toolglot.conversation.report import Entry
from toolglot.errors import HistoryError
from toolglot.history.history import History

CUT_CALL: Final = "The call was cut off before it was whole. It was not run."

State = Literal["open", "committed", "discarded"]


class Shown(Struct, frozen=True):
    """What the user has already seen of an attempt.

    text: the text so far.
    thinking: the thinking so far.
    """

    text: str = ""
    thinking: str = ""
    calls: tuple[str, ...] = ()
    """The names of the tools whose calls had started."""

    def __bool__(self) -> bool:
        return bool(self.text or self.thinking or self.calls)

    def __str__(self) -> str:
        parts = [f"{len(content)} characters of {what}" for what, content in self._contents() if content]
        if self.calls:
            parts.append(f"{len(self.calls)} calls ({', '.join(self.calls)[:200]})")
        return ", ".join(parts) or "nothing"

    def _contents(self) -> tuple[tuple[str, str], ...]:
        return (("text", self.text), ("thinking", self.thinking))


class Attempt:
    """One attempt to get a reply, as a transaction on a history."""

    def __init__(self, history: History, *, provider: str = "", model: str = "", issuer: Issuer | None = None) -> None:
        """`issuer` replaces `provider` and `model` if more is known about who replies."""
        self._history = history
        known = history._resolve_name(provider, "provider") if provider else ""  # noqa: SLF001 - with the history's own profiles
        self._issuer_name = issuer.provider if issuer is not None else known
        self._model = model
        self._issuer = issuer
        self._sum = Accumulator()
        self._text = StringIO()
        self._thinking = StringIO()
        self._calls: list[str] = []
        self._extra: Extra | None = None
        self._form: Form | None = None
        """What a complete turn holds besides its blocks; events do not have it."""
        self._open_text: int | None = None
        """Where the text of the open block begins; None if the open block is not a text."""
        self._interrupted: Turn | None = None
        self.state: State = "open"

    def add(self, events: Iterable[Event]) -> None:
        """Add events."""
        self._refuse_over("add to")
        listed = list(events)
        self._sum.add(listed)
        for event in listed:
            if type(event) is TextDelta:
                self._text.write(event.text)
            elif type(event) is ThinkingDelta:
                self._thinking.write(event.text)
            elif type(event) is BlockStarted:
                if isinstance(event.block, ToolCall):
                    self._calls.append(event.block.name)
                elif isinstance(event.block, Text):
                    self._open_text = self._text.tell()
            elif type(event) is BlockEnded:
                self._open_text = None

    def add_reply(self, reply: Reply) -> None:
        """Add a complete reply."""
        self.add(of_reply(reply))
        self._extra, self._form = reply.turn.extra, reply.turn.form

    @property
    def reply(self) -> Reply:
        """The reply so far; of one that was interrupted, what is kept."""
        reply = self._sum.reply
        if self._interrupted is not None:
            return replace(reply, turn=self._interrupted)
        if self._extra is None and self._form is None:
            return reply
        return replace(reply, turn=replace(reply.turn, extra=self._extra, form=self._form))

    @property
    def shown(self) -> Shown:
        """What was shown so far. If it is empty, the user does not notice a second attempt."""
        return Shown(self._text.getvalue(), self._thinking.getvalue(), tuple(self._calls))

    @property
    def is_whole(self) -> bool:
        """Whether the reply is complete."""
        return self._sum.is_over and self._sum.failure is None

    def interrupt(self, reason: str) -> bool:
        """End a reply that is not complete, so that its text can be committed; whether there is any text.

        Only text is kept: every provider accepts it. Calls are not run, and neither they nor thinking, whose signature
        may be missing, become part of the turn. The report says so when it is committed.
        """
        self._refuse_over("interrupt")
        if self._sum.is_over:
            raise HistoryError("the attempt is complete and cannot be interrupted; commit or discard it")
        blocks = [block for block in self._sum.reply.turn.blocks if isinstance(block, Text) and block.text]
        rest = self._text.getvalue()[self._open_text :] if self._open_text is not None else ""
        if rest:
            blocks.append(Text(rest))
        if not any(block.text.strip() for block in blocks):
            return False
        self._interrupted = Turn("assistant", tuple(blocks), metadata=TurnMetadata(interrupted=reason or "interrupted"))
        return True

    def commit(self, *, key: str | None = None) -> Turn:
        """Append the model's turn to the history. Calls that were cut off are marked as never run.

        Raises `HistoryError`, and writes nothing, if the attempt failed or is not complete.
        """
        self._refuse_over("commit")
        if self._sum.failure is not None:
            raise HistoryError(f"the attempt failed and cannot be committed: {self._sum.failure.message}; discard it")
        if not self._sum.is_over and self._interrupted is None:
            raise HistoryError("the attempt is not complete and cannot be committed; discard it")
        provider = self._issuer_name or self._history.target
        issuer = self._issuer
        if issuer is None and provider:
            issuer = Issuer(provider, model=self._model or self.reply.model)
        if self._interrupted is not None:
            return self._commit_interrupted(replace(self._interrupted, issuer=issuer), key)
        reply = self.reply.turn
        turn = self._history.append(
            Turn("assistant", reply.blocks, issuer=issuer, extra=reply.extra, form=reply.form), key=key
        )
        self.state = "committed"
        indices = sorted(self._sum.cut_indices)
        cut = [block.id for index in indices if isinstance(block := turn.blocks[index], ToolCall)]
        if cut:
            self._history.cancel(*cut, reason=CUT_CALL)
        return turn

    def _commit_interrupted(self, turn: Turn, key: str | None) -> Turn:
        appended = self._history.append(turn, key=key)
        self.state = "committed"
        lost = replace(self.shown, text="")
        if lost:
            why = turn.metadata.interrupted[:500]
            reason = f"a reply was interrupted ({why}): its text was kept, but not {lost}"
            self._history.add_entry(Entry(action="dropped", reason=reason, fault="policy", target=self._issuer_name))
        return appended

    def discard(self, reason: str = "") -> Entry:
        """Discard the attempt. The history stays as it was; its report says what had been shown."""
        self._refuse_over("discard")
        self.state = "discarded"
        why = reason or (self._sum.failure.message if self._sum.failure is not None else "it was discarded")
        entry = Entry(
            action="dropped",
            reason=f"an attempt failed and is not part of the history ({why[:500]}); it had shown {self.shown}",
            fault="policy",
            target=self._issuer_name,
        )
        self._history.add_entry(entry)
        return entry

    def _refuse_over(self, what: str) -> None:
        if self.state != "open":
            raise HistoryError(f"cannot {what} an attempt that is {self.state} already: start a new one")

    def __enter__(self) -> Attempt:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Whatever was not committed is discarded."""
        if self.state == "open":
            self.discard(f"interrupted by {kind.__name__}" if kind is not None else "")
