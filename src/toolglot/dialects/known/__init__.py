"""The dialects that come with toolglot, one file each."""

from toolglot.dialects.dialect import Dialect
from toolglot.dialects.known.hermes import HERMES
from toolglot.dialects.known.qwen3_coder import QWEN3_CODER

DIALECTS: tuple[Dialect, ...] = (HERMES, QWEN3_CODER)
