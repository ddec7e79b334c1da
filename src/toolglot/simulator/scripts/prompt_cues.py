"""What the default script finds in a prompt: file names, quoted words, numbers, and what the user wants.

One small table of cues: which words mean which kind of tool, and which names of arguments take which part of a prompt.
`tool_selection.py` uses it.

Law: a prompt of any length is read in linear time, and only `MAX_PROMPT` characters of it are examined closely.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from functools import cached_property
from typing import Final

from toolglot.conversation import Turn

MAX_PROMPT: Final = 4_000
"""Characters of a prompt that are examined: its beginning and its end."""
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
    "edit": ("change", "replace", "modify", "rename", "rewrite", "fix", "update"),
    "delete": ("remove", "erase"),
    "move": (),
    "copy": (),
    "fetch": ("download", "visit", "browse", "website", "page"),
    "weather": ("rain", "snow", "temperature", "forecast", "sunny", "cold", "warm"),
    "calculate": ("compute", "sum", "plus", "minus", "times"),
}
"""Words in the name of a tool, and other words for the same."""
_READS: Final = ("read", "list", "search", "run", "fetch")
_CHANGES: Final = ("write", "edit", "delete", "move", "copy")
"""What can be done to a file. A prompt that names a file and none of these means to read it."""
_ALWAYS_ACTIONS: Final = {"create": "write", "replace": "edit", "remove": "delete"}
"""Words that say what a tool does anywhere in its name; others do only at its beginning: `price_change`."""
_READ_WORDS: Final = frozenset(("get", "show", "check", "query", "lookup"))
"""Other first words of tools that only read."""
_SUBAGENTS: Final = frozenset(("agent", "subagent", "delegate"))
"""Words in the names of tools that start another model."""

PATH: Final = frozenset(("path", "file", "filename", "filepath", "notebook"))
FOLDER: Final = frozenset(("dir", "directory", "folder"))
URL: Final = frozenset(("url", "uri", "link", "address", "website"))
COMMAND: Final = frozenset(("command", "cmd"))
QUERY: Final = frozenset(("query", "q", "question", "prompt", "topic", "search", "term", "keyword"))
FORMULA: Final = frozenset(("expression", "formula", "equation"))
ORIGIN: Final = frozenset(("from", "origin", "departure"))
GOAL: Final = frozenset(("to", "destination", "arrival"))
CONTENT: Final = frozenset(("content", "text"))
QUOTED_ONLY: Final = frozenset(
    (
        *("body", "code", "content", "data", "description", "diff", "id", "instruction", "message", "new", "objective"),
        *("old", "patch", "pattern", "reason", "replacement", "script", "source", "sql", "string", "subject"),
        *("summary", "text", "title"),
    )
)
"""Names of arguments (their last word) and what they take. Content that would be written somewhere is taken from quotes
only, or from words that are clearly the content of a file: an agent really runs the call."""

# --- reading a prompt -------------------------------------------------------------------------------

_REMINDER: Final = "system-reminder"
_ASIDES: Final = (
    *("system", _REMINDER, "environment_context", "environment_details", "session_context", "user_instructions"),
    *("local-command-caveat", "local-command-stdout", "local-command-stderr", "task-notification"),
    *("ide_opened_file", "ide_selection"),
)
"""Elements that coding agents add to what their user wrote; `system` is a system prompt between turns, for a target
that has none there (`render/roles.py`)."""
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
_QUESTION: Final = re.compile(
    r"\W{0,3}(?:what|which|who|whose|why|how|when|where|is|are|was|were|does|did|has|have|should)\b", re.IGNORECASE
)
_LOOK_AT: Final = re.compile(r"\blook(?:ing)?\s+(?:at|into)\b", re.IGNORECASE)
_MARKS: Final = r"[\"'`“”]?"
_FILE_NAME: Final = "\0"
"""Replaces the name of a file."""
_CONTENT_NOUN: Final = r"(?:(?:the\s+)?(?:words?|texts?|lines?|strings?|contents?)\s*:?\s+)?"
_WRITTEN: Final = (
    re.compile(
        rf"\b(?:write|save|put|append|store)\s+{_CONTENT_NOUN}([^\0\n]{{1,200}}?)\s+(?:in|into|to)\s+"
        r"(?:(?:the|a)\s+)?(?:new\s+)?(?:file\s+)?\0",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\0\s?,?\s+(?:with|containing|saying|(?:that|which)\s+says)\s+{_CONTENT_NOUN}([^\0\n]{{1,200}})$",
        re.IGNORECASE | re.MULTILINE,
    ),
    re.compile(
        r"\b(?:write|save|put|append|store|create)\b[^\0\n]{0,40}\0\s?:\s+([^\0\n]{1,500})$",
        re.IGNORECASE | re.MULTILINE,
    ),
)
"""The content of a file. What begins with an article only describes it: `a poem about Rome`."""
_DESCRIBED: Final = re.compile(
    r"(?:a|an|the|some|this|that|these|those|it|them|my|your|our|its|all|any|every|what|how)\b", re.IGNORECASE
)
_LONG_SPACE: Final = re.compile(r"\s{5,}+")
_THEN: Final = re.compile(r",?\s(?:and\s)?then\s")
_DIRECTORY: Final = re.compile(
    r"(?:\bworking directory|\bworkspace director(?:y|ies)|\bcwd)[*\"'`]{0,3}+"
    r"(?: is(?=[ :])|(?= ?[:=>]))[ :=>*\"'`]{0,8}+(?:\n{1,2}+[ \t]{0,8}+[-*]?+[ \t]{0,4}+[\"'`]?+)?+"
    r"((?:[A-Za-z]:\\|/)[^\s<>\"'`*]{0,1000})",
    re.IGNORECASE,
)
"""A line that names it: `Working directory: /…`, `cwd = /…`, `<cwd>/…</cwd>`, or below `Workspace directories:`."""


class UserPrompt:
    """The last prompt of a user, in the parts of which arguments can be made."""

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
        rest = _PATH_LIKE.sub(lambda found: " " if _is_path(found[0].rstrip(".,;:!?")) else found[0], rest)
        return _collapse_space(rest)

    @cached_property
    def numbers(self) -> tuple[int | float, ...]:
        found = [float(match[0]) if "." in match[0] else int(match[0]) for match in _NUMBER.finditer(self.plain)]
        return tuple(found[:MAX_VALUES])

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Names as they are written in the middle of a sentence."""
        return tuple(dict.fromkeys(match[0] for match in _NAME.finditer(self.plain)))[:MAX_VALUES]

    @cached_property
    def actions(self) -> frozenset[str]:
        """What the user wants done with a file or a page. A question never means a change."""
        own = words_of(_LOOK_AT.sub("read", _QUOTED.sub(" ", self.plain)))
        found = {action for action in _ACTIONS if action in own or own & _MEANINGS[action]}
        if _QUESTION.match(self.wanted):
            found -= CHANGES
        elif found & CHANGES:
            found = {action for action in found if action in CHANGES or action in own}
        if self.urls:
            found.add(stem("fetch"))
        if self.paths and not found - {"read"}:
            found.add("read")
        elif not self.paths and "file" in own and not found & {"read", *CHANGES}:
            found.add("list")
        return frozenset(found)

    @cached_property
    def words(self) -> frozenset[str]:
        """What the prompt is about: its own words, and those of tools for the same."""
        own = words_of(self.wanted)
        found = own | self.actions | {word for word, also in _MEANINGS.items() if word not in _ACTIONS and own & also}
        found |= {"web", "url"} if self.urls else set()
        return frozenset(found | {"file"} if self.paths else found)

    @cached_property
    def written(self) -> str:
        """The content of a file, if it is clear without quotes; else empty."""
        text = _collapse_space(self.wanted)
        for path in sorted(self.paths, key=len, reverse=True):
            text = re.sub(rf"(?<![\w/\\]){_MARKS}{re.escape(path)}{_MARKS}(?![\w/\\])", _FILE_NAME, text)
        for pattern in _WRITTEN:
            found = pattern.search(text)
            if found is not None:
                content = _THEN.split(found[1], maxsplit=1)[0].strip().removesuffix(".")
                return "" if _DESCRIBED.match(content) else content
        return ""

    @cached_property
    def command(self) -> str:
        """A shell command that does what the user wants: their own, or one that only reads; else empty."""
        verb = _RUN.match(self.wanted)
        if verb is not None:
            own = _QUOTED.match(self.wanted, verb.end())
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
        """The words after the first of these."""
        for word in words:
            found = re.search(_AFTER.format(word=word), self.plain, re.IGNORECASE)
            if found is not None and words_of(found[1]):
                return found[1].strip()
        return ""

    def named_value(self, name: str) -> str:
        """A value with the name of an argument: `city: Bonn`, `limit=5`."""
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


