"""What a discovery would send: every probe with the requests and tokens that it may take.

Law: an estimate from above; nothing is sent to make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from toolglot.discovery.probe import Probe, protocol_order
from toolglot.discovery.run import select_probes

WAYS_IN: Final = 16
"""Requests that it may take to find the list of models and the protocols that answer."""
GREETING_TOKENS: Final = 40


class PlannedProbe(Struct, frozen=True, kw_only=True):
    """A probe and what it may take."""

    probe: str
    group: str
    question: str
    keys: tuple[str, ...]
    requests: int
    input_tokens: int
    output_tokens: int


class ProbePlan(Struct, frozen=True, kw_only=True):
    """All of them, and their sum."""

    probes: tuple[PlannedProbe, ...]
    requests: int
    input_tokens: int
    output_tokens: int


def plan(protocol: str = "auto", only: Sequence[str] = ()) -> ProbePlan:
    """The upper bound of what is sent. For `auto`: that of the protocol with the largest one."""
    names = protocol_order() if protocol == "auto" else [protocol]
    plans = [_of(name, select_probes(only), is_sought=protocol == "auto") for name in names]
    return max(plans, key=lambda one: (one.requests, one.input_tokens))


def _of(protocol: str, probes: Sequence[Probe], *, is_sought: bool) -> ProbePlan:
    ways = WAYS_IN if is_sought else 4
    planned = [
        PlannedProbe(
            probe="endpoint",
            group="endpoint",
            question="models, and the protocols that answer",
            keys=(),
            requests=ways,
            input_tokens=ways * GREETING_TOKENS,
            output_tokens=ways * 16,
        ),
        *(
            PlannedProbe(
                probe=probe.name,
                group=probe.group,
                question=probe.question,
                keys=probe.keys,
                requests=probe.max_requests,
                input_tokens=probe.max_requests * probe.request_tokens,
                output_tokens=probe.max_requests * probe.reply_tokens,
            )
            for probe in probes
            if probe.is_for(protocol)
        ),
    ]
    return ProbePlan(
        probes=tuple(planned),
        requests=sum(one.requests for one in planned),
        input_tokens=sum(one.input_tokens for one in planned),
        output_tokens=sum(one.output_tokens for one in planned),
    )
