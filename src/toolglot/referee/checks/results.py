"""Results in the history: their position, their call, and their content."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from toolglot.errors import quote
from toolglot.referee.finding import Check, Checks, Findings, RequestCase, RuleBreach
from toolglot.referee.rounds import CallRound, ResultPosition
from toolglot.referee.view import Message, PartView


def _calls(case: RequestCase) -> Iterator[CallRound]:
    return (call for round_ in case.pairing.rounds for call in round_.calls)


def _results(case: RequestCase) -> Iterator[PartView]:
    for message in case.view.messages:
        yield from (item for item in message.items if item.kind == "result")


def _id_or_name(item: PartView) -> str:
    return (item.id or item.name or "")[:80]


def complete(case: RequestCase) -> Findings:
    for call in _calls(case) if case.profile.results.complete else ():
        if not call.answers:
            message = f"the call {quote(_id_or_name(call.item))} has no result"
            yield RuleBreach(
                call.item.path,
                message,
                "add a result; if there is none, one that says it was cancelled",
                _id_or_name(call.item),
            )


def paired(case: RequestCase) -> Findings:
    # A request that continues a stored reply may answer its calls.
    is_checked = case.profile.results.paired and not case.view.is_continued
    for item in case.pairing.orphans if is_checked else ():
        message = f"the result {quote(_id_or_name(item))} has no call before it"
        yield RuleBreach(item.path, message, "leave it out, or send it as text", _id_or_name(item))


def single(case: RequestCase) -> Findings:
    for call in _calls(case) if case.profile.results.single else ():
        for answer in call.answers[1:]:
            message = f"the call {quote(_id_or_name(call.item))} has a second result"
            yield RuleBreach(answer.item.path, message, "keep one result", _id_or_name(call.item))


def adjacent(case: RequestCase) -> Findings:
    for call in _calls(case) if case.profile.results.adjacent else ():
        if call.answers and not call.answers[0].is_near:
            message = f"the result {quote(_id_or_name(call.item))} does not follow its call directly"
            yield RuleBreach(call.answers[0].item.path, message, "move it to its call", _id_or_name(call.item))


def together(case: RequestCase) -> Findings:
    for round_ in case.pairing.rounds if case.profile.results.together else ():
        split = next((answer for answer in round_.near if answer.message != round_.near[0].message), None)
        if split is not None:
            yield RuleBreach(split.item.path, "the results of one turn are in several messages", "put them into one")


def first(case: RequestCase) -> Findings:
    """Only for results that are blocks: a message of results holds nothing else."""
    if not case.profile.results.first or case.profile.results.carrier != "block":
        return
    for round_ in case.pairing.rounds:
        if round_.near:
            start, end = round_.last_message + 1, round_.near[-1].message + 1
            yield from _late(case.view.messages[start:end])


def _late(messages: tuple[Message, ...]) -> Findings:
    """The first result that comes after something else."""
    is_late = False
    for message in messages:
        for item in message.items:
            if item.kind == "result" and is_late:
                hint = "put the results before everything else"
                yield RuleBreach(item.path, "results must come first in their turn", hint, _id_or_name(item))
                return
            is_late = is_late or item.kind != "result"


def _beside(message: Message) -> Iterator[PartView]:
    if any(item.kind == "result" for item in message.items):
        yield from (item for item in message.items if item.kind != "result")


def alone(case: RequestCase) -> Findings:
    for message in case.view.messages if case.profile.results.alone else ():
        for item in _beside(message):
            yield RuleBreach(
                item.path, f"{item.kind} is not accepted next to results", "move it to a turn of its own", item.kind
            )


def colocated(case: RequestCase) -> Findings:
    allowed = case.profile.results.colocated
    for message in case.view.messages if not case.profile.results.alone else ():
        for item in _beside(message):
            what = item.media if item.kind == "media" else item.kind
            if item.kind in ("text", "media") and what not in allowed:
                yield RuleBreach(
                    item.path, f"{what} is not accepted in a turn with results", "move it to a turn of its own", what
                )


def call_order(case: RequestCase) -> Findings:
    for round_ in case.pairing.rounds if case.profile.results.call_order else ():
        late = _out_of_order(round_.near)
        if late is not None:
            yield RuleBreach(
                late.item.path, "the results are not in the order of their calls", "sort them", _id_or_name(late.item)
            )


def _out_of_order(answers: list[ResultPosition]) -> ResultPosition | None:
    highest = -1
    for answer in answers:
        if answer.order < highest:
            return answer
        highest = answer.order
    return None


def result_name(case: RequestCase) -> Findings:
    rule = case.profile.results.name
    for item in _results(case):
        if rule == "required" and not item.name:
            yield RuleBreach(item.path, "the result does not name its tool", "write the tool's name", _id_or_name(item))
        elif rule == "refused" and item.name is not None and not case.ignores_fields:
            yield RuleBreach(item.path, "a result must not have a name", "leave the name out", item.name[:80])


def body(case: RequestCase) -> Findings:
    for item in _results(case) if case.profile.results.body == "text" else ():
        for part in item.content:
            if part.kind not in ("text", "media"):
                yield RuleBreach(
                    part.path, f"a result may hold only text, not {quote(part.type)}", "send it as text", part.type
                )


def media(case: RequestCase) -> Findings:
    allowed = case.profile.results.media
    for item in _results(case):
        for part in item.content:
            if part.kind == "media" and part.media not in allowed:
                message = f"{part.media or 'this medium'} is not accepted in a result"
                yield RuleBreach(part.path, message, "send it in a user turn after the results", part.media)


def error_flag(case: RequestCase) -> Findings:
    for item in _results(case) if not case.profile.results.error_flag else ():
        if item.is_error is not None and not case.ignores_fields:
            yield RuleBreach(item.path, "a result must not have an error flag", "say in its text that it failed")


def error_media(case: RequestCase) -> Findings:
    for item in _results(case) if not case.profile.results.error_media else ():
        part = next((part for part in item.content if part.kind == "media"), None)
        if item.is_error and part is not None:
            yield RuleBreach(part.path, "an error result may hold only text", "send the medium in a user turn")


def _is_empty(item: PartView) -> bool:
    return all(part.kind == "text" and not part.text for part in item.content)


def _empty(*, of_errors: bool) -> Check:
    def check(case: RequestCase) -> Findings:
        results = case.profile.results
        for item in _results(case) if not (results.empty_error if of_errors else results.empty) else ():
            if bool(item.is_error) == of_errors and _is_empty(item):
                yield RuleBreach(item.path, "the result is empty", "write what happened", _id_or_name(item))

    return check


def user_after(case: RequestCase) -> Findings:
    for before, message in pairwise(case.view.messages) if not case.profile.results.user_after else ():
        if _ends_with_results(before) and message.role == "user" and not _has_results(message):
            yield RuleBreach(
                message.path, "a user turn must not follow results", "put a short assistant turn between them"
            )


def _ends_with_results(message: Message) -> bool:
    """Whether a message holds results: a tool's, or a user's if results are blocks."""
    return message.role == "tool" or (message.role == "user" and _has_results(message))


def _has_results(message: Message) -> bool:
    return any(item.kind == "result" for item in message.items)


def max_length(case: RequestCase) -> Findings:
    limit = case.profile.results.max_length
    for item in _results(case) if limit is not None else ():
        length = sum(len(part.text or "") for part in item.content)
        if limit is not None and length > limit:
            yield RuleBreach(
                item.path, f"the result has {length} characters, at most {limit} are accepted", "shorten it"
            )


CHECKS: Checks = {
    "results.complete": complete,
    "results.paired": paired,
    "results.single": single,
    "results.adjacent": adjacent,
    "results.together": together,
    "results.first": first,
    "results.alone": alone,
    "results.colocated": colocated,
    "results.call_order": call_order,
    "results.name": result_name,
    "results.body": body,
    "results.media": media,
    "results.error_flag": error_flag,
    "results.error_media": error_media,
    "results.empty": _empty(of_errors=False),
    "results.empty_error": _empty(of_errors=True),
    "results.user_after": user_after,
    "results.max_length": max_length,
}
