"""What a probe is: a question in words, and steps that say what to send and what the answers mean.

    def steps(case):                                     # no I/O: requests out, answers in, findings at the end
        heard = yield case.ask(body, "an id with a dot")
        return [case.finding(..., value=case.is_accepted(heard))]

The runner sends what is yielded. So a probe is tested with answers that were written down, and what it will send is
seen before anything is sent.

Law: a probe changes one thing of a request that is known to be accepted, so that a refusal has one reason.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final

from msgspec import Struct

from toolglot.conversation import Text
from toolglot.discovery.bodies import Body, RequestStyle
from toolglot.discovery.findings import Finding
from toolglot.discovery.heard import ParsedReply
from toolglot.discovery.line import Question
from toolglot.errors import ToolglotError
from toolglot.protocols.base import Feature, get, names

Steps = Generator[Question, ParsedReply, list[Finding]]

GROUPS: Final = {
    "endpoint": "what answers",
    "replies": "how it calls tools",
    "streams": "how it streams",
    "request": "fields of a request",
    "ids": "ids and names",
    "tools": "definitions and choice of tools",
    "calls": "calls in the history",
    "results": "results in the history",
    "turns": "order and content of turns",
    "reasoning": "thinking",
    "schema": "JSON Schema of parameters",
}
"""In the order in which they are asked."""


class UnclearError(ToolglotError):
    """An answer from which nothing follows; the message says why."""


class ProbeCase(Struct, kw_only=True):
    """What a probe builds on: how a request must be written, and what is known by now."""

    style: RequestStyle
    found: dict[str, Any] = {}
    """Values by key of the profile, and by name of what is no entry of it."""

    @property
    def protocol(self) -> str:
        return self.style.protocol

    @property
    def ignores_fields(self) -> bool:
        return self.found.get("request.unknown_fields") == "ignored"


class Probe(Struct, frozen=True, kw_only=True):
    """A question to an endpoint."""

    name: str
    group: str
    question: str
    steps: Callable[[ProbeCase], Steps]
    keys: tuple[str, ...] = ()
    """The entries of a profile that it finds."""
    most: int = 1
    """Requests that it may take."""
    reply_tokens: int = 16
    feature: Feature | None = None
    """What a protocol must have for the question to make sense."""
    lacks: Feature | None = None
    """What a protocol must not have for it."""
    needs: tuple[str, ...] = ()
    """What must have been found to be so: `tools`, `history`."""
    why_not: Callable[[ProbeCase], str] | None = None
    """Why it cannot be asked in this case; empty if it can."""
    request_tokens: int = 150
    """The size of a prompt, for the estimate."""

    def is_for(self, protocol: str) -> bool:
        """Whether it is a question for this protocol."""
        features = get(protocol).features
        return (self.feature is None or self.feature in features) and self.lacks not in features


def protocol_order() -> list[str]:
    """All protocols in the order in which an endpoint is tried: Chat Completions first, which most speak."""
    return sorted(names(), key=lambda name: name != "openai_chat")


def is_accepted(heard: ParsedReply) -> bool:
    """Whether the endpoint took a request; an error where that cannot be told."""
    if heard.accepted:
        return True
    if heard.verdict in ("refused", "broke", "absent"):
        return False
    raise UnclearError(heard.words or f"no clear answer ({heard.verdict})")


def confidence_of(*heard: ParsedReply) -> Any:
    """A server that falls over a request refuses it, but may have failed for another reason."""
    return "weak" if any(one.verdict == "broke" for one in heard) else "observed"


def note_of(heard: ParsedReply) -> str:
    """What the endpoint said where it refused."""
    return "" if heard.accepted else f"it said: {heard.words}" if heard.words else f"status {heard.status}"


def finding(name: str, key: str, value: Any, *heard: ParsedReply, **more: Any) -> Finding:
    """A finding that these answers show."""
    told = next((note_of(one) for one in heard if not one.accepted), "")
    return Finding(
        probe=name,
        key=key,
        value=value,
        evidence=tuple(one.name for one in heard),
        confidence=more.pop("confidence", None) or confidence_of(*heard),
        note=more.pop("note", told),
        **more,
    )


Build = Callable[[RequestStyle], Body]


def yes_or_no(
    name: str,
    key: str,
    question: str,
    build: Build,
    *,
    yes: Any,
    no: Any,
    needs: tuple[str, ...] = (),
    feature: Feature | None = None,
    lacks: Feature | None = None,
    why_not: Callable[[ProbeCase], str] | None = None,
    quirk: str = "",
    is_care: bool = False,
) -> Probe:
    """A probe of one request: accepted it means the one, refused the other.

    quirk: what to look out for where it is refused.
    is_care: nothing is gained by sending it so, even where it is accepted; only a refusal settles the entry.
    """

    def steps(case: ProbeCase) -> Steps:
        heard = yield Question(body=build(case.style), about=question)
        accepted = is_accepted(heard)
        if accepted and is_care:
            note = "it is accepted; toolglot takes care of it nevertheless"
            return [finding(name, key, yes, heard, settles=False, note=note)]
        return [finding(name, key, yes if accepted else no, heard, quirk="" if accepted else quirk)]

    return Probe(
        name=name,
        group=_GROUP_OF.get(key.partition(".")[0], key.partition(".")[0]),
        question=question,
        steps=steps,
        keys=(key,),
        needs=needs,
        feature=feature,
        lacks=lacks,
        why_not=why_not,
    )


_GROUP_OF: Final = {"names": "ids", "choice": "tools", "stream": "streams"}


def unless_ignored(case: ProbeCase) -> str:
    """Where every unknown field is accepted, that one is accepted says nothing."""
    return "fields that it does not know are ignored, so that its answer says nothing" if case.ignores_fields else ""


def text_of(heard: ParsedReply) -> str:
    """The text of a reply."""
    if heard.reply is None:
        return ""
    return "".join(block.text for block in heard.reply.turn.blocks if isinstance(block, Text))


def highest(
    ask: Callable[[int], Question], low: int, ladder: tuple[int, ...]
) -> Generator[Question, ParsedReply, tuple[int, list[ParsedReply]]]:
    """The largest number that is accepted: `low` is, and beyond the ladder nobody looks.

    Limits are mostly round numbers, so the rungs are tried first, and then whether one more is too many.
    """
    asked: list[ParsedReply] = []

    def tried(number: int) -> Generator[Question, ParsedReply, bool]:
        heard = yield ask(number)
        asked.append(heard)
        return is_accepted(heard)

    below, above = -1, len(ladder)
    if (yield from tried(ladder[-1])):
        return ladder[-1], asked
    above = len(ladder) - 1
    while above - below > 1:
        middle = (below + above) // 2
        if (yield from tried(ladder[middle])):
            below = middle
        else:
            above = middle
    good, bad = ladder[below] if below >= 0 else low, ladder[above]
    if good + 1 < bad and not (yield from tried(good + 1)):
        return good, asked
    good = good + 1 if good + 1 < bad else good
    while bad - good > 1:
        middle = (good + bad) // 2
        if (yield from tried(middle)):
            good = middle
        else:
            bad = middle
    return good, asked
