"""Texts that hold no call: written ones, and what follows from the examples of every dialect once they are quoted."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

from support.dialects.vectors import vectors
from toolglot.dialects import registry

FOLDER = Path(__file__).parents[2] / "dialect_vectors_no_calls"
BETWEEN = "\n%%%%\n"
LONGEST = 2_000


@cache
def written() -> list[tuple[str, str]]:
    """The texts of the files, each with a name."""
    found = []
    for path in sorted(FOLDER.glob("*.txt")):
        texts = path.read_text("utf-8").removesuffix("\n").split(BETWEEN)
        found += [(f"{path.stem}-{number}", text) for number, text in enumerate(texts, 1)]
    return found


def quoted() -> Iterator[tuple[str, str]]:
    """Examples of calls, as documentation shows them: in a fence, and in a span where they have just one line."""
    for dialect, vector, _ in vectors():
        text, name = vector["text"], f"{dialect}-{vector['name']}"
        if "`" in text or not text.strip() or len(text) > LONGEST:
            continue
        yield f"fenced-{name}", f"It writes:\n\n```text\n{text}\n```\n\nand waits."
        if "\n" not in text:
            yield f"span-{name}", f"It writes `{text}` and waits."


def mentions() -> Iterator[tuple[str, str]]:
    """Marks that prose is about."""
    for name in registry.names():
        for mark in registry.get(name).openers:
            if mark.strip() and not mark.startswith("`"):
                yield f"mention-{name}-{mark}", f"The mark {mark.strip()} belongs to {name}, as far as I know."
                yield f"list-{name}-{mark}", f"{name} begins with {mark.strip()}, then comes the name.\n\nThat is all."
