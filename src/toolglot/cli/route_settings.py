"""What a name of `[models]` says besides where it leads, for a session that is asked by that name.

    as_set = applied(models.route("careful"), base=config.policy, tools=box.specs)
    Session(options=as_set.options, policy=as_set.policy, …)

Headers, patience and the profile are set on the upstream by whoever finds it. What a session cannot follow, because it
is one conversation with one set of options, is listed in `left_out`.

Law: nothing of an entry is ignored in silence.
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


class AsSet(Struct, frozen=True, kw_only=True):
    """How a session is to be run for a name."""

    system: str = ""
    options: Options = Options()
    policy: Policy
    left_out: tuple[str, ...] = ()
    """What does not hold here, in the words of the configuration."""


def applied(route: Route, *, base: Policy, tools: Sequence[ToolSpec] = ()) -> AsSet:
    """What an entry comes to. A session finds results by their ids as it gave them, whatever a policy says."""
    settings = route.settings
    left_out = [*_of_spread(route), *_of_stand_ins(route)]
    if settings is None:
        return AsSet(policy=replace(base, ids="canonical"), left_out=tuple(left_out))
    for kind, wanted in (("default", settings.default), ("force", settings.force)):
        if wanted.tool_choice == "required":
            left_out.append(f"{kind}.tool_choice = 'required', with which no answer would ever end")
    plain = replace(settings, system="", default=_endable(settings.default), force=_endable(settings.force))
    asked, _ = apply_settings(Conversation(tools=tuple(tools)), plain)
    return AsSet(
        system=settings.system,
        options=asked.options,
        policy=replace(settings.policy or base, ids="canonical"),
        left_out=tuple(left_out),
    )


def is_same(one: RouteSettings | None, other: RouteSettings | None) -> bool:
    """Whether a session that is run as one of them says is run as the other says."""
    return _of_session(one) == _of_session(other)


def _of_session(settings: RouteSettings | None) -> tuple[str, RequestSettings, RequestSettings, Policy | None]:
    if settings is None:
        return "", RequestSettings(), RequestSettings(), None
    return settings.system, settings.default, settings.force, settings.policy


def _endable(wanted: RequestSettings) -> RequestSettings:
    return replace(wanted, tool_choice=None) if wanted.tool_choice == "required" else wanted


def _of_spread(route: Route) -> list[str]:
    return ["weights: the first target is asked, and the others stand in"] if route.weights else []


def _of_stand_ins(route: Route) -> list[str]:
    others = [other for other in route.others if not is_same(other.settings, route.settings)]
    named = ", ".join(f"{other.upstream_name}/{other.model}" for other in others[:4])
    return [f"what is set for {named} alone: it gets what is set for the first target"] if others else []
