"""Facts about all turns, collected in one loop, so that a pass with nothing to do does nothing.

A long conversation does not fit into the caches of the processor, so each further loop over every block costs
more than what it computes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from toolglot.conversation import Block, Text, ToolCall, ToolResult, Turn

PROMPTS: Final = ("system", "developer")
"""The roles of prompts."""


def was_message(prompt: Turn, protocol: str) -> bool:
    """Whether a prompt was written as a message although there is a field for it."""
    form = prompt.form
    return form is not None and form.protocol == protocol and form.prompt_position == "message"


Answers = dict[str, ToolResult | None]
"""The results of calls by the ids of these; None where there is none."""


class TurnFacts:
    """What the turns hold."""

    __slots__ = (
        "answers",
        "called_tools",
        "has_blanks",
        "has_removed",
        "has_signatures",
        "has_tool_blocks",
        "is_mixed",
        "is_paired",
        "kinds",
        "prompts",
        "turns",
    )

    def __init__(self, turns: tuple[Turn, ...] = ()) -> None:
        self.kinds: set[type[Block]] = set()
        """The kinds of blocks, within results too."""
        self.has_tool_blocks: bool = False
        """Whether there are calls or results."""
        self.has_signatures: bool = False
        """Whether text or calls are signed."""
        self.has_blanks: bool = False
        """Whether a text, a result or a turn is blank."""
        self.is_mixed: bool = False
        """Whether a block may be in the turn of a speaker that cannot have it: `speakers` decides."""
        self.has_removed: bool = False
        """Whether a turn carries interactions of turns that were removed."""
        self.prompts: int = 0
        """How many turns are prompts."""
        self.is_paired: bool = True
        """No id has two calls or two results, and every result follows its call."""
        self.answers: Answers = {}
        """The result of each call; only meaningful if `is_paired`."""
        self.called_tools: dict[tuple[str | None, str], None] = {}
        """The tools that are called, by namespace and name, in the order of their first calls."""
        self.extend(turns, turns)

    def extend(self, turns: tuple[Turn, ...], new: Iterable[Turn]) -> None:
        """Set the turns that the facts are about: those that were added, and the new ones, which are added here."""
        self.turns: tuple[Turn, ...] = turns
        for turn in new:
            self.take(turn)

    def take(self, turn: Turn) -> None:
        """Add the next turn. `extend` sets the turns once all are added."""
        if turn.role in PROMPTS:
            self.prompts += 1
            self.is_mixed |= any(type(block) is not Text for block in turn.blocks)
        elif turn.role == "tool":
            self.is_mixed |= any(type(block) is not ToolResult for block in turn.blocks)
        self.has_removed |= bool(turn.metadata.removed)
        self._take_blocks(turn.blocks, is_models=turn.role == "assistant")

    def _take_blocks(self, blocks: tuple[Block, ...], *, is_models: bool) -> None:
        self.has_blanks |= not blocks
        for block in blocks:
            if type(block) is Text:
                self.has_signatures |= block.signature is not None
                self.has_blanks |= not block.text or block.text.isspace()
            elif type(block) is ToolCall:
                self.has_tool_blocks = True
                self.has_signatures |= block.signature is not None
                self.is_mixed |= not is_models
                self.is_paired &= block.id not in self.answers
                self.answers[block.id] = None
                self.called_tools[block.namespace, block.name] = None
            elif type(block) is ToolResult:
                self.has_tool_blocks = True
                self.is_mixed |= is_models
                self.is_paired &= self.answers.get(block.call_id, block) is None
                self.answers[block.call_id] = block
                if type(block.content) is tuple:
                    self._take_blocks(block.content, is_models=False)
                else:
                    self.has_blanks |= not block.content or str(block.content).isspace()
            else:
                self.kinds.add(type(block))
