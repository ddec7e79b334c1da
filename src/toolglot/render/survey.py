"""What occurs in a conversation at all, found in one look, so that a pass with nothing to do does nothing."""

from __future__ import annotations

from toolglot.conversation import Block, Text, ToolCall, ToolResult, Turn


class Survey:
    """What the turns hold."""

    __slots__ = ("has_blanks", "has_calls", "has_signatures", "is_mixed", "kinds", "turns")

    def __init__(self, turns: tuple[Turn, ...]) -> None:
        self.turns = turns
        self.kinds: set[type[Block]] = set()
        """The kinds of blocks, within results too."""
        self.has_calls = False
        """There are calls or results."""
        self.has_signatures = False
        """Text or calls are signed."""
        self.has_blanks = False
        """A text, a result or a turn says nothing."""
        self.is_mixed = False
        """A call stands in a turn that is not the model's, or a result in one that is."""
        for turn in turns:
            self._look_at(turn.blocks, is_models=turn.role == "assistant")

    def _look_at(self, blocks: tuple[Block, ...], *, is_models: bool) -> None:
        self.has_blanks |= not blocks
        for block in blocks:
            if type(block) is Text:
                self.has_signatures |= block.signature is not None
                self.has_blanks |= not block.text or block.text.isspace()
            elif type(block) is ToolCall:
                self.has_calls = True
                self.has_signatures |= block.signature is not None
                self.is_mixed |= not is_models
            elif type(block) is ToolResult:
                self.has_calls = True
                self.is_mixed |= is_models
                if type(block.content) is tuple:
                    self._look_at(block.content, is_models=False)
                else:
                    self.has_blanks |= not block.content or str(block.content).isspace()
            else:
                self.kinds.add(type(block))
