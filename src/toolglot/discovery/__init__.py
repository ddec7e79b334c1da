"""Discovery: find out how an unknown endpoint does tools, by asking it.

    endpoint = Endpoint(url="http://box:8000/v1", transport=HttpTransport(), key=…)
    result = await Discovery(endpoint, model="qwen3").run()
    result.tooling.format, result.tooling.quirks
    profile_toml(result)                                 # what `toolglot serve` loads
    departures(result, profiles.get("vllm"))             # where it is not as its profile says

A probe changes one thing of a request that is known to be accepted, and the answer says what that one thing means.
Law: bounded in requests, tokens, bytes and time; every finding names the exchanges that show it; nothing that an
endpoint says is run, followed, or shown with its secrets.
"""

from toolglot.discovery.asking_model import ask_model
from toolglot.discovery.comparing import Departure, departures
from toolglot.discovery.findings import (
    DiscoveryResult,
    Exchange,
    Finding,
    Opinion,
    ProbeCost,
    Probed,
    ProviderInfo,
    SdkInfo,
    ToolingInfo,
)
from toolglot.discovery.found_profile import found_profile, overrides_of, profile_toml
from toolglot.discovery.line import Budget, Endpoint
from toolglot.discovery.plan import PlannedProbe, ProbePlan, plan
from toolglot.discovery.probe import Probe
from toolglot.discovery.reporting import report
from toolglot.discovery.running import COVERED, PROBES, Discovery

__all__ = [
    "COVERED",
    "PROBES",
    "Budget",
    "Departure",
    "Discovery",
    "DiscoveryResult",
    "Endpoint",
    "Exchange",
    "Finding",
    "Opinion",
    "PlannedProbe",
    "Probe",
    "ProbeCost",
    "ProbePlan",
    "Probed",
    "ProviderInfo",
    "SdkInfo",
    "ToolingInfo",
    "ask_model",
    "departures",
    "found_profile",
    "overrides_of",
    "plan",
    "profile_toml",
    "report",
]
