"""Web search that a provider runs itself: the tool, what a search found, and what a text cites.

Law: values only, as in `values.py`. Each protocol that has such a tool reads and writes them in its `web_search.py`.
"""

from __future__ import annotations

from typing import Final, Literal

from toolglot.conversation.values import Value

OWN_MARK: Final = "toolglot"
"""In the ids of searches that were written for a client of another protocol: no provider takes them back."""


class WebSearch(Value, frozen=True):
    """A tool with which a provider searches the web, or fetches a page.

    allowed_domains: only these are searched.
    blocked_domains: these are not searched.
    max_uses: how often it may be used in a reply.
    context_size: how much of what was found the model reads: `low`, `medium` or `high`.
    """

    kind: Literal["search", "fetch"] = "search"
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    max_uses: int | None = None
    context_size: str = ""
    location: dict[str, str] | None = None
    """Where the user is: `city`, `region`, `country`, `timezone`."""


class FoundPage(Value, frozen=True):
    """A page that a search found."""

    url: str
    title: str = ""


class SearchRun(Value, frozen=True):
    """A search that was made for a reply, by a provider or by the gateway.

    id: the provider's id of it.
    query: what was searched for; of a fetch, the URL.
    pages: what was found.
    text: what the model read, if it is known.
    error: why there is nothing, as Anthropic's error codes say it.
    """

    id: str
    query: str = ""
    pages: tuple[FoundPage, ...] = ()
    kind: Literal["search", "fetch"] = "search"
    text: str = ""
    error: str = ""


class Citation(Value, frozen=True):
    """A page that a part of a text is based on.

    start, end: the part, in characters of the text.
    quote: the words of the page.
    """

    page: FoundPage
    start: int = 0
    end: int = 0
    quote: str = ""