def _collapse_space(text: str) -> str:
    """A text without long white space, of which the patterns would try every part."""
    return _LONG_SPACE.sub(lambda found: "\n" if "\n" in found[0] else " ", text)


def user_words(text: str) -> str:
    """What a user wrote, without what a coding agent adds to it."""
    for name in _ASIDES:
        text = _without_element(text, name)
    return text.strip()


def without_reminders(text: str) -> str:
    """A tool result without what a coding agent adds to it. Other elements may be the content of a file."""
    return _without_element(text, _REMINDER).strip()


def _without_element(text: str, name: str) -> str:
    begin, end = f"<{name}>", f"</{name}>"
    parts: list[str] = []
    position = 0
    while (start := text.find(begin, position)) >= 0 and (stop := text.find(end, start)) >= 0:
        parts.append(text[position:start])
        position = stop + len(end)
    return "".join([*parts, text[position:]]) if position else text


def working_directory(turns: Iterable[Turn]) -> str:
    """The working directory of the client, if its instructions name it; else empty."""
    left = MAX_CONTEXT
    for turn in turns:
        if turn.role in ("system", "user"):
            text = turn.text[:left]
            left -= len(text)
            found = _DIRECTORY.search(text)
            if found is not None:
                return found[1].rstrip(".,/\\") or found[1][0]
    return ""


