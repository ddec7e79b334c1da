"""The settings of a name of `[models]`, for a session that uses that name.

    settings = settings_for(models.route("careful"), base=config.policy, tools=box.specs)
    Session(options=settings.options, policy=settings.policy, …)

Headers, retries, timeouts and the profile are settings of the upstream. A session is one conversation with one set of
options: what it cannot apply is listed in `left_out`.

Law: nothing of an entry is ignored silently.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from toolglot.conversation import Conversation, Options, ToolSpec
from toolglot.policy import Policy
from toolglot.upstream.routing.request_settings import apply_settings
from toolglot.upstream.routing.routes import Route
from toolglot.upstream.settings import RequestSettings, RouteSettings


class RunSettings(Struct, frozen=True, kw_only=True):
    """The settings of a session for a name."""

    system: str = ""
    options: Options = Options()
    policy: Policy
    left_out: tuple[str, ...] = ()
    """What is not applied, in the words of the configuration."""


def settings_for(route: Route, *, base: Policy, tools: Sequence[ToolSpec] = ()) -> RunSettings:
    """The settings of a route. A session pairs results by canonical ids, whatever a policy says."""
    settings = route.settings
    left_out = [*_ignored_weights(route), *_ignored_settings(route)]
    if settings is None:
        return RunSettings(policy=replace(base, ids="canonical"), left_out=tuple(left_out))
    for kind, wanted in (("default", settings.default), ("force", settings.force)):
        if wanted.tool_choice == "required":
            left_out.append(f"{kind}.tool_choice = 'required', with which no reply would ever end")
    plain = replace(
        settings, system="", default=_without_required(settings.default), force=_without_required(settings.force)
    )
    conversation, _ = apply_settings(Conversation(tools=tuple(tools)), plain)
    return RunSettings(
        system=settings.system,
        options=conversation.options,
        policy=replace(settings.policy or base, ids="canonical"),
        left_out=tuple(left_out),
    )


def is_same(one: RouteSettings | None, other: RouteSettings | None) -> bool:
    """Whether two settings are the same for a session."""
    return _session_part(one) == _session_part(other)


def _session_part(settings: RouteSettings | None) -> tuple[str, RequestSettings, RequestSettings, Policy | None]:
    if settings is None:
        return "", RequestSettings(), RequestSettings(), None
    return settings.system, settings.default, settings.force, settings.policy


def _without_required(wanted: RequestSettings) -> RequestSettings:
    return replace(wanted, tool_choice=None) if wanted.tool_choice == "required" else wanted


def _ignored_weights(route: Route) -> list[str]:
    return ["weights: the first target is called, and the others are for failover"] if route.weights else []


def _ignored_settings(route: Route) -> list[str]:
    others = [other for other in route.others if not is_same(other.settings, route.settings)]
    names = ", ".join(f"{other.upstream_name}/{other.model}" for other in others[:4])
    return [f"the settings of {names} alone: the first target's apply to it too"] if others else []
