"""The number of tokens of a text, by the vocabulary of the model that reads it.

The vocabularies are those inside the wheel of `splintr-rs` (docs/decisions/0005-token-counting.md): nothing
is downloaded, and this is the only file that imports it. A model whose vocabulary is not public is counted by
`o200k_base`. Without the package, character classes give a rougher estimate, whose error is tested.

Law: linear in the text up to `EXACT_CHARACTERS`, constant after that, and never an exception: the names of
special tokens are plain text, and lone surrogates count as question marks.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Final

try:  # an extra, which is imported when something is counted; the gateway works without it
    _HAS_VOCABULARIES = find_spec("splintr") is not None
except (ImportError, ValueError):  # a program has forbidden it
    _HAS_VOCABULARIES = False

PIECE_CHARACTERS: Final = 32_768
"""Texts are counted in pieces of at most this length. The tokenizer holds the interpreter lock while it counts
(the worst text: 0.3 ms for 1,000 characters), and between two pieces another thread may run."""

EXACT_CHARACTERS: Final = 4_000_000
"""Beyond this only every n-th piece is counted, and the sum is scaled up."""

DEFAULT_VOCABULARY: Final = "o200k_base"

VOCABULARIES: Final = (
    (re.compile(r"qwen|qwq|qvq"), "qwen3"),
    (re.compile(r"llama"), "llama3"),
    (re.compile(r"deepseek"), "deepseek_v3"),
    (re.compile(r"kimi|moonshot"), "kimi_k2"),
    (re.compile(r"glm"), "glm4"),
    (re.compile(r"(?:mi|mini|dev|code|magi)stral|mixtral|pixtral"), "mistral_v3"),
)
"""The first that is found in the model's name, in lower case. A distilled model has the vocabulary of the one it
was made from, so `deepseek-r1-distill-qwen-32b` is a Qwen. All others: `DEFAULT_VOCABULARY`."""

CHARACTER_CLASSES: Final = "character classes"
"""The result of `counted_by` if the package is not installed."""

Counter = Callable[[str], int]


def vocabulary_of(model: str) -> str:
    name = model[:200].lower()
    return next((vocabulary for pattern, vocabulary in VOCABULARIES if pattern.search(name)), DEFAULT_VOCABULARY)


def counted_by(model: str) -> str:
    """What `count_texts` counts with for this model: a vocabulary's name, or `CHARACTER_CLASSES`."""
    return vocabulary_of(model) if _HAS_VOCABULARIES else CHARACTER_CLASSES


def prepare(model: str = "") -> None:
    """Load the vocabulary for a model now: 20 to 30 MB and about a fifth of a second, once a process."""
    _counter(counted_by(model))


def count_texts(texts: Sequence[str], model: str = "", *, by: str = "") -> int:
    """The tokens of all texts, each counted for itself. `by` names a vocabulary, whatever the model."""
    count = _counter(by or counted_by(model))
    total = sum(map(len, texts))
    step = max(1, math.ceil(total / EXACT_CHARACTERS))
    tokens = seen = 0
    for number, piece in enumerate(piece for text in texts for piece in _pieces(text)):
        if number % step == 0:
            tokens += count(piece)
            seen += len(piece)
    return tokens if step == 1 else math.ceil(tokens * total / seen)


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces, split before a space if one is near, because tokens begin there."""
    start = 0
    while len(text) - start > PIECE_CHARACTERS:
        end = start + PIECE_CHARACTERS
        blank = text.rfind(" ", end - 1024, end)
        end = blank if blank > start else end
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


# --- by a vocabulary ----------------------------------------------------------------------------------

_WARMING: Final = "A text — of several kinds: naïve, 汉字, \U0001f600, 123.5\n\n\t{'a': [1]}" * 200
"""The tokenizer compiles its pattern when a text is long and not only ASCII; better when it is loaded."""


@functools.cache
def _counter(name: str) -> Counter:
    if name == CHARACTER_CLASSES:
        return by_classes
    import splintr  # noqa: PLC0415 - see above

    tokenizer = splintr.Tokenizer.from_pretrained(name)
    # The other ways of encoding take the text `<|endoftext|>` for the token of that name.
    ordinary = tokenizer.encode_ordinary
    ordinary(_WARMING)

    def count(text: str) -> int:
        try:
            return len(ordinary(text))
        except UnicodeEncodeError:
            return len(ordinary(text.encode("utf-8", "replace").decode()))

    return count


# --- by character classes -----------------------------------------------------------------------------

_CLASSES: Final = (
    # pattern, tokens of a match, characters of a match that are free, tokens of each further character
    (r"[A-Z]?[a-z\u00df-\u024f\u1e00-\u1eff]+|[A-Z\u00c0-\u00de]+", 0.77, 7, 0.28),  # words, cut where the case changes
    (r"[0-9]{1,3}", 1.75, 3, 0.0),  # one token or one a digit, as the vocabulary has it
    (r" (?!\s)", 0.17, 1, 0.0),  # mostly part of the word that follows
    (r"\s+", 1.6, 64, 0.02),
    (r"[!-/:-@\[-`{-~]+", 0.79, 3, 0.13),
    (r"[\u0370-\u058f]+", 0.5, 1, 0.23),  # Greek, Cyrillic, Armenian
    (r"[\u0590-\u08ff]+", 0.4, 1, 0.28),  # Hebrew, Arabic
    (r"[\u0900-\u1fff]+", 0.5, 1, 0.42),  # the scripts of India, Thai and their neighbours
    (r"[\u3040-\u30ff\uac00-\ud7af]", 0.6, 1, 0.0),  # kana, Hangul
    (r"[\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff00-\uffef]", 0.7, 1, 0.0),  # Han and its punctuation
    (r"[\U00010000-\U0010ffff]", 2.0, 1, 0.0),  # emoji and rare scripts
    (r"[^\x00-\x7f]", 1.0, 1, 0.0),
    (r".", 1.0, 1, 0.0),  # control characters
)
"""Fitted by least squares to o200k_base and Tekken over Python's library and other projects' JSON and Markdown;
the scripts by sentences. None of what the tests measure it on was used."""

_BY_CLASS: Final = re.compile("|".join(f"({pattern})" for pattern, *_ in _CLASSES), re.DOTALL)
_WEIGHTS: Final = ((0.0, 0, 0.0), *((first, free, more) for _, first, free, more in _CLASSES))


def by_classes(text: str) -> int:
    """Tokens by runs of characters of the same class, for when no vocabulary is installed."""
    tokens = 0.0
    for found in _BY_CLASS.finditer(text):
        first, free, more = _WEIGHTS[found.lastindex or 0]
        start, end = found.span()
        tokens += first
        if end - start > free:
            tokens += (end - start - free) * more
    return math.ceil(tokens)
