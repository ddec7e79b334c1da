"""The inspector's page as one file, with the requests in it.

    text = export_page({"info": …, "rows": […], "details": {…}})

Laws: the file needs nothing else, and may load nothing else: its policy names the hashes of its own script and style,
and forbids every connection. The data is JSON in an element that does not run, and cannot end it.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

FOLDER: Final = Path(__file__).with_name("page")
_IMPORT: Final = re.compile(r"^import (?:\{([^}]*)\} from )?'\./([^']+)';\n", re.MULTILINE)
_EXPORTS: Final = re.compile(r"export\{([^}]*)\};?\s*$")
_DECLARED: Final = re.compile(
    r"^(?:export )?(?:async )?(?:function|const|let|class) (?:\{ ([^}]+) \}|([\w$]+))", re.MULTILINE
)


def export_page(data: object) -> str:
    """One HTML file that shows this data, as the page's `api.js` reads it."""
    style = (FOLDER / "style.css").read_text("utf-8")
    script = joined_modules()
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    embedded = msgspec.json.encode(data).decode().replace("<", "\\u003c")
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="content-security-policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n<meta name="referrer" content="no-referrer">\n'
        f'<title>toolglot inspector</title>\n<link rel="icon" href="data:,">\n<style>{style}</style>\n</head>\n<body>\n'
        '<div id="app"></div>\n<noscript>This file needs JavaScript to show its requests.</noscript>\n'
        f'<script type="application/json" id="toolglot-data">{embedded}</script>\n'
        f'<script type="module">{script}</script>\n</body>\n</html>\n'
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@lru_cache(1)
def joined_modules() -> str:
    """All modules of the page as one: `main.js`, after those that it imports.

    The modules import names as they are, and no two declare the same name, so that all can share one scope. A vendored
    module has a scope of its own.
    """
    texts: dict[str, str] = {}
    _collect("main.js", texts, set())
    names: list[str] = []
    for text in texts.values():
        for group, name in _DECLARED.findall(text):
            names += re.findall(r"[\w$]+", group) if group else [name]
    twice = {name for name in names if names.count(name) > 1}
    joined = "\n".join(re.sub(r"^export ", "", text, flags=re.MULTILINE) for text in texts.values())
    if twice or re.search(r"</script|<!--", joined, re.IGNORECASE):
        raise ValueError(f"the modules of the page cannot be joined: {sorted(twice) or 'they would end their element'}")
    return joined


def _collect(name: str, texts: dict[str, str], begun: set[str]) -> None:
    if name in begun:
        return
    begun.add(name)
    text = (FOLDER / name).read_text("utf-8")
    if name.startswith("vendor/"):
        texts[name] = _own_scope(text)
        return
    for _, imported in _IMPORT.findall(text):
        _collect(imported, texts, begun)
    texts[name] = _IMPORT.sub("", text)


def _own_scope(text: str) -> str:
    """A vendored module as a function of its own, and what it exports as constants."""
    exports = _EXPORTS.search(text)
    if exports is None:
        raise ValueError("a vendored module does not end with what it exports")
    pairs = [part.strip().split(" as ") for part in exports[1].split(",")]
    public = [pair[-1] for pair in pairs]
    returned = ",".join(f"{pair[-1]}:{pair[0]}" for pair in pairs)
    return f"const {{ {', '.join(public)} }} = (() => {{{text[: exports.start()]}return {{{returned}}};}})();\n"
