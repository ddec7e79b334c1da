"""What discovery returns: findings with their evidence, and the result.

    Finding(probe="ids.length", key="ids.max_length", value=40, evidence=("r12", "r13"), confidence="observed")

A finding with a key is an entry of a profile. One without a key is only reported. `settles` is false if something was
seen that does not prove the entry: it is reported, and left out of the profile.

Law: every finding names the exchanges that show it; text from the endpoint is short, printable and without secrets.
"""

from __future__ import annotations

from typing import Any, Final, Literal

from msgspec import Struct

Confidence = Literal["observed", "weak", "told"]
"""Shown by a reply or a refusal; shown by something that may have another cause; stated by the endpoint itself. The
values are in the JSON of `toolglot probe`."""
Outcome = Literal["found", "skipped", "unclear"]

MESSAGE: Final = "its message: "
"""How a note begins that quotes the endpoint's error message."""


class Finding(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that was found out."""

    probe: str
    value: Any
    key: str = ""
    """The entry of a profile."""
    evidence: tuple[str, ...] = ()
    """The exchanges that show it, by their names."""
    confidence: Confidence = "observed"
    settles: bool = True
    note: str = ""
    quirk: str = ""
    """What users should know about it, in words."""


class Exchange(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A request and its response, shortened and without secrets: evidence."""

    name: str
    probe: str
    about: str
    method: str
    url: str
    request: Any = None
    status: int = 0
    """0: there was no response."""
    headers: dict[str, str] = {}
    reply: Any = None
    """The JSON value, or the text if it is not JSON."""
    cut: bool = False
    """Whether the reply was longer than what is recorded."""
    problem: str = ""
    """Why there was no usable response."""
    verdict: str = ""
    seconds: float = 0.0


class ProbeOutcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The outcome of one probe."""

    probe: str
    group: str
    question: str
    outcome: Outcome
    reason: str = ""
    """Why it was skipped or is unclear."""
    requests: int = 0


class ProviderInfo(Struct, frozen=True, kw_only=True):
    """The endpoint."""

    name: str
    url: str
    protocols: tuple[str, ...] = ()
    """Those that it speaks, the probed one first."""
    models: tuple[str, ...] = ()
    model: str = ""
    """The one that was probed."""
    server: str = ""
    """The `server` header."""
    context_tokens: int | None = None
    """The size of its context, if the list of models has it."""
    rate_headers: tuple[str, ...] = ()
    error_shape: str = ""


class SdkInfo(Struct, frozen=True, kw_only=True):
    """How a program uses it."""

    protocol: str
    base_url: str
    auth: str
    package: str
    """The SDK for Python that speaks the protocol."""
    streaming: bool | None = None


SchemaStyle = Literal["openai", "anthropic", "custom"]


class ToolingInfo(Struct, frozen=True, kw_only=True):
    """How it handles tools."""

    format: Literal["json", "xml", "custom", "none"]
    """How the model writes calls: as JSON in the protocol or in text, in tags, in another way, or not at all."""
    example: str = ""
    """A call as the endpoint wrote it."""
    parser: str = ""
    """What reads its calls: the protocol's own, or the name of a dialect."""
    quirks: tuple[str, ...] = ()
    schema_style: SchemaStyle = "custom"
    native: bool | None = None
    """Whether calls are in fields of the protocol; None: unknown."""
    parallel: bool | None = None
    dialect: str = ""


class Opinion(Struct, frozen=True, kw_only=True):
    """What a model thinks of the evidence. It changes no finding."""

    by: str
    format: str = ""
    example: str = ""
    schema_requirements: tuple[str, ...] = ()
    quirks: tuple[str, ...] = ()
    disagrees: tuple[str, ...] = ()
    """Where it contradicts the evidence."""
    problem: str = ""
    """Why there is no opinion."""


class ProbeCost(Struct, frozen=True, kw_only=True):
    """What a discovery cost."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    counted: bool = True
    """False: the endpoint did not count all tokens; some are estimated."""


class DiscoveryResult(Struct, frozen=True, kw_only=True):
    """What was found out about an endpoint."""

    provider: ProviderInfo
    sdk: SdkInfo
    tooling: ToolingInfo
    findings: tuple[Finding, ...] = ()
    probes: tuple[ProbeOutcome, ...] = ()
    evidence: tuple[Exchange, ...] = ()
    spent: ProbeCost = ProbeCost()
    base: str = ""
    """The profile that the found one extends."""
    complete: bool = True
    stopped: str = ""
    """Why it is not complete."""
    opinion: Opinion | None = None

    def entry(self, key: str) -> Finding | None:
        """The finding that settles an entry of the profile."""
        return next((found for found in self.findings if found.key == key and found.settles), None)

    @property
    def entries(self) -> dict[str, Any]:
        """The entries of the found profile: values by key."""
        return {found.key: found.value for found in self.findings if found.key and found.settles}
