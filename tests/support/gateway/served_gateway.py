"""A gateway on loopback in front of the strict simulator, for tests with real clients.

with simulator.serve(script) as simulated, gateway(simulated) as served:
    client = openai.OpenAI(base_url=served.url + "/v1", api_key="k")
    client.chat.completions.create(model="mistral/mistral-large-latest", …)
served.records[-1].route.upstream
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from support.waiting import wait_until
from toolglot.gateway import Gateway, Upstreams, running
from toolglot.gateway.config.file import ConfigText
from toolglot.gateway.config.settings import Config, parse_config
from toolglot.gateway.observability.request_log import RequestLog
from toolglot.gateway.observability.request_record import RequestRecord
from toolglot.middleware import ToolMiddleware
from toolglot.simulator.serving import Server

UPSTREAMS = {
    "anthropic": ("anthropic", ""),
    "openai": ("openai", ""),
    "openai_chat": ("openai", "openai"),
    "openai_responses": ("openai", "openai_responses"),
    "gemini": ("gemini", ""),
    "mistral": ("mistral", ""),
    "deepseek": ("deepseek", ""),
    "kimi": ("kimi", ""),
    "ollama": ("ollama", ""),
    "cohere": ("cohere", ""),
    "bedrock": ("bedrock", ""),
    "vertex_claude": ("vertex_claude", ""),
    "xai": ("xai", ""),
    "vllm": ("vllm", ""),
}
"""Upstreams by name: the provider, and the profile where it is not the provider's own choice."""


class Served:
    """A gateway that runs."""

    def __init__(self, url: str, app: Gateway) -> None:
        self.url = url
        self.app = app
        self._records: list[RequestRecord] = []
        app.request_log.listeners.append(self._records.append)

    @property
    def records(self) -> list[RequestRecord]:
        """Every request that is over. A client has its answer a moment before the gateway is done with the request."""
        wait_until(lambda: self.app.open == 0)
        return self._records


def upstream_lines(simulated: Server) -> list[str]:
    """Every simulated provider as an upstream over HTTP, as a configuration has them."""
    lines: list[str] = []
    for name, (provider, target) in UPSTREAMS.items():
        lines += [f"[upstreams.{name}]", f'provider = "{provider}"', f'url = "{simulated.url(provider)}"']
        lines += ["breaker_failures = 10000"]  # tests order more faults in a row than a provider has
        lines += ['key_env = "SIMULATED_KEY"', 'auth = "bearer"' if provider == "bedrock" else ""]
        lines += [f'target = "{target}"'] if target else []
    return lines


def config_for(
    simulated: Server | None,
    *,
    models: Mapping[str, str] | None = None,
    settings: str = "",
    upstreams: str = "",
    environ: Mapping[str, str] | None = None,
) -> Config:
    """A configuration with every simulated provider as an upstream over HTTP; `models` as in its section."""
    variables = dict(environ or {})
    lines = ["[gateway]", 'log = "off"']
    if "store" not in settings:
        lines.append('store = ":memory:"')
    lines.append(settings)
    lines += upstream_lines(simulated) if simulated is not None else []
    lines += [upstreams, "[models]", *(f'"{name}" = {_value(goal)}' for name, goal in (models or {}).items())]
    return parse_config(
        ConfigText("test.toml", "\n".join(lines)), {"SIMULATED_KEY": "simulated-key", "HOME": "/nowhere", **variables}
    )


def _value(goal: str) -> str:
    """A goal as the file has it: a name in quotes, a list or a table as they are."""
    return goal if goal.startswith(("[", "{")) else f'"{goal}"'


@contextlib.contextmanager
def gateway(
    simulated: Server | None,
    *,
    models: Mapping[str, str] | None = None,
    settings: str = "",
    upstreams: str = "",
    environ: Mapping[str, str] | None = None,
    middleware: Sequence[ToolMiddleware] = (),
) -> Iterator[Served]:
    """The gateway as long as the block lasts."""
    config = config_for(simulated, models=models, settings=settings, upstreams=upstreams, environ=environ)
    app = Gateway(
        config,
        middleware=middleware,
        upstreams=Upstreams(config),
        request_log=RequestLog(max_remembered=1000, form="off"),
    )
    with running(app) as url:
        yield Served(url, app)
