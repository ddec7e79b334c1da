"""Which web pages may use the inspector: its own, and those that the configuration names.

    what another page can do                         why it is refused
    fetch, a form, from another origin               Origin is not that of the inspector itself
    the same from another port of this machine       Origin has another port
    an image, a script, a link: without an Origin    Sec-Fetch-Site is neither "same-origin" nor "none"
    a name of its own that leads here                Host is that name, which `refuse_pages` refuses without client keys

Law: with client keys, this comes on top of the key: no page has it but the one that the user gave it to.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import urlsplit

from toolglot.gateway.http.requests import ClientRequest, refusal
from toolglot.gateway.http.web_pages import is_allowed

_OWN_SITES: Final = frozenset({"same-origin", "none"})


def refuse_other_pages(request: ClientRequest, allowed: tuple[str, ...]) -> None:
    """Refuse a request for the inspector's data that another page makes."""
    headers = request.headers
    origin, host = headers.get("origin", ""), headers.get("host", "")
    if origin and is_allowed(origin, allowed):
        return
    if origin and _place(origin) != host.lower():
        raise refusal("permission", "the inspector serves its own page only (Origin)", 403)
    if headers.get("sec-fetch-site", "none") not in _OWN_SITES:
        raise refusal("permission", "the inspector serves its own page only (Sec-Fetch-Site)", 403)


def _place(origin: str) -> str:
    """The host and port of an origin; "null": it has none."""
    try:
        return urlsplit(origin).netloc.lower() or "null"
    except ValueError:
        return "null"
