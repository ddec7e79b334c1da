"""What the codecs of web search share. Each protocol that has one has a `SEARCH` in its `web_search.py`.

What providers report of a search describes a reply, so that what is malformed is passed over.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from typing import Any, Final

from toolglot.conversation import Extra, Form, ServerTool, Text, Usage
from toolglot.conversation.web_search import Citation, FoundPage, SearchRun, WebSearch
from toolglot.protocols.fields.reading import Fields

MAX_PAGES: Final = 500
MAX_CITATIONS: Final = 500
"""Of a reply: more are left out."""
MAX_QUOTE: Final = 1_000
"""Characters of a text that a citation repeats."""
_LOCATION: Final = ("city", "region", "country", "timezone")


def text_of(fields: Any, name: str) -> str:
    """A field that is a string; empty if it is not."""
    value = fields.get(name) if isinstance(fields, dict) else None
    return value if isinstance(value, str) else ""


def list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def strings(value: Any) -> tuple[str, ...]:
    return tuple([item for item in list_of(value) if isinstance(item, str)])


def pages_of(entries: Iterable[Any], url: str, title: str) -> tuple[FoundPage, ...]:
    """The pages in a list of objects, by the names of their fields."""
    found = [FoundPage(text_of(entry, url), text_of(entry, title)) for entry in entries]
    return tuple([page for page in found if page.url][:MAX_PAGES])


def location_of(fields: Any) -> dict[str, str] | None:
    """Where the user is, as Anthropic and OpenAI write it."""
    location = fields.get("user_location") if isinstance(fields, dict) else None
    if isinstance(location, dict) and isinstance(location.get("approximate"), dict):
        location = location["approximate"]  # Chat Completions
    if not isinstance(location, dict):
        return None
    return {name: text for name in _LOCATION if (text := text_of(location, name))} or None


def index_of(fields: Any, name: str, end: int) -> int:
    """A position in a text of this length."""
    value = fields.get(name) if isinstance(fields, dict) else None
    return min(max(value, 0), end) if type(value) is int else 0


def pack_text(text: str) -> str:
    """What the model read, for a field that clients send back without reading it."""
    return base64.b64encode(text.encode(errors="replace")).decode()


def unpack_text(packed: Any) -> str:
    """What `pack_text` packed; empty: it is something else."""
    try:
        return base64.b64decode(packed, validate=True).decode() if isinstance(packed, str) else ""
    except ValueError:
        return ""


class SearchReader:
    """Reads the searches of one reply, block by block."""

    def read(self, block: ServerTool) -> SearchRun | None:
        """The search that is complete with this block; None: none is."""
        return None

    def unfinished(self) -> list[SearchRun]:
        """The searches whose results did not come."""
        return []


class SearchCodec:
    """How a protocol writes web search. What it does not override, the protocol does not have."""

    new_reader: type[SearchReader] = SearchReader
    has_blocks: bool = False
    """Whether searches are blocks of a reply, and citations fields of its texts."""
    carries_searches: bool = True
    """Whether a reply can say what was searched for and found, and not only what it cites."""
    citation_field: str = ""
    """The field of a text, or of a message, that holds its citations."""

    options_field: str = ""
    """The field of a request that asks for a search."""

    # requests

    def read_tool(self, fields: Fields) -> WebSearch | None:
        """The tool that a provider's own tool is; None: it is another one."""
        return None

    def read_options(self, extra: Extra | None) -> WebSearch | None:
        """The tool that a field of the request asks for."""
        return None

    def write_tool(self, search: WebSearch, kind: str) -> tuple[Fields, tuple[str, ...]]:
        """The tool as this type of the protocol, and the settings that it cannot have."""
        raise NotImplementedError

    def request_fields(self, extra: Fields) -> Fields:
        """The unknown fields of a request, with those that make a reply report what was found."""
        return extra

    # replies with blocks

    def is_search(self, block: ServerTool) -> bool:
        return False

    def write_run(self, run: SearchRun) -> tuple[ServerTool, ...]:
        return ()

    def read_own(self, call: ServerTool, result: ServerTool | None) -> SearchRun | None:
        """A search that the gateway made, from the blocks that `write_run` wrote; None: they are no such search."""
        return None

    def read_citations(self, text: Text) -> tuple[Citation, ...]:
        return ()

    def write_citations(self, citations: tuple[Citation, ...], text: str) -> Fields:
        """The fields of a text that has these citations."""
        return {}

    # all replies

    def with_searches(self, usage: Usage, runs: Sequence[SearchRun]) -> Usage:
        """The usage with the number of these searches, if the protocol has a field for it."""
        return usage

    # replies without

    def read_reply(
        self, form: Form | None, extra: Extra | None, text: str
    ) -> tuple[SearchRun | None, tuple[Citation, ...]]:
        """What the form of a reply, or the fields of its message, say of its searches."""
        return None, ()

    def without_search(self, form: Form | None, extra: Extra | None) -> tuple[Form | None, Extra | None]:
        """The form of a reply and the fields of its message, without what `read_reply` read."""
        return form, extra

    def write_reply(
        self, runs: list[SearchRun], citations: list[Citation], text: str, form: Form | None, extra: Extra | None
    ) -> tuple[Form | None, Extra | None]:
        """The form of a reply and the fields of its message, with these searches and citations."""
        return form, extra


def without_field(extra: Extra | None, protocol: str, name: str) -> Extra | None:
    """Unknown fields without one of a protocol's."""
    fields = (extra or {}).get(protocol, {})
    if not extra or name not in fields:
        return extra
    rest = {key: value for key, value in fields.items() if key != name}
    others = {key: value for key, value in extra.items() if key != protocol}
    return {**others, protocol: rest} if rest else others or None
