"""`[inspector]` of a configuration."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

Kept = Literal["off", "reports", "bodies"]


class InspectorSettings(Struct, frozen=True, kw_only=True):
    """`[inspector]`: what the gateway keeps of past requests, in memory. Their number is `reports` in `[gateway]`."""

    keep: Annotated[
        Kept | None,
        Meta(
            title='one of "off", "reports", "bodies"',
            description="What is kept of each request. `reports`: times, usage and what was changed. `bodies`: also "
            "the bodies of both requests and both replies, for [captures](captures.md). "
            "`off`: nothing. Default: `bodies` on loopback without client keys, otherwise `reports`.",
        ),
    ] = None
    max_bytes: Annotated[
        int,
        Meta(
            ge=1024,
            le=1 << 40,
            title="a whole number from 1024",
            description="The maximum size of everything that is kept, and of the replies in progress that will be. The "
            "oldest requests are dropped first. While several client keys are in use, each has at most half of it, "
            "and half of the number.",
        ),
    ] = 64 * 1024 * 1024
    max_hours: Annotated[
        float,
        Meta(gt=0, le=876_000, title="a number above 0", description="How long a request is kept."),
    ] = 24
