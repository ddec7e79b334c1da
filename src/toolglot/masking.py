"""Masks secrets, for all of toolglot.

    mask("invalid key sk-ant-api03-abcdefgh…")            # "invalid key sk-***": by how a secret looks
    KnownSecrets([key]).mask("invalid key my-own-key")    # "invalid key ***": by the secret itself
    is_secret_name("X-Api-Key")                           # True: by the name of a header

Laws: masking twice is masking once, and time is linear in the text: look-aheads are of bounded length. A long text is
masked as a short one is. The well-known prefix of a secret, or its name, stays, so that a reader sees which kind of
secret it was. What may be a secret is masked; words are not.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final
from urllib.parse import quote

MASK: Final = "***"
MIN_LENGTH: Final = 12
"""The shortest known secret that is masked. A shorter one may be a word: `ollama` is a common key."""

SECRET_HEADERS: Final = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"}
)
"""Headers whose values are secrets, whatever they look like."""
_SECRET_NAME: Final = re.compile(r"auth|key|token|secret|cookie|passw|session|signature", re.IGNORECASE)
_SECRET_PARAMETER: Final = re.compile(r"pass|secret|token|key", re.IGNORECASE)
_SCHEME: Final = re.compile(r"(?i:bearer|basic|token)\s+")

_PREFIXED: Final = (
    *("sk-", "pk-", "rk-", "csk-", "pplx-", "nvapi-", "gsk_", "hf_", "fw_", "r8_", "tgp_v1_", "ghp_"),
    r"xai-(?=[A-Za-z]{0,40}[0-9*])(?=[A-Za-z0-9*.]{6})",  # rules of xAI are named xai-45-efforts and so on
    *("gho_", "ghu_", "ghs_", "ghr_", "glpat-", "xoxb-", "xoxp-", "sk_live_", "rk_live_"),
    *("tgk_", r"co_(?=[A-Za-z]{0,40}[0-9])", "github_pat_", "bedrock-api-key-", "ABSK", "AKIA", "ASIA", "AIza"),
    *(r"AQ\.", r"ya29\."),
)
_QUOTE: Final = r"[\\\"'`]{0,4}"
"""What can be around a name or before a value, also in JSON inside a string."""
_IS: Final = rf"{_QUOTE}[ \t]{{0,4}}[:=][ \t]{{0,4}}{_QUOTE}"
_VALUE: Final = r"(?:[^\s\"'`<>,;&\\]|\\(?![\"']))"
"""A character of a value: a backslash too, unless the quote that ends the value follows."""
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
    # A web token. What can be before it cannot be in it, or a row of them would take quadratic time.
    r"|(?<![A-Za-z0-9_-])(?P<token>eyJ)[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_.-]{4,}"
    # The value of an authorization header.
    rf"|(?P<header>(?i:authorization){_IS}(?:(?i:bearer|basic|token|api-?key|key)[ \t\xa0]{{1,4}})?)"
    rf"(?={_VALUE}{{0,100}}[0-9*_.=-]){_VALUE}{{6,}}"
    rf"|(?P<scheme>\b(?i:bearer)(?:[ \t\xa0]{{1,4}}|[ \t]{{0,4}}[:=][ \t]{{0,4}}){_QUOTE})"
    rf"(?={_VALUE}{{0,100}}[0-9*_.=-]|[A-Za-z]{{20}}){_VALUE}{{6,}}"
    rf"|(?P<basic>\b(?i:basic)[ \t\xa0]{{1,4}}{_QUOTE})"
    r"(?=[A-Za-z0-9+/]{0,100}(?:[0-9=]|[a-z][A-Z]))[A-Za-z0-9+/]{6,}={0,2}"
    # A value with the name of a secret.
    rf"|(?P<name>(?i:{_NAMES}){_IS}){_DIGIT}{_VALUE}{{4,}}"
    rf"|(?P<option>(?i:{_NAMES})=){_VALUE}{{6,}}"
    rf"|(?P<field>(?<![A-Za-z0-9_])(?:[Kk]ey|KEY|[Tt]oken|TOKEN){_IS}){_DIGIT}{_VALUE}{{8,}}"
    rf"|(?P<signed>(?i:signature)=){_DIGIT}{_VALUE}{{8,}}"
    # One that follows its name without a sign between them, and looks like a key.
    r"|(?P<word>(?i:key|token|secret|password)[ \t]{1,4}[\\\"'`(]{0,4})(?:(?=[A-Za-z]{0,100}[0-9])[A-Za-z0-9]{20,}"
    r"|[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12})[A-Za-z0-9_+/=-]*"
    # The password of an address, a private key, a cookie.
    r"|(?P<address>://[^\s/:@\"'<>]{0,100}:)[^\s/@\"'<>]{1,1000}(?=@)"
    r"|(?P<pem>-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----(?:\\[nr]|\s){0,4})[A-Za-z0-9+/=]{16,}[A-Za-z0-9+/=\s\\]*"
    r"|(?P<cookie>(?i:cookie)[ \t]{0,2}:[ \t]{0,4}[^\s=;,\"']{1,100}=)[^\n\"'<>]{6,}"
)
_CLOSING: Final = ".:!?)]}"
"""What ends a sentence or a bracket around a value, rather than the value."""


_LONG: Final = 4_000
"""Characters from which on the places where a secret can begin are looked for first: ten times as fast."""
_FOLDED: Final = re.compile("[\u0130\u0131\u017f\u212a]")
"""Letters that are ASCII letters to a pattern without case, and something else in lowercase."""
_STEMS: Final = (*("key", "token", "pass", "secret", "authorization", "bearer", "basic", "signature", "cookie", "://"),)
"""What the pattern of a secret begins with, in lowercase, or what the first word of its name is followed by."""
_PREFIXES: Final = tuple(re.sub(r"\\|\(\?=.*", "", prefix) for prefix in _PREFIXED)
_BY_SIGN: Final = {sign: tuple(prefix for prefix in _PREFIXES if prefix.endswith(sign)) for sign in "-_"}
"""Prefixes that end with a sign, which is rarer than the letters before it."""
_OTHER_PREFIXES: Final = ("eyJ", "-----BEGIN ", *(prefix for prefix in _PREFIXES if prefix[-1] not in "-_"))
_MAX_PREFIX: Final = max(map(len, _PREFIXES))
_FIRST_WORD: Final = re.compile(
    r"(?:api|access|auth|refresh|session|security|id|bearer|account|private|signing|subscription)[-_ ]?\Z"
)
_MAX_WORD: Final = 13
"""Characters of such a word, and of what is behind it."""


def mask(text: str) -> str:
    """Mask what looks like a secret."""
    if len(text) < _LONG or _FOLDED.search(text) is not None:
        return _SECRETS.sub(_mask_match, text)
    parts: list[str] = []
    end = 0
    for start in _possible_starts(text):
        found = _SECRETS.match(text, start) if start >= end else None
        if found is not None:
            parts += (text[end:start], _mask_match(found))
            end = found.end()
    return "".join((*parts, text[end:])) if parts else text


def _possible_starts(text: str) -> list[int]:
    """Everywhere a secret can begin: all other positions need not be tried."""
    starts: set[int] = set()
    for prefix in _OTHER_PREFIXES:
        starts.update(_positions(text, prefix))
    for sign, prefixes in _BY_SIGN.items():
        for position in _positions(text, sign):
            before = text[max(0, position - _MAX_PREFIX) : position + 1]
            if before.endswith(prefixes):
                starts.update(position + 1 - len(prefix) for prefix in prefixes if before.endswith(prefix))
    lowered = text.lower()
    for stem in _STEMS:
        found = [*_positions(lowered, stem)]
        starts.update(found)
        for start in found if stem in ("key", "token") else ():
            word = _FIRST_WORD.search(lowered[max(0, start - _MAX_WORD) : start])
            if word is not None:
                starts.add(start - len(word[0]))
    return sorted(starts)


def _positions(text: str, part: str) -> Iterator[int]:
    """Everywhere a part is in a text."""
    position = text.find(part)
    while position >= 0:
        yield position
        position = text.find(part, position + 1)


def _mask_match(found: re.Match[str]) -> str:
    before = found[found.lastgroup or 0]
    value = found[0][len(before) :]
    return before + MASK + value[len(value.rstrip(_CLOSING)) :]


# --- secrets that are known -------------------------------------------------------------------------


class KnownSecrets:
    """Secrets that a text may repeat, whatever they look like.

    encoded: also as they are in JSON, in a URL, in base64 and backwards.
    """

    def __init__(self, secrets: Iterable[str], *, min_length: int = MIN_LENGTH, encoded: bool = False) -> None:
        known = {secret for secret in secrets if len(secret) >= max(min_length, 1)}
        if encoded:
            known = {form for secret in known for form in _encodings(secret)}
        # Long ones first: one secret may begin with another.
        pattern = "|".join(map(re.escape, sorted(known, key=lambda form: (-len(form), form))))
        self._text = re.compile(pattern) if known else None
        self._data = re.compile(pattern.encode(errors="surrogatepass")) if known else None

    def mask(self, text: str) -> str:
        return self._text.sub(MASK, text) if self._text is not None else text

    def mask_bytes(self, data: bytes) -> bytes:
        return self._data.sub(MASK.encode(), data) if self._data is not None else data


def _encodings(secret: str) -> tuple[str, ...]:
    raw = secret.encode(errors="surrogatepass")
    in_base64 = base64.b64encode(raw).decode().rstrip("=")
    return secret, json.dumps(secret)[1:-1], quote(secret, safe="", errors="replace"), in_base64, secret[::-1]


# --- names of secrets -------------------------------------------------------------------------------


def is_secret_name(header: str) -> bool:
    """Whether the value of a header with this name is secret."""
    return _SECRET_NAME.search(header) is not None


def is_secret_parameter(name: str) -> bool:
    """The same for a parameter of an address."""
    return _SECRET_PARAMETER.search(name) is not None


def header_secrets(headers: Mapping[str, str]) -> Iterator[str]:
    """The secrets among the values of headers, without the scheme before them."""
    for name, value in headers.items():
        if is_secret_name(name):
            yield _SCHEME.sub("", value, count=1)
