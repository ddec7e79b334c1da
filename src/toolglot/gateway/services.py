"""What the requests of a gateway share."""

from __future__ import annotations

from msgspec import Struct

from toolglot.gateway.chain import Chain
from toolglot.gateway.choosing import Rotation
from toolglot.gateway.config import Config
from toolglot.gateway.keys import KeyRing
from toolglot.gateway.metering import Meter
from toolglot.gateway.own_keys import OwnKeys
from toolglot.gateway.routing import Router
from toolglot.gateway.store_watch import StoreWatch
from toolglot.gateway.stored_responses import StoredResponses
from toolglot.gateway.upstreams import Upstreams
from toolglot.gateway.vault import Vault
from toolglot.limits import Limits


class Services(Struct, frozen=True):
    """What the requests of a gateway share."""

    config: Config
    limits: Limits
    """Of requests."""
    answer_limits: Limits
    """Of the answers of upstreams."""
    router: Router
    upstreams: Upstreams
    rotation: Rotation
    vault: Vault
    responses: StoredResponses
    chain: Chain
    own_keys: OwnKeys
    ring: KeyRing
    meter: Meter
    store_watch: StoreWatch
