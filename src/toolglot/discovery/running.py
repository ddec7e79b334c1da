"""A discovery from beginning to end: the way in, the probes in their order, the result.

    discovery = Discovery(Endpoint(url=…, transport=…, key=…), budget=Budget(requests=200))
    result = await discovery.run()
    discovery.result()                     # at any time: what is known by now

Law: whatever the endpoint does, there is a result; what could not be asked is listed with the reason.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec.structs import replace

from toolglot.discovery import baseline
from toolglot.discovery.findings import DiscoveryResult, Finding, Probed
from toolglot.discovery.heard import ParsedReply
from toolglot.discovery.line import Budget, Endpoint, EndpointClient, StoppedError
from toolglot.discovery.probe import GROUPS, Probe, ProbeCase, UnclearError, protocol_order
from toolglot.discovery.probes import history as probes_history
from toolglot.discovery.probes import ids as probes_ids
from toolglot.discovery.probes import replies as probes_replies
from toolglot.discovery.probes import request as probes_request
from toolglot.discovery.probes import schema as probes_schema
from toolglot.discovery.probes import streams as probes_streams
from toolglot.discovery.probes import tools as probes_tools
from toolglot.discovery.probes import turns as probes_turns
from toolglot.discovery.reaching import ReachedEndpoint, WorkingProtocol, reach
from toolglot.discovery.summary import summarised
from toolglot.errors import InputError, quote

PROBES: Final[tuple[Probe, ...]] = (
    *baseline.PROBES,
    *probes_request.PROBES[:1],  # whether unknown fields are ignored decides what others can find
    *probes_replies.PROBES,
    *probes_streams.PROBES,
    *probes_request.PROBES[1:],
    *probes_turns.PROBES,
    *probes_history.PROBES,
    *probes_ids.PROBES,
    *probes_schema.PROBES,
    *probes_tools.PROBES,
    baseline.CONTROL,
)
"""All probes in the order in which they are asked; each comes after what it depends on."""
COVERED: Final = tuple(dict.fromkeys(key for probe in PROBES for key in probe.keys))
"""The entries of a profile that discovery can find."""
MOST_UNCLEAR: Final = 4
"""Probes in a row without a clear answer after which no more is asked."""
_FIRST: Final = (
    "endpoint.errors",
    "endpoint.dialogue",
    "endpoint.tools",
    "endpoint.history",
    "request.unknown",
    "endpoint.control",
)

Progress = Callable[[Probed, Sequence[Finding]], None]


def chosen(only: Sequence[str] = ()) -> tuple[Probe, ...]:
    """The probes of these groups or names; all of them for none. What the others build on is always among them."""
    for word in only:
        if word not in GROUPS and not any(probe.name == word for probe in PROBES):
            hint = f"groups: {', '.join(GROUPS)}; or the name of a probe"
            raise InputError(f"unknown probe {quote(word)}", path="only", hint=hint)
    if not only:
        return PROBES
    return tuple(probe for probe in PROBES if probe.name in (*_FIRST, *only) or probe.group in only)


class Discovery:
    """One endpoint, being found out."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        budget: Budget | None = None,
        model: str = "",
        protocol: str = "auto",
        name: str = "",
        base: str = "",
        only: Sequence[str] = (),
        progress: Progress | None = None,
        begin: Callable[[Probe], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        if protocol != "auto" and protocol not in protocol_order():
            hint = f"one of auto, {', '.join(protocol_order())}"
            raise InputError(f"unknown protocol {quote(protocol)}", path="protocol", hint=hint)
        self.line: EndpointClient = EndpointClient(endpoint, budget or Budget(), clock=clock, sleep=sleep)
        self.name = name
        self.base = base
        self.findings: list[Finding] = []
        self.probed: list[Probed] = []
        self.earlier: list[Finding] = []
        """What was found over protocols that were left again."""
        self.reached: ReachedEndpoint | None = None
        self.way: WorkingProtocol | None = None
        self.stopped: str = ""
        self._probes = chosen(only)
        self._model = model
        self._protocol = protocol
        self._progress = progress
        self._begin = begin
        self._is_over = False

    async def run(self) -> DiscoveryResult:
        """Ask everything that can be asked."""
        try:
            await self._run()
        except StoppedError as stopped:
            self.stopped = str(stopped)
        self._is_over = True
        return self.result()

    def result(self, stopped: str = "") -> DiscoveryResult:
        """What is known by now."""
        why = stopped or self.stopped or ("" if self._is_over else "it is not over")
        return summarised(self, why)

    async def _run(self) -> None:
        protocols = protocol_order() if self._protocol == "auto" else [self._protocol]
        self.reached = await reach(self.line, protocols=protocols, model=self._model, target=self.base)
        ways = [way for way in self.reached.ways if way.answers]
        if not ways:
            self.stopped = self._why_closed(self.reached)
        for way in ways:
            if await self._ask_all(way, is_last=way is ways[-1]):
                return

    async def _ask_all(self, way: WorkingProtocol, *, is_last: bool) -> bool:
        """Ask everything over one protocol; whether it is the one to use. One that refuses tools is the last choice."""
        self.way = way
        self.findings += self._told(way)
        case = ProbeCase(style=way.style, found={})
        unclear = 0
        for probe in self._probes:
            outcome = await self._probe(probe, case, way)
            unclear = unclear + 1 if outcome == "unclear" else 0 if outcome == "found" else unclear
            if unclear >= MOST_UNCLEAR:
                raise StoppedError(f"{unclear} probes in a row had no clear answer")
            if case.found.get("tools") is False and not is_last:
                refused = [one for one in self.findings if one.probe == "endpoint.tools"]
                told = f"requests with tools are refused over {way.route.protocol}"
                self.findings = [*self.earlier, *(replace(one, quirk=told) for one in refused)]
                self.earlier = list(self.findings)
                self.probed = []
                return False
        return True

    def _told(self, way: WorkingProtocol) -> list[Finding]:
        """What the list of models says of the one that is asked."""
        reached = self.reached
        context = (
            next((one.context for one in reached.models if one.name == way.route.model), None) if reached else None
        )
        if reached is None or context is None:
            return []
        told = Finding(
            probe="endpoint.models",
            key="context.window",
            value=context,
            evidence=(reached.listing,),
            confidence="told",
            note="as its list of models says",
        )
        return [told]

    def _why_closed(self, reached: ReachedEndpoint) -> str:
        denied = (way for way in reached.ways if way.heard.verdict == "denied")
        half = next(denied, next(iter(reached.ways), None))
        if half is not None:
            said = half.heard.words or half.heard.verdict
            hint = ""
            if half.heard.verdict == "denied" and not self.line.endpoint.key:
                hint = "; no key was given: --key-env NAME names the variable that holds it"
            return f"{half.route.protocol} is there, but refuses a greeting: {said}{hint}"
        return f"nothing answers here: {'; '.join(reached.problems) or 'no answer'}"[:1000]

    async def _probe(self, probe: Probe, case: ProbeCase, way: WorkingProtocol) -> str:
        why = _why_not(probe, case)
        if self._begin is not None and not why:
            self._begin(probe)
        before = self.line.spent.requests
        found: list[Finding] = []
        outcome = "skipped" if why else "found"
        self.line.probe = probe.name
        if not why:
            try:
                found = await self._steps(probe, case, way)
            except UnclearError as error:
                outcome, why = "unclear", str(error)
        self._keep(found, case)
        if any(one.probe == "endpoint.control" and not one.value for one in found):
            self.stopped = found[0].quirk
        told = Probed(
            probe=probe.name,
            group=probe.group,
            question=probe.question,
            outcome=outcome,  # type: ignore[arg-type]
            reason=why,
            requests=self.line.spent.requests - before,
        )
        self.probed.append(told)
        if self._progress is not None:
            self._progress(told, found)
        return outcome

    async def _steps(self, probe: Probe, case: ProbeCase, way: WorkingProtocol) -> list[Finding]:
        steps = probe.steps(case)
        try:
            question = next(steps)
            for _ in range(probe.most):
                heard: ParsedReply = await self.line.ask(way.route, question)
                question = steps.send(heard)
        except StopIteration as ended:
            found: list[Finding] = ended.value
            return found
        steps.close()
        raise UnclearError(f"it takes more than {probe.most} requests")

    def _keep(self, found: list[Finding], case: ProbeCase) -> None:
        self.findings += found
        case.found.update({one.key: one.value for one in found if one.key and one.settles})


_MISSING: Final = {
    "tools": "requests with tools are refused",
    "history": "no history with calls is accepted",
    "dialogue": "no answer of the assistant is accepted in a history",
}


def _why_not(probe: Probe, case: ProbeCase) -> str:
    """Why a probe is not asked."""
    if not probe.is_for(case.protocol):
        return f"not a question of {case.protocol}"
    for need in probe.needs:
        if not case.found.get(need):
            return _MISSING[need]
    return probe.why_not(case) if probe.why_not is not None else ""
