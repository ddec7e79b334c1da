"""What the requests of a gateway share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from toolglot.gateway.accounting.cache_losses import CacheWatch
from toolglot.gateway.accounting.client_keys import KeyRing
from toolglot.gateway.accounting.metering import Meter
from toolglot.gateway.config.settings import Config
from toolglot.gateway.routing.middleware_chain import GatewayMiddleware
from toolglot.gateway.routing.search_tool import SearchTool
from toolglot.gateway.routing.upstreams import Upstreams
from toolglot.gateway.state.conversations import Conversations
from toolglot.gateway.state.late_store import LateStore
from toolglot.gateway.state.owned_objects import OwnedObjects
from toolglot.gateway.state.store_watch import StoreWatch
from toolglot.gateway.state.stored_responses import StoredResponses
from toolglot.gateway.state.summaries import Summaries
from toolglot.gateway.state.vault import Vault
from toolglot.limits import Limits
from toolglot.masking import KnownSecrets
from toolglot.translate.request_memory import RequestMemory
from toolglot.upstream.routing.load_balancing import Rotation
from toolglot.upstream.routing.router import Router

if TYPE_CHECKING:
    from toolglot.gateway.endpoints.background import BackgroundRuns


class Services(Struct, frozen=True):
    """What the requests of a gateway share."""

    config: Config
    limits: Limits
    """The limits of requests."""
    reply_limits: Limits
    """The limits of the replies of upstreams."""
    router: Router
    upstreams: Upstreams
    rotation: Rotation
    vault: Vault
    summaries: Summaries
    responses: StoredResponses
    background: BackgroundRuns
    conversations: Conversations
    objects: OwnedObjects
    chain: GatewayMiddleware
    secrets: KnownSecrets
    """The gateway's own keys."""
    ring: KeyRing
    meter: Meter
    store_watch: StoreWatch
    late: LateStore | None
    """The rows that the store did not take yet; None: there is no store."""
    cache_watch: CacheWatch
    memory: RequestMemory
    """The last requests of the clients, so that what was read once is not read again."""
    search: SearchTool | None = None
    """Searches the web for upstreams that have no search of their own."""
