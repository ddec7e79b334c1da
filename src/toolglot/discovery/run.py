"""A discovery from beginning to end: the protocols, the probes in their order, the result.

    discovery = Discovery(Endpoint(url=…, transport=…, key=…), budget=Budget(requests=200))
    result = await discovery.run()
    discovery.result()                     # at any time: what is known so far

Law: whatever the endpoint does, there is a result; probes that were not run are listed with the reason.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from msgspec.structs import replace

from toolglot.discovery import baseline
from toolglot.discovery.endpoint_client import Budget, Endpoint, EndpointClient, StoppedError
from toolglot.discovery.findings import DiscoveryResult, Finding, ProbeOutcome
from toolglot.discovery.parsed_reply import ParsedReply
from toolglot.discovery.probe import GROUPS, Probe, ProbeCase, UnclearError, protocol_order
from toolglot.discovery.probes import history as probes_history
from toolglot.discovery.probes import ids as probes_ids
from toolglot.discovery.probes import replies as probes_replies
from toolglot.discovery.probes import request as probes_request
from toolglot.discovery.probes import schema as probes_schema
from toolglot.discovery.probes import streams as probes_streams
from toolglot.discovery.probes import tools as probes_tools
from toolglot.discovery.probes import turns as probes_turns
from toolglot.discovery.protocol_detection import ReachedEndpoint, WorkingProtocol, detect_protocols
from toolglot.discovery.summary import summarise
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
"""All probes in the order in which they are run; each comes after what it depends on."""
COVERED: Final = tuple(dict.fromkeys(key for probe in PROBES for key in probe.keys))
"""The entries of a profile that discovery can find."""
MAX_UNCLEAR: Final = 4
"""After this many probes in a row without a clear outcome, the discovery ends."""
_FIRST: Final = (
    "endpoint.errors",
    "endpoint.dialogue",
    "endpoint.tools",
    "endpoint.history",
    "request.unknown",
    "endpoint.control",
)

Progress = Callable[[ProbeOutcome, Sequence[Finding]], None]


def select_probes(only: Sequence[str] = ()) -> tuple[Probe, ...]:
    """The probes of these groups or names, and those that the others build on; all of them for none."""
    for word in only:
        if word not in GROUPS and not any(probe.name == word for probe in PROBES):
            hint = f"groups: {', '.join(GROUPS)}; or the name of a probe"
            raise InputError(f"unknown probe {quote(word)}", path="only", hint=hint)
    if not only:
        return PROBES
    return tuple(probe for probe in PROBES if probe.name in (*_FIRST, *only) or probe.group in only)


class Discovery:
    """The discovery of one endpoint."""

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
        self.client: EndpointClient = EndpointClient(endpoint, budget or Budget(), clock=clock, sleep=sleep)
        self.name = name
        self.base = base
        self.findings: list[Finding] = []
        self.probed: list[ProbeOutcome] = []
        self.earlier: list[Finding] = []
        """What was found with protocols that refuse tools."""
        self.reached: ReachedEndpoint | None = None
        self.way: WorkingProtocol | None = None
        self.stopped: str = ""
        self._probes = select_probes(only)
        self._model = model
        self._protocol = protocol
        self._progress = progress
        self._begin = begin
        self._is_over = False

    async def run(self) -> DiscoveryResult:
        """Run all probes that can be run."""
        try:
            await self._run()
        except StoppedError as stopped:
            self.stopped = str(stopped)
        self._is_over = True
        return self.result()

    def result(self, stopped: str = "") -> DiscoveryResult:
        """What is known so far."""
        why = stopped or self.stopped or ("" if self._is_over else "it is still running")
        return summarise(self, why)

    async def _run(self) -> None:
        protocols = protocol_order() if self._protocol == "auto" else [self._protocol]
        self.reached = await detect_protocols(self.client, protocols=protocols, model=self._model, target=self.base)
        ways = [way for way in self.reached.ways if way.answers]
        if not ways:
            self.stopped = self._why_closed(self.reached)
        for way in ways:
            if await self._run_probes(way, is_last=way is ways[-1]):
                return

    async def _run_probes(self, way: WorkingProtocol, *, is_last: bool) -> bool:
        """Run the probes with one protocol; whether it is the one to use. One that refuses tools is the last choice."""
        self.way = way
        self.findings += self._listed_context(way)
        case = ProbeCase(style=way.style, found={})
        unclear = 0
        for probe in self._probes:
            outcome = await self._probe(probe, case, way)
            unclear = unclear + 1 if outcome == "unclear" else 0 if outcome == "found" else unclear
            if unclear >= MAX_UNCLEAR:
                raise StoppedError(f"{unclear} probes in a row had no clear outcome")
            if case.found.get("tools") is False and not is_last:
                refused = [one for one in self.findings if one.probe == "endpoint.tools"]
                quirk = f"requests with tools are refused over {way.route.protocol}"
                self.findings = [*self.earlier, *(replace(one, quirk=quirk) for one in refused)]
                self.earlier = list(self.findings)
                self.probed = []
                return False
        return True

    def _listed_context(self, way: WorkingProtocol) -> list[Finding]:
        """The context size that the list of models has for the model."""
        reached = self.reached
        context = (
            next((one.context for one in reached.models if one.name == way.route.model), None) if reached else None
        )
        if reached is None or context is None:
            return []
        finding = Finding(
            probe="endpoint.models",
            key="context.window",
            value=context,
            evidence=(reached.listing,),
            confidence="told",
            note="from its list of models",
        )
        return [finding]

    def _why_closed(self, reached: ReachedEndpoint) -> str:
        denied = (way for way in reached.ways if way.response.verdict == "denied")
        half = next(denied, next(iter(reached.ways), None))
        if half is not None:
            message = half.response.words or half.response.verdict
            hint = ""
            if half.response.verdict == "denied" and not self.client.endpoint.key:
                hint = "; there is no key: name the variable that holds it with --key-env NAME"
            return f"the endpoint speaks {half.route.protocol}, but refuses a greeting: {message}{hint}"
        return f"no protocol works: {'; '.join(reached.problems) or 'no response'}"[:1000]

    async def _probe(self, probe: Probe, case: ProbeCase, way: WorkingProtocol) -> str:
        why = _why_not(probe, case)
        if self._begin is not None and not why:
            self._begin(probe)
        before = self.client.spent.requests
        found: list[Finding] = []
        outcome = "skipped" if why else "found"
        self.client.probe = probe.name
        if not why:
            try:
                found = await self._steps(probe, case, way)
            except UnclearError as error:
                outcome, why = "unclear", str(error)
        self._keep(found, case)
        if any(one.probe == "endpoint.control" and not one.value for one in found):
            self.stopped = found[0].quirk
        probed = ProbeOutcome(
            probe=probe.name,
            group=probe.group,
            question=probe.question,
            outcome=outcome,  # type: ignore[arg-type]
            reason=why,
            requests=self.client.spent.requests - before,
        )
        self.probed.append(probed)
        if self._progress is not None:
            self._progress(probed, found)
        return outcome

    async def _steps(self, probe: Probe, case: ProbeCase, way: WorkingProtocol) -> list[Finding]:
        steps = probe.steps(case)
        try:
            request = next(steps)
            for _ in range(probe.max_requests):
                response: ParsedReply = await self.client.send(way.route, request)
                request = steps.send(response)
        except StopIteration as ended:
            found: list[Finding] = ended.value
            return found
        steps.close()
        raise UnclearError(f"it takes more than {probe.max_requests} requests")

    def _keep(self, found: list[Finding], case: ProbeCase) -> None:
        self.findings += found
        case.found.update({one.key: one.value for one in found if one.key and one.settles})


_MISSING: Final = {
    "tools": "requests with tools are refused",
    "history": "no history with calls is accepted",
    "dialogue": "no assistant turn is accepted in a history",
}


def _why_not(probe: Probe, case: ProbeCase) -> str:
    """Why a probe is not run."""
    if not probe.is_for(case.protocol):
        return f"not for {case.protocol}"
    for need in probe.needs:
        if not case.found.get(need):
            return _MISSING[need]
    return probe.why_not(case) if probe.why_not is not None else ""