def join_path(directory: str, path: str) -> str:
    """A path below a directory, unless it is absolute already."""
    if not directory or path.startswith(("/", "~")) or re.match(r"[A-Za-z]:\\", path):
        return path
    separator = "/" if directory.startswith("/") else "\\"
    inner = path.removeprefix("./")
    return directory if inner in (".", "") else f"{directory}{separator}{inner}"


def words_of(text: str) -> frozenset[str]:
    """The stems of the words of a text, without stop words."""
    found = (stem(word.lower()) for word in _WORD.findall(_CASES.sub(" ", text)) if word.lower() not in _STOP_WORDS)
    return frozenset(found)


def actions_of(name: str) -> frozenset[str]:
    """What a tool does, by its name."""
    parts = [stem(part) for part in _parts(name)]
    first = frozenset(parts[:1])
    found = {action for action in _ACTIONS if action in parts or first & _MEANINGS[action]}
    return frozenset(found | {action for word, action in _ACTION_WORDS.items() if word in parts})


def only_reads(name: str) -> bool:
    """Whether a tool, by its name, reads, shows or finds something, and changes nothing."""
    actions = actions_of(name)
    return not actions & CHANGES and (bool(actions) or not _READ_WORDS.isdisjoint(_parts(name)[:1]))


def starts_agents(name: str) -> bool:
    """Whether a tool, by its name, delegates work to another model."""
    parts = [part.removesuffix("s") for part in _parts(name)]
    return parts == ["task"] or not _SUBAGENTS.isdisjoint(parts)


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
CHANGES: Final = frozenset(map(stem, _CHANGES))
_ACTIONS: Final = CHANGES | frozenset(map(stem, _READS))
_ACTION_WORDS: Final = {stem(word): stem(action) for word, action in _ALWAYS_ACTIONS.items()}
