"""Keeps a conversation within the context window of its model: a summary replaces older turns.

    shrink_if_full   before a call, if the conversation nears the end of the window
    shrink           after the model refused it as too long
    compress         on request

Law: only a compression on request raises. Otherwise a summary that fails is reported, and the run continues.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import anyio

from toolglot.conversation import Conversation, Failure, Turn, Usage
from toolglot.conversation.report import Entry
from toolglot.conversation.token_estimates import estimate_tokens
from toolglot.policy import Policy
from toolglot.profiles import Overrides
from toolglot.protocols.errors.failures import ProviderError
from toolglot.runtime.log.memory_log import Log
from toolglot.runtime.session.compacting import (
    Cut,
    Summarise,
    call_summariser,
    find_cut,
    summary_request,
    summary_text,
)
from toolglot.runtime.session.events import HistoryCompressed
from toolglot.runtime.session.limits import SessionLimits
from toolglot.runtime.session.model_call import call_model, prepare
from toolglot.runtime.session.models import ModelChoice
from toolglot.runtime.session.run import SessionRun, finish_write
from toolglot.runtime.session.spending import SessionAccounts
from toolglot.upstream.protocol_choice import profile_for
from toolglot.upstream.retry import Retries

SHORT_RESULT: Final = 4_000
"""Characters that remain of each result if nothing else makes a conversation fit."""
MIN_COMPRESSED_PART: Final = 0.2
"""An automatic compression must remove at least this part of the conversation."""


class Compressor:
    """Measures the conversation of a session, and compresses it."""

    def __init__(
        self,
        *,
        log: Log,
        limits: SessionLimits,
        policy: Policy,
        overrides: Overrides | None,
        summarise: Summarise | None,
        accounts: SessionAccounts,
        conversation: Callable[[], Conversation],
    ) -> None:
        """`conversation` returns the conversation before it is rendered, with its tools and options."""
        self._log = log
        self._limits = limits
        self._policy = policy
        self._overrides = overrides
        self._summarise = summarise
        self._accounts = accounts
        self._conversation = conversation
        self._measured: tuple[str, int] | None = None
        """The key of a turn, and the tokens of the conversation up to it, as a provider counted them."""

    def measure(self, turn: Turn, usage: Usage | None) -> None:
        """Remember how many tokens a provider counted up to a turn."""
        if usage is not None and usage.input_tokens is not None:
            self._measured = turn.key, usage.input_tokens + (usage.output_tokens or 0)

    def _length(self) -> int:
        """Tokens of the conversation: as a provider counted them, plus an estimate for later turns."""
        new: list[Turn] = []
        for turn in reversed(self._log.history.turns):
            if self._measured is not None and turn.key == self._measured[0]:
                return self._measured[1] + estimate_tokens(new)
            new.append(turn)
        return estimate_tokens(new)

    def _window(self, choice: ModelChoice) -> int | None:
        """The context window of a model in tokens; None if unknown."""
        conversation = self._conversation()
        return profile_for(choice.upstream, choice.model, conversation, overrides=self._overrides).context.window

    # --- compressing --------------------------------------------------------------------------------

    async def shrink_if_full(self, run: SessionRun, choice: ModelChoice) -> None:
        """Compress if the conversation nears the end of the context window, and enough can be removed."""
        window = self._window(choice) if self._limits.compress_at else None
        if window is None or (length := self._length()) < self._limits.compress_at * window:
            return
        cut = find_cut(self._log.history, self._limits.keep_turns)
        if cut is not None and estimate_tokens(cut.turns) >= MIN_COMPRESSED_PART * length:
            await self._compress_or_report(run, choice, self._limits.keep_turns)

    async def shrink(self, run: SessionRun, choice: ModelChoice) -> bool:
        """Shorten the conversation after the model refused it as too long; whether that worked."""
        for keep in dict.fromkeys((self._limits.keep_turns, min(2, self._limits.keep_turns))):
            if await self._compress_or_report(run, choice, keep):
                return True
        shorter = await finish_write(
            self._log.change(lambda history: history.shorten_results(max_characters=SHORT_RESULT))
        )
        self._measured = None
        return shorter > 0

    async def compress(self, run: SessionRun, choice: ModelChoice) -> int:
        """Replace all but the last turns by a summary; how many it replaced."""
        cut = find_cut(self._log.history, self._limits.keep_turns)
        return 0 if cut is None else await self._replace_turns(run, cut, await self._summary(run, choice, cut.turns))

    async def _compress_or_report(self, run: SessionRun, choice: ModelChoice, keep: int) -> int:
        cut = find_cut(self._log.history, keep)
        if cut is None:
            return 0
        try:
            summary = await self._summary(run, choice, cut.turns)
        except Exception as error:  # noqa: BLE001 - also what a caller's summariser raises
            reason = f"older turns were not summarised: {type(error).__name__}: {error}"
            self._accounts.report(run, [Entry(action="ignored", reason=reason[:500], fault="policy")])
            return 0
        return await self._replace_turns(run, cut, summary)

    async def _replace_turns(self, run: SessionRun, cut: Cut, summary: str) -> int:
        text, kept = summary_text(summary, len(cut.turns)), self._limits.max_result_characters
        await finish_write(
            self._log.change(
                lambda history: history.compress(summary=text, before=cut.before, max_result_characters=kept)
            )
        )
        self._measured = None
        run.emit(HistoryCompressed(len(cut.turns)))
        return len(cut.turns)

    # --- the summary --------------------------------------------------------------------------------

    async def _summary(self, run: SessionRun, choice: ModelChoice, turns: tuple[Turn, ...]) -> str:
        """A summary: by the caller's function, or by the model."""
        if self._summarise is not None:
            return await call_summariser(self._summarise, turns)
        sent = summary_request(turns, window=self._window(choice))
        prepared = prepare(sent, choice, policy=self._policy, overrides=self._overrides)
        retries = Retries(self._limits.retries, self._limits.retry_seconds)
        while True:
            found = await call_model(
                prepared,
                policy=self._policy,
                overrides=self._overrides,
                take=lambda _: None,
                wait_for_listener=run.wait_for_listener,
            )
            failure = found.failure
            self._accounts.count(run, choice, found.reply, sent, is_answer=failure is None)
            if failure is None and found.reply.turn.text.strip():
                return found.reply.turn.text
            failure = failure or Failure("bad_output", "the model wrote no summary")
            wait = retries.wait(failure)
            if wait is None:
                raise ProviderError(failure)
            await anyio.sleep(wait)
