"""Ids of calls and results, and names of tools: form, length, uniqueness."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from toolglot.errors import quote
from toolglot.referee.finding import Checks, Findings, RequestCase, RuleBreach, messages_with_items, step
from toolglot.referee.view import PartView

CUSTOM_ITEM_PREFIX: Final = "ctc"
"""The prefix of item ids of calls of free-text tools, if those of functions have one."""


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


def _carriers(case: RequestCase) -> Iterator[PartView]:
    return (item for _, item in messages_with_items(case) if item.kind in ("call", "result"))


def _ids(case: RequestCase) -> Iterator[tuple[str, str]]:
    """Every id once, at its first position."""
    seen: set[str] = set()
    for item in _carriers(case):
        if item.id is not None and item.id not in seen:
            seen.add(item.id)
            yield item.path, item.id


def _wants_exact_length(case: RequestCase) -> bool:
    """Whether ids must have the fixed length; if longer ones are accepted, it is only the length of new ones."""
    rules = case.profile.ids
    return rules.style == "fixed" and rules.max_length <= rules.fixed_length


def _has_wrong_length(case: RequestCase, id_: str) -> bool:
    rules = case.profile.ids
    return len(id_) != rules.fixed_length if _wants_exact_length(case) else len(id_) > rules.max_length


def id_pattern(case: RequestCase) -> Findings:
    legal = compile_pattern(case.profile.ids.pattern)
    length_key = "ids.fixed_length" if _wants_exact_length(case) else "ids.max_length"
    # If the rule of the length has the same error, one finding per id is enough.
    has_same_error = case.profile.origin("ids.pattern").error == case.profile.origin(length_key).error != ""
    for path, id_ in _ids(case):
        if not legal.fullmatch(id_[:1000]) and not (has_same_error and _has_wrong_length(case, id_)):
            message = f"the id {quote(id_)} does not match {case.profile.ids.pattern}"
            yield RuleBreach(path, message, "give call and result the same new id", id_[:80])


def id_length(case: RequestCase) -> Findings:
    limit = case.profile.ids.max_length
    for path, id_ in _ids(case) if not _wants_exact_length(case) else ():
        if _has_wrong_length(case, id_):
            message = f"the id has {len(id_)} characters, at most {limit} are accepted"
            yield RuleBreach(path, message, "give call and result the same shorter id", id_[:80])


def id_fixed_length(case: RequestCase) -> Findings:
    exact = case.profile.ids.fixed_length
    for path, id_ in _ids(case) if _wants_exact_length(case) else ():
        if _has_wrong_length(case, id_):
            message = f"the id has {len(id_)} characters, exactly {exact} are accepted"
            yield RuleBreach(path, message, f"give call and result the same id of {exact} characters", id_[:80])


def id_required(case: RequestCase) -> Findings:
    for item in _carriers(case) if case.profile.ids.required else ():
        if item.id is None:
            yield RuleBreach(item.path, f"the {item.kind} has no id", "write the id that pairs call and result")


def id_written(case: RequestCase) -> Findings:
    for item in _carriers(case) if not case.profile.ids.written else ():
        if item.id is not None or item.has_empty_id:
            yield RuleBreach(item.path, f"ids are not accepted on a {item.kind}", "leave the ids out", "id")


def id_unique(case: RequestCase) -> Findings:
    everywhere = case.profile.ids.unique_in == "conversation"
    seen: set[str] = set()
    for round_ in case.pairing.rounds:
        if not everywhere:
            seen = set()
        for call in round_.calls:
            id_ = call.item.id
            if id_ is not None and id_ in seen:
                where = "conversation" if everywhere else "turn"
                message = f"two calls of the {where} have the id {quote(id_)}"
                yield RuleBreach(call.item.path, message, "give each call an id of its own", id_[:80])
            seen |= {id_} if id_ is not None else set()


def item_id_prefix(case: RequestCase) -> Findings:
    own = case.profile.ids.item_id_prefix
    prefixes = {"call": own, "text": "msg", "media": "msg", "thinking": "rs"}
    for _, item in messages_with_items(case) if own else ():
        prefix = CUSTOM_ITEM_PREFIX if item.is_custom else prefixes.get(item.kind, "")
        if item.kind != "result" and item.item_id is not None and not item.item_id.startswith(prefix):
            message = f"the item id {quote(item.item_id)} does not begin with {prefix!r}"
            # The id of a message is next to its content.
            path = step(item.path.partition(".content")[0], "id")
            is_aside = prefix != own
            yield RuleBreach(path, message, "leave the item id out", item.item_id[:80], is_aside=is_aside)


def _names(case: RequestCase) -> Iterator[tuple[str, str]]:
    """Names of tools and of calls, each once."""
    seen: set[str] = set()
    named = [(tool.path, tool.name) for tool in case.view.tools or () if tool.kind in ("function", "custom")]
    named += [(item.path, item.name) for item in _carriers(case) if item.kind == "call"]
    for path, name in named:
        if name is not None and name not in seen:
            seen.add(name)
            yield path, name


def name_pattern(case: RequestCase) -> Findings:
    legal = compile_pattern(case.profile.names.pattern)
    for path, name in _names(case):
        if not legal.fullmatch(name[:1000]):
            message = f"the name {quote(name)} does not match {case.profile.names.pattern}"
            yield RuleBreach(path, message, "rename the tool, also where it is called", name[:80])


def name_length(case: RequestCase) -> Findings:
    limit = case.profile.names.max_length
    for path, name in _names(case):
        if len(name) > limit:
            message = f"the name has {len(name)} characters, at most {limit} are accepted"
            yield RuleBreach(path, message, "rename the tool, also where it is called", name[:80])


def name_unique(case: RequestCase) -> Findings:
    seen: set[str] = set()
    for tool in (case.view.tools or ()) if case.profile.names.unique else ():
        if tool.name is not None and tool.name in seen:
            yield RuleBreach(
                tool.path, f"two tools are called {quote(tool.name)}", "rename one of them", tool.name[:80]
            )
        seen |= {tool.name} if tool.name is not None else set()


CHECKS: Checks = {
    "ids.pattern": id_pattern,
    "ids.max_length": id_length,
    "ids.fixed_length": id_fixed_length,
    "ids.required": id_required,
    "ids.written": id_written,
    "ids.unique_in": id_unique,
    "ids.item_id_prefix": item_id_prefix,
    "names.pattern": name_pattern,
    "names.max_length": name_length,
    "names.unique": name_unique,
}
