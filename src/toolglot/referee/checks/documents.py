"""Names of documents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from toolglot.errors import quote
from toolglot.referee.checks.ids import compile_pattern
from toolglot.referee.finding import Checks, Findings, RequestCase, RuleBreach, messages_with_items
from toolglot.referee.view import PartView

MAX_NAME: Final = 1000
"""Characters of a name that are checked; no legal one is as long."""


def _documents(case: RequestCase) -> Iterator[PartView]:
    for _, item in messages_with_items(case):
        yield from (part for part in (item, *item.content) if part.kind == "media" and part.media == "document")


def document_name(case: RequestCase) -> Findings:
    """A missing name is a malformed request instead."""
    pattern = case.profile.turns.document_name
    if pattern is None:
        return
    legal, seen = compile_pattern(pattern), set[str]()
    for item in _documents(case):
        name = item.name
        if name is None:
            continue
        if not legal.fullmatch(name[:MAX_NAME]):
            yield RuleBreach(item.path, f"the name {quote(name)} does not match {pattern}", "rename it", name[:80])
        elif name in seen:
            message = f"two documents are called {quote(name)}"
            yield RuleBreach(item.path, message, "rename one of them", name[:80], is_aside=True)
        seen.add(name)


CHECKS: Checks = {"turns.document_name": document_name}
