"""What a request will probably use, before its reply is there: from its length, and from what its client used before.

Laws: an estimate of a reply is never above what the request allows. What is remembered is bounded: one number for the
prompt and one for the reply of each client and model.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Final

BYTES_PER_TOKEN: Final = 4
MAX_ESTIMATED: Final = 32_000
"""Tokens of a prompt of a client that is not known: a long body may be an image."""
UNKNOWN_REPLY: Final = 8_192
"""Tokens of a reply that has no limit, of a client that is not known."""
MARGIN: Final = 1.25
"""How much longer than the longest of the last replies the next one may be."""
FADING: Final = 0.9
"""What a long reply counts, as a share, at the next one: after ten, a third."""
MIN_REPLY: Final = 16
MOST: Final = 10_000_000
"""Tokens that an estimate has at most, whatever a client allows."""
MAX_REMEMBERED: Final = 10_000


class CostEstimates:
    """What the clients of a process usually use."""

    def __init__(self) -> None:
        self._typical: OrderedDict[tuple[str, str], tuple[float, float]] = OrderedDict()
        """Tokens of a prompt for each byte, and tokens of a reply, by client and model: the most, fading."""

    def of(self, client: str, model: str, size: int, max_output: int | None) -> tuple[int, int]:
        """The tokens of the prompt and of the reply. `max_output`: what the request allows; None: anything."""
        if max_output is not None:
            max_output = min(max(max_output, 0), MOST)
        known = self._typical.get((client, model))
        if known is None:
            return min(size // BYTES_PER_TOKEN, MAX_ESTIMATED), UNKNOWN_REPLY if max_output is None else max_output
        likely = max(MIN_REPLY, int(known[1] * MARGIN))
        return int(size * known[0]), likely if max_output is None else min(likely, max_output)

    def learn(self, client: str, model: str, size: int, counts: Mapping[str, int]) -> None:
        """What a request of so many bytes has used."""
        if "input_tokens" not in counts or "output_tokens" not in counts:
            return
        ratio, output = counts["input_tokens"] / max(size, 1), float(counts["output_tokens"])
        before = self._typical.pop((client, model), (0.0, 0.0))
        self._typical[client, model] = (max(ratio, before[0] * FADING), max(output, before[1] * FADING))
        if len(self._typical) > MAX_REMEMBERED:
            self._typical.popitem(last=False)
