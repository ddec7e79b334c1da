"""Harmony (gpt-oss): messages with a channel and, if they are calls, a recipient.

    <|start|>assistant<|channel|>analysis<|message|>…<|end|>
    <|start|>assistant<|channel|>commentary to=functions.ls <|constrain|>json<|message|>{"p": "/"}<|call|>

The recipient comes before or behind the channel. `analysis` is thinking; `final`, and `commentary` without a recipient,
is text. The prompt ends with the role, so a text may begin with the recipient.
"""

from __future__ import annotations

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.families.harmony_messages import ENDS, STARTS, message
from toolglot.dialects.writers.writing_forms import Writing, as_text

HARMONY = Dialect(
    name="harmony",
    openers=(*STARTS, *ENDS, "\n to=functions.", "\nto=functions."),
    inside=r"(?!assistant(?: to=(?:self|user)<\|message\|>|[^<]*+<\|message\|>\s*<))"
    r"\s*(?:\Z|<\|(?:start|channel|end|call|return)\|>|(?:assistant|analysis|commentary|final)\b)|[\w.-]+\s*<\|(?:channel|message|constrain)\|>",
    read=message,
    models=("*gpt-oss*",),
    writing=Writing(
        (
            as_text(
                "<|start|>assistant<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>JSON<|call|>"
            ),
        ),
        between="",
    ),
)

DIALECTS = (HARMONY,)
