"""Every exception that toolglot raises on purpose.

    ToolglotError
    ├── InputError            the caller's mistake: what was wrong, where, what to do
    │   ├── UnknownNameError  a provider, target, protocol or dialect that is not known, with the closest names
    │   ├── LimitError        larger, deeper or longer than is allowed
    │   ├── VersionError      a conversation or a store of a version that this release cannot read
    │   ├── JSONError         text that is not JSON
    │   │   └── TruncatedJSONError          … because it ends too early
    │   ├── ArgumentsError    tool arguments that cannot be read
    │   │   └── TruncatedArgumentsError   … because they end too early: never guessed at
    │   ├── ProfileError      an invalid profile or override
    │   ├── ConfigError       an invalid configuration of the gateway (in gateway/config/file.py)
    │   ├── NoRouteError      a model that no upstream serves (in upstream/routing/no_route.py)
    │   ├── SessionMissingError   a session that does not exist (in runtime/log/entries.py)
    │   ├── SessionDamagedError   a session whose log cannot be read (in runtime/log/entries.py)
    │   └── RefusedError      a request that no change could make the target accept
    │       ├── ServerToolError          … because only another provider can run one of its tools
    │       ├── EmptyConversationError   … because it has no turns
    │       ├── ToolProtocolError        … because the model accepts tools only in another protocol
    │       ├── ModelProtocolError       … because the model is served in another protocol only
    │       └── StoredHistoryError       … because it continues a response that another provider stored
    ├── RenderError           a render that would have broken one of its own laws
    ├── ProviderError         an error response of a provider (in protocols/errors/failures.py)
    ├── StoreError            a store that is unavailable (in store/interface.py)
    │   └── StoreConflictError    … because a row already exists
    ├── SessionTakenError     a session that another process uses (in runtime/log/entries.py)
    ├── McpServerError        a failure of an MCP server (in runtime/mcp/limits.py)
    ├── ToolError             an error of a tool, for the model (in runtime/tools/values.py)
    └── HistoryError          an operation that the current state of a history forbids

Law: a message says what was wrong, `path` says where (a JSON path from `$`), `hint` says what to do. None of them
quotes more than a few characters of untrusted input.

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
    """Invalid input: a request, a file, an argument or a setting."""

    def __init__(self, message: str, *, path: str = "$", hint: str = "") -> None:
        """message: what is wrong. path: the JSON path of the invalid value. hint: what to do about it."""
        self.message: str = cut(message)
        self.path: str = cut(path)
        self.hint: str = cut(hint)
        super().__init__(self.message, self.path, self.hint)

    @property
    def errors(self) -> tuple[InputError, ...]:
        """All errors that were found, this one first."""
        return (self,)

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.message}" + (f" ({self.hint})" if self.hint else "")

    def __reduce__(self) -> tuple[object, ...]:
        return _restore, (type(self), self.args, self.__dict__)


class UnknownNameError(InputError):
    """An unknown name; `suggestions` are the closest known names."""

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
    """Text that ends before the JSON is complete; `position` is its end."""


class ArgumentsError(InputError):
    """Tool arguments that are not a JSON object, or XML that can be read as one."""


class TruncatedArgumentsError(ArgumentsError):
    """Tool arguments end before they are complete; `position` is where, in characters."""

    def __init__(self, message: str, *, position: int, path: str = "$", hint: str = "") -> None:
        super().__init__(message, path=path, hint=hint)
        self.position = position


class ProfileError(InputError):
    """A profile has an unknown key or an invalid value, or its file cannot be read."""


class RefusedError(InputError):
    """A request that the target cannot accept, however it is converted."""


class ServerToolError(RefusedError):
    """A tool that only another provider can run."""


class EmptyConversationError(RefusedError):
    """A conversation without a single turn."""


class ToolProtocolError(RefusedError):
    """A model that accepts tools, but not in this protocol."""


class ModelProtocolError(RefusedError):
    """A model that the provider serves in another protocol only."""


class StoredHistoryError(RefusedError):
    """A request that continues a response which only its own provider has stored."""


class RenderError(ToolglotError):
    """A render that was stopped because it would break one of its own laws: a bug in toolglot, not in the caller.

    message: what is wrong.
    report: the changes up to that point. Include it, with the conversation, in a bug report.
    """

    def __init__(self, message: str, report: str) -> None:
        super().__init__(cut(message))
        self.report = report


class HistoryError(ToolglotError, RuntimeError):
    """The state of the history does not allow this operation. The history is unchanged."""

    def __init__(self, message: str) -> None:
        """message: what is wrong."""
        super().__init__(cut(message))


def closest_names(name: str, known: Iterable[str], *, similarity: float = 0.6) -> tuple[str, ...]:
    """The most similar known names, the closest first. similarity: how alike they must be, from 0 to 1."""
    by_lower = {word.lower(): word for word in known}
    word = name[:QUOTED_CHARACTERS].strip().lower()
    found = difflib.get_close_matches(word, by_lower, n=MAX_SUGGESTIONS, cutoff=similarity)
    return tuple(by_lower[each] for each in found)


def unknown_name(
    kind: str,
    name: str,
    known: Iterable[str],
    *,
    suggestions: tuple[str, ...] | None = None,
    path: str | None = None,
    hint: str | None = None,
) -> UnknownNameError:
    """The error for an unknown name: `unknown target 'mistrall'; did you mean 'mistral'?`.

    kind: what the name is for: `target`, `provider`, `dialect`.
    suggestions: the names to suggest, instead of those with a similar spelling.
    path: the path of the name. Without one, the message is enough: the parameter is called `kind`.
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
    """How to install a missing extra. toolglot is not on a package index: it is installed from a clone."""
    return f"pip install '.[{extra}]' in a clone of toolglot"


def cut(text: str) -> str:
    """A message of bounded length, whatever it quotes."""
    if len(text) <= MESSAGE_CHARACTERS:
        return text
    return f"{text[: MESSAGE_CHARACTERS // 2]} … {text[-MESSAGE_CHARACTERS // 2 :]}"


def type_name(value: object) -> str:
    """The class name, read from `type` itself: a metaclass could return anything, or raise."""
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
