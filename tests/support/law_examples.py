"""How many examples the laws of rendering and converting get, in the suite and in `make soak`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

IS_SOAK = settings.get_current_profile_name() == "soak"

MANY = settings(
    max_examples=int(os.environ.get("SOAK_EXAMPLES", "200000")) if IS_SOAK else 2000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)
SOME = settings(MANY, max_examples=MANY.max_examples if IS_SOAK else 400)
"""For laws of one part of a request, and those whose examples take long."""
