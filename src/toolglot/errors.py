"""Every exception that toolglot raises on purpose.

    ToolglotError
    ├── InputError            the caller's mistake: what was wrong, where, what to do
    │   ├── UnknownNameError  a provider, target, protocol or dialect that is not known, with the closest names
    │   ├── LimitError        larger, deeper or longer than is allowed
    │   ├── VersionError      a conversation or a store of a version this release cannot read
    │   ├── JSONError         text that is not JSON
    │   │   └── TruncatedJSONError          … because it ends too early
    │   ├── ArgumentsError    tool arguments that cannot be read
    │   │   └── TruncatedArgumentsError   … because they end too early: never guessed at
    │   ├── ProfileError      a profile file or override that does not make sense
    │   ├── ConfigError       a configuration of the gateway that does not make sense (in gateway/config/file.py)
    │   ├── NoRouteError      a model that no upstream of the gateway serves (in gateway/routing/router.py)
    │   ├── SessionMissingError   a session that is not there (in runtime/log/entries.py)
    │   ├── SessionDamagedError   a session whose log cannot be read (in runtime/log/entries.py)
    │   └── RefusedError      a request that no change could make the target accept
    │       ├── ServerToolError          … because only another provider can run one of its tools
    │       ├── EmptyConversationError   … because it says nothing
    │       ├── ToolProtocolError        … because the model takes tools over another protocol only
    │       └── StoredHistoryError       … because only another provider has what it continues
    ├── RenderError           a render that would have broken one of its own laws
    ├── ProviderError         what a provider answered instead of a reply (in protocols/errors/failures.py)
    ├── StoreError            a store that cannot do it now (in store/interface.py)
    │   └── StoreConflictError    … because a row is there that must not be
    ├── SessionTakenError     a session that another process has (in runtime/log/entries.py)
    ├── McpServerError        a server of tools that fails (in runtime/mcp/limits.py)
    ├── ToolError             what a tool says to the model in place of a result (in runtime/tools/values.py)
    └── HistoryError          an operation that the present state of a history forbids

Law of this file: a message says what was wrong, `path` says where (a JSON path from `$`), `hint` says
what to do. None of them quotes more than a few characters of untrusted input.

Imports nothing of toolglot; everything may import it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

QUOTED_CHARACTERS = 80
MESSAGE_CHARACTERS = 500
MAX_SUGGESTIONS = 3


class ToolglotError(Exception):
    """The root of the tree."""


class InputError(ToolglotError, ValueError):
    """Something handed to toolglot is not what it should be."""

    def __init__(self, message: str, *, path: str = "$", hint: str = "") -> None:
        """message: what is wrong. path: the JSON path of the value that is wrong. hint: what to do about it."""
        self.message: str = cut(message)
        self.path: str = cut(path)
        self.hint: str = cut(hint)
        super().__init__(self.message, self.path, self.hint)

    @property
    def errors(self) -> tuple[InputError, ...]:
        """All mistakes that were found at once, this one first."""
        return (self,)

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message}" + (f" ({self.hint})" if self.hint else "")

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.args, self.__dict__)


class UnknownNameError(InputError):
    """A name that is not known; `suggestions` are the closest names that are."""

    def __init__(
        self, message: str, *, path: str = "$", hint: str = "", name: str = "", suggestions: tuple[str, ...] = ()
    ) -> None:
        super().__init__(message, path=path, hint=hint)
        self.name = name
        self.suggestions = suggestions


class LimitError(InputError):
    """An input exceeds one of `toolglot.Limits`."""


class VersionError(InputError):
    """A serialised conversation, or the file of a store, was written by a newer toolglot."""


class JSONError(InputError):
    """Text that is not JSON; `position` is where, in characters after a byte order mark."""

    def __init__(self, message: str, *, position: int, path: str = "$", hint: str = "") -> None:
        super().__init__(message, path=path, hint=hint)
        self.position = position


class TruncatedJSONError(JSONError):
    """Text that could become JSON if it went on; `position` is its end."""


class ArgumentsError(InputError):
    """Tool arguments are not a readable JSON object (or XML in its place)."""


class TruncatedArgumentsError(ArgumentsError):
    """Tool arguments end before they are complete; `position` is where, in characters."""

    def __init__(self, message: str, *, position: int, path: str = "$", hint: str = "") -> None:
        super().__init__(message, path=path, hint=hint)
        self.position = position


class ProfileError(InputError):
    """A profile names an unknown key, a value of the wrong kind, or a file that cannot be read."""


class RefusedError(InputError):
    """A request that the target cannot take, and that nothing else could say for it."""


class ServerToolError(RefusedError):
    """A tool that only another provider can run."""


class EmptyConversationError(RefusedError):
    """A conversation without a single turn."""


class ToolProtocolError(RefusedError):
    """A model that takes tools, but not over this protocol."""


class StoredHistoryError(RefusedError):
    """A request that continues what only the provider that it was written for has stored."""


class RenderError(ToolglotError):
    """A render that would have broken one of its own laws, and was stopped: a fault of toolglot's, not of the caller's.

    `report` tells what was changed up to there; with the conversation it makes the fault findable.

    message: what is wrong.
    report: what was changed up to there.
    """

    def __init__(self, message: str, report: str) -> None:
        super().__init__(cut(message))
        self.report = report


class HistoryError(ToolglotError, RuntimeError):
    """The history is not in a state that allows this; it was left as it was."""

    def __init__(self, message: str) -> None:
        """message: what is wrong."""
        super().__init__(cut(message))


def closest_names(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """The known names that look most like one, the closest first."""
    by_lower = {word.lower(): word for word in known}
    word = name[:QUOTED_CHARACTERS].strip().lower()
    return tuple(by_lower[found] for found in difflib.get_close_matches(word, by_lower, n=MAX_SUGGESTIONS))


def unknown_name(
    kind: str,
    name: str,
    known: Iterable[str],
    *,
    suggestions: tuple[str, ...] | None = None,
    path: str | None = None,
    hint: str | None = None,
) -> UnknownNameError:
    """The error for a name that is not known: `unknown target 'mistrall'; did you mean 'mistral'?`.

    kind: what it should be a name of: `target`, `provider`, `dialect`.
    suggestions: the names to suggest, where the spelling alone does not find them.
    path: where the name stands; without one, the parameter is called as `kind` says, and the message is enough.
    """
    listed = sorted(known)
    close = closest_names(name, listed) if suggestions is None else suggestions[:MAX_SUGGESTIONS]
    guess = f"; did you mean {' or '.join(map(repr, close))}?" if close else ""
    return UnknownNameError(
        f"unknown {kind} {quote(name)}{guess}",
        path="" if path is None else path,
        hint=f"known: {', '.join(listed)}" if hint is None else hint,
        name=name[:QUOTED_CHARACTERS],
        suggestions=close,
    )


def _restore(kind: type[InputError], args: tuple[str, str, str], state: dict[str, object]) -> InputError:
    """Rebuild an error that crossed a process boundary."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(state)
    return error


def how_to_install(extra: str) -> str:
    """What to do where an extra is missing. toolglot is on no package index: it is installed from a clone."""
    return f"pip install '.[{extra}]' in a clone of toolglot"


def cut(text: str) -> str:
    """A message of bounded length, whatever it quotes."""
    if len(text) <= MESSAGE_CHARACTERS:
        return text
    return f"{text[: MESSAGE_CHARACTERS // 2]} … {text[-MESSAGE_CHARACTERS // 2 :]}"


def type_name(value: object) -> str:
    """The class name as `type` itself tells it: a metaclass may lie or raise."""
    name: str = type.__dict__["__name__"].__get__(type(value))
    return name[:QUOTED_CHARACTERS]


def quote(value: object) -> str:
    """A short, printable form of an untrusted value for an error message."""
    if isinstance(value, str):
        plain = str.__str__(value)
        short = plain if len(plain) <= QUOTED_CHARACTERS else plain[:QUOTED_CHARACTERS] + "…"
        return ascii(short) if any(0xD800 <= ord(c) <= 0xDFFF for c in short) else repr(short)
    if value is None or type(value) in (bool, float) or (type(value) is int and -(10**20) < value < 10**20):
        return repr(value)
    return f"a {type_name(value)}"
