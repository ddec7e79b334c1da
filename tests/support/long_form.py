"""Whether tests run in their long form, with more kills and longer sessions: `make soak` sets `HOSTILE_LONG`."""

from __future__ import annotations

import os
from typing import Final

IS_LONG: Final = "HOSTILE_LONG" in os.environ
