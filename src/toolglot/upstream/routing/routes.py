"""What a router works on, as values: the entries of `[models]`, routes, and the table that it finds them in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from toolglot.upstream.routing.model_names import SIMULATED, Destination, SimulatedNames
from toolglot.upstream.settings import RouteSettings

Each = Literal["conversation", "request"]
EntryKind = Literal["name", "tier", "pattern", "rest"]
"""`tier`: the name itself, and every name that has it as a word. `rest`: `*`, every name that nothing else matches."""


class ModelEntry(Struct, frozen=True):
    """A line of `[models]`."""

    name: str
    """As it is written there."""
    kind: EntryKind
    destinations: tuple[Destination, ...]
    """In the order in which they are called until one answers; at least one."""
    weights: tuple[float, ...] = ()
    """How conversations are spread over the destinations; empty: they are called in their order."""
    each: Each = "conversation"
    """What is spread: whole conversations, or single requests."""
    settings: tuple[RouteSettings | None, ...] = ()
    """The settings of each destination; empty: none."""

    @property
    def destination(self) -> Destination:
        return self.destinations[0]


class Route(Struct, frozen=True, kw_only=True):
    """The upstream and the model of a request."""

    upstream_name: str
    """A name of the table's `upstreams`; if `simulated` is set, the provider that is simulated."""
    model: str
    """The model's name at the upstream."""
    alias_of: str = ""
    """The entry of `[models]` that decided, as it is written there; empty: none."""
    simulated: bool = False
    is_in_place: bool = False
    """A simulated model answers for a real one, because nothing is configured."""
    others: tuple[Route, ...] = ()
    """Where it goes if this one fails."""
    weights: tuple[float, ...] = ()
    """How conversations are spread over this one and the others; empty: the others are for failover only."""
    each: Each = "conversation"
    """What is spread: whole conversations, or single requests."""
    settings: RouteSettings | None = None
    """The settings of the entry; None: it has none."""

    @property
    def name(self) -> str:
        """The name that leads here and nowhere else: `upstream/model`, or `simulated/provider/model`."""
        prefix = f"{SIMULATED}/" if self.simulated else ""
        return f"{prefix}{self.upstream_name}/{self.model}"


class Listed(NamedTuple):
    """A model of a listing."""

    name: str
    """What a client writes."""
    upstream_name: str
    model: str
    simulated: bool = False


class RoutableUpstream(Protocol):
    """What a router has to know of an upstream."""

    @property
    def name(self) -> str: ...

    @property
    def provider(self) -> str:
        """The provider that toolglot knows, whose models' names lead here; empty: none."""
        ...

    @property
    def models(self) -> tuple[str, ...]:
        """Models and patterns that lead here without a prefix."""
        ...


class RoutingTable(Protocol):
    """All upstreams and names. The gateway's `Config` is one."""

    @property
    def upstreams(self) -> Mapping[str, RoutableUpstream]:
        """By name, in the order in which they are searched."""
        ...

    @property
    def models(self) -> tuple[ModelEntry, ...]: ...

    @property
    def left_out(self) -> Mapping[str, str]:
        """Why a provider that has a key is not among the upstreams."""
        ...

    @property
    def origin(self) -> str:
        """The configuration file; empty: there is none."""
        ...

    @property
    def is_configurable(self) -> bool:
        """Whether errors can suggest what to write into a configuration file."""
        ...

    @property
    def allows_simulated(self) -> bool:
        """Whether names that begin with `simulated/` have a route."""
        ...

    @property
    def simulates_known(self) -> bool:
        """Whether simulated models answer to the names of known models."""
        ...

    @property
    def lists_simulated(self) -> bool: ...

    @property
    def simulated(self) -> SimulatedNames: ...
