"""What the words of a user offer to a model that has no mind: file names, quoted words, numbers, and what they ask for.

One small table of cues, and no more: which words mean which kind of tool, and which names of arguments take which part
of a prompt. `tool_selection.py` uses it.

Law: a prompt of any length is read in linear time, and only `MAX_PROMPT` characters of it are looked at closely.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from functools import cached_property
from typing import Final

from toolglot.conversation import Turn

MAX_PROMPT: Final = 4_000
"""Characters of a prompt that are looked at: its beginning and its end."""
MAX_VALUES: Final = 8
"""Values of one kind that are taken from a prompt."""
MAX_CONTEXT: Final = 400_000
"""Characters of instructions that are searched for the working directory."""

# --- the table of cues ------------------------------------------------------------------------------

_STOP_WORDS: Final = frozenset(
    (
        *("a", "an", "and", "any", "are", "at", "be", "by", "can", "could", "do", "does", "for", "from", "get", "give"),
        *("has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "me", "my", "no", "not", "now", "of", "on"),
        *("or", "please", "set", "should", "some", "tell", "that", "the", "then", "there", "this", "to", "tool", "use"),
        *("user", "using", "was", "we", "what", "when", "which", "who", "will", "with", "would", "you", "your", "mcp"),
    )
)
_ALSO_MEANS: Final = {
    "read": ("open", "show", "view", "display", "print", "contain", "content", "say", "summarize", "explain"),
    "list": ("ls", "folder", "directory"),
    "search": ("find", "grep", "look", "where"),
    "run": ("execute", "command", "shell", "bash", "terminal"),
    "write": ("create", "save", "put", "append"),
    "edit": ("change", "replace", "modify", "rename", "rewrite", "fix"),
    "delete": ("remove",),
    "fetch": ("download", "visit", "browse", "website", "page"),
    "weather": ("rain", "snow", "temperature", "forecast", "sunny", "cold", "warm"),
    "calculate": ("compute", "sum", "plus", "minus", "times"),
}
"""Words of a tool's name, and the words by which people mean them too."""
_OTHER_THAN_READ: Final = ("list", "search", "run", "write", "edit", "delete", "fetch", "move", "copy")
"""A prompt that names a file and none of these means to read it."""

PATH: Final = frozenset(("path", "file", "filename", "filepath", "notebook"))
FOLDER: Final = frozenset(("dir", "directory", "folder"))
URL: Final = frozenset(("url", "uri", "link", "address", "website"))
COMMAND: Final = frozenset(("command", "cmd"))
QUERY: Final = frozenset(("query", "q", "question", "prompt", "topic", "search", "term", "keyword"))
FORMULA: Final = frozenset(("expression", "formula", "equation"))
ORIGIN: Final = frozenset(("from", "origin", "departure"))
GOAL: Final = frozenset(("to", "destination", "arrival"))
QUOTED_ONLY: Final = frozenset(
    (
        *("body", "code", "content", "data", "description", "diff", "id", "instruction", "message", "new", "objective"),
        *("old", "patch", "pattern", "reason", "replacement", "script", "source", "sql", "string", "subject"),
        *("summary", "text", "title"),
    )
)
"""Names of arguments (the last word of them) and what they take. What would be written somewhere is taken from quotes
only: an agent really runs the call."""

# --- reading a prompt -------------------------------------------------------------------------------

