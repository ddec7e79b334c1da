"""Which pages of a search the client gets: those of the domains that it allows, and not those that it blocks.

    domains = Domains(search)
    domains.allows("https://ruby-lang.org/news")
    text, pages = filtered_result(text, search)

A result is text, or JSON. Of JSON, each object is kept or left out; of text, each paragraph, with those behind it that
name no page of their own.

Laws: no page of a domain that the client excludes is in a result, however its URL is written. Work is linear.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from toolglot import jsontext
from toolglot.conversation.web_search import FoundPage, WebSearch
from toolglot.errors import ToolglotError
from toolglot.protocols.fields.web_search import MAX_PAGES, text_of

URL: Final = re.compile(r"https?://[^\s<>\"'`)\]}\\]{1,2000}", re.IGNORECASE)
"""A page. A backslash ends it: some readers take it for a slash, and see another host before it."""
MAX_TITLE: Final = 500
MAX_HOST: Final = 253
"""Characters of the name of a host; of anything longer, the end is looked at."""
_URL_FIELDS: Final = ("url", "link", "href", "uri")
_SLASH: Final = re.compile(r"\\u002f|\\/", re.IGNORECASE)
"""A slash as JSON may write it, in text that is not JSON as a whole."""
_HOST: Final = re.compile(r"(?<![\w.-])((?:[\w-]+\.)+[\w-]+)\.?(?::\d+)?(/[^\s<>\"'`)\]}]{0,2000})?")
"""What may be a host, with a path; a URL may be written without its beginning."""
_BLANK_LINES: Final = re.compile(r"\n[^\S\n]*\n\s*")


class Domains:
    """The domains that a client allows or blocks. A domain includes its subdomains, and may name a folder."""

    def __init__(self, search: WebSearch) -> None:
        self._allowed = _folders(search.allowed_domains)
        self._blocked = _folders(search.blocked_domains)
        self.is_any: bool = not self._allowed and not self._blocked
        """Whether every domain is allowed."""

    def allows(self, url: str) -> bool:
        """Whether the client allows the domain of a URL."""
        try:
            parts = urlsplit(_plain(url))
            host, path = (parts.hostname or "").rstrip("."), parts.path
        except ValueError:
            return False
        if self._allowed and not _is_in(self._allowed, host, path):
            return False
        return not _is_in(self._blocked, host, path)

    def allows_text(self, text: str) -> bool:
        """Whether a text names only pages that the client allows."""
        plain = _plain(text)
        if not all(map(self.allows, URL.findall(plain))):
            return False
        return not self._blocked or not any(
            _is_in(self._blocked, found[1], found[2] or "") for found in _HOST.finditer(plain)
        )


def _folders(domains: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The paths that are meant, by domain."""
    found: dict[str, tuple[str, ...]] = {}
    for domain in domains:
        name, _, folder = _plain(domain).partition("/")
        name = name.strip().strip(".")
        found[name] = (*found.get(name, ()), f"/{folder}" if folder else "")
    return found


def _is_in(domains: Mapping[str, tuple[str, ...]], host: str, path: str) -> bool:
    """Whether a host, or a domain that it belongs to, is among these."""
    host = host[-MAX_HOST:]
    while host and domains:
        if any(path.startswith(folder) for folder in domains.get(host, ())):
            return True
        host = host.partition(".")[2]
    return False


def _plain(text: str) -> str:
    """A text in which hosts are written in one way: lowercase, without escapes, and with letters and dots of ASCII."""
    unescaped = _SLASH.sub("/", unquote(html.unescape(text)))
    return unicodedata.normalize("NFKC", unescaped).replace("\u3002", ".").lower()


# --- results ----------------------------------------------------------------------------------------


def filtered_result(text: str, search: WebSearch) -> tuple[str, tuple[FoundPage, ...]]:
    """A result without the pages that the client excludes, and the pages in it."""
    domains = Domains(search)
    value = _parsed(text)
    if value is None:
        text = text if domains.is_any else _allowed_paragraphs(text, domains)
        urls = dict.fromkeys(url.rstrip(".,;:") for url in URL.findall(text))
        return text, tuple([FoundPage(url) for url in urls][:MAX_PAGES])
    if not domains.is_any:
        value = _allowed_value(value, domains)
        text = "" if value is None else jsontext.compact(value)
    return text, tuple(_pages_in(value))


def _parsed(text: str) -> Any:
    """A result that is an object or a list of JSON; None for any other."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return jsontext.parse_plain(text)
    except (ValueError, RecursionError, ToolglotError):
        return None


def _allowed_paragraphs(text: str, domains: Domains) -> str:
    """The paragraphs that name no other pages than allowed ones. One that names none belongs to the one before it."""
    parts = _BLANK_LINES.split(text)
    kept: list[str] = []
    is_kept = True
    for part in parts:
        if not domains.allows_text(part):
            is_kept = False
        elif URL.search(part):
            is_kept = True
        if is_kept:
            kept.append(part)
    return text if len(kept) == len(parts) else "\n\n".join(kept)


def _allowed_value(value: Any, domains: Domains) -> Any:
    """A value of JSON without what names other pages than allowed ones; None if nothing is left. An object whose URL is
    excluded is left out as a whole."""
    if isinstance(value, str):
        return _allowed_paragraphs(value, domains) or None
    if isinstance(value, list):
        return [kept for each in value if (kept := _allowed_value(each, domains)) is not None or each is None]
    if not isinstance(value, dict):
        return value
    urls = [each for name in _URL_FIELDS if isinstance(each := value.get(name), str)]
    if not all(domains.allows_text(url) for url in urls):
        return None
    return {
        name: kept
        for name, each in value.items()
        if domains.allows_text(name) and ((kept := _allowed_value(each, domains)) is not None or each is None)
    }


def _pages_in(value: Any) -> list[FoundPage]:
    """The pages that a value of JSON describes, in order."""
    found: dict[str, FoundPage] = {}
    waiting = [value]
    while waiting and len(found) < MAX_PAGES:
        each = waiting.pop()
        if isinstance(each, list):
            waiting += reversed(each)
        elif isinstance(each, dict):
            url = next((text for name in _URL_FIELDS if (text := text_of(each, name))), "")
            if URL.fullmatch(url):  # a client shows it as a link
                found.setdefault(url, FoundPage(url, text_of(each, "title")[:MAX_TITLE]))
            waiting += reversed([inner for inner in each.values() if isinstance(inner, (list, dict))])
    return [*found.values()]
