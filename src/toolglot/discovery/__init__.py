"""Discovery: find out how an unknown endpoint handles tools, by sending it requests.

    endpoint = Endpoint(url="http://box:8000/v1", transport=HttpTransport(), key=…)
    result = await Discovery(endpoint, model="qwen3").run()
    result.tooling.format, result.tooling.quirks
    profile_toml(result)                                 # what `toolglot serve` loads
    departures(result, profiles.get("vllm"))             # where it differs from its profile

A probe changes one thing of a request that is known to be accepted, so that the response is about that one thing.
Law: requests, tokens, bytes and time are bounded; every finding names the exchanges that show it; nothing that an
endpoint sends is run, followed, or shown with secrets in it.
"""

from toolglot.discovery.comparison import Departure, departures
from toolglot.discovery.endpoint_client import Budget, Endpoint
from toolglot.discovery.findings import (
    DiscoveryResult,
    Exchange,
    Finding,
    Opinion,
    ProbeCost,
    ProbeOutcome,
    ProviderInfo,
    SdkInfo,
    ToolingInfo,
)
from toolglot.discovery.found_profile import found_profile, overrides_of, profile_toml
from toolglot.discovery.markdown_report import report
from toolglot.discovery.model_opinion import ask_model
from toolglot.discovery.plan import PlannedProbe, ProbePlan, plan
from toolglot.discovery.probe import Probe
from toolglot.discovery.run import COVERED, PROBES, Discovery

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
    "ProbeOutcome",
    "ProbePlan",
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