_ASIDES: Final = ("system-reminder", "environment_context", "session_context", "user_instructions", "local-command")
"""Elements that coding agents add to what their user wrote."""
_QUOTED: Final = re.compile(r'"([^"\n]{1,500})"|“([^”\n]{1,500})”|`([^`\n]{1,500})`|(?<!\w)\'([^\'\n]{1,500})\'(?!\w)')
_ADDRESS: Final = re.compile(r"https?://[^\s<>\"'`]{1,500}")
_PATH_LIKE: Final = re.compile(
    r"(?<![\w./\\@:-])(?:[A-Za-z]:\\|~?/|\.{1,2}/)?[\w.@+-]{1,200}(?:[/\\][\w.@+-]{1,200}){0,40}/?"
)
_EXTENSION: Final = re.compile(r"(?<=.)\.[A-Za-z][A-Za-z0-9]{0,7}$|^\.[A-Za-z][\w-]{1,30}$")
_BARE_FILES: Final = frozenset(("Makefile", "Dockerfile", "README", "LICENSE", "CHANGELOG"))
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d{1,15}(?:\.\d{1,15})?(?![\w.]*\w)")
_FORMULA_LIKE: Final = re.compile(r"[\d(][\d\s.+*/^()%-]{0,200}[\d)]")
_NEGATED: Final = re.compile(
    r"\b(?:do not|don['\u2019]t|never|without)\b.{0,300}?(?=[.;!?,](?:\s|$)|\bbut\b|\n|$)", re.IGNORECASE
)
_WORD: Final = re.compile(r"[^\W\d_]+")
_CASES: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NAME: Final = re.compile(r"(?<=[^\s.!?:] )[A-Z][^\W\d_]+(?:[ -][A-Z][^\W\d_]+){0,4}")
_AFTER: Final = (
    r"\b{word}\s+((?:the\s+)?[^?!.,;:\n]{{1,200}}?)(?=\s+(?:in|on|at|from|to|with|and|for|please)\s|[?!.,;:]|\s*$)"
)
_RUN: Final = re.compile(r"\s*(?:please\s+)?(?:run|execute)(?:\s+the\s+command)?[:\s]\s*", re.IGNORECASE)
_DIRECTORY: Final = re.compile(
    r"(?:working directory|workspace director(?:y|ies)|\bcwd\b)[^/\\\n]{0,40}\n?[^/\\\n]{0,20}?"
    r"((?:[A-Za-z]:\\|/)[^\s<>\"'`*]{0,1000})",
    re.IGNORECASE,
)


class Prompt:
    """What a user asked for last, in the parts of which arguments can be made."""

    def __init__(self, text: str) -> None:
        half = MAX_PROMPT // 2
        self.text = text if len(text) <= MAX_PROMPT else f"{text[:half]} {text[-half:]}"
        self.wanted = _NEGATED.sub(" ", self.text)
        """Without what the user does not want."""

    @cached_property
    def quoted(self) -> tuple[str, ...]:
        found = (next(filter(None, match.groups())) for match in _QUOTED.finditer(self.wanted))
        return tuple(dict.fromkeys(found))[:MAX_VALUES]

    @cached_property
    def urls(self) -> tuple[str, ...]:
        found = (match[0].rstrip(".,;:!?)]") for match in _ADDRESS.finditer(self.wanted))
        return tuple(dict.fromkeys(found))[:MAX_VALUES]

    @cached_property
    def paths(self) -> tuple[str, ...]:
        """Names of files and folders."""
        quoted = [text for text in self.quoted if "://" not in text and _is_path(text) and not _RUN.match(text)]
        rest = _QUOTED.sub(" ", _ADDRESS.sub(" ", self.wanted))
        bare = (match[0].rstrip(".,;:!?") for match in _PATH_LIKE.finditer(rest))
        return tuple(dict.fromkeys([*quoted, *filter(_is_path, bare)]))[:MAX_VALUES]

    @cached_property
    def plain(self) -> str:
        """The prompt without addresses and names of files."""
        rest = _ADDRESS.sub(" ", self.wanted)
        return _PATH_LIKE.sub(lambda found: " " if _is_path(found[0].rstrip(".,;:!?")) else found[0], rest)

    @cached_property
    def numbers(self) -> tuple[int | float, ...]:
        found = [float(match[0]) if "." in match[0] else int(match[0]) for match in _NUMBER.finditer(self.plain)]
        return tuple(found[:MAX_VALUES])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names as they are written in the middle of a sentence."""
        return tuple(dict.fromkeys(match[0] for match in _NAME.finditer(self.plain)))[:MAX_VALUES]

    @cached_property
    def words(self) -> frozenset[str]:
        """What the prompt is about: its own words, and those that tools use for the same."""
        own = words_of(self.wanted)
        found = own | {word for word, also in _MEANINGS.items() if own & also}
        if self.urls:
            found |= {"fetch", "web", "url"}
        if self.paths:
            found |= {"file"} | (set() if found & _NOT_READING else {"read"})
        elif "file" in own and "read" not in own:
            found |= {"list"}
        return frozenset(found)

    @cached_property
    def command(self) -> str:
        """A shell command that does what is asked for: the user's own, or one that only looks; empty: none."""
        order = _RUN.match(self.wanted)
        if order is not None:
            own = _QUOTED.match(self.wanted, order.end())
            return next(filter(None, own.groups())) if own is not None else ""
        if self.paths and "read" in self.words:
            return " ".join(["cat", *map(shlex.quote, self.paths)])
        if "list" in self.words and not self.urls:
            return " ".join(["ls", *map(shlex.quote, self.paths)])
        return ""

    @cached_property
    def formula(self) -> str:
        found = _FORMULA_LIKE.search(self.plain)
        return found[0].strip() if found is not None else ""

    def after(self, *words: str) -> str:
        """What stands behind the first of these words."""
        for word in words:
            found = re.search(_AFTER.format(word=word), self.plain, re.IGNORECASE)
            if found is not None and words_of(found[1]):
                return found[1].strip()
        return ""

    def named(self, name: str) -> str:
        """A value that the user gives for an argument by its name: `city: Bonn`, `limit=5`."""
        spelled = r"[ _-]?".join(map(re.escape, _parts(name)[:8]))
        value = r"\s?[:=]\s?(?:\"([^\"\n]+)\"|'([^'\n]+)'|([^\s,;]+))"
        found = re.search(rf"(?<!\w){spelled}{value}", self.wanted, re.IGNORECASE)
        return next(filter(None, found.groups()), "").rstrip(".?!") if found is not None and spelled else ""

    def number_beside(self, name: str) -> int | float | None:
        """A number next to the name of an argument: `3 days`, `limit 5`."""
        last = _parts(name)[-1:]
        for word in last:
            spelled = re.escape(word.rstrip("s"))
            pattern = rf"(?<![\w.])(-?\d+(?:\.\d+)?)\s?{spelled}|(?<!\w){spelled}\w?\s?[:=]?\s?(-?\d+(?:\.\d+)?)(?!\w)"
            found = re.search(pattern, self.plain, re.IGNORECASE)
            if found is not None:
                digits = (found[1] or found[2])[:15]
                return float(digits) if "." in digits else int(digits)
        return None


