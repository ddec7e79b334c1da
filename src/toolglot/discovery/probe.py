"""A probe: a question in words, and steps that yield requests and draw conclusions from the responses.

    def steps(case):                                     # no I/O: requests out, responses in, findings at the end
        response = yield ProbeRequest(body=body, about="an id with a dot")
        return [finding(..., is_accepted(response), response)]

`Discovery` sends what is yielded. So tests can run a probe with prepared responses, and a dry run can show its
requests.

Law: a probe changes one thing of a request that is known to be accepted, so that a refusal has one reason.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Final

from msgspec import Struct

from toolglot.conversation import Reply, Text
from toolglot.discovery.bodies import Body, RequestStyle
from toolglot.discovery.endpoint_client import ProbeRequest
from toolglot.discovery.findings import MESSAGE, Finding
from toolglot.discovery.parsed_reply import ParsedReply
from toolglot.errors import ToolglotError
from toolglot.protocols.base import Feature, get, names

Steps = Generator[ProbeRequest, ParsedReply, list[Finding]]

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
"""In the order in which they are run."""
_GROUP_OF: Final = {"names": "ids", "choice": "tools"}
"""Names of probes that do not begin with their group."""


class UnclearError(ToolglotError):
    """A response from which nothing follows; the message says why."""


class ProbeCase(Struct, kw_only=True):
    """What a probe builds on: how a request must be written, and what is known so far."""

    style: RequestStyle
    found: dict[str, Any] = {}
    """Values by key of the profile, and by the names in `needs`."""

    @property
    def protocol(self) -> str:
        return self.style.protocol

    @property
    def ignores_fields(self) -> bool:
        return self.found.get("request.unknown_fields") == "ignored"


class Probe(Struct, frozen=True, kw_only=True):
    """A question to an endpoint."""

    name: str
    """Its group, and its own name in it."""
    question: str
    steps: Callable[[ProbeCase], Steps]
    keys: tuple[str, ...] = ()
    """The entries of a profile that it can find."""
    max_requests: int = 1
    """The number of requests that it may send."""
    reply_tokens: int = 16
    feature: Feature | None = None
    """What a protocol must have for the question to make sense."""
    lacks: Feature | None = None
    """What a protocol must not have for it."""
    needs: tuple[str, ...] = ()
    """What the endpoint must accept: `tools`, `history`, `dialogue`."""
    why_not: Callable[[ProbeCase], str] | None = None
    """Why it cannot be run in this case; empty if it can."""
    request_tokens: int = 150
    """The size of a prompt, for the estimate."""

    @property
    def group(self) -> str:
        """The group that it is listed under."""
        first = self.name.partition(".")[0]
        return _GROUP_OF.get(first, first)

    def is_for(self, protocol: str) -> bool:
        """Whether it is a question for this protocol."""
        features = get(protocol).features
        return (self.feature is None or self.feature in features) and self.lacks not in features


def protocol_order() -> list[str]:
    """All protocols in the order in which they are tried: Chat Completions first, because it is the most common."""
    return sorted(names(), key=lambda name: name != "openai_chat")


def is_accepted(response: ParsedReply) -> bool:
    """Whether the endpoint accepted a request; an error if that is not clear."""
    if response.accepted:
        return True
    if response.verdict in ("refused", "broke", "absent"):
        return False
    raise UnclearError(response.words or f"no clear response ({response.verdict})")


def get_reply(request: ProbeRequest) -> Generator[ProbeRequest, ParsedReply, tuple[ParsedReply, Reply]]:
    """Send a request that needs a reply; the response, and the reply in it. Without one, the outcome is unclear."""
    response = yield request
    if not is_accepted(response) or response.reply is None:
        raise UnclearError(response.words)
    return response, response.reply


def confidence_of(*response: ParsedReply) -> Any:
    """A server that fails on a request refuses it, but may have failed for another reason."""
    return "weak" if any(one.verdict == "broke" for one in response) else "observed"


def note_of(response: ParsedReply) -> str:
    """The endpoint's message, if it refused."""
    return "" if response.accepted else f"{MESSAGE}{response.words}" if response.words else f"status {response.status}"


def finding(name: str, key: str, value: Any, *response: ParsedReply, **more: Any) -> Finding:
    """A finding that these responses show."""
    note = next((note_of(one) for one in response if not one.accepted), "")
    return Finding(
        probe=name,
        key=key,
        value=value,
        evidence=tuple(one.name for one in response),
        confidence=more.pop("confidence", None) or confidence_of(*response),
        note=more.pop("note", note),
        **more,
    )


Build = Callable[[RequestStyle], Body]


def yes_or_no(
    name: str,
    key: str,
    question: str,
    build: Build,
    *,
    yes: Any = True,
    no: Any = False,
    needs: tuple[str, ...] = (),
    feature: Feature | None = None,
    lacks: Feature | None = None,
    why_not: Callable[[ProbeCase], str] | None = None,
    quirk: str = "",
    only_refusal_counts: bool = False,
) -> Probe:
    """A probe of one request: if it is accepted, the value is `yes`, else `no`.

    quirk: what users should know if it is refused.
    only_refusal_counts: toolglot avoids it even where it is accepted, so only a refusal settles the entry.
    """

    def steps(case: ProbeCase) -> Steps:
        response = yield ProbeRequest(body=build(case.style), about=question)
        accepted = is_accepted(response)
        if accepted and only_refusal_counts:
            note = "it is accepted; toolglot avoids it nevertheless"
            return [finding(name, key, yes, response, settles=False, note=note)]
        return [finding(name, key, yes if accepted else no, response, quirk="" if accepted else quirk)]

    return Probe(
        name=name,
        question=question,
        steps=steps,
        keys=(key,),
        needs=needs,
        feature=feature,
        lacks=lacks,
        why_not=why_not,
    )


def unless_ignored(case: ProbeCase) -> str:
    """Why a probe of a field is skipped: if unknown fields are ignored, an accepted one says nothing."""
    return "unknown fields are ignored, so an accepted request says nothing" if case.ignores_fields else ""


def text_of(response: ParsedReply) -> str:
    """The text of a reply."""
    if response.reply is None:
        return ""
    return "".join(block.text for block in response.reply.turn.blocks if isinstance(block, Text))


def find_maximum(
    request_for: Callable[[int], ProbeRequest], low: int, ladder: tuple[int, ...]
) -> Generator[ProbeRequest, ParsedReply, tuple[int, list[ParsedReply]]]:
    """The largest number that is accepted, from `low`, which is, to the end of the ladder.

    Limits are mostly round numbers, so the numbers of the ladder are tried first, and then one more.
    """
    responses: list[ParsedReply] = []

    def accepts(number: int) -> Generator[ProbeRequest, ParsedReply, bool]:
        response = yield request_for(number)
        responses.append(response)
        return is_accepted(response)

    below, above = -1, len(ladder)
    if (yield from accepts(ladder[-1])):
        return ladder[-1], responses
    above = len(ladder) - 1
    while above - below > 1:
        middle = (below + above) // 2
        if (yield from accepts(ladder[middle])):
            below = middle
        else:
            above = middle
    good, bad = ladder[below] if below >= 0 else low, ladder[above]
    if good + 1 < bad and not (yield from accepts(good + 1)):
        return good, responses
    good = good + 1 if good + 1 < bad else good
    while bad - good > 1:
        middle = (good + bad) // 2
        if (yield from accepts(middle)):
            good = middle
        else:
            bad = middle
    return good, responses
