"""Keys and tokens that providers repeat in their error messages, made unreadable.

Law: masking twice is masking once, and time is linear in the text. What is left of a key is its well-known
prefix, so that a reader still sees which kind of key was meant.
"""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "***"

_PREFIXED: Final = (
    *("sk-", "pk-", "rk-", "csk-", "xai-", "pplx-", "nvapi-", "gsk_", "hf_", "fw_", "r8_", "tgp_v1_", "ghp_"),
    *("gho_", "ghu_", "ghs_", "ghr_", "glpat-", "xoxb-", "xoxp-", "sk_live_", "rk_live_", "co_"),
    *("github_pat_", "bedrock-api-key-", "ABSK", "AKIA", "ASIA", "AIza", r"AQ\.", r"ya29\."),
)
_SECRETS: Final = re.compile(
    # A key with a known prefix; providers already put asterisks into the middle of some.
    rf"(?<![A-Za-z0-9])(?P<prefix>{'|'.join(_PREFIXED)})[A-Za-z0-9_*.+/=-]{{6,}}"
    # A web token. What may stand before it may not stand in it, or a row of them would take quadratic time.
    r"|(?<![A-Za-z0-9_-])(?P<token>eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]{4,}"
    # What stands in an authorisation header.
    r"|(?P<scheme>\b(?:[Bb]earer|[Bb]asic)[ \t]{1,4})(?=[^\s\"'<>]{0,100}[0-9*_.=-])[^\s\"'<>,;]{6,}"
    # A value that is called a key; prose has no digits.
    r"|(?P<name>\b(?:(?i:api[-_ ]?key(?:[ ]provided)?|(?:access|auth)[-_ ]?token|password"
    r"|secret(?:[-_ ]?(?:access[-_ ]?)?key)?)|key|token)[\"']?[ \t]{0,4}[:=]"
    r"[ \t]{0,4}[\"']?)(?=[^\s\"'<>,;&]{0,100}[0-9])[^\s\"'<>,;&]{8,}"
)
_GROUPS: Final = ("prefix", "token", "scheme", "name")


def mask(text: str) -> str:
    """The text without secrets."""
    return _SECRETS.sub(_masked, text)


def _masked(found: re.Match[str]) -> str:
    return next(found[group] for group in _GROUPS if found[group] is not None) + MASK