def user_words(text: str) -> str:
    """What a user wrote, without what a coding agent adds to it."""
    for name in _ASIDES:
        text = _without_element(text, name)
    return text.strip()


def _without_element(text: str, name: str) -> str:
    begin, end = f"<{name}", f"</{name}"
    parts: list[str] = []
    position = 0
    while (start := text.find(begin, position)) >= 0:
        stop = text.find(end, start)
        stop = text.find(">", stop) if stop >= 0 else -1
        if stop < 0:
            break
        parts.append(text[position:start])
        position = stop + 1
    return "".join([*parts, text[position:]]) if position else text


def working_directory(turns: Iterable[Turn]) -> str:
    """Where the client works, as far as its instructions say; empty: unknown."""
    left = MAX_CONTEXT
    for turn in turns:
        if turn.role in ("system", "user"):
            text = turn.text[:left]
            left -= len(text)
            found = _DIRECTORY.search(text)
            if found is not None:
                return found[1].rstrip(".,/\\") or found[1][0]
    return ""


def joined(directory: str, path: str) -> str:
    """A path below a directory, unless it is absolute already."""
    if not directory or path.startswith(("/", "~")) or re.match(r"[A-Za-z]:\\", path):
        return path
    separator = "/" if directory.startswith("/") else "\\"
    inner = path.removeprefix("./")
    return directory if inner in (".", "") else f"{directory}{separator}{inner}"


def words_of(text: str) -> frozenset[str]:
    """The words of a text that mean something, by their stems."""
    found = (stem(word.lower()) for word in _WORD.findall(_CASES.sub(" ", text)) if word.lower() not in _STOP_WORDS)
    return frozenset(found)


def last_word(name: str) -> str:
    """The last word of the name of an argument, which says what it is: `file_path`, `searchQueries`."""
    last = (_parts(name) or [""])[-1]
    return last[:-1] if last.endswith("s") and not last.endswith("ss") else last


def stem(word: str) -> str:
    """A word without its usual endings: rough, and the same for prompt and tool."""
    for ending, rest in (("ing", 3), ("ies", 2), ("ed", 4), ("s", 3)):
        if word.endswith(ending) and len(word) - len(ending) >= rest and not word.endswith("ss"):
            word = word[: -len(ending)] + ("y" if ending == "ies" else "")
            break
    return word[:-1] if word.endswith("e") and len(word) > 4 else word


def _parts(name: str) -> list[str]:
    return [part.lower() for part in re.split(r"[\W_]+", _CASES.sub(" ", name[:200])) if part]


def _is_path(text: str) -> bool:
    last = re.split(r"[/\\]", text.rstrip("/"))[-1]
    is_rooted = text.startswith(("/", "./", "../", "~/")) or re.match(r"[A-Za-z]:\\", text) is not None
    return (is_rooted and len(text) > 1) or text.endswith("/") or last in _BARE_FILES or bool(_EXTENSION.search(last))


_MEANINGS: Final = {stem(word): frozenset(map(stem, also)) for word, also in _ALSO_MEANS.items()}
_NOT_READING: Final = frozenset(map(stem, _OTHER_THAN_READ))
