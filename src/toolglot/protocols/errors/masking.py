"""Keys and tokens that providers repeat in their error messages, made unreadable.

Law: masking twice is masking once, and time is linear in the text: whatever is looked for beyond what is masked is of
bounded length. What is left of a key is its well-known prefix, or what it was called, so that a reader still sees which
kind of key was meant. Where it is in doubt whether something is a secret, it is taken for one; words are not.
"""

from __future__ import annotations

import re
from typing import Final

MASK: Final = "***"

_PREFIXED: Final = (
    *("sk-", "pk-", "rk-", "csk-", "xai-", "pplx-", "nvapi-", "gsk_", "hf_", "fw_", "r8_", "tgp_v1_", "ghp_"),
    *("gho_", "ghu_", "ghs_", "ghr_", "glpat-", "xoxb-", "xoxp-", "sk_live_", "rk_live_"),
    *("tgk_", r"co_(?=[A-Za-z]{0,40}[0-9])", "github_pat_", "bedrock-api-key-", "ABSK", "AKIA", "ASIA", "AIza"),
    *(r"AQ\.", r"ya29\."),
)
_QUOTE: Final = r"[\\\"'`]{0,4}"
"""What may stand around a name or before a value, also in JSON that stands in a text."""
_IS: Final = rf"{_QUOTE}[ \t]{{0,4}}[:=][ \t]{{0,4}}{_QUOTE}"
_VALUE: Final = r"(?:[^\s\"'`<>,;&\\]|\\(?![\"']))"
"""A character of a value: a backslash too, unless it stands before the quote that ends it."""
_DIGIT: Final = rf"(?={_VALUE}{{0,100}}[0-9])"
"""Prose has no digits."""
_NAMES: Final = (
    r"api[-_ ]?key(?:[ ](?:provided|is))?"
    r"|(?:access|auth|refresh|session|security|id|api|bearer)[-_ ]?token"
    r"|(?:account|private|signing|subscription|access)[-_ ]?key"
    r"|pass(?:word|wd|phrase)"
    r"|secret(?:[-_ ]?(?:access[-_ ]?)?key)?"
)
_SECRETS: Final = re.compile(
    # A key with a known prefix; providers already put asterisks into the middle of some.
    rf"(?<![A-Za-z0-9])(?P<prefix>{'|'.join(_PREFIXED)})[A-Za-z0-9_*.+/=-]{{6,}}"
    # A web token. What may stand before it may not stand in it, or a row of them would take quadratic time.
    r"|(?<![A-Za-z0-9_-])(?P<token>eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]{4,}"
    # What stands in an authorisation header.
    rf"|(?P<header>(?i:authorization){_IS}(?:(?i:bearer|basic|token|api-?key|key)[ \t\xa0]{{1,4}})?)"
    rf"(?={_VALUE}{{0,100}}[0-9*_.=-]){_VALUE}{{6,}}"
    rf"|(?P<scheme>\b(?i:bearer)(?:[ \t\xa0]{{1,4}}|[ \t]{{0,4}}[:=][ \t]{{0,4}}){_QUOTE})"
    rf"(?={_VALUE}{{0,100}}[0-9*_.=-]|[A-Za-z]{{20}}){_VALUE}{{6,}}"
    rf"|(?P<basic>\b(?i:basic)[ \t\xa0]{{1,4}}{_QUOTE})"
    r"(?=[A-Za-z0-9+/]{0,100}(?:[0-9=]|[a-z][A-Z]))[A-Za-z0-9+/]{6,}={0,2}"
    # A value that is called a secret.
    rf"|(?P<name>(?i:{_NAMES}){_IS}){_DIGIT}{_VALUE}{{4,}}"
    rf"|(?P<option>(?i:{_NAMES})=){_VALUE}{{6,}}"
    rf"|(?P<field>(?<![A-Za-z0-9_])(?:[Kk]ey|KEY|[Tt]oken|TOKEN){_IS}){_DIGIT}{_VALUE}{{8,}}"
    rf"|(?P<signed>(?i:signature)=){_DIGIT}{_VALUE}{{8,}}"
    # One that follows its name without a sign between them: what looks like nothing but a key.
    r"|(?P<said>(?i:key|token|secret|password)[ \t]{1,4}[\\\"'`(]{0,4})(?:(?=[A-Za-z]{0,100}[0-9])[A-Za-z0-9]{20,}"
    r"|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})[A-Za-z0-9_+/=-]*"
    # The password of an address, a private key, what a browser is known by.
    r"|(?P<address>://[^\s/:@\"'<>]{0,100}:)[^\s/@\"'<>]{1,1000}(?=@)"
    r"|(?P<pem>-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:\\[nr]|\s){0,4})[A-Za-z0-9+/=]{16,}[A-Za-z0-9+/=\s\\]*"
    r"|(?P<cookie>(?i:cookie)[ \t]{0,2}:[ \t]{0,4}[^\s=;,\"']{1,100}=)[^\n\"'<>]{6,}"
)
_CLOSING: Final = ".:!?)]}"
"""What ends a sentence or a bracket around a value, rather than the value."""


def mask(text: str) -> str:
    """The text without secrets."""
    return _SECRETS.sub(_masked, text)


def _masked(found: re.Match[str]) -> str:
    before = found[found.lastgroup or 0]
    value = found[0][len(before) :]
    return before + MASK + value[len(value.rstrip(_CLOSING)) :]
