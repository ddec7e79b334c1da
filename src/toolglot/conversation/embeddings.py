"""Embedding requests and their replies: provider-neutral, immutable values.

Law: values only, as in `values.py`. What only one protocol knows is in `extra` under its name, and returns there alone.
"""

from __future__ import annotations

from typing import Literal

from toolglot.conversation.values import Extra, Value

EmbeddingTask = Literal[
    "query",
    "document",
    "similarity",
    "classification",
    "clustering",
    "question_answering",
    "fact_verification",
    "code_query",
]
"""What the vectors are for. Some models embed a search query otherwise than the documents that it is to find."""

Truncation = Literal["none", "start", "end"]
"""What is cut off from an input that is too long; `none`: such an input is an error."""

EmbeddingInput = str | tuple[int, ...]
"""A text, or the ids of its tokens."""

FLOAT = "float"


class EmbeddingRequest(Value, frozen=True):
    """Texts that a model is to embed.

    model: the model.
    task: what the vectors are for.
    dimensions: the length of a vector.
    extra: fields that toolglot does not know, by protocol.
    """

    inputs: tuple[EmbeddingInput, ...]
    model: str = ""
    is_list: bool = True
    """Whether the client sent a list of inputs, and reads a list of vectors."""
    task: EmbeddingTask | None = None
    title: str | None = None
    """The title of the document that the input is from."""
    dimensions: int | None = None
    truncation: Truncation | None = None
    number_types: tuple[str, ...] = (FLOAT,)
    """The types of numbers that the client wants, each as a vector of its own: `float`, `int8`, `binary`, …"""
    is_base64: bool = False
    """Whether the client wants a vector as the base64 of its 32-bit floats."""
    form: str = ""
    """Which of the forms of its protocol the client wrote, where there are several."""
    extra: Extra | None = None


class EmbeddingReply(Value, frozen=True):
    """The vectors of all inputs, in their order.

    model: the model that made them, as the provider names it.
    id: the id of the reply, for protocols that have one.
    input_tokens: the tokens of all inputs; None: the provider did not count them.
    """

    vectors: tuple[list[float], ...]
    model: str = ""
    input_tokens: int | None = None
    id: str = ""
