"""Text in a model's own dialect, with what is trained on as spans of characters. Write only.

    text:hermes     {"text": "<|im_start|>user\\n…", "spans": [[120, 260], …]}

Calls, results and tools are written in the dialect (docs/dialects.md); turns are marked as in ChatML. A span begins
after the mark of a turn of the model and ends behind the mark of its end, so that a model learns to stop. No tokenizer
is needed: a trainer maps characters to tokens with the offsets that its tokenizer returns.

Law: the text within spans is what the model wrote; what a tool or a user wrote is never in one.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from toolglot.bulk.example import Example, Notes, Row, is_trained
from toolglot.bulk.formats.format import Format, Writer
from toolglot.bulk.formats.turns import with_thinking
from toolglot.conversation import Media, Text, Thinking
from toolglot.dialects import registry
from toolglot.dialects.writers.prompt import to_prompt

PREFIX: Final = "text:"
BEGIN: Final = "<|im_start|>{role}\n"
END: Final = "<|im_end|>\n"


@lru_cache(maxsize=64)
def text_format(name: str) -> Format:
    """The format `text:DIALECT`."""
    dialect = registry.get(name.removeprefix(PREFIX)).name
    return Format(
        name=f"{PREFIX}{dialect}",
        title=f"Text in the dialect {dialect}, with a loss mask",
        columns=frozenset({"text", "spans"}),
        detect=lambda _: 0.0,
        write=_writer(dialect),
        json_columns=frozenset({"spans"}),
    )


def _writer(dialect: str) -> Writer:
    def write(example: Example, notes: Notes) -> Row:
        conversation = example.conversation
        trained = [is_trained(turn) is not False for turn in conversation.turns]
        prompt = to_prompt(conversation.tools, conversation, dialect)
        skipped = len(conversation.turns) - len(prompt.turns)
        pieces: list[str] = []
        spans: list[list[int]] = []
        length = 0

        def add(piece: str) -> None:
            nonlocal length
            pieces.append(piece)
            length += len(piece)

        if prompt.system:
            add(BEGIN.format(role="system") + prompt.system + END)
        for number, turn in enumerate(prompt.turns):
            if any(isinstance(block, Media) for block in turn.blocks):
                notes.add("dropped", "text has no place for media")
            text = "".join(block.text for block in turn.blocks if isinstance(block, Text))
            thinking = "".join(block.text for block in turn.blocks if isinstance(block, Thinking))
            add(BEGIN.format(role=turn.role))
            start = length
            add(with_thinking(thinking, text))
            if turn.role == "assistant" and trained[skipped + number]:
                spans.append([start, length + len(END) - 1])
            add(END)
        return {"text": "".join(pieces), "spans": spans}

    return write
