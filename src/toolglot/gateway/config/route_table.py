"""The settings of a name in `[models]`, over those of the client and of the upstream.

    [models.careful]
    to = ["anthropic/claude-opus-5", { to = "openai/gpt-5.5", force = { reasoning_effort = "high" } }]
    system = "Answer in English."
    default = { max_tokens = 16000 }         for what the client leaves out
    force = { temperature = 0 }              instead of what the client sends
    policy = { stream_calls = "whole" }
    retries = 2

A target's own table overrides that of its name, and the table of a name that of another name that it leads to.

Law: after reading, everything has been checked: profiles exist, headers can be sent, policies are known.
`upstream/routing/request_settings.py` applies them to a request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from toolglot.errors import InputError
from toolglot.gateway.config.file import ConfigText, read_table, unknown_key
from toolglot.gateway.config.upstream_values import HEADERS, Seconds, read_headers, read_target
from toolglot.policy import Policy
from toolglot.profiles import Overrides
from toolglot.upstream.secret import Secret
from toolglot.upstream.settings import RequestSettings, RetrySettings, RouteSettings

T = TypeVar("T", bound=Struct)

MAX_SYSTEM: Final = 100_000
"""Characters of a system prompt."""


class RouteTable(Struct, frozen=True, kw_only=True):
    """`[models.NAME]`, besides `to`, `weights` and `each`."""

    system: Annotated[
        str,
        Meta(
            max_length=MAX_SYSTEM,
            title=f"a string of at most {MAX_SYSTEM} characters",
            description="A system prompt that is put before the client's.",
        ),
    ] = ""
    default: Annotated[
        dict[str, Any],
        Meta(title="a table", description="[Settings](#default-and-force) for what the client leaves out."),
    ] = {}
    force: Annotated[
        dict[str, Any],
        Meta(title="a table", description="[Settings](#default-and-force) that replace the client's."),
    ] = {}
    policy: Annotated[
        dict[str, Any],
        Meta(title="a table", description="Fields of [`[policy]`](#policy) that differ for this name."),
    ] = {}
    target: Annotated[
        str,
        Meta(
            title="a string",
            description="The [profile](profiles.md) to use for its upstream, built-in or your own.",
        ),
    ] = ""
    headers: HEADERS = {}
    retries: Annotated[
        Annotated[int, Meta(ge=0, le=10)] | None,
        Meta(title="a whole number from 0 to 10", description="As for an upstream, instead of its own."),
    ] = None
    retry_seconds: Annotated[
        Annotated[float, Meta(ge=0, le=600)] | None,
        Meta(title="a number of seconds", description="The same."),
    ] = None
    connect_seconds: Annotated[Seconds | None, Meta(title="a number of seconds above 0", description="The same.")] = (
        None
    )
    first_byte_seconds: Annotated[
        Seconds | None, Meta(title="a number of seconds above 0", description="The same.")
    ] = None
    idle_seconds: Annotated[Seconds | None, Meta(title="a number of seconds above 0", description="The same.")] = None


ROUTE_SETTINGS: Final = RouteTable.__struct_fields__
_RETRY: Final = ("retries", "retry_seconds", "connect_seconds", "first_byte_seconds", "idle_seconds")


class CheckedTable(Struct, frozen=True, kw_only=True):
    """A checked table, before it is merged with those around it."""

    system: str = ""
    default: RequestSettings = RequestSettings()
    force: RequestSettings = RequestSettings()
    policy: dict[str, Any] = {}
    target: str = ""
    headers: dict[str, Secret] = {}
    retry: RetrySettings = RetrySettings()

    def over(self, other: CheckedTable) -> CheckedTable:
        """Both tables; this one takes precedence."""
        if self is NOTHING or other is NOTHING:
            return other if self is NOTHING else self
        return CheckedTable(
            system=self.system or other.system,
            default=_merge(self.default, other.default),
            force=_merge(self.force, other.force),
            policy={**other.policy, **self.policy},
            target=self.target or other.target,
            headers={**other.headers, **self.headers},
            retry=_merge(self.retry, other.retry),
        )

    def settings(self, name: str, policy: Policy) -> RouteSettings | None:
        """The settings of an entry; None: it has none."""
        if self == NOTHING:
            return None
        return RouteSettings(
            name=name,
            system=self.system,
            default=self.default,
            force=self.force,
            policy=replace(policy, **self.policy) if self.policy else None,
            target=self.target,
            headers=self.headers,
            retry=self.retry,
        )


NOTHING: Final = CheckedTable()


class RouteReader(Struct, frozen=True):
    """Reads the settings of names."""

    text: ConfigText
    environ: Mapping[str, str]
    overrides: Overrides | None
    policy: Policy

    def read(self, value: Mapping[str, Any], *at: str) -> CheckedTable:
        """The settings of a table, all of which have known names."""
        if not value:
            return NOTHING
        table = read_table(dict(value), RouteTable, self.text, *at)
        return CheckedTable(
            system=table.system,
            default=read_table(table.default, RequestSettings, self.text, *at, "default"),
            force=read_table(table.force, RequestSettings, self.text, *at, "force"),
            policy=self._policy(table.policy, *at, "policy"),
            target=read_target(table.target, self.overrides, self.text, *at, "target") if table.target else "",
            headers=read_headers(table.headers, self.environ, self.text, *at, "headers"),
            retry=RetrySettings(**{name: getattr(table, name) for name in _RETRY}),
        )

    def _policy(self, table: dict[str, Any], *at: str) -> dict[str, Any]:
        read_policy(table, self.policy, self.text, *at)
        return table


def read_policy(table: dict[str, Any], base: Policy, text: ConfigText, *at: str) -> Policy:
    """A policy with other values for some fields."""
    known = list(Policy.__struct_fields__)
    for key in table:
        if key not in known:
            raise unknown_key(key, known, text, *at)
    try:
        return replace(base, **table)
    except InputError as error:
        field = error.path.removeprefix("policy.")
        raise text.error(error.message, *at, field, hint=error.hint or "see docs/convert.md") from None


def _merge(one: T, other: T) -> T:
    return replace(other, **{name: value for name, value in asdict(one).items() if value is not None})
