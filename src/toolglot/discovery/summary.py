"""From findings to the result: the endpoint, how a program uses it, how it handles tools."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from toolglot.discovery.findings import DiscoveryResult, Finding, ProviderInfo, SdkInfo, ToolingInfo
from toolglot.discovery.protocol_detection import base_of, known_provider
from toolglot.discovery.secret_masking import masked_url
from toolglot.protocols.base import get

if TYPE_CHECKING:
    from toolglot.discovery.run import Discovery

_TAGGED: Final = re.compile(r"<[A-Za-z|_]")


def name_of(url: str) -> str:
    """A short name for an endpoint, fit for a table of a configuration."""
    known = known_provider(url)
    host = known.name if known is not None else (urlsplit(url).hostname or "endpoint")
    plain = re.sub(r"[^a-z0-9]+", "_", host.lower()).strip("_")
    return plain if plain and not plain[0].isdigit() else f"at_{plain or 'endpoint'}"


def summarise(discovery: Discovery, stopped: str) -> DiscoveryResult:
    client, way, reached = discovery.client, discovery.way, discovery.reached
    url = client.secrets.mask_text(masked_url(base_of(client.endpoint.url)))
    protocols = tuple(one.route.protocol for one in reached.ways if one.answers) if reached is not None else ()
    main = way.route.protocol if way is not None else ""
    models = reached.models if reached is not None else ()
    model = way.route.model if way is not None else ""
    findings = tuple(discovery.findings)
    return DiscoveryResult(
        provider=ProviderInfo(
            name=discovery.name or name_of(client.endpoint.url),
            url=url,
            protocols=tuple(sorted(protocols, key=lambda name: name != main)),
            models=tuple(one.name for one in models),
            model=model,
            server=next((one.headers["server"] for one in client.exchanges if one.headers.get("server")), ""),
            context_tokens=next((one.context for one in models if one.name == model), None),
            rate_headers=tuple(
                sorted(
                    {name for one in client.exchanges for name in one.headers if "ratelimit" in name.replace("-", "")}
                )
            ),
            error_shape=str(_value(findings, "endpoint.errors") or ""),
        ),
        sdk=SdkInfo(
            protocol=main,
            base_url=client.secrets.mask_text(masked_url(way.route.base)) if way is not None else url,
            auth=way.route.auth if way is not None else "",
            package=get(main).sdk if main else "",
            streaming=_value(findings, "streams.calls"),
        ),
        tooling=_tooling(findings, main),
        findings=findings,
        probes=tuple(discovery.probed),
        evidence=tuple(client.exchanges),
        spent=client.spent,
        base=way.route.target if way is not None else "",
        complete=not stopped,
        stopped=stopped,
    )


def _value(findings: tuple[Finding, ...], probe: str) -> Any:
    """The value of a finding that is not an entry of a profile."""
    return next((one.value for one in findings if one.probe == probe and not one.key), None)


def _tooling(findings: tuple[Finding, ...], protocol: str) -> ToolingInfo:
    native = _value(findings, "replies.native")
    dialect = str(_value(findings, "replies.dialect") or "")
    example = str(_value(findings, "replies.example") or "")
    has_tools = _value(findings, "endpoint.tools")
    if native:
        form: Any = "json"
    elif dialect:
        form = "xml" if _TAGGED.search(example) else "json" if example.lstrip().startswith(("{", "[")) else "custom"
    else:
        form = "none" if has_tools is False else "custom" if native is False else "none"
    return ToolingInfo(
        format=form,
        example=example,
        parser=dialect or (protocol if native else ""),
        quirks=tuple(dict.fromkeys(one.quirk for one in findings if one.quirk)),
        schema_style=get(protocol).tool_style if protocol else "custom",
        native=native,
        parallel=_value(findings, "replies.parallel"),
        dialect=dialect,
    )
