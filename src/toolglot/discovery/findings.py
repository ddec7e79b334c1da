"""What discovery says: findings with their evidence, and the result that seed 003 names.

    Finding(probe="ids.length", key="ids.max_length", value=40, evidence=("r12", "r13"), confidence="observed")

A finding with a key is an entry of a profile. One without a key is told, and changes nothing. `settles` is false where
something was seen that does not prove the entry: it is told, and left out of the profile.

Law: every finding names the requests that show it; text of the endpoint is in a finding only short, printable and
without secrets.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

SureAs = Literal["observed", "weak", "told"]
"""Shown by an answer or a refusal; shown by something that may have another cause; said by the endpoint of itself."""
Outcome = Literal["found", "skipped", "unclear"]


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was found out."""

    probe: str
    value: Any
    key: str = ""
    """The entry of a profile that it is."""
    evidence: tuple[str, ...] = ()
    """The exchanges that show it, by their names."""
    confidence: SureAs = "observed"
    settles: bool = True
    note: str = ""
    quirk: str = ""
    """In words, where it is something to look out for."""


class Exchange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request and what came back, without secrets and shortened: evidence."""

    name: str
    probe: str
    about: str
    method: str
    url: str
    request: Any = None
    status: int = 0
    """0: there was no answer."""
    headers: dict[str, str] = {}
    reply: Any = None
    """The JSON value, or the text where it is none."""
    cut: bool = False
    """There was more of the reply than is kept."""
    problem: str = ""
    """Why there was no usable answer."""
    verdict: str = ""
    seconds: float = 0.0


class Probed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of one probe."""

    probe: str
    group: str
    question: str
    outcome: Outcome
    reason: str = ""
    """Why it was skipped, or is unclear."""
    requests: int = 0


class ProviderInfo(Struct, frozen=True, kw_only=True):
    """Who answers."""

    name: str
    url: str
    protocols: tuple[str, ...] = ()
    """Those that answer, the one that was looked at first."""
    models: tuple[str, ...] = ()
    model: str = ""
    """The one that was asked."""
    server: str = ""
    """What the server calls itself."""
    context_tokens: int | None = None
    """The longest prompt, if it was told."""
    rate_headers: tuple[str, ...] = ()
    error_shape: str = ""


class SdkInfo(Struct, frozen=True, kw_only=True):
    """How a program talks to it."""

    protocol: str
    base_url: str
    auth: str
    package: str
    """The SDK for Python that speaks the protocol."""
    streaming: bool | None = None


SchemaStyle = Literal["openai", "anthropic", "custom"]


class ToolingInfo(Struct, frozen=True, kw_only=True):
    """How it does tools: seed 003's record, and what else is worth knowing."""

    format: Literal["json", "xml", "custom", "none"]
    """How a model writes its calls: as JSON of the protocol or in its text, in tags, in another way, or not at all."""
    example: str = ""
    """A call as the endpoint wrote it."""
    parser: str = ""
    """What reads its calls: the protocol's own, or the name of a dialect."""
    quirks: tuple[str, ...] = ()
    schema_style: SchemaStyle = "custom"
    native: bool | None = None
    """Calls come in fields of the protocol; None: not found out."""
    parallel: bool | None = None
    dialect: str = ""


class Opinion(Struct, frozen=True, kw_only=True):
    """What a model made of the evidence: an opinion, which never counts before it."""

    by: str
    format: str = ""
    example: str = ""
    schema_requirements: tuple[str, ...] = ()
    quirks: tuple[str, ...] = ()
    disagrees: tuple[str, ...] = ()
    """Where it says something else than the evidence does."""
    problem: str = ""
    """Why there is no opinion."""


class ProbeCost(Struct, frozen=True, kw_only=True):
    """What it took."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    counted: bool = True
    """False: the endpoint did not say all tokens; those are estimated."""


class DiscoveryResult(Struct, frozen=True, kw_only=True):
    """What was found out of an endpoint."""

    provider: ProviderInfo
    sdk: SdkInfo
    tooling: ToolingInfo
    findings: tuple[Finding, ...] = ()
    probes: tuple[Probed, ...] = ()
    evidence: tuple[Exchange, ...] = ()
    spent: ProbeCost = ProbeCost()
    base: str = ""
    """The profile that the found one starts from."""
    complete: bool = True
    stopped: str = ""
    """Why it is not complete."""
    opinion: Opinion | None = None

    def entry(self, key: str) -> Finding | None:
        """The finding that settles an entry of the profile."""
        return next((found for found in self.findings if found.key == key and found.settles), None)

    @property
    def entries(self) -> dict[str, Any]:
        """What the found profile says: values by key."""
        return {found.key: found.value for found in self.findings if found.key and found.settles}
